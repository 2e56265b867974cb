"""S3 and Azure through obstore, the client that starts quickly and costs little.

obstore is the ``object_store`` crate with a Python interface: it is loaded in milliseconds where
s3fs needs tenths of a second, and a request costs a fifth of the processor time. Its promises are
those of the other clients, and so are its tests. Its own retries are off; a conditional create is
one ``Put`` with ``If-None-Match: *``. ``choosing`` says when it is used.

Three things it cannot do are left to the fsspec client of the same service (``plain``):

* **A fork.** Its threads do not survive one, and a child that asks would wait for ever. A child of
  a process that has used it never does.
* **Listings by folder in pages.** It lists a folder completely or a whole tree. The log is listed
  as a tree, a page at a time, and a page that ends inside a folder is followed by one that begins
  after this folder. All other listings go to the fsspec client.
* **Names that it refuses** (an empty part, as in ``a//b``): a listing that meets one starts again
  with the fsspec client.

Hooks are plain functions here. ``_hook`` makes coroutines of them that never wait, so that they run
without an event loop; what goes side by side does so in threads of its own, which never wait for
each other.
"""

from __future__ import annotations

import builtins
import contextlib
import logging
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial, wraps
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from indextables.errors import StorageError, TransientStorageError
from indextables.storage.azure import AzureStore
from indextables.storage.base import Folder, ObjectInfo, open_store
from indextables.storage.clients import shared_client
from indextables.storage.objects import SINGLE_PUT_LIMIT, Call, ObjectStore, Page
from indextables.storage.pool import MOST_THREADS
from indextables.storage.s3 import S3Store

T = TypeVar("T")

logger = logging.getLogger(__name__)
_PART = 16 << 20
_FOREVER = timedelta(days=7)
_LAST = "\U0010ffff"


class _Process:
    """What this process may do with the client."""

    used = False
    spoiled = False
    threads: ThreadPoolExecutor | None = None

    @classmethod
    def forked(cls) -> None:
        cls.spoiled = cls.spoiled or cls.used
        cls.threads = None

    @classmethod
    def pool(cls) -> ThreadPoolExecutor:
        if cls.threads is None:
            cls.threads = ThreadPoolExecutor(MOST_THREADS, "indextables-obstore")
        return cls.threads


os.register_at_fork(after_in_child=_Process.forked)


def is_spoiled() -> bool:
    """Was this process forked from one that had used the client?"""
    return _Process.spoiled


def _hook(function: Callable[..., T]) -> Callable[..., Coroutine[Any, Any, T]]:
    name = function.__name__

    @wraps(function)
    async def chosen(self: ObstoreStore, *given: Any) -> T:
        if _Process.spoiled:
            return cast(T, await getattr(self.plain, name)(*given))
        return function(self, *given)

    return chosen


