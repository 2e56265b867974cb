"""Text filters meet the document mapping."""

from __future__ import annotations

from indextables.errors import PlanningError
from indextables.expr import filters as f
from indextables.expr.predicate import Predicate
from indextables.expr.scope import Scope


def bind_text(node: f.TextFilter, scope: Scope, negated: bool) -> Predicate:
    raise PlanningError("text filters need the table's mapping")
