"""Google Cloud Storage, through gcsfs.

A conditional create is an upload with ``ifGenerationMatch=0``. Two traps of the client are
avoided: its default class asks a gRPC service about every bucket first (the plain JSON client is
used instead), and its one-request upload frames the data with a fixed multipart boundary behind a
bare line feed. Data that holds this boundary would be cut there, and a carriage return at the end
of data would be taken for a part of the line break; both go through the resumable protocol.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from indextables.errors import TransientStorageError
from indextables.storage.base import ObjectInfo
from indextables.storage.objects import ObjectStore, Page

_BOUNDARY = b"--==0=="
_RESUMABLE_FROM = 5 << 20
_STREAM_FROM = 1 << 20
_DELETE_PARALLELISM = 16


class GcsStore(ObjectStore):
    """A prefix of a GCS bucket."""

    scheme = "gs"
    extra = "gcs"

    def _build(self) -> Any:
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        import aiohttp
        from gcsfs.core import GCSFileSystem

        options = self._client_options() | {
            "use_listings_cache": False,
            "skip_instance_cache": True,
            "requests_timeout": aiohttp.ClientTimeout(
                total=None, sock_connect=self._connect_timeout_s, sock_read=self._timeout_s
            ),
        }
        return _single_try(GCSFileSystem)(**options)

    @property
    def identity(self) -> str:
        return f"{self._options.get('endpoint_url') or ''}|{self.uri}"

    async def _media(self, key: str, headers: dict[str, str]) -> bytes:
        fs = self._fs
        answer, data = await fs._call("GET", fs.url(f"{self.bucket}/{key}"), headers=headers)
        expected = int(answer.get("Content-Length", len(data)))
        if len(data) != expected and "Content-Encoding" not in answer:
            raise TransientStorageError(f"got {len(data)} of {expected} bytes", path=self.uri)
        return bytes(data)

    async def _get(self, key: str) -> bytes:
        return await self._media(key, {})

    async def _get_range(self, key: str, start: int, end: int) -> bytes:
        return await self._media(key, {"Range": f"bytes={start}-{end - 1}"})

    async def _pipe(self, key: str, data: bytes, mode: str) -> None:
        resumable = _BOUNDARY in data or data.endswith(b"\r")
        framing = {"chunksize": len(data)} if resumable else {}
        await self._fs._pipe_file(f"{self.bucket}/{key}", data, mode=mode, **framing)

    async def _put(self, key: str, data: bytes) -> None:
        await self._pipe(key, data, "overwrite")

    async def _create(self, key: str, data: bytes) -> None:
        await self._pipe(key, data, "create")

    async def _upload(self, key: str, local_path: str) -> None:
        if os.path.getsize(local_path) < _RESUMABLE_FROM:
            with open(local_path, "rb") as file:
                await self._put(key, file.read())
        else:
            await self._fs._put_file(local_path, f"{self.bucket}/{key}")

    async def _head(self, key: str) -> ObjectInfo:
        answer = await self._fs._call("GET", "b/{}/o/{}", self.bucket, key, json_out=True)
        return _info(answer)

    async def _page(
        self, prefix: str, flat: bool, start_after: str | None, token: str | None
    ) -> Page:
        arguments = {
            "prefix": prefix,
            "delimiter": None if flat else "/",
            "startOffset": start_after,
            "pageToken": token,
        }
        wanted = {name: value for name, value in arguments.items() if value}
        answer = await self._fs._call("GET", "b/{}/o", self.bucket, json_out=True, **wanted)
        return Page(
            [_info(item) for item in answer.get("items", ())],
            list(answer.get("prefixes", ())),
            answer.get("nextPageToken"),
        )

    async def _remove(self, keys: Sequence[str]) -> None:
        import asyncio

        gate = asyncio.Semaphore(_DELETE_PARALLELISM)

        async def remove(key: str) -> None:
            async with gate:
                try:
                    await self._fs._call("DELETE", "b/{}/o/{}", self.bucket, key)
                except FileNotFoundError:
                    return

        await asyncio.gather(*(remove(key) for key in keys))


def _single_try(base: Any) -> Any:
    """The client without its own retries, and with large bodies sent as streams."""
    send = getattr(base._request, "__wrapped__", base._request)

    class SingleTryFileSystem(base):  # type: ignore[misc]
        async def _request(self, *args: Any, data: Any = None, **kwargs: Any) -> Any:
            if isinstance(data, (bytes, bytearray, memoryview)) and len(data) > _STREAM_FROM:
                data = io.BytesIO(data)
            return await send(self, *args, data=data, **kwargs)

    return SingleTryFileSystem


def _info(item: dict[str, Any]) -> ObjectInfo:
    updated = datetime.fromisoformat(item["updated"])
    modified = int(updated.timestamp() * 1000)
    return ObjectInfo(item["name"], int(item["size"]), modified, str(item.get("etag") or ""))
