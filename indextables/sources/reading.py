"""Live rows of a source's files: physical rows without those that its snapshot says are gone.

This is how a file is read that no index covers, and the yardstick for those that are covered.
Deletes by position come first, then deletes by value: a row is gone if its values of the delete's
columns equal one of the delete's rows, and NULL equals NULL there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.buffers import flag_array
from indextables.sources.base import EqualityDelete, SourceFile, SourceSnapshot
from indextables.sources.footer import FooterFacts

Positions = NDArray[np.int64]


def live_batches(
    snapshot: SourceSnapshot,
    file: SourceFile,
    columns: Sequence[str] | None = None,
    *,
    batch_rows: int = 65_536,
    row_range: tuple[int, int] | None = None,
    facts: FooterFacts | None = None,
) -> Iterator[tuple[Positions, pa.RecordBatch]]:
    """The positions and values of live rows; ``columns`` are identities."""
    rows = snapshot.rows(file, facts)
    wanted = list(columns) if columns is not None else list(rows.schema.names)
    tests = [EqualityTest(snapshot, delete) for delete in file.deletes.equality]
    needed = list(dict.fromkeys([*wanted, *(c for test in tests for c in test.columns)]))
    gone = snapshot.deleted_positions(file)
    at = row_range[0] if row_range else 0
    for batch in rows.scan(needed, batch_rows, row_range):
        positions = np.arange(at, at + batch.num_rows, dtype=np.int64)
        at += batch.num_rows
        keep = still_there(positions, gone)
        for test in tests:
            keep &= ~test.matches(batch)
        if not keep.all():
            batch, positions = batch.filter(flag_array(keep)), positions[keep]
        if needed != wanted:
            batch = batch.select(wanted)
        yield positions, batch


def still_there(positions: Positions, gone: NDArray[np.uint64] | None) -> NDArray[np.bool_]:
    """Which of some positions are not deleted by position."""
    if gone is None or not len(gone):
        return np.ones(len(positions), np.bool_)
    wanted = positions.astype(np.uint64)
    place = np.minimum(np.searchsorted(gone, wanted), len(gone) - 1)
    return np.asarray(gone[place] != wanted)


class EqualityTest:
    """Which rows an equality delete takes away."""

    def __init__(self, snapshot: SourceSnapshot, delete: EqualityDelete) -> None:
        self.columns = delete.columns
        self._rows = snapshot.equality_rows(delete).select(list(delete.columns))

    def matches(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """The rows of the batch that are gone."""
        found = np.zeros(batch.num_rows, np.bool_)
        if not self._rows.num_rows or not batch.num_rows:
            return found
        codes = [self._codes(batch.column(c), self._rows.column(c)) for c in self.columns]
        deleted = set(zip(*(there.tolist() for _, there in codes), strict=True))
        if len(codes) == 1:
            return np.isin(codes[0][0], codes[0][1])
        rows = zip(*(here.tolist() for here, _ in codes), strict=True)
        return np.fromiter((row in deleted for row in rows), np.bool_, batch.num_rows)

    @staticmethod
    def _codes(values: pa.Array, deleted: pa.ChunkedArray) -> tuple[Any, Any]:
        """Numbers that are equal where values are; NULL has one too, and -0.0 is 0.0."""
        here = _plain(values)
        both = pa.chunked_array([here, *(_plain(c).cast(here.type) for c in deleted.chunks)])
        coded = both.combine_chunks().dictionary_encode(null_encoding="encode")
        numbers = coded.indices.to_numpy(zero_copy_only=False)
        return numbers[: len(values)], numbers[len(values) :]


def _plain(values: pa.Array) -> pa.Array:
    if pa.types.is_floating(values.type):
        return pc.add(values, 0.0)
    return values


def read_all(snapshot: SourceSnapshot, columns: Sequence[str] | None = None) -> pa.Table:
    """All live rows of a snapshot in memory, columns under their names."""
    chosen = [c for c in snapshot.columns if columns is None or c.identity in columns]
    identities = [c.identity for c in chosen]
    schema = pa.schema([c.field for c in chosen])
    batches = [
        batch for file in snapshot.files() for _, batch in live_batches(snapshot, file, identities)
    ]
    return pa.Table.from_batches(batches, schema).rename_columns([c.name for c in chosen])
