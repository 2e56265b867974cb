"""The directory of words: which block holds a term, and where its lists lie.

tantivy finds a term by walking through a dictionary that has to be there as a whole; on an object
store that is half a megabyte to learn a few bytes. So a split has two members more. ``words.bin``
holds the terms of the fields, sorted, in blocks of 256 (more in very large dictionaries), each
compressed alone; a block says of every term how many rows have it and how long its lists in
tantivy's own files are (``native._words``). ``words.dir`` lies near the footer and leads to the
blocks:

    "ITXWORD1"  u32 fields  u32 bytes of the rest, unpacked | the rest, zstd:
    for each field:
        u16 bytes of the name  u8 record  u8 0  u32 blocks b  u64 terms  u32 terms of a block
        u64 where its blocks start in words.bin | the name
        u32 end of the separator[b]   u32 bytes of the block[b]   u32 bytes unpacked[b]
        u64 end of its lists[b]       u64 end of its positions[b] u32 CRC-32C of the block[b]
        the separators

``record`` is 0 for rows alone, 1 with frequencies, 2 with positions. The separator of a block is as
much of its first term as differs from the term before. Ends of lists are counted in the field's
part of tantivy's ``.idx`` file from where the first list begins, ends of positions in ``.pos``.

A split without these members, or a field that is not in them, is asked through tantivy.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.errors import CorruptFileError
from indextables.mapping import RECORDS
from indextables.native._colkeys import TextTable
from indextables.storage.machine import refuse_to_judge

LIST_HEADER = 8
"""Bytes before the first list of a field in ``.idx``: the number of its tokens."""
_MAGIC = b"ITXWORD1"
_HEADER = struct.Struct("<8sII")
_FIELD = struct.Struct("<HBBIQIQ")
CODEC = "zstd"
MOST_BLOCK_BYTES = 8 << 20
"""What the terms of a block may take, packed or not; a field that needs more is left out."""
MOST_SEPARATORS = 1 << 20
_MOST = 16 << 20
_MOST_TERMS = 1 << 20


@dataclass(frozen=True, slots=True)
class FieldBlocks:
    """The blocks of one field."""

    name: str
    record: int
    terms: int
    per_block: int
    separators: TextTable
    starts: NDArray[np.int64]
    """Where blocks start in ``words.bin``, and the end of the last."""
    unpacked: NDArray[np.uint32]
    lists: NDArray[np.int64]
    """Where the lists of blocks start in the field's part of ``.idx``, and their end."""
    places: NDArray[np.int64]
    """The same for positions in ``.pos``."""
    sums: NDArray[np.uint32]

    @property
    def has_positions(self) -> bool:
        return self.record == RECORDS.index("position")

    def __len__(self) -> int:
        return len(self.sums)

    def block_of(self, term: bytes) -> int | None:
        """The block that holds a term if any does; ``None``: it sorts before all of them."""
        at = self.separators.upper(term) - 1
        return None if at < 0 else at

    def blocks_between(self, first: bytes, after: bytes | None) -> range:
        """The blocks that may hold terms from ``first`` to before ``after``."""
        start = max(self.separators.upper(first) - 1, 0)
        return range(start, len(self) if after is None else self.separators.lower(after))

    def terms_of(self, block: int) -> int:
        return min(self.per_block, self.terms - block * self.per_block)


@dataclass(frozen=True, slots=True)
class BlockTable:
    """The columns of the blocks of one field that is being written; see the module."""

    name: str
    record: int
    terms: int
    per_block: int
    separators: list[bytes]
    sizes: list[int]
    unpacked: list[int]
    lists: list[int]
    places: list[int]
    sums: list[int]


def pack_directory(fields: Sequence[BlockTable]) -> bytes:
    """The member; the blocks of the fields lie in ``words.bin`` in the same order."""
    parts = []
    start = 0
    for field in fields:
        name = field.name.encode()
        numbers = (len(field.sums), field.terms, field.per_block, start)
        parts.append(_FIELD.pack(len(name), field.record, 0, *numbers) + name)
        ends = np.cumsum([len(text) for text in field.separators])
        parts += [np.array(c, "<u4").tobytes() for c in (ends, field.sizes, field.unpacked)]
        parts += [np.array(c, "<u8").tobytes() for c in (field.lists, field.places)]
        parts += [np.array(field.sums, "<u4").tobytes(), *field.separators]
        start += sum(field.sizes)
    plain = b"".join(parts)
    packed: bytes = pa.compress(plain, codec=CODEC, asbytes=True)
    return _HEADER.pack(_MAGIC, len(fields), len(plain)) + packed


