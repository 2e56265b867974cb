"""Whole-number literals against DOUBLE and FLOAT columns: compared as the numbers they are.

Python compares an int with a float exactly, so it is the oracle. Spark orders NaN above everything.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables.expr.bind import bind
from indextables.expr.predicate import FALSE, NullTest

OPS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
LARGEST = int(1.7976931348623157e308)
EDGES = [2**53, 2**54, 2**62, 2**63, 2**24, 2**25, 16777217, 2**64, 10**19, 10**30, LARGEST]


def holds(value: float | None, op: str, literal: int) -> bool:
    """Is ``value op literal`` TRUE?"""
    if value is None:
        return False
    if value != value:
        return op in (">", ">=", "<>")
    return OPS[op](value, literal)


def around(numbers: Iterable[int], rng: random.Random) -> list[int]:
    found = {0, 1, -1}
    for number in numbers:
        for off in (-1025, -3, -2, -1, 0, 1, 2, 3, 1025, rng.randint(-5000, 5000)):
            found |= {number + off, -(number + off)}
    return sorted(found)


def column_values(dtype: pa.DataType, rng: random.Random) -> list[float | None]:
    found: set[float] = {0.0, math.inf, -math.inf, 1.5, -2.5}
    for number in around(EDGES, rng):
        try:
            near = float(number)
        except OverflowError:
            near = math.inf
        if pa.types.is_float32(dtype):
            with np.errstate(over="ignore"):
                near = float(np.float32(near))
        found |= {near}
        if pa.types.is_float64(dtype):
            found |= {math.nextafter(near, math.inf), math.nextafter(near, -math.inf)}
    return [*sorted(found), math.nan, None]


@pytest.fixture(scope="module", params=["double", "float", "indexed"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Splits of few values each, so that bounds prune; one of them by its column index."""
    dtype = pa.float32() if request.param == "float" else pa.float64()
    values = column_values(dtype, random.Random(7))
    path = str(tmp_path_factory.mktemp(request.param) / "t")
    options = {"columnIndex.selectivityThreshold": 1, "xref.autoIndex.enabled": False}
    data = pa.table({"n": range(len(values)), "d": pa.array(values, dtype)})
    indextables.write(data, path, rows_per_split=24, options=options)
    found = indextables.open(path, options=options)
    if request.param == "indexed":
        found.create_index("d")
        found = found.refresh()
    return found


def answers(table: Any, where: str) -> list[int]:
    return sorted(table.to_arrow(where, columns=["n"])["n"].to_pylist())


def test_tables_answer_as_exact_numbers_do(table: Any, rng: random.Random) -> None:
    rows = table.to_arrow().sort_by("n")["d"].to_pylist()
    literals = rng.sample(around(EDGES, rng), 14)
    literals += [9007199254740993, 16777217, LARGEST + 1, 10**400]
    for literal in literals:
        op = rng.choice(list(OPS))
        for where, expected in (
            (f"d {op} {literal}", [n for n, v in enumerate(rows) if holds(v, op, literal)]),
            (f"{literal} = d", [n for n, v in enumerate(rows) if holds(v, "=", literal)]),
            (
                f"d IN ({literal}, {literal + 1}, 1.5)",
                [
                    n
                    for n, v in enumerate(rows)
                    if v is not None and v in (literal, literal + 1, 1.5)
                ],
            ),
            (
                f"d NOT IN ({literal}, {literal + 1})",
                [
                    n
                    for n, v in enumerate(rows)
                    if v is not None and v not in (literal, literal + 1)
                ],
            ),
            (
                f"d BETWEEN {literal} AND {literal + 2000}",
                [
                    n
                    for n, v in enumerate(rows)
                    if holds(v, ">=", literal) and holds(v, "<=", literal + 2000)
                ],
            ),
            (
                f"NOT (d <=> {literal})",
                [n for n, v in enumerate(rows) if v is None or v != literal],
            ),
        ):
            assert answers(table, where) == expected, where
            assert table.count(where) == len(expected), where


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()], ids=str)
def test_every_comparison_near_the_edges(dtype: pa.DataType, rng: random.Random) -> None:
    from indextables.expr.evaluate import evaluate

    values = column_values(dtype, rng)
    batch = pa.record_batch({"d": pa.array(values, dtype)})
    rows = batch.column(0).to_pylist()
    for literal in around(EDGES, rng):
        for op in OPS:
            found = evaluate(bind(f"d {op} {literal}", batch.schema), batch)
            expected = [holds(v, op, literal) for v in rows]
            assert [v is True for v in pa.array(found).to_pylist()] == expected, (op, literal)


def test_what_no_double_equals() -> None:
    schema = pa.schema([("d", pa.float64())])
    assert bind("d = 9007199254740993", schema) == FALSE
    assert isinstance(bind("d <> 9007199254740993", schema), NullTest)
    assert repr(bind("d < 9007199254740993", schema)) == repr(
        bind("d <= 9007199254740992.0D", schema)
    )
    assert repr(bind("d > 9007199254740993", schema)) == repr(
        bind("d >= 9007199254740994.0D", schema)
    )
    assert bind("d = 9007199254740992", schema) == bind("d = 9007199254740992.0D", schema)
