"""Aggregates are exact: any number of groups, integers of any size, NULL and NaN as in SQL."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from splitkit import RANDOM_OPTIONS, open_split, pooled_table, random_table, value_pools

from indextables.errors import IndexTablesError, PlanningError
from indextables.expr.bind import bind
from indextables.expr.evaluate import evaluate
from indextables.expr.predicate import TRUE, Predicate
from indextables.splits.read import aggregate
from indextables.splits.read.access import SplitScan
from indextables.splits.read.aggregate import aggregate_scans
from indextables.splits.read.partials import (
    Aggregation,
    DateHistogram,
    Group,
    Histogram,
    Metric,
    Partial,
    Ranges,
    Terms,
    finalize,
    merge,
)
from indextables.splits.read.reader import SplitReader

ORDERED = ["s", "b", "i8", "i64", "f32", "f64", "dec", "wide", "d", "ts", "ntz", "bin", "txt"]
NUMBERS = ["i8", "i16", "i32", "i64", "f32", "f64", "dec", "wide"]


@pytest.fixture(autouse=True, params=[0, aggregate.SMALL_ROWS], ids=["alone", "gathered"])
def small_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each split grouped by itself, by codes where it has them, and as one of many small ones."""
    monkeypatch.setattr(aggregate, "SMALL_ROWS", request.param)


def aggregate_split(
    reader: SplitReader,
    metrics: Sequence[Metric],
    groups: Sequence[Group] = (),
    predicate: Predicate = TRUE,
    **options: Any,
) -> Partial:
    """The partial result of one split."""
    scan = SplitScan(reader, predicate, **options)
    aggregation = Aggregation(tuple(metrics), tuple(groups), scan.shaper.schema)
    aggregation.check()
    return aggregate_scans([scan], aggregation, reader.config["read.batchRows"])


def physical(column: Any) -> list[Any]:
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return list(column.to_pylist())


