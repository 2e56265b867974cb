"""Infinities, NaN and the ends of every type, in rows and in questions: no warning leaves (they are
errors in this suite), nothing wraps round, and all ways to an answer agree."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables import col
from indextables.errors import EvaluationError, IndexTablesError, PlanningError
from indextables.expr.predicate import Column, Compare, Op
from indextables.splits.lookup.colindex.predicates import _is_single
from indextables.splits.read.partials import DateHistogram, Histogram, Ranges

INF, NAN = math.inf, math.nan
LOW, HIGH = -(2**63), 2**63 - 1
DAYS = [2**31 - 1, -(2**31), 0, 1, -1, 2_932_896, -719_162, 7, 8, None]
MICROS = [HIGH, LOW, 0, 1, -1, 253_402_300_799_999_999, -62_135_596_800_000_000, 7, 8, None]
LARGEST = Decimal("9" * 38)
COLUMNS: dict[str, Any] = {
    "f64": pa.array([INF, -INF, NAN, 1.7976931348623157e308, -1.7e308, 5e-324, -0.0, 0.0, 1, None]),
    "f32": pa.array(np.array([INF, -INF, NAN, 3.4028235e38, -3.4e38, 1e-45, -0.0, 0, 1, 5], "f4")),
    "i64": pa.array([HIGH, LOW, 0, 1, -1, HIGH - 1, LOW + 1, 2**53 + 1, -(2**53) - 1, None]),
    "i32": pa.array([2**31 - 1, -(2**31), 0, 1, -1, 5, 6, 7, 8, None], pa.int32()),
    "i8": pa.array([127, -128, 0, 1, -1, 5, 6, 7, 8, None], pa.int8()),
    "dec": pa.array(
        [LARGEST, LARGEST.copy_negate(), *map(Decimal, range(7)), None], pa.decimal128(38, 0)
    ),
    "d": pa.array(DAYS, pa.int32()).cast(pa.date32()),
    "ts": pa.array(MICROS, pa.int64()).cast(pa.timestamp("us", "UTC")),
    "ntz": pa.array(MICROS, pa.int64()).cast(pa.timestamp("us")),
    "s": pa.array(["nan", "inf", "-inf", "1e400", "", None, "9" * 40, "0x10", "\0", "-0"]),
}
OPTIONS = {"spark.indextables.storage.fsync": "false"}
LITERALS = [
    "1e400",
    "-1e308",
    "5e-324",
    "-0.0",
    "0.1",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1" + "0" * 60,
    "2147483648",
    "cast('NaN' as double)",
    "cast('Infinity' as double)",
    "cast('-Infinity' as float)",
    "'NaN'",
    "'9999-12-31'",
    "'0001-01-01'",
    "null",
]
VALUES = [
    INF,
    NAN,
    1e308,
    2**63,
    LOW - 1,
    2**70,
    Decimal("1e50"),
    Decimal("NaN"),
    np.float32(INF),
    np.float64(NAN),
    np.uint64(2**64 - 1),
    date.max,
    date.min,
    datetime.max,
    datetime.min,
    datetime(9999, 12, 31, tzinfo=UTC),
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> indextables.Table:
    path = str(tmp_path_factory.mktemp("extremes") / "plain")
    indextables.write(pa.table(COLUMNS), path, rows_per_split=3, options=OPTIONS)
    return indextables.open(path, options=OPTIONS)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> indextables.Table:
    path = str(tmp_path_factory.mktemp("extremes") / "indexed")
    indextables.write(pa.table(COLUMNS), path, rows_per_split=3, options=OPTIONS)
    for name in ("f64", "f32", "i64", "i32", "s", "d", "ts", "ntz"):
        indextables.open(path, options=OPTIONS).create_index(name)
    indextables.open(path, options=OPTIONS).build_xref()
    return indextables.open(path, options=OPTIONS)


def agreed(plain: indextables.Table, indexed: indextables.Table, where: Any) -> None:
    """Both tables count and give the same rows, or refuse the question alike."""
    try:
        found = plain.count(where)
    except IndexTablesError as error:
        with pytest.raises(type(error)):
            indexed.count(where)
        return
    assert plain.to_arrow(where=where).num_rows == found
    assert indexed.count(where) == found
    assert indexed.to_arrow(where=where, columns=["i8"]).num_rows == found


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("name", COLUMNS)
def test_comparisons(
    plain: indextables.Table, indexed: indextables.Table, name: str, literal: str
) -> None:
    for op in ("=", "<", ">=", "!=", "<=>"):
        agreed(plain, indexed, f"{name} {op} {literal}")
    agreed(plain, indexed, f"{name} in ({literal}, 1)")
    agreed(plain, indexed, f"not ({name} = {literal})")
    for made in ("{0} + {1} > 0", "{0} * {1} > 0", "{0} % {1} = 0", "cast({0} as bigint) > {1}"):
        agreed(plain, indexed, made.format(name, literal))


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_python_values(plain: indextables.Table, indexed: indextables.Table, value: Any) -> None:
    for name in COLUMNS:
        for make in (lambda c: c == value, lambda c: c < value, lambda c: c.isin([value, 1])):
            try:
                where = make(col(name))
            except IndexTablesError:
                continue
            agreed(plain, indexed, where)


@pytest.mark.parametrize("name", COLUMNS)
def test_aggregates_and_orders(
    plain: indextables.Table, indexed: indextables.Table, name: str
) -> None:
    for kind in ("count", "min", "max", "sum", "avg"):
        for group in ((), ("i8",)):
            found = []
            for table in (plain, indexed):
                try:
                    found.append(str(table.aggregate({"x": (kind, name)}, group_by=group)["x"]))
                except IndexTablesError as error:
                    found.append(type(error).__name__)
            assert found[0] == found[1]
    for descending in (False, True):
        tops = [t.top(name, 6, descending=descending, columns=[name]) for t in (plain, indexed)]
        assert str(tops[0][name]) == str(tops[1][name])
    assert plain.aggregate({"n": "count"}, group_by=[name]).num_rows >= 9


def same(table: indextables.Table, where: str) -> None:
    """The count, if the question has an answer, is that of the rows."""
    try:
        found = table.count(where)
    except IndexTablesError:
        return
    assert table.to_arrow(where=where).num_rows == found


@pytest.mark.parametrize("name", COLUMNS)
def test_partitions(tmp_path: Path, name: str) -> None:
    values = COLUMNS[name]
    data = pa.table({"k": values, "v": pa.array(range(len(values)), pa.int64())})
    try:
        indextables.write(data, str(tmp_path / "t"), partition_by=["k"], options=OPTIONS)
    except IndexTablesError:
        assert not (tmp_path / "t" / "_transaction_log" / f"{1:020d}.json").exists()
        return
    table = indextables.open(str(tmp_path / "t"), options=OPTIONS)
    for literal in LITERALS:
        for op in ("=", "<", ">=", "<=>"):
            same(table, f"k {op} {literal}")
    assert table.to_arrow().num_rows == len(values)


# -- buckets: exact at the ends ------------------------------------------------------------------

WIDTHS = [(1, 0), (3, 0), (10, 0), (10, 7), (10, -3), (2**40, 1), (2**62, 0), (2**62, 2**61)]


@pytest.mark.parametrize(("width", "offset"), WIDTHS)
@pytest.mark.parametrize("name", ["i64", "i32", "i8"])
def test_histograms_of_integers(
    plain: indextables.Table, name: str, width: int, offset: int
) -> None:
    values = COLUMNS[name].to_pylist()
    expected: dict[float | None, int] = {}
    for value in values:
        start = None if value is None else float((value - offset) // width * width + offset)
        expected[start] = expected.get(start, 0) + 1
    found = plain.aggregate({"n": "count"}, group_by=[Histogram(name, width, offset)])
    keys, counts = found.columns[0].to_pylist(), found["n"].to_pylist()
    assert dict(zip(keys, counts, strict=True)) == expected


@pytest.mark.parametrize("width", [0.1, 2.0**63, 1e300, 2**70, 5e-324])
@pytest.mark.parametrize("name", ["f64", "f32", "i64", "dec"])
def test_histograms_of_any_width(plain: indextables.Table, name: str, width: float) -> None:
    found = plain.aggregate({"n": "count"}, group_by=[Histogram(name, width, 2**62)])
    assert sum(found["n"].to_pylist()) == 10


@pytest.mark.parametrize(("width", "offset"), [(INF, 0), (NAN, 0), (0, 0), (-1, 0), (1, INF)])
def test_histograms_without_meaning(plain: indextables.Table, width: float, offset: float) -> None:
    with pytest.raises(PlanningError):
        plain.aggregate({"n": "count"}, group_by=[Histogram("f64", width, offset)])


def test_spans_of_time_at_the_ends(plain: indextables.Table) -> None:
    day = 86_400_000_000
    for name in ("ts", "ntz"):
        with pytest.raises(EvaluationError, match="before any timestamp"):
            plain.aggregate({"n": "count"}, group_by=[DateHistogram(name, day)])
        each = plain.aggregate({"n": "count"}, group_by=[DateHistogram(name, 1)])
        assert sum(each["n"].to_pylist()) == 10
    with pytest.raises(EvaluationError, match="timestamp"):
        plain.aggregate({"n": "count"}, group_by=[DateHistogram("d", day)])
    with pytest.raises(PlanningError):
        plain.aggregate({"n": "count"}, group_by=[DateHistogram("ts", 2**63)])


def test_ranges_of_integers_at_the_ends(plain: indextables.Table) -> None:
    bounds = [("below", None, 0.5), ("middle", 0.5, 2.0**63), ("above", 2.0**63, None)]
    found = plain.aggregate({"n": "count"}, group_by=[Ranges("i64", tuple(bounds))])
    assert dict(zip(*(c.to_pylist() for c in found.columns), strict=True)) == {
        "below": 5,
        "middle": 4,
        None: 1,
    }
    whole = (("all", LOW, 2**63), ("never", 2**63, 2**64))
    found = plain.aggregate({"n": "count"}, group_by=[Ranges("i64", whole)])
    assert set(found.columns[0].to_pylist()) == {"all", None}
    for name in ("f64", "f32", "dec"):
        found = plain.aggregate({"n": "count"}, group_by=[Ranges(name, (("x", -INF, INF),))])
        assert sum(found["n"].to_pylist()) == 10


# -- literals of single precision ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (0.5, True),
        (0.1, False),
        (1e308, False),
        (INF, True),
        (-INF, True),
        (NAN, True),
        (0.0, True),
    ],
)
def test_what_single_precision_holds(value: float, fits: bool) -> None:
    leaf = Compare(Column("f32", pa.float32()), Op.EQ, value)
    assert _is_single(leaf) is fits
