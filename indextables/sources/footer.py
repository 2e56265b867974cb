"""What has to be known of a Parquet file to read rows of it by number: the footer facts.

The footer of a Parquet file says where each column chunk lies, and points to the offset indexes,
which say where each page lies and which rows it holds. ``FooterFacts`` keeps this and the schema,
and nothing of the rest. It is small, also as bytes, so that an index can keep it: a row is then
read with the pages that hold it and no other request.

Without them a file costs one read of its end, which usually holds the footer and the offset indexes
too; one more where the footer is longer, and one more where the indexes begin earlier.

Files that are encrypted, and files whose column chunks lie in other files, are refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indextables.errors import CorruptFileError, ProtocolError
from indextables.lazy import lazily
from indextables.sources import thrift
from indextables.storage.base import Store

TAIL_BYTES = 128 << 10
MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
_FACTS = b"IPF1"
_MOST_FACTS = 256 << 20
_REPEATED = 2
_MALFORMED = (LookupError, TypeError, ValueError, OverflowError, AttributeError)
_ELEMENT: thrift.Wanted = {1: None, 3: None, 4: None, 5: None, 9: None}
_COLUMN: thrift.Wanted = dict.fromkeys((2, 4, 5, 7, 9, 11))
_CHUNK: thrift.Wanted = {1: None, 3: _COLUMN, 4: None, 5: None, 8: {}}
_FOOTER: thrift.Wanted = {
    2: {**_ELEMENT, thrift.RAW: None},
    3: None,
    4: {1: _CHUNK, 3: None},
    6: None,
    8: {},
}
_INDEX: thrift.Wanted = {1: {1: None, 2: None, 3: None}}

START, SIZE, VALUES, CODEC, ENCODINGS, INDEX_AT, INDEX_SIZE = range(7)
OFFSETS, SIZES, FIRST_ROWS = range(3)
Numbers = NDArray[np.int64]
Place = tuple[int, int]
"""A row group and a leaf."""


class FileColumn(NamedTuple):
    """A top-level column of a file."""

    name: str
    field_id: int | None
    elements: tuple[int, int]
    """Which of the schema's elements are it and what is inside it."""
    leaves: tuple[int, int]
    """Which leaves are its."""


class Leaf(NamedTuple):
    """One column of values, as Parquet stores them."""

    path: tuple[bytes, ...]
    physical_type: int
    repeated: bool
    """Does a row hold any number of values?"""


