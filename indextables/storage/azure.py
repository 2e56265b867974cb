"""Azure Blob Storage and ADLS Gen2, through adlfs.

adlfs finds the credentials and builds the service client; the operations are sent on that client,
because adlfs reads a "?" in a name as a query and its listings may be stale. A conditional create
is one ``Put Blob`` with ``If-None-Match: *``. The client's own retries are off: its first pause
is fifteen seconds, and a repeated create reports our own success as a conflict.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from indextables.storage.base import ObjectInfo
from indextables.storage.objects import ObjectStore, Page

_DELETE_PARALLELISM = 16
_UPLOAD_PARALLELISM = 4


class AzureStore(ObjectStore):
    """A prefix of a blob container."""

    scheme = "az"
    extra = "azure"

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(uri, options)
        account = uri.partition("://")[2].partition("/")[0].partition("@")[2].partition(".")[0]
        if account:
            self._options.setdefault("account_name", account)

    def _build(self) -> Any:
        from adlfs import AzureBlobFileSystem

        options = self._client_options()
        endpoint = options.pop("endpoint", None)
        if endpoint and "connection_string" not in options:
            options["connection_string"] = _connection_string(endpoint, options)
        options |= {"use_listings_cache": False, "skip_instance_cache": True}
        return AzureBlobFileSystem(**options)

    @property
    def identity(self) -> str:
        account = self._options.get("endpoint") or self._options.get("account_name") or ""
        return f"{account}|{self.uri}"

    @property
    def _limits(self) -> dict[str, Any]:
        return {
            "retry_total": 0,
            "connection_timeout": self._connect_timeout_s,
            "read_timeout": self._timeout_s,
        }

    def _blob(self, key: str) -> Any:
        return self._fs.service_client.get_blob_client(container=self.bucket, blob=key)

    async def _get(self, key: str) -> bytes:
        stream = await self._blob(key).download_blob(**self._limits)
        return bytes(await stream.readall())

    async def _get_range(self, key: str, start: int, end: int) -> bytes:
        stream = await self._blob(key).download_blob(
            offset=start, length=end - start, **self._limits
        )
        return bytes(await stream.readall())

    async def _put(self, key: str, data: bytes) -> None:
        await self._send(key, data, overwrite=True)

    async def _create(self, key: str, data: bytes) -> None:
        await self._send(key, data, overwrite=False)

    async def _upload(self, key: str, local_path: str) -> None:
        with open(local_path, "rb") as file:
            await self._send(key, file, overwrite=True)

    async def _send(self, key: str, data: Any, overwrite: bool) -> None:
        warnings.filterwarnings("ignore", "Sending a large body directly", ResourceWarning)
        await self._blob(key).upload_blob(
            data, overwrite=overwrite, max_concurrency=_UPLOAD_PARALLELISM, **self._limits
        )

    async def _head(self, key: str) -> ObjectInfo:
        return _info(await self._blob(key).get_blob_properties(**self._limits))

    async def _page(
        self, prefix: str, flat: bool, start_after: str | None, token: str | None
    ) -> Page:
        container = self._fs.service_client.get_container_client(self.bucket)
        page = Page()
        if flat:
            found = container.list_blobs(
                name_starts_with=prefix, include=["metadata"], **self._limits
            )
        else:
            found = container.walk_blobs(
                name_starts_with=prefix, include=["metadata"], delimiter="/", **self._limits
            )
        pages = found.by_page(continuation_token=token)
        async for item in await anext(pages):
            if "size" not in item:
                page.folders.append(item.name)
            elif not _is_folder(item):
                page.objects.append(_info(item))
        page.token = pages.continuation_token
        return page

    async def _remove(self, keys: Sequence[str]) -> None:
        import asyncio

        from azure.core.exceptions import ResourceNotFoundError

        gate = asyncio.Semaphore(_DELETE_PARALLELISM)

        async def remove(key: str) -> None:
            async with gate:
                try:
                    await self._blob(key).delete_blob(**self._limits)
                except ResourceNotFoundError:
                    return

        await asyncio.gather(*(remove(key) for key in keys))


def _connection_string(endpoint: str, options: dict[str, Any]) -> str:
    parts = {
        "DefaultEndpointsProtocol": endpoint.partition("://")[0],
        "AccountName": options.get("account_name"),
        "AccountKey": options.get("account_key"),
        "SharedAccessSignature": options.get("sas_token"),
        "BlobEndpoint": endpoint,
    }
    return ";".join(f"{name}={value}" for name, value in parts.items() if value)


def _is_folder(item: Any) -> bool:
    metadata = item.metadata or {}
    return any(name.lower() == "hdi_isfolder" and value for name, value in metadata.items())


def _info(item: Any) -> ObjectInfo:
    modified = int(item.last_modified.timestamp() * 1000)
    return ObjectInfo(item.name, int(item.size), modified, str(item.etag or "").strip('"'))
