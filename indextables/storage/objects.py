"""What all object stores share: keys, errors, retries, parallel reads, pages of listings.

A subclass speaks to one service in a handful of coroutines (get, put, head, page, remove); here
every call is run on the client's event loop, its errors are translated and cleaned of secrets,
and calls that may be repeated are retried. A conditional create is sent once per call: what
became of it after a lost reply is for ``commit.commit_slot`` to find out.
"""

from __future__ import annotations

import builtins
import os
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

from indextables.errors import (
    AmbiguousWriteError,
    ConfigError,
    CorruptFileError,
    IndexTablesError,
    MachineError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    TransientStorageError,
    UnsupportedStoreError,
)
from indextables.storage.base import Capabilities, Folder, ObjectInfo, Store
from indextables.storage.classify import Verdict, classify
from indextables.storage.client_options import CONNECT_TIMEOUT, OURS, RETRIES, TIMEOUT
from indextables.storage.clients import shared_client
from indextables.storage.machine import machine_error
from indextables.storage.paths import is_temporary, safe_folder, safe_path
from indextables.storage.ranges import NEAR, TRIP, check_length, check_range
from indextables.storage.redaction import is_clean, redact, secrets_of
from indextables.storage.retry import RetryPolicy, tries, with_retries

T = TypeVar("T")
Call = Callable[[], Awaitable[T]]

CREATE_LIMIT = 48 << 20
"""A conditional create must be one request; every client sends this much in one."""
SINGLE_PUT_LIMIT = 96 << 20
RANGE_PARALLELISM = 16
DELETE_BATCH = 1000
MESSAGE_LIMIT = 300


@dataclass(slots=True)
class Page:
    """One page of a listing, in keys; ``token`` asks for the next one."""

    objects: list[ObjectInfo] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    token: str | None = None


