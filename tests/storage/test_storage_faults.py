"""Client libraries behind a proxy that breaks requests: nothing lost, nothing doubled.

The stress runs every writer through its own store object and a proxy that resets connections,
lies about outcomes and tears requests, on writes and on read-backs alike.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from servers.fault_proxy import Fault, FaultProxy, Kind, first, randomly
from servers.launch import Backend
from store_doubles import UnconditionalStore

from indextables.errors import (
    AmbiguousWriteError,
    CommitConflictError,
    CommitFailedError,
    ObjectExistsError,
    StorageError,
    TransientStorageError,
    UnsupportedStoreError,
)
from indextables.storage import Store, commit_slot, open_store

pytestmark = pytest.mark.server

SERVICES = ["gcs_server", "s3_ministack", "s3_seaweed", "azure_azurite"]
FSSPEC = {"spark.indextables.storage.client": "fsspec"}
QUICK = {
    "spark.indextables.storage.timeoutSeconds": "1",
    "spark.indextables.storage.attempts": "8",
}
WRITE_METHODS = ("PUT", "POST")


@pytest.fixture(params=[*SERVICES, "s3_ministack, fsspec", "azure_azurite, fsspec"])
def backend(request: pytest.FixtureRequest) -> Backend:
    service, _, client = request.param.partition(", ")
    found: Backend = request.getfixturevalue(service)
    return Backend(found.uri, found.options | FSSPEC) if client else found


@pytest.fixture
def proxy(backend: Backend) -> Iterator[FaultProxy]:
    port = int(backend.endpoint.rpartition(":")[2].partition("/")[0])
    with FaultProxy(port) as running:
        yield running


@pytest.fixture
def store(backend: Backend, proxy: FaultProxy) -> Store:
    behind = backend.through(proxy.port)
    return open_store(behind.fresh(), behind.options | QUICK)


def entry(commit_id: str) -> bytes:
    return json.dumps({"commitId": commit_id}).encode()


def commit(store: Store, version: int, commit_id: str) -> None:
    def is_mine(found: bytes) -> bool:
        return bool(json.loads(found)["commitId"] == commit_id)

    commit_slot(store, f"_log/{version:020d}.json", entry(commit_id), is_mine=is_mine)


def append(store: Store, commit_id: str, version: int = 0) -> int:
    while True:
        try:
            commit(store, version, commit_id)
            return version
        except CommitConflictError:
            version += 1


LOST_REPLIES = {
    "reset_before": Fault(Kind.RESET_BEFORE),
    "reset_after": Fault(Kind.RESET_AFTER),
    "lie_500": Fault(Kind.LIE, 500),
    "lie_503": Fault(Kind.LIE, 503),
    "status_500": Fault(Kind.STATUS, 500),
    "status_503": Fault(Kind.STATUS, 503),
    "status_409": Fault(Kind.STATUS, 409),
    "hang": Fault(Kind.HANG, seconds=1.3),
    "torn": Fault(Kind.TORN_REQUEST),
}


@pytest.mark.parametrize("fault", LOST_REPLIES.values(), ids=LOST_REPLIES)
def test_a_broken_create_is_ambiguous_and_the_commit_lands_once(
    store: Store, proxy: FaultProxy, fault: Fault
) -> None:
    store.exists("warm")
    proxy.rule = first(fault, WRITE_METHODS)
    try:
        store.put_if_absent("slot", b"x")
    except (AmbiguousWriteError, ObjectExistsError):
        pass
    except StorageError as error:
        pytest.fail(f"a lost reply was reported as definite: {error}")
    proxy.rule = first(fault, WRITE_METHODS)
    commit(store, 0, "mine")
    assert store.read("_log/00000000000000000000.json") == entry("mine")
    with pytest.raises(CommitConflictError):
        commit(store, 0, "other")
    assert proxy.injected


@pytest.mark.parametrize("kind", [Kind.RESET_AFTER, Kind.TRUNCATED_BODY, Kind.STATUS])
def test_broken_reads_are_repeated(store: Store, proxy: FaultProxy, kind: Kind) -> None:
    data = random.Random(1).randbytes(200_000)
    for number in range(4):
        store.put(f"data/{number}", data)
    calls = {
        "read": lambda: store.read("data/0") == data,
        "range": lambda: store.read_range("data/0", 1000, 90_000) == data[1000:90_000],
        "ranges": lambda: (
            store.read_ranges("data/0", [(0, 10), (199_000, 200_000)])
            == [data[:10], data[199_000:]]
        ),
        "many": lambda: store.read_many([f"data/{n}" for n in range(4)]) == [data] * 4,
        "list": lambda: len(list(store.list("data"))) == 4,
        "stat": lambda: store.stat("data/3").size == 200_000,
    }
    for name, call in calls.items():
        proxy.rule = first(Fault(kind, 503), ("GET", "HEAD"))
        assert call(), name


def test_a_store_that_stays_broken_gives_up(backend: Backend, proxy: FaultProxy) -> None:
    behind = backend.through(proxy.port)
    patience = {"spark.indextables.storage.attempts": "3"}
    store = open_store(behind.fresh(), behind.options | patience)
    proxy.rule = lambda request: Fault(Kind.STATUS, 503)
    with pytest.raises(TransientStorageError, match="for now"):
        store.read("x")
    with pytest.raises(TransientStorageError):
        store.put("x", b"")
    assert proxy.requests == 6


def test_a_refused_create_is_definite(backend: Backend, proxy: FaultProxy) -> None:
    behind = backend.through(proxy.port)
    store = open_store(behind.fresh(), behind.options | QUICK)
    proxy.rule = lambda request: Fault(Kind.STATUS, 403)
    with pytest.raises(CommitFailedError):
        commit(store, 0, "mine")


@pytest.mark.parametrize("service", ["s3_ministack", "azure_azurite", "gcs_server"])
def test_a_missing_bucket_is_definite(service: str, request: pytest.FixtureRequest) -> None:
    backend = request.getfixturevalue(service)
    scheme = backend.uri.partition("://")[0]
    store = open_store(f"{scheme}://no-such-bucket/t", backend.options | QUICK)
    with pytest.raises(CommitFailedError):
        commit(store, 0, "mine")


STRESS = {
    "gcs_server": (4, 10, 0.2),
    "s3_ministack": (6, 10, 0.2),
    "s3_seaweed": (3, 6, 0.15),
    "azure_azurite": (3, 6, 0.15),
}


def stress(backend: Backend, proxy: FaultProxy, writers: int, commits: int) -> dict[str, int]:
    """Every writer's acknowledged commits and their versions; any other outcome fails."""
    behind = backend.through(proxy.port)
    uri, options = behind.fresh(), behind.options | QUICK
    landed: dict[str, int] = {}
    failures: list[BaseException] = []

    def writer(index: int) -> None:
        try:
            store, version = open_store(uri, options), 0
            for number in range(commits):
                version = append(store, f"{index}-{number}", version)
                landed[f"{index}-{number}"] = version
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=writer, args=(index,)) for index in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    direct = open_store(uri, backend.options)
    entries = [json.loads(direct.read(info.path))["commitId"] for info in direct.list("_log")]
    assert {commit_id: version for version, commit_id in enumerate(entries)} == landed
    assert sorted(landed.values()) == list(range(writers * commits))
    return landed


