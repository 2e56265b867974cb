"""One write, decided before its first row: the same order for Python and for Spark.

``WriteOrder.decide`` checks the data against the table, or against what the new table will be, and
fixes schema, mapping, partition columns, column indexes and what an overwrite replaces. The order
is picklable: Python writes and commits in one process, Spark sends it to tasks that write and to
the process that commits. Nothing about a write is decided anywhere else.

Rows are written to splits first, unreferenced; the commit names them. Whatever happens before the
commit leaves the table as it was. A table that is not there yet is created by the commit, after the
last row is written, so a failed write leaves nothing that looks like a table. The format wants
version 0 to hold protocol and metadata alone, so the rows follow at once in version 1. Of two
writers that create one table the second adds its rows to the table of the first; only mode
``error`` refuses.

The commit looks at the newest snapshot again, on every attempt. What others did meanwhile is no
conflict as long as the written splits still fit; a column that the table gained is NULL in them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from indextables.clustering import cluster_columns, with_columns
from indextables.config import PREFIX, Config
from indextables.errors import (
    CommitConflictError,
    ConfigError,
    IndexTablesError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
)
from indextables.expr.predicate import Predicate
from indextables.log.actions import Action, AddFile, Metadata
from indextables.log.actions.protocol import protocol_of
from indextables.log.commit.gate import refuse_companion
from indextables.log.commit.transaction import CommitResult, Transaction
from indextables.log.log import TransactionLog, new_metadata
from indextables.log.read.pinned import refuse_write
from indextables.log.read.snapshot import TABLE_MAPPING, Snapshot, VersionActions
from indextables.log.read.versions import next_version
from indextables.maintenance.scope import matching_files, partition_predicate
from indextables.mapping import DocMapping, FieldMapping, IndexingOptions
from indextables.naming import (
    grown,
    plain_field,
    stored_batch,
    stored_columns,
    stored_field,
    stored_mapping,
    stored_schema,
    user_mapping,
)
from indextables.splits.write.table_writer import TableWriter
from indextables.storage.base import Store, open_store, resolve_options
from indextables.storage.deleting import UNCOMMITTED, Kind, delete
from indextables.table.definition import Definition
from indextables.table.evolution import conform, evolved_schema
from indextables.types import normalize_schema, schema_to_json

MODES = ("append", "overwrite", "error", "ignore")
NOWHERE = -1
"""The version of a table that is not there."""


@dataclass
class WriteOrder:
    """Everything a write needs to know; small and picklable."""

    path: str
    data_schema: pa.Schema
    partition_by: tuple[str, ...] = ()
    mode: str = "append"
    indexing: IndexingOptions | None = None
    config: Config = field(default_factory=Config)
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    replaces: Any = None
    """A condition on partition columns, in any form ``bind`` takes: what an overwrite replaces."""
    definition: Definition | None = None
    """What the table shall be, where a statement makes or replaces it."""
    time_zone: str = "UTC"
    job_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    first: Metadata | None = None
    """The metadata of a table that the commit is to create."""
    table_id: str = ""
    seen: int = NOWHERE
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    mapping: DocMapping = field(default_factory=lambda: DocMapping(()))
    table_columns: tuple[str, ...] = ()
    partition_columns: tuple[str, ...] = ()
    column_indexes: Mapping[str, str] = field(default_factory=dict)
    cluster_by: tuple[str, ...] = ()
    predicate: Predicate | None = None

    # -- deciding -------------------------------------------------------------------------------

    def decide(self) -> WriteOrder:
        """Check the data and fix all that tasks and the commit must agree on."""
        with self._named():
            return self._decide()

    def _decide(self) -> WriteOrder:
        self.mode = as_mode(self.mode)
        self.data_schema = pa.schema(list(map(plain_field, normalize_schema(self.data_schema))))
        try:
            log = TransactionLog.open(self.path, **self._where)
        except TableNotFoundError:
            refuse_write(self.path)
            self.first = self._new_table()
            self._fix(_snapshot_of(self.first, self.config))
            return self
        if self.mode == "error":
            raise self._taken()
        base = log.snapshot()
        if self.mode != "ignore":
            next_version(log.writable(base).version, self.path)
        return self.decide_on(base)

    def _redefinition(self) -> Definition | None:
        """What the table is replaced by; ``None`` where it keeps its definition."""
        if self.mode != "overwrite":
            return None
        if self.definition is not None and self.definition.replaces:
            return self.definition
        if not self.config["write.overwriteSchema"]:
            return None
        if self.replaces is not None or self.config["write.partitionOverwriteMode"] == "dynamic":
            raise ConfigError(
                "overwriteSchema replaces the whole table",
                hint="Leave out replaceWhere and partitionOverwriteMode, or overwriteSchema",
            )
        return Definition(self.data_schema, self.partition_by or None, replaces=True)

    def decide_on(self, base: Snapshot) -> WriteOrder:
        """The same for a table that is there, as it is in this snapshot."""
        refuse_companion(base, "WRITE")
        self.config = Config.of(self.config, _settings_of(base))
        self.seen = base.version
        self.table_id = base.metadata.id
        new = self._redefinition()
        if new is not None:
            base = _snapshot_of(new.metadata(base, self.indexing), self.config)
        self._fix(base)
        return self

    def _fix(self, base: Snapshot) -> None:
        _check_partitions(base, self.partition_by, self.data_schema)
        self.table_columns = tuple(base.schema.names)
        self.schema = self._evolved(base)
        self.mapping = _mapping(base, self.schema, self.indexing)
        self.partition_columns = base.partition_columns
        known = base.metadata.configuration
        self.cluster_by = cluster_columns(self.schema, self.config, known)
        self.column_indexes = {c: d.id for c, d in base.indexes.definitions.items()}
        if self.mode == "overwrite" and self.replaces is not None:
            self.predicate = partition_predicate(self.replaces, base, self.time_zone)

    def _evolved(self, base: Snapshot) -> pa.Schema:
        """The table's schema after this write; new columns get stored names of their own."""
        schema = evolved_schema(base.schema, self.data_schema, merge=self._merges)
        return grown(base.schema, schema, base.metadata.configuration)

    def _new_table(self) -> Metadata:
        if self.definition is not None:
            return self.definition.metadata(None, self.indexing)
        names = {n.lower(): n for n in self.data_schema.names}
        columns = tuple(names.get(p.lower(), p) for p in self.partition_by)
        mapping = DocMapping.for_schema(self.data_schema, columns, self.indexing)
        clustered = cluster_columns(self.data_schema, self.config, {})
        properties = with_columns({TABLE_MAPPING: mapping.to_json()}, clustered)
        return new_metadata(self.data_schema, columns, properties)

    def skipped(self) -> CommitResult | None:
        """The result of mode ``ignore`` where a table is there already."""
        if self.mode != "ignore" or self.first is not None:
            return None
        return nothing_done(self._log().snapshot(version=self.seen))

    @property
    def _merges(self) -> bool:
        return bool(self.config["write.mergeSchema"])

    @property
    def _where(self) -> dict[str, Any]:
        return {"storage_options": self.storage_options, "config": self.config}

    def _taken(self) -> TableExistsError:
        hint = "Use mode='append' or mode='overwrite'"
        return TableExistsError("a table is already there", path=self.path, hint=hint)

    # -- rows -----------------------------------------------------------------------------------

    def store(self) -> Store:
        """The store of the table, opened here."""
        given = {PREFIX + key: value for key, value in self.config.raw().items()}
        return open_store(self.path, resolve_options(self.path, self.storage_options, given))

    def writer(self, store: Store, label: str = "") -> TableWriter:
        """A writer of splits for some of the rows."""
        return TableWriter(
            stored_schema(self.schema),
            stored_columns(self.schema, self.partition_columns),
            stored_mapping(self.mapping, self.schema),
            self.config,
            store,
            job_id=self.job_id,
            task_label=label,
            column_indexes=self.column_indexes,
            cluster_by=stored_columns(self.schema, self.cluster_by),
        )

    def write(
        self, batches: Iterable[pa.RecordBatch], label: str = "", store: Store | None = None
    ) -> tuple[AddFile, ...]:
        """Write rows to splits; a failure deletes those it has written."""
        writer = self.writer(store or self.store(), label)
        try:
            with self._named():
                for batch in batches:
                    if batch.num_rows:
                        writer.write(stored_batch(conform(batch, self.schema), self.schema))
                return tuple(writer.finish())
        except BaseException:
            writer.abort()
            raise

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Let every error say which table it is about."""
        try:
            yield
        except IndexTablesError as error:
            error.path = error.path or self.path
            raise

    def discard(self, adds: Iterable[AddFile], store: Store | None = None) -> None:
        """Delete splits that no commit will name, as far as the store lets us."""
        with suppress(IndexTablesError):
            delete(store or self.store(), Kind.SPLIT, [add.path for add in adds], UNCOMMITTED)

    # -- the commit -----------------------------------------------------------------------------

    def commit(
        self,
        adds: Sequence[AddFile],
        *,
        extra: Sequence[Action] = (),
        log: TransactionLog | None = None,
    ) -> CommitResult:
        """Make the written splits the table's, in one version."""
        self._check_inside(adds, log.store if log else None)
        log = log or self._log()
        if self.mode == "ignore" and (self.first is None or log.table_id != self.first.id):
            self.discard(adds, log.store)
            return nothing_done(log.snapshot())
        result = log.commit(self._transaction(adds, extra))
        result.files = tuple(add.path for add in adds)
        _after_write(log, self.config, result, replaced=self.mode == "overwrite")
        return result

    def _log(self) -> TransactionLog:
        """The log of the table, which this creates where it was not there when we decided."""
        if self.first is None:
            return TransactionLog.open(self.path, **self._where)
        try:
            return TransactionLog.begin(self.path, self.first, **self._where)
        except TableExistsError:
            if self.mode == "error":
                raise self._taken() from None
            return TransactionLog.open(self.path, **self._where)

    def _transaction(self, adds: Sequence[AddFile], extra: Sequence[Action]) -> Transaction:
        return Transaction(
            None,
            self.mode if self.mode == "overwrite" else "append",
            parameters=self._parameters(),
            actions=lambda snapshot: [*self._changes(snapshot, adds), *extra],
            metrics={"numFiles": len(adds), "numRows": sum(a.num_records or 0 for a in adds)},
            commit_id=self.job_id,
            first_seen_version=max(self.seen, 0),
        )

    def _parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = {"mode": self.mode, "partitionBy": list(self.partition_columns)}
        if self.predicate is not None:
            shown = self.replaces if isinstance(self.replaces, str) else repr(self.predicate)
            found["replaceWhere"] = shown
        return found

    def define(self) -> None:
        """Make or replace the table without a row."""
        if self.first is not None:
            self._log()
        else:
            self.commit(())

    def changes_of_schema(self, snapshot: Snapshot) -> Iterator[Action]:
        """What the written splits ask of the table's metadata; an error if they fit no more."""
        self._check_still_fits(snapshot)
        schema = self._evolved(snapshot)
        if schema != snapshot.schema:
            mapping = _mapping(snapshot, schema, self.indexing)
            yield _with_schema(snapshot.metadata, schema, mapping)

    def _changes(self, snapshot: Snapshot, adds: Sequence[AddFile]) -> Iterator[Action]:
        new = self._redefinition()
        if new is not None and self.first is None:
            yield from self._replacing(new, snapshot, adds)
            return
        yield from self.changes_of_schema(snapshot)
        if self.mode == "overwrite":
            now = int(time.time() * 1000)
            for add in self._replaced(snapshot, adds):
                yield add.removal(now)
        yield from adds

    def _replacing(
        self, new: Definition, snapshot: Snapshot, adds: Sequence[AddFile]
    ) -> Iterator[Action]:
        """Another definition and other rows, in one commit."""
        metadata = new.metadata(snapshot, self.indexing)
        self._check_still_fits(_snapshot_of(metadata, self.config), snapshot.version)
        yield metadata
        yield from new.dropped_indexes(snapshot)
        now = int(time.time() * 1000)
        for add in snapshot.files():
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

    # -- checks ---------------------------------------------------------------------------------

    def _check_inside(self, adds: Sequence[AddFile], store: Store | None) -> None:
        """Rows written with a condition must lie inside it, or they would survive twice."""
        if self.predicate is None:
            return
        facts = new_metadata(self.schema, self.partition_columns, {})
        base = _snapshot_of(facts, self.config)
        inside = {a.path for a in matching_files(base, self.predicate, adds)}
        outside = [a for a in adds if a.path not in inside]
        if outside:
            self.discard(adds, store)
            values = dict(outside[0].partition_values)
            raise SchemaMismatchError(
                f"the data has rows outside replace_where, for example in partition {values}",
                path=self.path,
                hint="Filter the data, or widen the predicate; nothing was committed",
            )

    def _check_still_fits(self, snapshot: Snapshot, version: int | None = None) -> None:
        """Do the written splits fit the table as it is now?"""
        changed = None
        if self.first is None and snapshot.metadata.id != self.table_id:
            changed = "another table was put in its place"
        elif snapshot.partition_columns != self.partition_columns:
            changed = f"it is partitioned by {list(snapshot.partition_columns)} now"
        else:
            had = self.table_columns if self.first is None else ()
            changed = _changed_column(self.schema, had, self.mapping, snapshot)
        if changed is not None:
            raise CommitConflictError(
                f"the table changed while the rows were written: {changed}",
                path=self.path,
                version=snapshot.version if version is None else version,
                hint="Nothing was committed; run the write again",
            )


