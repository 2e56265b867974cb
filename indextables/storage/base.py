"""One small interface to every store, rooted at a table.

A store promises:

* ``put_if_absent`` creates an object only where there is none, atomically: of any number of
  racing writers at most one succeeds, and readers see either nothing or all of the bytes.
  It raises ``ObjectExistsError`` (something is there, *perhaps our own bytes after a lost
  reply*), ``AmbiguousWriteError`` (unknown) or another ``StorageError`` (definitely not
  written). Commits never call it directly; they go through ``commit.commit_slot``.
* ``put`` and ``put_file`` replace atomically: a reader sees the old or the new bytes, never a mix.
* ``list`` is fresh (no listings cache), sorted by path, and skips work in progress.
* A path argument is relative to the root and checked by ``paths.safe_path``.
* Only ``uri`` and ``options`` travel in a pickle; clients are built lazily in each process.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

from indextables.errors import (
    AmbiguousWriteError,
    ConfigError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    UnsupportedStoreError,
    did_you_mean,
)
from indextables.storage import deleting
from indextables.storage.choosing import QUICK, uses_obstore
from indextables.storage.client_options import resolve_options, scheme_of
from indextables.storage.paths import safe_path, temporary_name
from indextables.storage.pool import in_order
from indextables.storage.ranges import check_range, coalesce, cut
from indextables.storage.redaction import redact

__all__ = [
    "Capabilities",
    "Folder",
    "ObjectInfo",
    "Store",
    "open_store",
    "redact",
    "resolve_options",
    "safe_path",
]


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object: its path relative to the store's root, size in bytes, age in epoch millis."""

    path: str
    size: int
    modified_ms: int
    etag: str = ""
    """Another one whenever the bytes are; empty where the store has none."""


