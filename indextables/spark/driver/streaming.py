"""Streams: versions of the log are the offsets, batch ids in the log make the sink exactly-once.

**Source.** An offset is ``{"version": n, "file": k}``: all files of versions below ``n`` and the
first ``k`` files of version ``n`` have been read. A stream starts with the rows of the table at its
start (``startingVersion`` skips them) and then follows the versions; ``maxFilesPerTrigger`` bounds
a batch. A Spark that does not say where a batch starts (before 4.2) is answered from where the last
one ended; until there is one, all there is makes a batch. Files that a commit only rearranged
(``dataChange`` false) are not new rows. A commit that removes rows (whole splits, or by deletion
vectors) cannot be reported to a stream and is an error, unless ``ignoreDeletes`` allows it.

**Sink.** A batch is committed together with the pair (query, batch id). A replayed batch finds its
id in the log and is dropped. The query is the id that Spark keeps in the checkpoint's metadata and
gives to every task of the query: it moves with a checkpoint that is moved or renamed, and a new
checkpoint has a new one, also where an old one stood. Never is it derived from a path. A task that
does not get one refuses to write.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from indextables.errors import ConfigError, PlanningError, TableNotFoundError
from indextables.expr.predicate import TRUE
from indextables.log.actions import AddFile, RemoveFile, Txn
from indextables.log.log import TransactionLog
from indextables.log.read.moments import to_millis
from indextables.log.read.snapshot import Snapshot
from indextables.planner.tasks import SplitTask, deal_out, splits_per_task
from indextables.spark.compat import (
    ReadAllAvailable,
    ReadMaxFiles,
    StreamArrowWriter,
    SupportsTriggerAvailableNow,
)
from indextables.spark.driver.request import Access
from indextables.spark.driver.tables import SHARED
from indextables.spark.driver.writing import Written, adds_of, decided, sweep, task_label
from indextables.spark.tasks.reading import TaskPartition, TaskReader
from indextables.spark.tasks.stamped import Stamped
from indextables.spark.tasks.worker import settled_worker
from indextables.splits.read.source import SplitRef
from indextables.table.order import WriteOrder

FIRST = "first"
QUERY_ID = "sql.streaming.queryId"
"""The property in which Spark gives the tasks of a query its id in the checkpoint."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Follows a table, one range of files per batch."""

    def __init__(self, access: Access, schema: StructType, options: Mapping[str, str]) -> None:
        self.access = access
        self.output = schema
        given = {k.lower(): v for k, v in options.items()}
        self.most_files = int(given.get("maxfilespertrigger", 0)) or None
        self.starting_version = given.get("startingversion")
        self.starting_timestamp = given.get("startingtimestamp")
        if self.starting_version is not None and self.starting_timestamp is not None:
            raise ConfigError("give startingVersion or startingTimestamp, not both")
        self.ignore_deletes = given.get("ignoredeletes", "false").lower() == "true"
        self.last_version: int | None = None
        self.reached: dict[str, Any] | None = None

    # -- offsets --------------------------------------------------------------------------------

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.last_version = SHARED.log(self.access).snapshot().version

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return ReadMaxFiles(self.most_files) if self.most_files else ReadAllAvailable()

    def _newest(self) -> int:
        newest = SHARED.log(self.access).snapshot().version
        return newest if self.last_version is None else min(newest, self.last_version)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        log = SHARED.log(self.access)
        if self.starting_timestamp is not None:
            return {"version": self._since(log), "file": 0, FIRST: False}
        if self.starting_version is None:
            return {"version": log.snapshot().version, "file": 0, FIRST: True}
        text = str(self.starting_version).lower()
        version = log.snapshot().version + 1 if text == "latest" else int(text)
        return {"version": version, "file": 0, FIRST: False}

    def _since(self, log: TransactionLog) -> int:
        """The first version of that moment or later; all versions where it lies before them."""
        moment = to_millis(self.starting_timestamp)
        later = [entry.version for entry in log.history() if entry.timestamp >= moment]
        return min(later, default=log.snapshot().version + 1)

    def latestOffset(  # noqa: N802
        self, start: Any = None, limit: Any = None
    ) -> dict[str, Any]:
        newest = self._newest()
        at = start or self.reached
        if at is None:
            return {"version": newest + 1, "file": 0, FIRST: False}
        at = dict(at)
        asked = limit or self.getDefaultReadLimit()
        left = asked.max_files if isinstance(asked, ReadMaxFiles) else None
        while at["version"] <= newest:
            count = len(self._files(at["version"], at[FIRST]))
            step = count - at["file"] if left is None else min(left, count - at["file"])
            if at["file"] + step < count:
                return {**at, "file": at["file"] + step}
            left = None if left is None else left - step
            at = {"version": at["version"] + 1, "file": 0, FIRST: False}
            if left == 0:
                break
        return at

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        files: list[AddFile] = []
        at = dict(start)
        self.reached = dict(end)
        while (at["version"], at["file"]) < (end["version"], end["file"]):
            found = self._files(at["version"], at[FIRST])
            last = end["file"] if at["version"] == end["version"] else len(found)
            files.extend(found[at["file"] : last])
            at = {"version": at["version"] + 1, "file": 0, FIRST: False}
        return self._tasks(files)

    def _files(self, version: int, whole: bool) -> list[AddFile]:
        """The files of one version: all that are live, or those it added."""
        log = SHARED.log(self.access)
        if whole:
            return list(log.snapshot(version=version).files())
        changes = log.changes(version - 1, version)
        if changes is None:
            raise TableNotFoundError(
                f"version {version} is no longer in the log",
                path=self.access.path,
                hint="The stream is too far behind; start it again with a new checkpoint",
            )
        actions = [a for change in changes for a in change.actions]
        removed = [a for a in actions if isinstance(a, RemoveFile | AddFile) and _takes_rows(a)]
        if removed and not self.ignore_deletes:
            raise PlanningError(
                f"version {version} removed rows, which a stream cannot show",
                hint="Set the option ignoreDeletes to follow the added rows only",
            )
        return [a for a in actions if isinstance(a, AddFile) and a.data_change and not a.narrows]

    def _tasks(self, files: list[AddFile]) -> list[InputPartition]:
        if not files:
            return [TaskPartition(None)]
        config = self.access.config
        per_task = splits_per_task(config, len(files), 2)
        columns = tuple(self.output.fieldNames())
        return [
            TaskPartition(SplitTask(tuple(SplitRef.of(files[i]) for i in group), TRUE, columns))
            for group in deal_out([f.size for f in files], per_task)
        ]

    # -- rows -----------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = self._schema()
        yield from TaskReader(self.access, schema, self.output, ()).read(partition)

    def _schema(self) -> pa.Schema:
        snapshot: Snapshot = SHARED.table(self.access).snapshot
        return snapshot.schema


