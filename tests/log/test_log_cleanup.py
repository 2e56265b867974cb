"""Clean-up: four gates, version 0, dry run, retention of checkpoints, orphan parts."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from log_helpers import append, config, names, new_table, reopen
from store_doubles import RecordingStore, WrappedStore

from indextables.config import Config
from indextables.errors import TransientStorageError
from indextables.log.log import TransactionLog
from indextables.log.read.versions import (
    LOG_DIR,
    checkpoint_path,
    list_log,
    part_name,
    version_path,
)
from indextables.log.retention.cleanup import plan_cleanup
from indextables.log.retention.rules import Retention
from indextables.storage.base import ObjectInfo

DAY_MS = 86_400_000
NOW = 1_000 * DAY_MS


class AgedStore(WrappedStore):
    """Tells the ages a test wants: days by file name; others are new."""

    def __init__(self, inner: Any, days: dict[str, float]) -> None:
        super().__init__(inner)
        self.days = days

    def list(
        self, prefix: str = "", start_after: str | None = None, recursive: bool = False
    ) -> Any:
        for info in super().list(prefix, start_after, recursive):
            days = self.days.get(info.path, 0)
            yield ObjectInfo(info.path, info.size, int(NOW - days * DAY_MS))


def aged_table(form: str = "avro", **values: Any) -> tuple[TransactionLog, AgedStore]:
    """20 versions, checkpoints at 8 and 16; version v is ``40 - v`` days old."""
    log = new_table(checkpoint__interval=8, state__format=form, **values)
    for i in range(20):
        append(log, f"s{i}")
    days = {version_path(v): 40.0 - v for v in range(21)}
    days |= {checkpoint_path(8): 32, checkpoint_path(16): 24}
    store = AgedStore(log.store, days)
    return TransactionLog(log.path, store, log.config), store


def plan(log: TransactionLog, days: float = 30) -> Any:
    limits = replace(Retention.of(Config(), NOW, int(days * DAY_MS)), checkpoint_ms=2 * 3_600_000)
    return plan_cleanup(log.store, log.config, list_log(log.store), log.snapshot().version, limits)


def test_old_versions_below_the_anchor_go() -> None:
    log, _ = aged_table()
    assert plan(log, 30).anchor == 8
    assert plan(log, 30).versions == list(range(1, 8))
    assert plan(log, 21).versions == list(range(1, 16))
    assert plan(log, 33).versions == []


def test_young_versions_stay_although_a_checkpoint_has_them() -> None:
    log, store = aged_table()
    store.days = {version_path(v): 40.0 for v in range(3)}
    assert plan(log).versions == []
    store.days = {version_path(v): 40.0 for v in range(9)}
    assert plan(log).versions == list(range(1, 8))


def test_without_a_checkpoint_nothing_goes() -> None:
    log = new_table(checkpoint__enabled=False)
    for i in range(5):
        append(log, f"s{i}")
    store = AgedStore(log.store, {version_path(v): 99.0 for v in range(9)})
    aged = TransactionLog(log.path, store, log.config)
    assert plan(aged).versions == []
    assert plan(aged).anchor is None


def test_a_checkpoint_that_cannot_be_read_anchors_nothing() -> None:
    log, store = aged_table("json")
    store.put(checkpoint_path(16), b"nonsense")
    assert plan(log, 1).anchor == 8
    store.put(checkpoint_path(8), b"nonsense")
    assert plan(log, 1).versions == []


def test_version_0_and_the_newest_version_always_stay() -> None:
    log, store = aged_table()
    store.days = {version_path(v): 99.0 for v in range(21)}
    log.checkpoint()
    assert plan(log, 1).anchor == 20
    assert plan(log, 1).versions == list(range(1, 20))


def test_unknown_ages_stay() -> None:
    log, store = aged_table()
    store.days = {version_path(v): 1000.0 for v in range(21)}
    assert plan(log, 1).versions == []


@pytest.mark.parametrize("form", ["avro", "json"])
def test_the_table_is_the_same_after_a_clean_up(form: str) -> None:
    log, store = aged_table(form)
    before = {v: names(log, v) for v in range(8, 21)}
    report = plan(log)
    report.dry_run = True
    from indextables.log.retention.cleanup import execute

    execute(log.store, log.config, report)
    assert store.exists(version_path(1))
    report.dry_run = False
    execute(log.store, log.config, report)
    assert report.num_deleted == 7
    assert not store.exists(version_path(7))
    assert store.exists(version_path(0))
    again = reopen(log)
    assert {v: names(again, v) for v in range(8, 21)} == before
    append(again, "more")
    assert again.snapshot().version == 21


def test_old_json_checkpoints_go_but_not_the_anchor_or_the_newest() -> None:
    log = new_table(checkpoint__interval=4, state__format="json")
    for i in range(20):
        append(log, f"s{i}")
    days = {version_path(v): 40.0 - v for v in range(21)}
    days |= {checkpoint_path(v): 10.0 for v in (4, 8, 12, 16, 20)}
    aged = TransactionLog(log.path, AgedStore(log.store, days), log.config)
    report = plan(aged)
    assert report.anchor == 8
    assert report.checkpoints == [4, 12, 16]


def test_orphan_parts_go_when_they_are_old() -> None:
    log = new_table(version=3, state__format="json", checkpoint__actionsPerPart=2)
    append(log, "a", "b", "c")
    log.checkpoint()
    append(log, "d")
    orphan = f"{LOG_DIR}/{part_name(2, 'deadbeef', 1)}"
    unlisted = f"{LOG_DIR}/{part_name(1, 'cafe', 1)}"
    log.store.put(orphan, b"x")
    log.store.put(unlisted, b"x")
    parts = [p.info.path for p in list_log(log.store).parts]
    store = AgedStore(log.store, dict.fromkeys(parts, 1.0))
    aged = TransactionLog(log.path, store, log.config)
    assert sorted(plan(aged).parts) == sorted([orphan, unlisted])
    store.days = {orphan: 1.0}
    assert plan(aged).parts == [orphan]


def test_cleanup_of_the_log_runs_by_its_settings() -> None:
    log = new_table(checkpoint__interval=4, logRetention__duration=-1)
    for i in range(9):
        append(log, f"s{i}")
    assert sorted(list_log(log.store).versions) == [0, 8, 9]
    assert names(reopen(log)) == [f"s{i}" for i in range(9)]


def test_dry_run_setting_and_argument() -> None:
    log = new_table(checkpoint__enabled=False, cleanup__dryRun=True)
    for i in range(4):
        append(log, f"s{i}")
    log.checkpoint()
    report = log.cleanup(retention_ms=-1)
    assert report.dry_run
    assert report.versions == [1, 2, 3]
    assert len(list_log(log.store).versions) == 5
    assert not log.cleanup(retention_ms=-1, dry_run=False).dry_run
    assert sorted(list_log(log.store).versions) == [0, 4]


class Undeletable(WrappedStore):
    def delete(self, paths: Any) -> None:
        if version_path(2) in paths:
            raise TransientStorageError("no", path=paths[0])
        super().delete(paths)


def test_failures_are_reported_or_raised() -> None:
    log = new_table(checkpoint__enabled=False)
    for i in range(4):
        append(log, f"s{i}")
    log.checkpoint()
    stubborn = TransactionLog(log.path, Undeletable(log.store), log.config)
    report = stubborn.cleanup(retention_ms=-1)
    assert report.failed == [version_path(2)]
    assert report.versions == [1]
    strict = TransactionLog(log.path, Undeletable(log.store), config(cleanup__failurePolicy="fail"))
    with pytest.raises(TransientStorageError):
        strict.cleanup(retention_ms=-1)
    assert names(reopen(log)) == ["s0", "s1", "s2", "s3"]
    assert log.cleanup(retention_ms=-1).versions == [2, 3]


def test_a_version_that_comes_back_below_the_checkpoint_is_ignored() -> None:
    """A delayed write may recreate a deleted version file."""
    log = new_table(checkpoint__interval=4)
    for i in range(6):
        append(log, f"s{i}")
    zombie = log.store.read(version_path(2))
    log.store.delete([version_path(v) for v in (1, 2, 3)])
    log.store.put(version_path(2), zombie)
    log.store.put(version_path(3), b"nonsense")
    again = reopen(log)
    assert names(again) == [f"s{i}" for i in range(6)]
    assert append(again, "x").version == 7


EAGER = {"state.retention.versions": 1, "state.retention.hours": 0}


def test_states_expire_but_never_one_that_versions_are_read_from() -> None:
    log = new_table(checkpoint__interval=2)
    for i in range(9):
        append(log, f"s{i}")
    time.sleep(0.002)
    eager = TransactionLog(log.path, log.store, config(**EAGER))
    assert eager.cleanup(dry_run=True).states == [2, 4, 6]
    log.store.delete([version_path(v) for v in (1, 2, 3, 4)])
    assert eager.cleanup().states == [2, 6]
    assert names(reopen(log), 5) == [f"s{i}" for i in range(5)]
    assert names(reopen(log)) == [f"s{i}" for i in range(9)]


def test_manifests_go_with_the_last_state_that_needs_them() -> None:
    log = new_table(checkpoint__enabled=False, state__gc__minManifestAgeHours=0, **EAGER)
    append(log, "a")
    log.checkpoint()
    append(log, "b")
    log.checkpoint(compact=True)
    time.sleep(0.002)
    report = log.cleanup()
    assert report.states == [1]
    assert len(report.manifests) == 1
    assert names(reopen(log)) == ["a", "b"]


def test_automatic_clean_up_looks_at_one_state_only() -> None:
    log = new_table(checkpoint__interval=2)
    for i in range(12):
        append(log, f"s{i}")
    store = RecordingStore(log.store)
    writer = TransactionLog(log.path, store, log.config)
    append(writer, "x")
    append(writer, "y")
    assert sum(c.op == "list" and "state-v" in c.path for c in store.calls) == 1
