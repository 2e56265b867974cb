"""Tables in the memory of one process, for tests and scratch work.

One dictionary behind one lock, so that ``put_if_absent`` is as atomic as on a real store. The
root ``memory://name/sub`` sees the same objects as ``sub/...`` below ``memory://name``. A forked
or spawned process has its own memory.
"""

from __future__ import annotations

import builtins
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from indextables.errors import ConfigError, ObjectExistsError, ObjectNotFoundError, StorageError
from indextables.storage.base import Capabilities, ObjectInfo, Store
from indextables.storage.paths import is_temporary, safe_folder, safe_path
from indextables.storage.ranges import check_length, check_range

_OBJECTS: dict[str, tuple[bytes, int]] = {}
_LOCK = threading.Lock()


def _renew_lock() -> None:
    global _LOCK
    _LOCK = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


class MemoryStore(Store):
    """A named part of this process's memory."""

    capabilities = Capabilities(remote=False, persistent=False, local_files=False)

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None) -> None:
        name = uri.partition("://")[2].strip("/")
        if not name:
            raise ConfigError(f"a memory store needs a name: {uri!r}", hint="Use memory://name")
        super().__init__(f"memory://{safe_path(name)}", options)
        self._root = name + "/"

    def _key(self, path: str) -> str:
        return self._root + safe_path(path)

    def _get(self, path: str) -> tuple[bytes, int]:
        key = self._key(path)
        with _LOCK:
            found = _OBJECTS.get(key)
        if found is None:
            raise ObjectNotFoundError("no such object", path=path)
        return found

    def read(self, path: str) -> bytes:
        return self._get(path)[0]

    def read_range(self, path: str, start: int, end: int) -> bytes:
        check_range(path, start, end)
        return check_length(path, start, end, self._get(path)[0][start:end])

    def stat(self, path: str) -> ObjectInfo:
        data, modified_ms = self._get(path)
        return ObjectInfo(path, len(data), modified_ms)

    def _below(self, prefix: str) -> builtins.list[ObjectInfo]:
        folder = safe_folder(prefix)
        start = self._root + (folder + "/" if folder else "")
        cut = len(self._root)
        with _LOCK:
            found = [
                ObjectInfo(key[cut:], len(data), modified_ms)
                for key, (data, modified_ms) in _OBJECTS.items()
                if key.startswith(start)
            ]
        return sorted(found, key=lambda info: info.path)

    def list(
        self, prefix: str = "", start_after: str | None = None, recursive: bool = False
    ) -> Iterator[ObjectInfo]:
        folder = safe_folder(prefix)
        depth = len(folder) + 1 if folder else 0
        return iter(
            [
                info
                for info in self._below(prefix)
                if not is_temporary(info.path)
                and (recursive or "/" not in info.path[depth:])
                and (start_after is None or info.path > start_after)
            ]
        )

    def list_temporaries(self) -> Iterator[ObjectInfo]:
        return iter([info for info in self._below("") if is_temporary(info.path)])

    def list_dirs(self, prefix: str = "") -> builtins.list[str]:
        folder = safe_folder(prefix)
        depth = len(folder) + 1 if folder else 0
        found = set()
        for info in self._below(prefix):
            name, slash, _ = info.path[depth:].partition("/")
            if slash:
                found.add(info.path[:depth] + name)
        return sorted(found)

    def put(self, path: str, data: bytes) -> None:
        key = self._key(path)
        with _LOCK:
            _OBJECTS[key] = (bytes(data), _now_ms())

    def put_file(self, path: str, local_path: str) -> None:
        safe_path(path)
        try:
            with open(local_path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise StorageError(f"cannot read the file to upload: {error.strerror}") from error
        self.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        key = self._key(path)
        with _LOCK:
            if key not in _OBJECTS:
                _OBJECTS[key] = (bytes(data), _now_ms())
                return
        raise ObjectExistsError("an object is already there", path=path)

    def delete(self, paths: Sequence[str]) -> None:
        keys = [self._key(path) for path in paths]
        with _LOCK:
            for key in keys:
                _OBJECTS.pop(key, None)


def clear_memory(name: str) -> None:
    """Forget every object below ``memory://name``."""
    with _LOCK:
        for key in [key for key in _OBJECTS if key.startswith(name + "/")]:
            del _OBJECTS[key]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
