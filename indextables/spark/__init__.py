"""The Spark data source. Decides what Spark may push down and how its tasks read and write."""

from __future__ import annotations

from typing import Any

_NAMES = ("register", "read", "write", "last_plan")


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        from indextables.spark.driver import session

        return getattr(session, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["last_plan", "read", "register", "write"]
