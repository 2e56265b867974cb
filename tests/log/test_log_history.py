"""History and time travel, by version and by moment."""

from __future__ import annotations

import datetime

import pytest
from log_helpers import append, names, new_table, remove, reopen

from indextables.errors import ConfigError, IndexTablesError, VersionNotFoundError
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.history import version_at
from indextables.log.read.moments import to_millis
from indextables.log.read.versions import version_path


def table(count: int = 7, interval: int = 3) -> TransactionLog:
    log = new_table(checkpoint__interval=interval)
    for i in range(count):
        append(log, f"s{i}")
    return log


def test_history_is_newest_first() -> None:
    log = table(3)
    remove(log, "s0")
    log.commit(
        Transaction(
            None, "NOTE", parameters={"k": [1]}, metrics={"m": 2}, actions=[log.snapshot().metadata]
        )
    )
    entries = reopen(log).history()
    assert [e.version for e in entries] == [5, 4, 3, 2, 1, 0]
    assert [e.operation for e in entries] == [
        "NOTE",
        "DELETE",
        "WRITE",
        "WRITE",
        "WRITE",
        "CREATE TABLE",
    ]
    assert [(e.num_added, e.num_removed) for e in entries[1:3]] == [(0, 1), (1, 0)]
    assert entries[0].parameters == {"k": [1]}
    assert entries[0].metrics["m"] == 2
    assert len({e.commit_id for e in entries}) == 6
    times = [e.timestamp for e in entries]
    assert times == sorted(times, reverse=True)
    assert [e.version for e in log.history(limit=2)] == [5, 4]
    assert log.history(limit=0) == []


def test_history_of_versions_that_are_only_states() -> None:
    log = table(3, interval=1)
    log.store.delete([version_path(v) for v in (1, 2, 3)])
    entries = reopen(log).history()
    assert [e.version for e in entries] == [3, 2, 1, 0]
    assert entries[0].operation is None
    assert entries[0].num_added is None
    assert entries[0].timestamp == log.snapshot().timestamp_ms


@pytest.mark.parametrize("interval", [1, 3, 100])
def test_every_version_reads_as_it_was(interval: int) -> None:
    log = table(7, interval)
    for cold in (True, False):
        for version in range(8):
            if cold:
                log = reopen(log)
            snapshot = log.snapshot(version=version)
            assert snapshot.version == version
            assert names(log, version) == [f"s{i}" for i in range(version)]


def test_versions_that_are_not_there() -> None:
    log = table(7)
    for version in (8, 99, -1):
        with pytest.raises(VersionNotFoundError, match="0 to 7"):
            log.snapshot(version=version)
    log.store.delete([version_path(v) for v in (1, 2)])
    again = reopen(log)
    assert names(again, 3) == ["s0", "s1", "s2"]
    with pytest.raises(VersionNotFoundError):
        again.snapshot(version=2)
    assert again.snapshot(version=0).num_files == 0


def test_moments() -> None:
    log = table(7)
    times = {e.version: e.timestamp for e in log.history()}
    for version in range(8):
        again = reopen(log)
        assert again.snapshot(timestamp=times[version]).version == version
        if version < 7:
            assert again.snapshot(timestamp=times[version + 1] - 1).version == version
    assert log.snapshot(timestamp=times[7] + 10**9).version == 7
    with pytest.raises(VersionNotFoundError, match="Earliest"):
        log.snapshot(timestamp=times[0] - 1)
    with pytest.raises(IndexTablesError, match="not both"):
        log.snapshot(version=1, timestamp=times[1])


def test_moments_after_a_clean_up_use_checkpoint_times() -> None:
    log = table(7)
    times = {e.version: e.timestamp for e in log.history()}
    log.store.delete([version_path(v) for v in range(1, 7)])
    again = reopen(log)
    assert again.snapshot(timestamp=times[6]).version == 6
    assert again.snapshot(timestamp=times[0]).version == 0
    for gone in (1, 2, 4, 5):
        with pytest.raises(VersionNotFoundError, match="no longer in the log"):
            again.snapshot(timestamp=times[gone])


def test_spellings_of_moments() -> None:
    utc = datetime.UTC
    moment = datetime.datetime(2026, 1, 31, 12, 0, 0, 5000, tzinfo=utc)
    assert to_millis(moment) == 1769860800005
    assert to_millis(moment.replace(tzinfo=None)) == 1769860800005
    assert to_millis("2026-01-31T12:00:00.005") == 1769860800005
    assert to_millis("2026-01-31 13:00:00.005+01:00") == 1769860800005
    assert to_millis(17) == 17
    with pytest.raises(ConfigError, match="ISO"):
        to_millis("yesterday")


def test_halving_finds_what_a_scan_finds() -> None:
    times = [10, 20, 20, 35, 50]
    versions = [0, 1, 2, 5, 9]
    by_version = dict(zip(versions, times, strict=True))
    unknown = {*range(21, 35), *range(36, 50)}
    for moment in range(10, 60):
        expected = max(v for v in versions if by_version[v] <= moment)
        if moment in unknown:  # versions 3 and 4, or 6 to 8, were the newest then
            with pytest.raises(VersionNotFoundError, match="no longer in the log"):
                version_at(versions, by_version.__getitem__, moment, "p")
        else:
            assert version_at(versions, by_version.__getitem__, moment, "p") == expected
    with pytest.raises(VersionNotFoundError):
        version_at([], by_version.__getitem__, 5, "p")
    with pytest.raises(VersionNotFoundError):
        version_at(versions, by_version.__getitem__, -(10**18), "p")
