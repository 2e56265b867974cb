"""The snapshot that queries of a companion see: the source as it is now, through the index.

Opening a companion reads the source's own metadata, at the version that is asked for. From it
and the splits of the log an ordinary snapshot is made, which the planner and the tasks take as any
other:

- a split stays if a file of it is in the source; rows of its other files, and rows that the source
  has deleted, are left out by its vector (``origin``);
- a file that no split covers is a split of its own, without an index, with the source's bounds;
- the columns are those of the source.

So an index that lags behind costs time and never rows. A file is covered only if its path, size and
token are those that were indexed, and if the split fits the columns as they are now (``columns``).
What the log's own vectors say does not count: a file that a later sync gave up is there again for
those who read an older version of the source.

``version`` is the source's version everywhere: that is what time travel, ``explain`` and Spark's
plans name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from indextables.companion.bounds import statistics
from indextables.companion.columns import fits, inner_identity, readable, table_schema
from indextables.companion.facts import (
    FIELDS_TAG,
    SCHEMA_TAG,
    CompanionFacts,
    is_companion,
    mapping_text,
    split_schema,
)
from indextables.companion.files import IndexedFile, Key, files_of
from indextables.companion.opening import open_source, source_options
from indextables.companion.origin import FileOrigin, without_files
from indextables.errors import CorruptFileError, IndexTablesError
from indextables.log.actions import Action, AddFile, RemoveFile
from indextables.log.log import TransactionLog
from indextables.log.read.moments import to_millis
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.lru import LRU
from indextables.sources.base import SourceFile, SourceSnapshot
from indextables.types import schema_to_json

MOST_KEPT = 32


@dataclass(frozen=True, slots=True)
class Lag:
    """How far an index is behind its source, in files and rows."""

    format: str
    location: str
    version: int
    files: int = 0
    covered: int = 0
    uncovered: int = 0
    with_deletes: int = 0
    gone: int = 0
    """Files in splits that the source does not have any more."""
    unused: Mapping[str, str] = field(default_factory=dict)
    """Splits that are not used, and why."""


def read_snapshot(
    log: TransactionLog, version: int | None = None, timestamp: Any = None
) -> Snapshot:
    """What a query reads: the table's snapshot, or that of a companion over its source."""
    try:
        found = log.snapshot(version=version, timestamp=timestamp)
    except IndexTablesError:
        if version is None and timestamp is None:
            raise
        found = log.snapshot()
        if not is_companion(found.metadata.configuration):
            raise
    if not is_companion(found.metadata.configuration):
        return found
    newest = found if version is None and timestamp is None else log.snapshot()
    return over_source(log, newest, source_of(log, newest, version, timestamp))


def source_of(
    log: TransactionLog, raw: Snapshot, version: int | None = None, timestamp: Any = None
) -> SourceSnapshot:
    """The source of a companion, now or as it was."""
    facts = CompanionFacts.of(raw.metadata.configuration, log.path)
    table = open_source(facts, source_options(log.config, log.store.options))
    moment = None if timestamp is None else to_millis(timestamp)
    return table.snapshot(version=version, timestamp=moment)


def over_source(log: TransactionLog, raw: Snapshot, source: SourceSnapshot) -> Snapshot:
    """The splits of a log over a snapshot of the source; the same object for the same two."""
    key = (log.store.identity, raw.metadata.id, raw.version, _identity(source))
    return _kept.load(key, lambda: _View(raw, source).snapshot())


def _identity(source: SourceSnapshot) -> tuple[Hashable, ...]:
    """The same only where the columns, the files and their deletes are."""
    told: list[Any] = [(c.identity, c.name, str(c.type), repr(c.default)) for c in source.columns]
    told.append(inner_identity(source.columns, [c.identity for c in source.columns]))
    if source.format == "parquet":
        told += [(f.key, f.deletes.token) for f in source.files()]
    digest = hashlib.sha256(repr(told).encode()).hexdigest()
    return source.format, source.location, source.version, source.timestamp, digest


