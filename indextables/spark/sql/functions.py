"""The SQL functions of a session: text searches and buckets.

A text search is decided by the index alone. As a function it is a marker that the planner takes out
of the query; should one ever reach a row, it raises. Buckets are plain SQL (``sqlbuckets``).
"""

from __future__ import annotations

import weakref
from typing import Any

from indextables.expr.infix import OPERATORS
from indextables.spark.sql.buckets import definitions

BUCKETS = "indextables_"
_with_buckets: weakref.WeakSet[Any] = weakref.WeakSet()


def register(spark: Any) -> None:
    """Make the text searches known to a session."""
    from pyspark.sql.types import BooleanType

    for name in OPERATORS:
        marker = _marker(name)
        every = _marker(f"{name}all")
        spark.udf.register(name, marker, BooleanType())
        spark.udf.register(f"{name}all", every, BooleanType())
        spark.udf.register(f"tantivy4spark_{name}", marker, BooleanType())
        spark.udf.register(f"tantivy4spark_{name}all", every, BooleanType())


def register_buckets(spark: Any) -> None:
    """Make the bucket functions known to a session; done when a query first names one."""
    if spark in _with_buckets:
        return
    _with_buckets.add(spark)
    for statement in definitions():
        spark.sql(statement)


def _marker(name: str) -> Any:
    text = (
        f"{name}() must reach the scan of an indextables table: use it in WHERE on a column of the "
        "table, in a session where indextables.register(spark) installed the full planner, or pass "
        "it as where= to indextables.read"
    )

    def search(*args: Any) -> bool:
        raise RuntimeError(text)

    search.__name__ = name
    return search
