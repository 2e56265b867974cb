"""The first rows of a table in the order of a column.

The order is that of ORDER BY: NULL first, or last where descending, NaN above all numbers, text by
its bytes; rows with equal values keep the order of the plan. Each split gives at most ``limit``
rows. One in which no filter is left to check reads only the rows its column index names; any other
is read in batches, of which no more than the best are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.config import checked_count
from indextables.errors import PlanningError, UnknownColumnError, placed
from indextables.planner.tasks import SplitTask
from indextables.splits.lookup.colindex.values import float_keys
from indextables.splits.read.source import SplitRef
from indextables.table.execute import each_task, open_scan, output_schema

if TYPE_CHECKING:
    from indextables.table.table import Table


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked: the order, how many rows, and which columns of them (``None``: all)."""

    column: str
    limit: int
    descending: bool = False
    columns: Sequence[str] | None = None


def top_rows(table: Table, order: Order, where: Any = None) -> pa.Table:
    """The first rows that match a filter."""
    _check(table, order)
    wanted = list(table.schema.names if order.columns is None else order.columns)
    read = list(dict.fromkeys([*wanted, order.column]))
    plan = table.plan(where, columns=read)
    plan.check_decidable()

    def run(task: SplitTask) -> list[pa.Table]:
        with placed(table.path):
            return [_of_split(table, task, split, order, read) for split in task.splits]

    empty = output_schema(table.schema, read).empty_table()
    found = [part for parts in each_task(table, run, plan) for part in parts]
    return first(pa.concat_tables([empty, *found]), order).select(wanted)


def _check(table: Table, order: Order) -> None:
    if order.column not in table.schema.names:
        raise UnknownColumnError.of(order.column, table.schema.names, path=table.path)
    if pa.types.is_nested(table.schema.field(order.column).type):
        raise PlanningError(f"column '{order.column}' has no order")
    checked_count(order.limit)


def _of_split(
    table: Table, task: SplitTask, split: SplitRef, order: Order, columns: list[str]
) -> pa.Table:
    scan = open_scan(table.store, task, split, table.schema, table.config)
    scan.keep_first(order.column, order.limit, descending=order.descending)
    batches = scan.batches(columns, None, table.config["read.batchRows"])
    return _best(batches, output_schema(table.schema, columns), order)


def _best(batches: Iterator[pa.RecordBatch], schema: pa.Schema, order: Order) -> pa.Table:
    best = schema.empty_table()
    for batch in batches:
        best = first(pa.concat_tables([best, pa.Table.from_batches([batch], schema)]), order)
    return best


def first(rows: pa.Table, order: Order) -> pa.Table:
    """The first of these rows in order."""
    values = rows.column(order.column).combine_chunks()
    if pa.types.is_floating(values.type):
        values = _sortable(values)
    direction = "descending" if order.descending else "ascending"
    nulls = "at_end" if order.descending else "at_start"
    found = pc.array_sort_indices(values, order=direction, null_placement=nulls)
    return rows.take(found[: order.limit])


def _sortable(values: Any) -> Any:
    """Floats as integers of the same order, NaN the largest."""
    missing = np.asarray(values.is_null())
    keys = float_keys(np.asarray(values.fill_null(0).cast(pa.float64())))
    return pa.array(keys, mask=missing)
