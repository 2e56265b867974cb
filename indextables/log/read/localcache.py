"""A local copy of a state's columns, so that a big table opens without decoding its manifests.

A copy is named by where the table lies and by the digest of the state manifest it was made from.
Manifests never change, so the digest says it all: a copy is either exactly right or has another
name. Copies live in a folder of the user's, are written whole under another name and then renamed,
and are only ever mapped into memory, so any number of processes may read, write and delete them.

The file: magic, length and CRC32C of a JSON header, the header, then buffers at multiples of 64.
The header lists every buffer with its place, type and CRC32C. All of it is checked before use;
a copy that is damaged, cut short or of another format is deleted and the table is read from its
log. No failure of the cache is a failure of the table.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from indextables.config import Config
from indextables.log.read.columns import Mask, Segment
from indextables.log.read.packed import PackedInts, PackedMap, PackedSegment, PackedText
from indextables.native import crc32c
from indextables.storage.base import Store
from indextables.storage.deleting import remove_file
from indextables.storage.mapped import map_file
from indextables.storage.paths import is_temporary, temporary_name

logger = logging.getLogger(__name__)

MAGIC = b"ITXCOLS1"
MIN_ENTRIES = 10_000
COPIES_PER_TABLE = 2
_ALIGN = 64
_STALE_DRAFT_S = 24 * 3600
_SUFFIX = ".columns"
_DTYPES = frozenset(("|u1", "<u2", "<u4", "<u8", "<i8"))


@dataclass(frozen=True, slots=True)
class CachedColumns:
    """Segments and live masks of a state."""

    segments: list[Segment]
    live: list[Mask | None]


class LocalCache:
    """Copies in one folder."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.max_bytes = max_bytes

    @classmethod
    def of(cls, config: Config) -> LocalCache | None:
        """The cache the settings ask for, if any."""
        if not config["state.cache.enabled"]:
            return None
        chosen = config["state.cache.path"]
        if chosen is None and config["cache.directoryPath"] is not None:
            chosen = os.path.join(config["cache.directoryPath"], "state")
        folder = Path(chosen) if chosen is not None else _user_folder()
        return cls(folder, config["state.cache.maxSize"])

    def path_of(self, store: Store, version: int, fingerprint: str) -> Path:
        table = hashlib.sha256(store.identity.encode()).hexdigest()[:24]
        return self.folder / f"{table}-{version}-{fingerprint[:32]}{_SUFFIX}"

    def has(self, store: Store, version: int, fingerprint: str) -> bool:
        """Is there a copy of a state?"""
        return self.path_of(store, version, fingerprint).exists()

    def load(self, path: Path) -> CachedColumns | None:
        """The copy at ``path``, ``None`` when there is no good one."""
        try:
            view = map_file(path)
        except OSError:
            return None
        try:
            found = _Reader(view).columns()
        except (
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            AttributeError,
            RecursionError,
        ) as error:
            logger.warning("deleting a damaged copy of a table's columns: %s (%s)", path, error)
            remove_file(path, self.folder)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def save(self, path: Path, columns: CachedColumns) -> bool:
        """Write a copy; ``False`` when that was not possible, which does no harm."""
        if not all(isinstance(segment, PackedSegment) for segment in columns.segments):
            return False
        draft = path.with_name(temporary_name())
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _Writer(columns).write(draft)
            os.replace(draft, path)
            self._make_room(path)
        except OSError as error:
            logger.info("no local copy of a table's columns: %s", error)
            remove_file(draft, self.folder)
            return False
        return True

    def _make_room(self, newest: Path) -> None:
        """Keep a few copies per table and stay within the size; the newest always stays."""
        infos = []
        for entry in os.scandir(self.folder):
            with contextlib.suppress(OSError):
                found = entry.stat()
                if entry.name.endswith(_SUFFIX) and entry.name != newest.name:
                    infos.append((found.st_mtime, found.st_size, Path(entry.path)))
                elif is_temporary(entry.name) and time.time() - found.st_mtime > _STALE_DRAFT_S:
                    remove_file(entry.path, self.folder)
        infos.sort(key=lambda info: info[0], reverse=True)
        room = self.max_bytes - newest.stat().st_size
        same_table = 1
        for _, size, path in infos:
            mine = path.name.split("-")[0] == newest.name.split("-")[0]
            same_table += mine
            room -= size
            if room < 0 or (mine and same_table > COPIES_PER_TABLE):
                remove_file(path, self.folder)


def _user_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "indextables" / "state"


# -- writing ------------------------------------------------------------------------------------


