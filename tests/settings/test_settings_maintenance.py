"""Settings of merges and purges act: splits, commits, files and errors show it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from settings_world import age, opened, settings, write

from indextables.errors import MaintenanceError, StorageError
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.versions import list_log
from indextables.maintenance import after_write
from indextables.maintenance.purging import purge
from indextables.storage.base import open_store
from indextables.storage.wrapped import WrappedStore


@pytest.fixture(autouse=True)
def no_cached_tables() -> Iterator[None]:
    yield
    assert after_write.wait_for_merges(60_000)
    cache.SHARED.invalidate()


def made(path: Path, splits: int = 4, rows: int = 2) -> Path:
    for i in range(splits):
        write({"id": list(range(i * rows, (i + 1) * rows))}, path)
    return path


def log_of(path: Path, **values: Any) -> TransactionLog:
    return TransactionLog(str(path), open_store(str(path)), settings(**values))


def splits(path: Path) -> int:
    cache.SHARED.invalidate()
    return opened(path).snapshot.num_files


# -- deletion vectors ------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "kept"), [(0, False), (0.3, False), (0.5, True)])
def test_deletion_vector_max_share(tmp_path: Path, share: float, kept: bool) -> None:
    path = made(tmp_path / "t", splits=1, rows=10)
    (before,) = opened(path).snapshot.files()
    opened(path, deletionVector__maxShare=share).delete("id < 4")
    cache.SHARED.invalidate()
    (after,) = opened(path).snapshot.files()
    assert (after.path == before.path, after.num_deleted) == (kept, 4 if kept else 0)
    assert opened(path).count() == 6


@pytest.mark.parametrize(("most", "files"), [(0, 1), (1000, 0)])
def test_deletion_vector_max_inline_bytes(tmp_path: Path, most: int, files: int) -> None:
    path = made(tmp_path / "t", splits=3, rows=10)
    opened(path, deletionVector__maxInlineBytes=most).delete("id IN (3, 14, 25)")
    assert len(list(path.glob("deletion_vector_*.bin"))) == files


# -- merge ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, 1),
        ({"merge__maxSourceSplitsPerMerge": 2, "merge__maxPasses": 1}, 2),
        ({"merge__maxSourceSplitsPerMerge": 2, "merge__maxPasses": 2}, 1),
        ({"merge__skipSplitThreshold": 0}, 4),
    ],
    ids=["default", "merge.maxSourceSplitsPerMerge", "merge.maxPasses", "merge.skipSplitThreshold"],
)
def test_merge(tmp_path: Path, given: dict[str, Any], left: int) -> None:
    path = made(tmp_path / "t")
    opened(path, **given).merge()
    assert splits(path) == left
    assert opened(path).count() == 8


@pytest.mark.parametrize(("size", "commits"), [(1, 2), (2, 1)])
def test_merge_batch_size(tmp_path: Path, size: int, commits: int) -> None:
    """``merge.batchSize`` groups go into one commit."""
    path = made(tmp_path / "t")
    given = {"merge__maxSourceSplitsPerMerge": 2, "merge__maxPasses": 1}
    opened(path, merge__batchSize=size, **given).merge()
    history = opened(path).history()
    assert sum(entry.operation == "MERGE SPLITS" for entry in history) == commits


@pytest.mark.parametrize("after", [True, False])
def test_state_compaction_after_merge(tmp_path: Path, after: bool) -> None:
    """``state.compaction.afterMerge``: the merge's version has a state of its own."""
    path = made(tmp_path / "t")
    opened(path, state__compaction__afterMerge=after).merge()
    log = log_of(path)
    assert (log.snapshot().version in list_log(log.store).states) is after


def test_the_result_of_a_merge_claims_no_memory(tmp_path: Path) -> None:
    """What has no effect is not shown as if it had."""
    path = made(tmp_path / "t")
    result = opened(path, merge__heapSize="2G").merge()
    assert result.heap_size_bytes is None


def broken(path: Path) -> None:
    """One of the splits cannot be read."""
    next(path.glob("*.split")).write_bytes(b"x" * 4000)


