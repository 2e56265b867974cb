"""Where everything of a row member is: streams of a schema, and the directory.

A schema is a forest of *streams*, one for each node of each column's type, in pre-order: a list has
a stream of lengths and the streams of its element, a struct a stream of null bits and those of its
fields; a null type has none. Rows are cut into *chunks* (at most ``MAX_CHUNK_ROWS``), the rows of a
chunk into *blocks* of ``1 << shift`` rows, where a column chooses its ``shift`` for each chunk.
Block ``b`` of every stream of a column belongs to the same rows, children included, so the blocks
that hold a row are known before anything is read.

The directory (little-endian) is

    "ITROWS1\\n" | u32 schema bytes, chunks, columns, streams, resources, blocks | u64 rows, payload
    u64 start of extent[stream][chunk] | u64 resource start[]
    i32 resource[stream][chunk] (-1: none) | u32 resource length[] | u32 resource crc[]
    u32 rows of each chunk | u32 block length[] | u32 block crc[]
    u8 shift[column][chunk] | schema (Arrow IPC) | u32 crc32c of all bytes before

Blocks are numbered by stream, then chunk, then rows.

The blocks of one stream of one chunk lie one after the other from the start of their extent.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.errors import CorruptFileError, SchemaMismatchError
from indextables.native._crc32c import crc32c
from indextables.storage.machine import refuse_to_judge

MAGIC = b"ITROWS1\n"
HEAD = struct.Struct("<8s6I2Q")
MAX_CHUNK_ROWS = 131_072
MAX_SHIFT = 17
Array = np.ndarray[Any, Any]

NULL, BITS, FIXED, FLOAT, TEXT, LIST, STRUCT = (
    "null",
    "bits",
    "fixed",
    "float",
    "text",
    "list",
    "struct",
)


@dataclass(slots=True)
class Stream:
    """One node of a column's type; ``index`` numbers the streams of a schema (-1: none stored)."""

    kind: str
    type: pa.DataType
    name: str
    column: int
    index: int
    item_bits: int = 0
    children: list[Stream] = field(default_factory=list)

    def walk(self) -> Iterator[Stream]:
        """This stream and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def is_native(dtype: pa.DataType) -> bool:
    """Whether values of ``dtype`` are stored as they are, without normalising the type first."""
    t = pa.types
    if t.is_struct(dtype):
        return all(is_native(f.type) for f in dtype.fields)
    if t.is_map(dtype):
        return is_native(dtype.key_type) and is_native(dtype.item_type)
    if t.is_list(dtype):
        return is_native(dtype.value_type)
    return leaf_kind(dtype) is not None


def leaf_kind(dtype: pa.DataType) -> str | None:
    """The kind of stream that holds a type without children, or None."""
    t = pa.types
    if t.is_null(dtype):
        return NULL
    if t.is_boolean(dtype):
        return BITS
    if t.is_float32(dtype) or t.is_float64(dtype):
        return FLOAT
    if t.is_string(dtype) or t.is_binary(dtype):
        return TEXT
    if t.is_signed_integer(dtype) or t.is_date32(dtype) or t.is_decimal128(dtype):
        return FIXED
    if t.is_timestamp(dtype) and dtype.unit == "us":
        return FIXED
    return None


def streams_of(schema: pa.Schema) -> list[Stream]:
    """The root stream of every column; indexes count all stored streams in pre-order."""
    counter = iter(range(1 << 30))

    def grow(dtype: pa.DataType, name: str, column: int) -> Stream:
        t = pa.types
        if t.is_struct(dtype):
            node = Stream(STRUCT, dtype, name, column, next(counter))
            fields = [(f.name, f.type) for f in dtype.fields]
        elif t.is_map(dtype):
            node = Stream(LIST, dtype, name, column, next(counter))
            entry = pa.struct([dtype.key_field, dtype.item_field])
            fields = [("entries", entry)]
        elif t.is_list(dtype):
            node = Stream(LIST, dtype, name, column, next(counter))
            fields = [("element", dtype.value_type)]
        else:
            return leaf(dtype, name, column)
        node.children = [grow(kind, f"{name}.{label}", column) for label, kind in fields]
        return node

    def leaf(dtype: pa.DataType, name: str, column: int) -> Stream:
        kind = leaf_kind(dtype)
        if kind is None:
            raise SchemaMismatchError(f"column '{name}' of type {dtype} cannot be stored as rows")
        if kind == NULL:
            return Stream(kind, dtype, name, column, -1)
        bits = 0 if kind == TEXT else dtype.bit_width
        return Stream(kind, dtype, name, column, next(counter), bits)

    return [grow(f.type, f.name, i) for i, f in enumerate(schema)]


def stored_streams(roots: list[Stream]) -> list[Stream]:
    return [s for root in roots for s in root.walk() if s.index >= 0]


@dataclass(slots=True)
class Directory:
    """The parsed directory; arrays are views of its bytes."""

    schema: pa.Schema
    num_rows: int
    payload_length: int
    extent: Array
    resource_start: Array
    resource_of: Array
    resource_length: Array
    resource_crc: Array
    chunk_rows: Array
    block_length: Array
    block_crc: Array
    shift: Array

    def to_bytes(self) -> bytes:
        schema = self.schema.serialize().to_pybytes()
        counts = (len(schema), len(self.chunk_rows), self.shift.shape[0], self.extent.shape[0])
        sizes = (*counts, len(self.resource_start), len(self.block_length))
        body = HEAD.pack(MAGIC, *sizes, self.num_rows, self.payload_length)
        for (name, kind), _ in _parts(*sizes[1:]):
            body += getattr(self, name).astype(kind).tobytes()
        body += schema
        return bytes(body + struct.pack("<I", crc32c(body)))

    @property
    def roots(self) -> list[Stream]:
        return streams_of(self.schema)

    @property
    def blocks_per_chunk(self) -> Array:
        """Blocks of each column (rows) in each chunk (columns)."""
        size = np.int64(1) << self.shift.astype(np.int64)
        return np.asarray((self.chunk_rows.astype(np.int64) + size - 1) // size)


def _parts(
    chunks: int, columns: int, streams: int, resources: int, blocks: int
) -> list[tuple[tuple[str, str], tuple[int, ...]]]:
    """Name, type and shape of every array of a directory, in their order."""
    return [
        (("extent", "<u8"), (streams, chunks)),
        (("resource_start", "<u8"), (resources,)),
        (("resource_of", "<i4"), (streams, chunks)),
        (("resource_length", "<u4"), (resources,)),
        (("resource_crc", "<u4"), (resources,)),
        (("chunk_rows", "<u4"), (chunks,)),
        (("block_length", "<u4"), (blocks,)),
        (("block_crc", "<u4"), (blocks,)),
        (("shift", "u1"), (columns, chunks)),
    ]


def most_rows(directory_length: int) -> int:
    """Rows that a directory of so many bytes can describe: a chunk takes four bytes of it."""
    return max(0, directory_length - HEAD.size) // 4 * MAX_CHUNK_ROWS


def parse_directory(data: bytes | memoryview, path: str | None) -> Directory:
    """Read a directory; every size in it is checked before anything is made from it."""
    view = data if isinstance(data, bytes) else bytes(data)
    if len(view) < HEAD.size + 4 or view[:8] != MAGIC:
        raise _damaged("not a row directory", path)
    (expected,) = struct.unpack_from("<I", view, len(view) - 4)
    if crc32c(memoryview(view)[:-4]) != expected:
        raise _damaged("checksum of the row directory differs", path)
    _, schema_size, *counts, rows, payload = HEAD.unpack_from(view)
    parts = _parts(*counts)
    size = sum(np.dtype(kind).itemsize * math.prod(shape) for (_, kind), shape in parts)
    if HEAD.size + schema_size + size + 4 != len(view):
        raise _damaged("row directory has the wrong length", path)
    arrays = {}
    at = HEAD.size
    for (name, kind), shape in parts:
        count = math.prod(shape)
        arrays[name] = np.frombuffer(view, kind, count, at).reshape(shape)
        at += arrays[name].nbytes
    schema = _schema(memoryview(view)[at : at + schema_size], path)
    directory = Directory(schema, rows, payload, **arrays)
    _check(directory, path)
    return directory


def _schema(data: memoryview, path: str | None) -> pa.Schema:
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as error:
        refuse_to_judge(error, path=path)
        raise _damaged(f"schema in the row directory: {error}", path) from error


def _check(d: Directory, path: str | None) -> None:
    """Refuse a directory whose parts do not fit each other or the payload."""
    try:
        roots = d.roots
    except (SchemaMismatchError, UnicodeDecodeError) as error:
        raise _damaged(f"schema in the row directory: {error}", path) from error
    streams = stored_streams(roots)
    if d.shift.shape[0] != len(roots) or d.extent.shape[0] != len(streams):
        raise _damaged("row directory does not fit its schema", path)
    if len(d.chunk_rows) and (
        int(d.chunk_rows.min()) == 0 or int(d.chunk_rows.max()) > MAX_CHUNK_ROWS
    ):
        raise _damaged("impossible number of rows in a chunk", path)
    if int(d.chunk_rows.sum(dtype=np.uint64)) != d.num_rows:
        raise _damaged("rows of the chunks do not add up", path)
    if d.shift.size and int(d.shift.max()) > MAX_SHIFT:
        raise _damaged("impossible block size", path)
    _check_extents(d, streams, path)
    if len(d.resource_start):
        last = d.resource_start.astype(np.float64) + d.resource_length
        if float(last.max()) > d.payload_length:
            raise _damaged("dictionary page outside the rows", path)
    if d.resource_of.size and not -1 <= int(d.resource_of.min()) <= int(d.resource_of.max()) < max(
        len(d.resource_start), 1
    ):
        raise _damaged("unknown dictionary page", path)


def _check_extents(d: Directory, streams: list[Stream], path: str | None) -> None:
    per_chunk = d.blocks_per_chunk
    columns = np.array([s.column for s in streams], np.intp)
    counts = per_chunk[columns].reshape(-1) if len(streams) else np.zeros(0, np.int64)
    if int(counts.sum()) != len(d.block_length):
        raise _damaged("number of blocks does not fit the rows", path)
    if not len(counts):
        return
    ends = np.cumsum(d.block_length, dtype=np.int64)
    lasts = ends[np.cumsum(counts) - 1]
    sizes = np.diff(lasts, prepend=0)
    if float((d.extent.reshape(-1).astype(np.float64) + sizes).max()) > d.payload_length:
        raise _damaged("blocks outside the rows", path)


def _damaged(reason: str, path: str | None) -> CorruptFileError:
    return CorruptFileError(reason, path=path, hint="Restore the split, or drop it and write again")
