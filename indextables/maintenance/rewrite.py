"""Rows of some splits, written again as one: the work behind MERGE and DELETE.

A ``RewriteTask`` is small and picklable, so it runs in this process, in others, or in Spark tasks
alike. Rows keep their order (sources in the given order), statistics and filters are computed from
the rows that remain, so nothing a split knew about its rows is lost; rows that a deletion vector
took away stay behind, so a new split never has one. Column indexes are merged from those of the
sources where all have one. A source that cannot be read is reported, not skipped over
silently: the caller decides. A machine that ran short, or a store that does not answer, ends the
work instead: the sources are not to blame.
"""

from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.columnindex import IndexRefs, merged_member
from indextables.config import Config
from indextables.errors import IndexTablesError
from indextables.expr.predicate import TRUE, Predicate
from indextables.log.actions import AddFile
from indextables.log.read.snapshot import Snapshot
from indextables.mapping import DocMapping
from indextables.splits.format.partition_values import partition_folder
from indextables.splits.read.access import matching_rows, read_split
from indextables.splits.read.reader import SplitReader
from indextables.splits.write.keeping import decided
from indextables.splits.write.split_writer import SplitWriter
from indextables.storage.base import Store
from indextables.storage.machine import refuse_to_judge
from indextables.types import schema_from_json, schema_to_json

WORK_FOLDER = "spark.indextables.merge.tempDirectoryPath"
MOST_BYTES_IN_PROCESS = 16 << 20


