"""Running a plan in this process: tasks side by side in threads, results in the plan's order.

Decoding and searching release the GIL, so threads are enough; ``storage.pool`` says how many. Many
splits of a remote table are read at once, but not so many that their rows fill the memory: a task
without a filter weighs what its splits weigh, one with a filter a small part of it. A limit stops
early: tasks that have not started never do. Nothing is capped otherwise.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.config import Config
from indextables.errors import placed
from indextables.expr.predicate import TRUE, Predicate, TextMatch, leaves
from indextables.planner import Plan
from indextables.planner.tasks import SplitTask
from indextables.splits.format.keysets import BLOCK_ROWS
from indextables.splits.lookup.colindex.asking import ColumnIndexes
from indextables.splits.read.access import SplitScan
from indextables.splits.read.aggregate import aggregate_scans
from indextables.splits.read.partials import Aggregation, Partial, merge
from indextables.splits.read.ranking import relevant
from indextables.splits.read.source import SplitRef
from indextables.storage import pool
from indextables.storage.base import Store
from indextables.table.damaged import open_sound, soundly

if TYPE_CHECKING:
    from indextables.table.table import Table

FEW_SPLITS = 4
"""A task of more splits than this does not open the indexes of small ones."""
BUDGET = 512 << 20
"""Bytes of splits that are read at once; more only where there are cores for them."""
FILTERED = 16
"""A filtered task is taken to read one part in so many."""
NEAR_BYTES = 4 << 20
"""A block of rows that is heavier is not read for the sake of one."""
SCORE = "_score"

T = TypeVar("T")
R = TypeVar("R")


def open_scan(
    store: Store,
    task: SplitTask,
    split: SplitRef,
    schema: pa.Schema,
    config: Config,
    *,
    beyond: bool = False,
) -> SplitScan:
    """One split of a task, ready to be read, counted or aggregated; its reader knows its members.

    Every task is run through here, in this process and in Spark's alike. ``beyond`` says that more
    than the end of a split will be read: then a small one is fetched whole, because its bytes cost
    less than another trip.
    """
    whole = task.whole or beyond or _asks_words(task.predicate)
    reader = open_sound(store, split, config, whole=whole)
    block = task.row_blocks.get(split.path)
    return SplitScan(
        reader,
        task.predicate,
        near=None if block is None or not store.capabilities.remote else near_rows(split, block),
        schema=schema,
        partition_values=split.partition_values,
        indexes=ColumnIndexes(store, reader, task.indexes, config),
        spare_index=len(task.splits) > FEW_SPLITS,
    )


def open_scans(
    store: Store,
    task: SplitTask,
    schema: pa.Schema,
    config: Config,
    *,
    beyond: bool = False,
    splits: Iterable[SplitRef] | None = None,
) -> Generator[SplitScan, None, None]:
    """The splits of a task, each opened while the one before it is read.

    Not where a limit may end the reading first: what is fetched then would not be needed.
    """

    def make(split: SplitRef) -> SplitScan:
        return open_scan(store, task, split, schema, config, beyond=beyond)

    chosen = task.splits if splits is None else splits
    if task.limit is None:
        yield from pool.one_ahead(store, make, chosen)
    else:
        yield from map(make, chosen)


def _asks_words(predicate: Predicate) -> bool:
    return any(isinstance(leaf, TextMatch) for leaf in leaves(predicate))


def near_rows(split: SplitRef, block: int) -> NDArray[np.uint32] | None:
    """The rows of a block, where reading all of them costs less than a trip to look one up."""
    rows = split.num_records
    if not 0 <= block * BLOCK_ROWS < rows or split.size // rows * BLOCK_ROWS > NEAR_BYTES:
        return None
    return np.arange(block * BLOCK_ROWS, min(rows, (block + 1) * BLOCK_ROWS), dtype=np.uint32)


def single_splits(tasks: Iterable[SplitTask]) -> list[SplitTask]:
    """The same work with one split a task."""
    return [replace(task, splits=(split,)) for task in tasks for split in task.splits]


def read_task(
    store: Store,
    task: SplitTask,
    schema: pa.Schema,
    config: Config,
    batch_rows: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of one task."""
    left = task.limit
    columns = schema.names if task.columns is None else list(task.columns)
    if left is not None and left <= 0:
        return
    scans = open_scans(store, task, schema, config, beyond=True)
    with placed(task.table_path), closing(scans):
        for scan in scans:
            most = partial(_begun, columns, left, batch_rows or config["read.batchRows"])
            for batch in soundly(scan, most):
                left = None if left is None else left - batch.num_rows
                yield batch
            if left is not None and left <= 0:
                return


def _begun(
    columns: Sequence[str], limit: int | None, batch_rows: int, scan: SplitScan
) -> Iterator[pa.RecordBatch]:
    """The batches of a split; the first is made at once, which is when its index is read."""
    batches = scan.batches(columns, limit, batch_rows)
    return itertools.chain(list(itertools.islice(batches, 1)), batches)


