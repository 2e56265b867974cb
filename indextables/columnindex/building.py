"""Building index files: one task for each column and split, run here or in Spark tasks.

A task holds all it needs and is picklable. What it writes is a function of the split, to a path
that is one too, so a task that runs twice, or at the same time as another, does no harm. Deleted
rows are in the index like all others: it describes the split, and callers leave those rows out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.expr.predicate import TRUE
from indextables.log.actions import AddFile, IndexFile
from indextables.splits.lookup.colindex.encode import encode_index
from indextables.splits.lookup.colindex.layout import sidecar_path
from indextables.splits.lookup.colindex.postings import build_postings
from indextables.splits.read.access import read_split
from indextables.splits.read.reader import SplitReader
from indextables.splits.read.source import SplitRef
from indextables.storage.base import Store


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One row of ``INDEX SPLITS``: what was done for one column of one split."""

    table_path: str
    column: str
    action: str
    split_path: str = ""
    index_path: str = ""
    cardinality: int = 0
    rows: int = 0
    size_bytes: int = 0
    build_duration_ms: int = 0


@dataclass(frozen=True)
class BuildTask:
    """The index of one column of one split, to be written beside the table's splits."""

    store: Store
    config: Config
    schema: pa.Schema
    table_path: str
    index_id: str
    column: str
    add: AddFile
    action: str


Built = tuple[IndexRow, IndexFile]
BuildRunner = Callable[[Sequence[BuildTask]], Iterator[Built]]


def build_one(task: BuildTask) -> Built:
    """Run one task."""
    start = time.monotonic()
    column, add = task.column, task.add
    reader = SplitReader.open(task.store, SplitRef.of(add).physical(), config=task.config)
    batches = read_split(
        reader, TRUE, [column], partition_values=add.partition_values, schema=task.schema
    )
    arrays = [batch.column(0) for batch in batches]
    postings = build_postings(pa.chunked_array(arrays, task.schema.field(column).type), column)
    data = encode_index(postings, task.config, add.path)
    path = sidecar_path(task.index_id, add.path)
    task.store.put(path, data)
    rows, cardinality = postings.num_rows, postings.distinct + (len(postings.nulls) > 0)
    took = int(1000 * (time.monotonic() - start))
    row = IndexRow(
        task.table_path, column, task.action, add.path, path, cardinality, rows, len(data), took
    )
    return row, IndexFile(add.path, path, len(data), cardinality, rows, len(postings.nulls))


def build_locally(tasks: Sequence[BuildTask]) -> Iterator[Built]:
    """Run tasks in a few threads."""
    workers = min(len(tasks), os.cpu_count() or 1)
    with ThreadPoolExecutor(workers, thread_name_prefix="indextables-index") as pool:
        yield from pool.map(build_one, tasks)


def build_on_spark(spark: Any) -> BuildRunner | None:
    """A runner that gives each task to a Spark task; ``None``: this session cannot run them.

    Tasks go in waves of a few for each core, so that progress can be seen.
    """
    if spark is None or not hasattr(spark, "_jsparkSession"):
        return None

    def run(tasks: Sequence[BuildTask]) -> Iterator[Built]:
        context = spark.sparkContext
        wave = 4 * context.defaultParallelism
        for start in range(0, len(tasks), wave):
            some = list(tasks[start : start + wave])
            yield from context.parallelize(some, len(some)).map(build_one).collect()

    return run
