"""What a predicate means for one row, in plain Python and nothing of ours but the tree's classes.

A row is a dict of physical values. The answer is True, False or None (NULL).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from indextables.expr import predicate as p

Row = Mapping[str, Any]


def truth(node: p.Predicate, row: Row) -> bool | None:
    if isinstance(node, p.And):
        return all_of([truth(c, row) for c in node.children])
    if isinstance(node, p.Or):
        return negate(all_of([negate(truth(c, row)) for c in node.children]))
    if isinstance(node, p.Constant):
        return {"true": True, "false": False, "null": None}[node.truth.value]
    if isinstance(node, p.Undecided):
        found = node.expression(row)
        return negate(found) if node.negated else found
    if isinstance(node, p.TextMatch):
        raise NotImplementedError("text is not part of these tables")
    return column_truth(node, value_of(node.column, row))


def value_of(column: p.Column, row: Row) -> Any:
    value: Any = row
    for part in column.path:
        if value is None:
            return None
        value = value.get(part)
    return value


def all_of(parts: list[bool | None]) -> bool | None:
    if False in parts:
        return False
    return None if None in parts else True


def negate(part: bool | None) -> bool | None:
    return None if part is None else not part


def column_truth(node: Any, value: Any) -> bool | None:
    if isinstance(node, p.NullTest):
        return (value is None) == node.is_null
    if value is None:
        return None
    if isinstance(node, p.Compare):
        return compare(value, node.op, node.value)
    if isinstance(node, p.InSet):
        return any(compare(value, p.Op.EQ, v) for v in node.values) != node.negated
    return pattern_truth(node, value) != node.negated


def order(value: Any) -> tuple[Any, ...]:
    """Sort key in SQL's order: NaN last, -0.0 as 0.0, strings by their bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    if isinstance(value, str):
        return (0, value.encode())
    return (0, value)


def compare(left: Any, op: p.Op, right: Any) -> bool:
    a, b = order(left), order(right)
    if op is p.Op.EQ:
        return a == b
    if op is p.Op.NE:
        return a != b
    if op is p.Op.LT:
        return a < b
    if op is p.Op.LE:
        return a <= b
    return a > b if op is p.Op.GT else a >= b


def pattern_truth(node: p.StringMatch | p.Like, value: str) -> bool:
    if isinstance(node, p.Like):
        return like(tokens(str(node.pattern), "\\"), value)
    if node.kind is p.Match.PREFIX:
        return value[: len(node.text)] == node.text
    if node.kind is p.Match.SUFFIX:
        return not node.text or value[-len(node.text) :] == node.text
    return value.find(node.text) >= 0


def tokens(pattern: str, escape: str) -> list[tuple[str, str]]:
    """("any", ""), ("one", "") and ("char", c) in order."""
    found: list[tuple[str, str]] = []
    i = 0
    while i < len(pattern):
        if pattern[i] == escape:
            i += 1
            found.append(("char", pattern[i]))
        elif pattern[i] == "%":
            found.append(("any", ""))
        elif pattern[i] == "_":
            found.append(("one", ""))
        else:
            found.append(("char", pattern[i]))
        i += 1
    return found


def like(pattern: list[tuple[str, str]], value: str) -> bool:
    """Dynamic programming over both, no regular expressions."""
    reach = {0}
    for kind, char in pattern:
        if kind == "any":
            reach = set(range(min(reach), len(value) + 1)) if reach else set()
        else:
            reach = {i + 1 for i in reach if i < len(value) and (kind == "one" or value[i] == char)}
    return len(value) in reach