class ObstoreStore(ObjectStore):
    """A prefix of a bucket, mostly through obstore."""

    plain_class: ClassVar[type[ObjectStore]]
    page: ClassVar[int] = 1000
    """Objects of one page of a listing, as the service sends them."""

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None) -> None:
        self.plain = self.plain_class(uri, options)
        super().__init__(uri, self.plain.options)

    @property
    def identity(self) -> str:
        return self.plain.identity

    def _connect(self, limits: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _build(self) -> Any:
        _Process.used = True
        return self._connect(
            {
                "client_options": {
                    "allow_http": True,
                    "connect_timeout": timedelta(seconds=self._connect_timeout_s),
                    "read_timeout": timedelta(seconds=self._timeout_s),
                    "timeout": _FOREVER,
                },
                "retry_config": {"max_retries": 0, "retry_timeout": timedelta(seconds=1)},
            }
        )

    @property
    def _native(self) -> Any:
        pid = os.getpid()
        if self._client is None or self._client[0] != pid:
            kind = f"obstore {self.scheme}://{self.bucket}"
            client = shared_client(kind, self._options, self._build_or_explain)
            self._client = (pid, client)
        return self._client[1]

    # -- running calls --------------------------------------------------------------------------

    def _run(self, make: Call[T]) -> T:
        return self.plain._run(make) if _Process.spoiled else _finished(make)

    def _run_all(
        self, calls: Sequence[Call[T]], parallelism: int
    ) -> builtins.list[T | BaseException]:
        if _Process.spoiled:
            return self.plain._run_all(calls, parallelism)
        if len(calls) == 1:
            return [_attempt(calls[0])]
        answers: dict[int, T | BaseException] = {}
        waiting = iter(enumerate(calls))

        def work(_: int) -> None:
            for number, make in waiting:
                answers[number] = _attempt(make)

        for _ in _Process.pool().map(work, range(min(parallelism, len(calls)))):
            pass
        return [answers[number] for number in range(len(calls))]

    # -- the hooks ------------------------------------------------------------------------------

    @_hook
    def _get(self, key: str) -> bytes:
        return bytes(self._native.get(key).bytes())

    @_hook
    def _get_range(self, key: str, start: int, end: int) -> bytes:
        return bytes(self._native.get_range(key, start=start, end=end))

    @_hook
    def _put(self, key: str, data: bytes) -> None:
        parts = len(data) > SINGLE_PUT_LIMIT
        self._native.put(key, data, use_multipart=parts, chunk_size=_PART)

    @_hook
    def _create(self, key: str, data: bytes) -> None:
        self._native.put(key, data, mode="create", use_multipart=False)

    @_hook
    def _upload(self, key: str, local_path: str) -> None:
        parts = os.path.getsize(local_path) > _PART
        self._native.put(key, Path(local_path), use_multipart=parts, chunk_size=_PART)

    @_hook
    def _head(self, key: str) -> ObjectInfo:
        return _info(self._native.head(key))

    @_hook
    def _remove(self, keys: Sequence[str]) -> None:
        self._native.delete(builtins.list(keys))

    # -- listings -------------------------------------------------------------------------------

    async def _page(
        self, prefix: str, flat: bool, start_after: str | None, token: str | None
    ) -> Page:
        return await self.plain._page(prefix, flat, start_after, token)

    def _pages(self, folder: str, prefix: str, flat: bool, after: str | None) -> Iterator[Page]:
        return self.plain._pages(folder, prefix, flat, after)

    @_hook
    def _tree(self, prefix: str, after: str | None) -> builtins.list[ObjectInfo]:
        """The first objects of a tree, up to a page, from a name on."""
        found = self._native.list(prefix or None, offset=after, chunk_size=self.page)
        return [_info(item) for item in next(iter(found), ())]

    def list_folder(
        self, prefix: str = "", start_after: str | None = None, most_pages: int | None = None
    ) -> Folder:
        if not _Process.spoiled:
            try:
                return self._folder_of_tree(prefix, start_after, most_pages)
            except TransientStorageError:
                raise
            except StorageError as error:
                logger.info("listing %s with the other client: %s", self.uri, error)
        return self.plain.list_folder(prefix, start_after, most_pages)

    def _folder_of_tree(
        self, prefix: str, start_after: str | None, most_pages: int | None
    ) -> Folder:
        """As ``list_folder``; a page that ends inside a folder does not count as one."""
        folder = self._folder_key(prefix)
        after = None if start_after is None else self._root + start_after
        seen: dict[str, None] = {}
        files: builtins.list[ObjectInfo] = []
        pages, last = 0, after
        while True:
            make = partial(self._tree, folder.rstrip("/"), last)
            found = self._repeat(prefix, "list", make)
            inside = Page([i for i in found if "/" not in i.path[len(folder) :]])
            files += self._files_of(inside, after)
            names = (i.path[len(folder) :].partition("/") for i in found)
            seen.update((folder + name, None) for name, slash, _ in names if slash)
            if len(found) < self.page:
                return Folder(files, sorted(self._folders_of(Page(folders=[*seen]))))
            last = found[-1].path
            name, slash, _ = last[len(folder) :].partition("/")
            if slash:
                last = f"{folder}{name}/{_LAST}"
            else:
                pages += 1
            if pages == most_pages:
                folders = sorted(self._folders_of(Page(folders=[*seen])))
                return Folder(files, folders, complete=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_store, (self.uri, self._options)


class ObstoreS3Store(ObstoreStore):
    """A prefix of an S3 bucket."""

    scheme, extra = "s3", "s3"
    plain_class = S3Store

    def _connect(self, limits: dict[str, Any]) -> Any:
        from obstore.store import S3Store as Client

        options = self._options
        endpoint = options.get("endpoint_url")
        style = options.get("config_kwargs", {}).get("s3", {}).get("addressing_style")
        wanted = {
            "aws_endpoint_url_s3": endpoint,
            "region": options.get("client_kwargs", {}).get("region_name"),
            "virtual_hosted_style_request": style != "path" and endpoint is None,
            "skip_signature": bool(options.get("anon")),
            "conditional_put": "etag",
            "credential_provider": self._credentials if options.get("key") else None,
        }
        known = {name: value for name, value in wanted.items() if value is not None}
        return Client(self.bucket, **known, **limits)

    def _credentials(self) -> dict[str, Any]:
        """Of one source; what the environment says would else be added to it."""
        options = self._options
        return {
            "access_key_id": options["key"],
            "secret_access_key": options["secret"],
            "token": options.get("token"),
            "expires_at": None,
        }


class ObstoreAzureStore(ObstoreStore):
    """A prefix of a blob container."""

    scheme, extra = "az", "azure"
    plain_class = AzureStore
    page = 5000

    def _connect(self, limits: dict[str, Any]) -> Any:
        from obstore.store import AzureStore as Client

        options = self._options
        known: dict[str, Any] = {"credential_provider": self._credentials}
        if options.get("endpoint"):
            known["endpoint"] = options["endpoint"]
        return Client(
            self.bucket,
            account_name=options["account_name"],
            skip_signature=False,
            **known,
            **limits,
        )

    @_hook
    def _remove(self, keys: Sequence[str]) -> None:
        """One by one: a batch ends at the first that is not there."""
        for key in keys:
            with contextlib.suppress(FileNotFoundError):
                self._native.delete(key)

    def _credentials(self) -> dict[str, Any]:
        options = self._options
        kind = "access_key" if options.get("account_key") else "sas_token"
        secret = options.get("account_key") or options["sas_token"]
        return {kind: secret, "expires_at": None}


def _finished(make: Call[T]) -> T:
    """The result of a coroutine that does not wait for anything."""
    running = make()
    try:
        running.send(None)  # type: ignore[attr-defined]
    except StopIteration as end:
        return cast(T, end.value)
    raise RuntimeError("a call that must not wait has waited")


def _attempt(make: Call[T]) -> T | BaseException:
    try:
        return _finished(make)
    except Exception as error:
        return error


def _info(item: Mapping[str, Any]) -> ObjectInfo:
    modified = int(item["last_modified"].timestamp() * 1000)
    etag = str(item.get("e_tag") or "").strip('"')
    return ObjectInfo(item["path"], int(item["size"]), modified, etag)
