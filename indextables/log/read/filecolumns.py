"""The live entries of some segments as columns: joined when first asked for, then kept.

Columns have one value per live file, in one order (segments in turn); entries behind a mask are
left out. No call copies a column that is already there. ``derive`` is for what is costly to
compute per file: results are remembered per segment, so that a snapshot which grew out of this one
computes only its new files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.lazy import lazily
from indextables.log.actions import AddFile, DeletionVector
from indextables.log.read.columns import (
    UNKNOWN,
    Int64s,
    Mask,
    Segment,
    StringColumn,
    hash_paths,
    partition_text,
)
from indextables.log.read.facts import Fact, Facts

K = TypeVar("K")
LIVE_ROWS: Fact[int, Int64s] = Fact()
INTS: Fact[str, Int64s] = Fact()
TEXTS: Fact[str, StringColumn | None] = Fact()
MAP_TEXTS: Fact[tuple[str, str], StringColumn | None] = Fact()
PARTITION_CODES: Fact[str, tuple[npt.NDArray[np.int32], list[str | None]]] = Fact()
DELETED: Fact[None, Int64s] = Fact()
COUNTS: Fact[tuple[str, str], Int64s | None] = Fact()


class FileColumns:
    """Columns over the live entries of segments; safe to share between threads."""

    def __init__(
        self,
        segments: Sequence[Segment] = (),
        live: Sequence[Mask | None] | None = None,
        load: Callable[[], tuple[Sequence[Segment], Sequence[Mask | None]]] | None = None,
    ) -> None:
        self.facts = Facts()
        self._load = load
        self._reading = threading.Lock()
        self._columns: tuple[tuple[Segment, ...], tuple[Mask | None, ...]] | None = None
        if load is None:
            masks = (None,) * len(segments) if live is None else tuple(live)
            self._columns = tuple(segments), masks

    @property
    def is_unread(self) -> bool:
        """Are the files still to be read?"""
        return self._columns is None

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self._read()[0]

    @property
    def live(self) -> tuple[Mask | None, ...]:
        return self._read()[1]

    def _read(self) -> tuple[tuple[Segment, ...], tuple[Mask | None, ...]]:
        found = self._columns
        if found is None:
            with self._reading:
                found = self._columns
                if found is None:
                    assert self._load is not None
                    segments, live = self._load()
                    found = self._columns = tuple(segments), tuple(live)
        return found

    @lazily
    def num_files(self) -> int:
        return sum(self.live_counts)

    # -- files ----------------------------------------------------------------------------------

    def file(self, i: int) -> AddFile:
        segment, row = self._locate(i)
        return segment.add(row)

    def path(self, i: int) -> str:
        segment, row = self._locate(i)
        return segment.path(row)

    def index_of(self, path: str) -> int | None:
        """The number of the live file with this path."""
        found = int(self.indices_of([path])[0])
        return None if found < 0 else found

    def indices_of(self, paths: Sequence[str]) -> Int64s:
        """The numbers of the live files with these paths, -1 where there is none."""
        found = np.full(len(paths), -1, np.int64)
        hashes = hash_paths(paths)
        for k, segment in enumerate(self.segments):
            rows = segment.find(paths, hashes)
            hit = np.flatnonzero(rows >= 0)
            if not len(hit):
                continue
            mask, start = self.live[k], self._starts[k]
            if mask is None:
                found[hit] = start + rows[hit]
                continue
            hit = hit[mask[rows[hit]]]
            found[hit] = start + np.searchsorted(self._live_rows(k), rows[hit])
        return found

    def _locate(self, i: int) -> tuple[Segment, int]:
        n = self.num_files
        if not -n <= i < n:
            raise IndexError(f"file {i} of {n}")
        i %= n
        k = int(np.searchsorted(self._starts, i, side="right")) - 1
        within = i - int(self._starts[k])
        row = within if self.live[k] is None else int(self._live_rows(k)[within])
        return self.segments[k], row

    @lazily
    def live_counts(self) -> list[int]:
        """Live files of each segment."""
        return [
            s.n if mask is None else int(np.count_nonzero(mask))
            for s, mask in zip(self.segments, self.live, strict=True)
        ]

    @lazily
    def _starts(self) -> Int64s:
        """Where each segment's live files start; empty segments share their start."""
        return np.cumsum([0, *self.live_counts], dtype=np.int64)[:-1]

    def _live_rows(self, k: int) -> Int64s:
        mask = self.live[k]
        assert mask is not None
        return LIVE_ROWS.of(self, k, lambda: np.flatnonzero(mask))

    # -- columns --------------------------------------------------------------------------------

    @lazily
    def paths(self) -> Any:
        """Paths as a ``pyarrow.LargeStringArray``."""
        column = self._text_column("path")
        return pa.array([], pa.large_string()) if column is None else column.to_arrow()

    @property
    def sizes(self) -> Int64s:
        return self.int_column("size")

    @property
    def num_records(self) -> Int64s:
        return self.int_column("numRecords")

    @property
    def num_deleted(self) -> Int64s:
        """How many rows of each file its deletion vector takes away."""
        return self.derive(DELETED, None, _deleted_of)

    @lazily
    def live_records(self) -> Int64s:
        """Rows that each file has left, ``UNKNOWN`` (-1) where the log does not say."""
        rows, gone = self.num_records, self.num_deleted
        return np.where(rows == UNKNOWN, UNKNOWN, rows - gone) if gone.any() else rows

    def vectors(self, numbers: Sequence[int]) -> list[DeletionVector | None]:
        """The deletion vectors of some files."""
        column = self._text_column("deletionVector")
        if column is None:
            return [None] * len(numbers)
        texts = (column[i] for i in numbers)
        return [None if text is None else DeletionVector.from_text(text) for text in texts]

    @property
    def vector_files(self) -> list[str]:
        """The files that hold deletion vectors of live files."""
        column = self._text_column("deletionVector")
        held = [] if column is None else np.flatnonzero(column.valid).tolist()
        paths = (None if v is None else v.path for v in self.vectors(held))
        return list(dict.fromkeys(path for path in paths if path is not None))

    @property
    def modification_times(self) -> Int64s:
        return self.int_column("modificationTime")

    @property
    def footer_starts(self) -> Int64s:
        return self.int_column("footerStartOffset")

    @property
    def footer_ends(self) -> Int64s:
        return self.int_column("footerEndOffset")

    def int_column(self, name: str) -> Int64s:
        """Any integer field by its name in the log; ``UNKNOWN`` (-1) where absent."""
        return INTS.of(self, name, lambda: self._join_arrays([s.ints(name) for s in self.segments]))

    def partition_codes(self, column: str) -> tuple[npt.NDArray[np.int32], list[str | None]]:
        """Partition values, dictionary-coded: codes and the distinct texts (``None`` is NULL)."""
        return PARTITION_CODES.of(self, column, lambda: self._partition_codes(column))

    def stat_column(self, which: str, column: str) -> StringColumn | None:
        """Minimum or maximum texts of a column; ``None`` when no file has one."""
        return self._map_texts({"min": "minValues", "max": "maxValues"}[which], column)

    def stats_counts(self, kind: str, column: str) -> Int64s | None:
        """``nullCount`` or ``nanCount`` of a column, -1 where a file does not say."""
        return COUNTS.of(self, (kind, column), lambda: self._stats_counts(kind, column))

    @lazily
    def stat_columns(self) -> frozenset[str]:
        """Columns that have a minimum or a maximum in some file."""
        return frozenset(
            key
            for segment in self.segments
            for name in ("minValues", "maxValues")
            for key in segment.map_keys(name)
        )

    def map_keys(self, name: str) -> list[str]:
        """The keys that occur in a map field (``partitionValues``, ``minValues``, ...)."""
        return list(dict.fromkeys(key for s in self.segments for key in s.map_keys(name)))

    def map_column(self, name: str, key: str) -> StringColumn:
        """One key of a map field as texts."""
        found = self._map_texts(name, key)
        return StringColumn.nulls(self.num_files) if found is None else found

    def map_present(self, name: str) -> npt.NDArray[np.uint8]:
        """Which files have a map field at all."""
        return self._join_arrays([s.map_present(name) for s in self.segments])

    def raw_lists(self, name: str) -> StringColumn:
        """A list field in its Avro form."""
        found = self._join_texts(lambda s: s.raw_lists(name))
        return StringColumn.nulls(self.num_files) if found is None else found

    def derive(
        self,
        fact: Fact[K, npt.NDArray[Any]],
        key: K,
        build: Callable[[Segment], npt.NDArray[Any]],
    ) -> npt.NDArray[Any]:
        """``build`` of every segment, joined over the live files; remembered per segment."""

        def joined() -> npt.NDArray[Any]:
            parts = [fact.of(s, key, lambda s=s: build(s)) for s in self.segments]  # type: ignore[misc]
            return self._join_arrays(parts)

        return fact.of(self, key, joined)

    # -- joining --------------------------------------------------------------------------------

    def _join_arrays(self, arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        parts = [a if mask is None else a[mask] for a, mask in zip(arrays, self.live, strict=True)]
        if not parts:
            return np.zeros(0, np.int64)
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
        joined.flags.writeable = False
        return joined

    def _join_texts(self, column: Callable[[Segment], StringColumn | None]) -> StringColumn | None:
        parts = [column(segment) for segment in self.segments]
        if all(part is None for part in parts):
            return None
        whole = [
            StringColumn.nulls(segment.n) if part is None else part
            for part, segment in zip(parts, self.segments, strict=True)
        ]
        masked = [
            part if mask is None else part.take(self._live_rows(k))
            for k, (part, mask) in enumerate(zip(whole, self.live, strict=True))
        ]
        return StringColumn.concat(masked)

    def _text_column(self, name: str) -> StringColumn | None:
        return TEXTS.of(self, name, lambda: self._join_texts(lambda s: s.texts(name)))

    def _map_texts(self, name: str, key: str) -> StringColumn | None:
        return MAP_TEXTS.of(
            self, (name, key), lambda: self._join_texts(lambda s: s.map_texts(name, key))
        )

    def distinct(self, name: str) -> list[str]:
        """The texts of a field that occur in the segments, dead entries included."""
        return list(dict.fromkeys(text for s in self.segments for text in s.distinct(name)))

    def text_column(self, name: str) -> StringColumn:
        """Any text field by its name in the log."""
        found = self._text_column(name)
        return StringColumn.nulls(self.num_files) if found is None else found

    def _stats_counts(self, kind: str, column: str) -> Int64s | None:
        parts = [segment.counts(kind, column) for segment in self.segments]
        if all(part is None for part in parts):
            return None
        return self._join_arrays(
            [
                np.full(segment.n, UNKNOWN, np.int64) if part is None else part
                for part, segment in zip(parts, self.segments, strict=True)
            ]
        )

    def _partition_codes(self, column: str) -> tuple[npt.NDArray[np.int32], list[str | None]]:
        numbers: dict[str | None, int] = {}
        arrays = []
        for segment in self.segments:
            codes, texts = segment.map_codes("partitionValues", column)
            known = [numbers.setdefault(partition_text(t), len(numbers)) for t in texts]
            arrays.append(np.array(known, np.int32)[codes])
        joined = self._join_arrays(arrays) if arrays else np.zeros(0, np.int32)
        return joined, list(numbers)


def _deleted_of(segment: Segment) -> Int64s:
    found = np.zeros(segment.n, np.int64)
    texts = segment.texts("deletionVector")
    if texts is not None:
        for row in np.flatnonzero(texts.valid).tolist():
            found[row] = DeletionVector.from_text(texts[row] or "").cardinality
    return found