def _takes_rows(action: AddFile | RemoveFile) -> bool:
    return action.data_change and (isinstance(action, RemoveFile) or action.narrows)


class StreamWriter(Stamped, StreamArrowWriter):  # type: ignore[misc]
    """Writes micro-batches, each at most once."""

    def __init__(self, order: WriteOrder) -> None:
        self.order = order

    @classmethod
    def start(cls, access: Access, schema: StructType, overwrite: bool) -> StreamWriter:
        return cls(decided(access, schema, overwrite))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        query = running_query(self.order.path)
        with settled_worker():
            return Written(self.order.write(iterator, task_label()), query)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        query = query_of(messages, self.order.path)
        commit_id = hashlib.sha256(f"{query} {batchId}".encode()).hexdigest()[:32]
        done = Txn(query, int(batchId), int(time.time() * 1000))
        replace(self.order, job_id=commit_id).commit(adds_of(messages), extra=(done,))

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        sweep(self.order, messages)


def running_query(path: str) -> str:
    """The id of the streaming query that the running task belongs to."""
    from pyspark import TaskContext

    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(QUERY_ID)
    if not found:
        raise _nameless(path)
    return str(found)


def query_of(messages: list[Any], path: str) -> str:
    """The query that all tasks of a batch name."""
    found = {message.query for message in messages if message is not None}
    if len(found) != 1 or None in found:
        raise _nameless(path)
    return str(found.pop())


def _nameless(path: str) -> PlanningError:
    return PlanningError(
        "Spark did not say which streaming query this batch belongs to, so a replay could not be "
        "distinguished from new rows",
        path=path,
        hint="Nothing was written; write the batches with foreachBatch and indextables.write",
    )
