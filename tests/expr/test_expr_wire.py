"""Filters that travel as text come back as they were, whatever their values hold."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from indextables.errors import PlanningError
from indextables.expr import filters as f
from indextables.expr.column import col
from indextables.expr.filters import parse_filters
from indextables.expr.wire import to_text

EVIL = ["C:\\new", "it's", "a\\' OR true -- ", "line\nbreak", '"{', "Zoë ☃ 𝔘", "", "\x00"]
ZONE = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
VALUES = [
    *EVIL,
    None,
    True,
    -(2**63),
    1.5,
    float("inf"),
    Decimal("12345678901234567890.1234567890"),
    b"\x00\xff",
    datetime.date(1582, 10, 4),
    datetime.datetime(2024, 2, 29, 23, 59, 59, 999999),
    datetime.datetime(2024, 2, 29, 23, 59, 59, 999999, ZONE),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_survive(value: Any) -> None:
    made = f.EqualTo(("a.b", "c`"), f.Lit(value))
    again = parse_filters(to_text(made))
    assert again == made
    assert type(again.right.value) is type(value)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "made",
    [
        f.And(f.Or(f.IsNull("a"), f.Not(f.IsNotNull("b"))), f.AlwaysTrue(), f.AlwaysFalse()),
        f.In("a", [1, None, "x\\"]),
        f.Like("a", "50!%%", "!", ignore_case=True),
        f.TextSearch("m", 'a "b\\" c\''),
        f.IndexQuery("*", "x"),
        f.FieldMatch("k", "x"),
        f.EqualTo(f.Function("lower", (f.Attribute("a"),)), f.Cast(f.Lit("1"), pa.int64(), True)),
        f.Lit(5, pa.timestamp("us", "UTC")),
        f.RLike("a", "\\d+'"),
    ],
    ids=repr,
)
def test_trees_survive(made: f.Expression) -> None:
    assert parse_filters(to_text(made)) == made


def test_columns_and_lists_survive() -> None:
    made = parse_filters([col("a") == EVIL[2], col("b") > 3])
    assert parse_filters(to_text(made)) == made


def test_what_cannot_travel_is_refused() -> None:
    with pytest.raises(PlanningError, match="cannot be sent"):
        to_text(f.Unsupported("magic()"))
    with pytest.raises(PlanningError, match="cannot be sent"):
        to_text(f.EqualTo("a", f.Lit(object())))


@pytest.mark.parametrize(
    "text",
    [
        '{"filter": "Nope"}',
        '{"filter": "EqualTo"}',
        '{"filter": "Lit", "value": {"decimal": "x"}, "dtype": null}',
        '{"filter": ',
    ],
)
def test_malformed_text_is_an_error(text: str) -> None:
    with pytest.raises(PlanningError, match="malformed"):
        parse_filters(text)
