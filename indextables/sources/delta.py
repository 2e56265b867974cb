"""Delta tables: their columns, files and deletion vectors at a version.

``delta_log`` reads the log, ``delta_schema`` the columns and statistics. Here it is decided which
tables are read at all: those of reader versions 1 to 3 whose reader features are all in
``UNDERSTOOD``. Every other feature changes what the rows are, so the table is refused by the
name of the feature.

Files are immutable and never share a name, so a file's key is its path and size. What changes is
its deletion vector, whose id is the token of its deletes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.errors import (
    CorruptFileError,
    IndexTablesError,
    ObjectNotFoundError,
    ProtocolError,
)
from indextables.log.actions.vector import ABSOLUTE, INLINE, DeletionVector
from indextables.log.vectors.codec import FRAME_BYTES, MOST_ROWS, read_vector
from indextables.lru import LRU
from indextables.sources import delta_log
from indextables.sources.base import Deletes, EqualityDelete, SourceColumn, SourceFile
from indextables.sources.delta_schema import (
    LazyBounds,
    StatsReader,
    columns_of,
    parsed_stats,
    partition_value,
)
from indextables.sources.footer import FooterFacts
from indextables.sources.roots import Roots
from indextables.sources.rows import ParquetRows

UNDERSTOOD = frozenset(
    (
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    )
)
KEPT_BYTES = 64 << 20
_kept: LRU[Any, NDArray[np.uint64]] = LRU(most_bytes=KEPT_BYTES, size_of=lambda rows: rows.nbytes)


def open_delta(location: str, options: Mapping[str, Any] | None = None) -> DeltaTable:
    """The Delta table at a location."""
    return DeltaTable(Roots.of(location, options))


@dataclass
class DeltaTable:
    """A Delta table at whatever version is asked."""

    roots: Roots
    format: str = "delta"

    @property
    def location(self) -> str:
        return self.roots.location

    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> DeltaSnapshot:
        """The newest version, the one with a number, or the one at a time in milliseconds."""
        if version is not None and timestamp is not None:
            raise IndexTablesError("a version or a timestamp, not both", path=self.location)
        if timestamp is not None:
            version = delta_log.version_at(self.roots, timestamp)
        try:
            return _snapshot(self.roots, delta_log.read_state(self.roots, version))
        except (CorruptFileError, ProtocolError) as error:
            error.path = error.path or self.location
            raise


def require_understood(protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Refuse a table that needs more of its readers; whether it may map columns."""
    least = protocol.get("minReaderVersion", 1)
    if not isinstance(least, int) or least > 3:
        raise ProtocolError(f"the Delta table needs reader version {least}; 3 is the newest known")
    features = set(protocol.get("readerFeatures") or ()) if least == 3 else set()
    unknown = sorted(features - UNDERSTOOD)
    if unknown:
        raise ProtocolError(
            f"the Delta table needs the reader feature '{unknown[0]}', which is not understood",
            hint=f"Understood are {', '.join(sorted(UNDERSTOOD))}",
        )
    provider = (metadata.get("format") or {}).get("provider", "parquet")
    if provider != "parquet":
        raise ProtocolError(f"the files of the Delta table are {provider}, not Parquet")
    return least == 2 or "columnMapping" in features


def _snapshot(roots: Roots, state: delta_log.State) -> DeltaSnapshot:
    mapped = require_understood(state.protocol, state.metadata)
    columns = columns_of(state.metadata, mapped)
    by_name = {column.name: column for column in columns}
    partitions = [by_name.get(name) for name in state.metadata.get("partitionColumns") or ()]
    if None in partitions:
        raise CorruptFileError("a partition column of the Delta table is not in its schema")
    held = [column for column in partitions if column is not None]
    reader = StatsReader(columns, state.metadata)
    files = [_file(roots, add, held, reader) for add in state.adds.values()]
    paths = [file.path for file in files]
    if len(set(paths)) != len(paths):
        raise CorruptFileError(
            "a file is in the Delta table twice, with two deletion vectors", version=state.version
        )
    return DeltaSnapshot(
        roots,
        state.version,
        state.timestamp,
        tuple(columns),
        tuple(column.identity for column in held),
        tuple(sorted(files, key=lambda file: file.path)),
        str(state.metadata.get("id", "")),
    )


