"""A plan told to people and programs: text, JSON, a page, and why a split was kept."""

from indextables.planner.explain.text import explain

__all__ = ["explain"]
