"""The bytes of a deletion vector, as Delta and Iceberg share them.

A vector is the magic ``D1 D3 39 64`` and a set of row numbers, a 64-bit Roaring bitmap in its
portable form. In a file it stands between its length and its CRC-32 (both big endian): in a file of
Delta after a first byte that says version 1, in a Puffin file of Iceberg as a blob. In a log it
stands alone, as text in base 85. One reader serves them all: ``read_vector`` takes it with or
without the frame.

A vector says only which rows are gone; of which file, how many, and how many rows that file has,
its owner knows and has to compare: ``most`` bounds what is decoded.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.errors import CorruptFileError
from indextables.native._roaring import decode_rows, encode_rows

MAGIC = b"\xd1\xd3\x39\x64"
FILE_VERSION = b"\x01"
FRAME_BYTES = 8
MOST_ROWS = 1 << 32

Rows32 = NDArray[np.uint32]
Rows64 = NDArray[np.uint64]


def read_vector(data: bytes | memoryview, *, most: int = MOST_ROWS) -> Rows64:
    """The rows of a vector, ascending; ``CorruptFileError`` where there are more than ``most``."""
    raw = bytes(data)
    if not raw.startswith(MAGIC):
        raw = unframed(raw)
    if not raw.startswith(MAGIC):
        raise CorruptFileError("not a deletion vector of the portable form", offset=0)
    return decode_rows(raw[len(MAGIC) :], most)


def vector_bytes(rows: NDArray[Any]) -> bytes:
    """The vector of ascending rows, without a frame."""
    return MAGIC + encode_rows(np.ascontiguousarray(rows, np.uint64))


def framed(data: bytes) -> bytes:
    """A vector as it stands in files: length, vector, CRC-32."""
    return len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")


def unframed(raw: bytes) -> bytes:
    """The vector inside its frame, which is checked."""
    size = int.from_bytes(raw[:4], "big")
    if len(raw) != size + FRAME_BYTES:
        raise CorruptFileError(f"a deletion vector of {size} bytes in {len(raw)}", offset=0)
    data = raw[4:-4]
    if zlib.crc32(data) != int.from_bytes(raw[-4:], "big"):
        raise CorruptFileError("a deletion vector has a wrong checksum", offset=0)
    return data


def vector_file_bytes(vectors: Iterable[bytes]) -> tuple[bytes, list[int]]:
    """A file of vectors, and where in it each begins."""
    out = bytearray(FILE_VERSION)
    offsets = []
    for data in vectors:
        offsets.append(len(out))
        out += framed(data)
    return bytes(out), offsets
