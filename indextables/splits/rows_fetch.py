"""From blocks wanted to blocks in memory, checked.

A call first says which blocks of which streams it needs. All of them, and the dictionary pages not
seen before, are then read together: neighbouring blocks as one range, every range in one request.
Where the whole payload is mapped nothing is read or copied; blocks are pointers into the map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from indextables.errors import CorruptFileError
from indextables.native._rows_blocks import BlockSet, Spans, checksum, locate
from indextables.splits.rows_decode import Fetched, inflate, open_resource
from indextables.splits.rows_layout import Directory, Stream, stored_streams, streams_of

Array = np.ndarray[Any, Any]
ReadRanges = Callable[[Sequence[tuple[int, int]]], Sequence[bytes | memoryview]]


class Column:
    """The blocks of one column: which rows each of them holds."""

    def __init__(self, directory: Directory, index: int, chunk_start: Array) -> None:
        self.chunk_start = chunk_start
        self.shift = np.ascontiguousarray(directory.shift[index])
        self.blocks = directory.blocks_per_chunk[index]
        self.first_block = np.zeros(len(self.blocks) + 1, np.int64)
        np.cumsum(self.blocks, out=self.first_block[1:])
        self.rows = self._rows_of_blocks()

    def _rows_of_blocks(self) -> Array:
        size = np.repeat(np.int64(1) << self.shift.astype(np.int64), self.blocks)
        within = np.arange(len(size)) - np.repeat(self.first_block[:-1], self.blocks)
        left = np.repeat(np.diff(self.chunk_start), self.blocks) - within * size
        return np.minimum(size, left).astype(np.int64)

    def locate(self, rows: Array) -> tuple[Array, Spans]:
        """Blocks that hold these rows (ascending), and the rows as spans of them."""
        found: tuple[Array, Spans] = locate(rows, self.chunk_start, self.shift, self.first_block)
        return found

    def between(self, start: int, stop: int) -> tuple[Array, Spans]:
        """Blocks and spans of the rows ``start .. stop``, which lie in one chunk."""
        chunk = int(np.searchsorted(self.chunk_start, start, side="right")) - 1
        shift, base = int(self.shift[chunk]), int(self.chunk_start[chunk])
        first, last = (start - base) >> shift, (stop - 1 - base) >> shift
        blocks = np.arange(first, last + 1, dtype=np.int64)
        begins = base + (blocks << shift)
        lows = np.maximum(start - begins, 0).astype(np.uint32)
        highs = np.minimum(stop - begins, 1 << shift).astype(np.uint32)
        spans = Spans(np.arange(len(blocks), dtype=np.int32), lows, highs)
        return blocks + self.first_block[chunk], spans


@dataclass(slots=True)
class Placement:
    """Blocks of one stream: where they are, their checksums, rows and dictionary pages."""

    stream: Stream
    ordinal: Array
    offset: Array
    length: Array
    crc: Array
    rows: Array
    resource: Array

    def pick(self, ordinals: Array) -> Placement:
        return Placement(
            self.stream,
            ordinals,
            self.offset[ordinals],
            self.length[ordinals],
            self.crc[ordinals],
            self.rows[ordinals],
            self.resource[ordinals],
        )


@dataclass(slots=True)
class Source:
    """Where the blocks of one stream lie in the buffers that were read."""

    segments: list[bytes | memoryview]
    segment_of: Array
    offset: Array


class Fetcher:
    """Reads blocks and dictionary pages; keeps the pages it has opened."""

    def __init__(
        self,
        read_ranges: ReadRanges,
        directory: Directory,
        *,
        path: str | None,
        payload: bytes | memoryview | None,
    ) -> None:
        self._read_ranges = read_ranges
        self._directory = directory
        self._path = path
        self._payload = payload
        streams = stored_streams(streams_of(directory.schema))
        totals = directory.blocks_per_chunk.sum(axis=1)
        self._first_block = np.cumsum([0, *(int(totals[s.column]) for s in streams)])
        self._placements: dict[int, Placement] = {}
        self._pages: dict[int, Any] = {}

    def fetch(self, needs: list[tuple[Stream, Column, Array]]) -> dict[int, Fetched]:
        """Checked blocks of every stream asked for, by stream index."""
        picked = [self._placement(s, column).pick(blocks) for s, column, blocks in needs]
        pages = {int(p) for want in picked for p in np.unique(want.resource) if p >= 0}
        sources = self._sources(picked, sorted(pages - self._pages.keys()))
        return {
            want.stream.index: self._checked(want, source)
            for want, source in zip(picked, sources, strict=True)
        }

    def _placement(self, stream: Stream, column: Column) -> Placement:
        if stream.index not in self._placements:
            self._placements[stream.index] = self._place(stream, column)
        return self._placements[stream.index]

    def _place(self, stream: Stream, column: Column) -> Placement:
        d = self._directory
        before = int(self._first_block[stream.index])
        count = len(column.rows)
        length = d.block_length[before : before + count].astype(np.int64)
        ends = np.cumsum(length)
        starts = ends - length
        extent = d.extent[stream.index].astype(np.int64)
        heads = starts[column.first_block[:-1]] if count else starts[:0]
        offset = starts + np.repeat(extent - heads, column.blocks)
        crc = d.block_crc[before : before + count].astype(np.uint32)
        resource = np.repeat(d.resource_of[stream.index].astype(np.int32), column.blocks)
        ordinal = np.arange(count, dtype=np.int64)
        return Placement(stream, ordinal, offset, length, crc, column.rows, resource)

    def _sources(self, picked: list[Placement], pages: list[int]) -> list[Source]:
        if self._payload is not None:
            for page in pages:
                start, end = self._page_range(page)
                self._open_page(page, memoryview(self._payload)[start:end])
            segments = [self._payload]
            return [Source(segments, np.zeros(len(w.offset), np.int64), w.offset) for w in picked]
        ranges = [self._page_range(page) for page in pages]
        shapes = []
        for want in picked:
            segment_of, starts, ends = merged(want.offset, want.length)
            shapes.append((segment_of, starts, len(ranges), len(ranges) + len(starts)))
            ranges += zip(starts.tolist(), ends.tolist(), strict=True)
        buffers = self._ask(ranges)
        for page, data in zip(pages, buffers, strict=False):
            self._open_page(page, data)
        return [
            Source(buffers[low:high], segment_of, want.offset - starts[segment_of])
            for want, (segment_of, starts, low, high) in zip(picked, shapes, strict=True)
        ]

    def _ask(self, ranges: list[tuple[int, int]]) -> list[bytes | memoryview]:
        buffers = list(self._read_ranges(ranges)) if ranges else []
        for (start, end), data in zip(ranges, buffers, strict=True):
            if len(data) != end - start:
                raise CorruptFileError(
                    f"rows [{start}, {end}) gave {len(data)} of {end - start} bytes",
                    offset=start,
                    path=self._path,
                )
        return buffers

    def _page_range(self, page: int) -> tuple[int, int]:
        start = int(self._directory.resource_start[page])
        return start, start + int(self._directory.resource_length[page])

    def _open_page(self, page: int, buffer: bytes | memoryview) -> None:
        data = memoryview(buffer).cast("B")
        if checksum(data) != int(self._directory.resource_crc[page]):
            raise CorruptFileError(
                f"checksum of dictionary page {page} differs",
                offset=self._page_range(page)[0],
                path=self._path,
            )
        try:
            self._pages[page] = open_resource(data)
        except CorruptFileError as error:
            raise CorruptFileError(
                f"dictionary page {page}: {error.reason}", path=self._path
            ) from error

    def _checked(self, want: Placement, source: Source) -> Fetched:
        name = want.stream.name
        try:
            blocks = BlockSet(
                source.segments,
                source.segment_of,
                source.offset,
                want.length,
                want.offset,
                want.rows,
            )
            bad = blocks.first_bad(want.crc)
            if bad >= 0:
                raise CorruptFileError(
                    f"checksum of block {int(want.ordinal[bad])} differs",
                    offset=int(want.offset[bad]),
                )
            inflate(blocks)
        except CorruptFileError as error:
            raise CorruptFileError(
                f"column '{name}': {error.reason}", offset=error.offset, path=self._path
            ) from error
        used, which = np.unique(want.resource, return_inverse=True)
        pages = [self._pages.get(int(page)) for page in used]
        return Fetched(blocks, pages, which.astype(np.int32))


def merged(offset: Array, length: Array) -> tuple[Array, Array, Array]:
    """Ranges that cover the blocks, neighbours joined: range of each block, starts, ends."""
    if not len(offset):
        return np.zeros(0, np.int64), offset, offset
    new = np.ones(len(offset), bool)
    new[1:] = offset[1:] != offset[:-1] + length[:-1]
    segment_of = np.cumsum(new) - 1
    starts = offset[new]
    lasts = np.append(np.flatnonzero(new)[1:] - 1, len(offset) - 1)
    return segment_of, starts, offset[lasts] + length[lasts]