@dataclass(frozen=True, eq=False)
class FooterFacts:
    """Where the rows of one Parquet file are."""

    num_rows: int
    elements: tuple[bytes, ...]
    """The schema, element by element, as the file spells it; the first is the root."""
    created_by: bytes
    group_rows: Numbers
    chunks: Numbers
    """Seven numbers of each column chunk: ``[START...INDEX_SIZE, row group, leaf]``."""
    pages: Mapping[Place, Numbers] = field(default_factory=dict)
    """Pages of chunks whose offset index was read: ``[OFFSETS...FIRST_ROWS, page]``."""

    @lazily
    def _tree(self) -> tuple[tuple[FileColumn, ...], tuple[Leaf, ...]]:
        return _columns_of(self.elements)

    @property
    def columns(self) -> tuple[FileColumn, ...]:
        return self._tree[0]

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return self._tree[1]

    @property
    def groups(self) -> int:
        return len(self.group_rows)

    @lazily
    def group_starts(self) -> Numbers:
        """The first row of each row group, and the number of rows."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.group_rows)])

    def missing(self, leaves: Iterable[int]) -> list[Place]:
        """Chunks of these leaves that have an offset index which was not read."""
        return [
            (group, leaf)
            for leaf in leaves
            for group in range(self.groups)
            if self.chunks[INDEX_SIZE, group, leaf] and (group, leaf) not in self.pages
        ]

    def with_pages(self, indexes: Mapping[Place, bytes]) -> FooterFacts:
        """These facts and what the offset indexes say."""
        read = {place: self._pages_of(data, place) for place, data in indexes.items()}
        return FooterFacts(
            self.num_rows,
            self.elements,
            self.created_by,
            self.group_rows,
            self.chunks,
            {**self.pages, **read},
        )

    def _pages_of(self, data: bytes, place: Place) -> Numbers:
        found, _ = thrift.read_struct(data, 0, _INDEX)
        try:
            places = [(p[1], p[2], p.get(3, 0)) for p in found[1]]
            pages = _distinct(np.array(places, np.int64).reshape(-1, 3).T)
        except _MALFORMED as error:
            raise CorruptFileError(f"an offset index of Parquet does not parse: {error}") from None
        start, size = (int(self.chunks[i, place[0], place[1]]) for i in (START, SIZE))
        rows = int(self.group_rows[place[0]])
        ends = pages[OFFSETS] + pages[SIZES]
        inside = pages.shape[1] and pages[FIRST_ROWS, 0] == 0 and pages[FIRST_ROWS, -1] < rows
        ordered = (np.diff(pages[FIRST_ROWS]) > 0).all() and (ends[:-1] <= pages[OFFSETS, 1:]).all()
        fits = inside and pages[OFFSETS, 0] >= start and ends[-1] <= start + size
        if rows and not (ordered and fits and (pages[SIZES] > 0).all()):
            raise CorruptFileError("an offset index of Parquet names pages outside of its chunk")
        return pages

    # -- bytes ------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The facts as ``from_bytes`` takes them."""
        places = sorted(self.pages)
        counts = [self.pages[place].shape[1] for place in places]
        heads = [self.num_rows, self.groups, len(self.leaves), len(self.elements), len(places)]
        heads += [len(self.created_by), *map(len, self.elements)]
        numbers = [
            np.array(heads, np.int64),
            self.group_rows,
            _packed_chunks(self.chunks).ravel(),
            np.array(places, np.int64).ravel(),
            np.array(counts, np.int64),
            *(_packed_pages(self.pages[place]).ravel() for place in places),
        ]
        body = b"".join(n.astype("<i8").tobytes() for n in numbers)
        return _FACTS + zlib.compress(body + self.created_by + b"".join(self.elements), 6)

    @classmethod
    def from_bytes(cls, data: bytes) -> FooterFacts:
        """The facts that ``to_bytes`` wrote."""
        try:
            return _Unpacking(data).facts()
        except (*_MALFORMED, zlib.error) as error:
            raise CorruptFileError(f"footer facts do not parse: {error}") from None

    def only(self, columns: Iterable[int]) -> FooterFacts:
        """These facts with the pages of some columns only: the others are read again when asked."""
        kept = {leaf for c in columns for leaf in range(*self.columns[c].leaves)}
        return FooterFacts(
            self.num_rows,
            self.elements,
            self.created_by,
            self.group_rows,
            self.chunks,
            {place: pages for place, pages in self.pages.items() if place[1] in kept},
        )


def _distinct(pages: Numbers) -> Numbers:
    """The pages with those that begin with the same row as one: Arrow writes such."""
    if pages.shape[1] < 2:
        return pages.copy()
    begins = np.flatnonzero(np.diff(pages[FIRST_ROWS], prepend=-1))
    last = np.append(begins[1:], pages.shape[1]) - 1
    found = pages[:, begins]
    found[SIZES] = pages[OFFSETS, last] + pages[SIZES, last] - found[OFFSETS]
    return found


def _packed_chunks(chunks: Numbers) -> Numbers:
    """Starts as what lies between a chunk and the end of the one before: usually nothing."""
    packed = chunks.copy()
    ends = (chunks[START] + chunks[SIZE]).ravel()
    packed[START] -= np.concatenate([np.zeros(1, np.int64), ends])[:-1].reshape(chunks[START].shape)
    return packed


def _unpacked_chunks(packed: Numbers) -> Numbers:
    chunks = packed.copy()
    steps = packed[START].ravel() + np.concatenate([[0], packed[SIZE].ravel()[:-1]]).astype(
        np.int64
    )
    chunks[START] = np.cumsum(steps).reshape(packed[START].shape)
    return chunks


def _packed_pages(pages: Numbers) -> Numbers:
    packed = pages.copy()
    packed[OFFSETS, 1:] -= pages[OFFSETS, :-1] + pages[SIZES, :-1]
    packed[FIRST_ROWS, 1:] -= pages[FIRST_ROWS, :-1]
    return packed


