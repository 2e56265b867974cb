"""Blocks into Arrow arrays.

``Fetched`` holds what was read for one call: the checked blocks of every stream, and for each block
the resource page it is encoded with. Arrays are built top down, because the lists of a row say
which children it has; buffers are filled by the kernels and handed to Arrow as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import zstandard

from indextables.errors import CorruptFileError, IndexTablesError
from indextables.native._rows_blocks import BlockSet, Spans, require_slots
from indextables.native._rows_fixed import (
    Dictionaries,
    decode_fixed,
    decode_lists,
    decode_validity,
)
from indextables.native._rows_lexicon import Lexicon
from indextables.native._rows_text import Lexicons, decode_text, text_bound, zstd_parts
from indextables.splits.rows.layout import BITS, LIST, NULL, STRUCT, TEXT
from indextables.splits.rows.project import Projected

Array = np.ndarray[Any, Any]

ZSTD = 8
PAD = 16
MAX_TEXT = 0x7FFFFFFF - PAD
EMPTY_LISTS = 64 << 20
"""Bytes of offsets that any block of lists may stand for: empty ones take no bytes at all."""
NO_BYTES = np.zeros(0, np.uint8)


class TooMuchText(IndexTablesError):  # noqa: N818
    """Inside the reader only: the strings of a column do not fit one Arrow array."""


@dataclass(slots=True)
class Fetched:
    """Checked blocks of one stream, with the resource pages they refer to."""

    blocks: BlockSet
    resources: list[Any]
    which: Array


def open_resource(page: bytes | memoryview) -> Any:
    """A dictionary of numbers as an array of words, any other page as a lexicon."""
    view = memoryview(page).cast("B")
    if len(view) < 8 or view[0] != 1:
        return Lexicon(page)
    count = int.from_bytes(view[4:8], "little")
    if len(view) != 8 + 8 * count:
        raise CorruptFileError("dictionary page has the wrong length")
    return np.frombuffer(view, "<u8", count, 8).astype(np.uint64)


def inflate(blocks: BlockSet) -> None:
    """Replace every zstd block by the plain block it stands for."""
    if not blocks.has_kind(ZSTD):
        return
    decompressor = zstandard.ZstdDecompressor()
    for index in blocks.of_kind(ZSTD):
        head, frame, size = zstd_parts(blocks, index)
        if size > blocks.allowance_of(index):
            raise CorruptFileError("block claims more bytes than its size allows")
        blocks.replace(index, head + _decompressed(decompressor, frame, size))


def _decompressed(decompressor: Any, frame: bytes, size: int) -> bytes:
    """The bytes of a frame, which must say itself that they are ``size``."""
    try:
        declared = zstandard.get_frame_parameters(frame).content_size
        if declared != size:
            raise CorruptFileError("zstd frame has another size than declared")
        raw: bytes = decompressor.decompress(frame)
    except zstandard.ZstdError as error:
        raise CorruptFileError(f"zstd frame: {error}") from error
    if len(raw) != size:
        raise CorruptFileError("zstd frame has another size than declared")
    return raw


def build(node: Projected, fetched: dict[int, Fetched], spans: Spans) -> pa.Array:
    """The array of the slots in ``spans``."""
    kind = node.stream.kind
    if kind == NULL:
        return pa.nulls(spans.total)
    if kind == TEXT:
        return _text(node, fetched[node.stream.index], spans)
    if kind == STRUCT:
        return _struct(node, fetched, spans)
    if kind == LIST:
        return _list(node, fetched, spans)
    return _fixed(node, fetched[node.stream.index], spans)


def _validity(blocks: BlockSet, slots: int) -> Array:
    return np.zeros((slots + 7) // 8, np.uint8) if blocks.any_nulls else NO_BYTES


def _buffer(validity: Array) -> pa.Buffer | None:
    return pa.py_buffer(validity) if len(validity) else None


def _fixed(node: Projected, got: Fetched, spans: Spans) -> pa.Array:
    bits = node.stream.item_bits
    validity = _validity(got.blocks, spans.total)
    dictionaries = Dictionaries(got.resources, got.which)
    if node.stream.kind == BITS:
        out = np.zeros((spans.total + 7) // 8, np.uint8)
        data = pa.py_buffer(out)
    else:
        data = pa.allocate_buffer(spans.total * bits // 8)
        out = np.frombuffer(data, np.uint8)
    nulls = decode_fixed(got.blocks, spans, bits, dictionaries, out, validity)
    return pa.Array.from_buffers(node.type, spans.total, [_buffer(validity), data], nulls)


def _text(node: Projected, got: Fetched, spans: Spans) -> pa.Array:
    lexicons = Lexicons(got.resources, got.which)
    bound = text_bound(got.blocks, spans, lexicons)
    if bound > MAX_TEXT:
        raise TooMuchText(
            f"column '{node.stream.name}' has over 2 GB of text in {spans.total} rows",
            hint="Read fewer rows at a time",
        )
    validity = _validity(got.blocks, spans.total)
    offsets = pa.allocate_buffer(4 * (spans.total + 1))
    data = pa.allocate_buffer(bound + PAD, resizable=True)
    used = decode_text(
        got.blocks,
        spans,
        lexicons,
        np.frombuffer(offsets, np.int32),
        np.frombuffer(data, np.uint8),
        validity,
    )
    data = data.slice(0, used) if used + bound // 4 > bound else _shrunk(data, used)
    return pa.Array.from_buffers(node.type, spans.total, [_buffer(validity), offsets, data])


def _shrunk(data: pa.Buffer, used: int) -> pa.Buffer:
    """A copy of the bytes in use, so that a small answer does not hold a large buffer."""
    out = pa.allocate_buffer(used)
    np.frombuffer(out, np.uint8)[:] = np.frombuffer(data, np.uint8)[:used]
    return out


def _struct(node: Projected, fetched: dict[int, Fetched], spans: Spans) -> pa.Array:
    blocks = fetched[node.stream.index].blocks
    validity = _validity(blocks, spans.total)
    nulls = decode_validity(blocks, spans, validity) if len(validity) else 0
    children = [build(child, fetched, spans) for child in node.children]
    return pa.Array.from_buffers(
        node.type, spans.total, [_buffer(validity)], nulls, children=children
    )


def _require(node: Projected, fetched: dict[int, Fetched], spans: Spans) -> None:
    """Refuse lists that ask for more elements than there are, before memory is reserved."""
    kind = node.stream.kind
    if kind == STRUCT:
        for child in node.children:
            _require(child, fetched, spans)
    elif kind != NULL:
        bits = 32 if kind in (TEXT, LIST) else node.stream.item_bits
        least = EMPTY_LISTS if kind == LIST else 0
        require_slots(fetched[node.stream.index].blocks, spans, bits, least)


def _list(node: Projected, fetched: dict[int, Fetched], spans: Spans) -> pa.Array:
    blocks = fetched[node.stream.index].blocks
    validity = _validity(blocks, spans.total)
    offsets = np.empty(spans.total + 1, np.int32)
    below = decode_lists(blocks, spans, offsets, validity)
    _require(node.children[0], fetched, below)
    child = build(node.children[0], fetched, below)
    if len(child) != int(offsets[-1]):
        raise CorruptFileError("lists and their elements disagree")
    buffers = [_buffer(validity), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(node.type, spans.total, buffers, children=[child])
