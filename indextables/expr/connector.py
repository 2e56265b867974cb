"""Spark's connector expressions as JSON, the form in which overwrites bring their conditions.

``{"op": "field", "name": ["a", "b"]}``, ``{"op": "lit", "type": T, "value": V}`` as in the Catalyst
form, ``{"op": "CAST", "type": T, "children": [x]}`` and ``{"op": NAME, "children": [...]}`` with
Spark's name of the operator. Each node becomes its Catalyst twin. An operator that has none here is
refused: a condition that decides which rows go is understood whole or not at all.
"""

from __future__ import annotations

from typing import Any

from indextables.errors import PlanningError
from indextables.expr import catalyst
from indextables.expr import filters as f

_TWINS = {
    "=": "EqualTo",
    "<=>": "EqualNullSafe",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
    "AND": "And",
    "OR": "Or",
    "NOT": "Not",
    "IN": "In",
    "IS_NULL": "IsNull",
    "IS_NOT_NULL": "IsNotNull",
    "STARTS_WITH": "StartsWith",
    "ENDS_WITH": "EndsWith",
    "CONTAINS": "Contains",
}


def from_connector(trees: list[dict[str, Any]]) -> f.Expression:
    """The filter that all of these conditions together mean."""
    try:
        return catalyst.from_json([_twin(tree) for tree in trees])
    except (KeyError, TypeError, RecursionError) as error:
        raise PlanningError(f"Spark's condition is malformed: {error!r}") from error


def _twin(node: dict[str, Any]) -> dict[str, Any]:
    op = node["op"]
    if op == "lit":
        return node
    if op == "field":
        return {"op": "attr", "name": node["name"]}
    children = [_twin(child) for child in node["children"]]
    if op == "CAST":
        return {"op": "Cast", "type": node["type"], "mode": "ansi", "children": children}
    if op == "<>":
        return {"op": "Not", "children": [{"op": "EqualTo", "children": children}]}
    if op == "BOOLEAN_EXPRESSION" and len(children) == 1:
        return children[0]
    if op not in _TWINS:
        raise PlanningError(
            f"{op} cannot decide which rows an overwrite replaces",
            hint="Compare partition columns with literals",
        )
    return {"op": _TWINS[op], "children": children}
