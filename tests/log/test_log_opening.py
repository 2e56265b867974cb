"""Opening a table on an object store: how many requests, and how many after each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from log_helpers import append, config, names, new_table, reopen
from servers.counting_s3 import CountingS3

from indextables.errors import TableNotFoundError
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.loader import FirstLook, first_look
from indextables.log.read.versions import version_path
from indextables.storage.base import Store, open_store
from indextables.storage.memory import MemoryStore

TRIES = 4
PAGE = 8
"""Files on a page of the server's listings, so that a log of a few versions is a long one."""


@pytest.fixture(scope="module")
def server() -> Iterator[CountingS3]:
    with CountingS3(page=PAGE) as running:
        yield running


@pytest.fixture
def store(server: CountingS3, request: pytest.FixtureRequest) -> Store:
    server.reset(delay_s=0)
    options = {
        "spark.indextables.s3.endpoint": server.endpoint,
        "spark.indextables.aws.accessKey": "key",
        "spark.indextables.aws.secretKey": "secret",
        "spark.indextables.aws.region": "us-east-1",
        "spark.indextables.s3.pathStyleAccess": "true",
    }
    return open_store(f"s3://tables/{request.node.name}", options)


def cost(server: CountingS3, ask: Callable[[], object], *, cold: bool = True) -> tuple[int, int]:
    """(requests, depth): the least of several tries, as a hiccup makes chains look longer."""
    found = []
    for _ in range(TRIES):
        if cold:
            cache.SHARED.invalidate()
        server.reset(delay_s=0.05)
        ask()
        found.append(server.report())
        server.reset(delay_s=0)
    return min(f.requests for f in found), min(f.depth for f in found)


def made(store: Store, versions: int, **settings: object) -> TransactionLog:
    """A table with versions 0 to ``versions``."""
    log = new_table(store, checkpoint__enabled=False, **settings)
    for number in range(versions):
        append(log, f"s{number}")
    return log


def opening(log: TransactionLog) -> Callable[[], object]:
    def ask() -> object:
        opened = TransactionLog.open(log.path, store=log.store, config=log.config, check=False)
        return opened.snapshot()

    return ask


def test_a_table_of_few_versions(server: CountingS3, store: Store) -> None:
    assert cost(server, opening(made(store, 1))) == (3, 2)


def test_a_json_checkpoint(server: CountingS3, store: Store) -> None:
    log = made(store, 3, state__format="json")
    log.checkpoint()
    assert cost(server, opening(log)) == (3, 2)


def test_an_avro_state(server: CountingS3, store: Store) -> None:
    log = made(store, 3)
    log.checkpoint()
    assert cost(server, opening(log)) == (4, 3)


def test_versions_after_a_checkpoint_come_with_it(server: CountingS3, store: Store) -> None:
    log = made(store, 3, state__format="json")
    log.checkpoint()
    append(log, "one")
    append(log, "two")
    assert cost(server, opening(log)) == (5, 2)
    assert names(reopen(log)) == ["one", "s0", "s1", "s2", "two"]


def test_a_log_longer_than_a_page_starts_from_its_hint(server: CountingS3, store: Store) -> None:
    store.page = PAGE  # type: ignore[attr-defined]
    log = made(store, 3 * PAGE, state__format="json")
    log.checkpoint()
    append(log, "last")
    assert cost(server, opening(log)) == (6, 4)
    cache.SHARED.invalidate()
    assert len(names(reopen(log))) == 3 * PAGE + 1


def test_a_known_table_costs_one_round_trip(server: CountingS3, store: Store) -> None:
    log = made(store, 3)
    log.snapshot()
    assert cost(server, opening(log), cold=False) == (2, 1)
    append(log, "new")
    assert "new" in names(reopen(log))


def test_no_table_is_told_by_the_first_look(server: CountingS3, store: Store) -> None:
    def ask() -> None:
        opened = TransactionLog.open("x", store=store, config=config(), check=False)
        with pytest.raises(TableNotFoundError, match="_transaction_log"):
            opened.snapshot()

    assert cost(server, ask) == (2, 1)


def test_a_table_made_anew_is_not_the_one_before() -> None:
    """The listing and version 0 are asked for at once, so they may tell of two tables."""
    log = made(store=MemoryStore("memory://opening-one"), versions=2)
    other = made(store=MemoryStore("memory://opening-two"), versions=1)
    snapshot, look = log.snapshot(), first_look(log.store)
    assert look.is_of(snapshot)
    mixed = FirstLook(other.store.read(version_path(0)), look.listing)
    assert not mixed.is_of(snapshot)
    assert not FirstLook(b"not a version", look.listing).is_of(snapshot)


def test_what_two_tables_mixed_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    log = made(store=MemoryStore("memory://opening-three"), versions=2)
    other = made(store=MemoryStore("memory://opening-four"), versions=1)
    log.checkpoint()
    cache.SHARED.invalidate()
    strange = other.store.read(version_path(0))
    monkeypatch.setattr("indextables.log.read.loader.read_first", lambda store: strange)
    log.snapshot()
    assert cache.SHARED.latest.guess(log.store.identity) is None
