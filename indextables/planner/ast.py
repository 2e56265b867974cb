"""The query AST, under the planner's name for it."""

from indextables.expr.ast import *  # noqa: F403
