"""The small parts: coalescing, retries, classification, and the test doubles themselves."""

from __future__ import annotations

import math
import random
import re
import uuid
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_doubles import (
    Call,
    CrashError,
    Fault,
    FaultKind,
    FaultyStore,
    RandomFaults,
    RecordingStore,
    fault_points,
)

from indextables.errors import (
    AmbiguousWriteError,
    CorruptFileError,
    StorageError,
    TransientStorageError,
)
from indextables.storage import Store, open_store, retry
from indextables.storage.classify import Verdict, classify
from indextables.storage.memory import clear_memory
from indextables.storage.ranges import check_length, check_range, coalesce, cut
from indextables.storage.retry import Backoff, RetryPolicy, tries, with_retries

FILE = bytes(range(256)) * 8

some_ranges = st.lists(
    st.tuples(st.integers(0, 2048), st.integers(0, 2048)).map(lambda p: (min(p), max(p))),
    max_size=20,
)


@given(ranges=some_ranges, gap=st.integers(0, 300), limit=st.integers(1, 4000))
def test_coalesced_requests_give_exactly_the_asked_ranges(
    ranges: list[tuple[int, int]], gap: int, limit: int
) -> None:
    requests = coalesce(ranges, gap, limit)
    blobs = [FILE[request.start : request.end] for request in requests]
    assert cut(ranges, requests, blobs) == [FILE[a:b] for a, b in ranges]
    longest = max((b - a for a, b in ranges), default=0)
    for request in requests:
        assert request.start < request.end
        assert request.end - request.start <= max(limit, longest)
    for earlier, later in pairwise(requests):
        assert earlier.start <= later.start


def test_near_ranges_are_joined_and_far_ones_are_not() -> None:
    ranges = [(500, 600), (0, 10), (20, 30), (31, 40)]
    assert [(r.start, r.end) for r in coalesce(ranges, gap=10)] == [(0, 40), (500, 600)]
    assert [(r.start, r.end) for r in coalesce(ranges, gap=0)] == [
        (0, 10),
        (20, 30),
        (31, 40),
        (500, 600),
    ]
    assert len(coalesce(ranges, gap=1000, limit=50)) == 2


def test_ranges_are_checked() -> None:
    check_range("p", 0, 0)
    for start, end in ((-1, 5), (5, 4)):
        with pytest.raises(CorruptFileError, match="impossible byte range"):
            check_range("p", start, end)
    assert check_length("p", 5, 8, b"abc") == b"abc"
    with pytest.raises(CorruptFileError, match="2 of 3") as raised:
        check_length("p", 5, 8, b"ab")
    assert raised.value.offset == 7


def test_transient_failures_are_retried_with_jitter(rng: random.Random) -> None:
    pauses: list[float] = []
    tries = [0]

    def third_time() -> str:
        tries[0] += 1
        if tries[0] < 3:
            raise TransientStorageError("busy")
        return "done"

    policy = RetryPolicy(attempts=5, backoff=Backoff(base_s=0.1, cap_s=1.0))
    assert with_retries(third_time, policy, sleep=pauses.append, rng=rng) == "done"
    assert len(pauses) == 2
    assert 0 <= pauses[0] <= 0.1
    assert 0 <= pauses[1] <= 0.2


def test_retries_end_and_definite_errors_are_not_retried() -> None:
    tries = [0]

    def never() -> None:
        tries[0] += 1
        raise TransientStorageError("busy")

    with pytest.raises(TransientStorageError):
        with_retries(never, RetryPolicy(attempts=4), sleep=lambda _: None)
    assert tries[0] == 4
    tries[0] = 0

    def forbidden() -> None:
        tries[0] += 1
        raise StorageError("forbidden")

    with pytest.raises(StorageError):
        with_retries(forbidden, RetryPolicy(attempts=4), sleep=lambda _: None)
    assert tries[0] == 1


def test_pauses_grow_to_their_cap(rng: random.Random) -> None:
    ceilings = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    for pause, ceiling in zip(Backoff().pauses(rng), ceilings, strict=False):
        assert 0 <= pause <= ceiling


def test_no_pause_is_longer_than_its_cap(rng: random.Random) -> None:
    for pause, _ in zip(Backoff(base_s=9.0, cap_s=0.5).pauses(rng), range(20), strict=False):
        assert 0 <= pause <= 0.5


def test_tries_end_with_their_budget() -> None:
    """The pause is cut to the time that is left, and no try begins after it."""
    now = [0.0]
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    class Longest(random.Random):
        def uniform(self, a: float, b: float) -> float:
            return b

    policy = RetryPolicy(attempts=math.inf, backoff=Backoff(1.0, 4.0), budget_s=9.0)
    given = {"clock": lambda: now[0], "sleep": sleep, "rng": Longest()}
    assert list(tries(policy, **given)) == [1, 2, 3, 4, 5]  # type: ignore[arg-type]
    assert pauses == [1.0, 2.0, 4.0, 2.0]


def test_there_is_one_loop_that_tries_again() -> None:
    """Nobody sleeps between tries of their own: the loop is handed the way to sleep."""
    package = Path(retry.__file__).parents[1]
    sleeping = re.compile(r"\b(?:time|asyncio)\.sleep\(|from time import .*sleep")
    found = [p.name for p in package.rglob("*.py") if sleeping.search(p.read_text())]
    assert found == []