class _View:
    """A snapshot being made."""

    def __init__(self, raw: Snapshot, source: SourceSnapshot) -> None:
        self._raw = raw
        self._source = source
        self._slim = without_files(source)
        self._configuration = raw.metadata.configuration
        self._columns, _ = readable(source.columns)
        self._mapping = mapping_text(self._configuration)
        self._open: dict[Key, SourceFile] = {f.key: f for f in source.files()}
        self._files = len(self._open)
        self._fitting: dict[str, str] = {}
        self._origins: dict[str, FileOrigin] = {}
        self._gone = self._covered = 0
        self._unused: dict[str, str] = {}

    def snapshot(self) -> Snapshot:
        actions: list[Action] = [self._metadata()]
        actions += [self._split(add) for add in self._raw.files()]
        uncovered = list(self._open.values())
        actions += [self._bare(file) for file in uncovered]
        moment = self._source.timestamp or self._raw.timestamp_ms
        made = self._raw.with_versions([VersionActions(self._source.version, moment, actions)])
        made.origins = self._origins
        made.lag = Lag(
            self._source.format,
            self._source.location,
            self._source.version,
            self._files,
            self._covered,
            len(uncovered),
            sum(1 for o in self._origins.values() for f in o.files if f is not None and f.deletes),
            self._gone,
            self._unused,
        )
        return made

    def _metadata(self) -> Action:
        schema = schema_to_json(table_schema(self._columns))
        return replace(self._raw.metadata, schema_string=schema, partition_columns=())

    def _split(self, add: AddFile) -> Action:
        """A split with the rows that are left of it, or without any: removed."""
        gone = RemoveFile(add.path)
        try:
            listed = files_of(add)
        except CorruptFileError as error:
            self._unused[add.path] = error.reason
            return gone
        why = self._why_not(add, listed)
        if why:
            self._unused[add.path] = why
            return gone
        found = [self._open.pop(file.key(self._source.location), None) for file in listed]
        self._covered += sum(file is not None for file in found)
        self._gone += found.count(None)
        if not any(file is not None for file in found):
            return gone
        origin = self._origin(found, [f.rows for f in listed], listed)
        self._origins[add.path] = origin
        return self._told(add, origin)

    def _why_not(self, add: AddFile, listed: list[IndexedFile]) -> str:
        """Why a split cannot be used at all; empty where it can."""
        tags = add.tags or {}
        tag = f"{tags.get(SCHEMA_TAG)}/{tags.get(FIELDS_TAG, '')}"
        if tag not in self._fitting:
            schema: pa.Schema | None = split_schema(self._configuration, tags)
            self._fitting[tag] = "no schema" if schema is None else self._misfit(schema, tags)
        if sum(f.rows for f in listed) != add.num_records:
            return "the rows of its files do not add up"
        return self._fitting[tag]

    def _misfit(self, schema: pa.Schema, tags: Mapping[str, Any]) -> str:
        inner = inner_identity(self._source.columns, schema.names)
        known = fits(schema, self._columns) and inner == tags.get(FIELDS_TAG, "")
        return "" if known else "its columns changed in the source"

    def _origin(
        self,
        files: list[SourceFile | None],
        counts: list[int] | None,
        listed: list[IndexedFile],
    ) -> FileOrigin:
        location = self._source.location
        names = tuple(
            SourceFile(*_path_size(f, location), f.rows, f.token) if held is None else held
            for f, held in zip(listed, files, strict=True)
        )
        return FileOrigin(
            self._slim,
            tuple(self._columns),
            tuple(files),
            None if counts is None else tuple(counts),
            is_bare=not listed,
            mapping=self._mapping,
            names=names,
        )

    def _told(self, add: AddFile, origin: FileOrigin) -> AddFile:
        known = not origin.has_deletes or origin.known_deleted is not None
        rows = add.num_records if known else None
        return replace(add, deletion_vector=origin.vector, num_records=rows)

    def _bare(self, file: SourceFile) -> AddFile:
        counts = None if file.rows is None else (file.rows,)
        origin = FileOrigin(
            self._slim, tuple(self._columns), (file,), counts, is_bare=True, mapping=self._mapping
        )
        path = f"{file.path}#{file.token}" if file.path in self._origins else file.path
        self._origins[path] = origin
        low, high, stats = statistics(file, self._columns)
        add = AddFile(
            path,
            size=file.size,
            num_records=file.rows,
            min_values=low,
            max_values=high,
            stats=stats,
            doc_mapping_json=self._mapping,
        )
        return self._told(add, origin)


def _path_size(file: IndexedFile, location: str) -> tuple[str, int]:
    path, size, _ = file.key(location)
    return path, size


_kept: LRU[Hashable, Snapshot] = LRU(MOST_KEPT)