def _file(
    roots: Roots, add: Mapping[str, Any], partitions: Sequence[SourceColumn], reader: StatsReader
) -> SourceFile:
    values = add.get("partitionValues") or {}
    if not isinstance(add.get("size"), int) or not isinstance(values, Mapping):
        raise CorruptFileError(f"the Delta log adds {add.get('path')!r} without size or partition")
    text, parsed = add.get("stats"), add.get("stats_parsed")
    stats = parsed_stats(text) if text else parsed or {}
    rows = stats.get("numRecords")
    return SourceFile(
        _address(roots, add["path"]),
        add["size"],
        rows if isinstance(rows, int) else None,
        partition={
            column.identity: partition_value(values.get(column.physical), column.type)
            for column in partitions
        },
        bounds=LazyBounds(text, parsed, reader),
        deletes=_deletes(add.get("deletionVector")),
    )


def _address(roots: Roots, path: str) -> str:
    """The whole address of a file; the log spells paths as URIs do."""
    plain = unquote(path)
    if "://" in plain or plain.startswith(("/", "file:")):
        address = plain
    else:
        address = f"{roots.location}/{plain}"
    roots.locate(address)
    return roots.resolve(address)


def _deletes(body: Mapping[str, Any] | None) -> Deletes:
    if not body:
        return Deletes()
    vector = DeletionVector.from_dict({k: v for k, v in body.items() if v is not None})
    return Deletes(delta_log.vector_id(body), (vector,), count=vector.cardinality)


@dataclass
class DeltaSnapshot:
    """A Delta table at one version."""

    roots: Roots
    version: int
    timestamp: int | None
    columns: tuple[SourceColumn, ...]
    partition_columns: tuple[str, ...]
    _files: tuple[SourceFile, ...]
    table_id: str = ""
    format: str = "delta"

    @property
    def location(self) -> str:
        return self.roots.location

    def files(self) -> Iterator[SourceFile]:
        return iter(self._files)

    def deleted_positions(self, file: SourceFile) -> NDArray[np.uint64] | None:
        if not file.deletes.positions:
            return None
        (vector,) = file.deletes.positions
        key = (self.roots.store.identity, vector, file.rows)
        return _kept.load(key, lambda: self._read(vector, file))

    def _read(self, vector: DeletionVector, file: SourceFile) -> NDArray[np.uint64]:
        most = MOST_ROWS if file.rows is None else file.rows
        try:
            rows = read_vector(self._bytes(vector, file), most=max(most, vector.cardinality))
        except CorruptFileError as error:
            raise _damaged(file, error.reason) from error
        if len(rows) != vector.cardinality:
            raise _damaged(file, f"it holds {len(rows)} rows, not {vector.cardinality}")
        if len(rows) and file.rows is not None and int(rows[-1]) >= file.rows:
            raise _damaged(file, f"it names row {rows[-1]} of {file.rows}")
        return rows

    def _bytes(self, vector: DeletionVector, file: SourceFile) -> bytes:
        if vector.storage_type == INLINE:
            return vector.inline_data
        if vector.storage_type == ABSOLUTE:
            store, path = self.roots.locate(unquote(vector.path_or_inline))
        else:
            store, path = self.roots.store, str(vector.path)
        start = vector.offset or 0
        try:
            (data,) = store.read_ranges(path, [(start, start + vector.size + FRAME_BYTES)])
        except ObjectNotFoundError as error:
            raise ObjectNotFoundError(
                f"the deletion vector of {file.path} is not there", path=path
            ) from error
        return bytes(data)

    def equality_rows(self, delete: EqualityDelete) -> pa.Table:
        raise IndexTablesError("Delta tables have no equality deletes", path=self.location)

    def rows(self, file: SourceFile, facts: FooterFacts | None = None) -> ParquetRows:
        store, path = self.roots.locate(file.path)
        return ParquetRows(
            store, path, file.size, self.columns, partition=file.partition, facts=facts
        )


def _damaged(file: SourceFile, reason: str) -> CorruptFileError:
    return CorruptFileError(f"the deletion vector of {file.path} is damaged: {reason}")