def client_error(code: str, status: int) -> Exception:
    error = Exception(code)
    error.response = {  # type: ignore[attr-defined]
        "Error": {"Code": code},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return error


def wrapped(inner: BaseException) -> OSError:
    outer = OSError(22, "wrapped")
    outer.__cause__ = inner
    return outer


class ContentLengthError(Exception):
    """Stands for the HTTP parser's complaint about a broken answer; its code is no answer."""

    code = 400
    status = 400


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (FileNotFoundError(), Verdict.MISSING),
        (FileExistsError(), Verdict.EXISTS),
        (wrapped(client_error("PreconditionFailed", 412)), Verdict.EXISTS),
        (wrapped(client_error("Whatever", 412)), Verdict.EXISTS),
        (wrapped(client_error("ConditionalRequestConflict", 409)), Verdict.TRANSIENT),
        (wrapped(client_error("SlowDown", 503)), Verdict.TRANSIENT),
        (client_error("InternalError", 500), Verdict.TRANSIENT),
        (client_error("RequestTimeout", 400), Verdict.TRANSIENT),
        (client_error("InvalidRange", 416), Verdict.OUT_OF_RANGE),
        (wrapped(client_error("AccessDenied", 403)), Verdict.REFUSED),
        (client_error("InvalidAccessKeyId", 401), Verdict.REFUSED),
        (client_error("NoSuchBucket", 404), Verdict.MISSING),
        (client_error("MalformedXML", 400), Verdict.REFUSED),
        (PermissionError(13, "denied"), Verdict.REFUSED),
        (OSError("Forbidden: http://x"), Verdict.REFUSED),
        (TimeoutError(), Verdict.TRANSIENT),
        (ConnectionResetError(104, "reset"), Verdict.TRANSIENT),
        (OSError(121, "remote I/O"), Verdict.TRANSIENT),
        (wrapped(ContentLengthError("received 50 of 101")), Verdict.TRANSIENT),
        (ValueError("who knows"), Verdict.UNKNOWN),
    ],
    ids=lambda value: value.name if isinstance(value, Verdict) else repr(value)[:40],
)
def test_client_errors_are_classified(error: BaseException, verdict: Verdict) -> None:
    assert classify(error) is verdict


def test_the_parser_of_the_http_client_is_not_the_service() -> None:
    http_exceptions = pytest.importorskip("aiohttp.http_exceptions")
    broken = http_exceptions.ContentLengthError("Not enough data")
    assert classify(wrapped(broken)) is Verdict.TRANSIENT


@pytest.fixture
def inner() -> Iterator[Store]:
    name = f"parts-{uuid.uuid4().hex}"
    yield open_store(f"memory://{name}")
    clear_memory(name)


def every_operation(store: Store) -> None:
    store.put("a", b"12345")
    store.put_if_absent("b", b"1")
    store.read("a")
    store.read_range("a", 0, 2)
    store.read_ranges("a", [(0, 1)])
    store.read_many(["a", "b"])
    store.stat("a")
    store.exists("a")
    list(store.list())
    store.list_dirs()
    store.delete(["a", "b"])


def test_recording_lists_every_call_and_accounts_latency(inner: Store) -> None:
    recording = RecordingStore(inner, latency_s=0.02)
    every_operation(recording)
    assert recording.calls == [
        Call("put", "a", 5),
        Call("put_if_absent", "b", 1),
        Call("read", "a"),
        Call("read_range", "a", (0, 2)),
        Call("read_ranges", "a", ((0, 1),)),
        Call("read_many", "a", ("a", "b")),
        Call("stat", "a"),
        Call("stat", "a"),
        Call("list", "", (None, False)),
        Call("list_dirs", ""),
        Call("delete", "a", ("a", "b")),
    ]
    assert recording.elapsed_s == pytest.approx(0.22)
    assert recording.count("stat") == 2
    recording.clear()
    assert (recording.calls, recording.elapsed_s) == ([], 0.0)


def test_recording_can_hide_local_files(tmp_path: object) -> None:
    store = open_store(str(tmp_path))
    assert RecordingStore(store).local_path("a") == store.local_path("a")
    assert RecordingStore(store, hide_local_files=True).local_path("a") is None


@pytest.mark.parametrize("kind", list(FaultKind))
def test_each_fault_strikes_where_it_says(inner: Store, kind: FaultKind) -> None:
    for at in range(3):
        inner.delete(["0", "1", "2"])
        faulty = FaultyStore(inner, [Fault(kind, at)])
        for earlier in range(at):
            faulty.put(str(earlier), b"x")
        with pytest.raises((StorageError, CrashError)) as raised:
            faulty.put(str(at), b"x")
        applied = kind in (FaultKind.FAIL_AFTER, FaultKind.LOST_REPLY, FaultKind.CRASH_AFTER)
        assert inner.exists(str(at)) == applied
        crashed = kind in (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER)
        assert isinstance(raised.value, CrashError) == crashed
        unknown = kind in (FaultKind.LOST_REPLY, FaultKind.LOST_REQUEST)
        assert isinstance(raised.value, AmbiguousWriteError) == unknown
        assert faulty.injected == [(kind, Call("put", str(at), 1))]


def test_faults_count_only_the_operations_they_name(inner: Store) -> None:
    faulty = FaultyStore(inner, [Fault(FaultKind.FAIL_BEFORE, 1, frozenset(("read",)))])
    faulty.put("a", b"1")
    faulty.read("a")
    faulty.put("b", b"1")
    with pytest.raises(TransientStorageError):
        faulty.read("a")
    assert faulty.read("a") == b"1"


def test_random_faults_repeat_from_their_seed(seed: int) -> None:
    first = RandomFaults(seed, 0.5)
    second = RandomFaults(seed, 0.5)
    drawn = [first.draw("read") for _ in range(200)]
    assert drawn == [second.draw("read") for _ in range(200)]
    assert 50 < sum(kind is not None for kind in drawn) < 150


def test_fault_points_cover_every_call_and_kind() -> None:
    assert len(list(fault_points(7))) == 7 * len(FaultKind)
