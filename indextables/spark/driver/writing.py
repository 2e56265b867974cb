"""Writing from Spark: tasks write splits, the driver commits the winners.

What is written how is a ``WriteOrder``, the same that writes without Spark; here Spark's options,
save modes and overwrite conditions become one. Every attempt of a task gives its files names of
their own, so two attempts never meet. The commit names only the files that the winning attempts
reported. A failed attempt deletes what it wrote, a failed job what its finished tasks wrote; what a
killed process left is PURGE's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from indextables.config import Config
from indextables.expr.connector import from_connector
from indextables.log.actions import AddFile
from indextables.log.read.pinned import refuse_write
from indextables.spark.driver.request import Access
from indextables.spark.tasks.searching import FIELD_NOTE
from indextables.spark.tasks.stamped import Stamped
from indextables.spark.tasks.worker import settled_worker
from indextables.table.definition import Definition
from indextables.table.order import WriteOrder
from indextables.table.write_options import indexing_options
from indextables.types import schema_from_json


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]
    """The splits of one finished task; of a stream also the query that the task ran for."""

    adds: tuple[AddFile, ...]
    query: str | None = None


def decided(access: Access, schema: StructType, overwrite: bool) -> WriteOrder:
    """The order of a write as Spark describes it."""
    if "__at" in access.notes:
        refuse_write(access.notes["__at"])
    notes = access.notes
    config = access.config
    definition = defined(notes)
    if definition is not None:
        config = Config.of(config, definition.settings)
    replaces, dynamic = _overwritten(notes.get("__overwrite", ""))
    if dynamic:
        config = config.updated({"write.partitionOverwriteMode": "dynamic"})
    return WriteOrder(
        access.path,
        schema_from_json(as_nullable(schema).json()),
        partition_columns(access),
        _mode(access, overwrite),
        indexing_options(config),
        config,
        dict(access.storage_options),
        replaces=config["write.replaceWhere"] if replaces is None else replaces,
        definition=definition,
        time_zone=notes.get("__timezone", "UTC"),
        job_id=notes.get("__job") or uuid.uuid4().hex,
    ).decide()


def defined(notes: Mapping[str, str]) -> Definition | None:
    """What the statement says the table shall be, where it makes or replaces one."""
    text = notes.get("__define")
    return None if text is None else Definition.of(json.loads(text))


def _mode(access: Access, overwrite: bool) -> str:
    """The save mode: as Spark calls it, or as the user did before Spark was asked to create."""
    asked = access.notes.get("__savemode")
    if asked is not None:
        return asked
    if overwrite or "__overwrite" in access.notes:
        return "overwrite"
    return "error" if "__create" in access.notes else "append"


def _overwritten(note: str) -> tuple[Any, bool]:
    """The condition of an overwrite as an expression tree, and whether partitions decide it."""
    if note == "dynamic":
        return None, True
    return (from_connector(json.loads(note)), False) if note.startswith("[") else (None, False)


def partition_columns(access: Access) -> tuple[str, ...]:
    """Partition columns by ``partitionBy`` or by the option of layer 1."""
    text = access.notes.get("__partitionby", "")
    if text.startswith("["):
        return tuple(json.loads(text))
    return tuple(part.strip() for part in text.split(",") if part.strip())


def as_nullable(schema: Any) -> Any:
    """The type with every value nullable: what a query happens to prove is no rule for a table.

    How a column was indexed where it was read is none either.
    """
    found = json.loads(schema.json())

    def relax(node: Any) -> None:
        if not isinstance(node, dict):
            return
        for key in ("nullable", "containsNull", "valueContainsNull"):
            if key in node:
                node[key] = True
        if isinstance(node.get("metadata"), dict):
            node["metadata"].pop(FIELD_NOTE, None)
        for field in node.get("fields", ()):
            relax(field)
        for key in ("type", "elementType", "keyType", "valueType"):
            relax(node.get(key))

    relax(found)
    return StructType.fromJson(found)


def task_label() -> str:
    """Partition, attempt and task of the running Spark task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return "0-0"
    return f"{context.partitionId()}-{context.attemptNumber()}-{context.taskAttemptId()}"


def adds_of(messages: list[Any]) -> list[AddFile]:
    """The splits of all tasks that finished."""
    return [add for message in messages if message is not None for add in message.adds]


def sweep(order: WriteOrder, messages: list[Any]) -> None:
    """Delete the splits of tasks that finished before another one failed.

    When every task finished, it was the commit that failed, perhaps after it landed: then the
    splits stay, and PURGE decides.
    """
    if any(message is None for message in messages):
        order.discard(adds_of(messages))


class BatchWriter(Stamped, DataSourceArrowWriter):  # type: ignore[misc]
    """One batch write."""

    def __init__(self, order: WriteOrder) -> None:
        self.order = order

    @classmethod
    def prepare(cls, access: Access, schema: StructType, overwrite: bool) -> BatchWriter:
        return cls(decided(access, schema, overwrite))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        with settled_worker():
            return Written(self.order.write(iterator, task_label()))

    def commit(self, messages: list[Any]) -> None:
        self.order.commit(adds_of(messages))

    def abort(self, messages: list[Any]) -> None:
        sweep(self.order, messages)
