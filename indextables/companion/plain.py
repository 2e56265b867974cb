"""A folder of Parquet files on this machine, read with pyarrow alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from indextables.fitting import fitted
from indextables.sources.base import EqualityDelete, SourceColumn, SourceFile


@dataclass(frozen=True)
class PlainSnapshot:
    location: str
    listed: tuple[SourceFile, ...]
    columns: tuple[SourceColumn, ...]
    format: str = "parquet"
    version: int = 0
    timestamp: int | None = None
    partition_columns: tuple[str, ...] = ()
    gone: dict[str, list[int]] = field(default_factory=dict)

    def files(self) -> Iterator[SourceFile]:
        return iter(self.listed)

    def deleted_positions(self, file: SourceFile) -> NDArray[np.uint64] | None:
        return None

    def equality_rows(self, delete: EqualityDelete) -> pa.Table:
        raise NotImplementedError


@dataclass(frozen=True)
class PlainTable:
    location: str
    format: str = "parquet"

    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> PlainSnapshot:
        files, schemas = [], []
        for folder, _, names in sorted(os.walk(self.location)):
            for name in sorted(names):
                if name.endswith(".parquet"):
                    path = os.path.join(folder, name)
                    stat = os.stat(path)
                    meta = pq.read_metadata(path)
                    schemas.append(meta.schema.to_arrow_schema().remove_metadata())
                    files.append(
                        SourceFile(path, stat.st_size, meta.num_rows, str(stat.st_mtime_ns))
                    )
        schema = pa.unify_schemas(schemas) if schemas else pa.schema([])
        columns = tuple(SourceColumn(f.name, f.type, f.name, f.name) for f in schema)
        return PlainSnapshot(self.location, tuple(files), columns)


class PlainRows:
    def __init__(self, file: SourceFile, columns: Sequence[SourceColumn]) -> None:
        self._file = file
        self._columns = {c.identity: c for c in columns}
        self.num_rows = pq.read_metadata(file.path).num_rows

    def take(self, rows: Any, columns: Sequence[str]) -> pa.RecordBatch:
        return self._read(columns).take(pa.array(np.asarray(rows, np.int64)))

    def scan(
        self, columns: Sequence[str], batch_rows: int, row_range: tuple[int, int]
    ) -> Iterator[pa.RecordBatch]:
        first, last = row_range
        yield self._read(columns).slice(first, last - first)

    def _read(self, columns: Sequence[str]) -> pa.RecordBatch:
        file = pq.ParquetFile(self._file.path)
        held = set(file.schema_arrow.names)
        wanted = [self._columns[c] for c in columns]
        table = file.read([c.physical for c in wanted if c.physical in held])
        arrays = [
            fitted(table.column(c.physical).combine_chunks(), c.type)
            if c.physical in held
            else pa.nulls(self.num_rows, c.type)
            for c in wanted
        ]
        arrays = [a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for a in arrays]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))
