"""Writing a table's rows: routed to partitions, rolled into splits, uploaded.

Rows of one partition go to one split until it is full (rows, estimated size, or the memory of its
index), in the order they came. Few partitions are written as they stream by; when there are many,
rows wait in memory by partition and the largest waiting partition is written first when they get
too many, so memory is bounded and splits stay as large as they can be. Rows that are clustered
always wait, and are sorted before they are written.

Nothing is visible in the table before its actions are committed; ``abort`` deletes what was
uploaded, as far as the store lets it.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.clustering import sorted_rows
from indextables.config import Config
from indextables.errors import IndexTablesError, SchemaMismatchError, UnknownColumnError
from indextables.log.actions import AddFile
from indextables.mapping import DocMapping
from indextables.splits.format.partition_values import partition_folder, partition_texts
from indextables.splits.write.keeping import decided
from indextables.splits.write.split_writer import SplitWriter
from indextables.storage.base import Store
from indextables.storage.deleting import UNCOMMITTED, Kind, delete

MAX_OPEN_WRITERS = 4
STREAM_BYTES = 32 << 20
WAITING_BYTES = 256 << 20

Key = tuple[str | None, ...]


class TableWriter:
    """Writes splits of one table; used by one task at a time."""

    def __init__(
        self,
        schema: pa.Schema,
        partition_columns: Sequence[str],
        mapping: DocMapping,
        config: Config | None,
        store: Store,
        *,
        job_id: str = "",
        task_label: str = "",
        column_indexes: Mapping[str, str] | None = None,
        cluster_by: Sequence[str] = (),
    ) -> None:
        self._config = decided(config or Config(), store)
        self._cluster = [c for c in cluster_by if c not in partition_columns]
        self._store = store
        self._mapping = mapping
        self._column_indexes = dict(column_indexes or {})
        self._schema = schema
        self._partitions = [_spelled(c, schema) for c in partition_columns]
        self._rest = pa.schema([f for f in schema if f.name not in self._partitions])
        if not len(self._rest):
            raise SchemaMismatchError("a table needs a column that is not a partition column")
        self._label = " ".join(part for part in (job_id, task_label) if part)
        self._rows_per_split = self._config["write.rowsPerSplit"]
        self._target_size = self._config["write.targetSplitSize"]
        self._open: dict[Key, SplitWriter] = {}
        """Splits being written, the least recently written first."""
        self._waiting: dict[Key, list[pa.RecordBatch]] = {}
        self._waiting_bytes: dict[Key, int] = {}
        self._adds: list[AddFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; the batch has all columns of the table, partition columns included."""
        batch = self._checked(batch)
        for key, part in self._route(batch):
            self._wait(key, part)
        while sum(self._waiting_bytes.values()) > WAITING_BYTES:
            largest = max(self._waiting_bytes, key=self._waiting_bytes.__getitem__)
            self._stream(largest)

    @property
    def keeps_order(self) -> bool:
        """Are rows in the order in which they were written, over all splits?"""
        return not self._partitions and not self._cluster

    def finish(self) -> list[AddFile]:
        """Close every split; the actions to commit."""
        for key in list(self._waiting):
            self._stream(key)
        for key in list(self._open):
            self._close(key)
        return list(self._adds)

    def abort(self) -> None:
        """Give up: close what is open, delete what was uploaded (best effort)."""
        for writer in self._open.values():
            writer.abort()
        self._open.clear()
        self._waiting.clear()
        self._waiting_bytes.clear()
        with contextlib.suppress(IndexTablesError):
            delete(self._store, Kind.SPLIT, [add.path for add in self._adds], UNCOMMITTED)
        self._adds.clear()

    # -- routing ----------------------------------------------------------------------------------

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        unknown = [n for n in batch.schema.names if n not in self._schema.names]
        if unknown:
            raise UnknownColumnError.of(unknown[0], self._schema.names)
        missing = [n for n in self._schema.names if n not in batch.schema.names]
        if missing:
            raise SchemaMismatchError(f"the batch has no column {', '.join(missing)}")
        return batch

    def _route(self, batch: pa.RecordBatch) -> Iterator[tuple[Key, pa.RecordBatch]]:
        """The rows by partition, each in their order."""
        rest = batch.select(self._rest.names)
        if not self._partitions or batch.num_rows == 0:
            yield (), rest
            return
        codes = np.zeros(batch.num_rows, np.int64)
        texts: list[list[str | None]] = []
        for name in self._partitions:
            column = batch.column(name).cast(self._schema.field(name).type)
            coded = column.dictionary_encode(null_encoding="encode")
            found = partition_texts(coded.dictionary, name)
            merged = {text: i for i, text in enumerate(dict.fromkeys(found))}
            texts.append(list(merged))
            index = coded.indices.to_numpy(zero_copy_only=False)
            codes = codes * len(merged) + np.array([merged[t] for t in found], np.int64)[index]
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        edges = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1, append=ordered[-1] + 1))
        for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            key = _decode(int(ordered[start]), texts)
            rows = order[start:stop]
            yield key, rest if len(rows) == batch.num_rows else rest.take(pa.array(rows))

    def _wait(self, key: Key, part: pa.RecordBatch) -> None:
        self._waiting.setdefault(key, []).append(part)
        waiting = self._waiting_bytes.get(key, 0) + part.nbytes
        self._waiting_bytes[key] = waiting
        if self._cluster:
            return
        if not self._partitions or waiting > STREAM_BYTES or key in self._open:
            self._stream(key)

    # -- splits -----------------------------------------------------------------------------------

    def _stream(self, key: Key) -> None:
        """Hand the waiting rows of a partition to its split, closing it where it is full."""
        parts = self._waiting.pop(key, [])
        self._waiting_bytes.pop(key, None)
        if self._cluster and parts:
            parts = sorted_rows(parts, self._cluster)
        for part in parts:
            start = 0
            while start < part.num_rows:
                writer = self._writer(key)
                room = self._rows_per_split - writer.num_rows
                piece = part.slice(start, min(room, _piece_rows(part)))
                writer.write(piece)
                start += piece.num_rows
                if self._is_full(writer):
                    self._close(key)
        if self._cluster and key in self._open:
            self._close(key)

    def _is_full(self, writer: SplitWriter) -> bool:
        if writer.num_rows >= self._rows_per_split or writer.is_full:
            return True
        return self._target_size is not None and writer.estimated_bytes >= self._target_size

    def _writer(self, key: Key) -> SplitWriter:
        writer = self._open.pop(key, None)
        if writer is None:
            while len(self._open) >= MAX_OPEN_WRITERS:
                self._close(next(iter(self._open)))
            writer = SplitWriter(
                self._rest, self._mapping, self._config, column_indexes=self._column_indexes
            )
        self._open[key] = writer
        return writer

    def _close(self, key: Key) -> None:
        writer = self._open.pop(key)
        finished = writer.finish()
        values = dict(zip(self._partitions, key, strict=True))
        folder = partition_folder(values, self._partitions)
        name = f"part-{uuid.uuid4()}.split"
        path = f"{folder}/{name}" if folder else name
        try:
            self._store.put_file(path, finished.local_path)
            self._adds.append(finished.to_add(path, values))
        finally:
            finished.discard()

    def __repr__(self) -> str:
        return f"TableWriter({self._label!r}, {len(self._adds)} splits)"


_PIECE_ROWS = 65_536
_PIECE_BYTES = 32 << 20


def _piece_rows(part: pa.RecordBatch) -> int:
    """Rows to hand over before a split is asked whether it is full."""
    rows = _PIECE_BYTES * int(part.num_rows) // max(int(part.nbytes), 1)
    return max(1, min(_PIECE_ROWS, rows))


def _spelled(column: str, schema: pa.Schema) -> str:
    """The partition column as the schema spells it."""
    found = [n for n in schema.names if n.lower() == column.lower()]
    if not found:
        raise UnknownColumnError.of(column, schema.names)
    return str(found[0])


def _decode(code: int, texts: list[list[str | None]]) -> Key:
    found: list[Any] = []
    for values in reversed(texts):
        code, at = divmod(code, len(values))
        found.append(values[at])
    return tuple(reversed(found))
