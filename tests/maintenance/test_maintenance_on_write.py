"""Merge and purge on write: when they run, that they run once, and that they never hurt."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables.errors import MaintenanceError
from indextables.maintenance import after_write

BASE = {
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.mergeOnWrite.enabled": "true",
    "spark.indextables.mergeOnWrite.async.enabled": "false",
}
ASYNC = {**BASE, "spark.indextables.mergeOnWrite.async.enabled": "true"}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    yield
    assert after_write.wait_for_merges(60_000)


def add(path: Path, first: int, options: dict[str, str], day: str = "mon") -> None:
    rows = pa.table({"id": [first, first + 1], "day": [day, day]})
    indextables.write(rows, str(path), partition_by=["day"], options=options)


def ids(path: Path) -> list[int]:
    return sorted(indextables.open(str(path)).to_arrow(columns=["id"])["id"].to_pylist())


def splits(path: Path) -> int:
    return indextables.open(str(path)).snapshot.num_files


def purges(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Notes the retentions of every purge instead of purging."""
    seen: list[tuple[int, int]] = []
    real = after_write.purge

    def note(log, *, older_than_hours, log_retention_hours, config):
        seen.append((older_than_hours, log_retention_hours))
        return real(
            log,
            older_than_hours=older_than_hours,
            log_retention_hours=log_retention_hours,
            config=config,
        )

    monkeypatch.setattr(after_write, "purge", note)
    return seen


def test_off_by_default(tmp_path: Path) -> None:
    for i in range(4):
        add(tmp_path / "t", i * 2, {})
    assert splits(tmp_path / "t") == 4


def test_a_second_split_of_a_partition_sets_off_a_merge(tmp_path: Path) -> None:
    add(tmp_path / "t", 0, BASE)
    assert splits(tmp_path / "t") == 1
    add(tmp_path / "t", 2, BASE)
    assert splits(tmp_path / "t") == 1
    assert ids(tmp_path / "t") == [0, 1, 2, 3]


def test_batches_needed_scale_with_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    options = {**BASE, "spark.indextables.mergeOnWrite.minBatchesToTrigger": "2"}
    days = ["mon", "tue", "wed", "thu"]
    for day in days:
        add(tmp_path / "t", 0, options, day)
    for day in days[:3]:
        add(tmp_path / "t", 2, options, day)
    assert splits(tmp_path / "t") == 7  # three groups, four are needed: int(12 * 0.167) * 2
    add(tmp_path / "t", 2, options, "thu")
    assert splits(tmp_path / "t") == 4


def test_merge_in_the_background_happens_once_per_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, started = threading.Event(), []
    real = after_write.merge_splits

    def slow(log, **given):
        started.append(log.table_id)
        assert go.wait(30)
        return real(log, **given)

    monkeypatch.setattr(after_write, "merge_splits", slow)
    for i in range(5):
        add(tmp_path / "a", i * 2, ASYNC)
    for i in range(3):
        add(tmp_path / "b", i * 2, ASYNC)
    assert splits(tmp_path / "a") == 5
    assert not after_write.wait_for_merges(0)
    go.set()
    assert after_write.wait_for_merges(60_000)
    assert len(started) == len(set(started)) == 2
    assert (splits(tmp_path / "a"), splits(tmp_path / "b")) == (1, 1)
    assert ids(tmp_path / "a") == list(range(10))


@pytest.mark.parametrize("options", [BASE, ASYNC], ids=["inline", "background"])
@pytest.mark.parametrize("error", [MaintenanceError("no"), OSError("disk"), ValueError("bug")])
def test_a_failing_merge_never_fails_the_write(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    options: dict[str, str],
    error: Exception,
) -> None:
    def fail(log, **given):
        raise error

    monkeypatch.setattr(after_write, "merge_splits", fail)
    with caplog.at_level(logging.WARNING, "indextables"):
        add(tmp_path / "t", 0, options)
        add(tmp_path / "t", 2, options)
        assert after_write.wait_for_merges(60_000)
    assert ids(tmp_path / "t") == [0, 1, 2, 3]
    assert "the commit stands, but merge did not succeed" in caplog.text


def test_purge_follows_a_merge_that_changed_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = purges(monkeypatch)
    options = {
        **BASE,
        "spark.indextables.purgeOnWrite.enabled": "true",
        "spark.indextables.purgeOnWrite.splitRetentionHours": "48",
        "spark.indextables.purgeOnWrite.txLogRetentionHours": "99",
    }
    add(tmp_path / "t", 0, options)
    assert seen == []
    add(tmp_path / "t", 2, options)
    assert seen == [(48, 99)]
    add(tmp_path / "t", 4, {**options, "spark.indextables.purgeOnWrite.triggerAfterMerge": "false"})
    assert seen == [(48, 99)]


def test_purge_every_third_write_of_each_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = purges(monkeypatch)
    options = {
        "spark.indextables.purgeOnWrite.enabled": "true",
        "spark.indextables.purgeOnWrite.triggerAfterWrites": "3",
    }
    counts = []
    for i in range(7):
        add(tmp_path / "a", i * 2, options)
        add(tmp_path / "b", i * 2, {})
        counts.append(len(seen))
    assert counts == [0, 0, 1, 1, 1, 2, 2]
    assert set(seen) == {(168, 720)}
    off = {**options, "spark.indextables.purgeOnWrite.enabled": "false"}
    for i in range(4):
        add(tmp_path / "c", i, off)
    assert len(seen) == 2


def test_a_retention_below_the_minimum_purges_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {
        "spark.indextables.purgeOnWrite.enabled": "true",
        "spark.indextables.purgeOnWrite.triggerAfterWrites": "1",
        "spark.indextables.purgeOnWrite.splitRetentionHours": "1",
    }
    stray = tmp_path / "t" / "stray.split"
    add(tmp_path / "t", 0, options)
    stray.write_bytes(b"x")
    os.utime(stray, (1, 1))
    with caplog.at_level(logging.WARNING, "indextables"):
        add(tmp_path / "t", 2, options)
    assert stray.exists()
    assert "shorter than the minimum" in caplog.text
    add(tmp_path / "t", 4, {**options, "spark.indextables.purgeOnWrite.splitRetentionHours": "24"})
    assert not stray.exists()
    assert ids(tmp_path / "t") == list(range(6))


SCRIPT = """
import sys, pyarrow as pa, indextables
options = {"spark.indextables.mergeOnWrite.enabled": "true"}
for i in range(3):
    indextables.write(pa.table({"id": [i]}), sys.argv[1], options=options)
"""


def test_the_process_waits_for_its_merges_at_exit(tmp_path: Path) -> None:
    place = tmp_path / "t"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(place)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ids(place) == [0, 1, 2]
    assert splits(place) < 3
    history = indextables.open(str(place)).log.history()
    assert any(entry.operation == "MERGE SPLITS" for entry in history)
