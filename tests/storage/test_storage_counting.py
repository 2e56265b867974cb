"""The counting S3 server counts right; the conformance tests say that it stores right."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from random import Random

import pytest
from servers.counting_s3 import CountingS3, Remote, Served, depth_of


def served(start: float, end: float) -> Served:
    return Served("GET", "b/k", "", 200, 1, 0, start, end)


class Client:
    """Plain requests over one connection."""

    def __init__(self, server: CountingS3) -> None:
        self.connection = HTTPConnection("127.0.0.1", server.port, timeout=20)

    def __call__(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        spelled = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, spelled)
        answer = self.connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())


@pytest.fixture
def server() -> Iterator[CountingS3]:
    with CountingS3(page=3) as running:
        yield running


@pytest.fixture
def ask(server: CountingS3) -> Iterator[Client]:
    client = Client(server)
    yield client
    client.connection.close()


def test_depth_is_the_longest_chain() -> None:
    assert depth_of([]) == 0
    assert depth_of([served(0, 1)] * 50) == 1
    assert depth_of([served(0, 1), served(1, 2), served(2, 3)]) == 3
    two_lanes = [served(0, 1), served(0, 5), served(1.5, 2), served(2.5, 3), served(5, 6)]
    assert depth_of(two_lanes) == 4
    assert depth_of([served(0, 10), served(1, 2), served(3, 4)]) == 2


def test_depth_equals_its_definition(rng: Random) -> None:
    for _ in range(200):
        made = []
        for _ in range(rng.randrange(1, 30)):
            start = rng.randrange(40)
            made.append(served(start, start + rng.randrange(1, 12)))
        depths: dict[int, int] = {}
        order = sorted(range(len(made)), key=lambda i: made[i].start)
        for i in order:
            before = [depths[j] for j in depths if made[j].end <= made[i].start]
            depths[i] = 1 + max(before, default=0)
        assert depth_of(made) == max(depths.values())


def test_requests_one_after_another_are_a_chain(server: CountingS3, ask: Client) -> None:
    ask("PUT", "/b/k", b"0123456789")
    server.reset()
    for _ in range(5):
        assert ask("GET", "/b/k")[1] == b"0123456789"
    ask("HEAD", "/b/k")
    ask("GET", "/b?list-type=2&prefix=k")
    report = server.report()
    assert (report.requests, report.depth) == (7, 7)
    assert report.kinds == {"GET": 5, "HEAD": 1, "LIST": 1}
    listing = next(r for r in report.served if r.kind == "LIST")
    assert report.bytes_sent == 50 + listing.sent


def test_requests_side_by_side_wait_side_by_side(server: CountingS3) -> None:
    server.reset(delay_s=0.2)
    ready = threading.Barrier(24)

    def one() -> None:
        client = Client(server)
        ready.wait()
        client("GET", "/b/absent")
        client.connection.close()

    threads = [threading.Thread(target=one) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = server.report()
    assert report.requests == 24
    assert report.depth < 24
    starts, ends = [r.start for r in report.served], [r.end for r in report.served]
    assert sorted(ends)[0] > sorted(starts)[1], "a second request waits while the first one does"
    assert min(r.end - r.start for r in report.served) >= 0.2


def test_a_body_takes_the_time_of_its_bytes(ask: Client, server: CountingS3) -> None:
    ask("PUT", "/b/k", b"x" * 1000)
    server.reset()
    server.bytes_per_s = 10_000
    ask("GET", "/b/k")
    (one,) = server.report().served
    assert one.end - one.start >= 0.1


def test_ranges(ask: Client) -> None:
    ask("PUT", "/b/k", b"0123456789")
    assert ask("GET", "/b/k", Range="bytes=2-4")[:2] == (206, b"234")
    assert ask("GET", "/b/k", Range="bytes=7-")[:2] == (206, b"789")
    assert ask("GET", "/b/k", Range="bytes=-3")[:2] == (206, b"789")
    assert ask("GET", "/b/k", Range="bytes=8-99")[2]["Content-Range"] == "bytes 8-9/10"
    assert ask("GET", "/b/k", Range="bytes=10-11")[0] == 416
    assert ask("GET", "/b/absent")[0] == 404


def test_conditions(ask: Client) -> None:
    status, _, headers = ask("PUT", "/b/k", b"one", If_None_Match="*")
    assert status == 200
    assert ask("PUT", "/b/k", b"two", If_None_Match="*")[0] == 412
    assert ask("PUT", "/b/k", b"two", If_Match='"wrong"')[0] == 412
    assert ask("GET", "/b/k")[1] == b"one"
    assert ask("PUT", "/b/k", b"two", If_Match=headers["ETag"])[0] == 200
    assert ask("PUT", "/b/k", b"three", If_Match=headers["ETag"])[0] == 412
    assert ask("PUT", "/b/new", b"x", If_Match=headers["ETag"])[0] == 412
    assert ask("GET", "/b/k")[1] == b"two"


def test_listings_come_in_pages_with_folders(ask: Client) -> None:
    for key in ("a/1", "a/2", "a/b/3", "a/b/4", "a/c/5", "a/z", "ab", "b"):
        ask("PUT", f"/bucket/{key}")
    found: list[str] = []
    token = ""
    pages = 0
    while not pages or token:
        pages += 1
        more = f"&continuation-token={token}" if token else ""
        _, body, _ = ask("GET", f"/bucket?list-type=2&prefix=a/&delimiter=/{more}")
        text = body.decode()
        found += re.findall(r"<(?:Contents><Key|CommonPrefixes><Prefix)>([^<]*)<", text)
        match = re.search(r"<NextContinuationToken>([^<]*)<", text)
        token = match[1] if match else ""
    assert (pages, found) == (2, ["a/1", "a/2", "a/b/", "a/c/", "a/z"])
    flat = ask("GET", "/bucket?list-type=2&prefix=a/&start-after=a/b/3")[1].decode()
    assert re.findall("<Key>([^<]*)<", flat) == ["a/b/4", "a/c/5", "a/z"]
    assert b"<KeyCount>0</KeyCount>" in ask("GET", "/bucket?list-type=2&prefix=nothing/")[1]


def test_multipart_copies_and_deletes(ask: Client, server: CountingS3) -> None:
    ticket = re.search(rb"<UploadId>(\w+)<", ask("POST", "/b/big?uploads")[1])
    assert ticket is not None
    upload = f"uploadId={ticket[1].decode()}"
    ask("PUT", f"/b/big?partNumber=2&{upload}", b"world")
    ask("PUT", f"/b/big?partNumber=1&{upload}", b"hello ")
    assert ask("GET", "/b/big")[0] == 404
    assert ask("POST", f"/b/big?{upload}", b"<CompleteMultipartUpload/>")[0] == 200
    assert ask("GET", "/b/big")[1] == b"hello world"
    assert ask("PUT", f"/b/big?partNumber=3&{upload}", b"late")[0] == 404
    ask("PUT", "/b/copy", x_amz_copy_source="/b/big")
    assert ask("GET", "/b/copy")[1] == b"hello world"
    ask("DELETE", "/b/copy")
    listed = b"<Delete><Object><Key>big</Key></Object><Object><Key>gone</Key></Object></Delete>"
    assert ask("POST", "/b?delete", listed)[0] == 200
    assert ask("GET", "/b/big")[0] == ask("GET", "/b/copy")[0] == 404
    assert server.report().kinds["MULTIPART"] == 5


def test_the_control_is_not_counted(ask: Client, server: CountingS3) -> None:
    ask("GET", "/b/absent")
    remote = Remote(server.endpoint)
    assert remote.report() == server.report()
    assert remote.report().requests == 1
    remote.reset(delay_s=0.05)
    assert remote.report().requests == 0
    assert server.delay_s == 0.05


def test_it_stops_with_clients_connected() -> None:
    with CountingS3() as server:
        client = Client(server)
        client("GET", "/b/absent")
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), timeout=1)
    client.connection.close()
