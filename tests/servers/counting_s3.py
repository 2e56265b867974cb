"""A small S3 server that counts: requests by kind, bytes, and the longest chain of requests.

It speaks the part of S3 that s3fs and the ``object_store`` crate (Lance, deltalake) use: GET with
ranges, HEAD, ListObjectsV2, PUT with ``If-None-Match`` and ``If-Match``, copies, DELETE,
multi-object delete and multipart uploads. Objects live in memory. Every request waits ``delay_s``
before its first byte, and a body takes ``length / bytes_per_s`` more; requests wait side by side,
as they do at a real store. Signatures are not checked.

**Depth** is the length of the longest chain of requests of which each could only be sent after the
one before was answered: a request that starts after another one ended counts as depending on it,
so ``depth(r) = 1 + max(depth of the requests that had ended when r started)``. It is what latency
is multiplied with; a thousand requests at once have depth 1. Two requests that a program sends
"at once" must start within one delay of each other to be seen as such, so a depth is only
meaningful with a delay that is long beside the machine's hiccups.

In this process: ``with CountingS3(delay_s=0.03) as server: server.endpoint``. As a program::

    python counting_s3.py --port 0 --delay-ms 30      prints its port

``GET /_counting/report`` gives the report as JSON, ``POST /_counting/reset?delay_ms=30`` starts a
new query and may change the delay. A bucket is made by its first use.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import heapq
import json
import threading
import time
import uuid
import xml.etree.ElementTree as ElementTree
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

CONTROL = "/_counting/"
PAGE = 1000
_XMLNS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
_REASONS = {
    200: "OK",
    204: "No Content",
    206: "Partial Content",
    304: "Not Modified",
    400: "Bad Request",
    404: "Not Found",
    412: "Precondition Failed",
    416: "Range Not Satisfiable",
    501: "Not Implemented",
}


# -- counting -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Served:
    """One answered request; times are seconds on one clock, ``received`` is what a client sent."""

    kind: str
    key: str
    range: str
    status: int
    sent: int
    received: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Report:
    """What one query cost."""

    requests: int = 0
    depth: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    served: tuple[Served, ...] = ()


def depth_of(served: Iterable[Served]) -> int:
    """The longest chain of requests that could not have been sent earlier."""
    ended: list[tuple[float, int]] = []
    behind = deepest = 0
    for request in sorted(served, key=lambda r: (r.start, r.end)):
        while ended and ended[0][0] <= request.start:
            behind = max(behind, heapq.heappop(ended)[1])
        heapq.heappush(ended, (request.end, behind + 1))
        deepest = max(deepest, behind + 1)
    return deepest


def report_of(served: Iterable[Served]) -> Report:
    listed = tuple(served)
    return Report(
        len(listed),
        depth_of(listed),
        sum(r.sent for r in listed),
        sum(r.received for r in listed),
        dict(Counter(r.kind for r in listed)),
        listed,
    )


# -- the bucket -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    data: bytes
    etag: str
    modified: float

    @classmethod
    def of(cls, data: bytes) -> Stored:
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
        return cls(data, f'"{digest}"', time.time())


@dataclass(slots=True)
class Bucket:
    """Objects by key, and the keys in order."""

    objects: dict[str, Stored] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def put(self, key: str, stored: Stored) -> None:
        if key not in self.objects:
            insort(self.keys, key)
        self.objects[key] = stored

    def remove(self, key: str) -> None:
        if self.objects.pop(key, None) is not None:
            del self.keys[bisect_right(self.keys, key) - 1]


class S3Error(Exception):
    def __init__(self, status: int, code: str, extra: str = "") -> None:
        super().__init__(code)
        self.status, self.code, self.extra = status, code, extra


@dataclass(slots=True)
class Request:
    method: str
    bucket: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    wire_bytes: int

    @property
    def kind(self) -> str:
        """``GET``, ``HEAD``, ``LIST``, ``PUT``, ``DELETE``, ``DELETE MANY`` or ``MULTIPART``."""
        if "uploadId" in self.query or "uploads" in self.query:
            return "MULTIPART"
        if self.method == "GET" and not self.key:
            return "LIST"
        return "DELETE MANY" if "delete" in self.query else self.method


@dataclass(slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Service:
    """What each request does; runs on one event loop, so every request is atomic."""

    def __init__(self, page: int = PAGE) -> None:
        self.buckets: dict[str, Bucket] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.page = page

    def answer(self, request: Request) -> Answer:
        routes: dict[str, Callable[[Bucket, Request], Answer]] = {
            "GET": self.get,
            "HEAD": self.get,
            "LIST": self.list,
            "PUT": self.put,
            "DELETE": self.delete,
            "DELETE MANY": self.delete_many,
            "MULTIPART": self.multipart,
        }
        route = routes.get(request.kind)
        bucket = self.buckets.setdefault(request.bucket, Bucket())
        try:
            if route is None:
                raise S3Error(501, "NotImplemented")
            return route(bucket, request)
        except S3Error as error:
            text = f"<Error><Code>{error.code}</Code><Message/>{error.extra}</Error>"
            return Answer(error.status, text.encode(), {"Content-Type": "application/xml"})

    def get(self, bucket: Bucket, request: Request) -> Answer:
        if not request.key:
            return Answer()
        stored = bucket.objects.get(request.key)
        if stored is None:
            raise S3Error(404, "NoSuchKey")
        if request.headers.get("if-none-match") == stored.etag:
            return Answer(304)
        if request.headers.get("if-match", stored.etag) != stored.etag:
            raise S3Error(412, "PreconditionFailed")
        headers = {
            "ETag": stored.etag,
            "Last-Modified": formatdate(stored.modified, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        wanted = request.headers.get("range")
        if wanted is None:
            return Answer(200, stored.data, headers)
        start, end = asked_range(wanted, len(stored.data))
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(stored.data)}"
        return Answer(206, stored.data[start:end], headers)

    def list(self, bucket: Bucket, request: Request) -> Answer:
        if "location" in request.query:
            return xml_answer(f"<LocationConstraint {_XMLNS}/>")
        query = request.query
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        limit = min(int(query.get("max-keys", self.page)), self.page)
        items, truncated = self._page_of(bucket, prefix, delimiter, after, limit)
        parts = [
            f"<Name>{escape(request.bucket)}</Name><Prefix>{escape(prefix)}</Prefix>",
            f"<KeyCount>{len(items)}</KeyCount><MaxKeys>{limit}</MaxKeys>",
            f"<IsTruncated>{'true' if truncated else 'false'}</IsTruncated>",
        ]
        if truncated:
            parts.append(f"<NextContinuationToken>{escape(items[-1])}</NextContinuationToken>")
        parts += [listed(name, bucket.objects.get(name), delimiter) for name in items]
        return xml_answer(f"<ListBucketResult {_XMLNS}>{''.join(parts)}</ListBucketResult>")

    def _page_of(
        self, bucket: Bucket, prefix: str, delimiter: str, after: str, limit: int
    ) -> tuple[list[str], bool]:
        """Keys and folders in order; the last one of a page is where the next one goes on."""
        items: list[str] = []
        at = bisect_right(bucket.keys, after) if after > prefix else 0
        at = max(at, bisect_right(bucket.keys, prefix) - 1, 0)
        for key in bucket.keys[at:]:
            if not key.startswith(prefix):
                if key > prefix:
                    break
                continue
            head, found, _ = key[len(prefix) :].partition(delimiter or "\0")
            name = prefix + head + delimiter if delimiter and found else key
            if name <= after or (items and items[-1] == name):
                continue
            if len(items) == limit:
                return items, True
            items.append(name)
        return items, False

    def put(self, bucket: Bucket, request: Request) -> Answer:
        if not request.key:
            return Answer()
        check_write(bucket, request)
        source = request.headers.get("x-amz-copy-source")
        if source is None:
            stored = Stored.of(request.body)
            bucket.put(request.key, stored)
            return Answer(headers={"ETag": stored.etag})
        name, _, key = unquote(source).lstrip("/").partition("/")
        copied = self.buckets.get(name, Bucket()).objects.get(key)
        if copied is None:
            raise S3Error(404, "NoSuchKey")
        bucket.put(request.key, Stored.of(copied.data))
        return xml_answer(
            f"<CopyObjectResult {_XMLNS}><ETag>{copied.etag}</ETag></CopyObjectResult>"
        )

    def delete(self, bucket: Bucket, request: Request) -> Answer:
        bucket.remove(request.key)
        return Answer(204)

    def delete_many(self, bucket: Bucket, request: Request) -> Answer:
        found = ElementTree.fromstring(request.body).iter()
        keys = [e.text or "" for e in found if e.tag.rpartition("}")[2] == "Key"]
        for key in keys:
            bucket.remove(key)
        gone = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        return xml_answer(f"<DeleteResult {_XMLNS}>{gone}</DeleteResult>")

    def multipart(self, bucket: Bucket, request: Request) -> Answer:
        place = f"<Bucket>{escape(request.bucket)}</Bucket><Key>{escape(request.key)}</Key>"
        if "uploads" in request.query:
            ticket = uuid.uuid4().hex
            self.uploads[ticket] = {}
            start = f"{place}<UploadId>{ticket}</UploadId>"
            return xml_answer(
                f"<InitiateMultipartUploadResult {_XMLNS}>{start}</InitiateMultipartUploadResult>"
            )
        ticket = request.query["uploadId"]
        if ticket not in self.uploads:
            raise S3Error(404, "NoSuchUpload")
        if request.method == "DELETE":
            del self.uploads[ticket]
            return Answer(204)
        if request.method == "PUT":
            self.uploads[ticket][int(request.query["partNumber"])] = request.body
            return Answer(headers={"ETag": Stored.of(request.body).etag})
        check_write(bucket, request)
        parts = self.uploads.pop(ticket)
        stored = Stored.of(b"".join(parts[number] for number in sorted(parts)))
        bucket.put(request.key, stored)
        done = f"{place}<ETag>{escape(stored.etag)}</ETag>"
        return xml_answer(
            f"<CompleteMultipartUploadResult {_XMLNS}>{done}</CompleteMultipartUploadResult>"
        )


def check_write(bucket: Bucket, request: Request) -> None:
    current = bucket.objects.get(request.key)
    if request.headers.get("if-none-match") == "*" and current is not None:
        raise S3Error(412, "PreconditionFailed", "<Condition>If-None-Match</Condition>")
    wanted = request.headers.get("if-match")
    if wanted is not None and (current is None or wanted != current.etag):
        raise S3Error(412, "PreconditionFailed", "<Condition>If-Match</Condition>")


def asked_range(spelled: str, size: int) -> tuple[int, int]:
    first, _, last = spelled.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= end:
        raise S3Error(416, "InvalidRange")
    return start, end


def xml_answer(body: str) -> Answer:
    text = '<?xml version="1.0" encoding="UTF-8"?>' + body
    return Answer(200, text.encode(), {"Content-Type": "application/xml"})


def listed(name: str, stored: Stored | None, delimiter: str) -> str:
    if stored is None or (delimiter and name.endswith(delimiter)):
        return f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
    moment = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(stored.modified))
    return (
        f"<Contents><Key>{escape(name)}</Key><LastModified>{moment}</LastModified>"
        f"<ETag>{escape(stored.etag)}</ETag><Size>{len(stored.data)}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )


def unchunked(body: bytes) -> bytes:
    """The data of an ``aws-chunked`` body."""
    data, at = bytearray(), 0
    while True:
        line = body.index(b"\r\n", at)
        size = int(body[at:line].partition(b";")[0], 16)
        if size == 0:
            return bytes(data)
        data += body[line + 2 : line + 2 + size]
        at = line + 4 + size


# -- HTTP -----------------------------------------------------------------------------------------


class CountingS3:
    """The server on a loopback port; ``start`` and ``stop``, or a ``with`` block."""

    def __init__(
        self,
        *,
        delay_s: float = 0.0,
        bytes_per_s: float | None = None,
        port: int = 0,
        page: int = PAGE,
    ) -> None:
        self.delay_s = delay_s
        self.bytes_per_s = bytes_per_s
        self.port = port
        self.service = Service(page)
        self._served: list[Served] = []
        self._started = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=self._main, name="counting-s3", daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> CountingS3:
        self._thread.start()
        self._started.wait(10)
        return self

    def stop(self) -> None:
        self._stop()
        self._thread.join(10)

    def __enter__(self) -> CountingS3:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def reset(self, *, delay_s: float | None = None) -> None:
        """A new query begins."""
        self._served = []
        self.delay_s = self.delay_s if delay_s is None else delay_s

    def report(self) -> Report:
        return report_of(self._served)

    def _main(self) -> None:
        asyncio.run(self.serve())

    async def serve(self) -> None:
        """Answer until ``stop``."""
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = loop.create_task(self._connection(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(
            connected, "127.0.0.1", self.port, limit=1 << 20, backlog=512
        )
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await stopped.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                start = time.monotonic()
                request = await self._request(line.decode(), reader, writer)
                await self._respond(request, start, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _request(
        self, line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Request:
        method, target, _ = line.split(" ", 2)
        headers: dict[str, str] = {}
        while (text := (await reader.readline()).decode("latin-1").strip()) != "":
            name, _, value = text.partition(":")
            headers[name.strip().lower()] = value.strip()
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        url = urlsplit(target)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        size = len(body)
        if "aws-chunked" in headers.get("content-encoding", ""):
            body = unchunked(body)
        return Request(method, bucket, key, query, headers, body, size)

    async def _respond(self, request: Request, start: float, writer: asyncio.StreamWriter) -> None:
        if f"/{request.bucket}/" == CONTROL:
            await _write(writer, request, self._control(request))
            return
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        answer = self.service.answer(request)
        sent = 0 if request.method == "HEAD" else len(answer.body)
        if self.bytes_per_s and sent:
            await asyncio.sleep(sent / self.bytes_per_s)
        # counted before the last byte leaves: what a client sends next must find it ended
        spelled = request.key if request.key else request.query.get("prefix", "")
        wanted = request.headers.get("range", "")
        self._served.append(
            Served(
                request.kind,
                f"{request.bucket}/{spelled}",
                wanted,
                answer.status,
                sent,
                request.wire_bytes,
                start,
                time.monotonic(),
            )
        )
        await _write(writer, request, answer)

    def _control(self, request: Request) -> Answer:
        if request.key == "reset":
            delay = request.query.get("delay_ms")
            self.reset(delay_s=None if delay is None else float(delay) / 1000)
            return Answer(204)
        body = json.dumps(asdict(self.report())).encode()
        return Answer(200, body, {"Content-Type": "application/json"})


async def _write(writer: asyncio.StreamWriter, request: Request, answer: Answer) -> None:
    headers = dict(answer.headers)
    if answer.status not in (204, 304):
        headers["Content-Length"] = str(len(answer.body))
    head = f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(head.encode() + b"\r\n")
    if request.method != "HEAD":
        writer.write(answer.body)
    await writer.drain()


class Remote:
    """The control of a server that runs in another process."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def reset(self, *, delay_s: float | None = None) -> None:
        query = "" if delay_s is None else f"?delay_ms={delay_s * 1000}"
        self._ask("POST", f"{CONTROL}reset{query}")

    def report(self) -> Report:
        found: dict[str, Any] = json.loads(self._ask("GET", f"{CONTROL}report"))
        served = tuple(Served(**one) for one in found.pop("served"))
        return Report(**found, served=served)

    def _ask(self, method: str, path: str) -> bytes:
        from http.client import HTTPConnection

        connection = HTTPConnection(self.endpoint.removeprefix("http://"), timeout=60)
        try:
            connection.request(method, path)
            return connection.getresponse().read()
        finally:
            connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--bytes-per-s", type=float, default=None)
    asked = parser.parse_args()
    server = CountingS3(
        delay_s=asked.delay_ms / 1000, bytes_per_s=asked.bytes_per_s, port=asked.port
    )
    server.start()
    print(server.port, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
