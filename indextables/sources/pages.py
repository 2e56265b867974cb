"""Single pages of a Parquet file, decoded by Arrow.

Arrow reads whole column chunks. To read a few pages, a small Parquet file is made in memory: the
schema of one column as the file spells it, the dictionary page and the chosen data pages as
they are, and a footer that says so. Arrow decodes that, so every encoding, compression and nesting
that it knows is read, and no second decoder can differ from it. The offset index promises that
pages begin with a row, so that a row of nested values is never cut.

A column that holds several leaves (a struct, a map) has a page of its own for each. Each leaf is
decoded alone, its rows are taken, and the leaves are joined: they agree on what contains them.

A chunk without an offset index counts as one page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from indextables.buffers import number_array
from indextables.errors import CorruptFileError, ProtocolError
from indextables.sources import thrift
from indextables.sources.footer import (
    CODEC,
    ENCODINGS,
    FIRST_ROWS,
    MAGIC,
    OFFSETS,
    SIZE,
    SIZES,
    START,
    VALUES,
    FooterFacts,
)
from indextables.storage.machine import refuse_to_judge

Range = tuple[int, int]
Rows = NDArray[np.int64]
_HEADER: thrift.Wanted = {3: None, 5: {1: None}, 7: {}, 8: {1: None}}


class Picked(NamedTuple):
    """Some pages of one column chunk."""

    group: int
    rows: int
    dictionary: Range
    data: tuple[Range, ...]
    pages: tuple[Range, ...]
    """Empty where all pages are picked, and so the number of values is known."""


class LeafPlan(NamedTuple):
    """The pages of a leaf that hold some rows, and where in them the rows are."""

    leaf: int
    picked: tuple[Picked, ...]
    at: Rows

    @property
    def ranges(self) -> list[Range]:
        return [r for p in self.picked for r in (p.dictionary, *p.data)]


def plan_leaf(facts: FooterFacts, leaf: int, rows: Rows) -> LeafPlan:
    """Which pages hold these rows (ascending)."""
    groups = np.searchsorted(facts.group_starts, rows, side="right") - 1
    picked, places, before = [], [], 0
    for group in np.unique(groups):
        local = rows[groups == group] - facts.group_starts[group]
        chosen, at = _plan_chunk(facts, int(group), leaf, local)
        picked.append(chosen)
        places.append(at + before)
        before += chosen.rows
    at = np.concatenate(places) if places else np.zeros(0, np.int64)
    return LeafPlan(leaf, tuple(picked), at)


def whole_chunk(facts: FooterFacts, group: int, leaf: int) -> Picked:
    """All pages of a chunk."""
    start, size = (int(facts.chunks[i, group, leaf]) for i in (START, SIZE))
    pages = facts.pages.get((group, leaf))
    first = start if pages is None or not pages.shape[1] else int(pages[OFFSETS, 0])
    rows = int(facts.group_rows[group])
    return Picked(group, rows, (start, first), ((first, start + size),), ())


def _plan_chunk(facts: FooterFacts, group: int, leaf: int, local: Rows) -> tuple[Picked, Rows]:
    pages = facts.pages.get((group, leaf))
    if pages is None or pages.shape[1] < 2:
        return whole_chunk(facts, group, leaf), local
    firsts = pages[FIRST_ROWS]
    number = np.searchsorted(firsts, local, side="right") - 1
    chosen, which = np.unique(number, return_inverse=True)
    counts = np.diff(firsts, append=facts.group_rows[group])[chosen]
    starts = np.cumsum(counts) - counts
    at = starts[which] + local - firsts[number]
    if len(chosen) == len(firsts):
        return whole_chunk(facts, group, leaf), at
    begin, size = pages[OFFSETS][chosen], pages[SIZES][chosen]
    exact = tuple((int(a), int(a + n)) for a, n in zip(begin, size, strict=True))
    dictionary = (int(facts.chunks[START, group, leaf]), int(pages[OFFSETS, 0]))
    return Picked(group, int(counts.sum()), dictionary, exact, exact), at


# -- a file in memory -----------------------------------------------------------------------------


class _Builder:
    """A Parquet file of some columns whose row groups are added one by one."""

    def __init__(self, facts: FooterFacts, columns: Sequence[int]) -> None:
        self.facts = facts
        self.parts: list[bytes] = [MAGIC]
        self.at = len(MAGIC)
        self.groups: list[bytes] = []
        self.rows = 0
        root = thrift.struct(
            [
                (4, thrift.BINARY, thrift.binary(b"schema")),
                (5, thrift.I32, thrift.integer(len(columns))),
            ]
        )
        spans = [facts.columns[c].elements for c in columns]
        self.schema = [root, *(raw for a, b in spans for raw in facts.elements[a:b])]

    def chunk(self, picked: Picked, leaf: int, blobs: Sequence[bytes]) -> bytes:
        """The column chunk of these bytes: first the dictionary, then the pages."""
        start, first = self.at, self.at + len(blobs[0])
        values, pages = int(self.facts.chunks[VALUES, picked.group, leaf]), list(blobs[1:])
        repeated = self.facts.leaves[leaf].repeated
        if picked.pages or repeated:
            values, pages = _walked(pages)
        if values != picked.rows and not repeated:
            raise CorruptFileError(f"{values} values of Parquet for {picked.rows} rows")
        self.parts += [blobs[0], *pages]
        self.at = first + sum(map(len, pages))
        return self._about(leaf, picked.group, values, start, first)

    def nothing(self, leaf: int) -> bytes:
        """A chunk that is not read."""
        return self._about(leaf, 0, 0, self.at, self.at)

    def _about(self, leaf: int, group: int, values: int, start: int, first: int) -> bytes:
        facts, i, number = self.facts, thrift.I64, thrift.integer
        mask = int(facts.chunks[ENCODINGS, group, leaf])
        encodings = [number(bit) for bit in range(62) if mask >> bit & 1]
        size = number(self.at - start)
        fields = [
            (1, thrift.I32, number(facts.leaves[leaf].physical_type)),
            (2, thrift.LIST, thrift.listed(thrift.I32, encodings)),
            (
                3,
                thrift.LIST,
                thrift.listed(thrift.BINARY, map(thrift.binary, facts.leaves[leaf].path)),
            ),
            (4, thrift.I32, number(int(facts.chunks[CODEC, group, leaf]))),
            (5, i, number(values)),
            (6, i, size),
            (7, i, size),
            (9, i, number(first)),
        ]
        if start < first:
            fields.append((11, i, number(start)))
        meta = thrift.struct(fields)
        return thrift.struct([(2, i, number(start)), (3, thrift.STRUCT, meta)])

    def group(self, rows: int, chunks: Sequence[bytes]) -> None:
        fields = [
            (1, thrift.LIST, thrift.listed(thrift.STRUCT, chunks)),
            (2, thrift.I64, thrift.integer(self.at)),
            (3, thrift.I64, thrift.integer(rows)),
        ]
        self.groups.append(thrift.struct(fields))
        self.rows += rows

    def file(self) -> bytes:
        fields = [
            (1, thrift.I32, thrift.integer(2)),
            (2, thrift.LIST, thrift.listed(thrift.STRUCT, self.schema)),
            (3, thrift.I64, thrift.integer(self.rows)),
            (4, thrift.LIST, thrift.listed(thrift.STRUCT, self.groups)),
        ]
        if self.facts.created_by:
            fields.append((6, thrift.BINARY, thrift.binary(self.facts.created_by)))
        footer = thrift.struct(fields)
        return b"".join([*self.parts, footer, len(footer).to_bytes(4, "little"), MAGIC])


def _walked(blobs: Sequence[bytes]) -> tuple[int, list[bytes]]:
    """The values (also NULLs and empty lists) in some pages, and the pages that hold any.

    Arrow writes pages without values where a row is long, and stops at them when it reads.
    """
    count, kept = 0, []
    for blob in blobs:
        at = 0
        while at < len(blob):
            start = at
            header, at = thrift.read_struct(blob, at, _HEADER)
            size, about = header.get(3), header.get(5) or header.get(8) or {}
            values = about.get(1, 0) if isinstance(about, dict) else None
            if not isinstance(size, int) or not isinstance(values, int) or min(size, values) < 0:
                raise CorruptFileError("the header of a page of Parquet does not parse")
            at += size
            if at > len(blob) or not (about or 7 in header):
                raise CorruptFileError("a page of Parquet is not where its index says")
            count += values
            if values or not about:
                kept.append(blob[start:at])
    return count, kept


# -- decoding -------------------------------------------------------------------------------------


def _opened(data: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(
        pa.BufferReader(data),
        coerce_int96_timestamp_unit="us",
        page_checksum_verification=True,
        arrow_extensions_enabled=False,
        pre_buffer=False,
    )


def decode(make: Any, path: str) -> Any:
    """The result of a call that decodes; what Arrow cannot decode is our error."""
    try:
        return make()
    except NotImplementedError as error:
        raise ProtocolError(f"Arrow cannot decode it: {error}", path=path) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        refuse_to_judge(error, path=path)
        raise CorruptFileError(f"a page of Parquet does not decode: {error}", path=path) from error


def arrow_fields(facts: FooterFacts, columns: Sequence[int], path: str) -> list[pa.Field]:
    """The Arrow fields of some columns."""
    empty = _Builder(facts, columns).file()
    found: list[pa.Field] = decode(lambda: list(_opened(empty).schema_arrow), path)
    return found


def read_group(
    facts: FooterFacts, columns: Sequence[int], group: int, blobs: Sequence[bytes]
) -> pq.ParquetFile:
    """A file with one whole row group; the bytes of a dictionary and of the pages for each leaf."""
    builder = _Builder(facts, columns)
    leaves = [leaf for c in columns for leaf in range(*facts.columns[c].leaves)]
    chunks = [
        builder.chunk(whole_chunk(facts, group, leaf), leaf, blobs[2 * n : 2 * n + 2])
        for n, leaf in enumerate(leaves)
    ]
    builder.group(int(facts.group_rows[group]), chunks)
    return _opened(builder.file())


def read_leaf(facts: FooterFacts, column: int, plan: LeafPlan, blobs: Sequence[bytes]) -> pa.Array:
    """The rows of a plan, in the type of the column without its other leaves."""
    builder = _Builder(facts, [column])
    first, last = facts.columns[column].leaves
    used = 0
    for picked in plan.picked:
        count = 1 + len(picked.data)
        chunk = builder.chunk(picked, plan.leaf, blobs[used : used + count])
        used += count
        others = [
            builder.nothing(leaf) if leaf != plan.leaf else chunk for leaf in range(first, last)
        ]
        builder.group(picked.rows, others)
    opened = _opened(builder.file())
    which = list(range(len(plan.picked)))
    table = opened.reader.read_row_groups(
        which, column_indices=[plan.leaf - first], use_threads=False
    )
    found = table.column(0).take(number_array(plan.at))
    if len(found) != len(plan.at):
        raise CorruptFileError("pages of Parquet hold fewer rows than their index says")
    return whole(found)


def whole(chunked: pa.ChunkedArray) -> pa.Array:
    """One array of the chunks."""
    return (
        chunked.chunk(0)
        if chunked.num_chunks == 1
        else pa.concat_arrays(chunked.chunks)
        if chunked.num_chunks
        else pa.array([], chunked.type)
    )


# -- joining leaves -------------------------------------------------------------------------------


def joined(parts: Sequence[pa.Array], dtype: pa.DataType) -> pa.Array:
    """A column out of its leaves, each of which has all that contains it."""
    t = pa.types
    if t.is_struct(dtype):
        return _joined_struct(parts, dtype)
    if t.is_map(dtype):
        entries = pa.struct([dtype.key_field, dtype.item_field])
        return _joined_list(parts, dtype, entries)
    if t.is_list(dtype) or t.is_large_list(dtype):
        return _joined_list(parts, dtype, dtype.value_type)
    return parts[0]


def _joined_struct(parts: Sequence[pa.Array], dtype: pa.StructType) -> pa.Array:
    children = []
    for field in dtype.fields:
        having = [p.field(field.name) for p in parts if p.type.get_field_index(field.name) >= 0]
        children.append(joined(having, field.type))
    valid = _validity(parts[0])
    return pa.Array.from_buffers(dtype, len(parts[0]), [valid], children=children)


def _joined_list(parts: Sequence[pa.Array], dtype: pa.DataType, inner: pa.DataType) -> pa.Array:
    values = joined([_entries(p) for p in parts], inner)
    counts = parts[0].value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    buffers = [_validity(parts[0]), pa.py_buffer(ends)]
    return pa.Array.from_buffers(dtype, len(parts[0]), buffers, children=[values])


def _entries(part: pa.Array) -> pa.Array:
    return part.flatten()


def _validity(array: pa.Array) -> pa.Buffer | None:
    if not array.null_count:
        return None
    bits = array.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(bits, bitorder="little"))
