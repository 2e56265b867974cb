"""The console's server: who may ask, what comes back, and what a browser makes of it."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import indextables
from indextables.errors import ConfigError
from indextables.serve.http import COOKIE, Console
from indextables.serve.questions import Limits, Questions


def request(
    console: Console, path: str, *, method: str = "GET", body: bytes = b"", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    link = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    try:
        link.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = link.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        link.close()


def get(console: Console, path: str, **given: Any) -> Any:
    address = f"{path}?{urlencode({**given, 'token': console.token}, doseq=True)}"
    status, _, data = request(console, address)
    return json.loads(data) if status == 200 else (status, json.loads(data)["error"])


# -- who may ask ----------------------------------------------------------------------------------


def test_nobody_without_the_token(console: Console) -> None:
    for path in ("/", "/api/tables", "/events/_search", "/nowhere"):
        assert request(console, path)[0] == 401
        assert request(console, f"{path}?token=wrong")[0] == 401
    assert request(console, "/api/tables", Authorization=f"Bearer {console.token}")[0] == 200
    assert request(console, "/api/tables", Cookie=f"{COOKIE}={console.token}")[0] == 200


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_no_page_from_elsewhere(console: Console, headers: dict[str, str]) -> None:
    status, _, _ = request(console, f"/api/tables?token={console.token}", **headers)
    assert status == 403


def test_the_token_leaves_the_address(console: Console) -> None:
    status, headers, _ = request(console, f"/?token={console.token}", Accept="text/html")
    assert (status, headers["location"]) == (303, "/")
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Strict" in headers["set-cookie"]
    status, headers, page = request(
        console, "/", Accept="text/html", Cookie=f"{COOKIE}={console.token}"
    )
    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert b"NONCE" not in page
    assert b"http://" not in page.replace(b"http://www.w3.org", b"")
    assert b"https://" not in page


def test_only_this_machine_is_served(tables: list[Path]) -> None:
    with pytest.raises(ConfigError, match="this machine alone"):
        Console(Questions.over([str(tables[0])]), host="0.0.0.0")


def test_nothing_can_be_written_and_long_bodies_are_refused(console: Console) -> None:
    token = f"token={console.token}"
    for method in ("PUT", "DELETE", "PATCH"):
        assert request(console, f"/events?{token}", method=method)[0] == 501
    assert request(console, f"/events/_doc?{token}", method="POST", body=b"{}")[0] == 404
    status, _, _ = request(
        console, f"/events/_search?{token}", method="POST", Content_Length=str(1 << 30)
    )
    assert status == 413


# -- what comes back ------------------------------------------------------------------------------


def test_a_view_adds_up(console: Console, tables: list[Path]) -> None:
    table = indextables.open(tables[0])
    found = get(console, "/api/tables/events/view", q="timeout", where="status = 500", limit=5)
    both = "message TEXTSEARCH 'timeout' AND status = 500"
    assert found["count"] == table.count(both)
    assert len(found["rows"]) == 5
    assert all("timeout" in row["message"] for row in found["rows"])
    assert sum(bucket["count"] for bucket in found["histogram"]) == found["count"]
    (hosts,) = [facet for facet in found["facets"] if facet["column"] == "host"]
    assert sum(value["count"] for value in hosts["values"]) == found["count"]
    assert found["plan"]["splits"] == 3
    one = get(
        console, "/api/tables/events/view", q="timeout", where="status = 500", facet="host=web-1"
    )
    assert one["count"] == table.count(f"{both} AND host = 'web-1'")


def test_a_span_of_time(console: Console, tables: list[Path]) -> None:
    first = get(console, "/api/tables/events/view")["histogram"][0]
    found = get(console, "/api/tables/events/view", start=first["start"], end=first["end"])
    assert found["count"] == first["count"]
    assert found["rows"][0]["ts"] > found["rows"][-1]["ts"]
    day = get(console, "/api/tables/events/view", start="2024-05-02", end="2024-05-03")
    table = indextables.open(tables[0])
    assert day["count"] == table.count("ts >= '2024-05-02' AND ts < '2024-05-03'")


def test_empty_tables_and_no_matches(console: Console) -> None:
    found = get(console, "/api/tables/empty/view")
    assert (found["count"], found["rows"], found["histogram"]) == (0, [], [])
    none = get(console, "/api/tables/events/view", q="nowhere")
    assert (none["count"], none["rows"], none["histogram"]) == (0, [], [])
    (finding,) = get(console, "/api/tables/empty/health")["findings"]
    assert finding["severity"] == "ok"


def test_health(console: Console) -> None:
    found = get(console, "/api/tables/events/health")
    assert found["rows"] == 600
    assert {column["name"]: column["indexed"] for column in found["columns"]}["message"] == "text"
    assert found["history"][0]["version"] == 3


@pytest.mark.parametrize(
    ("path", "given", "says"),
    [
        ("/api/tables/other", {}, "no table 'other'"),
        ("/api/tables/..%2Fevents", {}, "is served here"),
        ("/api/tables/events/view", {"q": "AND ("}, "ITX-"),
        ("/api/tables/events/view", {"where": "nope = 1"}, "nope"),
        ("/api/tables/events/view", {"time": "host"}, "no date or timestamp"),
        ("/api/tables/events/view", {"limit": "many"}, "not a number"),
        ("/api/tables/events/view", {"facet": "host"}, "COLUMN=VALUE"),
        ("/api/tables/events/view", {"start": "tomorrowish"}, "timestamp"),
    ],
)
def test_mistakes_are_told(console: Console, path: str, given: dict[str, str], says: str) -> None:
    status, told = get(console, path, **given)
    assert status == 400
    assert says in told


def test_a_slow_answer_is_given_up(tables: list[Path]) -> None:
    slow = Console(Questions.over([str(tables[0])], limits=Limits(seconds=0.05)))
    gate = threading.Event()
    status, told = slow.answered(lambda: gate.wait(10))
    gate.set()
    assert (status, "takes more than" in told["error"]) == (504, True)
    slow.server.server_close()


# -- in a browser ---------------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_shows_rows_and_runs_nothing_from_them(console: Console, tmp_path: Path) -> None:
    """The page as Chromium builds it: rows are there, markup inside values stays text."""
    shown = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path}", "--virtual-time-budget=8000",
            "--dump-dom", console.url,
        ],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    assert "600 of 600 rows, 50 shown" in shown
    assert 'class="row"' in shown
    assert "<title>indextables console</title>" in shown
    assert "pwned</script>" not in shown.replace("&lt;", "")
    assert "web-1" in shown
