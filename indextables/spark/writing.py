"""Writing from Spark: tasks write splits, the driver commits the winners.

Everything about a write is decided before the first task: schema, mapping, partition columns, job
id. Every attempt of a task gives its files names of their own, so two attempts never meet. The
commit names only the files that the winning attempts reported. A failed attempt deletes what it
wrote, a failed job what its finished tasks wrote; what a killed process left is PURGE's. A table
that is not there yet is created by the commit, so a failed job leaves nothing that looks like a
table.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from indextables.config import PREFIX, Config
from indextables.errors import IndexTablesError, TableExistsError
from indextables.log.actions import Action, AddFile
from indextables.log.log import TransactionLog
from indextables.mapping import DocMapping
from indextables.spark.options import Access
from indextables.spark.tables import SHARED, worker_store
from indextables.spark.worker import settled_worker
from indextables.storage.deleting import UNCOMMITTED, Kind, delete
from indextables.types import normalize_schema, schema_from_json


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]
    """The splits of one finished task."""

    adds: tuple[AddFile, ...]


@dataclass
class WriteOrder:
    """All that tasks and the commit must agree on; picklable."""

    access: Access
    data_schema: pa.Schema
    schema: pa.Schema
    partition_columns: tuple[str, ...]
    mapping: DocMapping
    mode: str
    job_id: str

    @classmethod
    def decide(cls, access: Access, schema: StructType, overwrite: bool) -> WriteOrder:
        """Check the data against the table, or against what the new table will be."""
        data = normalize_schema(schema_from_json(as_nullable(schema).json()))
        access = _with_overwrite(access)
        mode = "overwrite" if overwrite or "__overwrite" in access.notes else "append"
        order = cls(access, data, data, (), DocMapping(()), mode, uuid.uuid4().hex)
        if order._exists():
            order._refuse_existing()
            order.access = with_properties(access)
            job = order.job()
            order.schema, order.mapping = job.schema, job.mapping
            order.partition_columns = job.base.partition_columns
        else:
            names = {n.lower(): n for n in data.names}
            order.partition_columns = tuple(names.get(p.lower(), p) for p in order.asked_columns)
            order.mapping = DocMapping.for_schema(data, order.partition_columns, order._indexing())
        return order

    def _refuse_existing(self) -> None:
        if "__create" in self.access.notes:
            raise TableExistsError("a table is already there", path=self.access.path)

    def _exists(self) -> bool:
        a = self.access
        return TransactionLog.exists(a.path, storage_options=a.storage_options, config=a.config)

    @property
    def asked_columns(self) -> tuple[str, ...]:
        """Partition columns by ``partitionBy`` or by the option of layer 1."""
        text = self.access.notes.get("__partitionby", "")
        return tuple(json.loads(text)) if text.startswith("[") else _listed(text)

    def _indexing(self) -> Any:
        from indextables.table.options import indexing_options

        return indexing_options(self.access.config)

    def job(self) -> Any:
        """The write job of the table, which this creates when there is none."""
        from indextables.table.write import WriteJob

        return WriteJob.prepare(
            self.access.path,
            self.data_schema,
            partition_by=self.asked_columns,
            mode=self.mode,
            indexing=self._indexing(),
            config=self.access.config,
            storage_options=self.access.storage_options,
        )

    def write(self, batches: Iterable[pa.RecordBatch]) -> tuple[AddFile, ...]:
        """Write one task's rows to splits."""
        from indextables.splits.table_writer import TableWriter
        from indextables.table.evolution import conform

        writer = TableWriter(
            self.schema,
            self.partition_columns,
            self.mapping,
            self.access.config,
            worker_store(self.access),
            job_id=self.job_id,
            task_label=task_label(),
        )
        try:
            for batch in batches:
                if batch.num_rows:
                    writer.write(conform(batch, self.schema))
            return tuple(writer.finish())
        except BaseException:
            writer.abort()
            raise

    def commit(self, adds: Iterable[AddFile], extra: tuple[Action, ...] = ()) -> Any:
        """Make the splits the table's in one version."""
        if "__create" in self.access.notes and self._exists():
            raise TableExistsError("a table is already there", path=self.access.path)
        return self.job().commit(list(adds), extra=extra, commit_id=self.job_id)

    def sweep(self, messages: list[Any]) -> None:
        """Delete the splits of tasks that finished before another one failed.

        When every task finished, it was the commit that failed, perhaps after it landed: then the
        splits stay, and PURGE decides.
        """
        if all(m is not None for m in messages):
            return
        found = [add.path for m in messages if m is not None for add in m.adds]
        with suppress(IndexTablesError):
            delete(worker_store(self.access), Kind.SPLIT, found, UNCOMMITTED)


def with_properties(access: Access) -> Access:
    """The access with the settings among the table's properties below those given."""
    configuration = SHARED.table(access).snapshot.metadata.configuration
    ours = {k: v for k, v in configuration.items() if k.lower().startswith(PREFIX)}
    return replace(access, settings=Config.of(access.settings, ours).raw()) if ours else access


def as_nullable(schema: Any) -> Any:
    """The type with every value nullable: what a query happens to prove is no rule for a table."""
    found = json.loads(schema.json())

    def relax(node: Any) -> None:
        if not isinstance(node, dict):
            return
        for key in ("nullable", "containsNull", "valueContainsNull"):
            if key in node:
                node[key] = True
        for field in node.get("fields", ()):
            relax(field)
        for key in ("type", "elementType", "keyType", "valueType"):
            relax(node.get(key))

    relax(found)
    return StructType.fromJson(found)


def _with_overwrite(access: Access) -> Access:
    """What an overwrite replaces, from Spark's plan into the settings."""
    asked = access.notes.get("__overwrite", "")
    settings = dict(access.settings)
    if asked == "dynamic":
        settings["write.partitionoverwritemode"] = "dynamic"
    elif asked.startswith("where:"):
        settings["write.replacewhere"] = asked[len("where:") :]
    return Access(access.path, settings, access.storage_options, access.notes)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def task_label() -> str:
    """Partition, attempt and task of the running Spark task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return "0-0"
    return f"{context.partitionId()}-{context.attemptNumber()}-{context.taskAttemptId()}"


class BatchWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """One batch write."""

    def __init__(self, order: WriteOrder) -> None:
        self.order = order

    @classmethod
    def prepare(cls, access: Access, schema: StructType, overwrite: bool) -> BatchWriter:
        return cls(WriteOrder.decide(access, schema, overwrite))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        with settled_worker():
            return Written(self.order.write(iterator))

    def commit(self, messages: list[Any]) -> None:
        self.order.commit(a for m in messages if m is not None for a in m.adds)

    def abort(self, messages: list[Any]) -> None:
        self.order.sweep(messages)
