"""The SQL functions of a session: text searches and buckets.

As a function a text search is a mark that a scan takes out of the query and answers by its index.
Where it cannot reach a scan it is computed on the values (``tasks.searching``), with the note that
the optimizer adds to it. Buckets are plain SQL (``sqlbuckets``).
"""

from __future__ import annotations

import warnings
import weakref
from typing import Any

from indextables.expr.infix import OPERATORS
from indextables.spark.sql.buckets import definitions

BUCKETS = "indextables_"
_with_buckets: weakref.WeakSet[Any] = weakref.WeakSet()


def register(spark: Any) -> None:
    """Make the text searches known to a session."""
    function = _function()
    for name in OPERATORS:
        for called in (name, f"{name}all"):
            spark.udf.register(called, function)
            spark.udf.register(f"tantivy4spark_{called}", function)


def _function() -> Any:
    """The search as a function of arrays, or of single values where Spark has no such functions."""
    from pyspark.sql import functions
    from pyspark.sql.types import BooleanType

    from indextables.spark.tasks.searching import search_arrays, search_value

    by_arrays = getattr(functions, "arrow_udf", None)
    if by_arrays is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return by_arrays(search_arrays, BooleanType(), functions.ArrowUDFType.SCALAR)
    return functions.udf(search_value, BooleanType())


def register_buckets(spark: Any) -> None:
    """Make the bucket functions known to a session; done when a query first names one."""
    if spark in _with_buckets:
        return
    _with_buckets.add(spark)
    for statement in definitions():
        spark.sql(statement)
