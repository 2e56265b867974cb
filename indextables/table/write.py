"""Writing a table without Spark: one pass over the data, one commit.

Rows are written to splits first, unreferenced; the commit names them. Whatever happens before the
commit leaves the table as it was, and files nobody names for PURGE. The modes are Spark's:
``append`` adds, ``overwrite`` replaces (all rows, the partitions of ``replace_where``, or, with
dynamic partition overwrite, the partitions the data touches), ``error`` refuses an existing table,
``ignore`` leaves it alone.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as replaced
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.errors import ConfigError, SchemaMismatchError, TableExistsError
from indextables.expr.predicate import Predicate
from indextables.log.actions import Action, AddFile, Metadata
from indextables.log.log import TransactionLog
from indextables.log.snapshot import Snapshot
from indextables.log.transaction import CommitResult, ReadSet, Transaction
from indextables.log.versions import next_version
from indextables.maintenance.partitions import matching_files, partition_predicate
from indextables.mapping import DocMapping, FieldMapping, IndexingOptions
from indextables.splits.table_writer import TableWriter
from indextables.table.evolution import conform, evolved_schema
from indextables.table.options import indexing_options
from indextables.types import normalize_schema, schema_to_json

MODES = ("append", "overwrite", "error", "ignore")


def write_table(
    data: Any,
    path: str,
    *,
    partition_by: Sequence[str] = (),
    mode: str = "append",
    replace_where: str | None = None,
    text: Iterable[str] = (),
    json: Iterable[str] = (),
    ip: Iterable[str] = (),
    tokenizers: Mapping[str, str] | None = None,
    fast: Iterable[str] = (),
    rows_per_split: int | None = None,
    target_size: int | str | None = None,
    merge_schema: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> CommitResult:
    """Write Arrow data (a table, batch, reader or iterable of batches) to the table at ``path``.

    The table is created if there is none. Returns the commit; its ``snapshot`` is the new table.
    """
    config = _config(options, rows_per_split, target_size, merge_schema, replace_where)
    chosen = indexing_options(config, text=text, json=json, ip=ip, tokenizers=tokenizers, fast=fast)
    schema, batches = as_batches(data)
    job = WriteJob.prepare(
        path,
        schema,
        partition_by=(partition_by,) if isinstance(partition_by, str) else tuple(partition_by),
        mode=mode,
        indexing=chosen,
        config=config,
        storage_options=storage_options,
    )
    if job.skipped is not None:
        return job.skipped
    return job.run(batches)


def _config(
    options: Mapping[str, Any] | None,
    rows_per_split: int | None,
    target_size: int | str | None,
    merge_schema: bool | None,
    replace_where: str | None,
) -> Config:
    given = {
        "write.rowsPerSplit": rows_per_split,
        "write.targetSplitSize": target_size,
        "write.mergeSchema": merge_schema,
        "write.replaceWhere": replace_where,
    }
    return Config.of({k: v for k, v in given.items() if v is not None}, options)


def as_batches(data: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and batches of anything that speaks Arrow."""
    if isinstance(data, pa.Table):
        return data.schema, iter(data.to_batches(max_chunksize=65_536))
    if isinstance(data, pa.RecordBatch):
        return data.schema, iter([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.schema, iter(data)
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, iter(reader)
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return as_batches(_table_of(data))
    raise ConfigError(
        f"cannot write data of type {type(data).__name__}",
        hint="Give a Spark DataFrame, Arrow data (pyarrow, pandas, polars, anything that streams "
        "Arrow), or a list of dicts",
    )


def _table_of(rows: list[dict[str, Any]]) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise SchemaMismatchError(
            f"the rows make no table: {error}",
            hint="Give every column values of one type; text must be valid Unicode",
        ) from error


class WriteJob:
    """One write: everything decided before the first row, and the commit after the last.

    Spark uses it in two places: the driver prepares and commits, tasks write splits.
    """

    def __init__(
        self,
        log: TransactionLog,
        base: Snapshot,
        schema: pa.Schema,
        mapping: DocMapping,
        mode: str,
        config: Config,
    ) -> None:
        self.log = log
        self.base = base
        self.schema = schema
        self.mapping = mapping
        self.mode = mode
        self.config = config
        self.job_id = uuid.uuid4().hex
        self.skipped: CommitResult | None = None
        self.predicate: Predicate | None = None
        if mode == "overwrite" and config["write.replaceWhere"]:
            self.predicate = partition_predicate(config["write.replaceWhere"], base)

    @classmethod
    def prepare(
        cls,
        path: str,
        data_schema: pa.Schema,
        *,
        partition_by: tuple[str, ...] = (),
        mode: str = "append",
        indexing: IndexingOptions | None = None,
        config: Config | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> WriteJob:
        """Decide everything; creates the table when there is none."""
        settings = config or Config()
        mode = _mode(mode)
        where: dict[str, Any] = {"storage_options": storage_options, "config": settings}
        schema = normalize_schema(data_schema)
        if not TransactionLog.exists(path, **where):
            log = _create(path, schema, partition_by, indexing, where)
        else:
            log = TransactionLog.open(path, **where)
            if mode == "error":
                raise TableExistsError(
                    "a table is already there",
                    path=path,
                    hint="Use mode='append' or mode='overwrite'",
                )
        base = log.snapshot()
        next_version(base.version, path)
        _check_partitions(base, partition_by, schema)
        merge = bool(settings["write.mergeSchema"])
        job = cls(
            log,
            base,
            evolved_schema(base.schema, schema, merge=merge),
            DocMapping(()),
            mode,
            settings,
        )
        job.mapping = _mapping(base, job.schema, indexing)
        if mode == "ignore" and base.version > 0:
            job.skipped = CommitResult(base.version, "", 0, True, load=lambda: base)
        return job

    def writer(self, label: str = "") -> TableWriter:
        """A writer of splits for some of the rows."""
        return TableWriter(
            self.schema,
            self.base.partition_columns,
            self.mapping,
            self.config,
            self.log.store,
            job_id=self.job_id,
            task_label=label,
            column_indexes={c: d.id for c, d in self.base.indexes.definitions.items()},
        )

    def run(self, batches: Iterable[pa.RecordBatch]) -> CommitResult:
        """Write all rows in this process and commit."""
        writer = self.writer()
        try:
            for batch in batches:
                writer.write(conform(batch, self.schema))
            adds = writer.finish()
        except BaseException:
            writer.abort()
            raise
        return self.commit(adds)

    def commit(
        self, adds: Sequence[AddFile], *, extra: Sequence[Action] = (), commit_id: str | None = None
    ) -> CommitResult:
        """Make the written splits the table's, in one version."""
        self._check_inside(adds)
        transaction = Transaction(
            self.base,
            self.mode if self.mode == "overwrite" else "append",
            parameters=self._parameters(),
            actions=lambda snapshot: [*self._changes(snapshot, adds), *extra],
            reads=ReadSet(metadata=True),
            metrics={"numFiles": len(adds), "numRows": sum(a.num_records or 0 for a in adds)},
        )
        if commit_id is not None:
            transaction.commit_id = commit_id
        result = self.log.commit(transaction)
        after_write(self.log, self.config, result)
        return result

    def _parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "mode": self.mode,
            "partitionBy": list(self.base.partition_columns),
        }
        if self.predicate is not None:
            found["replaceWhere"] = self.config["write.replaceWhere"]
        return found

    def _changes(self, snapshot: Snapshot, adds: Sequence[AddFile]) -> Iterator[Action]:
        if snapshot.schema != self.schema:
            yield _with_schema(snapshot.metadata, self.schema, self.mapping)
        if self.mode == "overwrite":
            now = int(time.time() * 1000)
            for add in self._replaced(snapshot, adds):
                yield add.removal(now)
        yield from adds

    def _replaced(self, snapshot: Snapshot, adds: Sequence[AddFile]) -> Iterable[AddFile]:
        if self.predicate is not None:
            return matching_files(snapshot, self.predicate)
        if self.config["write.partitionOverwriteMode"] == "dynamic" and snapshot.partition_columns:
            touched = {tuple(sorted(a.partition_values.items())) for a in adds}
            return [
                f for f in snapshot.files() if tuple(sorted(f.partition_values.items())) in touched
            ]
        return snapshot.files()

    def _check_inside(self, adds: Sequence[AddFile]) -> None:
        """Rows written with ``replace_where`` must lie inside it, or they would survive twice."""
        if self.predicate is None:
            return
        inside = {a.path for a in matching_files(self.base, self.predicate, adds)}
        outside = [a for a in adds if a.path not in inside]
        if outside:
            values = dict(outside[0].partition_values)
            raise SchemaMismatchError(
                f"the data has rows outside replace_where, for example in partition {values}",
                hint="Filter the data, or widen the predicate; nothing was committed",
            )


def _mode(mode: str) -> str:
    known = {"errorifexists": "error", "default": "error"}.get(mode.lower(), mode.lower())
    if known not in MODES:
        raise ConfigError(f"unknown mode '{mode}'", hint=f"Use one of {', '.join(MODES)}")
    return known


def _create(
    path: str,
    schema: pa.Schema,
    partition_by: tuple[str, ...],
    indexing: IndexingOptions | None,
    where: Mapping[str, Any],
) -> TransactionLog:
    names = {n.lower(): n for n in schema.names}
    columns = tuple(names.get(p.lower(), p) for p in partition_by)
    mapping = DocMapping.for_schema(schema, columns, indexing)
    configuration = {"indextables.docMapping": mapping.to_json()}
    try:
        return TransactionLog.create(
            path, schema, partition_columns=columns, configuration=configuration, **where
        )
    except TableExistsError:
        return TransactionLog.open(path, **where)


def _check_partitions(base: Snapshot, partition_by: tuple[str, ...], schema: pa.Schema) -> None:
    have = [p.lower() for p in base.partition_columns]
    if partition_by and [p.lower() for p in partition_by] != have:
        raise SchemaMismatchError(
            f"the table is partitioned by {list(base.partition_columns)}, not {list(partition_by)}",
            hint="Leave partition_by out, or write to a new path",
        )
    missing = set(have) - {n.lower() for n in schema.names}
    if missing:
        raise SchemaMismatchError(
            f"the data lacks the partition column {', '.join(sorted(missing))}",
            hint="Every row needs its partition values; add the column, NULL is allowed",
        )


def _mapping(base: Snapshot, schema: pa.Schema, indexing: IndexingOptions | None) -> DocMapping:
    """The table's mapping, grown by new columns; options must not contradict its splits."""
    wanted = DocMapping.for_schema(schema, base.partition_columns, indexing)
    known = base.table_mapping
    if known is None:
        return wanted
    named = {n.split(".")[0].lower() for n in (indexing.named_columns() if indexing else ())}
    fields = []
    for field in wanted.fields:
        have = known.get(field.name)
        if have is not None and field.name.lower() in named and _differ(have, field):
            if base.num_files:
                raise ConfigError(
                    f"column '{field.name}' is indexed as {_kind(have)} in this table",
                    hint="Leave the option out, or rewrite the table to change it",
                )
            have = None
        fields.append(field if have is None else replaced(have, name=field.name))
    return DocMapping(tuple(fields))


def _differ(a: FieldMapping, b: FieldMapping) -> bool:
    return (a.type, a.is_tokenized) != (b.type, b.is_tokenized)


def _kind(field: FieldMapping) -> str:
    """How a column is indexed, in the words of the options."""
    if field.type != "text":
        return field.type
    return f"text ({field.tokenizer} tokens)" if field.is_tokenized else "exact text"


def _with_schema(metadata: Metadata, schema: pa.Schema, mapping: DocMapping) -> Metadata:
    configuration = {**metadata.configuration, "indextables.docMapping": mapping.to_json()}
    return replaced(metadata, schema_string=schema_to_json(schema), configuration=configuration)


def after_write(log: TransactionLog, config: Config, result: CommitResult) -> None:
    """What a commit sets off: cross-references, merge and purge, each by its setting."""
    from indextables.maintenance.after_write import run_after_write

    run_after_write(log, config, result.failures)
