"""The Spark data source. Decides what Spark may push down and how its tasks read and write."""

from __future__ import annotations

from typing import Any

_NAMES = ("register", "read", "write", "last_plan")
_WORKERS = ("WorkerReport", "check_workers")


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        from indextables.spark.driver import session

        return getattr(session, name)
    if name in _WORKERS:
        from indextables.spark.driver import workers

        return getattr(workers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["WorkerReport", "check_workers", "last_plan", "read", "register", "write"]
