"""Reading words: blocks, then lists, each in one trip however many terms are asked.

A look-up finds the block of every term in the directory, which came with the footer, and fetches
all blocks together. On an object store it fetches the lists of a block's terms with it where they
are short, so that a rare word costs one trip; what is still missing then comes in a second one.
What was unpacked is kept for the next query, within a number of bytes for the whole process.

Nothing is read unchecked: blocks and pieces of lists have checksums, a block has to cover exactly
the lists that the directory gives it, the directory exactly the field's parts of tantivy's files,
and a list has to have as many rows as its block says. Any difference is a ``CorruptFileError``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.errors import CorruptFileError
from indextables.lru import LRU
from indextables.native._colkeys import TextTable
from indextables.native._crc32c import crc32c
from indextables.native._postings import decode_positions, decode_rows
from indextables.native._words import unpack_block
from indextables.splits.format import members
from indextables.splits.format.info import SplitInfo
from indextables.splits.lookup.words.directory import (
    CODEC,
    LIST_HEADER,
    MOST_BLOCK_BYTES,
    Block,
    FieldBlocks,
    Piece,
    parse_directory,
)
from indextables.splits.read.source import SplitSource
from indextables.storage.machine import refuse_to_judge

Rows = NDArray[np.uint32]
Wanted = tuple[str, bytes]
"""(field name, term)."""

AHEAD_BYTES = 64 << 10
"""So many bytes of lists are fetched before it is known which of them are needed."""
KEPT_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows of a term, and its positions in them."""

    rows: Rows
    starts: NDArray[np.int64]
    positions: NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes + self.starts.nbytes + self.positions.nbytes)


