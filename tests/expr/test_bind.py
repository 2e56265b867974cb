"""Binding: names, types, literals, three-valued logic, normal form."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from indextables.errors import (
    AmbiguousColumnError,
    PlanningError,
    TypeMismatchError,
    UnknownColumnError,
)
from indextables.expr import filters as f
from indextables.expr.bind import bind
from indextables.expr.column import col, lit
from indextables.expr.evaluate import evaluate
from indextables.expr.predicate import (
    FALSE,
    NULL,
    TRUE,
    And,
    Compare,
    InSet,
    Match,
    NullTest,
    Op,
    Or,
    StringMatch,
    Undecided,
)

SCHEMA = pa.schema(
    [
        ("tiny", pa.int8()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("r", pa.float32()),
        ("dec", pa.decimal128(10, 2)),
        ("big", pa.decimal128(38, 10)),
        ("s", pa.string()),
        ("t", pa.string()),
        ("b", pa.bool_()),
        ("dt", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("bin", pa.binary()),
        ("st", pa.struct([("x", pa.int32()), ("In", pa.struct([("y", pa.string())]))])),
        ("arr", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("void", pa.null()),
        ("month", pa.int32()),
    ]
)
NEW_YORK = "America/New_York"


def bound(source: Any, zone: str = "UTC") -> Any:
    return bind(source, SCHEMA, partition_columns=["month"], time_zone=zone)


def text(source: Any, zone: str = "UTC") -> str:
    return repr(bound(source, zone))


def micros(*parts: int, tz: timezone = UTC) -> int:
    return int(
        (datetime(*parts, tzinfo=tz) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)
    )


# -- names ----------------------------------------------------------------------------------------


def test_names_are_found_without_case_and_spelled_as_in_the_table() -> None:
    leaf = bound(col("ST.IN.Y") == "v")
    assert leaf == Compare(leaf.column, Op.EQ, "v")
    assert leaf.column.path == ("st", "In", "y")
    assert leaf.column.dtype == pa.string()


def test_partition_columns_are_marked() -> None:
    assert bound("MONTH = 9").column.is_partition
    assert not bound("i = 9").column.is_partition


def test_two_matches_are_ambiguous_unless_case_counts() -> None:
    schema = pa.schema([("id", pa.int32()), ("ID", pa.int32())])
    with pytest.raises(AmbiguousColumnError, match="id, ID"):
        bind("Id = 1", schema)
    assert bind("ID = 1", schema, case_sensitive=True).column.path == ("ID",)
    with pytest.raises(UnknownColumnError):
        bind("Id = 1", schema, case_sensitive=True)


def test_unknown_names_suggest_near_ones() -> None:
    schema = pa.schema([("status", pa.int32()), ("host", pa.string())])
    with pytest.raises(UnknownColumnError, match="Did you mean 'status'"):
        bind("statsu = 1", schema)
    with pytest.raises(UnknownColumnError, match=r"'st\.z'"):
        bound("st.z = 1")
    with pytest.raises(UnknownColumnError, match="no fields inside"):
        bound("i.x = 1")
    with pytest.raises(UnknownColumnError):
        bound("lower(nope) = 'x'")


def test_a_name_with_a_dot_is_quoted() -> None:
    schema = pa.schema([("a.b", pa.int32())])
    assert bind("`a.b` = 1", schema).column.path == ("a.b",)
    assert bind(f.EqualTo(("a.b",), 1), schema).column.path == ("a.b",)


# -- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (col("i") == 5, "i = 5"),
        (lit(5) < col("i"), "i > 5"),
        (col("i") == 1.5, "FALSE"),
        (col("i") != 1.5, "i IS NOT NULL"),
        (col("i") < 1.5, "i <= 1"),
        (col("i") <= 1.5, "i <= 1"),
        (col("i") > 1.5, "i >= 2"),
        (col("i") >= -1.5, "i >= -1"),
        (col("i") > 2**40, "FALSE"),
        (col("i") < 2**40, "i IS NOT NULL"),
        (col("i") != 2**40, "i IS NOT NULL"),
        (col("i") >= -(2**31), "i IS NOT NULL"),
        (col("tiny") == 200, "FALSE"),
        (col("i") == math.inf, "FALSE"),
        (col("i") < math.nan, "i IS NOT NULL"),
        (col("i") > -math.inf, "i IS NOT NULL"),
        (col("l") == float(2**53), f"l = {2**53}"),
        (col("l") < float(2**63), "l IS NOT NULL"),
        (col("l") == 2**53 + 1, f"l = {2**53 + 1}"),
        (col("i") == Decimal("7.00"), "i = 7"),
        (col("i") == "7", "i = 7"),
        (col("i") == " 7 ", "i = 7"),
        (col("i") == "3000000000", "FALSE"),
        (col("i") == np.int64(3), "i = 3"),
        (col("i").isin(1, 2.5, None, 2**40), "i = 1"),
    ],
)
def test_integers(source: Any, expected: str) -> None:
    assert text(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (col("dec") == Decimal("1.5"), "dec = 150"),
        (col("dec") == Decimal("1.005"), "FALSE"),
        (col("dec") != Decimal("1.005"), "dec IS NOT NULL"),
        (col("dec") < Decimal("1.005"), "dec <= 100"),
        (col("dec") >= Decimal("1.005"), "dec >= 101"),
        (col("dec") < Decimal("-1.005"), "dec <= -101"),
        (col("dec") == 3, "dec = 300"),
        (col("dec") > 10**9, "FALSE"),
        (col("dec") == 0.1, "dec = 10"),
        (col("dec") == "9.99", "dec = 999"),
        (col("dec") == math.nan, "FALSE"),
        (col("dec") < math.inf, "dec IS NOT NULL"),
        (col("big") == Decimal("0.0000000001"), "big = 1"),
    ],
)
def test_decimals(source: Any, expected: str) -> None:
    assert text(source) == expected


def test_a_wide_decimal_equals_all_decimals_of_that_double() -> None:
    leaf = bound(col("big") == 1e20)
    assert isinstance(leaf, And)
    low, high = (child.value for child in leaf.children)
    assert low / 10**10 == high / 10**10 == 1e20
    assert (low - 1) / 10**10 < 1e20 < (high + 1) / 10**10


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (col("d") == 1, "d = 1.0"),
        (col("d") == -0.0, "d = 0.0"),
        (col("d") == math.nan, "d = nan"),
        (col("d") > math.nan, "FALSE"),
        (col("d") >= math.nan, "d = nan"),
        (col("d") < math.nan, "d != nan"),
        (col("d") <= math.nan, "d IS NOT NULL"),
        (~(col("d") > math.nan), "d IS NOT NULL"),
        (col("d") < -math.inf, "FALSE"),
        (col("d") >= -math.inf, "d IS NOT NULL"),
        (col("d") > math.inf, "d > inf"),
        (col("d") == "NaN", "d = nan"),
        (col("d") == "-Infinity", "d = -inf"),
        (col("d") == "1.5d", "d = 1.5"),
        (col("r") == 1.1, "r = 1.1"),
        (col("r") == Decimal("0.5"), "r = 0.5"),
        (col("r") == f.Lit(1.1, pa.float32()), "r = 1.100000023841858"),
        (col("d").isin(math.nan, 2, math.nan, -0.0, 0), "d IN (0.0, 2.0, nan)"),
    ],
)
def test_floating(source: Any, expected: str) -> None:
    assert text(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        col("i") == "x",
        col("i") == "1.5",
        col("i") == True,  # noqa: E712
        col("i") == b"1",
        col("i") == date(2024, 1, 1),
        col("b") == 1,
        col("b") == "maybe",
        col("d") == "one",
        col("d") == "1_0",
        col("dt") == "yesterday",
        col("dt") == 5,
        col("ts") == "2024-13-01",
        col("ts") == 5,
        col("arr") == 5,
        col("m") == "x",
        col("st") == 1,
        col("s") == [1],
        col("arr").like("x"),
        col("i"),
        "5",
        "'text'",
    ],
)
def test_what_spark_refuses_is_an_error(source: Any) -> None:
    with pytest.raises(TypeMismatchError):
        bound(source)


# -- time -----------------------------------------------------------------------------------------


def test_session_zone_reads_naive_literals_of_timestamps() -> None:
    expected = micros(2024, 1, 1, 5)
    assert bound(col("ts") == datetime(2024, 1, 1), NEW_YORK).value == expected
    assert bound(col("ts") == "2024-01-01", NEW_YORK).value == expected
    assert bound(col("ts") == date(2024, 1, 1), NEW_YORK).value == expected
    assert bound("ts = DATE '2024-01-01'", NEW_YORK).value == expected
    assert bound("ts = TIMESTAMP '2024-01-01 00:00:00'", NEW_YORK).value == expected
    assert bound("ts = '2024-01-01T05:00:00Z'", NEW_YORK).value == expected
    assert bound("ts = '2024-01-01 06:00:00 Europe/Berlin'", NEW_YORK).value == expected
    aware = datetime(2024, 1, 1, 5, tzinfo=UTC)
    assert bound(col("ts") == aware, NEW_YORK).value == expected
    assert bound(col("ts") == np.datetime64("2024-01-01T00:00:00.123456"), NEW_YORK).value == (
        expected + 123456
    )


def test_wall_clocks_ignore_the_zone() -> None:
    expected = micros(2024, 1, 1)
    for source in (datetime(2024, 1, 1), "2024-01-01", date(2024, 1, 1), "2024-01-01 00:00:00Z"):
        assert bound(col("n") == source, NEW_YORK).value == expected


def test_an_instant_against_a_wall_clock_is_undecided() -> None:
    leaf = bound(col("n") == datetime(2024, 1, 1, tzinfo=UTC), NEW_YORK)
    assert isinstance(leaf, Undecided)
    assert leaf.references == ("n",)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("dt < TIMESTAMP_NTZ '2024-01-01 12:00:00'", "dt <= 19723"),
        ("dt < TIMESTAMP_NTZ '2024-01-01 00:00:00'", "dt < 19723"),
        ("dt = TIMESTAMP '2024-01-01 12:00:00'", "FALSE"),
        ("dt = TIMESTAMP '2024-01-01 00:00:00'", "dt = 19723"),
        ("dt != TIMESTAMP '2024-01-01 12:00:00'", "dt IS NOT NULL"),
        ("dt > TIMESTAMP '2024-01-01 12:00:00'", "dt >= 19724"),
        ("dt >= TIMESTAMP '2024-01-01 00:00:00'", "dt >= 19723"),
        ("dt = '2024-1-1'", "dt = 19723"),
        ("dt = '1969-12-31'", "dt = -1"),
        ("dt >= '-0001-01-01'", "dt >= -719893"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", NEW_YORK, "+05:30"])
def test_dates(source: str, expected: str, zone: str) -> None:
    assert text(source, zone) == expected


def test_local_mean_time_keeps_its_seconds() -> None:
    assert bound("ts = '1850-01-01'", "Europe/Berlin").value == micros(1850, 1, 1) - 3_208_000_000


def test_skipped_and_repeated_wall_times() -> None:
    skipped = bound("ts = '2024-03-10 02:30:00'", NEW_YORK).value
    assert skipped == micros(2024, 3, 10, 7, 30)
    repeated = bound("ts = '2024-11-03 01:30:00'", NEW_YORK).value
    assert repeated == micros(2024, 11, 3, 5, 30)


def test_a_day_may_start_after_midnight() -> None:
    assert bound("ts = DATE '2018-11-04'", "America/Sao_Paulo").value == micros(2018, 11, 4, 3)
    assert text("dt = TIMESTAMP '2018-11-04 01:00:00'", "America/Sao_Paulo") == "dt = 17839"


def test_years_beyond_pythons_calendar() -> None:
    assert bound("ts = '12024-01-01 00:00:00'").value == bound("ts = '2024-01-01'").value + (
        25 * 146_097 * 86_400_000_000
    )


# -- other types ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (col("b"), "b = True"),
        (~col("b"), "b = False"),
        (col("b") != True, "b = False"),  # noqa: E712
        (col("b") < True, "b = False"),
        (col("b") >= False, "b IS NOT NULL"),
        (col("b") > True, "FALSE"),
        (col("b") == "yes", "b = True"),
        (col("b").isin(True, False), "b IS NOT NULL"),
        (col("s") == "x", "s = 'x'"),
        (col("s") == b"x", "s = 'x'"),
        (col("bin") == b"\x01", "bin = b'\\x01'"),
        (col("bin") > "A", "bin > b'A'"),
        (col("void") == 1, "NULL"),
        (col("void").is_null(), "void IS NULL"),
        (col("arr").is_null(), "arr IS NULL"),
    ],
)
def test_other_types(source: Any, expected: str) -> None:
    assert text(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        col("s") == 1,
        col("s") > 1.5,
        col("s") == date(2024, 1, 1),
        col("s") == True,  # noqa: E712
        col("s") == b"\xff",
        col("s") == col("t"),
        col("arr") == [1, 2],
        col("m.k") == 1,
        col("i").cast("string") == "1",
        col("s").cast("int") == 1,
        col("s").rlike("a+"),
        col("s").ilike("A%"),
        "lower(s) = 'x'",
        "i + 1 = 2",
        "arr[0] = 1",
        "m['k'] = 1",
        "EXISTS(SELECT 1)",
    ],
)
def test_what_stays_undecided(source: Any) -> None:
    leaf = bound(source)
    assert isinstance(leaf, Undecided)
    negated = bound(f.Not(f.parse_filters(source)))
    assert isinstance(negated, Undecided)
    assert negated.negated
    assert negated.text == leaf.text


def test_collated_columns_are_undecided() -> None:
    metadata = {"spark": '{"__COLLATIONS":{"s":"spark.UTF8_LCASE"}}'}
    schema = pa.schema([pa.field("s", pa.string(), metadata=metadata), ("i", pa.int32())])
    for source in ("s = 'x'", "s IN ('x')", "s LIKE 'x%'", "startswith(s, 'x')", "s <=> 'x'"):
        leaf = bind(source, schema)
        assert isinstance(leaf, Undecided), source
        assert leaf.expression is None
    assert isinstance(bind("s IS NULL", schema), NullTest)
    plain = {"spark": '{"__COLLATIONS":{"s":"spark.UTF8_BINARY"}}'}
    binary = pa.schema([pa.field("s", pa.string(), metadata=plain)])
    assert isinstance(bind("s = 'x'", binary), Compare)


# -- NULL and NOT ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (col("i") == None, "NULL"),  # noqa: E711
        (~(col("i") == None), "NULL"),  # noqa: E711
        (col("i").eq_null_safe(None), "i IS NULL"),
        (~col("i").eq_null_safe(None), "i IS NOT NULL"),
        (col("i").eq_null_safe(5), "i = 5"),
        (~col("i").eq_null_safe(5), "(i IS NULL OR i != 5)"),
        (~col("i").eq_null_safe(1.5), "(i IS NULL OR i IS NOT NULL)"),
        (col("i").isin(None), "NULL"),
        (~col("i").isin(None), "NULL"),
        (col("i").isin(2, None, 1), "i IN (1, 2)"),
        (~col("i").isin(2, None, 1), "NULL"),
        (~col("i").isin(2, 1, 2), "i NOT IN (1, 2)"),
        (col("i").isin([]), "FALSE"),
        (~col("i").isin([]), "TRUE"),
        (~((col("i") == 1) & (col("s") == "x")), "(i != 1 OR s != 'x')"),
        (~((col("i") < 1) | (col("s").is_null())), "(i >= 1 AND s IS NOT NULL)"),
        (~~(col("i") == 1), "i = 1"),
        ((col("i") == 1) & lit(None), "NULL"),
        ((col("i") == 1) | lit(None), "i = 1"),
        ("i = 1 AND NULL", "NULL"),
        ("NOT (i = 1 AND NULL)", "i != 1"),
        ("i IS NOT DISTINCT FROM NULL", "i IS NULL"),
        ("b IS TRUE", "b = True"),
        ("b IS NOT TRUE", "(b IS NULL OR b = False)"),
    ],
)
def test_null_logic(source: Any, expected: str) -> None:
    assert text(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("true", TRUE),
        ("false OR i = 1 AND false", FALSE),
        ("NULL", NULL),
        ("CAST('1' AS INT) IS NULL", FALSE),
        ("NULL IS NULL", TRUE),
        ("", TRUE),
        (None, TRUE),
        ([], TRUE),
        (True, TRUE),
        (f.AlwaysFalse(), FALSE),
    ],
)
def test_constants_fold(source: Any, expected: Any) -> None:
    assert bound(source) == expected


# -- LIKE -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "escape", "expected"),
    [
        ("abc", "\\", "s = 'abc'"),
        ("", "\\", "s = ''"),
        ("ab%", "\\", "s prefix 'ab'"),
        ("%ab", "\\", "s suffix 'ab'"),
        ("%ab%", "\\", "s contains 'ab'"),
        ("%", "\\", "s IS NOT NULL"),
        ("%%", "\\", "s IS NOT NULL"),
        ("ab%%", "\\", "s prefix 'ab'"),
        (r"a\_b%", "\\", "s prefix 'a_b'"),
        (r"100\%", "\\", "s = '100%'"),
        ("a!%b%", "!", "s prefix 'a%b'"),
        ("a!!b", "!", "s = 'a!b'"),
        (r"a\b%", "!", "s prefix 'a\\\\b'"),
        ("a_b", "\\", "s like 'a_b'"),
        ("a%%b", "\\", "s like 'a%b'"),
        ("_%", "\\", "s like '_%'"),
        ("a!_%b", "!", "s like 'a\\\\_%b'"),
        ("a%%%", "%", None),
    ],
)
def test_like(pattern: str, escape: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(PlanningError):
            text(col("s").like(pattern, escape))
    else:
        assert text(col("s").like(pattern, escape)) == expected


def test_like_escape_errors_are_sparks() -> None:
    with pytest.raises(PlanningError, match="ends with the escape"):
        bound(col("s").like("ab\\"))
    with pytest.raises(PlanningError, match="before 'c'"):
        bound(col("s").like("ab\\c"))


def test_not_like_keeps_its_shape() -> None:
    assert text(~col("s").like("ab%")) == "s NOT prefix 'ab'"
    assert text(~col("s").like("ab")) == "s != 'ab'"
    assert text(~col("s").like("%")) == "FALSE"
    assert text(~col("s").startswith("")) == "FALSE"


# -- normal form ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("i = 3 OR i = 1 OR i IN (2, 3)", "i IN (1, 2, 3)"),
        ("i != 1 AND i NOT IN (2)", "i NOT IN (1, 2)"),
        ("i IN (1, 2) AND i IN (2, 3)", "i = 2"),
        ("i = 1 AND i = 2", "FALSE"),
        ("i = 1 AND i = 1", "i = 1"),
        ("i = 1 AND (s = 'x' AND (i = 1 AND b))", "(i = 1 AND s = 'x' AND b = True)"),
        ("i IS NOT NULL AND i > 1", "i > 1"),
        ("i IS NOT NULL AND l > 1", "(i IS NOT NULL AND l > 1)"),
        ("i BETWEEN 1 AND 5", "(i >= 1 AND i <= 5)"),
        ("i NOT BETWEEN 1 AND 5", "(i < 1 OR i > 5)"),
        ("s IN ('b', 'a', 'b')", "s IN ('a', 'b')"),
        ("(i = 1) = false", "i != 1"),
        ("(i = 1) != false", "i = 1"),
    ],
)
def test_normal_form(source: str, expected: str) -> None:
    assert text(source) == expected


def test_text_sets_are_sorted_by_bytes() -> None:
    leaf = bound(col("s").isin("\uffff", "\U00010000", "z"))
    assert leaf.values == ("z", "\uffff", "\U00010000")


def test_nodes_are_predicates() -> None:
    assert isinstance(bound("i = 1 OR s = 'x'"), Or)
    assert isinstance(bound("i IN (1, 2)"), InSet)
    leaf = bound("s LIKE 'a%b'")
    assert leaf == StringMatch(leaf.column, Match.LIKE, "a%b")


# -- casts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("CAST(i AS BIGINT) = 5", "i = 5"),
        ("CAST(i AS BIGINT) < 3000000000", "i IS NOT NULL"),
        ("CAST(CAST(i AS DECIMAL(10,0)) AS DECIMAL(11,1)) > 1.5", "i >= 2"),
        ("CAST(r AS DOUBLE) = 1.5D", "r = 1.5"),
        ("CAST(dt AS TIMESTAMP) = '2024-01-01 10:00:00'", "FALSE"),
        ("CAST(dt AS TIMESTAMP) >= '2024-01-01 10:00:00'", "dt >= 19724"),
        ("CAST(dec AS DECIMAL(12,3)) = 1.234", "FALSE"),
        ("CAST(dec AS DOUBLE) = 0.1D", "dec = 10"),
        ("CAST(l AS DOUBLE) > 9007199254740992D", f"l > {2**53 + 1}"),
        ("CAST(i AS BIGINT) IS NULL", "i IS NULL"),
        ("CAST(i AS BIGINT) IN (1, 2)", "i IN (1, 2)"),
        ("i = CAST('5' AS INT)", "i = 5"),
    ],
)
def test_casts_that_lose_nothing_are_looked_through(source: str, expected: str) -> None:
    assert text(source) == expected


@pytest.mark.parametrize(
    "source", ["CAST(l AS INT) = 5", "CAST(d AS INT) = 5", "CAST(s AS INT) IS NULL"]
)
def test_casts_that_lose_something_are_not(source: str) -> None:
    assert isinstance(bound(source), Undecided)


def test_long_lists_bind_quickly_and_keep_every_value() -> None:
    values = [f"v{i:05d}" for i in range(20_000)]
    leaf = bound(col("s").isin(values[::-1]))
    assert leaf.values == tuple(values)


# -- days of timestamps ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "first", "after"),
    [
        ("CAST(ts AS DATE) = '2024-11-03'", (2024, 11, 3, 4), (2024, 11, 4, 5)),
        ("to_date(ts) = DATE '2024-03-10'", (2024, 3, 10, 5), (2024, 3, 11, 4)),
        ("date(n) = '2024-03-10'", (2024, 3, 10), (2024, 3, 11)),
    ],
    ids=["long day", "short day", "wall clock"],
)
def test_the_day_of_a_timestamp_is_a_range(
    source: str, first: tuple[int, ...], after: tuple[int, ...]
) -> None:
    made = bound(source, NEW_YORK)
    assert [c.value for c in made.children] == [micros(*first), micros(*after) - 1]


def test_a_midnight_that_comes_twice_stays_undecided() -> None:
    """St. John's set its clocks back at one minute past midnight."""
    made = bound("CAST(ts AS DATE) = '2006-10-28'", "America/St_Johns")
    assert isinstance(made, Undecided)
    assert made.expression is not None
    assert isinstance(bound("CAST(ts AS DATE) = '2006-07-01'", "America/St_Johns"), And)


# -- size -----------------------------------------------------------------------------------------


def test_long_chains_are_flat() -> None:
    chain = col("i") == 0
    for n in range(2000):
        chain = chain | (col("i") == n)
    assert len(bound(chain).values) == 2000
    assert len(bound(" OR ".join(f"i = {n}" for n in range(500))).values) == 500
    assert len(bound(f.Or(*(f.EqualTo("s", str(n)) for n in range(500)))).values) == 500


def test_negative_zero_in_a_list_is_zero() -> None:
    schema = pa.schema([("x", pa.float64())])
    predicate = bind(col("x").isin([-0.0, 7.0]), schema)
    rows = pa.record_batch({"x": [0.0, -0.0, 7.0, 1.0]})
    assert evaluate(predicate, rows).to_pylist() == [True, True, True, False]
