"""Explaining a plan as text, JSON or HTML, and why one split was kept or dropped."""

from indextables.planner.explain.text import explain

__all__ = ["explain"]
