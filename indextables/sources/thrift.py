"""Thrift's compact protocol, as much of it as the metadata of Parquet files needs.

``read_struct`` decodes what the caller names and steps over the rest: a footer holds statistics and
notes that are of no use here. What is wanted is said as a ``Wanted``: field ids with what their
values hold. A struct comes out as a dictionary by field id; the entry ``RAW``, where it was asked
for, holds the bytes of the struct itself, which can be put into another file unchanged.

Bytes come from files that anybody may have written. Each step is compared with the bytes that are
there, lists may not claim more elements than bytes are left, and structs nest to a bounded depth.
What does not fit is ``CorruptFileError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from indextables.errors import CorruptFileError

Wanted: TypeAlias = "Mapping[int, Wanted | None]"
Struct: TypeAlias = "dict[int, Any]"

RAW = -1
"""Asks for the bytes of a struct; a key of what is wanted and of what is given."""
DEEPEST = 64

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_STOP = 0
_INTEGERS = frozenset((I16, I32, I64))


def read_struct(data: bytes, start: int, wanted: Wanted) -> tuple[Struct, int]:
    """The struct that begins at ``start``, and where it ends."""
    reader = _Reader(data, start)
    try:
        return reader.struct(wanted, 0), reader.at
    except IndexError:
        raise CorruptFileError("metadata of Parquet ends early", offset=len(data)) from None


class _Reader:
    """A place in bytes; every step checks that it stays inside."""

    __slots__ = ("at", "data", "size")

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at, self.size = data, at, len(data)

    def fail(self, why: str) -> CorruptFileError:
        return CorruptFileError(f"metadata of Parquet: {why}", offset=self.at)

    def varint(self) -> int:
        data, at = self.data, self.at
        byte = data[at]
        at += 1
        if byte < 0x80:
            self.at = at
            return byte
        value, shift = byte & 0x7F, 7
        while byte >= 0x80:
            if shift > 63:
                raise self.fail("a number of more than 64 bits")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        self.at = at
        return value

    def integer(self) -> int:
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1)

    def step(self, count: int) -> int:
        """Go ahead by ``count`` bytes; where it was."""
        at = self.at
        if count > self.size - at:
            raise self.fail(f"{count} bytes where {self.size - at} are left")
        self.at = at + count
        return at

    def struct(self, wanted: Wanted, depth: int) -> Struct:
        if depth > DEEPEST:
            raise self.fail("structs inside structs without end")
        data, start, found, field = self.data, self.at, {}, 0
        while True:
            head = data[self.at]
            self.at += 1
            kind = head & 0x0F
            if kind == _STOP:
                break
            field = field + (head >> 4) if head >> 4 else self.integer()
            if field in wanted:
                found[field] = self.value(kind, wanted[field] or {}, depth + 1, False)
            else:
                self.skip(kind, depth + 1, False)
        if RAW in wanted:
            found[RAW] = bytes(data[start : self.at])
        return found

    def value(self, kind: int, wanted: Wanted, depth: int, listed: bool) -> Any:
        if kind in _INTEGERS:
            return self.integer()
        if kind == STRUCT:
            return self.struct(wanted, depth)
        if kind == BINARY:
            length = self.varint()
            at = self.step(length)
            return bytes(self.data[at : at + length])
        if kind in (LIST, SET):
            inner, count = self.list_head()
            return [self.value(inner, wanted, depth + 1, True) for _ in range(count)]
        if kind in (TRUE, FALSE):
            return self.data[self.step(1)] == TRUE if listed else kind == TRUE
        if kind == BYTE:
            byte = self.data[self.step(1)]
            return byte - 256 if byte > 127 else byte
        raise self.fail(f"a value of the kind {kind} that was not expected")

    def list_head(self) -> tuple[int, int]:
        head = self.data[self.step(1)]
        count = head >> 4 if head >> 4 != 15 else self.varint()
        if count > self.size - self.at:
            raise self.fail(f"a list of {count} where {self.size - self.at} bytes are left")
        return head & 0x0F, count

    def skip(self, kind: int, depth: int, listed: bool) -> None:
        if depth > DEEPEST:
            raise self.fail("values inside values without end")
        if kind in _INTEGERS:
            self.varint()
        elif kind == BINARY:
            self.step(self.varint())
        elif kind == STRUCT:
            self.struct({}, depth)
        elif kind in (LIST, SET):
            inner, count = self.list_head()
            for _ in range(count):
                self.skip(inner, depth + 1, True)
        elif kind in (TRUE, FALSE):
            self.step(1 if listed else 0)
        elif kind in (BYTE, DOUBLE):
            self.step(8 if kind == DOUBLE else 1)
        elif kind == MAP:
            self.skip_map(depth)
        else:
            raise self.fail(f"a value of the unknown kind {kind}")

    def skip_map(self, depth: int) -> None:
        count = self.varint()
        if count > self.size - self.at:
            raise self.fail(f"a map of {count} where {self.size - self.at} bytes are left")
        if count:
            kinds = self.data[self.step(1)]
            for _ in range(count):
                self.skip(kinds >> 4, depth + 1, True)
                self.skip(kinds & 0x0F, depth + 1, True)


# -- writing --------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(value: int) -> bytes:
    """A number of any width."""
    return _varint((value << 1) ^ (value >> 63))


def binary(value: bytes) -> bytes:
    """A string of bytes."""
    return _varint(len(value)) + value


def listed(kind: int, values: Iterable[bytes]) -> bytes:
    """A list of encoded values of one kind."""
    items = list(values)
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind])
    return head + (_varint(len(items)) if len(items) >= 15 else b"") + b"".join(items)


def struct(fields: Iterable[tuple[int, int, bytes]]) -> bytes:
    """A struct of ``(field id, kind, encoded value)`` in ascending order of ids."""
    out, last = bytearray(), 0
    for field, kind, value in fields:
        gap = field - last
        out += bytes([gap << 4 | kind]) if 0 < gap < 16 else bytes([kind]) + integer(field)
        out += value
        last = field
    out.append(_STOP)
    return bytes(out)
