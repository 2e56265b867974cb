"""Expressions beyond ``column op literal``, computed as Spark would."""

from __future__ import annotations

from typing import Any

from indextables.expr import filters as f
from indextables.expr.literals import Kind, Scalar, cast_scalar, scalar_of
from indextables.expr.scope import Scope


def fold_constant(node: f.Expression, scope: Scope) -> Scalar | None:
    """The value of an expression that reads no column."""
    if isinstance(node, f.Lit):
        return scalar_of(node, scope.tz)
    if isinstance(node, f.Cast) and not node.lenient:
        inner = fold_constant(node.child, scope)
        return None if inner is None else cast_scalar(inner, node.dtype, scope.tz)
    if isinstance(node, f.AlwaysTrue | f.AlwaysFalse):
        return Scalar(Kind.BOOLEAN, isinstance(node, f.AlwaysTrue))
    if isinstance(node, f.IsNull | f.IsNotNull):
        inner = fold_constant(node.child, scope)
        if inner is not None:
            return Scalar(Kind.BOOLEAN, (inner.kind is Kind.NULL) == isinstance(node, f.IsNull))
    if isinstance(node, f.Function) and node.name == "negative":
        inner = fold_constant(node.args[0], scope)
        if inner is not None and inner.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE):
            return Scalar(inner.kind, -inner.value)
    return None


def compile_condition(node: f.Expression, scope: Scope) -> Any:
    """A computable form of a condition, ``None`` where Spark's answer cannot be given here."""
    return None
