"""S3 and its many clones, through s3fs.

Every operation is one named S3 request on the s3fs client: its generic calls look objects up
before reading, expand glob characters in keys and hide failures of bulk deletes. A conditional
create is ``PutObject`` with ``If-None-Match: *``; never a multipart upload, whose completion
several servers do not guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indextables.errors import StorageError, TransientStorageError
from indextables.storage.base import ObjectInfo
from indextables.storage.objects import SINGLE_PUT_LIMIT, ObjectStore, Page
from indextables.storage.pool import MOST_THREADS


class S3Store(ObjectStore):
    """A prefix of an S3 bucket."""

    scheme = "s3"
    extra = "s3"

    def _build(self) -> Any:
        import s3fs

        options = self._client_options()
        config = {
            "connect_timeout": self._connect_timeout_s,
            "read_timeout": self._timeout_s,
            "retries": {"max_attempts": 0},
            "max_pool_connections": MOST_THREADS,
        }
        options["config_kwargs"] = config | options.get("config_kwargs", {})
        options |= {"use_listings_cache": False, "skip_instance_cache": True}
        fs = s3fs.S3FileSystem(**options)
        fs.retries = 1
        return fs

    @property
    def identity(self) -> str:
        return f"{self._options.get('endpoint_url') or ''}|{self.uri}"

    async def _call(self, operation: str, **arguments: Any) -> Any:
        return await self._fs._call_s3(operation, Bucket=self.bucket, **arguments)

    async def _body(self, answer: Any) -> bytes:
        try:
            data: bytes = await answer["Body"].read()
        finally:
            answer["Body"].close()
        expected = answer.get("ContentLength", len(data))
        if len(data) != expected:
            raise TransientStorageError(f"got {len(data)} of {expected} bytes", path=self.uri)
        return data

    async def _get(self, key: str) -> bytes:
        return await self._body(await self._call("get_object", Key=key))

    async def _get_range(self, key: str, start: int, end: int) -> bytes:
        wanted = f"bytes={start}-{end - 1}"
        return await self._body(await self._call("get_object", Key=key, Range=wanted))

    async def _put(self, key: str, data: bytes) -> None:
        if len(data) > SINGLE_PUT_LIMIT:
            await self._fs._pipe_file(f"{self.bucket}/{key}", data)
        else:
            await self._call("put_object", Key=key, Body=data)

    async def _create(self, key: str, data: bytes) -> None:
        await self._call("put_object", Key=key, Body=data, IfNoneMatch="*")

    async def _upload(self, key: str, local_path: str) -> None:
        await self._fs._put_file(local_path, f"{self.bucket}/{key}")

    async def _head(self, key: str) -> ObjectInfo:
        answer = await self._call("head_object", Key=key)
        return ObjectInfo(
            key, int(answer["ContentLength"]), _millis(answer["LastModified"]), _etag(answer)
        )

    async def _page(
        self, prefix: str, flat: bool, start_after: str | None, token: str | None
    ) -> Page:
        arguments: dict[str, Any] = {"Prefix": prefix}
        if not flat:
            arguments["Delimiter"] = "/"
        if token:
            arguments["ContinuationToken"] = token
        elif start_after is not None:
            arguments["StartAfter"] = start_after
        answer = await self._call("list_objects_v2", **arguments)
        return Page(
            [
                ObjectInfo(
                    item["Key"], int(item["Size"]), _millis(item["LastModified"]), _etag(item)
                )
                for item in answer.get("Contents", ())
            ],
            [item["Prefix"] for item in answer.get("CommonPrefixes", ())],
            answer.get("NextContinuationToken") if answer.get("IsTruncated") else None,
        )

    async def _remove(self, keys: Sequence[str]) -> None:
        wanted = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        answer = await self._call("delete_objects", Delete=wanted)
        failed = [item for item in answer.get("Errors", ()) if item.get("Code") != "NoSuchKey"]
        if failed:
            raise StorageError(
                f"cannot delete {len(failed)} of {len(keys)} objects: {failed[0].get('Code')}",
                path=f"{self.scheme}://{self.bucket}/{failed[0].get('Key')}",
            )


def _millis(moment: Any) -> int:
    return int(moment.timestamp() * 1000)


def _etag(item: dict[str, Any]) -> str:
    return str(item.get("ETag") or "").strip('"')