class Folder(NamedTuple):
    """What lies directly in a folder; not ``complete`` when it was cut after the pages asked."""

    files: list[ObjectInfo]
    folders: list[str]
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What callers may take into account when they choose how to read."""

    remote: bool
    """Every call is a network round trip: fetch in parallel, coalesce, cache."""
    persistent: bool
    """Objects outlive the process."""
    local_files: bool
    """``local_path`` gives real files."""


class Store(ABC):
    """A table's root in some storage system; see the module's docstring for its promises."""

    capabilities: ClassVar[Capabilities]
    coalesce_gap: int = 64 << 10
    """So many bytes are worth a trip that has to be waited for."""
    near_gap: int = 64 << 10
    """So many bytes are worth a request beside others: ranges nearer than this are one request."""

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None) -> None:
        self.uri = uri
        self._options = dict(options or {})

    @property
    def options(self) -> Mapping[str, Any]:
        """What it was opened with, as ``open_store`` takes it."""
        return self._options

    # -- reading --------------------------------------------------------------------------------

    @abstractmethod
    def read(self, path: str) -> bytes:
        """All bytes of an object."""

    @abstractmethod
    def read_range(self, path: str, start: int, end: int) -> bytes:
        """Exactly the bytes ``[start, end)``; a shorter file is ``CorruptFileError``."""

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Several ranges of one object in the order asked, near ones fetched together."""
        for start, end in ranges:
            check_range(path, start, end)
        requests = coalesce(ranges, self.near_gap)
        blobs = self._fetch(path, [(request.start, request.end) for request in requests])
        return cut(ranges, requests, blobs)

    def _fetch(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self.read_range(path, start, end) for start, end in ranges]

    def read_many(self, paths: Sequence[str], parallelism: int = 8) -> list[bytes | StorageError]:
        """Whole objects in the order asked; what failed is its error, in place."""
        if not self.capabilities.remote or len(paths) < 2:
            return [self._read_or_error(path) for path in paths]
        return builtins.list(in_order(self._read_or_error, paths, max(1, parallelism)))

    def _read_or_error(self, path: str) -> bytes | StorageError:
        try:
            return self.read(path)
        except StorageError as error:
            return error

    @abstractmethod
    def stat(self, path: str) -> ObjectInfo:
        """Size and time of an object, or ``ObjectNotFoundError``."""

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except ObjectNotFoundError:
            return False
        return True

    @abstractmethod
    def list(
        self, prefix: str = "", start_after: str | None = None, recursive: bool = False
    ) -> Iterator[ObjectInfo]:
        """Objects in the folder ``prefix`` (a missing folder is empty), sorted by path.

        ``start_after`` is a path relative to the root; it and what sorts before it is left out.
        """

    def list_temporaries(self) -> Iterator[ObjectInfo]:
        """What ``list`` skips, in all folders: work in progress, or what a crash left of it."""
        return iter(())

    @abstractmethod
    def list_dirs(self, prefix: str = "") -> builtins.list[str]:
        """Paths of the folders directly in the folder ``prefix``, sorted.

        A folder is what the names of objects share. A directory that an interrupted write or
        deletion left without a file is none, on a file system as on an object store.
        """

    def list_folder(
        self, prefix: str = "", start_after: str | None = None, most_pages: int | None = None
    ) -> Folder:
        """Files (as ``list`` gives them) and folders of ``prefix`` in one go.

        Folders that sort before ``start_after`` may be left out. ``most_pages`` bounds the
        requests; what is left out then sorts last.
        """
        files = builtins.list(self.list(prefix, start_after))
        return Folder(files, self.list_dirs(prefix))

    def local_path(self, path: str) -> str | None:
        """The real file behind an object, for stores that have one."""
        return None

    # -- writing --------------------------------------------------------------------------------

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object, atomically."""

    @abstractmethod
    def put_file(self, path: str, local_path: str) -> None:
        """Upload a finished local file; it becomes visible whole or not at all."""

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create an object where there is none; see the module's docstring for the errors."""

    @abstractmethod
    def delete(self, paths: Sequence[str]) -> None:
        """Remove objects; one that is not there is fine.

        Only ``deleting`` calls this: it decides what may go.
        """

    # -- what a table needs ---------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """Names the storage behind the uri (also its endpoint), for cache keys. No secrets."""
        return self.uri

    def probe_conditional_create(self) -> None:
        """Prove that a second create of one path fails, else ``UnsupportedStoreError``.

        Some servers accept the condition and ignore it; two writers would then overwrite each
        other's commits. Called once, when a table is created.
        """
        path = temporary_name("probe-")
        try:
            verdict = self._probe(path)
        finally:
            deleting.delete(self, deleting.Kind.TEMPORARY, [path])
        if verdict:
            raise UnsupportedStoreError(
                f"the store does not honour conditional create: {verdict}",
                path=self.uri,
                hint="Commits of two writers would overwrite each other here. Use a store with "
                "atomic put-if-absent (S3 If-None-Match, GCS generation match, Azure Blob, "
                "a local file system with hard links)",
            )

    def _probe(self, path: str) -> str | None:
        first, second = b"first", b"second"
        self._probe_create(path, first)
        if self.read(path) != first:
            return "what was created reads back as something else"
        created_again = self._probe_create(path, second)
        if self.read(path) != first:
            return "a second create of the same object replaced the first"
        return "a second create of the same object reported success" if created_again else None

    def _probe_create(self, path: str, data: bytes) -> bool:
        try:
            self.put_if_absent(path, data)
        except (ObjectExistsError, AmbiguousWriteError):
            return False
        return True

    # -- identity -------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.uri, self._options)


_BACKENDS = {
    "file": "indextables.storage.local:LocalStore",
    "memory": "indextables.storage.memory:MemoryStore",
    "s3": "indextables.storage.s3:S3Store",
    "gs": "indextables.storage.gcs:GcsStore",
    "az": "indextables.storage.azure:AzureStore",
}


def open_store(uri: str, options: Mapping[str, Any] | None = None) -> Store:
    """The store behind a path or uri; ``options`` as ``resolve_options`` takes or returns them."""
    scheme = scheme_of(uri)
    backend = _BACKENDS.get(scheme)
    if backend is None:
        raise ConfigError(
            f"no store for the scheme '{scheme}://'", hint=did_you_mean(scheme, _BACKENDS)
        )
    resolved = resolve_options(uri, options)
    if scheme in QUICK and uses_obstore(scheme, resolved):
        backend = QUICK[scheme]
    module, _, name = backend.partition(":")
    store_class: type[Store] = getattr(import_module(module), name)
    return store_class(uri, resolved)