def count_task(store: Store, task: SplitTask, schema: pa.Schema, config: Config) -> int:
    """How many rows of one task match."""
    known = [s for s in task.splits if task.predicate == TRUE and s.live_records >= 0]
    asked = () if known == list(task.splits) else [s for s in task.splits if s not in known]
    with placed(task.table_path):
        scans = open_scans(store, task, schema, config, splits=asked)
        return sum(s.live_records for s in known) + sum(
            soundly(scan, SplitScan.count) for scan in scans
        )


def aggregate_task(
    store: Store, task: SplitTask, schema: pa.Schema, config: Config, aggregation: Aggregation
) -> Partial:
    """The partial result of one task."""
    measured = any(metric.column is not None for metric in aggregation.metrics)
    scans = open_scans(store, task, schema, config, beyond=measured)
    rows = config["read.batchRows"]
    with placed(task.table_path):
        if not any(split.origin for split in task.splits):
            return aggregate_scans(scans, aggregation, rows)
        one = partial(_aggregated, aggregation, rows)
        return merge([soundly(scan, one) for scan in scans])


def _aggregated(aggregation: Aggregation, rows: int, scan: SplitScan) -> Partial:
    return aggregate_scans([scan], aggregation, rows)


def scored_task(
    store: Store, task: SplitTask, schema: pa.Schema, config: Config
) -> Iterator[pa.RecordBatch]:
    """The rows of one task, the relevance of each in a last column ``_score``.

    Where only the best are wanted, each split gives no more than its best.
    """
    columns = schema.names if task.columns is None else list(task.columns)
    for scan in open_scans(store, task, schema, config, beyond=True):
        relevance = relevant(scan, task.ranking)
        if task.ranking is not None and task.ranking.best is not None:
            rows = scan.matching_rows()
            scan = scan.narrowed(only=rows[task.ranking.chosen(relevance[rows])])
        for rows, batch in scan.pieces(columns, config["read.batchRows"]):
            values = pa.array(relevance[rows], pa.float32())
            fields = [*batch.schema, pa.field(SCORE, values.type)]
            yield pa.RecordBatch.from_arrays([*batch.columns, values], schema=pa.schema(fields))


def reader(table: Table, plan: Plan, batch_rows: int | None = None) -> pa.RecordBatchReader:
    """Stream the plan's rows."""
    return pa.RecordBatchReader.from_batches(
        output_schema(table.schema, plan.columns), batches(table, plan, batch_rows)
    )


def batches(table: Table, plan: Plan, batch_rows: int | None = None) -> Iterator[pa.RecordBatch]:
    """The plan's rows in batches, in the order of its tasks, at most its limit."""
    plan.check_decidable()

    def run(task: SplitTask) -> list[pa.RecordBatch]:
        return list(read_task(table.store, task, table.schema, table.config, batch_rows))

    left = plan.limit
    for found in each_task(table, run, plan):
        for batch in found:
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            yield batch
            if left == 0:
                return


def collect(table: Table, plan: Plan) -> pa.Table:
    """All rows of the plan."""
    schema = output_schema(table.schema, plan.columns)
    return pa.Table.from_batches(list(batches(table, plan)), schema=schema)


def count(table: Table, plan: Plan) -> int:
    """How many rows the plan matches; no split is opened where the log can tell."""
    known = plan.count()
    if known is not None:
        return known
    plan.check_decidable()

    def run(task: SplitTask) -> int:
        return count_task(table.store, task, table.schema, table.config)

    return sum(each_task(table, run, plan))


def output_schema(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """The schema of a projection."""
    if columns is None:
        return schema
    return pa.schema([schema.field(name) for name in columns])


def in_order(run: Callable[[T], R], items: Iterable[T], workers: int | None = None) -> Iterator[R]:
    """``run`` over the items in threads; results in order, errors at once."""
    return pool.in_order(run, items, workers or 2 * (os.cpu_count() or 1))


def parallelism(table: Table) -> int:
    """How many splits of a table are read side by side."""
    return pool.workers(table.store, table.config["read.remoteParallelism"])


def each_task(table: Table, run: Callable[[SplitTask], R], plan: Plan) -> Iterator[R]:
    """``run`` over the plan's tasks, in order; a few ahead, so that no core waits."""
    remote = table.store.capabilities.remote
    at_once = parallelism(table) if remote else 2 * (os.cpu_count() or 1)
    return pool.in_order(run, plan.tasks, at_once, _weight, BUDGET)


def _weight(task: SplitTask) -> int:
    return task.size if task.predicate == TRUE else task.size // FILTERED


def aggregate(
    table: Table,
    plan: Plan,
    aggregates: Mapping[str, str | tuple[str, str]] | Sequence[Any],
    group_by: Sequence[Any] = (),
) -> pa.Table:
    """Exact aggregates over the plan's rows."""
    from indextables.table.grouping import aggregate_plan

    return aggregate_plan(table, plan, aggregates, group_by)
