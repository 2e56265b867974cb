"""SQL commands: ``MERGE SPLITS``, ``PURGE INDEXTABLE``, ``DESCRIBE INDEXTABLES`` ..., and SELECT.

Decides which statements are commands of this package, and which function runs each of them. The
module is callable: ``indextables.sql(spark, text)`` is ``indextables.sql.run(spark, text)``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["execute", "is_command", "run"]


def is_command(text: str, spark: Any = None) -> bool:
    """Is this statement one of ours? Everything else is Spark's.

    A few are ours only when the catalog of ``spark`` says that their table is.
    """
    from indextables.sql.parser import is_command as ask
    from indextables.sql.parser import named_table

    if ask(text):
        return True
    if spark is None:
        return False
    from indextables.sql.executor import is_our_table, row_change

    name = named_table(text)
    if name is None:
        return row_change(text, spark) is not None
    return is_our_table(spark, name)


def execute(
    text: str,
    spark: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Run one command; its rows as an Arrow table."""
    from indextables.sql.executor import execute as go

    return go(text, spark, storage_options, options)


def run(spark: Any, text: str, **options: Any) -> Any:
    """Run a command or a query: a DataFrame with Spark, an Arrow table without.

    Without Spark a query is run by DuckDB over our scans; see ``sql.select``.
    """
    if spark is None:
        from indextables.sql.select import is_query, select

        return select(text, **options) if is_query(text) else execute(text, **options)
    if not is_command(text, spark):
        return spark.sql(text)
    return spark.createDataFrame(execute(text, spark, **options))


class _Callable(ModuleType):
    """A module that runs commands when it is called."""

    def __call__(self, spark: Any, text: str, **options: Any) -> Any:
        return run(spark, text, **options)


sys.modules[__name__].__class__ = _Callable
