"""Blocks of immutable files, one small checked file each, within a byte budget.

A block file is a header (magic, digest of its key, CRC-32, length) and the bytes. It is written
beside its place and renamed, so it exists whole or not at all; it is believed only when magic,
digest, length and checksum agree, else it is removed and counts as a miss. A block may hold a
prefix of its range (the end of the file was not known); a reader that needs more misses.

When the budget is exceeded the least recently used blocks go, down to a low-water mark. Recency
is the file's modification time, set again on a hit, because many mounts do not keep access times.
Several processes may share the folder: they may fill a block twice, never tear one.

Nothing here fails a read: what the disk refuses is a miss, and after a refused write no further
writes are tried for a while.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields

from indextables.storage.deleting import remove_file
from indextables.storage.machine import explained
from indextables.storage.paths import is_temporary, temporary_name

_MAGIC = b"ITXBLK01"
_HEADER = struct.Struct("<8s16sIQ")
_FOLDER = "blocks-1"
_STALE_TEMPORARY_S = 3600.0
_RESCAN_SHARE = 16
_UNASKED_BYTES = 4 << 20


@dataclass(slots=True)
class CacheStats:
    """Counters of one process."""

    hits: int = 0
    misses: int = 0
    hit_bytes: int = 0
    fetched_bytes: int = 0
    evictions: int = 0
    corrupt: int = 0
    bypassed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def as_dict(self) -> dict[str, int]:
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("_")}


@dataclass(frozen=True, slots=True)
class Usage:
    """What is on disk."""

    files: int
    blocks: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class _Block:
    path: str
    size: int
    used_at: float


class BlockFolder:
    """The block files of one cache folder."""

    def __init__(
        self,
        path: str,
        max_bytes: int,
        *,
        low_water: float = 0.8,
        min_free_bytes: int = 256 << 20,
        touch_after_s: float = 60.0,
        pause_after_error_s: float = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = os.path.join(path, _FOLDER)
        self.max_bytes = max_bytes
        self.stats = CacheStats()
        self._low_water_bytes = int(max_bytes * low_water)
        self._min_free_bytes = min_free_bytes
        self._touch_after_s = touch_after_s
        self._pause_after_error_s = pause_after_error_s
        self._clock = clock
        self._lock = threading.Lock()
        self._used_bytes: int | None = None
        self._added_since_scan = 0
        self._paused_until = 0.0
        self._unasked_bytes = 0

    # -- one block ------------------------------------------------------------------------------

    def load(self, key: str, index: int, need: int) -> bytes | None:
        """A verified block of at least ``need`` bytes, else nothing."""
        name = self._name(key, index)
        try:
            with open(name, "rb", buffering=0) as file:
                found = os.fstat(file.fileno())
                raw = file.read()
                if self._clock() - found.st_mtime > self._touch_after_s:
                    os.utime(file.fileno())
        except OSError:
            return None
        data = _verified(raw, _digest(key, index))
        if data is None:
            self.stats.add(corrupt=1)
            remove_file(name, self.path)
            return None
        return data if len(data) >= need else None

    def has(self, key: str, indexes: Iterable[int]) -> bool:
        """Are there files of these blocks? Whether they are sound, ``load`` finds out."""
        return all(os.path.exists(self._name(key, index)) for index in indexes)

    def save(self, key: str, index: int, data: bytes) -> None:
        """Keep a block if the disk lets us."""
        if self._clock() < self._paused_until or len(data) > self.max_bytes:
            self.stats.add(bypassed=1)
            return
        try:
            self._write(self._name(key, index), key, index, data)
        except OSError:
            self._paused_until = self._clock() + self._pause_after_error_s
            self.stats.add(bypassed=1)
            return
        self._account(len(data) + _HEADER.size)

    def _write(self, name: str, key: str, index: int, data: bytes) -> None:
        folder = os.path.dirname(name)
        self._require_space(folder, len(data))
        temporary = os.path.join(folder, temporary_name())
        try:
            with open(temporary, "xb", buffering=0) as file:
                header = _HEADER.pack(_MAGIC, _digest(key, index), zlib.crc32(data), len(data))
                if file.write(header + data) != len(header) + len(data):
                    raise OSError("the disk is full")
            os.replace(temporary, name)
        except BaseException:
            remove_file(temporary, self.path)
            raise

    def _require_space(self, folder: str, length: int) -> None:
        """Make the folder; refuse to fill the disk, which is asked again every few megabytes."""
        os.makedirs(folder, exist_ok=True)
        self._unasked_bytes -= length
        if self._unasked_bytes <= 0:
            if shutil.disk_usage(folder).free < self._min_free_bytes:
                raise OSError("the disk is nearly full")
            self._unasked_bytes = _UNASKED_BYTES

    def _name(self, key: str, index: int) -> str:
        digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        return os.path.join(self.path, digest[:2], f"{digest}-{index}")

    # -- all blocks -----------------------------------------------------------------------------

    def drop(self, key: str) -> None:
        """Forget every block of one file."""
        folder, _, prefix = self._name(key, 0).removesuffix("0").rpartition(os.sep)
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                if name.startswith(prefix):
                    remove_file(os.path.join(folder, name), self.path)

    def flush(self) -> Usage:
        """Remove every block; what was removed."""
        with explained(folder=self.path):
            removed = [block for block in self._scan() if self._remove(block)]
        with self._lock:
            self._used_bytes = None
        return _usage(removed)

    def usage(self) -> Usage:
        with explained(folder=self.path):
            return _usage(list(self._scan()))

    def _scan(self) -> Iterator[_Block]:
        for folder in _entries(self.path):
            for entry in _entries(folder.path):
                with contextlib.suppress(OSError):
                    found = entry.stat()
                    block = _Block(entry.path, found.st_size, found.st_mtime)
                    if not is_temporary(entry.name):
                        yield block
                    elif self._clock() - found.st_mtime > _STALE_TEMPORARY_S:
                        self._remove(block)

    def _account(self, added: int) -> None:
        with self._lock:
            self._added_since_scan += added
            if self._used_bytes is not None:
                self._used_bytes += added
            others_may_have_written = self._added_since_scan > self.max_bytes // _RESCAN_SHARE
            with contextlib.suppress(OSError):  # not listed now: what was counted still counts
                if self._used_bytes is None or others_may_have_written:
                    self._used_bytes = sum(block.size for block in self._scan())
                    self._added_since_scan = 0
                if self._used_bytes > self.max_bytes:
                    self._evict()

    def _evict(self) -> None:
        blocks = sorted(self._scan(), key=lambda block: block.used_at)
        used = sum(block.size for block in blocks)
        evicted = 0
        for block in blocks:
            if used <= self._low_water_bytes:
                break
            if self._remove(block):
                evicted += 1
            used -= block.size
        self._used_bytes = used
        self.stats.add(evictions=evicted)

    def _remove(self, block: _Block) -> bool:
        return remove_file(block.path, self.path)

    def renew_locks(self) -> None:
        """For a forked child: a lock may have been held by a thread that is not there."""
        self._lock = threading.Lock()
        self.stats._lock = threading.Lock()


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder; one that is not there is empty, one that cannot be listed is not."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _digest(key: str, index: int) -> bytes:
    return hashlib.blake2b(f"{index}|{key}".encode(), digest_size=16).digest()


def _verified(raw: bytes, digest: bytes) -> bytes | None:
    if len(raw) < _HEADER.size:
        return None
    magic, found, checksum, length = _HEADER.unpack_from(raw)
    data = raw[_HEADER.size :]
    if magic != _MAGIC or found != digest or length != len(data):
        return None
    return data if zlib.crc32(data) == checksum else None


def _usage(blocks: list[_Block]) -> Usage:
    files = {os.path.basename(block.path).partition("-")[0] for block in blocks}
    return Usage(len(files), len(blocks), sum(block.size for block in blocks))
