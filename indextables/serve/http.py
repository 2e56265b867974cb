"""The console's web server: loopback only, one token, no writes, nothing loaded from outside.

It is Python's own HTTP server with a thread for each request. What protects it:

* It binds to a loopback address. A request must name that address and port in ``Host``, and an
  ``Origin``, if there is one, must be its own: a web page elsewhere cannot reach it by name.
* Every request needs the token that was made when the server started: in the address once (it moves
  into a cookie that scripts cannot read), or in an ``Authorization`` header.
* It answers questions about tables (``questions``, ``view``, ``elastic``) and serves one page. The
  page's policy allows only its own script and style; values reach it as JSON and stay text.
* A question that takes longer than the limit is answered with an error; at most ``MOST_AT_ONCE``
  are worked on at a time, and a body has at most ``MOST_BODY`` bytes.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from http import HTTPStatus
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from indextables.errors import ConfigError, IndexTablesError
from indextables.serve import elastic
from indextables.serve.questions import Questions
from indextables.serve.view import Asked, health, view

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_AT_ONCE = 8
MOST_BODY = 1 << 20
COOKIE = "indextables"


class Console:
    """A running server over some tables."""

    def __init__(self, questions: Questions, host: str = "127.0.0.1", port: int = 0) -> None:
        if host not in LOOPBACK:
            raise ConfigError(
                f"the console serves this machine alone, not {host}",
                hint="Use 127.0.0.1, and a tunnel to reach it from elsewhere",
            )
        self.questions = questions
        self.token = secrets.token_urlsafe(24)
        self.pool = ThreadPoolExecutor(MOST_AT_ONCE, "indextables-console")
        self.free = threading.BoundedSemaphore(MOST_AT_ONCE)
        self.server = ThreadingHTTPServer(
            (host, port), type("Handler", (_Handler,), {"console": self})
        )
        self.server.daemon_threads = True

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        """Where the console is, token included."""
        return f"http://127.0.0.1:{self.port}/?token={quote(self.token)}"

    def run(self) -> None:
        """Serve until interrupted."""
        try:
            self.server.serve_forever(poll_interval=0.2)
        finally:
            self.close()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def answered(self, ask: Callable[[], Any]) -> tuple[HTTPStatus, Any]:
        """The answer to a question, or the error to tell, within the time that is allowed."""
        if not self.free.acquire(blocking=False):
            return HTTPStatus.TOO_MANY_REQUESTS, {"error": "too many questions at once; try again"}
        work = self.pool.submit(ask)
        work.add_done_callback(lambda _: self.free.release())
        seconds = self.questions.limits.seconds
        try:
            return HTTPStatus.OK, work.result(seconds)
        except LateError:
            late = f"the answer takes more than {seconds:g} seconds; ask for less"
            return HTTPStatus.GATEWAY_TIMEOUT, {"error": late}
        except elastic.ElasticError as error:
            return HTTPStatus(error.status), error.body
        except IndexTablesError as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error), "code": error.code}

    def route(self, method: str, path: str, given: dict[str, list[str]], body: bytes) -> Any:
        """What answers a request; ``None`` where nothing does."""
        parts = [unquote(part) for part in path.split("/") if part]
        match method, parts:
            case "GET", ["api", "tables"]:
                return self.questions.tables
            case "GET", ["api", "tables", name]:
                return lambda: self.questions.describe(name)
            case "GET", ["api", "tables", name, "view"]:
                return lambda: view(self.questions, Asked.of(name, given))
            case "GET", ["api", "tables", name, "health"]:
                return lambda: health(self.questions, name)
            case _:
                return elastic.route(self.questions, method, parts, given, body)


class _Handler(BaseHTTPRequestHandler):
    """One request; ``console`` is the server that it came to."""

    console: Console
    server_version = "indextables"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:
        """Requests hold tokens and questions: nothing is written about them."""

    def do_GET(self) -> None:
        self._serve(b"")

    def do_HEAD(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if size > MOST_BODY:
            self.close_connection = True
            self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": "the body is too long"})
            return
        self._serve(self.rfile.read(size))

    def _serve(self, body: bytes) -> None:
        address = urlsplit(self.path)
        given = parse_qs(address.query, keep_blank_values=True)
        if not self._is_local():
            self._send(HTTPStatus.FORBIDDEN, {"error": "this server answers its own page only"})
        elif not self._has_token(given):
            self._send(HTTPStatus.UNAUTHORIZED, {"error": "open the address with its token"})
        elif address.path == "/" and self.command == "GET" and "html" in self._accepts():
            self._page("token" in given)
        else:
            self._answer(address.path, given, body)

    def _answer(self, path: str, given: dict[str, list[str]], body: bytes) -> None:
        method = "GET" if self.command == "HEAD" else self.command
        ask = self.console.route(method, path, given, body)
        if ask is None:
            self._send(HTTPStatus.NOT_FOUND, {"error": f"nothing is at {path}"})
        else:
            self._send(*self.console.answered(ask))

    def _accepts(self) -> str:
        return self.headers.get("Accept") or ""

    def _is_local(self) -> bool:
        own = {f"{name}:{self.console.port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        origin = self.headers.get("Origin")
        return self.headers.get("Host") in own and (
            origin is None or origin.removeprefix("http://") in own
        )

    def _has_token(self, given: dict[str, list[str]]) -> bool:
        cookie = SimpleCookie(self.headers.get("Cookie") or "").get(COOKIE)
        scheme, _, bearer = (self.headers.get("Authorization") or "").partition(" ")
        tries = [*given.get("token", ()), cookie.value if cookie else ""]
        if scheme in ("Bearer", "ApiKey"):
            tries.append(bearer)
        token = self.console.token.encode()
        return any(hmac.compare_digest(t.encode(), token) for t in tries)

    def _page(self, first: bool) -> None:
        if first:
            self.send_response(HTTPStatus.SEE_OTHER)
            cookie = f"{COOKIE}={self.console.token}; HttpOnly; SameSite=Strict; Path=/"
            self.send_header("Set-Cookie", cookie)
            self.send_header("Location", "/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        nonce = secrets.token_urlsafe(16)
        page = (files("indextables.serve") / "console.html").read_text("utf-8")
        self._bytes(HTTPStatus.OK, page.replace("NONCE", nonce).encode(), "text/html", nonce)

    def _send(self, status: HTTPStatus, answer: Any) -> None:
        data = json.dumps(answer, ensure_ascii=False, allow_nan=False, default=str)
        self._bytes(status, data.encode("utf-8", "backslashreplace"), "application/json")

    def _bytes(self, status: HTTPStatus, data: bytes, kind: str, nonce: str = "") -> None:
        self.send_response(status)
        inside = f"script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; " if nonce else ""
        policy = f"default-src 'none'; {inside}connect-src 'self'; frame-ancestors 'none'"
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(data)),
            "Content-Security-Policy": f"{policy}; base-uri 'none'; form-action 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            **elastic.HEADERS,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
