"""An HTTP reverse proxy that breaks requests on purpose.

A rule looks at each request and names an action: reset the connection before or after the server
did the work, lie about the outcome, answer without asking the server, delay, tear the request in
the middle, cut the answer short. The Host header is passed on unchanged, so signatures made for
the proxy's address stay valid. One thread per connection; the listening port is free on loopback.
"""

from __future__ import annotations

import json
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO, NamedTuple


class Kind(Enum):
    RESET_BEFORE = "reset, the server never sees the request"
    RESET_AFTER = "the server did it, the connection is reset without an answer"
    LIE = "the server did it, the client is told an error status"
    STATUS = "the server never sees it, the client is told an error status"
    DELAY = "answered late"
    HANG = "the server did it, no answer for a while, then a reset"
    TORN_REQUEST = "the server sees half of the body, then a reset"
    TRUNCATED_BODY = "the client gets half of the answer's body, then a reset"


class Fault(NamedTuple):
    kind: Kind
    status: int = 500
    seconds: float = 0.0


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    number: int


Rule = Callable[[Request], Fault | None]

MIXED_FAULTS = (
    Fault(Kind.RESET_BEFORE),
    Fault(Kind.RESET_AFTER),
    Fault(Kind.LIE, 500),
    Fault(Kind.LIE, 503),
    Fault(Kind.STATUS, 500),
    Fault(Kind.STATUS, 503),
    Fault(Kind.STATUS, 409),
    Fault(Kind.TORN_REQUEST),
    Fault(Kind.TRUNCATED_BODY),
    Fault(Kind.DELAY, seconds=0.05),
)


def never(request: Request) -> Fault | None:
    return None


MOST_SPARED = 16


def randomly(seed: int, rate: float, faults: Sequence[Fault] = MIXED_FAULTS) -> Rule:
    """A rule that draws from ``faults`` at ``rate``, from a seed.

    A run of ``MOST_SPARED`` requests without a fault ends with one: no seed spares them all.
    """
    rng = random.Random(seed)
    lock = threading.Lock()
    spared = 0

    def rule(request: Request) -> Fault | None:
        nonlocal spared
        with lock:
            struck = rng.random() < rate or spared >= MOST_SPARED
            spared = 0 if struck else spared + 1
            return rng.choice(faults) if struck else None

    return rule


def first(fault: Fault, methods: Sequence[str], times: int = 1) -> Rule:
    """A rule that breaks only the first requests of some methods."""
    left = [times]
    lock = threading.Lock()

    def rule(request: Request) -> Fault | None:
        with lock:
            if request.method in methods and left[0] > 0:
                left[0] -= 1
                return fault
        return None

    return rule


class _Message(NamedTuple):
    start: bytes
    raw_headers: bytes
    headers: dict[str, str]
    body: bytes