class _Writer:
    """Collects buffers while the segments are described."""

    def __init__(self, columns: CachedColumns) -> None:
        self._buffers: list[npt.NDArray[Any]] = []
        self._segments = [
            self._segment(s) for s in columns.segments if isinstance(s, PackedSegment)
        ]
        self._live = [
            self._array(None if mask is None else mask.view(np.uint8)) for mask in columns.live
        ]

    def _array(self, array: npt.NDArray[Any] | None) -> int | None:
        if array is None:
            return None
        self._buffers.append(np.ascontiguousarray(array))
        return len(self._buffers) - 1

    def _ints(self, column: PackedInts) -> list[Any]:
        return [column.n, column.base, self._array(column.data), self._array(column.valid)]

    def _text(self, column: PackedText) -> list[Any]:
        skeletons = column.skeletons
        return [
            column.n,
            self._array(column.valid),
            None if skeletons is None else [s.decode("latin-1") for s in skeletons],
            self._array(column.codes),
            [self._ints(slot) for slot in column.slots],
            self._array(column.data),
            self._array(column.offsets),
        ]

    def _texts(self, columns: Mapping[str, PackedText]) -> dict[str, Any]:
        return {name: self._text(column) for name, column in columns.items()}

    def _map(self, column: PackedMap) -> list[Any]:
        present = None if column.present is None else self._ints(column.present)
        return [present, self._texts(column.columns)]

    def _segment(self, segment: PackedSegment) -> dict[str, Any]:
        return {
            "n": segment.n,
            "manifest": segment.manifest,
            "ints": {name: self._ints(c) for name, c in segment.int_columns.items()},
            "texts": self._texts(segment.text_columns),
            "maps": {name: self._map(c) for name, c in segment.map_columns.items()},
            "lists": self._texts(segment.list_columns),
            "hashes": [self._array(segment.hashes), self._array(segment.hash_rows)],
        }

    def write(self, path: Path) -> None:
        places, size = [], 0
        for array in self._buffers:
            places.append([size, array.nbytes, array.dtype.str, crc32c(array.view(np.uint8))])
            size += -(-array.nbytes // _ALIGN) * _ALIGN
        body = {"size": size, "buffers": places, "segments": self._segments, "live": self._live}
        header = json.dumps(body, separators=(",", ":")).encode()
        header += b" " * (-(len(MAGIC) + 8 + len(header)) % _ALIGN)
        with open(path, "xb") as file:
            file.write(MAGIC + struct.pack("<II", len(header), crc32c(header)) + header)
            for array in self._buffers:
                file.write(array.data)
                file.write(bytes(-array.nbytes % _ALIGN))


# -- reading ------------------------------------------------------------------------------------


class _Reader:
    """Checks a copy and builds segments over its memory; ``ValueError`` when it is not right."""

    def __init__(self, view: memoryview) -> None:
        start = len(MAGIC) + 8
        if len(view) < start or view[: len(MAGIC)] != MAGIC:
            raise ValueError("not a copy of columns, or of another format")
        length, checksum = struct.unpack("<II", view[len(MAGIC) : start])
        if start + length > len(view) or crc32c(view[start : start + length]) != checksum:
            raise ValueError("the header is damaged")
        self._header = json.loads(bytes(view[start : start + length]))
        self._memory = view[start + length :]
        if len(self._memory) != self._header["size"]:
            raise ValueError("the file is cut short")
        self._arrays = [self._buffer(*place) for place in self._header["buffers"]]

    def _buffer(self, start: int, size: int, dtype: str, checksum: int) -> npt.NDArray[Any]:
        if dtype not in _DTYPES or start < 0 or size < 0 or start + size > len(self._memory):
            raise ValueError("a buffer lies outside the file")
        raw = self._memory[start : start + size]
        if crc32c(raw) != checksum:
            raise ValueError("a buffer is damaged")
        return np.frombuffer(raw, np.dtype(dtype))

    def _array(self, number: int | None, length: int | None = None) -> npt.NDArray[Any] | None:
        if number is None:
            return None
        array = self._arrays[number]
        if length is not None and len(array) != length:
            raise ValueError("a column has the wrong length")
        return array

    def _ints(self, spelled: Sequence[Any]) -> PackedInts:
        n, base, data, valid = spelled
        return PackedInts(n, base, self._array(data, n), self._array(valid, (n + 7) // 8))

    def _text(self, spelled: Sequence[Any]) -> PackedText:
        n, valid, skeletons, codes, slots, data, offsets = spelled
        return PackedText(
            n,
            self._array(valid, (n + 7) // 8),
            None if skeletons is None else tuple(s.encode("latin-1") for s in skeletons),
            self._array(codes, n),
            tuple(self._ints(slot) for slot in slots),
            self._array(data),
            self._array(offsets, n + 1),
        )

    def _texts(self, spelled: Mapping[str, Any]) -> dict[str, PackedText]:
        return {name: self._text(column) for name, column in spelled.items()}

    def _map(self, spelled: Sequence[Any]) -> PackedMap:
        present, columns = spelled
        return PackedMap(None if present is None else self._ints(present), self._texts(columns))

    def _segment(self, spelled: Mapping[str, Any]) -> PackedSegment:
        hashes, rows = (self._array(number, spelled["n"]) for number in spelled["hashes"])
        if hashes is None or rows is None:
            raise ValueError("a segment has no index of paths")
        return PackedSegment(
            spelled["n"],
            {name: self._ints(column) for name, column in spelled["ints"].items()},
            self._texts(spelled["texts"]),
            {name: self._map(column) for name, column in spelled["maps"].items()},
            self._texts(spelled["lists"]),
            (hashes, rows),
            spelled["manifest"],
        )

    def columns(self) -> CachedColumns:
        segments: list[Segment] = [self._segment(s) for s in self._header["segments"]]
        live: list[Mask | None] = []
        for number, segment in zip(self._header["live"], segments, strict=True):
            mask = self._array(number, segment.n)
            live.append(None if mask is None else mask.view(np.bool_))
        return CachedColumns(segments, live)
