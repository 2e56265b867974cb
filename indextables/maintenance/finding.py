"""Which rows a condition means: found by the planner and the splits' indexes, split by split.

This is the reading half of DELETE, UPDATE and upserts. Rows come with their numbers, and with the
columns that are asked for. Splits are read side by side; the order is the plan's.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indextables.config import Config
from indextables.errors import IndexTablesError, MaintenanceError
from indextables.log.actions import AddFile
from indextables.log.read.snapshot import Snapshot
from indextables.log.vectors.codec import Rows32
from indextables.planner import Plan
from indextables.planner.tasks import SplitTask
from indextables.splits.lookup.colindex.asking import ColumnIndexes
from indextables.splits.read.access import SplitScan
from indextables.splits.read.reader import SplitReader
from indextables.splits.read.source import SplitRef
from indextables.storage import pool
from indextables.storage.base import Store
from indextables.storage.machine import refuse_to_judge


@dataclass(frozen=True, slots=True)
class Found:
    """The matching rows of one split, and the columns that were asked for."""

    add: AddFile
    num_rows: int
    rows: Rows32
    batches: tuple[pa.RecordBatch, ...] = ()


def snapshot_of(plan: Plan) -> Snapshot:
    """The snapshot that a plan over a log was made for."""
    assert isinstance(plan.snapshot, Snapshot)
    return plan.snapshot


def find(
    store: Store,
    plan: Plan,
    config: Config,
    columns: Sequence[str] = (),
    *,
    skip: Collection[str] = (),
) -> Iterator[Found]:
    """The splits of a plan that hold matching rows; ``skip`` are not looked into."""
    snapshot = snapshot_of(plan)
    everything = ((task, split) for task in plan.tasks for split in task.splits)
    wanted = [(task, split) for task, split in everything if split.path not in skip]
    places = snapshot.indices_of([split.path for _, split in wanted]).tolist()
    adds = {split.path: snapshot.file(i) for (_, split), i in zip(wanted, places, strict=True)}

    def look(item: tuple[SplitTask, SplitRef]) -> Found:
        task, split = item
        return _look(store, task, split, adds[split.path], snapshot.schema, config, columns)

    count = pool.workers(store, config["read.remoteParallelism"])
    at_once = count if store.capabilities.remote else 2 * (os.cpu_count() or 1)
    for found in pool.in_order(look, wanted, at_once):
        if len(found.rows):
            yield found


def _look(
    store: Store,
    task: SplitTask,
    split: SplitRef,
    add: AddFile,
    schema: pa.Schema,
    config: Config,
    columns: Sequence[str],
) -> Found:
    try:
        reader = SplitReader.open(store, split, config=config)
        indexes = ColumnIndexes(store, reader, task.indexes, config)
        scan = SplitScan(
            reader,
            task.predicate,
            schema=schema,
            partition_values=split.partition_values,
            indexes=indexes,
        )
        pieces = list(scan.pieces(columns, config["read.batchRows"]))
    except IndexTablesError as error:
        refuse_to_judge(error, path=split.path)
        raise MaintenanceError(
            f"a split could not be read: {error}",
            path=split.path,
            hint="Run DOCTOR; nothing was changed",
        ) from error
    rows = np.concatenate([np.empty(0, np.uint32), *(rows for rows, _ in pieces)])
    return Found(add, reader.num_rows, rows, tuple(batch for _, batch in pieces))
