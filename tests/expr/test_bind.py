"""Binding: names, numbers and other types."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from binding import bound, text

from indextables.errors import (
    AmbiguousColumnError,
    TypeMismatchError,
    UnknownColumnError,
)
from indextables.expr import filters as f
from indextables.expr.bind import bind
from indextables.expr.column import col, lit
from indextables.expr.predicate import (
    And,
    Compare,
    NullTest,
    Op,
    Undecided,
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
