"""Values of an index: five kinds, each with one normal form and one total order.

Null sorts before everything. Integers, dates (days) and timestamps (microseconds, UTC) are 64-bit
integers; text is its UTF-8 bytes, in byte order; false sorts before true. Of floats, -0.0 is 0.0,
all NaN are one value, and it sorts after infinity, as Spark has it.

Inside an index every value that is not text is one signed integer, its *key*, chosen so that keys
sort as the values do. Floats get theirs by turning the sign-magnitude order of their bits into
two's complement. Text is its own key, as ``bytes``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.errors import IndexTablesError

Key: TypeAlias = int | bytes

NAN_BITS = 0x7FF8000000000000
MAGNITUDE = 0x7FFFFFFFFFFFFFFF


class Kind(IntEnum):
    """What a column holds; the numbers are those of the file header."""

    INT = 1
    UINT = 2
    FLOAT = 3
    TEXT = 4
    BOOL = 5
    TIMESTAMP = 6


@dataclass(frozen=True, slots=True)
class IndexedValue:
    """One value of an index; ``key`` of ``None`` is Null."""

    kind: Kind
    key: Key | None

    @classmethod
    def of(cls, kind: Kind, value: Any) -> IndexedValue:
        return cls(kind, None if value is None else key_of(kind, value))

    @property
    def value(self) -> Any:
        """The value in Python terms."""
        return None if self.key is None else value_of(self.kind, self.key)

    def __lt__(self, other: IndexedValue) -> bool:
        if self.key is None or other.key is None:
            return self.key is None and other.key is not None
        if type(self.key) is not type(other.key) or self.kind != other.kind:
            raise IndexTablesError(f"a {self.kind.name} cannot be compared with {other.kind.name}")
        return bool(self.key < other.key)  # type: ignore[operator]


def kind_of(dtype: pa.DataType) -> Kind | None:
    """The kind of a column's type; ``None``: it cannot be indexed."""
    types = pa.types
    if types.is_signed_integer(dtype) or types.is_date32(dtype):
        return Kind.INT
    if types.is_unsigned_integer(dtype):
        return Kind.UINT
    if types.is_float32(dtype) or types.is_float64(dtype):
        return Kind.FLOAT
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return Kind.TEXT
    if types.is_boolean(dtype):
        return Kind.BOOL
    return Kind.TIMESTAMP if types.is_timestamp(dtype) else None


def require_kind(dtype: pa.DataType, column: str) -> Kind:
    """The kind of a column's type, or an error that names the column."""
    kind = kind_of(dtype)
    if kind is None:
        raise IndexTablesError(
            f"column '{column}' of type {dtype} cannot be indexed",
            hint="Integers, floats, strings, booleans, dates and timestamps can",
        )
    return kind


def key_of(kind: Kind, value: Any) -> Key:
    """The key of one value; raises ``TypeError``/``ValueError`` for a value of another kind."""
    if kind is Kind.TEXT:
        if isinstance(value, bytes):
            return value
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is not text")
        return value.encode("utf-8", "surrogatepass")
    if kind is Kind.FLOAT:
        return float_key(float(value))
    if isinstance(value, str | bytes) or int(value) != value:
        raise TypeError(f"{value!r} is not a value of kind {kind.name}")
    return int(value)


def value_of(kind: Kind, key: Key) -> Any:
    """The value a key stands for."""
    if isinstance(key, bytes):
        return key.decode("utf-8", "surrogatepass")
    if kind is Kind.FLOAT:
        return struct.unpack(">d", struct.pack(">q", key if key >= 0 else key ^ MAGNITUDE))[0]
    return bool(key) if kind is Kind.BOOL else int(key)


def float_key(value: float) -> int:
    """The sorting integer of a float."""
    if value != value:
        return NAN_BITS
    (bits,) = struct.unpack(">q", struct.pack(">d", value + 0.0))
    return int(bits if bits >= 0 else bits ^ MAGNITUDE)


def float_keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The sorting integers of many floats."""
    bits = (values + 0.0).view(np.int64)
    keys = np.where(bits >= 0, bits, bits ^ np.int64(MAGNITUDE))
    keys[np.isnan(values)] = NAN_BITS
    return keys


def number_keys(kind: Kind, column: Any) -> NDArray[np.int64]:
    """Keys of a column without nulls and not of text."""
    if kind is Kind.FLOAT:
        return float_keys(np.asarray(column.cast(pa.float64())))
    try:
        if kind is Kind.TIMESTAMP:
            column = column.cast(pa.timestamp("us", column.type.tz))
        elif pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        elif kind is Kind.BOOL:
            column = pc.cast(column, pa.int8())
        return np.asarray(column.cast(pa.int64()))
    except pa.ArrowInvalid as error:
        raise IndexTablesError(f"a value is outside 64-bit integers: {error}") from error
