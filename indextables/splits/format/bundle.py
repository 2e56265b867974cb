"""The container of a split: members one after another, then a footer that names them.

    members | magic, version, {"files": {name: {"start", "end"}}} | u32 length
            | seal | u32 length of the seal

The frame is the one data splits have everywhere (the last part is the place of a "hotcache"). Ours
is sixteen bytes: a magic, the CRC-32C of the metadata before it and that of ``split.json``, which
in turn holds the checksums of all other members. So no byte of the file is outside a checksum, and
a footer of ours differs from a foreign one by its seal.

``footer_start`` is where the metadata begins, ``footer_end`` the end of the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from indextables.errors import CorruptFileError
from indextables.native._crc32c import crc32c
from indextables.storage.deleting import remove_file

MAGIC = b"\xae\xbe\x12\x18\x01\x00\x00\x00"
SEAL = b"ITXSEAL1"
TRAILER_MAGIC = b"QWFT"
INFO = "split.json"
_SEAL = struct.Struct("<8sII")


@dataclass(frozen=True, slots=True)
class Footer:
    """What a footer says: where members are, and the checksum of ``split.json`` if it is ours."""

    files: Mapping[str, tuple[int, int]]
    info_crc: int | None

    def range_of(self, name: str, path: str) -> tuple[int, int]:
        if name not in self.files:
            raise CorruptFileError(f"the split has no member '{name}'", path=path)
        return self.files[name]


class BundleWriter:
    """Writes members in order; every byte passes a checksum on its way."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: BinaryIO = open(path, "xb")  # noqa: SIM115
        self._files: dict[str, tuple[int, int]] = {}
        self._at = 0
        self.checksums: dict[str, int] = {}

    def add(self, name: str, *parts: Any) -> tuple[int, int]:
        """Append a member made of buffers; its range in the file."""
        start, crc = self._at, 0
        for part in parts:
            crc = crc32c(part, crc)
            self._write(part)
        return self._close(name, start, crc)

    def _write(self, part: Any) -> None:
        view = memoryview(part).cast("B")
        self._file.write(view)
        self._at += view.nbytes

    def _close(self, name: str, start: int, crc: int) -> tuple[int, int]:
        if name in self._files:
            raise ValueError(f"member '{name}' is already there")
        self._files[name] = (start, self._at)
        self.checksums[name] = crc
        return start, self._at

    def finish(self, *, sync: bool) -> tuple[int, int]:
        """Write the footer; (footer_start, footer_end)."""
        listing = {n: {"start": s, "end": e} for n, (s, e) in sorted(self._files.items())}
        metadata = MAGIC + json.dumps({"files": listing}, separators=(",", ":")).encode()
        seal = _SEAL.pack(SEAL, crc32c(metadata), self.checksums[INFO])
        start = self._at
        self._write(metadata + struct.pack("<I", len(metadata)))
        self._write(seal + struct.pack("<I", len(seal)))
        self._file.flush()
        if sync:
            os.fsync(self._file.fileno())
        self._file.close()
        return start, self._at

    def abort(self) -> None:
        """Leave nothing behind, also where what was written so far cannot be flushed any more."""
        with contextlib.suppress(OSError):
            self._file.close()
        remove_file(self.path, os.path.dirname(self.path))


def parse_footer(raw: bytes, footer_start: int, path: str) -> Footer:
    """The footer of a split, from its bytes ``[footer_start, end of file)``."""
    try:
        metadata, tail = _cut_footer(raw)
        body = json.loads(metadata[len(MAGIC) :])
        files = {n: (int(r["start"]), int(r["end"])) for n, r in body["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise CorruptFileError(
            f"the split's footer does not parse ({error})", offset=footer_start, path=path
        ) from error
    for name, (start, end) in files.items():
        if not 0 <= start <= end <= footer_start:
            raise CorruptFileError(
                f"member '{name}' lies outside the file", offset=footer_start, path=path
            )
    return Footer(files, _check_seal(metadata, tail, footer_start, path))


def _cut_footer(raw: bytes) -> tuple[bytes, bytes]:
    if raw[-4:] == TRAILER_MAGIC:
        raw = raw[:-16]
    (tail_length,) = struct.unpack("<I", raw[-4:])
    tail_start = len(raw) - 4 - tail_length
    (length,) = struct.unpack("<I", raw[tail_start - 4 : tail_start])
    if tail_start - 4 != length or raw[: len(MAGIC)] != MAGIC:
        raise ValueError("lengths or magic do not fit")
    return raw[:length], raw[tail_start:-4]


def _check_seal(metadata: bytes, tail: bytes, footer_start: int, path: str) -> int | None:
    """CRC of ``split.json`` if the split is ours; a foreign one has a hotcache instead."""
    if INFO.encode() not in metadata and not tail.startswith(SEAL):
        return None
    if len(tail) == _SEAL.size:
        seal, crc, info_crc = _SEAL.unpack(tail)
        if seal == SEAL and crc == crc32c(metadata):
            return int(info_crc)
    raise CorruptFileError("the footer's checksum is wrong", offset=footer_start, path=path)