class _Fetched:
    """Byte ranges of the split that are here already."""

    def __init__(self, source: SplitSource) -> None:
        self._source = source
        self._parts: list[tuple[int, int, Any]] = []

    def bring(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch, in one trip, what is not here."""
        absent = [r for r in dict.fromkeys(ranges) if self._find(*r) is None]
        if absent:
            found = self._source.ranges(absent)
            self._parts += [(*r, memoryview(raw)) for r, raw in zip(absent, found, strict=True)]

    def get(self, start: int, end: int) -> Any:
        found = self._find(start, end)
        assert found is not None
        return found

    def _find(self, start: int, end: int) -> Any:
        for low, high, raw in self._parts:
            if low <= start and end <= high:
                return raw[start - low : end - low]
        return None


class Words:
    """The words of one split; safe to share between threads."""

    def __init__(
        self, source: SplitSource, info: SplitInfo, key: Hashable, kept: LRU[Any, Any]
    ) -> None:
        """``kept`` is shared by all splits; ``key`` names this one in it."""
        self._source = source
        self._info = info
        self._key = key
        self._kept = kept
        self.fields = parse_directory(source.member(members.WORDS_DIRECTORY), source.path)
        for field in self.fields.values():
            self._check(field)

    def _check(self, field: FieldBlocks) -> None:
        """The lists of a field fill its parts of tantivy's files exactly."""
        start, end = self._source.range_of(members.WORDS)
        lists, places = (self._slice(kind, field.name) for kind in ("idx", "pos"))
        fits = field.lists[-1] + LIST_HEADER == lists[1] - lists[0]
        fits &= not field.has_positions or field.places[-1] == places[1] - places[0]
        if not fits or field.starts[-1] > end - start:
            raise self._source.corrupt(f"the words of field '{field.name}' do not fit its index")

    def _slice(self, extension: str, name: str) -> tuple[int, int]:
        """Where a field's part of one of tantivy's files lies in the split."""
        item = self._info.index_files[extension]
        found = item.slices.get(name)
        if found is None:
            return 0, 0
        start, end = self._source.range_of(item.member)
        if end - start != item.size:
            raise self._source.corrupt(f"member '{item.member}' has a wrong size")
        return start + found.start, start + found.end

    # -- blocks -----------------------------------------------------------------------------------

    def terms(self, name: str, prefix: str) -> pa.Array:
        """The terms of a field that start with a prefix, in the order of their bytes."""
        field, first = self.fields[name], prefix.encode()
        numbers = field.blocks_between(first, _after(first)) if field.terms else range(0)
        blocks = self._blocks(_Fetched(self._source), [(name, n) for n in numbers])
        listed = [blocks[name, n].listed() for n in numbers]
        found = pa.concat_arrays(listed) if listed else pa.array([], pa.string())
        if not prefix or not len(found):
            return found
        table = TextTable(*_as_table(found))
        low, after = table.lower(first), _after(first)
        return found.slice(low, (len(found) if after is None else table.lower(after)) - low)

    def frequencies(self, wanted: Iterable[Wanted]) -> dict[Wanted, int]:
        """In how many rows each term is; terms that the split does not have are left out."""
        found = self._find(_Fetched(self._source), wanted)
        return {one: place.frequency for one, place in found.items()}

    def _find(
        self, fetched: _Fetched, wanted: Iterable[Wanted], ahead: Sequence[str] = ()
    ) -> dict[Wanted, _Place]:
        """Where the terms are that the split has.

        ``ahead`` are the files whose short lists are fetched with the blocks.
        """
        numbers = {}
        for name, term in wanted:
            number = self.fields[name].block_of(term)
            if number is not None:
                numbers[name, term] = number
        asked = {(name, number) for (name, _), number in numbers.items()}
        blocks = self._blocks(fetched, sorted(asked), ahead)
        found = {}
        for (name, term), number in numbers.items():
            block = blocks[name, number]
            at = block.find(term)
            if at is not None:
                found[name, term] = _Place(self.fields[name], number, block, at)
        return found

    def _blocks(
        self, fetched: _Fetched, asked: Sequence[tuple[str, int]], ahead: Sequence[str] = ()
    ) -> dict[tuple[str, int], Block]:
        base, _ = self._source.range_of(members.WORDS)
        missing: dict[tuple[str, int], tuple[int, int]] = {}
        for name, number in asked:
            if (self._key, name, number) not in self._kept:
                starts = self.fields[name].starts
                missing[name, number] = (
                    base + int(starts[number]),
                    base + int(starts[number + 1]),
                )
        near = [span for one in missing for kind in ahead for span in self._near(kind, *one)]
        fetched.bring([*missing.values(), *near])

        def load(one: tuple[str, int]) -> Callable[[], Block]:
            return lambda: self._unpack(fetched, one, base)

        return {one: self._kept.load((self._key, *one), load(one)) for one in asked}

    def _near(self, kind: str, name: str, number: int) -> Iterable[tuple[int, int]]:
        """The lists of a block, where they are so short that they come with it."""
        if self._source.is_mapped:
            return ()
        low, high = (self._start(kind, name, number + k) for k in (0, 1))
        return [(low, high)] if 0 < high - low <= AHEAD_BYTES else ()

    def _start(self, kind: str, name: str, number: int) -> int:
        """Where the lists (``idx``) or positions (``pos``) of a block begin in the split."""
        field, (start, _) = self.fields[name], self._slice(kind, name)
        if kind == "pos":
            return start + int(field.places[number])
        return start + LIST_HEADER + int(field.lists[number])

    def _unpack(self, fetched: _Fetched, one: tuple[str, int], base: int) -> Block:
        name, number = one
        field = self.fields[name]
        span = (base + int(field.starts[number]), base + int(field.starts[number + 1]))
        fetched.bring([span])
        raw, size = fetched.get(*span), int(field.unpacked[number])
        if crc32c(raw) != field.sums[number]:
            raise self._source.corrupt("a block of words has a wrong checksum", offset=span[0])
        if size > MOST_BLOCK_BYTES:
            raise self._source.corrupt("a block of words is too large", offset=span[0])
        try:
            plain = pa.decompress(raw, size, codec=CODEC, asbytes=True)
            columns = unpack_block(
                plain, field.terms_of(number), field.has_positions, MOST_BLOCK_BYTES
            )
        except (pa.ArrowException, OSError, CorruptFileError) as error:
            refuse_to_judge(error, path=self._source.path)
            told = f"a block of words does not parse ({error})"
            raise self._source.corrupt(told, offset=span[0]) from error
        block = Block.of(columns)
        fits = int(block.lists[-1]) == field.lists[number + 1] - field.lists[number]
        if block.places is not None:
            fits &= int(block.places[-1]) == field.places[number + 1] - field.places[number]
        if not fits:
            raise self._source.corrupt("a block of words does not fit its lists", offset=span[0])
        return block

    # -- lists ------------------------------------------------------------------------------------

    def lists(self, wanted: Iterable[Wanted]) -> dict[Wanted, Rows]:
        """The rows of each term, ascending; terms that the split does not have are left out."""
        return self._load("rows", wanted)

    def places(self, wanted: Iterable[Wanted]) -> dict[Wanted, Placed]:
        """Rows and positions of each term of fields that have positions."""
        return self._load("places", wanted)

    def _load(self, kind: str, wanted: Iterable[Wanted]) -> dict[Wanted, Any]:
        found: dict[Wanted, Any] = {}
        absent = []
        for one in dict.fromkeys(wanted):
            held = self._kept.get((self._key, kind, *one))
            if held is None:
                absent.append(one)
            else:
                found[one] = held
        fetched = _Fetched(self._source)
        places = self._find(fetched, absent, ahead=("idx",) if kind == "rows" else ("idx", "pos"))
        parts = {one: self._parts(kind, place) for one, place in places.items()}
        fetched.bring((part.start, part.end) for each in parts.values() for part in each)
        for one, place in places.items():
            found[one] = self._decode(fetched, place, parts[one])
            self._kept.put((self._key, kind, *one), found[one])
        return found

    def _parts(self, kind: str, place: _Place) -> list[_Part]:
        """The bytes that hold a term's rows, and those that hold its positions."""
        name, number = place.field.name, place.number
        start = self._start("idx", name, number)
        found = [_Part(start, place.block.piece_of(place.term, places=False))]
        if kind == "places":
            start = self._start("pos", name, number)
            found.append(_Part(start, place.block.piece_of(place.term, places=True)))
        return found

    def _decode(self, fetched: _Fetched, place: _Place, parts: list[_Part]) -> Any:
        raws = []
        for part in parts:
            raw = fetched.get(part.start, part.end)
            if crc32c(raw) != part.piece.crc:
                told = "the rows of a word have a wrong checksum"
                raise self._source.corrupt(told, offset=part.start)
            raws.append(part.piece.cut(raw))
        try:
            often, total = place.frequency, self._info.num_rows
            if len(raws) == 2:
                return Placed(*decode_positions(raws[0], raws[1], often, total))
            return decode_rows(raws[0], often, place.field.record, total)
        except CorruptFileError as error:
            told = f"the rows of a word do not parse ({error})"
            raise self._source.corrupt(told, offset=parts[0].start) from error


@dataclass(frozen=True, slots=True)
class _Place:
    """A term in its block."""

    field: FieldBlocks
    number: int
    block: Block
    term: int

    @property
    def frequency(self) -> int:
        return int(self.block.rows[self.term])


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of lists; ``base`` is where the lists of its block begin in the split."""

    base: int
    piece: Piece

    @property
    def start(self) -> int:
        return self.base + self.piece.span[0]

    @property
    def end(self) -> int:
        return self.base + self.piece.span[1]


def _as_table(terms: pa.Array) -> tuple[Any, NDArray[np.int64]]:
    """The bytes of a string array without an offset, and the ends of its strings."""
    _, ends, data = terms.buffers()
    texts = np.frombuffer(data or b"", np.uint8)
    return texts, np.frombuffer(ends, np.int32, len(terms) + 1).astype(np.int64)


def _after(prefix: bytes) -> bytes | None:
    """The least string greater than all that start so; ``None`` if there is none."""
    cut = prefix.rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else None
