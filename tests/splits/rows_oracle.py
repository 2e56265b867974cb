"""A second reader of row files, in plain Python and straight from the format's description.

It reads every block of every stream, one value at a time, and returns Python values; floats come
back as their bits, so that NaN payloads and signs of zero take part in comparisons.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import zstandard

ALL_NULL, INTEGERS, DECIMALS, CODES, WIDE, PLAIN, PAIRS, TEMPLATE, ZSTD, LISTS, VALIDITY = range(11)
M64 = (1 << 64) - 1


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


class Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def take(self, size: int) -> bytes:
        assert self.at + size <= len(self.data)
        self.at += size
        return self.data[self.at - size : self.at]

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)


def unpack(data: bytes, count: int, width: int) -> list[int]:
    whole = int.from_bytes(data, "little")
    return [(whole >> (i * width)) & ((1 << width) - 1) for i in range(count)]


def signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def vector(source: Bytes, count: int) -> list[int]:
    """The values of an integer vector, modulo 2**64."""
    width, flags, base = source.number(1), source.number(1), source.number(8)
    shift = slope = 0
    factor = 1
    if flags & 1:
        shift, slope = source.number(1), source.number(8)
    if flags & 2:
        factor = source.number(8)
    packed = unpack(source.take((count * width + 7) // 8), count, width)
    return [
        (base + (signed(slope * i) >> shift) + factor * number) & M64
        for i, number in enumerate(packed)
    ]


def float_bits(value: float, bits: int) -> int:
    code = "<d" if bits == 64 else "<f"
    return int.from_bytes(struct.pack(code, value), "little")


def cut(data: bytes, ends: list[int]) -> list[bytes]:
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def words_of(page: bytes) -> list[bytes]:
    source = Bytes(page)
    kind, _, _, count = source.number(1), source.number(1), source.number(2), source.number(4)
    if kind == 1:
        return [source.take(8) for _ in range(count)]
    sizes = [source.number(4 if kind == 2 else 1) for _ in range(count)]
    if kind == 2:
        return cut(source.rest(), sizes)
    ends = [sum(sizes[: i + 1]) for i in range(count)] if count < 600 else running(sizes)
    return cut(source.rest(), ends)


def running(sizes: list[int]) -> list[int]:
    out, total = [], 0
    for size in sizes:
        total += size
        out.append(total)
    return out


def template_values(page: bytes, data: bytes, count: int) -> list[bytes]:
    source = Bytes(page)
    source.take(4)
    parts = []
    for _ in range(source.number(4)):
        kind, chars = source.number(1), source.number(1)
        parts.append((kind, chars, source.take(chars) if kind == 0 else b""))
    widths = [
        0 if kind == 0 else 4 * chars if kind < 3 else (10**chars - 1).bit_length()
        for kind, chars, _ in parts
    ]
    whole, at, values = int.from_bytes(data, "little"), 0, []
    for _ in range(count):
        text = b""
        for (kind, chars, literal), width in zip(parts, widths, strict=True):
            number = (whole >> at) & ((1 << width) - 1)
            at += width
            form = {0: "", 1: f"0{chars}x", 2: f"0{chars}X", 3: f"0{chars}d"}[kind]
            text += literal if kind == 0 else format(number, form).encode()
        values.append(text)
    return values


def text_values(kind: int, source: Bytes, count: int, page: bytes) -> list[bytes]:
    if kind == TEMPLATE:
        return template_values(page, source.rest(), count)
    numbers = vector(source, count)
    if kind == CODES:
        words = words_of(page)
        return [words[number] for number in numbers]
    if kind == PLAIN:
        return cut(source.rest(), numbers)
    size = source.number(4)
    if kind == ZSTD:
        return cut(zstandard.ZstdDecompressor().decompress(source.rest(), size), numbers)
    words, width = words_of(page), page[1]
    codes = unpack(source.rest(), numbers[-1], width)
    pieces = [words[code] for code in codes]
    assert sum(map(len, pieces)) == size
    return [b"".join(pieces[a:b]) for a, b in zip([0, *numbers], numbers, strict=False)]


def number_values(kind: int, source: Bytes, count: int, page: bytes, bits: int) -> list[int]:
    """Values as unsigned words of ``bits`` bits."""
    top = (1 << bits) - 1
    if kind == DECIMALS:
        power, missed = 10.0 ** source.number(1), source.number(4)
        places = [source.number(4) for _ in range(missed)]
        patches = [source.number(8) for _ in range(missed)]
        out = [float_bits(signed(d) / power, bits) for d in vector(source, count)]
        for place, patch in zip(places, patches, strict=True):
            out[place] = patch
        return out
    low = vector(source, count)
    if kind == CODES:
        words = [int.from_bytes(word, "little") for word in words_of(page)]
        return [words[code] & top for code in low]
    if kind == WIDE:
        return [lo | hi << 64 for lo, hi in zip(low, vector(source, count), strict=True)]
    return [signed(value) & top for value in low]


class Oracle:
    """All rows of a row file."""

    def __init__(self, directory: bytes, payload: bytes) -> None:
        assert crc32c(directory[:-4]) == int.from_bytes(directory[-4:], "little")
        source = Bytes(directory)
        assert source.take(8) == b"ITROWS1\n"
        size, chunks, columns, streams, resources, blocks = (source.number(4) for _ in range(6))
        self.num_rows, self.length = source.number(8), source.number(8)
        assert self.length == len(payload)
        self.payload = payload
        self.extent = [[source.number(8) for _ in range(chunks)] for _ in range(streams)]
        starts = [source.number(8) for _ in range(resources)]
        self.resource = [
            [signed(source.number(4), 32) for _ in range(chunks)] for _ in range(streams)
        ]
        sizes = [source.number(4) for _ in range(resources)]
        sums = [source.number(4) for _ in range(resources)]
        self.pages = [self.checked(*entry) for entry in zip(starts, sizes, sums, strict=True)]
        self.chunk_rows = [source.number(4) for _ in range(chunks)]
        self.lengths = [source.number(4) for _ in range(blocks)]
        self.sums = [source.number(4) for _ in range(blocks)]
        self.shift = [[source.number(1) for _ in range(chunks)] for _ in range(columns)]
        self.schema = pa.ipc.read_schema(pa.py_buffer(source.take(size)))
        self.next_block = 0
        self.blocks = {
            (s, c): self._blocks(s, c, column)
            for s, column in enumerate(self._columns_of_streams())
            for c in range(chunks)
        }

    def checked(self, start: int, size: int, crc: int) -> bytes:
        data = self.payload[start : start + size]
        assert len(data) == size
        assert size == 0 or crc32c(data) == crc
        return data

    def _columns_of_streams(self) -> list[int]:
        return [i for i, f in enumerate(self.schema) for _ in range(count_streams(f.type))]

    def _blocks(self, stream: int, chunk: int, column: int) -> list[bytes]:
        at, out = self.extent[stream][chunk], []
        size = 1 << self.shift[column][chunk]
        for _ in range((self.chunk_rows[chunk] + size - 1) // size):
            length, crc = self.lengths[self.next_block], self.sums[self.next_block]
            out.append(self.checked(at, length, crc))
            at += length
            self.next_block += 1
        return out

    def columns(self) -> dict[str, list[Any]]:
        """Python values of every column."""
        out: dict[str, list[Any]] = {}
        first = 0
        for column, field in enumerate(self.schema):
            values: list[Any] = []
            for chunk, rows in enumerate(self.chunk_rows):
                size = 1 << self.shift[column][chunk]
                for block in range((rows + size - 1) // size):
                    count = min(size, rows - block * size)
                    values += self._node(field.type, first, chunk, block, count)[0]
            out[field.name] = values
            first += count_streams(field.type)
        return out

    def _node(
        self, dtype: pa.DataType, stream: int, chunk: int, block: int, count: int
    ) -> tuple[list[Any], int]:
        """The slots of one block of a type, and the number of the stream after it."""
        if pa.types.is_null(dtype):
            return [None] * count, stream
        data = self.blocks[stream, chunk][block]
        if not data:
            valid, kind, body = [True] * count, VALIDITY, Bytes(b"")
            assert count == 0 or pa.types.is_struct(dtype)
        else:
            kind, valid, body = head(data, count)
        if pa.types.is_struct(dtype):
            return self._struct(dtype, stream, chunk, block, valid)
        if pa.types.is_list(dtype) or pa.types.is_map(dtype):
            return self._lists(dtype, stream, chunk, block, valid, kind, body)
        number = self.resource[stream][chunk]
        page = self.pages[number] if number >= 0 else b""
        values = leaf(dtype, kind, body, sum(valid), page) if any(valid) else []
        return spread(valid, values), stream + 1

    def _struct(
        self, dtype: pa.DataType, stream: int, chunk: int, block: int, valid: list[bool]
    ) -> tuple[list[Any], int]:
        after, columns = stream + 1, []
        for field in dtype.fields:
            values, after = self._node(field.type, after, chunk, block, len(valid))
            columns.append(values)
        names = [field.name for field in dtype.fields]
        rows = [
            dict(zip(names, [c[i] for c in columns], strict=True)) if ok else None
            for i, ok in enumerate(valid)
        ]
        return rows, after

    def _lists(
        self,
        dtype: pa.DataType,
        stream: int,
        chunk: int,
        block: int,
        valid: list[bool],
        kind: int,
        body: Bytes,
    ) -> tuple[list[Any], int]:
        ends = vector(body, sum(valid)) if kind == LISTS else []
        if pa.types.is_map(dtype):
            child = pa.struct([dtype.key_field, dtype.item_field])
        else:
            child = dtype.value_type
        values, after = self._node(child, stream + 1, chunk, block, ends[-1] if ends else 0)
        if pa.types.is_map(dtype):
            values = [tuple(entry.values()) for entry in values]
        lists = [values[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        return spread(valid, lists), after


def head(data: bytes, count: int) -> tuple[int, list[bool], Bytes]:
    source = Bytes(data)
    kind, flags, zero, slots = (source.number(n) for n in (1, 1, 2, 4))
    assert zero == 0
    assert slots == count
    if kind == ALL_NULL:
        return kind, [False] * count, source
    if not flags:
        return kind, [True] * count, source
    values = source.number(4)
    bitmap = unpack(source.take((count + 7) // 8), count, 1)
    assert sum(bitmap) == values
    return kind, [bool(bit) for bit in bitmap], source


def spread(valid: list[bool], values: list[Any]) -> list[Any]:
    rest = iter(values)
    return [next(rest) if ok else None for ok in valid]


def leaf(dtype: pa.DataType, kind: int, body: Bytes, count: int, page: bytes) -> list[Any]:
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return text_values(kind, body, count, page)
    bits = dtype.bit_width
    values = number_values(kind, body, count, page, bits)
    return values if pa.types.is_floating(dtype) else [signed(v, max(bits, 2)) for v in values]


def count_streams(dtype: pa.DataType) -> int:
    if pa.types.is_null(dtype):
        return 0
    if pa.types.is_struct(dtype):
        return 1 + sum(count_streams(f.type) for f in dtype.fields)
    if pa.types.is_map(dtype):
        return 2 + count_streams(dtype.key_type) + count_streams(dtype.item_type)
    if pa.types.is_list(dtype):
        return 1 + count_streams(dtype.value_type)
    return 1


def plain(array: pa.Array) -> list[Any]:
    """The values of an Arrow array in the oracle's terms: words for numbers, bytes for text."""
    t, dtype = pa.types, array.type
    if t.is_null(dtype):
        return [None] * len(array)
    valid = array.is_valid().to_pylist()
    if t.is_struct(dtype):
        columns = {f.name: plain(array.field(i)) for i, f in enumerate(dtype.fields)}
        return [
            {name: values[i] for name, values in columns.items()} if ok else None
            for i, ok in enumerate(valid)
        ]
    if t.is_list(dtype) or t.is_map(dtype):
        return _plain_lists(array, valid)
    if t.is_string(dtype) or t.is_binary(dtype):
        return array.cast(pa.binary()).to_pylist()
    if t.is_boolean(dtype):
        return [None if v is None else int(v) for v in array.to_pylist()]
    return [_word(array, i) if ok else None for i, ok in enumerate(valid)]


def _plain_lists(array: pa.Array, valid: list[bool]) -> list[Any]:
    if pa.types.is_map(array.type):
        child = [tuple(e.values()) for e in _entries(array)]
    else:
        child = plain(array.values)
    offsets = array.offsets.to_pylist()
    return [child[offsets[i] : offsets[i + 1]] if ok else None for i, ok in enumerate(valid)]


def _entries(array: pa.Array) -> list[dict[str, Any]]:
    keys, items = plain(array.keys), plain(array.items)
    return [{"key": k, "value": v} for k, v in zip(keys, items, strict=True)]


def _word(array: pa.Array, i: int) -> int:
    width = array.type.bit_width // 8
    start = (array.offset + i) * width
    raw = array.buffers()[1].to_pybytes()[start : start + width]
    return int.from_bytes(raw, "little", signed=not pa.types.is_floating(array.type))
