"""Catalyst-style filters, under the planner's name for them."""

from indextables.expr.filters import *  # noqa: F403
