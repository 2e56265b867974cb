"""tantivy's files, seen as slices: what a search of some fields needs, and nothing else.

A segment is six files. ``.term``, ``.idx``, ``.pos`` and ``.fieldnorm`` are composites: the parts
of the fields one after another, then a table of (offset, field), its length, and tantivy's own
footer (JSON, its length, a magic number). Opening an index reads only the tails. So each file is
recorded as a tail plus one slice a field, each with a checksum, and a reader lays the ones it needs
into a sparse file of the full size. ``.fast`` is one slice: a hole in it would give wrong answers
without an error. ``.store`` holds nothing (no field is stored); only its tail is kept, which begins
with the table of its blocks.

The segment gets a fixed id, so that the same rows give the same bytes.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

from indextables.errors import CorruptFileError
from indextables.native._crc32c import crc32c
from indextables.splits.format.bundle import BundleWriter
from indextables.splits.format.info import IndexFile, Slice

SEGMENT_ID = "00000000-0000-0000-0000-000000000001"
SEGMENT = SEGMENT_ID.replace("-", "")
COMPOSITES = ("term", "idx", "pos", "fieldnorm")
WHOLE = "*"
_MAGIC = 1337
_STOP = 128
_STORE_FOOTER = struct.Struct("<IQ16x")
_STORE_VERSION = 2


def composite_slices(data: Any, path: str = "") -> tuple[dict[int, tuple[int, int]], int]:
    """({field number: (start, end)}, start of the tail) of a composite file."""
    end = footer_start(data, path)
    (length,) = struct.unpack("<I", data[end - 4 : end])
    at = table = end - 4 - length
    count, at = _vint(data, at)
    offset = 0
    starts: list[tuple[int, int]] = []
    for _ in range(count):
        delta, at = _vint(data, at)
        offset += delta
        (number,) = struct.unpack("<I", data[at : at + 4])
        _, at = _vint(data, at + 4)
        starts.append((offset, number))
    if at != end - 4 or offset > table:
        raise CorruptFileError("an index file has a broken table of fields", path=path)
    found: dict[int, tuple[int, int]] = {}
    for i, (start, number) in enumerate(starts):
        stop = starts[i + 1][0] if i + 1 < len(starts) else table
        first = found[number][0] if number in found else start
        found[number] = (first, stop)
    return found, table


def footer_start(data: Any, path: str = "") -> int:
    """Where tantivy's own footer begins."""
    length, magic = struct.unpack("<II", data[-8:])
    if magic != _MAGIC or length + 8 > len(data):
        raise CorruptFileError("an index file has no tantivy footer", path=path)
    return len(data) - 8 - int(length)


def store_tail(data: Any, path: str = "") -> int:
    """Where the table of blocks of a document store begins; an opener reads it and what follows."""
    end = footer_start(data, path) - _STORE_FOOTER.size
    if end < 0:
        raise CorruptFileError("a document store is too short", path=path)
    version, start = _STORE_FOOTER.unpack_from(data, end)
    if version != _STORE_VERSION or start > end:
        raise CorruptFileError("a document store has a footer that is not known", path=path)
    return int(start)


def _vint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte & _STOP:
            return value, at


def pack_index(folder: str, bundle: BundleWriter, names: list[str]) -> dict[str, IndexFile]:
    """Copy a finished one-segment index into the bundle; ``names`` are its fields in order."""
    return {
        extension: _pack_file(source, extension, bundle, names)
        for extension, source in sorted(segment_files(folder).items())
    }


def segment_files(folder: str) -> dict[str, str]:
    """The files of a one-segment index by extension."""
    found = {}
    for name in os.listdir(folder):
        stem, _, extension = name.partition(".")
        if len(stem) == 32 and extension in (*COMPOSITES, "fast", "store"):
            found[extension] = os.path.join(folder, name)
    return found


def _pack_file(source: str, extension: str, bundle: BundleWriter, names: list[str]) -> IndexFile:
    with open(source, "rb") as file:
        data = file.read()
    member = f"{SEGMENT}.{extension}"
    if extension == "store":
        tail = store_tail(data, member)
        bundle.add(member, memoryview(data)[tail:])
        return IndexFile(member, len(data), _slice(data, tail, len(data)), {})
    bundle.add(member, data)
    if extension == "fast":
        tail = max(0, len(data) - 512)
        whole = {WHOLE: _slice(data, 0, len(data))}
        return IndexFile(member, len(data), _slice(data, tail, len(data)), whole)
    found, tail = composite_slices(data, member)
    slices = {names[number]: _slice(data, *found[number]) for number in sorted(found)}
    tokens = (
        {n: tokens_of(data[s.start : s.end]) for n, s in slices.items()}
        if extension == "idx"
        else {}
    )
    return IndexFile(member, len(data), _slice(data, tail, len(data)), slices, tokens)


def tokens_of(postings: Any) -> int:
    """How many tokens a field has; its postings begin with the number."""
    return int.from_bytes(postings[:8], "little")


def _slice(data: bytes, start: int, end: int) -> Slice:
    return Slice(start, end, crc32c(memoryview(data)[start:end]))


def sealed_meta(folder: str) -> str:
    """The index's ``meta.json`` with the fixed segment id."""
    with open(os.path.join(folder, "meta.json")) as file:
        meta = json.load(file)
    for segment in meta["segments"]:
        segment["segment_id"] = SEGMENT_ID
    meta["opstamp"] = 0
    return json.dumps(meta, separators=(",", ":"))
