"""Conditions as Spark's connector sends them: every operator, every kind of literal."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from indextables.errors import PlanningError
from indextables.expr import filters as f
from indextables.expr.connector import from_connector

P = {"op": "field", "name": ["p"]}
EVIL = ["C:\\new", "C:\new", "it's", "\\' OR p IS NOT NULL) -- ", "b\\", "Zoë ☃ 𝔘", '"', "\x00"]


def lit(value: Any, kind: str = "string") -> dict[str, Any]:
    return {"op": "lit", "type": kind, "value": value}


def call(op: str, *children: Any) -> dict[str, Any]:
    return {"op": op, "children": list(children)}


@pytest.mark.parametrize("value", EVIL, ids=repr)
def test_text_is_taken_as_it_is(value: str) -> None:
    sent = json.loads(json.dumps([call("=", P, lit(value))]))
    assert from_connector(sent) == f.EqualTo("p", value)


@pytest.mark.parametrize(
    ("node", "made"),
    [
        (call("<>", P, lit("x")), f.Not(f.EqualTo("p", "x"))),
        (call("<=>", P, lit(None, "void")), f.EqualNullSafe("p", None)),
        (call("IN", P, lit("a"), lit("b")), f.In("p", ["a", "b"])),
        (call("IS_NULL", P), f.IsNull("p")),
        (call("IS_NOT_NULL", P), f.IsNotNull("p")),
        (call("STARTS_WITH", P, lit("50%")), f.StringStartsWith("p", "50%")),
        (call("ENDS_WITH", P, lit("_")), f.StringEndsWith("p", "_")),
        (call("CONTAINS", P, lit("\\")), f.StringContains("p", "\\")),
        (call("NOT", call("<", P, lit("a"))), f.Not(f.LessThan("p", "a"))),
        (
            call(
                "OR",
                call(">=", P, lit("a")),
                call("AND", call(">", P, lit("b")), call("<=", P, lit("c"))),
            ),
            f.Or(
                f.GreaterThanOrEqual("p", "a"),
                f.And(f.GreaterThan("p", "b"), f.LessThanOrEqual("p", "c")),
            ),
        ),
        (call("=", P, lit(19782, "date")), f.EqualTo("p", f.Lit(19782, pa.date32()))),
        (
            call("=", P, lit(5, "timestamp")),
            f.EqualTo("p", f.Lit(5, pa.timestamp("us", "UTC"))),
        ),
    ],
)
def test_operators_and_literals(node: Any, made: f.Expression) -> None:
    assert from_connector([node]) == made


def test_several_conditions_are_all_meant() -> None:
    found = from_connector([call("=", P, lit("a")), call("IS_NULL", P)])
    assert found == f.And(f.EqualTo("p", "a"), f.IsNull("p"))


@pytest.mark.parametrize("node", [call("CHAR_LENGTH", P), call("=", call("UPPER", P), lit("A"))])
def test_an_unknown_operator_is_refused_whole(node: Any) -> None:
    with pytest.raises(PlanningError, match="cannot decide which rows"):
        from_connector([node])


def test_malformed_trees_are_refused() -> None:
    for node in ({}, {"op": "="}, {"op": "lit"}):
        with pytest.raises(PlanningError, match="malformed"):
            from_connector([node])
