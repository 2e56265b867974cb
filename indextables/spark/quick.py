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
from indextables.expr.predicate import TRUE, And, Compare, InSet, Op, Predicate, TextMatch
from indextables.planner.tasks import SplitTask

if TYPE_CHECKING:
    from indextables.spark.reading import TaskPartition, TaskReader

SMALL_SPLITS = 4 << 20
SEARCHED_SPLITS = 1 << 30
LARGEST_ANSWER = 256 << 10
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
    if isinstance(predicate, And):
        return any(is_searched(child) for child in predicate.children)
    if isinstance(predicate, Compare):
        return predicate.op is Op.EQ
    if isinstance(predicate, InSet | TextMatch):
        return not predicate.negated
    return False


def _asked_rows(tasks: list[SplitTask]) -> int:
    """Most rows of tasks that take every row; a great number where the log does not know."""
    total = 0
    for task in tasks:
        known = [split.num_records for split in task.splits]
        rows = sum(known) if min(known, default=0) >= 0 else 1 << 62
        total += rows if task.limit is None else min(rows, task.limit)
    return total


def _collected(
    reader: TaskReader, partitions: list[TaskPartition], most: int
) -> list[pa.RecordBatch] | None:
    """The batches of all partitions, given up as soon as they are too many."""
    found: list[pa.RecordBatch] = []
    rows = size = 0
    for partition in partitions:
        for batch in reader.batches(_capped(partition, most, reader)):
            found.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows > most or size > LARGEST_ANSWER:
                return None
    return found


def _capped(partition: TaskPartition, most: int, reader: TaskReader) -> TaskPartition:
    """The partition, reading no more rows than show that there are too many."""
    from indextables.spark.reading import TaskPartition

    task = partition.task
    if task is None or reader.aggregation is not None:
        return partition
    limit = most + 1 if task.limit is None else min(task.limit, most + 1)
    return TaskPartition(replace(task, limit=limit), partition.known)


def as_stream(batches: list[pa.RecordBatch]) -> bytes:
    """The batches as one Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as out:
        for batch in batches:
            out.write_batch(batch)
    return bytes(sink.getvalue())
