"""Files into a table: once, or for as long as they grow.

``ingest`` reads whole files (``interchange.files``) and makes one commit. ``follow`` goes on: it
looks at the files again and again and commits the complete lines that were added. How far a file
has been read is kept in the table itself, by the commit that brings its rows (a ``txn`` action
named after the file), so a run that is killed and started again neither repeats nor loses a line.
A file that became shorter was started again: it is read from its start, as the next of its name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.errors import ConfigError, TableNotFoundError
from indextables.log.actions import Txn
from indextables.log.log import TransactionLog
from indextables.progress import progress
from indextables.table.interchange.files import (
    LINE,
    FileFormat,
    JsonSource,
    Source,
    TextSource,
    expand,
    read_files,
)
from indextables.table.order import WriteOrder
from indextables.table.write_options import indexing_options

MOST_BYTES = 64 << 20
"""What is read of a growing file for one commit."""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What was brought into the table, and the version that has it."""

    files: int
    rows: int
    bad_lines: int
    version: int


@dataclass(frozen=True, slots=True)
class Ingest:
    """Where rows go, and how their columns are indexed."""

    path: str
    partition_by: Sequence[str] = ()
    mode: str = "append"
    text: Iterable[str] = ()
    json: Iterable[str] = ()
    ip: Iterable[str] = ()
    storage_options: Mapping[str, Any] | None = None
    options: Mapping[str, Any] | None = None

    def files(self, paths: Sequence[str], how: FileFormat) -> IngestResult:
        """Bring whole files into the table, in one commit."""
        found = expand(paths)
        schema, batches = read_files(found, how)
        with progress("ingest", None) as shown:
            version, rows = self._write(schema, _counted(batches, shown.advance))
        return IngestResult(len(found), rows, how.bad, version)

    def follow(
        self,
        paths: Sequence[str],
        how: FileFormat,
        *,
        seconds: float = 1.0,
        is_over: Callable[[], bool] = lambda: False,
        wait: Callable[[float], None] = time.sleep,
    ) -> Iterator[IngestResult]:
        """Commit what is added to the files, until ``is_over``; one result for each commit."""
        while True:
            brought = False
            for path in expand(paths):
                while (result := self._added(path, how)) is not None:
                    brought = True
                    yield result
            if is_over():
                return
            if not brought:
                wait(seconds)

    def _added(self, path: str, how: FileFormat) -> IngestResult | None:
        """Commit the next lines of one file; ``None`` where there are none."""
        name, start = self._position(os.path.abspath(path), os.path.getsize(path))
        lines, end = _complete_lines(path, start)
        if not lines:
            return None
        how.bad = 0
        source = _lines_source(path, how, lines)
        schema = pa.schema([f for f in source.schema() if not pa.types.is_null(f.type)])
        done = Txn(name, end, int(time.time() * 1000))
        version, rows = self._write(schema, source.batches(schema), done)
        return IngestResult(1, rows, how.bad, version)

    def _position(self, path: str, size: int) -> tuple[str, int]:
        """Under which name the table keeps how far a file has been read, and how far that is."""
        try:
            log = TransactionLog.open(
                self.path, storage_options=self.storage_options, config=Config.of(self.options)
            )
        except TableNotFoundError:
            return f"ingest:{path}#0", 0
        known = log.snapshot().txns
        number = 0
        while f"ingest:{path}#{number + 1}" in known:
            number += 1
        start = known.get(f"ingest:{path}#{number}", 0)
        return (
            (f"ingest:{path}#{number}", start)
            if start <= size
            else (
                f"ingest:{path}#{number + 1}",
                0,
            )
        )

    def _text(self, schema: pa.Schema) -> Iterable[str]:
        """Columns to tokenise: as asked for; lines of text are there to be searched."""
        return self.text or ([LINE] if schema.names == [LINE] else ())

    def _write(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *done: Txn
    ) -> tuple[int, int]:
        config = Config.of(self.options)
        if done:
            config = Config.of({"write.mergeSchema": True}, config)
        order = WriteOrder(
            self.path,
            schema,
            tuple(self.partition_by),
            self.mode,
            indexing_options(config, text=self._text(schema), json=self.json, ip=self.ip),
            config,
            dict(self.storage_options or {}),
        ).decide()
        adds = order.write(batches)
        result = order.commit(adds, extra=done)
        return result.version, sum(add.num_records or 0 for add in adds)


def _counted(
    batches: Iterable[pa.RecordBatch], advance: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        advance(batch.num_rows)


def _complete_lines(path: str, start: int) -> tuple[list[bytes], int]:
    """The lines after ``start`` that have their end, and where the last of them ends."""
    with open(path, "rb") as file:
        file.seek(start)
        data = file.read(MOST_BYTES)
    end = data.rfind(b"\n") + 1
    if end == 0:
        if len(data) < MOST_BYTES:
            return [], start
        raise ConfigError(f"a line is longer than {MOST_BYTES} bytes", path=path)
    return [line.removesuffix(b"\r") for line in data[: end - 1].split(b"\n")], start + end


def _lines_source(path: str, how: FileFormat, lines: list[bytes]) -> Source:
    kind = how.of(path)
    kinds: dict[str, type[Source]] = {"ndjson": JsonSource, "text": TextSource}
    if kind not in kinds:
        raise ConfigError(
            f"a growing file of format {kind} cannot be followed",
            path=path,
            hint="Follow newline-delimited JSON or text; ingest other files when they are complete",
        )
    source = kinds[kind](path, how)
    source.lines = lambda: iter([lines])  # type: ignore[method-assign]
    return source
