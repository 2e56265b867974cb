"""Small answers, read by the driver while Spark plans.

Starting a Python task costs more than finding a few rows in a few splits, and the driver has the
table open already. A scan is read here when that is sure to be cheap:

- it opens at most ``read.driver.maxSplits`` splits;
- they are small together, or a value or word that a split's index finds narrows the scan;
- the answer has at most ``read.driver.maxRows`` rows and stays small enough to travel in a task.

Everything else goes to tasks, and so does whatever fails here: a task tries again, elsewhere, and
reports the failure in full. The rows are the same either way, since both run the same reader.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from indextables.config import Config
from indextables.expr.predicate import TRUE, Or, Predicate, conjuncts
from indextables.planner.tasks import SplitTask
from indextables.table.execute import in_order
from indextables.xref.evaluate import may_prune

if TYPE_CHECKING:
    from indextables.spark.tasks.reading import TaskPartition, TaskReader

SMALL_SPLITS = 4 << 20
SEARCHED_SPLITS = 1 << 30
LARGEST_ANSWER = 256 << 10
AT_ONCE = 8
"""Splits of an object store that are opened at the same time."""
LOG = logging.getLogger("indextables.spark")


def quick_answer(reader: TaskReader, config: Config) -> list[pa.RecordBatch] | None:
    """The rows of the whole scan, or ``None`` where tasks should read them."""
    partitions = reader.partitions()
    tasks = [partition.task for partition in partitions if partition.task is not None]
    if tasks and not is_cheap(tasks, config, aggregated=reader.aggregation is not None):
        return None
    try:
        return _collected(reader, partitions, config["read.driver.maxRows"])
    except Exception as error:
        LOG.info("the driver leaves this scan to tasks: %r", error)
        return None


def is_cheap(tasks: Iterable[SplitTask], config: Config, aggregated: bool = False) -> bool:
    """Is reading these tasks here sure to cost less than starting them?"""
    tasks = list(tasks)
    most_rows: int = config["read.driver.maxRows"]
    if sum(len(task.splits) for task in tasks) > config["read.driver.maxSplits"]:
        return False
    size = sum(task.size for task in tasks)
    if aggregated:
        return size <= SMALL_SPLITS
    if all(task.predicate == TRUE for task in tasks):
        return _asked_rows(tasks) <= most_rows
    if size <= SMALL_SPLITS:
        return True
    return size <= SEARCHED_SPLITS and all(is_searched(task.predicate) for task in tasks)


def is_searched(predicate: Predicate) -> bool:
    """Does a value or word that an index finds narrow this predicate?"""
    parts = (part for part in conjuncts(predicate) if not isinstance(part, Or))
    return any(map(may_prune, parts))


def _asked_rows(tasks: list[SplitTask]) -> int:
    """Most rows of tasks that take every row; a great number where the log does not know."""
    total = 0
    for task in tasks:
        known = [split.live_records for split in task.splits]
        rows = sum(known) if min(known, default=0) >= 0 else 1 << 62
        total += rows if task.limit is None else min(rows, task.limit)
    return total


def _collected(
    reader: TaskReader, partitions: list[TaskPartition], most: int
) -> list[pa.RecordBatch] | None:
    """The batches of all partitions, given up as soon as they are too many."""
    found: list[pa.RecordBatch] = []
    rows = size = 0
    parts = partitions if reader.aggregation else _single_splits(partitions, most)
    workers = AT_ONCE if "://" in reader.access.path else 1
    enough = max((p.task.limit or 0 for p in partitions if p.task), default=0)
    for batches in in_order(lambda part: list(reader.batches(part)), parts, workers):
        found += batches
        rows += sum(batch.num_rows for batch in batches)
        size += sum(batch.nbytes for batch in batches)
        if size > LARGEST_ANSWER:
            return None
        if enough and rows >= enough:
            break
        if rows > most:
            return None
    return found


def _single_splits(partitions: list[TaskPartition], most: int) -> list[TaskPartition]:
    """One partition for each split, reading no more rows than show that there are too many."""
    from indextables.spark.tasks.reading import TaskPartition

    found = []
    for partition in partitions:
        if partition.task is None:
            found.append(partition)
            continue
        limit = partition.task.limit
        capped = replace(partition.task, limit=most + 1 if limit is None else min(limit, most + 1))
        found += [TaskPartition(replace(capped, splits=(split,))) for split in capped.splits]
    return found


def as_stream(batches: list[pa.RecordBatch]) -> bytes:
    """The batches as one Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as out:
        for batch in batches:
            out.write_batch(batch)
    return bytes(sink.getvalue())