def test_skipped_files(tmp_path: Path) -> None:
    """``skippedFiles.trackingEnabled`` and ``skippedFiles.cooldownDuration``."""
    for tracked in (True, False):
        path = made(tmp_path / str(tracked))
        broken(path)
        result = opened(path, skippedFiles__trackingEnabled=tracked, merge__maxPasses=1).merge()
        assert "could not read" in result.metrics.message
        assert bool(opened(path).snapshot.skips) is tracked
    path = tmp_path / "True"
    again = opened(path).merge()
    assert (again.metrics.status, splits(path)) == ("success", 2), "the broken one is left alone"
    path = made(tmp_path / "hot")
    broken(path)
    hours = {"skippedFiles__cooldownDuration": 0}
    for _ in range(2):
        result = opened(path, merge__maxPasses=1, **hours).merge()
        assert "could not read" in result.metrics.message, "tried again at once"


# -- merge on write ------------------------------------------------------------------------------

ON = {
    "mergeOnWrite__enabled": True,
    "mergeOnWrite__async__enabled": False,
    "mergeOnWrite__batchCpuFraction": 0,
}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, 1),
        ({"mergeOnWrite__enabled": False}, 2),
        ({"mergeOnWrite__minBatchesToTrigger": 2}, 2),
        ({"mergeOnWrite__batchCpuFraction": 64}, 2),
    ],
    ids=[
        "on",
        "mergeOnWrite.enabled",
        "mergeOnWrite.minBatchesToTrigger",
        "mergeOnWrite.batchCpuFraction",
    ],
)
def test_merge_on_write(tmp_path: Path, given: dict[str, Any], left: int) -> None:
    path = made(tmp_path / "t", 1)
    write({"id": [9]}, path, **{**ON, **given})
    assert splits(path) == left


def test_merge_on_write_target_size(tmp_path: Path) -> None:
    """``mergeOnWrite.targetSize``: splits that are large beside it are left alone."""
    path = made(tmp_path / "t", 1, rows=400_000)
    small = {"mergeOnWrite__targetSize": 1 << 20}
    assert opened(path).snapshot.num_bytes > 0.45 * (1 << 20)
    write({"id": [9]}, path, **ON, **small)
    assert splits(path) == 2
    write({"id": [9]}, path, **ON, mergeOnWrite__targetSize="1G")
    assert splits(path) == 1


@pytest.mark.parametrize(("batches", "commits"), [(1, 2), (2, 1)])
def test_merge_on_write_max_concurrent_batches(tmp_path: Path, batches: int, commits: int) -> None:
    """``mergeOnWrite.maxConcurrentBatches``: so many groups run at once and are one commit."""
    path = made(tmp_path / "t", 3)
    given = {"merge__maxSourceSplitsPerMerge": 2, "merge__maxPasses": 1}
    write({"id": [9]}, path, **ON, **given, mergeOnWrite__maxConcurrentBatches=batches)
    history = opened(path).history()
    assert sum(entry.operation == "MERGE SPLITS" for entry in history) == commits


