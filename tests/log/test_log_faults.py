"""A crash, a failure or a lost reply at every store call of every operation of the log.

Each scenario runs once to count its calls, then once per call and kind of fault on a fresh copy of
the same table. Afterwards a process that knows nothing must find the table openable and equal to
the old or the new version (with the hint and without it), and running the scenario again on a
healthy store must succeed, exactly once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from log_helpers import append, config, forget, memory_store, new_table, remove, reopen, split
from store_doubles import (
    CrashError,
    Fault,
    FaultKind,
    FaultyStore,
    RecordingStore,
    fault_points,
)

from indextables.errors import IndexTablesError
from indextables.log.actions import AddXRef, RemoveXRef, SkipFile, Txn
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.loader import reachable_versions
from indextables.log.read.versions import HINT_PATH, list_log
from indextables.storage.base import Store

SETTINGS: dict[str, dict[str, Any]] = {
    "avro": {"state__format": "avro"},
    "json": {"state__format": "json"},
    "parts": {"state__format": "json", "checkpoint__actionsPerPart": 4},
}

EAGER = {
    "state.retention.versions": 1,
    "state.retention.hours": -1,
    "state.gc.minManifestAgeHours": -1,
    "checkpointRetention.duration": -1,
}


@dataclass
class Scenario:
    """An operation on a table of eleven versions, and what it does to the live files."""

    name: str
    form: str
    run: Callable[[TransactionLog], object]
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    interval: int = 0


def commit_of(actions: Callable[[TransactionLog], list[Any]]) -> Callable[[TransactionLog], object]:
    """A commit whose transaction is made once, as a caller that tries again would keep it."""
    made: list[Transaction] = []

    def run(log: TransactionLog) -> object:
        if not made:
            made.append(Transaction(None, "TEST", actions=actions(log)))
        return log.commit(made[0])

    return run


def merging(log: TransactionLog) -> list[Any]:
    return [split("s1").removal(1), split("s2").removal(1), split("m")]


def scenarios(form: str) -> list[Scenario]:
    new = frozenset(["n"])
    gone = frozenset(["s1", "s2"])
    merged = frozenset(["m"])
    xref = AddXRef("_xrefsplits/abcd/x2.split", "x2", ("s1.split",), 1, 1)
    retire = RemoveXRef("_xrefsplits/abcd/x1.split", "x1", 1)
    skip = [SkipFile("s3.split", 1, "broken", "merge"), Txn("app", 1)]
    return [
        Scenario("append", form, commit_of(lambda log: [split("n")]), new),
        Scenario(
            "append and checkpoint", form, commit_of(lambda log: [split("n")]), new, interval=12
        ),
        Scenario("merge", form, commit_of(merging), merged, gone),
        Scenario("merge and checkpoint", form, commit_of(merging), merged, gone, interval=12),
        Scenario("replace cross-reference", form, commit_of(lambda log: [retire, xref])),
        Scenario("skip", form, commit_of(lambda log: list(skip))),
        Scenario("checkpoint", form, lambda log: log.checkpoint()),
        Scenario("compaction", form, lambda log: log.checkpoint(compact=True)),
        Scenario("clean-up", form, lambda log: log.cleanup(retention_ms=-1)),
    ]


def base_table(form: str) -> TransactionLog:
    """Eleven versions, checkpoints at 4 and 8, removed and re-added files, a cross-reference."""
    log = new_table(memory_store(), checkpoint__interval=4, **SETTINGS[form])
    append(log, "s0", "s1", "s2", "s3")
    append(log, "s4")
    remove(log, "s0")
    append(log, "s0")
    log.add_xref(AddXRef("_xrefsplits/abcd/x1.split", "x1", ("s1.split",), 1, 1))
    for i in range(5, 10):
        append(log, f"s{i}")
    remove(log, "s9")
    assert log.snapshot().version == 11
    return log


LIVE = frozenset(f"s{i}" for i in range(9))


def objects_of(store: Store) -> dict[str, bytes]:
    return {info.path: store.read(info.path) for info in store.list("", recursive=True)}


def store_of(objects: dict[str, bytes]) -> Store:
    fresh = memory_store()
    for path, data in objects.items():
        fresh.put(path, data)
    return fresh


def live(log: TransactionLog, version: int | None = None) -> frozenset[str]:
    paths = log.snapshot(version=version).paths.to_pylist()
    assert len(set(paths)) == len(paths)
    return frozenset(path.removesuffix(".split") for path in paths)


def opened(store: Store, scenario: Scenario) -> TransactionLog:
    cache.SHARED.invalidate()
    settings = config(checkpoint__interval=scenario.interval, **SETTINGS[scenario.form], **EAGER)
    return TransactionLog("memory://copy", store, settings)


def check_readable(store: Store, scenario: Scenario) -> frozenset[str]:
    """The table opens, equals the old or the new version, and history is intact."""
    log = opened(store, scenario)
    found = live(log)
    old, new = LIVE, LIVE - scenario.removed | scenario.added
    assert found in (old, new)
    version = log.snapshot().version
    if old != new:
        assert version == (12 if found == new else 11)
    assert version in (11, 12)
    if scenario.name == "clean-up":
        for version in reachable_versions(list_log(store)):
            opened(store, scenario).snapshot(version=version)
    return found


def check_retry(store: Store, scenario: Scenario) -> None:
    log = opened(store, scenario)
    scenario.run(log)
    log = opened(store, scenario)
    assert live(log) == LIVE - scenario.removed | scenario.added
    assert log.snapshot().version in (11, 12)
    if scenario.added:
        assert log.snapshot().version == 12


def check_thoroughly(store: Store, scenario: Scenario) -> None:
    """What the hint does not know is found without it, and life goes on."""
    without_hint = store_of(objects_of(store))
    without_hint.delete([HINT_PATH])
    log = opened(without_hint, scenario)
    assert live(log) == live(opened(store, scenario))
    append(log, "afterwards")
    assert "afterwards" in live(reopen(log))
    forget(without_hint)


KINDS = {
    "crash": (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER),
    "lost": (FaultKind.LOST_REQUEST, FaultKind.LOST_REPLY),
    "fail": (FaultKind.FAIL_BEFORE, FaultKind.FAIL_AFTER),
}
TOUCHES_CHECKPOINTS = ("append and checkpoint", "checkpoint", "clean-up")
CASES = [
    (form, number, kinds)
    for form in SETTINGS
    for number, scenario in enumerate(scenarios(form))
    for kinds in KINDS
    if (form == "avro") + (kinds != "fail") + (scenario.name in TOUCHES_CHECKPOINTS) >= 2
]


@pytest.fixture(scope="module")
def prepared() -> dict[str, dict[str, bytes]]:
    return {form: objects_of(base_table(form).store) for form in SETTINGS}


@pytest.mark.parametrize(
    ("form", "number", "kinds"),
    CASES,
    ids=[f"{form}-{scenarios(form)[number].name}-{kinds}" for form, number, kinds in CASES],
)
def test_every_call_may_go_wrong(
    prepared: dict[str, dict[str, bytes]], form: str, number: int, kinds: str
) -> None:
    recording = RecordingStore(store_of(prepared[form]))
    dry = scenarios(form)[number]
    dry.run(opened(recording, dry))
    calls = len(recording.calls)
    assert calls >= 4
    seen = set()
    for fault in fault_points(calls, KINDS[kinds]):
        scenario = scenarios(form)[number]
        store = store_of(prepared[form])
        faulty = FaultyStore(store, [fault])
        with contextlib.suppress(CrashError, IndexTablesError):
            scenario.run(opened(faulty, scenario))
        assert faulty.injected, f"{fault} was never reached"
        seen.add(check_readable(store, scenario))
        if kinds == "crash":
            check_thoroughly(store, scenario)
        check_retry(store, scenario)
        forget(store)
    if dry.added and kinds == "crash":
        assert len(seen) == 2, "both outcomes occur"


@pytest.mark.parametrize("kind", list(FaultKind))
def test_every_call_of_a_creation_may_go_wrong(kind: FaultKind) -> None:
    recording = RecordingStore(memory_store())
    new_table(recording)
    for at in range(len(recording.calls)):
        store = memory_store()
        with contextlib.suppress(CrashError, IndexTablesError):
            new_table(FaultyStore(store, [Fault(kind, at)]))
        if not TransactionLog.exists("m", store=store):
            new_table(store)
        log = TransactionLog.open("m", store=store, config=config())
        assert log.snapshot().version == 0
        append(log, "a")
        assert log.snapshot().num_files == 1
