"""Indexing files of a source: some files in, one split without rows out.

A file is indexed whole or not at all, deleted rows included: what is deleted is the business of
the reader. ``Job`` is all that one task needs, here or on a Spark executor. A split that is full is
closed before the next file; a file is never cut, whatever its size.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from indextables.companion.columns import inner_identity
from indextables.companion.facts import FIELDS_TAG, SCHEMA_TAG, schema_digest
from indextables.companion.files import IndexedFile, indexed, member, texts
from indextables.companion.rows import SourceRows
from indextables.config import Config
from indextables.errors import CorruptFileError
from indextables.log.actions import AddFile
from indextables.mapping import DocMapping
from indextables.sources.base import SourceFile, SourceSnapshot
from indextables.splits.write.keeping import decided
from indextables.splits.write.split_writer import SplitWriter
from indextables.storage.base import Store, open_store, resolve_options

BATCH_ROWS = 65_536
DELTA = "delta"


@dataclass(frozen=True)
class Job:
    """Files that become splits; small and picklable."""

    source: SourceSnapshot
    files: tuple[SourceFile, ...]
    schema: pa.Schema
    """In the names of files."""
    mapping: str
    config: Config
    path: str
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    column_indexes: Mapping[str, str] = field(default_factory=dict)

    def store(self) -> Store:
        given = {"spark.indextables." + k: v for k, v in self.config.raw().items()}
        return open_store(self.path, resolve_options(self.path, self.storage_options, given))


@dataclass(frozen=True)
class Built:
    """The splits of one job, which are in the store and not yet in the table."""

    adds: tuple[AddFile, ...]
    files: int = 0
    read_bytes: int = 0
    too_large: tuple[str, ...] = ()
    """Files that do not fit one split."""


def build(job: Job) -> Built:
    """Index the files of a job and put the splits into the store."""
    return _Building(job).run()


class _Building:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._store = job.store()
        self._config = decided(job.config, self._store)
        self._writer: SplitWriter | None = None
        self._listed: list[IndexedFile] = []
        self._adds: list[AddFile] = []
        self._large: list[str] = []

    def run(self) -> Built:
        try:
            for file in self._job.files:
                self._file(file)
            self._close()
        except BaseException:
            if self._writer is not None:
                self._writer.abort()
            raise
        files = [f for f in self._job.files if f.path not in self._large]
        read = sum(f.size for f in files)
        return Built(tuple(self._adds), len(files), read, tuple(self._large))

    def _file(self, file: SourceFile) -> None:
        if self._writer is not None and self._writer.is_full:
            self._close()
        rows = 0
        for batch in _batches(self._job, file):
            if self._writer is None:
                self._writer = self._new_writer()
            self._writer.write(batch)
            rows += batch.num_rows
        if file.rows is not None and rows != file.rows:
            raise CorruptFileError(
                f"the file has {rows} rows, the table says {file.rows}", path=file.path
            )
        self._listed.append(indexed(file, rows, self._job.source.location))

    def _new_writer(self) -> SplitWriter:
        job = self._job
        return SplitWriter(
            job.schema,
            DocMapping.from_json(job.mapping),
            self._config,
            column_indexes=job.column_indexes,
            has_rows=False,
        )

    def _close(self) -> None:
        writer, listed = self._writer, self._listed
        self._writer, self._listed = None, []
        if writer is None:
            return
        writer.carry_sources(member(listed))
        finished = writer.finish()
        path = f"companion-{uuid.uuid4()}.split"
        try:
            self._store.put_file(path, finished.local_path)
        finally:
            finished.discard()
        add = finished.to_add(path)
        self._adds.append(
            replace(
                add,
                companion_source_files=texts(listed),
                companion_delta_version=self._job.source.version,
                companion_fast_field_mode="DISABLED",
                tags=self._tags(),
            )
        )

    def _tags(self) -> dict[str, str]:
        job = self._job
        inner = inner_identity(job.source.columns, job.schema.names)
        tags = {SCHEMA_TAG: schema_digest(job.schema)}
        return {**tags, FIELDS_TAG: inner} if inner else tags


def _batches(job: Job, file: SourceFile) -> Iterator[pa.RecordBatch]:
    """All rows of a file, in the names of files."""
    count = job.source.rows(file).num_rows if file.rows is None else file.rows
    rows = SourceRows(job.schema, [file], [count], job.source.rows)
    yield from rows.scan(None, BATCH_ROWS)
