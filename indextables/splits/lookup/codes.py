"""Codes: exact strings, and numbers of few values, as small numbers.

The values of a column, in order of first appearance, are numbered from 1; 0 is NULL. One byte (or
two) a row, compressed, gives every row's value. A question about the column alone is then asked of
its few values and looked up for all rows at once, and groups are counted without a string.

    "ITXCODE2"  u64 rows  u32 values  u32 form  u64 bytes of the codes, compressed
    u32 lengths[values]  the values, UTF-8  the codes, zstd

Codes of few values are written several to a byte before they are compressed, because the compressor
spends whole bits on a byte: the level of a log line then takes 1.5 bits, not 2.2. ``form`` says
how many, as digits of one number, lowest first; 0 stands for codes of two bytes, all lower bytes
before all upper ones. Tables of older releases ("ITXCODE1") have one code after the other, of
``form`` bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.buffers import number_array
from indextables.errors import CorruptFileError
from indextables.storage.machine import refuse_to_judge

MOST_VALUES = 65_535
_HEADER = struct.Struct("<8sQIIQ")
_MAGIC = b"ITXCODE2"
_OLD_MAGIC = b"ITXCODE1"
_PLANES = 0
_CODEC = "zstd"


@dataclass(frozen=True)
class Codes:
    """The codes of a column: ``values[c - 1]`` is the value of code ``c``, 0 is NULL."""

    values: pa.Array
    codes: NDArray[Any]

    @cached_property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.values.nbytes)

    def labels(self, codes: NDArray[Any]) -> pa.Array:
        """The values of some codes."""
        index = number_array(np.maximum(codes.astype(np.int64) - 1, 0), codes == 0)
        return self.values.take(index)


def typed_values(texts: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Spelt values as values of the column."""
    if pa.types.is_string(dtype):
        return texts
    numbers = texts.cast(pa.int64())
    return (numbers.cast(pa.int32()) if pa.types.is_date(dtype) else numbers).cast(dtype)


class CodeBuilder:
    """Numbers the values of a column, array by array; gives up where there are too many."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._parts: list[NDArray[np.uint16]] | None = []

    @property
    def gave_up(self) -> bool:
        """Were there too many values?"""
        return self._parts is None

    @property
    def values(self) -> list[str]:
        """The values that were numbered."""
        return list(self._numbers)

    def counts(self) -> NDArray[np.int64] | None:
        """In how many rows each of ``values`` is, ``None`` if there were too many."""
        if self._parts is None:
            return None
        codes = np.concatenate([np.empty(0, np.uint16), *self._parts])
        return np.bincount(codes, minlength=len(self._numbers) + 1)[1:].astype(np.int64)

    def add(self, coded: pa.DictionaryArray) -> None:
        if self._parts is None:
            return
        numbers = self._numbers
        for value in coded.dictionary.to_pylist():
            numbers.setdefault(value, len(numbers) + 1)
        if len(numbers) > MOST_VALUES:
            self._parts = None
            return
        table = np.array([numbers[v] for v in coded.dictionary.to_pylist()] + [0], np.uint16)
        index = coded.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)
        self._parts.append(table[index])

    def finish(self) -> bytes | None:
        """The member, or ``None`` if the column has too many values."""
        if self._parts is None:
            return None
        codes = np.concatenate([np.empty(0, np.uint16), *self._parts])
        texts = [value.encode() for value in self._numbers]
        form = _form_of(len(texts))
        packed = pa.compress(_pack(codes, len(texts) + 1, form), codec=_CODEC, asbytes=True)
        header = _HEADER.pack(_MAGIC, len(codes), len(texts), form, len(packed))
        lengths = np.array([len(t) for t in texts], "<u4").tobytes()
        return b"".join([header, lengths, *texts, packed])


def _form_of(values: int) -> int:
    """How many codes of so many values (and NULL) one byte holds; ``_PLANES``: less than one."""
    return next((k for k in range(8, 0, -1) if (values + 1) ** k <= 256), _PLANES)


def _pack(codes: NDArray[np.uint16], base: int, form: int) -> bytes:
    if form == _PLANES:
        return codes.astype("<u2").view(np.uint8).reshape(-1, 2).T.tobytes()
    digits = np.zeros((-(-len(codes) // form), form), np.uint8)
    digits.reshape(-1)[: len(codes)] = codes
    return (digits @ base ** np.arange(form)).astype(np.uint8).tobytes()


def _unpacked(packed: bytes, rows: int, base: int, form: int) -> NDArray[Any]:
    """The codes of one member of the present form."""
    if form != _form_of(base - 1):
        raise ValueError(f"{base - 1} values are not written in form {form}")
    size = 2 * rows if form == _PLANES else -(-rows // form)
    plain = np.frombuffer(pa.decompress(packed, size, codec=_CODEC, asbytes=True), np.uint8)
    if form == _PLANES:
        return plain.reshape(2, -1).T.copy().view("<u2").reshape(-1)
    if form == 1:
        return plain
    if len(plain) and int(plain.max()) >= base**form:
        raise ValueError("a byte holds more than its codes")
    return _digits(base, form)[plain].reshape(-1)[:rows]


@lru_cache
def _digits(base: int, form: int) -> NDArray[np.uint8]:
    """The codes of each byte."""
    digits = np.arange(base**form)[:, None] // base ** np.arange(form) % base
    return digits.astype(np.uint8)


def _unpacked_old(packed: bytes, rows: int, width: int) -> NDArray[Any]:
    if width not in (1, 2):
        raise ValueError("not a table of codes")
    plain = pa.decompress(packed, rows * width, codec=_CODEC, asbytes=True)
    return np.frombuffer(plain, f"<u{width}")


def parse_codes(raw: bytes, dtype: pa.DataType, num_rows: int, path: str) -> Codes:
    """The codes of a member that passed its checksum, for the rows the split has.

    A few bytes unpack to any number of codes, so what they say is compared with the split first.
    """
    try:
        magic, rows, count, form, packed = _HEADER.unpack_from(raw)
        if magic not in (_MAGIC, _OLD_MAGIC):
            raise ValueError("not a table of codes")
        if rows != num_rows:
            raise ValueError(f"codes of {rows} rows, the split has {num_rows}")
        spelt, end = _spelt(raw, count)
        if end + packed != len(raw):
            raise ValueError("lengths do not fit")
        values = typed_values(spelt, dtype)
        if magic == _MAGIC:
            codes = _unpacked(raw[end:], rows, count + 1, form)
        else:
            codes = _unpacked_old(raw[end:], rows, form)
    except (ValueError, struct.error, pa.ArrowException, OSError) as error:
        refuse_to_judge(error, path=path)
        raise CorruptFileError(f"a table of codes does not parse ({error})", path=path) from error
    if len(codes) != rows or (rows and int(codes.max()) > count):
        raise CorruptFileError("a table of codes names values it does not have", path=path)
    return Codes(values, codes)


def _spelt(raw: bytes, count: int) -> tuple[pa.Array, int]:
    """The spelt values, and where they end."""
    if count > MOST_VALUES:
        raise ValueError(f"{count} values are more than codes can name")
    lengths = np.frombuffer(raw, "<u4", count, _HEADER.size)
    start = _HEADER.size + 4 * count
    ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(lengths, dtype=np.uint64)])
    if int(ends[-1]) > len(raw) - start:
        raise ValueError("lengths do not fit")
    end = start + int(ends[-1])
    offsets, texts = pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(raw[start:end])
    spelt = pa.Array.from_buffers(pa.string(), count, [None, offsets, texts])
    spelt.validate(full=True)
    return spelt, end