class FaultProxy:
    """A proxy to one upstream port; ``rule`` may be replaced at any time."""

    def __init__(self, upstream_port: int, rule: Rule = never) -> None:
        self.rule = rule
        self.injected: list[tuple[Request, Fault]] = []
        self.requests = 0
        self._upstream = ("127.0.0.1", upstream_port)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client, client.makefile("rb") as stream:
            try:
                while (message := _read_request(stream, client)) is not None:
                    if not self._exchange(client, message):
                        return
            except (OSError, ValueError):
                return

    def _exchange(self, client: socket.socket, message: _Message) -> bool:
        """Serve one request; whether the connection lives on."""
        fault = self._decide(message)
        if fault is None:
            return self._pass_on(client, message)
        if fault.kind is Kind.RESET_BEFORE:
            return _reset(client)
        if fault.kind is Kind.TORN_REQUEST:
            self._tear(message)
            return _reset(client)
        if fault.kind is Kind.STATUS:
            client.sendall(_error_answer(message, fault.status))
            return True
        answer = self._ask(message)
        if fault.kind is Kind.LIE:
            client.sendall(_error_answer(message, fault.status))
            return True
        if fault.kind is Kind.TRUNCATED_BODY:
            half = answer.body[: len(answer.body) // 2]
            client.sendall(answer.start + answer.raw_headers + half)
            return _reset(client, abruptly=False)
        time.sleep(fault.seconds)
        if fault.kind is Kind.DELAY:
            client.sendall(answer.start + answer.raw_headers + answer.body)
            return True
        return _reset(client)

    def _decide(self, message: _Message) -> Fault | None:
        method, target, _ = message.start.decode("latin-1").split(" ", 2)
        with self._lock:
            self.requests += 1
            request = Request(method, target, message.headers, self.requests)
        fault = self.rule(request)
        if fault is not None:
            with self._lock:
                self.injected.append((request, fault))
        return fault

    def _pass_on(self, client: socket.socket, message: _Message) -> bool:
        answer = self._ask(message)
        client.sendall(answer.start + answer.raw_headers + answer.body)
        return "content-length" in answer.headers or b" 204 " in answer.start

    def _ask(self, message: _Message) -> _Message:
        with (
            socket.create_connection(self._upstream) as upstream,
            upstream.makefile("rb") as stream,
        ):
            upstream.sendall(message.start + message.raw_headers + message.body)
            answer = _read_answer(stream, message.start.startswith(b"HEAD "))
        if answer is None:
            raise OSError("the server closed the connection")
        return answer

    def _tear(self, message: _Message) -> None:
        with socket.create_connection(self._upstream) as upstream:
            half = message.body[: len(message.body) // 2]
            upstream.sendall(message.start + message.raw_headers + half)
            time.sleep(0.02)


def _reset(client: socket.socket, abruptly: bool = True) -> bool:
    if abruptly:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    else:
        client.shutdown(socket.SHUT_RDWR)
    return False


def _read_request(stream: BinaryIO, client: socket.socket) -> _Message | None:
    head = _read_head(stream)
    if head is None:
        return None
    start, raw, headers = head
    if headers.get("expect", "").lower() == "100-continue":
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        raw = re.sub(rb"(?i)expect:[^\r]*\r\n", b"", raw)
    return _Message(start, raw, headers, _read_body(stream, headers))


def _read_answer(stream: BinaryIO, is_head: bool) -> _Message | None:
    head = _read_head(stream)
    while head is not None and b" 100 " in head[0]:
        head = _read_head(stream)
    if head is None:
        return None
    start, raw, headers = head
    if is_head or b" 204 " in start or b" 304 " in start:
        return _Message(start, raw, headers, b"")
    if "content-length" in headers or "transfer-encoding" in headers:
        return _Message(start, raw, headers, _read_body(stream, headers))
    return _Message(start, raw, headers, stream.read())


def _read_head(stream: BinaryIO) -> tuple[bytes, bytes, dict[str, str]] | None:
    start = stream.readline()
    if not start:
        return None
    raw, headers = b"", {}
    while True:
        line = stream.readline()
        raw += line
        if line in (b"\r\n", b"\n", b""):
            return start, raw, headers
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()


def _read_body(stream: BinaryIO, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return stream.read(int(headers.get("content-length", 0)))
    body = b""
    while True:
        line = stream.readline()
        size = int(line.partition(b";")[0], 16)
        body += line + stream.read(size + 2)
        if size == 0:
            return body


def _error_answer(message: _Message, status: int) -> bytes:
    code = {409: "ConditionalRequestConflict", 503: "SlowDown"}.get(status, "InternalError")
    if b"/storage/v1/" in message.start:
        kind = "application/json"
        body = json.dumps({"error": {"code": status, "message": "injected"}}).encode()
    else:
        kind = "application/xml"
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()
    if message.start.startswith(b"HEAD "):
        body = b""
    head = f"HTTP/1.1 {status} Injected\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body
