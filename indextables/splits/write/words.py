"""Writing the directory of words from a finished index; ``lookup.words.directory`` is its format.

What tantivy wrote is read back: its list of the terms of a field, and the numbers of its dictionary
(rows, bytes of lists) in the same order. Both have to agree, the lists have to fill the field's
parts of the files, and each of them is decoded once; a field of which something is not as expected
is left out, and is then asked through tantivy. So is the shared field of whole values where most of
its values are in one row only, as in splits of few rows: its words would take as many bytes as
the values themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.errors import CorruptFileError
from indextables.mapping import RECORDS
from indextables.native._crc32c import crc32c
from indextables.native._postings import check_lists
from indextables.native._words import pack_block, term_numbers
from indextables.splits.format.info import IndexFile
from indextables.splits.lookup.keywords import KEYS
from indextables.splits.lookup.words.directory import (
    CODEC,
    LIST_HEADER,
    MOST_BLOCK_BYTES,
    MOST_SEPARATORS,
    BlockTable,
)
from indextables.splits.read.indexfiles import segment_files

BLOCK_TERMS = 256
MOST_BLOCKS = 1024
LEVEL = 9
UNIQUE_SHARE = 4

Listing = Callable[[str], list[tuple[str, int]]]
"""The terms of a field, each with the number of its rows, in any order."""


class WordsWriter:
    """Makes the members of one split, field by field."""

    def __init__(self, folder: str, files: Mapping[str, IndexFile]) -> None:
        """``folder`` holds the finished index, ``files`` says what its files are made of."""
        self._files = files
        paths = segment_files(folder)
        self._data = {kind: _read(paths[kind]) for kind in ("term", "idx", "pos")}
        self.blocks: list[bytes] = []
        self.tables: list[BlockTable] = []

    def add(self, name: str, record: str, listing: Listing, num_rows: int) -> bool:
        """Add the words of a field; false if it is left out."""
        if name not in self._files["term"].slices:
            return False
        try:
            rows, lists, places = term_numbers(self._slice("term", name))
            if name == KEYS and len(rows) * UNIQUE_SHARE > num_rows + BLOCK_TERMS:
                return False
            field = self._field(name, record, rows, lists, places)
            field.check(listing(name), RECORDS.index(record), num_rows)
        except CorruptFileError:
            return False
        made = field.table(name, RECORDS.index(record))
        if made is None:
            return False
        table, blocks = made
        self.tables.append(table)
        self.blocks += blocks
        return True

    def _field(
        self,
        name: str,
        record: str,
        rows: NDArray[np.uint32],
        lists: NDArray[np.uint64],
        places: NDArray[np.uint64],
    ) -> _Field:
        postings, positions = self._slice("idx", name)[LIST_HEADER:], self._slice("pos", name)
        if int(lists[-1]) != len(postings) or int(places[-1]) != len(positions):
            raise CorruptFileError("the lists of a field do not fill its part of a file")
        if record == "position":
            return _Field(rows, lists, postings, places, positions)
        if len(positions):
            raise CorruptFileError("a field has positions that it should not have")
        return _Field(rows, lists, postings, None, None)

    def _slice(self, kind: str, name: str) -> memoryview:
        part = self._files[kind].slices.get(name)
        whole = memoryview(self._data[kind])
        return whole[:0] if part is None else whole[part.start : part.end]


class _Field:
    """The terms of one field and their lists."""

    def __init__(
        self,
        rows: NDArray[np.uint32],
        lists: NDArray[np.uint64],
        postings: Any,
        places: NDArray[np.uint64] | None,
        positions: Any,
    ) -> None:
        self._rows, self._lists, self._postings = rows, lists, postings
        self._places, self._positions = places, positions
        self._texts, self._ends = np.empty(0, np.uint8), np.zeros(1, np.int64)

    def check(self, listed: list[tuple[str, int]], record: int, num_rows: int) -> None:
        """Take the terms, and decode every list once: what is not understood is not used."""
        self._texts, self._ends, counts = _sorted(listed)
        if len(counts) != len(self._rows) or not bool((counts == self._rows).all()):
            raise CorruptFileError("the terms of a field do not fit its dictionary")
        lasting = (self._positions, self._places)
        check_lists(self._postings, self._lists, self._rows, record, num_rows, *lasting)

    def table(self, name: str, record: int) -> tuple[BlockTable, list[bytes]] | None:
        """The blocks and the table that leads to them; ``None`` if terms are too long for it."""
        blocks: list[bytes] = []
        count = len(self._rows)
        per_block = max(BLOCK_TERMS, -(-count // MOST_BLOCKS))
        made = BlockTable(name, record, count, per_block, [], [], [], [], [], [])
        codec = pa.Codec(CODEC, compression_level=LEVEL)
        for first in range(0, count, per_block):
            stop = min(first + per_block, count)
            plain = pack_block(
                self._texts,
                self._ends,
                first,
                stop,
                self._rows,
                self._lists,
                self._postings,
                self._places,
                self._positions,
            )
            if max(len(plain), self._ends[stop] - self._ends[first]) > MOST_BLOCK_BYTES:
                return None
            packed = codec.compress(plain, asbytes=True)
            blocks.append(packed)
            made.separators.append(self._separator(first))
            made.sizes.append(len(packed))
            made.unpacked.append(len(plain))
            made.lists.append(int(self._lists[stop]))
            made.places.append(0 if self._places is None else int(self._places[stop]))
            made.sums.append(crc32c(packed))
        return None if sum(map(len, made.separators)) > MOST_SEPARATORS else (made, blocks)

    def _separator(self, first: int) -> bytes:
        term = self._term(first)
        if first == 0:
            return term
        before = self._term(first - 1)
        shared = 0
        while shared < len(before) and before[shared] == term[shared]:
            shared += 1
        return term[: shared + 1]

    def _term(self, number: int) -> bytes:
        return bytes(self._texts[self._ends[number] : self._ends[number + 1]].tobytes())


def _sorted(listed: list[tuple[str, int]]) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """(bytes, ends, rows) of terms in the order of their bytes."""
    terms = pa.array([term for term, _ in listed], pa.large_string())
    counts = np.fromiter((count for _, count in listed), np.int64, len(listed))
    order = pc.sort_indices(terms)
    ordered = terms.take(order)
    _, ends, data = ordered.buffers()
    texts = np.frombuffer(data or b"", np.uint8)
    return texts, np.frombuffer(ends, np.int64, len(terms) + 1), counts[order.to_numpy()]


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
