"""A table format for Apache Spark that is searched instead of scanned.

>>> import indextables
>>> indextables.write(data, "/data/events", text=["message"])
>>> indextables.open("/data/events").to_arrow(where="host = 'web-7'")

Everything heavy is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from indextables.errors import IndexTablesError

if TYPE_CHECKING:
    from indextables import functions, planner
    from indextables.expr.column import col
    from indextables.public import (
        analyze,
        index,
        open,
        quote,
        read,
        register,
        scan_polars,
        sql,
        write,
    )
    from indextables.spark import last_plan
    from indextables.splits.lookup.colindex.metrics import (
        init_logging_metrics,
        init_logging_metrics_with_interval,
    )
    from indextables.table import Table
    from indextables.table.buckets import date_histogram, histogram
    from indextables.table.detections import sigma

__version__ = "0.1.0"

_HOMES = {
    "Table": "indextables.table",
    "analyze": "indextables.public",
    "col": "indextables.expr.column",
    "index": "indextables.public",
    "date_histogram": "indextables.table.buckets",
    "histogram": "indextables.table.buckets",
    "init_logging_metrics": "indextables.splits.lookup.colindex.metrics",
    "init_logging_metrics_with_interval": "indextables.splits.lookup.colindex.metrics",
    "last_plan": "indextables.spark",
    "open": "indextables.public",
    "quote": "indextables.public",
    "read": "indextables.public",
    "register": "indextables.public",
    "scan_polars": "indextables.public",
    "sigma": "indextables.table.detections",
    "write": "indextables.public",
}
_MODULES = ("functions", "planner", "sql")

__all__ = [
    "IndexTablesError",
    "Table",
    "__version__",
    "analyze",
    "col",
    "date_histogram",
    "functions",
    "histogram",
    "index",
    "init_logging_metrics",
    "init_logging_metrics_with_interval",
    "last_plan",
    "open",
    "planner",
    "quote",
    "read",
    "register",
    "scan_polars",
    "sigma",
    "sql",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"indextables.{name}")
    raise AttributeError(f"module 'indextables' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
