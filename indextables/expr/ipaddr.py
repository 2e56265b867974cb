"""IP addresses as 128-bit numbers: IPv4 is mapped into IPv6 (``::ffff:a.b.c.d``).

A value of an ip column is an address if it is one in the strict notation (no leading zeros, no
zone); anything else is a value without an address and matches no address query. A query may name
one address, a CIDR block (``10.0.0.0/8``, host bits are ignored) or trailing wildcards
(``10.0.*.*``); each is a closed range of numbers.
"""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.errors import TypeMismatchError
from indextables.expr.ast import Range

_MAPPED = 0xFFFF << 32
_MAPPED_PREFIX = bytes(10) + b"\xff\xff"
_HINT = "Write an address, a CIDR block (10.0.0.0/8) or trailing wildcards (10.0.*.*)"


def address_bytes(text: str) -> bytes | None:
    """The 16 bytes of an address, or ``None`` if the text is not one."""
    try:
        if ":" not in text:
            return _MAPPED_PREFIX + socket.inet_pton(socket.AF_INET, text)
        return socket.inet_pton(socket.AF_INET6, text)
    except (OSError, ValueError):
        return None


def parse_address(text: str) -> int | None:
    """The number of an address, or ``None`` if the text is not one."""
    raw = address_bytes(text)
    return None if raw is None else int.from_bytes(raw, "big")


def format_address(number: int) -> str:
    """The usual notation of an address: dotted if it is a mapped IPv4 address."""
    raw = number.to_bytes(16, "big")
    if number >> 32 == _MAPPED >> 32:
        return socket.inet_ntop(socket.AF_INET, raw[12:])
    return socket.inet_ntop(socket.AF_INET6, raw)


def address_range(text: str) -> tuple[int, int]:
    """The closed range of addresses that an address, a CIDR block or a wildcard names."""
    number = parse_address(text)
    if number is not None:
        return number, number
    found = _cidr(text) if "/" in text else _wildcard(text)
    if found is None:
        raise TypeMismatchError(f"'{text}' is not an IP address or range", hint=_HINT)
    return found


def is_range(text: str) -> bool:
    """Does a text name an address, a CIDR block or a wildcard?"""
    try:
        address_range(text)
    except TypeMismatchError:
        return False
    return True


def addresses_between(query: Range) -> tuple[int, int] | None:
    """The closed range of a range of addresses; ``None`` if an end is not one."""
    low = 0 if query.lower is None else parse_address(str(query.lower))
    high = 2**128 - 1 if query.upper is None else parse_address(str(query.upper))
    if low is None or high is None:
        return None
    low += query.lower is not None and not query.include_lower
    high -= query.upper is not None and not query.include_upper
    return low, high


def _cidr(text: str) -> tuple[int, int] | None:
    address, _, bits = text.partition("/")
    number = parse_address(address)
    width = 32 if ":" not in address else 128
    if number is None or not bits.isascii() or not bits.isdigit() or int(bits) > width:
        return None
    span = (1 << (width - int(bits))) - 1
    return number & ~span, number | span


def _wildcard(text: str) -> tuple[int, int] | None:
    parts = text.split(".")
    fixed = [p for p in parts if p != "*"]
    if len(parts) != 4 or parts[: len(fixed)] != fixed or not fixed:
        return None
    free = 4 - len(fixed)
    number = parse_address(".".join(fixed + ["0"] * free))
    return None if number is None else (number, number | ((1 << (8 * free)) - 1))


def address_array(array: Any) -> pa.Array:
    """The 16-byte addresses of a string array; null where a value is null or no address."""
    coded = array.dictionary_encode()
    raw = [None if v is None else address_bytes(v) for v in coded.dictionary.to_pylist()]
    return pa.array(raw, pa.binary(16)).take(coded.indices)


def halves(addresses: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
    """High and low 64 bits and validity of a 16-byte array, for vectorised comparison."""
    valid = addresses.is_valid().to_numpy(zero_copy_only=False)
    filled = addresses.fill_null(bytes(16))
    data = np.frombuffer(filled.buffers()[1], ">u8", 2 * len(filled), 16 * filled.offset)
    pairs = data.reshape(-1, 2).astype(np.uint64)
    return pairs[:, 0], pairs[:, 1], valid


def in_range(array: Any, low: int, high: int) -> NDArray[np.bool_]:
    """Which values of a string array are addresses inside a closed range."""
    top, bottom, valid = halves(address_array(array))
    low_top, low_bottom = np.uint64(low >> 64), np.uint64(low & (2**64 - 1))
    high_top, high_bottom = np.uint64(high >> 64), np.uint64(high & (2**64 - 1))
    above = (top > low_top) | ((top == low_top) & (bottom >= low_bottom))
    below = (top < high_top) | ((top == high_top) & (bottom <= high_bottom))
    inside: NDArray[np.bool_] = valid & above & below
    return inside