def _after_write(
    log: TransactionLog, config: Config, result: CommitResult, *, replaced: bool
) -> None:
    """What a commit sets off: cross-references, merge and purge, each by its setting."""
    from indextables.maintenance.after_write import run_after_write

    run_after_write(log, config, result.failures, replaced=replaced)


def as_mode(mode: str) -> str:
    """A save mode by any of Spark's names."""
    known = {"errorifexists": "error", "default": "error"}.get(mode.lower(), mode.lower())
    if known not in MODES:
        raise ConfigError(f"unknown mode '{mode}'", hint=f"Use one of {', '.join(MODES)}")
    return known


def nothing_done(snapshot: Snapshot) -> CommitResult:
    """The result of a write that left the table alone."""
    return CommitResult(snapshot.version, "", 0, True, load=lambda: snapshot)


def _settings_of(base: Snapshot) -> dict[str, str]:
    """Our settings among the table's properties; those given with a write come first."""
    configuration = base.metadata.configuration
    return {k: v for k, v in configuration.items() if k.lower().startswith(PREFIX)}


def _snapshot_of(metadata: Metadata, config: Config) -> Snapshot:
    """A table without files, as it would begin with this metadata."""
    protocol = protocol_of(config["protocol.version"])
    return Snapshot.from_replay([VersionActions(0, 0, [protocol, metadata])])


