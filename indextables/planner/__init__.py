"""Planning. Decides which splits a query has to read, in which tasks, and can say why."""

from __future__ import annotations

from indextables.expr import ast, filters
from indextables.planner.explain.report import PlanReport, StageReport
from indextables.planner.explain.text import explain
from indextables.planner.plan import Plan, Planner, plan
from indextables.planner.stages.verdict import CANNOT_MATCH, MAY_MATCH, MUST_MATCH
from indextables.planner.tasks import SplitTask

__all__ = [
    "CANNOT_MATCH",
    "MAY_MATCH",
    "MUST_MATCH",
    "Plan",
    "PlanReport",
    "Planner",
    "SplitTask",
    "StageReport",
    "ast",
    "explain",
    "filters",
    "plan",
]
