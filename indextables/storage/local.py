"""Tables on a local (or mounted) file system.

A create is: write a temporary file in the same folder, fsync it, ``os.link`` it to its name,
fsync the folder. The link is the one step that is atomic *and* fails when the name is taken, and
the bytes are complete before the name exists, so a crash leaves a temporary that listings skip
and never a torn object. A replace is the same with ``os.replace``.

On NFS a link can succeed while the (resent) reply says "exists": two names on the temporary
prove that ours is the one. File systems without hard links are refused, because nothing else
there gives both promises.

Hadoop keeps a checksum of each file it writes beside it (``.name.crc``) and refuses bytes that do
not fit. Replacing or deleting the file also deletes that checksum, before the new bytes are
there: without one Hadoop reads the file unchecked, with an old one not at all.

Symbolic links may point anywhere inside the root; one that leads outside is refused.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from indextables.errors import (
    AmbiguousWriteError,
    ConfigError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    UnsafePathError,
    UnsupportedStoreError,
)
from indextables.storage.base import Capabilities, ObjectInfo, Store
from indextables.storage.client_options import FSYNC, flag
from indextables.storage.deleting import remove_file
from indextables.storage.machine import machine_error
from indextables.storage.paths import is_temporary, safe_folder, safe_path, temporary_name
from indextables.storage.ranges import check_length, check_range

_MISSING = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EISDIR))
_NO_CHECKSUM = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG))
_NO_LINKS = frozenset(
    (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
)
_WRITES = frozenset(("write", "create"))
_COPY_BYTES = 1 << 20
_MAYBE_APPLIED = frozenset((errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR))


class LocalStore(Store):
    """A folder of a file system."""

    capabilities = Capabilities(remote=False, persistent=True, local_files=True)

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None) -> None:
        self.root = local_root(uri)
        super().__init__(f"file://{self.root}", options)
        self._fsync = flag(self._options.get(FSYNC, True), FSYNC)

    # -- paths ----------------------------------------------------------------------------------

    def _full(self, path: str) -> str:
        full = self.root
        for name in safe_path(path).split("/"):
            full = os.path.join(full, name)
            try:
                mode = os.lstat(full).st_mode
            except OSError:
                break
            if stat.S_ISLNK(mode):
                self._refuse_escape(full, path)
        return os.path.join(self.root, path)

    def _refuse_escape(self, link: str, path: str) -> None:
        root = os.path.realpath(self.root)
        target = os.path.realpath(link)
        if target != root and not target.startswith(root.rstrip(os.sep) + os.sep):
            raise UnsafePathError(
                "a symbolic link leads outside the table",
                path=path,
                hint="Keep the files of a table inside its folder",
            )

    def _refuse_linked(self, parent: str, path: str) -> None:
        full = self.root
        for name in parent.split("/"):
            full = os.path.join(full, name)
            if os.path.islink(full):
                raise UnsafePathError(
                    "a deletion does not go through a symbolic link",
                    path=path,
                    hint="Delete the file by its own name, or remove the link",
                )

    def local_path(self, path: str) -> str | None:
        return self._full(path)

    # -- reading --------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        full = self._full(path)
        with _as_storage_error(path, "read"), open(full, "rb", buffering=0) as file:
            return file.read()

    def read_range(self, path: str, start: int, end: int) -> bytes:
        check_range(path, start, end)
        return self._fetch(path, [(start, end)])[0]

    def _fetch(self, path: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        full = self._full(path)
        with _as_storage_error(path, "read"), open(full, "rb", buffering=0) as file:
            return [
                check_length(path, start, end, _pread(file.fileno(), start, end))
                for start, end in ranges
            ]

    def stat(self, path: str) -> ObjectInfo:
        full = self._full(path)
        with _as_storage_error(path, "stat"):
            found = os.stat(full)
        if stat.S_ISDIR(found.st_mode):
            raise ObjectNotFoundError("a folder is not an object", path=path)
        return _info(path, found)

    def list(
        self, prefix: str = "", start_after: str | None = None, recursive: bool = False
    ) -> Iterator[ObjectInfo]:
        folder = safe_folder(prefix)
        found = [
            info
            for info in self._walk(folder, recursive)
            if start_after is None or info.path > start_after
        ]
        return iter(sorted(found, key=lambda info: info.path))

    def list_temporaries(self) -> Iterator[ObjectInfo]:
        return iter(sorted(self._walk("", True, temporary=True), key=lambda info: info.path))

    def _walk(self, folder: str, recursive: bool, temporary: bool = False) -> Iterator[ObjectInfo]:
        for entry in self._scan(folder):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                self._refuse_escape(entry.path, path)
            if entry.is_dir():
                if recursive:
                    yield from self._walk(path, recursive, temporary)
            elif is_temporary(entry.name) == temporary:
                with contextlib.suppress(FileNotFoundError):
                    yield _info(path, entry.stat())

    def _scan(self, folder: str) -> builtins.list[os.DirEntry[str]]:
        full = self._full(folder) if folder else self.root
        try:
            with _as_storage_error(folder, "list"), os.scandir(full) as entries:
                return builtins.list(entries)
        except ObjectNotFoundError:
            return []

    def list_dirs(self, prefix: str = "") -> builtins.list[str]:
        folder = safe_folder(prefix)
        names = (entry.name for entry in self._scan(folder) if entry.is_dir())
        paths = sorted(f"{folder}/{name}" if folder else name for name in names)
        return [path for path in paths if next(self._walk(path, recursive=True), None)]

    # -- writing --------------------------------------------------------------------------------

    def put(self, path: str, data: bytes) -> None:
        self._replace(path, lambda fd: _write_all(fd, data))

    def put_file(self, path: str, local_path: str) -> None:
        def copy(fd: int) -> None:
            with open(local_path, "rb", buffering=0) as source:
                while chunk := source.read(_COPY_BYTES):
                    _write_all(fd, chunk)

        self._replace(path, copy)

    def _replace(self, path: str, fill: Callable[[int], None]) -> None:
        full = self._full(path)
        with _as_storage_error(path, "write", os.path.dirname(full)):
            folder = self._make_parents(full)
            with _temporary(folder, fill, self._fsync) as temporary:
                _drop_checksum(full)
                os.replace(temporary, full)
            if self._fsync:
                _sync_folder(folder)

    def put_if_absent(self, path: str, data: bytes) -> None:
        full = self._full(path)
        with _as_storage_error(path, "create", os.path.dirname(full)):
            folder = self._make_parents(full)
            with _temporary(folder, lambda fd: _write_all(fd, data), True) as temporary:
                if not os.path.lexists(full):
                    _drop_checksum(full)
                _link(temporary, full, path)
        try:
            _sync_folder(folder)
        except OSError as error:
            raise AmbiguousWriteError(
                f"the folder of a new object could not be synced: {error.strerror}", path=path
            ) from error

    def _make_parents(self, full: str) -> str:
        folder = os.path.dirname(full)
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for new in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(new)
            if self._fsync:
                _sync_folder(os.path.dirname(new))
        return os.path.dirname(full)

    def delete(self, paths: Sequence[str]) -> None:
        """Each folder's way is looked at once; its files lie in it by name.

        A link inside the root gives its files a second name, and who deletes by that name does not
        know the first: so no link is followed. A file that is itself a link goes as a link.
        """
        folders: dict[str, str] = {}
        for path in paths:
            parent, _, name = safe_path(path).rpartition("/")
            if parent not in folders:
                folders[parent] = self._full(parent) if parent else self.root
                self._refuse_linked(parent, path)
            full = f"{folders[parent]}/{name}"
            if os.path.islink(full):
                self._refuse_escape(full, path)
            with _as_storage_error(path, "delete"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(full)
                _drop_checksum(full)


def local_root(uri: str) -> str:
    """The absolute folder of a path, ``file:/path`` or ``file:///path``."""
    path = uri
    if uri[:5].lower() == "file:":
        path = uri[5:]
        if path.startswith("//"):
            host, slash, rest = path[2:].partition("/")
            if host not in ("", "localhost"):
                raise ConfigError(f"file uri names a host: {uri!r}", hint="Use file:///path")
            path = slash + rest
    if not path or "\0" in path:
        raise ConfigError("the path of a table is empty or holds a NUL character")
    return os.path.abspath(os.path.expanduser(path))