@dataclass(frozen=True)
class RewriteTask:
    """Sources to be written as one split, without the rows that satisfy ``drop``.

    ``drop_rows`` names rows by path instead, where they are known already.
    """

    store: Store
    config: Config
    schema_json: str
    partition_columns: tuple[str, ...]
    mapping: DocMapping
    sources: tuple[AddFile, ...]
    drop: Predicate | None = None
    column_indexes: Mapping[str, str] = field(default_factory=dict)
    drop_rows: Mapping[str, NDArray[np.uint32]] | None = None
    indexes: IndexRefs | None = None
    """Where the column indexes of the sources are."""

    @classmethod
    def of(
        cls,
        store: Store,
        config: Config,
        snapshot: Snapshot,
        sources: Sequence[AddFile],
        drop: Predicate | None = None,
    ) -> RewriteTask:
        known = snapshot.table_mapping
        definitions = snapshot.indexes.definitions
        return cls(
            store,
            config,
            schema_to_json(snapshot.stored_schema),
            snapshot.stored_partition_columns,
            known
            or DocMapping.for_schema(snapshot.stored_schema, snapshot.stored_partition_columns),
            tuple(sources),
            drop,
            {column: d.id for column, d in definitions.items()},
            indexes=IndexRefs.of(snapshot, [source.path for source in sources]),
        )

    @property
    def size(self) -> int:
        return sum(f.size for f in self.sources)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What came of a task: a split (none when no row stayed), or why it failed and where.

    A task that had rows to drop and found none wrote nothing: ``dropped`` is 0, ``add`` is none.
    Rows that were deleted before are not among the dropped.
    """

    task: RewriteTask
    add: AddFile | None = None
    dropped: int = 0
    failed_path: str | None = None
    error: str | None = None


def rewrite(task: RewriteTask) -> Rewritten:
    """Run one task."""
    schema = schema_from_json(task.schema_json)
    columns = [n for n in schema.names if n not in task.partition_columns]
    rest = schema.empty_table().select(columns).schema
    reading = ""
    writer: SplitWriter | None = None
    try:
        dropped = {}
        for source in task.sources:
            reading = source.path
            dropped[reading] = _rows_to_drop(task, source, schema)
        total = sum(len(rows) for rows in dropped.values())
        if task.drop is not None and total == 0:
            return Rewritten(task)
        for source in task.sources:
            reading = source.path
            dropped[reading] = _with_deleted(task, source, dropped[reading])
        reading = ""
        merged = _merged_indexes(task, schema, dropped)
        others = {c: i for c, i in task.column_indexes.items() if c not in merged}
        writer = SplitWriter(
            rest,
            task.mapping,
            decided(task.config, task.store),
            work_dir=task.config["merge.tempDirectoryPath"],
            work_setting=WORK_FOLDER,
            column_indexes=others,
        )
        writer.carry_column_indexes(merged)
        for source in task.sources:
            reading = source.path
            for batch in _rows(task, source, schema, columns, dropped[reading]):
                try:
                    writer.write(batch)
                except OSError:
                    reading = ""  # of the work folder, not of the source
                    raise
        reading = ""
        return _finish(task, writer, total)
    except BaseException as error:
        if writer is not None:
            writer.abort()
        return _failed(task, reading, error)


def _failed(task: RewriteTask, reading: str, error: BaseException) -> Rewritten:
    """A source that cannot be read is reported; whatever else went wrong is raised."""
    if isinstance(error, Exception):
        refuse_to_judge(error, path=reading or None)
    if reading and isinstance(error, (IndexTablesError, OSError)):
        return Rewritten(task, failed_path=reading, error=str(error))
    raise error


def _merged_indexes(
    task: RewriteTask, schema: pa.Schema, dropped: Mapping[str, NDArray[np.uint32]]
) -> dict[str, bytes]:
    """Column indexes of the new split that follow from those of its sources."""
    if task.indexes is None:
        return {}
    found = {}
    for column in task.column_indexes:
        dtype = schema.field(column).type
        data = merged_member(
            task.store, task.sources, column, dtype, task.indexes, task.config, dropped
        )
        if data is not None:
            found[column] = data
    return found


def _rows_to_drop(task: RewriteTask, source: AddFile, schema: pa.Schema) -> NDArray[np.uint32]:
    if task.drop_rows is not None:
        return task.drop_rows.get(source.path, np.empty(0, np.uint32))
    if task.drop is None:
        return np.empty(0, np.uint32)
    reader = SplitReader.open(task.store, source, config=task.config)
    return matching_rows(reader, task.drop, schema=schema, partition_values=source.partition_values)


def _with_deleted(
    task: RewriteTask, source: AddFile, dropped: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """The dropped rows, and those that a deletion vector took before."""
    gone = SplitReader.open(task.store, source, config=task.config).deleted
    return dropped if gone is None else np.union1d(dropped, gone).astype(np.uint32)


def _rows(
    task: RewriteTask,
    source: AddFile,
    schema: pa.Schema,
    columns: list[str],
    dropped: NDArray[np.uint32],
) -> Iterator[pa.RecordBatch]:
    reader = SplitReader.open(task.store, source, config=task.config)
    hint = None
    if len(dropped):
        stays = np.ones(reader.num_rows, np.bool_)
        stays[dropped] = False
        hint = np.flatnonzero(stays).astype(np.uint32)
    return read_split(
        reader,
        TRUE,
        columns,
        partition_values=source.partition_values,
        schema=schema,
        only=hint,
    )


def _finish(task: RewriteTask, writer: SplitWriter, dropped: int) -> Rewritten:
    if writer.num_rows == 0:
        writer.abort()
        return Rewritten(task, dropped=dropped)
    return replace(_upload(task, writer), dropped=dropped)


def _upload(task: RewriteTask, writer: SplitWriter) -> Rewritten:
    finished = writer.finish()
    values = dict(task.sources[0].partition_values)
    folder = partition_folder(values, task.partition_columns)
    name = f"{uuid.uuid4()}.split"
    path = f"{folder}/{name}" if folder else name
    try:
        task.store.put_file(path, finished.local_path)
    finally:
        finished.discard()
    operations = 1 + max((f.num_merge_ops or 0 for f in task.sources), default=0)
    add = finished.to_add(path, values, data_change=False, num_merge_ops=operations)
    return Rewritten(task, add)


Runner = Callable[[Sequence[RewriteTask]], Iterator[Rewritten]]


def run_locally(tasks: Sequence[RewriteTask]) -> Iterator[Rewritten]:
    """Run tasks here, or in processes when there is enough to do."""
    workers = min(os.cpu_count() or 1, len(tasks))
    enough = sum(t.size for t in tasks) > MOST_BYTES_IN_PROCESS
    if workers < 2 or not enough or tasks[0].store.uri.startswith("memory"):
        yield from map(rewrite, tasks)
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"))
    try:
        with _nameless_main(), _interrupts_held_back():
            results = pool.map(rewrite, tasks)
        yield from results
    except BaseException:
        _stop(pool)
        raise
    pool.shutdown()


@contextmanager
def _nameless_main() -> Iterator[None]:
    """Workers import this package only: the caller's script must not run again in each."""
    real = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = real


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes started here never see Ctrl-C: ending them is left to this one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the workers now: what they have not handed over is in no version."""
    workers = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()


def run_on_spark(spark: Any) -> Runner:
    """A runner that gives each task to a Spark task."""

    def run(tasks: Sequence[RewriteTask]) -> Iterator[Rewritten]:
        context = spark.sparkContext
        yield from context.parallelize(list(tasks), len(tasks)).map(rewrite).collect()

    return run
