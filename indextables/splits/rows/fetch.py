"""From blocks wanted to blocks in memory, checked.

A call first says which blocks of which streams it needs. All of them, and the dictionary pages not
seen before, are then read together: neighbouring blocks as one range, every range in one request.
Where the whole payload is mapped nothing is read or copied; blocks are pointers into the map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from indextables.errors import CorruptFileError
from indextables.native._crc32c import crc32c
from indextables.native._rows_blocks import BlockSet, Spans, between, locate, place_blocks
from indextables.splits.rows.decode import Fetched, inflate, open_resource
from indextables.splits.rows.layout import Directory, Stream

Array = np.ndarray[Any, Any]
ReadRanges = Callable[[Sequence[tuple[int, int]]], Sequence[bytes | memoryview]]

NO_ROWS = np.zeros(0, np.uint32)
NO_PAGES = np.zeros(0, np.int32)
NO_SEGMENTS = np.zeros(0, np.int64)
ZERO = np.zeros(1, np.int64)


class Column:
    """The blocks of one column: which rows each of them holds (alike in columns of one shape)."""

    def __init__(self, directory: Directory, index: int, chunk_start: Array, blocks: Array) -> None:
        self.chunk_start = chunk_start
        self.shift = np.ascontiguousarray(directory.shift[index])
        self.shape = self.shift.tobytes()
        self.blocks = blocks
        self.first_block = np.zeros(len(blocks) + 1, np.int64)
        np.cumsum(blocks, out=self.first_block[1:])

    @property
    def count(self) -> int:
        """Blocks in all."""
        return int(self.first_block[-1])

    def locate(self, rows: Array) -> tuple[Array, Spans]:
        """Blocks that hold these rows (ascending), and the rows as spans of them."""
        found: tuple[Array, Spans] = locate(rows, self.chunk_start, self.shift, self.first_block)
        return found

    def between(self, start: int, stop: int, gone: Array = NO_ROWS) -> tuple[Array, Spans]:
        """Blocks and spans of the rows ``start .. stop`` of one chunk, without ``gone``."""
        chunk = int(np.searchsorted(self.chunk_start, start, side="right")) - 1
        base, first = int(self.chunk_start[chunk]), int(self.first_block[chunk])
        found: tuple[Array, Spans] = between(start, stop, gone, base, int(self.shift[chunk]), first)
        return found


@dataclass(slots=True)
class Placement:
    """All blocks of one stream: a table of (offset, length, crc, rows), and dictionary pages.

    ``pages`` are the numbers of the pages that the stream uses at all; ``which`` says for each
    block which of them is its own (-1: none).
    """

    stream: Stream
    table: Array
    pages: list[int]
    which: Array


@dataclass(slots=True)
class Want:
    """The blocks of one stream that a call needs."""

    placement: Placement
    ordinals: Array
    table: Array
    which: Array


@dataclass(slots=True)
class Source:
    """The buffers that hold the blocks of one stream, and which of them holds each block."""

    segments: list[bytes | memoryview]
    starts: Array
    segment_of: Array


class Fetcher:
    """Reads blocks and dictionary pages; keeps the pages it has opened."""

    def __init__(
        self,
        read_ranges: ReadRanges,
        directory: Directory,
        streams: list[Stream],
        totals: Array,
        *,
        path: str | None,
        payload: bytes | memoryview | None,
    ) -> None:
        self._read_ranges = read_ranges
        self._directory = directory
        self._path = path
        self._payload = payload
        counts = [int(totals[s.column]) for s in streams]
        self._first_block = [0, *accumulate(counts)]
        self._placements: dict[int, Placement] = {}
        self._pages: dict[int, Any] = {}

    def fetch(self, needs: list[tuple[Stream, Column, Array]]) -> dict[int, Fetched]:
        """Checked blocks of every stream asked for, by stream index."""
        wants = [self._want(*need) for need in needs]
        pages: set[int] = set()
        for want in wants:
            pages |= self._missing_pages(want)
        sources = self._sources(wants, sorted(pages))
        return {
            want.placement.stream.index: self._checked(want, source)
            for want, source in zip(wants, sources, strict=True)
        }

    def _want(self, stream: Stream, column: Column, ordinals: Array) -> Want:
        if stream.index not in self._placements:
            self._placements[stream.index] = self._place(stream, column)
        placement = self._placements[stream.index]
        which = placement.which[ordinals] if placement.pages else NO_PAGES
        return Want(placement, ordinals, placement.table.take(ordinals, 0), which)

    def _missing_pages(self, want: Want) -> set[int]:
        """Pages that the wanted blocks use and that are not open yet."""
        pages = want.placement.pages
        if all(page in self._pages for page in pages):
            return set()
        return {pages[i] for i in set(want.which.tolist()) if i >= 0} - self._pages.keys()

    def _place(self, stream: Stream, column: Column) -> Placement:
        d = self._directory
        blocks = slice(self._first_block[stream.index], self._first_block[stream.index + 1])
        table = place_blocks(
            d.block_length[blocks],
            d.block_crc[blocks],
            d.extent[stream.index],
            d.chunk_rows,
            column.shift,
        )
        resource = d.resource_of[stream.index]
        pages = sorted({page for page in resource.tolist() if page >= 0})
        which = np.array([pages.index(p) if p >= 0 else -1 for p in resource.tolist()], np.int32)
        return Placement(stream, table, pages, np.repeat(which, column.blocks))

    def _sources(self, wants: list[Want], pages: list[int]) -> list[Source]:
        if self._payload is not None:
            for page in pages:
                start, end = self._page_range(page)
                self._open_page(page, memoryview(self._payload)[start:end])
            return [Source([self._payload], ZERO, NO_SEGMENTS)] * len(wants)
        ranges = [self._page_range(page) for page in pages]
        shapes = []
        for want in wants:
            segment_of, starts, ends = merged(want.table[:, 0], want.table[:, 1])
            shapes.append((segment_of, starts, len(ranges), len(ranges) + len(starts)))
            ranges += zip(starts.tolist(), ends.tolist(), strict=True)
        buffers = self._ask(ranges)
        for page, data in zip(pages, buffers, strict=False):
            self._open_page(page, data)
        return [
            Source(buffers[low:high], starts, segment_of)
            for segment_of, starts, low, high in shapes
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
        if crc32c(data) != int(self._directory.resource_crc[page]):
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

    def _checked(self, want: Want, source: Source) -> Fetched:
        placement = want.placement
        try:
            blocks = BlockSet(source.segments, source.starts, source.segment_of, want.table)
            if blocks.bad >= 0:
                raise CorruptFileError(
                    f"checksum of block {int(want.ordinals[blocks.bad])} differs",
                    offset=int(want.table[blocks.bad, 0]),
                )
            inflate(blocks)
        except CorruptFileError as error:
            raise CorruptFileError(
                f"column '{placement.stream.name}': {error.reason}",
                offset=error.offset,
                path=self._path,
            ) from error
        return Fetched(blocks, [self._pages.get(page) for page in placement.pages], want.which)


def merged(offset: Array, length: Array) -> tuple[Array, Array, Array]:
    """Ranges that cover the blocks, neighbours joined: range of each block, starts, ends."""
    if not len(offset):
        return np.zeros(0, np.int64), offset, offset
    new = np.ones(len(offset), bool)
    new[1:] = offset[1:] != offset[:-1] + length[:-1]
    segment_of = np.cumsum(new) - 1
    starts = np.ascontiguousarray(offset[new])
    lasts = np.append(np.flatnonzero(new)[1:] - 1, len(offset) - 1)
    return segment_of, starts, offset[lasts] + length[lasts]
