"""A store around a store: every call passes one place, where a wrapper may act."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from indextables.errors import StorageError
from indextables.storage.base import Capabilities, ObjectInfo, Store

T = TypeVar("T")


class Call(NamedTuple):
    """One call on a store; ``detail`` holds what else matters (ranges, sizes, paths)."""

    op: str
    path: str
    detail: Any = None


class WrappedStore(Store):
    """Passes every call through ``_around``, which a double overrides."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner.uri, inner._options)
        self.inner = inner

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return self.inner.capabilities

    @property
    def coalesce_gap(self) -> int:  # type: ignore[override]
        return self.inner.coalesce_gap

    @property
    def identity(self) -> str:
        return self.inner.identity

    def _around(self, call: Call, run: Callable[[], T]) -> T:
        return run()

    def read(self, path: str) -> bytes:
        return self._around(Call("read", path), lambda: self.inner.read(path))

    def read_range(self, path: str, start: int, end: int) -> bytes:
        call = Call("read_range", path, (start, end))
        return self._around(call, lambda: self.inner.read_range(path, start, end))

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        call = Call("read_ranges", path, tuple(ranges))
        return self._around(call, lambda: self.inner.read_ranges(path, ranges))

    def read_many(
        self, paths: Sequence[str], parallelism: int = 8
    ) -> builtins.list[bytes | StorageError]:
        call = Call("read_many", paths[0] if paths else "", tuple(paths))
        return self._around(call, lambda: self.inner.read_many(paths, parallelism))

    def stat(self, path: str) -> ObjectInfo:
        return self._around(Call("stat", path), lambda: self.inner.stat(path))

    def list(
        self, prefix: str = "", start_after: str | None = None, recursive: bool = False
    ) -> Iterator[ObjectInfo]:
        call = Call("list", prefix, (start_after, recursive))
        found = self._around(
            call, lambda: builtins.list(self.inner.list(prefix, start_after, recursive))
        )
        return iter(found)

    def list_temporaries(self) -> Iterator[ObjectInfo]:
        return self.inner.list_temporaries()

    def list_dirs(self, prefix: str = "") -> builtins.list[str]:
        return self._around(Call("list_dirs", prefix), lambda: self.inner.list_dirs(prefix))

    def local_path(self, path: str) -> str | None:
        return self.inner.local_path(path)

    def put(self, path: str, data: bytes) -> None:
        self._around(Call("put", path, len(data)), lambda: self.inner.put(path, data))

    def put_file(self, path: str, local_path: str) -> None:
        self._around(Call("put_file", path), lambda: self.inner.put_file(path, local_path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        call = Call("put_if_absent", path, len(data))
        self._around(call, lambda: self.inner.put_if_absent(path, data))

    def delete(self, paths: Sequence[str]) -> None:
        call = Call("delete", paths[0] if paths else "", tuple(paths))
        self._around(call, lambda: self.inner.delete(paths))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"