def _changed_column(
    schema: pa.Schema, had: Sequence[str], mapping: DocMapping, snapshot: Snapshot
) -> str | None:
    """A column that was written otherwise than the table has it now, in words.

    ``had`` are the columns that the table had when the write began.
    """
    now = {f.name.lower(): f for f in snapshot.schema}
    known = snapshot.table_mapping if snapshot.num_files else None
    known = user_mapping(known, snapshot.schema) if known else None
    for column in schema:
        other = now.get(column.name.lower())
        if other is not None and (other.name, other.type) != (column.name, column.type):
            return f"column '{column.name}' is '{other.name}' of type {other.type} now"
        if other is None and column.name in had:
            return f"column '{column.name}' was renamed or dropped"
        if other is not None and stored_field(other) != stored_field(column):
            return f"column '{column.name}' is another column now"
        ours, theirs = mapping.get(column.name), known.get(column.name) if known else None
        if ours is not None and theirs is not None and _differ(ours, theirs):
            return f"column '{column.name}' is indexed as {_kind(theirs)} now"
    return None


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
    known = user_mapping(known, base.schema)
    named = {n.split(".")[0].lower() for n in (indexing.named_columns() if indexing else ())}
    fields = []
    for field_ in wanted.fields:
        have = known.get(field_.name)
        if have is not None and field_.name.lower() in named and _differ(have, field_):
            stored = stored_columns(base.schema, [have.name])
            if base.num_files and base.is_indexed_as(*stored):
                raise ConfigError(
                    f"column '{field_.name}' is indexed as {_kind(have)} in this table",
                    hint="Leave the option out, or rewrite the table to change it",
                )
            have = None
        fields.append(field_ if have is None else replace(have, name=field_.name))
    return DocMapping(tuple(fields))


def _differ(a: FieldMapping, b: FieldMapping) -> bool:
    return (a.type, a.is_tokenized) != (b.type, b.is_tokenized)


def _kind(field_: FieldMapping) -> str:
    """How a column is indexed, in the words of the options."""
    if field_.type != "text":
        return field_.type
    return f"text ({field_.tokenizer} tokens)" if field_.is_tokenized else "exact text"


def _with_schema(metadata: Metadata, schema: pa.Schema, mapping: DocMapping) -> Metadata:
    stored = stored_mapping(mapping, schema)
    configuration = {**metadata.configuration, TABLE_MAPPING: stored.to_json()}
    return replace(metadata, schema_string=schema_to_json(schema), configuration=configuration)