class ObjectStore(Store):
    """A prefix of a bucket."""

    capabilities = Capabilities(remote=True, persistent=True, local_files=False)
    coalesce_gap = TRIP
    near_gap = NEAR
    scheme: ClassVar[str]
    extra: ClassVar[str]

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None) -> None:
        self.bucket, root = split_uri(uri)
        self._root = root + "/" if root else ""
        super().__init__(f"{self.scheme}://{self.bucket}/{root}".rstrip("/"), options)
        self._client: tuple[int, Any] | None = None
        self._secrets = secrets_of(self._options)
        self._retry = RetryPolicy(attempts=max(1, int(self._options.get(RETRIES, 5))))

    # -- one service ----------------------------------------------------------------------------

    @abstractmethod
    def _build(self) -> Any:
        """A new fsspec file system with its listings cache and own retries off."""

    @abstractmethod
    async def _get(self, key: str) -> bytes: ...

    @abstractmethod
    async def _get_range(self, key: str, start: int, end: int) -> bytes: ...

    @abstractmethod
    async def _put(self, key: str, data: bytes) -> None: ...

    @abstractmethod
    async def _create(self, key: str, data: bytes) -> None: ...

    @abstractmethod
    async def _upload(self, key: str, local_path: str) -> None: ...

    @abstractmethod
    async def _head(self, key: str) -> ObjectInfo: ...

    @abstractmethod
    async def _page(
        self, prefix: str, flat: bool, start_after: str | None, token: str | None
    ) -> Page: ...

    @abstractmethod
    async def _remove(self, keys: Sequence[str]) -> None:
        """Remove up to ``DELETE_BATCH`` keys; missing ones are fine."""

    # -- running calls --------------------------------------------------------------------------

    @property
    def _fs(self) -> Any:
        """This process's client; callers fetch it before a coroutine needs it on the loop."""
        pid = os.getpid()
        if self._client is None or self._client[0] != pid:
            client = shared_client(self.scheme, self._options, self._build_or_explain)
            self._client = (pid, client)
        return self._client[1]

    def _build_or_explain(self) -> Any:
        try:
            return self._build()
        except ImportError as error:
            raise UnsupportedStoreError(
                f"the client library for {self.scheme}:// is not installed ({error.name})",
                path=self.uri,
                hint=f"pip install 'indextables[{self.extra}]'",
            ) from error

    def _client_options(self) -> dict[str, Any]:
        return {k: v for k, v in self._options.items() if not k.lower().startswith(OURS)}

    @property
    def _timeout_s(self) -> float:
        return float(self._options.get(TIMEOUT, 30))

    @property
    def _connect_timeout_s(self) -> float:
        return float(self._options.get(CONNECT_TIMEOUT, 5))

    def _run(self, make: Call[T]) -> T:
        from fsspec.asyn import sync

        return cast(T, sync(self._fs.loop, make))

    def _run_all(
        self, calls: Sequence[Call[T]], parallelism: int
    ) -> builtins.list[T | BaseException]:
        """The results or errors of calls that are made side by side."""
        return self._run(partial(_gather, calls, parallelism))

    def _once(self, path: str, action: str, make: Call[T]) -> T:
        try:
            return self._run(make)
        except Exception as error:
            failure = self._translate(error, path, action)
        raise failure

    def _repeat(self, path: str, action: str, make: Call[T]) -> T:
        return with_retries(lambda: self._once(path, action, make), self._retry)

    def _repeat_all(
        self, paths: Sequence[str], makes: Sequence[Call[bytes]], parallelism: int
    ) -> builtins.list[bytes | IndexTablesError]:
        """Every call's result or translated error; only the transient ones are tried again."""
        outcomes: dict[int, bytes | IndexTablesError] = {}
        waiting = builtins.list(range(len(makes)))
        for _ in tries(self._retry):
            results = self._run_all([makes[i] for i in waiting], parallelism)
            for i, result in zip(waiting, results, strict=True):
                outcomes[i] = (
                    self._translate(result, paths[i], "read")
                    if isinstance(result, BaseException)
                    else result
                )
            waiting = [i for i in waiting if isinstance(outcomes[i], TransientStorageError)]
            if not waiting:
                break
        return [outcomes[i] for i in range(len(makes))]

    def _translate(self, error: BaseException, path: str, action: str) -> IndexTablesError:
        if isinstance(error, IndexTablesError):
            return error
        failure = self._failure(error, path, action)
        if is_clean(error, self._secrets):
            failure.__cause__ = error
        return failure

    def _failure(self, error: BaseException, path: str, action: str) -> IndexTablesError:
        verdict = classify(error)
        text = _brief(redact(f"{type(error).__name__}: {_said(error)}", self._secrets))
        where = f"{self.uri}/{path}"
        if action == "create":
            return _create_failure(verdict, text, where)
        if verdict is Verdict.MISSING and action in ("read", "stat"):
            return ObjectNotFoundError("no such object", path=where)
        if verdict is Verdict.MACHINE:
            return machine_error(error, path=where) or MachineError(text, path=where)
        if verdict is Verdict.OUT_OF_RANGE:
            return CorruptFileError("the file is shorter than the asked range", path=where)
        if verdict is Verdict.TRANSIENT:
            return TransientStorageError(f"cannot {action} for now: {text}", path=where)
        return StorageError(f"cannot {action}: {text}", path=where, hint=_hint(verdict))

    # -- the interface --------------------------------------------------------------------------

    def _key(self, path: str) -> str:
        return self._root + safe_path(path)

    def read(self, path: str) -> bytes:
        key = self._key(path)
        return self._repeat(path, "read", partial(self._get, key))

    def read_range(self, path: str, start: int, end: int) -> bytes:
        check_range(path, start, end)
        key = self._key(path)
        if start == end:
            return b""
        data = self._repeat(path, "read", partial(self._get_range, key, start, end))
        return check_length(path, start, end, data)

    def _fetch(self, path: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        key = self._key(path)
        makes = [partial(self._get_range, key, start, end) for start, end in ranges]
        outcomes = self._repeat_all([path] * len(makes), makes, RANGE_PARALLELISM)
        blobs = []
        for (start, end), outcome in zip(ranges, outcomes, strict=True):
            if isinstance(outcome, IndexTablesError):
                raise outcome
            blobs.append(check_length(path, start, end, outcome))
        return blobs

    def read_many(
        self, paths: Sequence[str], parallelism: int = 8
    ) -> builtins.list[bytes | StorageError]:
        answers: dict[str, bytes | StorageError] = {}
        keys: dict[str, str] = {}
        for path in paths:
            try:
                keys[path] = self._key(path)
            except StorageError as error:
                answers[path] = error
        makes = [partial(self._get, key) for key in keys.values()]
        outcomes = self._repeat_all(builtins.list(keys), makes, max(1, parallelism))
        for path, outcome in zip(keys, outcomes, strict=True):
            if isinstance(outcome, MachineError):
                raise outcome
            answers[path] = cast("bytes | StorageError", outcome)
        return [answers[path] for path in paths]

    def stat(self, path: str) -> ObjectInfo:
        key = self._key(path)
        found = self._repeat(path, "stat", partial(self._head, key))
        return ObjectInfo(path, found.size, found.modified_ms, found.etag)

    def put(self, path: str, data: bytes) -> None:
        key = self._key(path)
        self._repeat(path, "write", partial(self._put, key, data))

    def put_file(self, path: str, local_path: str) -> None:
        key = self._key(path)
        if not os.path.isfile(local_path):
            raise StorageError("the file to upload does not exist", path=local_path)
        self._repeat(path, "write", partial(self._upload, key, local_path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        key = self._key(path)
        if len(data) > CREATE_LIMIT:
            raise StorageError(
                f"a conditional create takes at most {CREATE_LIMIT} bytes, not {len(data)}",
                path=path,
                hint="Write large data as ordinary files and commit a small entry that names them",
            )
        self._once(path, "create", partial(self._create, key, data))

    def delete(self, paths: Sequence[str]) -> None:
        keys = [self._key(path) for path in paths]
        for first in range(0, len(keys), DELETE_BATCH):
            batch = keys[first : first + DELETE_BATCH]
            self._repeat(paths[first], "delete", partial(self._remove, batch))

    def list(
        self, prefix: str = "", start_after: str | None = None, recursive: bool = False
    ) -> Iterator[ObjectInfo]:
        found = self._listed(self._folder_key(prefix), prefix, start_after, recursive)
        if recursive:
            return iter(sorted(found, key=lambda info: info.path))
        return found

    def list_temporaries(self) -> Iterator[ObjectInfo]:
        found = self._listed(self._folder_key(""), "", None, True, temporary=True)
        return iter(sorted(found, key=lambda info: info.path))

    def _listed(
        self,
        folder: str,
        prefix: str,
        start_after: str | None,
        recursive: bool,
        temporary: bool = False,
    ) -> Iterator[ObjectInfo]:
        after = None if start_after is None else self._root + start_after
        for page in self._pages(folder, prefix, recursive, after):
            yield from self._files_of(page, after, temporary)

    def _files_of(
        self, page: Page, after: str | None, temporary: bool = False
    ) -> Iterator[ObjectInfo]:
        for info in page.objects:
            if info.path.endswith("/") or is_temporary(info.path) != temporary:
                continue
            if after is None or info.path > after:
                inside = info.path[len(self._root) :]
                yield ObjectInfo(inside, info.size, info.modified_ms, info.etag)

    def list_dirs(self, prefix: str = "") -> builtins.list[str]:
        folder = self._folder_key(prefix)
        found: set[str] = set()
        for page in self._pages(folder, prefix, False, None):
            found.update(self._folders_of(page))
        return sorted(found)

    def _folders_of(self, page: Page) -> Iterator[str]:
        return (name.rstrip("/")[len(self._root) :] for name in page.folders)

    def list_folder(
        self, prefix: str = "", start_after: str | None = None, most_pages: int | None = None
    ) -> Folder:
        after = None if start_after is None else self._root + start_after
        files: builtins.list[ObjectInfo] = []
        folders: set[str] = set()
        pages = self._pages(self._folder_key(prefix), prefix, False, after)
        for number, page in enumerate(pages, 1):
            files += self._files_of(page, after)
            folders.update(self._folders_of(page))
            if page.token and number == most_pages:
                return Folder(files, sorted(folders), complete=False)
        return Folder(files, sorted(folders))

    def _folder_key(self, prefix: str) -> str:
        folder = safe_folder(prefix)
        return self._root + (folder + "/" if folder else "")

    def _pages(self, folder: str, prefix: str, flat: bool, after: str | None) -> Iterator[Page]:
        token: str | None = None
        while True:
            page = self._repeat(prefix, "list", partial(self._page, folder, flat, after, token))
            yield page
            token = page.token
            if not token:
                return


def split_uri(uri: str) -> tuple[str, str]:
    """Bucket and root prefix of an object-store uri."""
    authority, _, root = uri.partition("://")[2].partition("/")
    if ":" in authority or "?" in authority:
        raise ConfigError(
            "the URI holds more than a bucket name before its path",
            hint="Pass credentials and endpoints as options, never inside the uri",
        )
    bucket = authority.partition("@")[0]
    if not bucket:
        raise ConfigError(f"the URI names no bucket: {redact(uri)}")
    root = root.strip("/")
    return bucket, safe_path(root) if root else ""


async def _gather(calls: Sequence[Call[T]], parallelism: int) -> builtins.list[T | BaseException]:
    import asyncio

    gate = asyncio.Semaphore(parallelism)

    async def gated(make: Call[T]) -> T:
        async with gate:
            return await make()

    return await asyncio.gather(*(gated(make) for make in calls), return_exceptions=True)


def _create_failure(verdict: Verdict, text: str, where: str) -> StorageError:
    if verdict is Verdict.EXISTS:
        return ObjectExistsError("an object is already there", path=where)
    if verdict in (Verdict.TRANSIENT, Verdict.UNKNOWN, Verdict.MACHINE):
        return AmbiguousWriteError(f"it is unknown whether it was created: {text}", path=where)
    return StorageError(f"cannot create: {text}", path=where, hint=_hint(verdict))


def _said(error: BaseException) -> str:
    """What an exception says, without the dump of its inside that obstore adds."""
    return str(error).partition("\n\nDebug source:")[0]


def _brief(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= MESSAGE_LIMIT else words[:MESSAGE_LIMIT] + "..."


def _hint(verdict: Verdict) -> str | None:
    if verdict is Verdict.MISSING:
        return "Check that the bucket exists"
    if verdict is Verdict.REFUSED:
        return "Check the credentials, the endpoint and the permissions on the bucket"
    return None