def test_stress_of_commits_loses_and_doubles_nothing(
    backend: Backend, proxy: FaultProxy, seed: int, request: pytest.FixtureRequest
) -> None:
    writers, commits, rate = STRESS[request.node.callspec.params["backend"].partition(",")[0]]
    proxy.rule = randomly(seed, rate)
    landed = stress(backend, proxy, writers, commits)
    assert len(landed) == writers * commits
    assert proxy.injected, "no seed spares as many requests as these commits need"


@pytest.mark.slow
def test_long_stress_of_commits_loses_and_doubles_nothing(
    backend: Backend, proxy: FaultProxy, seed: int, request: pytest.FixtureRequest
) -> None:
    service = request.node.callspec.params["backend"]
    writers, commits = (6, 20) if service in ("gcs_server", "s3_ministack") else (4, 12)
    proxy.rule = randomly(seed, 0.25)
    landed = stress(backend, proxy, writers, commits)
    print(f"\n{service}: {len(landed)} commits, {len(proxy.injected)} faults, none lost or doubled")


def commit_in_a_process(uri: str, options: dict[str, Any], index: int, count: int) -> list[int]:
    store, versions = open_store(uri, options), [0]
    for number in range(count):
        versions.append(append(store, f"{index}-{number}-{uuid.uuid4()}", versions[-1]))
    return versions[1:]


@pytest.mark.parametrize("place", ["local", "s3_ministack", "s3_seaweed"])
def test_processes_race_without_gaps_or_doubles(
    place: str, request: pytest.FixtureRequest, tmp_path: object
) -> None:
    backend = Backend(str(tmp_path), {})
    if place != "local":
        backend = request.getfixturevalue(place)
    uri = backend.fresh()
    writers, count = (4, 25) if place == "local" else (3, 5)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["indextables.storage.s3", "s3fs"])
    with context.Pool(writers) as pool:
        work = [(uri, backend.options, index, count) for index in range(writers)]
        taken = sorted(v for versions in pool.starmap(commit_in_a_process, work) for v in versions)
    assert taken == list(range(writers * count))
    store = open_store(uri, backend.options)
    assert len(list(store.list("_log"))) == writers * count


def test_the_probe_refuses_a_server_that_ignores_the_condition(gcs_careless: Backend) -> None:
    store = open_store(gcs_careless.fresh(), gcs_careless.options)
    with pytest.raises(UnsupportedStoreError, match="does not honour conditional create"):
        store.probe_conditional_create()
    assert list(store.list(recursive=True)) == []


def test_the_probe_survives_lost_replies(store: Store, proxy: FaultProxy) -> None:
    store.exists("warm")
    proxy.rule = first(Fault(Kind.RESET_AFTER), WRITE_METHODS)
    store.probe_conditional_create()


def test_the_probe_refuses_any_unconditional_store() -> None:
    with pytest.raises(UnsupportedStoreError):
        UnconditionalStore(open_store("memory://careless")).probe_conditional_create()