@contextlib.contextmanager
def _as_storage_error(path: str, action: str, folder: str | None = None) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if (short := machine_error(error, path=path, folder=folder)) is not None:
            raise short from error
        if error.errno in _MISSING and action not in _WRITES:
            raise ObjectNotFoundError("no such object", path=path) from error
        raise StorageError(f"cannot {action}: {error.strerror or error}", path=path) from error


@contextlib.contextmanager
def _temporary(folder: str, fill: Callable[[int], None], sync: bool) -> Iterator[str]:
    name = os.path.join(folder, temporary_name())
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        try:
            fill(fd)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        yield name
    finally:
        remove_file(name, folder)


def _link(temporary: str, full: str, path: str) -> None:
    try:
        os.link(temporary, full)
    except FileExistsError as error:
        if os.stat(temporary).st_nlink != 2:
            raise ObjectExistsError("an object is already there", path=path) from error
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise UnsupportedStoreError(
                f"this file system has no hard links ({error.strerror}), so an object cannot be "
                "created atomically",
                path=path,
                hint="Put the table on a file system with hard links (ext4, xfs, NFS) or on an "
                "object store",
            ) from error
        if error.errno in _MAYBE_APPLIED:
            raise AmbiguousWriteError(
                f"the file system failed while creating: {error.strerror}", path=path
            ) from error
        raise


def _drop_checksum(full: str) -> None:
    """Remove Hadoop's checksum of a file, if there is one."""
    folder, name = os.path.split(full)
    try:
        os.unlink(os.path.join(folder, f".{name}.crc"))
    except OSError as error:
        if error.errno not in _NO_CHECKSUM:
            raise


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _pread(fd: int, start: int, end: int) -> bytes:
    first = os.pread(fd, end - start, start)
    if len(first) == end - start or not first:
        return first
    parts = [first]
    position = start + len(first)
    while position < end and (part := os.pread(fd, end - position, position)):
        parts.append(part)
        position += len(part)
    return b"".join(parts)


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _info(path: str, found: os.stat_result) -> ObjectInfo:
    return ObjectInfo(path, found.st_size, found.st_mtime_ns // 1_000_000)