def test_merge_on_write_async_and_shutdown_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``mergeOnWrite.async.enabled`` and ``mergeOnWrite.shutdownTimeoutMs``."""
    gate = threading.Event()
    real = after_write.merge_splits

    def held(*given: Any, **named: Any) -> Any:
        gate.wait()
        return real(*given, **named)

    monkeypatch.setattr(after_write, "merge_splits", held)
    path = made(tmp_path / "t", 1)
    later = {"mergeOnWrite__async__enabled": True, "mergeOnWrite__shutdownTimeoutMs": 1}
    write({"id": [9]}, path, **{**ON, **later})
    assert splits(path) == 2, "the write did not wait for its merge"
    assert not after_write.wait_for_merges(), "an exit would not wait either"
    gate.set()
    assert after_write.wait_for_merges(60_000)
    assert splits(path) == 1


# -- purge ---------------------------------------------------------------------------------------


def left_over(path: Path, count: int = 3) -> Path:
    """A table that merged its splits 100 hours ago."""
    made(path, count)
    opened(path).merge()
    age(path, 100)
    return path


def purged(path: Path, **values: Any) -> int:
    """How many splits a purge deletes, counting ages from the files alone."""
    cache.SHARED.invalidate()
    before = len(list(path.glob("*.split")))
    log = log_of(path, **values)
    purge(log, now_ms=10**13, config=log.config)
    return before - len(list(path.glob("*.split")))


@pytest.mark.parametrize(
    ("given", "deleted"),
    [
        ({"purge__txLogRetentionHours": 1}, 3),
        ({"purge__txLogRetentionHours": 1, "purge__maxFilesToDelete": 2}, 2),
        ({"purge__txLogRetentionHours": 1000}, 0),
        ({"purge__txLogRetentionHours": 1, "purge__defaultRetentionHours": 10_000_000}, 0),
    ],
    ids=[
        "all",
        "purge.maxFilesToDelete",
        "purge.txLogRetentionHours",
        "purge.defaultRetentionHours",
    ],
)
def test_purge(tmp_path: Path, given: dict[str, Any], deleted: int) -> None:
    path = left_over(tmp_path / "t")
    assert purged(path, state__retention__hours=1, state__retention__versions=1, **given) == deleted
    assert opened(path).count() == 6


def test_purge_min_retention_hours_and_check(tmp_path: Path) -> None:
    """``purge.minRetentionHours`` unless ``purge.retentionCheckEnabled`` is false."""
    table = opened(made(tmp_path / "t", 1), purge__minRetentionHours=5)
    with pytest.raises(MaintenanceError, match="minimum of 5"):
        table.purge(older_than_hours=4)
    table.purge(older_than_hours=5)
    opened(tmp_path / "t", purge__retentionCheckEnabled=False).purge(older_than_hours=0)


class Stubborn(WrappedStore):
    """Refuses to delete splits so many times."""

    def __init__(self, inner: Any, times: int) -> None:
        super().__init__(inner)
        self.left = times

    def delete(self, paths: Any) -> None:
        if self.left and any(p.endswith(".split") for p in paths):
            self.left -= 1
            raise StorageError("not now", path=paths[0])
        super().delete(paths)


@pytest.mark.parametrize(("tries", "status"), [(1, "FAILED"), (2, "SUCCESS")])
def test_purge_delete_retries(tmp_path: Path, tries: int, status: str) -> None:
    path = left_over(tmp_path / "t")
    given = {"purge__txLogRetentionHours": 1, "state__retention__versions": 1}
    config = settings(purge__deleteRetries=tries, state__retention__hours=1, **given)
    log = TransactionLog(str(path), Stubborn(open_store(str(path)), 1), config)
    assert purge(log, now_ms=10**13).metrics.status == status


def test_purge_parallelism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from indextables.maintenance import purging

    seen: list[int] = []
    real = purging.ThreadPoolExecutor

    def noted(workers: int) -> Any:
        seen.append(workers)
        return real(workers)

    monkeypatch.setattr(purging, "ThreadPoolExecutor", noted)
    path = left_over(tmp_path / "t")
    purged(path, purge__parallelism=3)
    assert seen == [3]


PURGES = {
    "purgeOnWrite__enabled": True,
    "purgeOnWrite__triggerAfterWrites": 1,
    "purgeOnWrite__splitRetentionHours": 50,
    "purgeOnWrite__txLogRetentionHours": 50,
    "state__retention__hours": 1,
    "state__retention__versions": 1,
    "checkpoint__interval": 1,
}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, 2),
        ({"purgeOnWrite__enabled": False}, 5),
        ({"purgeOnWrite__triggerAfterWrites": 0}, 5),
        ({"purgeOnWrite__triggerAfterWrites": 2}, 5),
        ({"purgeOnWrite__splitRetentionHours": 200}, 5),
        ({"purgeOnWrite__txLogRetentionHours": 200}, 5),
    ],
    ids=[
        "on",
        "purgeOnWrite.enabled",
        "purgeOnWrite.triggerAfterWrites",
        "every second",
        "purgeOnWrite.splitRetentionHours",
        "purgeOnWrite.txLogRetentionHours",
    ],
)
def test_purge_on_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], left: int
) -> None:
    path = left_over(tmp_path / "t")
    far_future(monkeypatch)
    write({"id": [9]}, path, **{**PURGES, **given})
    assert len(list(path.glob("*.split"))) == left


def far_future(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removals in the log are as old as their files."""
    import time

    from indextables.maintenance import purging

    monkeypatch.setattr(purging, "clock_ms", lambda: int(time.time() * 1000) + 100 * 3_600_000)


@pytest.mark.parametrize("after", [True, False])
def test_purge_on_write_trigger_after_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """``purgeOnWrite.triggerAfterMerge``."""
    seen: list[str] = []
    monkeypatch.setattr(after_write, "_purge", lambda *given: seen.append("purge"))
    path = made(tmp_path / "t", 1)
    given = {**PURGES, "purgeOnWrite__triggerAfterWrites": 0}
    write({"id": [9]}, path, **ON, **given, purgeOnWrite__triggerAfterMerge=after)
    assert seen == (["purge"] if after else [])
