"""A small Google Cloud Storage server that honours generation conditions (standard library only).

It speaks the part of the JSON API that a table needs: simple, multipart and resumable uploads
with ``ifGenerationMatch``, media reads with byte ranges, metadata, listings with prefix,
delimiter, start offset and pages, deletes. Objects live in memory; each write is decided under
one lock. ``--ignore-conditions`` makes it behave like the emulators that accept the condition and
overwrite all the same.

A multipart body ends at the first boundary that follows the data, as the format says: data which
holds the boundary is cut there.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import threading
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

OBJECTS = re.compile(r"/storage/v1/b/([^/]+)/o")
OBJECT = re.compile(r"(?:/download)?/storage/v1/b/([^/]+)/o/(.+)")
BUCKET = re.compile(r"/storage/v1/b/([^/]+)")
UPLOAD = re.compile(r"/upload/storage/v1/b/([^/]+)/o")
RANGE = re.compile(r"bytes=(\d*)-(\d*)")
CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


class HttpError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class Stored:
    data: bytes
    generation: int
    updated: str


@dataclass
class Upload:
    bucket: str
    name: str
    condition: str | None
    data: bytearray = field(default_factory=bytearray)


class Service:
    """Buckets, objects and unfinished uploads behind one lock."""

    def __init__(self, buckets: list[str], ignore_conditions: bool) -> None:
        self.lock = threading.Lock()
        self.buckets: dict[str, dict[str, Stored]] = {name: {} for name in buckets}
        self.uploads: dict[str, Upload] = {}
        self.generation = 1_700_000_000_000_000
        self.ignore_conditions = ignore_conditions

    def objects(self, bucket: str) -> dict[str, Stored]:
        if bucket not in self.buckets:
            raise HttpError(404, "The specified bucket does not exist.")
        return self.buckets[bucket]

    def find(self, bucket: str, name: str) -> Stored:
        stored = self.objects(bucket).get(name)
        if stored is None:
            raise HttpError(404, f"No such object: {bucket}/{name}")
        return stored

    def write(self, bucket: str, name: str, data: bytes, condition: str | None) -> dict[str, Any]:
        with self.lock:
            objects = self.objects(bucket)
            current = objects.get(name)
            generation = current.generation if current else 0
            if (
                condition is not None
                and int(condition) != generation
                and not self.ignore_conditions
            ):
                raise HttpError(
                    412, "At least one of the pre-conditions you specified did not hold."
                )
            self.generation += 1
            now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            objects[name] = Stored(data, self.generation, now)
            return describe(bucket, name, objects[name])

    def remove(self, bucket: str, name: str) -> None:
        with self.lock:
            self.find(bucket, name)
            del self.buckets[bucket][name]


def describe(bucket: str, name: str, stored: Stored) -> dict[str, Any]:
    digest = base64.b64encode(hashlib.md5(stored.data, usedforsecurity=False).digest()).decode()
    return {
        "kind": "storage#object",
        "bucket": bucket,
        "name": name,
        "size": str(len(stored.data)),
        "generation": str(stored.generation),
        "metageneration": "1",
        "contentType": "application/octet-stream",
        "md5Hash": digest,
        "timeCreated": stored.updated,
        "updated": stored.updated,
    }


def parse_multipart(body: bytes, content_type: str) -> tuple[dict[str, Any], bytes]:
    """The metadata and the data of a ``multipart/related`` upload."""
    match = re.search(r'boundary="?([^";]+)', content_type)
    if match is None:
        raise HttpError(400, "multipart upload without a boundary")
    delimiter = rb"\r?\n--" + re.escape(match[1].encode())
    parts = re.split(delimiter, b"\n" + body)
    if len(parts) < 4:
        raise HttpError(400, "multipart upload with too few parts")
    metadata, data = (re.split(rb"\r?\n\r?\n", part, maxsplit=1)[1] for part in parts[1:3])
    return json.loads(metadata), data


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: GcsServer

    def log_message(self, format: str, *args: object) -> None:
        return

    def handle_any(self) -> None:
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            self.route(parts.path)
        except HttpError as error:
            detail = {"code": error.status, "message": error.reason}
            self.answer(error.status, {"error": detail})

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_any  # noqa: N815

    def route(self, path: str) -> None:
        service = self.server.service
        if match := UPLOAD.fullmatch(path):
            self.upload(unquote(match[1]), path)
        elif path == "/storage/v1/b" and self.command == "POST":
            name = json.loads(self.body)["name"]
            service.buckets.setdefault(name, {})
            self.answer(200, {"name": name})
        elif match := BUCKET.fullmatch(path):
            service.objects(unquote(match[1]))
            self.answer(200, {"name": unquote(match[1])})
        elif match := OBJECTS.fullmatch(path):
            self.listing(unquote(match[1]))
        elif match := OBJECT.fullmatch(path):
            self.one_object(unquote(match[1]), unquote(match[2]))
        else:
            raise HttpError(404, f"no route for {path}")

    def upload(self, bucket: str, path: str) -> None:
        service = self.server.service
        condition = self.query.get("ifGenerationMatch")
        if "upload_id" in self.query:
            self.resumed(self.query["upload_id"])
        elif self.query.get("uploadType") == "resumable":
            metadata = json.loads(self.body) if self.body else {}
            name = self.query.get("name") or metadata["name"]
            ticket = uuid.uuid4().hex
            service.uploads[ticket] = Upload(bucket, name, condition)
            location = (
                f"http://{self.headers['Host']}{path}?uploadType=resumable&upload_id={ticket}"
            )
            self.answer(200, b"", {"Location": location})
        elif self.query.get("uploadType") == "media":
            self.answer(200, service.write(bucket, self.query["name"], self.body, condition))
        else:
            metadata, data = parse_multipart(self.body, self.headers.get("Content-Type", ""))
            self.answer(200, service.write(bucket, metadata["name"], data, condition))

    def resumed(self, ticket: str) -> None:
        service = self.server.service
        upload = service.uploads.get(ticket)
        if upload is None:
            raise HttpError(404, "no such upload")
        if self.command == "DELETE":
            service.uploads.pop(ticket, None)
            self.answer(499, b"")
            return
        match = CONTENT_RANGE.fullmatch(self.headers.get("Content-Range", ""))
        if match is None:
            raise HttpError(400, "Content-Range missing")
        if match[1] is not None:
            upload.data[int(match[1]) :] = self.body
        if match[3] != "*" and len(upload.data) >= int(match[3]):
            service.uploads.pop(ticket, None)
            stored = service.write(upload.bucket, upload.name, bytes(upload.data), upload.condition)
            self.answer(200, stored)
        else:
            so_far = {"Range": f"bytes=0-{len(upload.data) - 1}"} if upload.data else {}
            self.answer(308, b"", so_far)

    def listing(self, bucket: str) -> None:
        service = self.server.service
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter")
        start, token = self.query.get("startOffset", ""), self.query.get("pageToken", "")
        limit = int(self.query.get("maxResults", self.server.page_size))
        with service.lock:
            stored = sorted(service.objects(bucket).items())
        items: list[dict[str, Any]] = []
        prefixes: set[str] = set()
        last = ""
        for name, one in stored:
            if not name.startswith(prefix) or name < start or (token and name <= token):
                continue
            if len(items) + len(prefixes) >= limit:
                page = {"items": items, "prefixes": sorted(prefixes), "nextPageToken": last}
                self.answer(200, page)
                return
            last = name
            head, found, _ = name[len(prefix) :].partition(delimiter or "\0")
            if delimiter and found:
                prefixes.add(prefix + head + delimiter)
            else:
                items.append(describe(bucket, name, one))
        self.answer(200, {"items": items, "prefixes": sorted(prefixes)})

    def one_object(self, bucket: str, name: str) -> None:
        service = self.server.service
        if self.command == "DELETE":
            service.remove(bucket, name)
            self.answer(204, b"")
            return
        stored = service.find(bucket, name)
        if self.query.get("alt") == "media":
            self.media(stored)
        else:
            self.answer(200, describe(bucket, name, stored))

    def media(self, stored: Stored) -> None:
        headers = {"X-Goog-Generation": str(stored.generation)}
        match = RANGE.fullmatch(self.headers.get("Range", ""))
        size = len(stored.data)
        if match is None:
            self.answer(200, stored.data, headers)
            return
        first, last = match.groups()
        low = int(first) if first else max(0, size - int(last))
        high = min(size, int(last) + 1) if first and last else size
        if low >= size:
            raise HttpError(416, "The requested range cannot be satisfied.")
        headers["Content-Range"] = f"bytes {low}-{high - 1}/{size}"
        self.answer(206, stored.data[low:high], headers)

    def answer(
        self, status: int, body: bytes | dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        if not isinstance(body, bytes):
            self.send_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(payload)


class GcsServer(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, port: int, service: Service, page_size: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.service = service
        self.page_size = page_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bucket", action="append", default=[])
    parser.add_argument("--page-size", type=int, default=100)
    parser.add_argument("--ignore-conditions", action="store_true")
    arguments = parser.parse_args()
    service = Service(arguments.bucket, arguments.ignore_conditions)
    GcsServer(arguments.port, service, arguments.page_size).serve_forever()


if __name__ == "__main__":
    main()