def frozen(value: Any) -> Any:
    """A key or value by which results are compared."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def brute(rows: list[tuple[tuple[Any, ...], list[Any]]], metrics: list[Metric]) -> dict[Any, Any]:
    """The plain twin: Python over rows of (keys, one value a metric)."""
    groups: dict[Any, list[list[Any]]] = {}
    for key, values in rows:
        groups.setdefault(tuple(map(frozen, key)), []).append(values)
    return {
        key: [metric_of(m, [v[i] for v in members]) for i, m in enumerate(metrics)]
        for key, members in groups.items()
    }


def metric_of(metric: Metric, values: list[Any]) -> Any:
    if metric.column is None:
        return len(values)
    held = [v for v in values if v is not None]
    if metric.kind == "count":
        return len(held)
    if not held:
        return None
    if metric.kind in ("min", "max"):
        numbers = [v for v in held if not (isinstance(v, float) and math.isnan(v))]
        if metric.kind == "max" and len(numbers) < len(held):
            return "NaN"
        return frozen({"min": min, "max": max}[metric.kind](numbers)) if numbers else "NaN"
    if isinstance(held[0], float):
        total: Any = math.nan if _no_sum(held) else math.fsum(held)
        return frozen(total if metric.kind == "sum" else total / len(held))
    exact = sum(Fraction(v) for v in held)
    return exact if metric.kind == "sum" else exact / len(held)


def _no_sum(held: list[float]) -> bool:
    return any(map(math.isnan, held)) or {math.inf, -math.inf} <= set(held)


def close(found: Any, expected: Any, kind: str) -> bool:
    if found is None or expected is None or kind in ("count", "min", "max"):
        return bool(found == expected)
    if isinstance(expected, str) or isinstance(found, str):
        return bool(found == expected)
    if isinstance(expected, float) and math.isinf(expected):
        return bool(found == expected)
    if kind == "sum" and isinstance(found, int | Decimal):
        return Fraction(found) == expected
    if isinstance(found, Decimal):
        places = -int(found.as_tuple().exponent)
        return abs(Fraction(found) - expected) <= Fraction(1, 2 * 10**places)
    return math.isclose(float(found), float(expected), rel_tol=1e-9, abs_tol=1e-12)


def run(
    reader: SplitReader,
    table: pa.Table,
    metrics: list[Metric],
    groups: list[Group],
    keys: list[list[Any]],
    predicate: Any = TRUE,
) -> None:
    partial = aggregate_split(reader, metrics, groups, predicate)
    result = finalize(partial)
    keep = evaluate(predicate, table, mapping=reader.mapping).to_pylist()
    columns = [physical(table.column(m.column)) if m.column else None for m in metrics]
    rows = [
        (tuple(k[i] for k in keys), [c[i] if c is not None else 1 for c in columns])
        for i in range(table.num_rows)
        if keep[i]
    ]
    expected = brute(rows, metrics)
    found = {}
    shown = [physical(result.column(i)) for i in range(result.num_columns)]
    for at in range(result.num_rows):
        key = tuple(frozen(shown[i][at]) for i in range(len(groups)))
        found[key] = [frozen(shown[len(groups) + i][at]) for i in range(len(metrics))]
    if not groups and not expected:
        expected = {(): [metric_of(m, []) for m in metrics]}
    assert set(found) == set(expected)
    for key, values in expected.items():
        for metric, got, want in zip(metrics, found[key], values, strict=True):
            assert close(got, want, metric.kind), (metric, key, got, want)


@pytest.mark.parametrize("rows", [1, 300])
def test_metrics_over_all_types(rows: int, rng: random.Random, tmp_path: Path) -> None:
    table = pooled_table(rng, value_pools(rng), rows)
    reader = open_split(table, tmp_path)
    metrics = [Metric("count"), *(Metric("count", c) for c in ("s", "st", "ar", "nul"))]
    metrics += [Metric(k, c) for k in ("min", "max") for c in ORDERED]
    metrics += [Metric("avg", c) for c in NUMBERS]
    metrics += [Metric("sum", c) for c in NUMBERS if c not in ("i64", "wide")]
    run(reader, table, metrics, [], [])
    for column in ("s", "b", "i8", "f64", "dec", "d", "ts", "bin", "ip"):
        keys = [physical(table.column(column))]
        run(reader, table, metrics[:1] + rng.sample(metrics, 6), [Terms(column)], keys)
    both = [physical(table.column(c)) for c in ("s", "b")]
    run(reader, table, metrics, [Terms("s"), Terms("b")], both, bind("i8 > 0", table.schema))
    run(reader, table, metrics, [], [], bind("i8 > 0 and i8 < 0", table.schema))
    run(reader, table, metrics[:3], [Terms("s")], [both[0]], bind("i8 is null", table.schema))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, SplitReader]:
    table = random_table(random.Random(21), 9000)
    return table, open_split(table, tmp_path_factory.mktemp("large"), RANDOM_OPTIONS)


@pytest.mark.parametrize(
    "where", ["true", "level = 'ERROR'", "n > 3 and host like 'host-00%'", "level > 'F'", "n = 777"]
)
@pytest.mark.parametrize(
    "groups", [("level",), ("host",), ("host", "level"), ("id",), ("n", "host")]
)
def test_groups_of_a_larger_split(
    where: str, groups: tuple[str, ...], large: tuple[pa.Table, SplitReader]
) -> None:
    table, reader = large
    metrics = [Metric("count"), Metric("avg", "n"), Metric("sum", "n"), Metric("max", "ts")]
    metrics += [Metric("min", "n"), Metric("count", "n"), Metric("min", "x")]
    keys = [physical(table.column(c)) for c in groups]
    predicate = bind(where, table.schema, mapping=reader.mapping)
    for some in (metrics[:1], metrics[:3], metrics[4:6], metrics):
        run(reader, table, some, [Terms(c) for c in groups], keys, predicate)


def test_counting_coded_groups_reads_no_columns(
    large: tuple[pa.Table, SplitReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    from indextables.splits.read import aggregate

    table, reader = large
    monkeypatch.setattr(aggregate, "_columnar", lambda *_: pytest.fail("columns were read"))
    predicate = bind("level = 'ERROR'", table.schema)
    aggregate_split(reader, [Metric("count")], [Terms("host")], predicate)
    aggregate_split(reader, [Metric("count")], [Terms("level"), Terms("host")])
    aggregate_split(reader, [Metric("count")], (), predicate)


def test_buckets(large: tuple[pa.Table, SplitReader]) -> None:
    table, reader = large
    ns, xs = physical(table.column("n")), physical(table.column("x"))
    ts = physical(table.column("ts"))
    metrics = [Metric("count"), Metric("sum", "n")]

    def floor(value: Any, step: Any, base: Any = 0) -> Any:
        return None if value is None else math.floor((value - base) / step) * step + base

    def real(value: Any) -> Any:
        return value if value is None or math.isnan(value) else math.floor(value / 0.5) * 0.5

    run(reader, table, metrics, [Histogram("n", 7)], [[floor(v, 7) for v in ns]])
    run(reader, table, metrics, [Histogram("n", 10, 3)], [[floor(v, 10, 3) for v in ns]])
    run(reader, table, metrics, [Histogram("x", 0.5)], [[real(v) for v in xs]])
    minute = 60_000_000
    run(reader, table, metrics, [DateHistogram("ts", minute)], [[v // minute * minute for v in ts]])
    ranges = (("low", None, -10), ("mid", -10, 10), ("high", 40, None))

    def named(value: Any) -> Any:
        if value is None:
            return None
        return "low" if value < -10 else "mid" if value < 10 else "high" if value >= 40 else None

    run(reader, table, metrics, [Ranges("n", ranges)], [[named(v) for v in ns]])
    both = [[floor(v, 7) for v in ns], physical(table.column("level"))]
    run(reader, table, metrics, [Histogram("n", 7), Terms("level")], both)


def test_dates_before_1970_and_nan_buckets(tmp_path: Path) -> None:
    table = pa.table(
        {
            "d": pa.array([-1, 0, -8, None], pa.int32()).cast(pa.date32()),
            "x": [-0.0, math.nan, math.inf, 2.5],
        }
    )
    reader = open_split(table, tmp_path)
    week = 7 * 86_400_000_000
    found = finalize(aggregate_split(reader, [Metric("count")], [DateHistogram("d", week)]))
    assert physical(found.column("d")) == [-week, 0, -2 * week, None]
    named = Ranges("x", (("small", 0, 1), ("rest", 1, None)))
    found = finalize(aggregate_split(reader, [Metric("count")], [named]))
    assert dict(zip(*(c.to_pylist() for c in found.columns), strict=True)) == {
        "small": 1,
        "rest": 3,
    }


def test_integers_above_2_to_53_and_overflow(tmp_path: Path) -> None:
    big = [2**53, 1, 2**62, -(2**61), 3]
    table = pa.table({"k": ["a", "a", "b", "b", "a"], "v": big})
    reader = open_split(table, tmp_path)
    keys = [physical(table.column("k"))]
    metrics = [Metric(k, "v") for k in ("sum", "avg", "min", "max")]
    run(reader, table, metrics, [Terms("k")], keys)
    run(reader, table, metrics, [], [])
    full = open_split(pa.table({"v": [2**63 - 1] * 4}), tmp_path)
    partial = aggregate_split(full, [Metric("sum", "v"), Metric("avg", "v")])
    with pytest.raises(IndexTablesError, match="does not fit a BIGINT"):
        finalize(partial)


def test_partials_of_splits_merge_and_travel(tmp_path: Path, rng: random.Random) -> None:
    table = random_table(rng, 3000)
    pieces = [table.slice(0, 1000), table.slice(1000, 1500), table.slice(2500)]
    readers = [open_split(p, tmp_path, RANDOM_OPTIONS) for p in pieces]
    whole = open_split(table, tmp_path, RANDOM_OPTIONS)
    metrics = [Metric("count"), Metric("sum", "n"), Metric("max", "x"), Metric("min", "host")]
    for groups in ([], [Terms("level")], [Terms("id")], [Histogram("n", 9), Terms("host")]):
        parts = [pickle.loads(pickle.dumps(aggregate_split(r, metrics, groups))) for r in readers]
        merged = finalize(merge(parts))
        expected = finalize(aggregate_split(whole, metrics, groups))
        keys = [(n, "ascending") for n in expected.column_names[: len(groups)]]
        if keys:
            merged, expected = merged.sort_by(keys), expected.sort_by(keys)
        assert repr(merged.to_pylist()) == repr(expected.to_pylist())


def test_empty_splits_merge_with_others(tmp_path: Path) -> None:
    reader = open_split(pa.table({"k": ["a"], "v": [1]}), tmp_path)
    none = bind("v > 5", reader.schema)
    metrics = [Metric("sum", "v"), Metric("count")]
    parts = [aggregate_split(reader, metrics, (), p) for p in (none, TRUE)]
    assert finalize(parts[0]).to_pylist() == [{"sum(v)": None, "count(*)": 0}]
    assert finalize(merge(parts)).to_pylist() == [{"sum(v)": 1, "count(*)": 1}]
    grouped = aggregate_split(reader, metrics, [Terms("k")], none)
    assert finalize(grouped).num_rows == 0
    both = merge([grouped, aggregate_split(reader, metrics, [Terms("k")])])
    assert finalize(both).to_pylist() == [{"k": "a", "sum(v)": 1, "count(*)": 1}]


def test_partition_and_missing_columns_can_be_grouped(tmp_path: Path) -> None:
    reader = open_split(pa.table({"v": [1, 2]}), tmp_path)
    schema = pa.schema([("v", pa.int64()), ("p", pa.int32()), ("later", pa.string())])
    partial = aggregate_split(
        reader,
        [Metric("sum", "v"), Metric("max", "p"), Metric("count", "later")],
        [Terms("p"), Terms("later")],
        schema=schema,
        partition_values={"p": "7"},
    )
    row = {"p": 7, "later": None, "sum(v)": 3, "max(p)": 7, "count(later)": 0}
    assert finalize(partial).to_pylist() == [row]


@pytest.mark.parametrize(
    ("metric", "group"),
    [
        (lambda: Metric("median", "v"), None),
        (lambda: Metric("sum"), None),
        (lambda: Metric("sum", "s"), None),
        (lambda: Metric("max", "a"), None),
        (None, Terms("a")),
        (None, Histogram("s", 1)),
        (None, Histogram("v", 0)),
        (None, DateHistogram("v", 5)),
        (None, Ranges("s", ())),
    ],
)
def test_what_has_no_meaning_is_refused(metric: Any, group: Any, tmp_path: Path) -> None:
    table = pa.table({"s": ["x"], "v": [1], "a": [["y"]]})
    reader = open_split(table, tmp_path)
    with pytest.raises(PlanningError):
        aggregate_split(reader, [metric() if metric else Metric("count")], [group] if group else [])


def test_many_groups_are_all_there(tmp_path: Path) -> None:
    rows = 70_000
    table = pa.table({"k": np.arange(rows), "s": [f"v{i}" for i in range(rows)]})
    reader = open_split(table, tmp_path)
    for column in ("k", "s"):
        found = finalize(aggregate_split(reader, [Metric("count")], [Terms(column)]))
        assert found.num_rows == rows
