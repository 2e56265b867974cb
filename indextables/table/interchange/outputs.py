"""Rows in the forms of other libraries, with an error that helps where a library is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.config import Config
from indextables.errors import MissingLibraryError, PlanningError
from indextables.expr.filters import Filter
from indextables.expr.ipbind import refuse_for

if TYPE_CHECKING:
    from indextables.planner import Plan
    from indextables.table.table import Table


def to_pandas(rows: pa.Table) -> Any:
    """A pandas frame of the rows."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise MissingLibraryError.of("pandas", "pandas") from None
    return rows.to_pandas()


def to_polars(rows: pa.Table) -> Any:
    """A Polars frame of the rows."""
    from indextables.table.interchange.polars_scan import polars

    return polars().from_arrow(rows)


def pushed_plan(
    table: Table,
    where: Any,
    pushed: Filter | None,
    columns: Sequence[str] | None,
    limit: int | None = None,
) -> Plan:
    """The plan for a condition of ours and one that another engine pushed down and checks again.

    What that engine compares and we do not (text with a number, say) is left to it.
    """
    if pushed is not None:
        refuse_for("the engine that reads the table", pushed, table.mapping)
        with contextlib.suppress(PlanningError):
            return table.plan(pushed if where is None else [where, pushed], columns, limit)
    return table.plan(where, columns, limit)


def reopen(path: str, version: int, storage_options: Mapping[str, Any], config: Config) -> Table:
    """The table that was pickled."""
    from indextables.table.table import open_table

    return open_table(path, version, storage_options=storage_options, options=config)