def _unpacked_pages(packed: Numbers) -> Numbers:
    pages = packed.copy()
    pages[OFFSETS, 1:] += packed[SIZES, :-1]
    pages[OFFSETS] = np.cumsum(pages[OFFSETS])
    pages[FIRST_ROWS] = np.cumsum(packed[FIRST_ROWS])
    return pages


class _Unpacking:
    """Reads what ``to_bytes`` wrote, number by number."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(_FACTS):
            raise ValueError("they do not begin as footer facts do")
        inflate = zlib.decompressobj()
        self.body = inflate.decompress(data[len(_FACTS) :], _MOST_FACTS)
        if inflate.unconsumed_tail or not inflate.eof:
            raise ValueError("they end early or are too large")
        self.at = 0

    def numbers(self, count: int) -> Numbers:
        end = self.at + 8 * count
        if count < 0 or end > len(self.body):
            raise ValueError(f"{count} numbers beyond their end")
        found = np.frombuffer(self.body[self.at : end], "<i8").astype(np.int64)
        self.at = end
        return found

    def text(self, length: int) -> bytes:
        end = self.at + length
        if length < 0 or end > len(self.body):
            raise ValueError(f"{length} bytes beyond their end")
        found, self.at = self.body[self.at : end], end
        return found

    def facts(self) -> FooterFacts:
        rows, groups, leaves, elements, places, created = map(int, self.numbers(6))
        lengths = self.numbers(elements)
        group_rows = self.numbers(groups)
        chunks = _unpacked_chunks(self.numbers(7 * groups * leaves).reshape(7, groups, leaves))
        where = self.numbers(2 * places).reshape(places, 2)
        counts = self.numbers(places)
        pages = {
            (int(g), int(leaf)): _unpacked_pages(self.numbers(3 * int(n)).reshape(3, int(n)))
            for (g, leaf), n in zip(where, counts, strict=True)
        }
        created_by = self.text(created)
        texts = tuple(self.text(int(n)) for n in lengths)
        found = FooterFacts(rows, texts, created_by, group_rows, chunks, pages)
        if len(found.leaves) != leaves or self.at != len(self.body) or rows != group_rows.sum():
            raise ValueError("they contradict themselves")
        return found


# -- the schema -----------------------------------------------------------------------------------


def _columns_of(elements: Sequence[bytes]) -> tuple[tuple[FileColumn, ...], tuple[Leaf, ...]]:
    parsed = [thrift.read_struct(raw, 0, _ELEMENT)[0] for raw in elements]
    leaves: list[Leaf] = []
    columns = []
    at = 1
    for _ in range(_children(parsed, 0)):
        first, leaf = at, len(leaves)
        at = _walk(parsed, at, (), False, leaves)
        name = parsed[first][4].decode("utf-8", "replace")
        columns.append(FileColumn(name, parsed[first].get(9), (first, at), (leaf, len(leaves))))
    if at != len(parsed):
        raise CorruptFileError("the schema of a Parquet file has elements that belong to nothing")
    return tuple(columns), tuple(leaves)


def _children(parsed: Sequence[thrift.Struct], at: int) -> int:
    if at >= len(parsed) or 4 not in parsed[at]:
        raise CorruptFileError("the schema of a Parquet file ends early")
    return int(parsed[at].get(5, 0))


def _walk(
    parsed: Sequence[thrift.Struct],
    at: int,
    above: tuple[bytes, ...],
    repeated: bool,
    leaves: list[Leaf],
) -> int:
    """Adds the leaves of one element; where the next one stands."""
    if len(above) > thrift.DEEPEST:
        raise CorruptFileError("the schema of a Parquet file nests without end")
    children = _children(parsed, at)
    path = (*above, parsed[at][4])
    repeated = repeated or parsed[at].get(3) == _REPEATED
    if not children and 1 in parsed[at]:
        leaves.append(Leaf(path, parsed[at][1], repeated))
        return at + 1
    at += 1
    for _ in range(children):
        at = _walk(parsed, at, path, repeated, leaves)
    return at


# -- reading --------------------------------------------------------------------------------------


def read_facts(store: Store, path: str, size: int) -> tuple[FooterFacts, int, bytes]:
    """The facts of a file without its pages, and the end of the file that was read for them."""
    start = max(0, size - TAIL_BYTES)
    (tail,) = store.read_ranges(path, [(start, size)])
    length = _footer_length(tail, size, path)
    if length + 8 > len(tail):
        start = size - length - 8
        (more,) = store.read_ranges(path, [(start, size - len(tail))])
        tail = more + tail
    try:
        return parse_footer(bytes(tail[-length - 8 : -8])), start, bytes(tail)
    except (CorruptFileError, ProtocolError) as error:
        if error.path is None:
            error.path = path
        raise


def _footer_length(tail: bytes, size: int, path: str) -> int:
    magic = bytes(tail[-4:])
    if magic == _ENCRYPTED:
        raise _encrypted(path)
    if size < 12 or magic != MAGIC:
        raise CorruptFileError("not a Parquet file", path=path)
    length = int.from_bytes(tail[-8:-4], "little")
    if length + 12 > size:
        raise CorruptFileError(f"a footer of {length} bytes in a file of {size}", path=path)
    return length


def _encrypted(path: str | None) -> ProtocolError:
    return ProtocolError(
        "the Parquet file is encrypted", path=path, hint="Encrypted files cannot be indexed"
    )


def parse_footer(data: bytes) -> FooterFacts:
    """The facts in the bytes of a footer."""
    found, _ = thrift.read_struct(data, 0, _FOOTER)
    if 8 in found:
        raise _encrypted(None)
    try:
        groups = found.get(4, [])
        raws = tuple(element[thrift.RAW] for element in found[2])
        rows = np.array([group[3] for group in groups], np.int64)
        facts = FooterFacts(found[3], raws, found.get(6, b""), rows, np.zeros((7, 0, 0), np.int64))
        chunks = np.array([[_chunk(c) for c in group[1]] for group in groups], np.int64).reshape(
            len(groups), len(facts.leaves), 7
        )
    except _MALFORMED as error:
        raise CorruptFileError(f"the footer of a Parquet file does not parse: {error!r}") from None
    if found[3] != rows.sum() or (rows < 0).any() or (chunks < 0).any():
        raise CorruptFileError("the footer of a Parquet file contradicts itself")
    return FooterFacts(
        found[3], raws, facts.created_by, rows, np.ascontiguousarray(chunks.transpose(2, 0, 1))
    )


def _chunk(chunk: dict[int, Any]) -> tuple[int, ...]:
    if 8 in chunk or 3 not in chunk:
        raise _encrypted(None)
    if chunk.get(1):
        raise ProtocolError("a column of the Parquet file lies in another file")
    about = chunk[3]
    first = about[9]
    dictionary = about.get(11, 0)
    start = dictionary if 0 < dictionary < first else first
    encodings = sum(1 << e for e in {*about[2]} if 0 <= e < 62)
    index = (chunk.get(4, 0), chunk.get(5, 0))
    return (start, about[7], about[5], about[4], encodings, *index)


def read_pages(
    store: Store, path: str, facts: FooterFacts, leaves: Iterable[int], tail: tuple[int, bytes]
) -> FooterFacts:
    """The facts with the pages of these leaves; ``tail`` is where the end read begins, and it."""
    places = facts.missing(leaves)
    if not places:
        return facts
    ranges = [_index_range(facts, place) for place in places]
    start, data = tail
    if min(first for first, _ in ranges) >= start:
        read = [data[a - start : b - start] for a, b in ranges]
    else:
        read = [bytes(r) for r in store.read_ranges(path, ranges)]
    try:
        return facts.with_pages(dict(zip(places, read, strict=True)))
    except CorruptFileError as error:
        if error.path is None:
            error.path = path
        raise


def _index_range(facts: FooterFacts, place: Place) -> tuple[int, int]:
    at, size = (int(facts.chunks[i, place[0], place[1]]) for i in (INDEX_AT, INDEX_SIZE))
    return at, at + size
