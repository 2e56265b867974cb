"""Binding: NULL and NOT, LIKE, the normal form, long chains."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from binding import bound, text

from indextables.errors import (
    PlanningError,
)
from indextables.expr import filters as f
from indextables.expr.bind import bind
from indextables.expr.column import col, lit
from indextables.expr.evaluate import evaluate
from indextables.expr.like import LikePattern, Wild
from indextables.expr.predicate import (
    FALSE,
    NULL,
    TRUE,
    InSet,
    Like,
    Or,
)

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
    assert leaf == Like(leaf.column, LikePattern(("a", Wild.RUN, "b")))


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