def parse_directory(raw: bytes, path: str) -> dict[str, FieldBlocks]:
    """The fields of a member that passed its checksum."""
    try:
        magic, count, size = _HEADER.unpack_from(raw)
        if magic != _MAGIC or size > _MOST:
            raise ValueError("not a directory of words")
        plain = pa.decompress(raw[_HEADER.size :], size, codec=CODEC, asbytes=True)
        found: dict[str, FieldBlocks] = {}
        at = 0
        for _ in range(count):
            field, at = _parse_field(plain, at)
            found[field.name] = field
        if at != len(plain) or len(found) != count:
            raise ValueError("lengths do not fit")
    except (ValueError, struct.error, pa.ArrowException, OSError) as error:
        refuse_to_judge(error, path=path)
        raise CorruptFileError(f"the words do not parse ({error})", path=path) from error
    return found


def _parse_field(plain: bytes, at: int) -> tuple[FieldBlocks, int]:
    length, record, zero, blocks, terms, per_block, start = _FIELD.unpack_from(plain, at)
    at += _FIELD.size + length
    name = plain[at - length : at].decode()
    if record >= len(RECORDS) or zero or not 0 < per_block <= _MOST_TERMS:
        raise ValueError(f"a field of a kind that is not known ('{name}')")
    if blocks != -(-terms // per_block) or at + 32 * blocks > len(plain):
        raise ValueError(f"the blocks of field '{name}' do not fit its terms")
    columns = []
    for width in (4, 4, 4, 8, 8, 4):
        columns.append(np.frombuffer(plain, f"<u{width}", blocks, at))
        at += width * blocks
    ends, sizes, unpacked, lists, places, sums = columns
    stop = at + (int(ends[-1]) if blocks else 0)
    separators = TextTable(plain[at:stop], _from_zero(ends))
    made = FieldBlocks(
        name,
        record,
        terms,
        per_block,
        separators,
        start + _from_zero(np.cumsum(sizes, dtype=np.int64)),
        unpacked,
        _from_zero(lists),
        _from_zero(places),
        sums,
    )
    if stop > len(plain) or not all(_ascends(c) for c in (made.starts, made.lists, made.places)):
        raise ValueError(f"the blocks of field '{name}' do not follow each other")
    return made, stop


def _from_zero(ends: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), ends.astype(np.int64)])


def _ascends(values: NDArray[np.int64]) -> bool:
    return bool((values[1:] >= values[:-1]).all()) and int(values[0]) >= 0


@dataclass(frozen=True, slots=True)
class Block:
    """The terms of one block, unpacked; see ``native._words.unpack_block``."""

    texts: bytes
    ends: NDArray[np.int64]
    rows: NDArray[np.uint32]
    lists: NDArray[np.uint64]
    list_pieces: NDArray[np.int64]
    list_sums: NDArray[np.uint32]
    places: NDArray[np.uint64] | None
    place_pieces: NDArray[np.int64] | None
    place_sums: NDArray[np.uint32] | None
    table: TextTable

    @classmethod
    def of(cls, columns: tuple[Any, ...]) -> Block:
        return cls(*(*columns, TextTable(columns[0], columns[1])))

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return len(self.texts) + 40 * len(self.rows) + 1024

    def find(self, term: bytes) -> int | None:
        """The number of a term in the block."""
        at = self.table.lower(term)
        return at if at < len(self.rows) and self.table.upper(term) == at + 1 else None

    def piece_of(self, term: int, *, places: bool) -> Piece:
        """The piece that holds the lists (or positions) of a term."""
        firsts = self.place_pieces if places else self.list_pieces
        sums = self.place_sums if places else self.list_sums
        ends = self.places if places else self.lists
        assert firsts is not None
        assert sums is not None
        assert ends is not None
        number = int(np.searchsorted(firsts, term, "right")) - 1
        first, stop = int(firsts[number]), int(firsts[number + 1])
        span = (int(ends[first]), int(ends[stop]))
        return Piece(span, (int(ends[term]), int(ends[term + 1])), int(sums[number]))

    def listed(self) -> pa.Array:
        """The terms, in order."""
        buffers = [None, pa.py_buffer(self.ends.astype(np.int32)), pa.py_buffer(self.texts)]
        return pa.Array.from_buffers(pa.string(), len(self.rows), buffers)


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that are fetched and checked together, and the part of them that was asked for.

    Both are counted from where the lists of the block begin.
    """

    span: tuple[int, int]
    wanted: tuple[int, int]
    crc: int

    def cut(self, raw: Any) -> Any:
        """What was asked for, of the piece's bytes."""
        low, high = (end - self.span[0] for end in self.wanted)
        return raw[low:high]
