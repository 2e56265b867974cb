"""Writing rows: batches in, pages and a directory out.

Rows are collected until they make a chunk, which is then encoded column by column. A dictionary
page is written where it is first used and shared by all later chunks that use the same one. Equal
input gives equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.errors import IndexTablesError, SchemaMismatchError
from indextables.fitting import fitted
from indextables.native._crc32c import crc32c
from indextables.splits.rows.encode import ColumnEncoder, Written
from indextables.splits.rows.layout import Directory, is_native, stored_streams, streams_of
from indextables.types import normalize_field

Array = np.ndarray[Any, Any]

CHUNK_ROWS = 65_536
CHUNK_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class RowsFile:
    """What a writer made: the payload in pieces, the directory, and how many rows are in it."""

    pages: list[bytes | memoryview]
    directory: bytes
    num_rows: int
    schema: pa.Schema

    @property
    def payload_length(self) -> int:
        return sum(len(page) for page in self.pages)


class RowsWriter:
    """Collects batches and encodes them a chunk at a time; memory beyond a chunk is the output."""

    def __init__(
        self, schema: pa.Schema, *, block_rows: int | None = None, compression: str = "auto"
    ) -> None:
        if compression not in ("auto", "none", "zstd"):
            raise IndexTablesError(
                f"unknown row compression '{compression}'", hint="Use auto, none or zstd"
            )
        if block_rows is not None and (block_rows < 1 or block_rows & (block_rows - 1)):
            raise IndexTablesError(f"block_rows must be a power of two, not {block_rows}")
        self.schema = pa.schema(
            [f if is_native(f.type) else normalize_field(f) for f in schema],
            metadata=schema.metadata,
        )
        roots = streams_of(self.schema)
        self._encoders = [ColumnEncoder(root, compression, block_rows) for root in roots]
        self._streams = len(stored_streams(roots))
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self._pages: list[bytes | memoryview] = []
        self._length = 0
        self._chunk_rows: list[int] = []
        self._shift: list[list[int]] = [[] for _ in roots]
        self._written: list[list[tuple[int, int, Array, Array]]] = [
            [] for _ in range(self._streams)
        ]
        self._resources: dict[bytes, int] = {}
        self._resource_table: list[tuple[int, int, int]] = []

    @property
    def num_rows(self) -> int:
        return sum(self._chunk_rows) + self._waiting_rows

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of ``batch``, whose columns are found by name."""
        row_bytes = max(batch.nbytes // max(batch.num_rows, 1), 1)
        at = 0
        while at < batch.num_rows:
            room = min(CHUNK_ROWS - self._waiting_rows, max(CHUNK_BYTES // row_bytes, 1))
            piece = self._conform(batch.slice(at, room))
            if self._waiting_bytes + piece.nbytes > CHUNK_BYTES:
                self._flush()
            self._waiting.append(piece)
            self._waiting_rows += piece.num_rows
            self._waiting_bytes += piece.nbytes
            at += piece.num_rows
            if self._waiting_rows >= CHUNK_ROWS:
                self._flush()

    def finish(self) -> RowsFile:
        """Encode what is waiting and make the directory."""
        self._flush()
        chunks = len(self._chunk_rows)
        written = [entry for stream in self._written for entry in stream]
        table = np.array(self._resource_table, np.uint64).reshape(-1, 3)
        directory = Directory(
            schema=self.schema,
            num_rows=sum(self._chunk_rows),
            payload_length=self._length,
            chunk_rows=np.array(self._chunk_rows, np.uint32),
            shift=np.array(self._shift, np.uint8).reshape(len(self._shift), chunks),
            extent=np.array([e[0] for e in written], np.uint64).reshape(self._streams, chunks),
            resource_of=np.array([e[1] for e in written], np.int32).reshape(self._streams, chunks),
            resource_start=table[:, 0],
            resource_length=table[:, 1],
            resource_crc=table[:, 2],
            block_length=_joined([e[2] for e in written]),
            block_crc=_joined([e[3] for e in written]),
        )
        return RowsFile(self._pages, directory.to_bytes(), directory.num_rows, self.schema)

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.schema.equals(self.schema):
            return batch
        columns = []
        for wanted in self.schema:
            found = batch.schema.get_all_field_indices(wanted.name)
            if len(found) != 1:
                raise SchemaMismatchError(
                    f"batch has {len(found)} columns named '{wanted.name}'",
                    hint="Give every column of the schema exactly once",
                )
            columns.append(_cast(batch.column(found[0]), wanted))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema) if columns else batch

    def _flush(self) -> None:
        if not self._waiting_rows:
            return
        rows, pieces = self._waiting_rows, self._waiting
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0
        for index, encoder in enumerate(self._encoders):
            parts = [piece.column(index) for piece in pieces]
            array = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
            shift, written = encoder.encode(array)
            self._shift[index].append(shift)
            for entry in written:
                self._append(entry)
        self._chunk_rows.append(rows)

    def _append(self, entry: Written) -> None:
        resource = -1 if entry.page is None else self._resource(entry.page)
        self._written[entry.stream.index].append(
            (self._length, resource, entry.lengths, entry.crcs)
        )
        self._put(entry.data)

    def _resource(self, page: bytes) -> int:
        """The number of a dictionary page, which is written where it is used first."""
        if page not in self._resources:
            self._resources[page] = len(self._resource_table)
            self._resource_table.append((self._length, len(page), crc32c(page)))
            self._put(page)
        return self._resources[page]

    def _put(self, data: bytes) -> None:
        if data:
            self._pages.append(data)
            self._length += len(data)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, np.uint32)


def _cast(array: pa.Array, wanted: pa.Field) -> pa.Array:
    if array.type.equals(wanted.type):
        return array
    try:
        return fitted(array, wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(
            f"column '{wanted.name}' of type {array.type} does not fit {wanted.type}: {error}"
        ) from error
