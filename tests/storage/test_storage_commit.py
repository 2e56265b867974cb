"""The commit protocol against scripted faults: every outcome, and nothing lost or doubled."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest
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
    CommitConflictError,
    CommitFailedError,
    CommitStateUnknownError,
    StorageError,
)
from indextables.storage import Store, commit_slot, open_store
from indextables.storage.memory import clear_memory

SLOT = "_transaction_log/00000000000000000001.json"


@pytest.fixture
def store() -> Iterator[Store]:
    name = f"commit-{uuid.uuid4().hex}"
    yield open_store(f"memory://{name}")
    clear_memory(name)


class FakeTime:
    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def commit(store: Store, data: bytes = b"mine", **changes: object) -> FakeTime:
    time = FakeTime()
    arguments: dict[str, object] = {
        "is_mine": lambda found: found == data,
        "clock": time.clock,
        "sleep": time.sleep,
        "rng": random.Random(1),
    }
    commit_slot(store, SLOT, data, **(arguments | changes))  # type: ignore[arg-type]
    return time


def test_a_free_slot_costs_one_call(store: Store) -> None:
    recording = RecordingStore(store)
    commit(recording)
    assert recording.calls == [Call("put_if_absent", SLOT, 4)]
    assert store.read(SLOT) == b"mine"


def test_a_taken_slot_is_a_conflict_without_waiting(store: Store) -> None:
    store.put(SLOT, b"other")
    recording = RecordingStore(store)
    with pytest.raises(CommitConflictError) as raised:
        commit(recording)
    assert recording.ops() == ["put_if_absent", "read"]
    assert raised.value.path == SLOT
    assert store.read(SLOT) == b"other"


def test_exists_with_our_own_bytes_is_success(store: Store) -> None:
    store.put(SLOT, b"mine")
    commit(store)


def test_a_lost_reply_is_found_by_reading_back(store: Store) -> None:
    faulty = FaultyStore(store, [Fault(FaultKind.LOST_REPLY, 0)])
    recording = RecordingStore(faulty)
    commit(recording)
    assert recording.ops() == ["put_if_absent", "read"]


def test_a_lost_request_resends_to_the_same_slot(store: Store) -> None:
    faulty = FaultyStore(store, [Fault(FaultKind.LOST_REQUEST, 0)])
    recording = RecordingStore(faulty)
    time = commit(recording)
    assert recording.calls == [
        Call("put_if_absent", SLOT, 4),
        Call("read", SLOT),
        Call("put_if_absent", SLOT, 4),
    ]
    assert len(time.pauses) == 1
    assert store.read(SLOT) == b"mine"


def test_a_definite_refusal_fails_at_once(store: Store) -> None:
    faulty = FaultyStore(store, [Fault(FaultKind.FAIL_BEFORE, 0)])
    with pytest.raises(CommitFailedError, match="injected: refused"):
        commit(faulty)
    assert not store.exists(SLOT)


def test_a_refusal_after_an_ambiguous_try_is_not_definite(store: Store) -> None:
    class RefusesLater(FaultyStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            self.calls_made += 1
            if self.calls_made == 1:
                raise AmbiguousWriteError("timeout", path=path)
            raise StorageError("forbidden", path=path)

    with pytest.raises(CommitStateUnknownError) as raised:
        commit(RefusesLater(store), deadline_s=5.0)
    assert isinstance(raised.value.__cause__, StorageError)


def test_a_store_that_never_answers_is_unknown_at_the_deadline(store: Store) -> None:
    ambiguous = RandomFaults(1, 1.0, [FaultKind.LOST_REQUEST])
    time = FakeTime()
    with pytest.raises(CommitStateUnknownError):
        commit(FaultyStore(store, ambiguous), deadline_s=7.0, clock=time.clock, sleep=time.sleep)
    assert time.now == pytest.approx(7.0)
    assert max(time.pauses) <= 2.0


def test_a_failing_read_back_is_asked_again(store: Store) -> None:
    plan = [Fault(FaultKind.LOST_REPLY, 0), *(Fault(FaultKind.FAIL_BEFORE, n) for n in (1, 2, 3))]
    recording = RecordingStore(FaultyStore(store, plan))
    commit(recording)
    assert recording.ops() == ["put_if_absent"] + ["read"] * 4


def test_bytes_that_cannot_be_judged_are_unknown(store: Store) -> None:
    store.put(SLOT, b"\x00garbage")

    def judge(found: bytes) -> bool:
        raise ValueError("not json")

    with pytest.raises(CommitStateUnknownError):
        commit(store, is_mine=judge)


@pytest.mark.parametrize("fault", list(fault_points(2)), ids=lambda f: f"{f.at}-{f.kind.name}")
def test_every_fault_leaves_old_or_new_and_a_retry_settles_it(store: Store, fault: Fault) -> None:
    faulty = FaultyStore(store, [fault])
    try:
        commit(faulty)
        reported = "committed"
    except (CommitFailedError, CommitStateUnknownError, CrashError) as error:
        reported = type(error).__name__
    landed = store.exists(SLOT)
    if reported == "committed":
        assert landed
    if reported == "CommitFailedError":
        assert not landed
    commit(store)
    assert store.read(SLOT) == b"mine"


def append_to_log(store: Store, commit_id: bytes, rng: random.Random) -> int:
    """A writer's whole loop: take the first free version, move on only after a real conflict."""
    version = 0
    while True:
        path = f"_log/{version:020d}.json"
        try:
            commit_slot(
                store,
                path,
                commit_id,
                is_mine=lambda found: found == commit_id,
                sleep=lambda _: None,
                rng=rng,
            )
            return version
        except CommitConflictError:
            version += 1


def in_threads(count: int, work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_many_writers_on_a_faulty_store_lose_and_double_nothing(store: Store, seed: int) -> None:
    kinds = [FaultKind.LOST_REQUEST, FaultKind.LOST_REPLY]
    versions: dict[bytes, int] = {}

    def writer(index: int) -> None:
        writes = RandomFaults(seed + index, 0.3, kinds, frozenset(("put_if_absent", "read")))
        faulty = FaultyStore(store, writes)
        for number in range(20):
            commit_id = f"{index}-{number}".encode()
            versions[commit_id] = append_to_log(faulty, commit_id, random.Random(seed))

    in_threads(6, writer)
    entries = [store.read(info.path) for info in store.list("_log")]
    assert sorted(entries) == sorted(versions)
    assert sorted(versions.values()) == list(range(120))
    assert all(entries[version] == commit_id for commit_id, version in versions.items())
