"""Changes of rows against other writers, crashes, lost replies: nothing lost, nothing revived."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from store_doubles import CrashError, Fault, FaultKind, FaultyStore, RecordingStore

import indextables
from indextables.config import Config
from indextables.errors import CommitConflictError, IndexTablesError
from indextables.log.commit.rowlevel import Narrowing, Taken
from indextables.log.commit.transaction import ReadSet, Transaction
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.maintenance import delete_rows, merge_splits, restore_to_version, update_rows
from indextables.maintenance.delete import truncate_table
from indextables.maintenance.rowchange import RowChange
from indextables.storage.base import open_store
from indextables.table.upsert import upsert_rows

QUIET: dict[str, Any] = {
    "checkpoint.interval": 0,
    "xref.autoIndex.enabled": False,
    "transaction.retry.baseDelayMs": 0,
    "transaction.retry.maxAttempts": 20,
}


def made(path: Path, splits: int = 1, rows: int = 10) -> str:
    for i in range(splits):
        keys = list(range(i * rows, (i + 1) * rows))
        indextables.write(pa.table({"k": keys, "v": [0] * rows}), str(path), options=QUIET)
    return str(path)


def log_of(path: str, store: Any = None, **settings: Any) -> TransactionLog:
    cache.SHARED.invalidate()
    config = Config({**QUIET, **settings})
    return TransactionLog(path, store or open_store(path), config)


def values(path: str) -> dict[int, int]:
    cache.SHARED.invalidate()
    found = indextables.open(path, options=QUIET).to_arrow()
    keys = found["k"].to_pylist()
    assert len(set(keys)) == len(keys), "a row is there twice"
    return dict(zip(keys, found["v"].to_pylist(), strict=True))


def decided(path: str, rows: list[int], **settings: Any) -> RowChange:
    """A change of rows of the first split, decided now and committed later."""
    log = log_of(path, **settings)
    snapshot = log.snapshot()
    add = min(snapshot.files(), key=lambda f: int((f.min_values or {})["k"]))
    taken = Taken(add, add.num_records or 0, np.array(rows, np.uint32))
    return RowChange(log, snapshot, "DELETE", log.config, ReadSet(), taken=[taken])


# -- two writers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("inline", [0, 1024])
def test_different_rows_of_one_split_are_joined(tmp_path: Path, inline: int) -> None:
    path = made(tmp_path / "t")
    settings = {"deletionVector.maxInlineBytes": inline}
    ours, theirs = decided(path, [1, 2], **settings), decided(path, [7], **settings)
    theirs.commit()
    ours.commit()
    assert sorted(values(path)) == [0, 3, 4, 5, 6, 8, 9]


def test_the_same_row_is_a_conflict_that_names_it(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    ours, theirs = decided(path, [1, 2]), decided(path, [2, 3])
    theirs.commit()
    with pytest.raises(CommitConflictError, match=r"concurrent change: row 2 of '.*' was deleted"):
        ours.commit()
    assert sorted(values(path)) == [0, 1, 4, 5, 6, 7, 8, 9]


def test_files_of_a_change_that_lost_are_deleted(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    ours = decided(path, [2], **{"deletionVector.maxInlineBytes": 0})
    decided(path, [2]).commit()
    with pytest.raises(CommitConflictError):
        ours.commit()
    assert not list(Path(path).glob("deletion_vector_*"))


def test_the_last_rows_of_a_split_go_with_it(tmp_path: Path) -> None:
    path = made(tmp_path / "t", splits=2, rows=4)
    ours, theirs = decided(path, [0, 1]), decided(path, [2, 3])
    theirs.commit()
    ours.commit()
    assert sorted(values(path)) == [4, 5, 6, 7]
    assert log_of(path).snapshot().num_files == 1


@pytest.mark.parametrize("other", ["merge", "truncate", "restore", "overwrite"])
def test_a_split_that_others_replaced_is_a_conflict(tmp_path: Path, other: str) -> None:
    path = made(tmp_path / "t", splits=3)
    decided(path, [5]).commit()
    ours = decided(path, [1])
    log = log_of(path)
    if other == "merge":
        merge_splits(log)
    elif other == "truncate":
        truncate_table(log)
    elif other == "restore":
        restore_to_version(log, 3)
    else:
        indextables.write(pa.table({"k": [1], "v": [5]}), path, mode="overwrite", options=QUIET)
    after = values(path)
    with pytest.raises(CommitConflictError, match=r"concurrent (delete|change)"):
        ours.commit()
    assert values(path) == after


def test_a_merge_never_brings_back_what_was_deleted_meanwhile(tmp_path: Path) -> None:
    path = made(tmp_path / "t", splits=3)
    deleted = False

    def run(tasks: Any) -> Iterator[Any]:
        nonlocal deleted
        from indextables.maintenance.rewrite import run_locally

        results = list(run_locally(tasks))
        if not deleted:
            deleted = True
            delete_rows(log_of(path), "k = 4")
        yield from results

    merge_splits(log_of(path), run=run)
    assert deleted
    assert 4 not in values(path)
    assert log_of(path).snapshot().num_files == 1


def test_a_removal_that_did_not_know_the_vector_is_a_conflict(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    log = log_of(path)
    snapshot = log.snapshot()
    removal = snapshot.file(0).removal(1)
    decided(path, [1]).commit()
    with pytest.raises(CommitConflictError, match="concurrent change"):
        log.commit(Transaction(snapshot, "TEST", actions=[removal]))


def test_rows_that_match_and_come_meanwhile_are_deleted_too(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    store = _Interrupted(open_store(path), lambda: made(tmp_path / "t", rows=3))
    delete_rows(log_of(path, store), "k < 3")
    assert store.done
    assert min(values(path)) == 3


class _Interrupted(RecordingStore):
    """Does something else right before the first version is written."""

    def __init__(self, inner: Any, other: Callable[[], object]) -> None:
        super().__init__(inner)
        self.other, self.done = other, False

    def _around(self, call: Any, run: Callable[[], Any]) -> Any:
        if call.op == "put_if_absent" and not self.done:
            self.done = True
            self.other()
        return super()._around(call, run)


def test_four_writers_lose_no_update_and_revive_no_row(tmp_path: Path, seed: int) -> None:
    """Each thread adds to counters and deletes keys of its own; the sums must be those of all."""
    path = made(tmp_path / "t", splits=2, rows=8)
    done: list[int] = [0] * 16
    gone: set[int] = set()
    lock, failures = threading.Lock(), []

    def work(number: int) -> None:
        rng = random.Random(seed + number)
        try:
            for _ in range(5):
                key = rng.randrange(12)
                settings = {"deletionVector.maxShare": rng.choice([0.4, 1.0])}
                log = TransactionLog(path, open_store(path), Config({**QUIET, **settings}))
                for _ in range(40):
                    try:
                        result = update_rows(log, f"k = {key}", {"v": "v + 1"})
                        break
                    except CommitConflictError:
                        continue
                with lock:
                    done[key] += result.rows_updated
            log = TransactionLog(path, open_store(path), Config(QUIET))
            for _ in range(40):
                try:
                    delete_rows(log, f"k = {12 + number}")
                    break
                except CommitConflictError:
                    continue
            with lock:
                gone.add(12 + number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert values(path) == {k: done[k] for k in range(16) if k not in gone}


# -- crashes and lost replies ---------------------------------------------------------------------

DELETED = {k: 0 for k in range(20) if k not in (3, 14)}
UPDATED = {k: 1 if k in (3, 14) else 0 for k in range(20)}
UPSERTED = {**{k: 9 if k in (3, 14) else 0 for k in range(20)}, 99: 9}
VERBS: dict[str, tuple[Callable[[TransactionLog], Any], dict[int, int]]] = {
    "delete": (lambda log: delete_rows(log, "k IN (3, 14)"), DELETED),
    "update": (lambda log: update_rows(log, "k IN (3, 14)", {"v": "v + 1"}), UPDATED),
    "upsert": (
        lambda log: upsert_rows(log, pa.table({"k": [3, 14, 99], "v": [9, 9, 9]}), "k"),
        UPSERTED,
    ),
}
KINDS = (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER, FaultKind.LOST_REPLY, FaultKind.FAIL_BEFORE)


@pytest.mark.parametrize("name", VERBS)
def test_cut_off_at_a_call_of_the_store(tmp_path: Path, name: str, seed: int) -> None:
    """A sample of what the long form does at every call."""
    cut_off(tmp_path, name, step={"delete": 2, "update": 7, "upsert": 12}[name], first=seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_cut_off_at_every_call_of_the_store(tmp_path: Path, name: str) -> None:
    outcomes = cut_off(tmp_path, name)
    assert {("crashed", True), ("crashed", False), ("done", True)} <= outcomes


def cut_off(tmp_path: Path, name: str, step: int = 1, first: int = 0) -> set[tuple[str, bool]]:
    """The table is as before or as after, doctor is content, and running it again gives after."""
    run, after = VERBS[name]
    template = made(tmp_path / "template", splits=2)
    settings = {"deletionVector.maxInlineBytes": 0}
    before = values(template)
    counted = RecordingStore(open_store(str(shutil.copytree(template, tmp_path / "count"))))
    run(log_of(str(tmp_path / "count"), counted, **settings))
    outcomes = set()
    for number, kind in enumerate(KINDS):
        for at in range((first + number) % step, len(counted.calls), step):
            path = str(shutil.copytree(template, tmp_path / f"{kind.name}{at}"))
            store = FaultyStore(open_store(path), [Fault(kind, at)])
            outcome = "done"
            try:
                run(log_of(path, store, **settings))
            except CrashError:
                outcome = "crashed"
            except IndexTablesError:
                outcome = "told"
            found = values(path)
            assert found in (before, after), (kind, at)
            assert outcome != "done" or found == after, (kind, at)
            outcomes.add((outcome, found == after))
            if found == before:
                run(log_of(path, **settings))
                assert values(path) == after
            log = log_of(path)
            found_by_doctor = indextables.Table(log, log.snapshot()).doctor(checksums=False)
            assert not [f for f in found_by_doctor if f.severity == "error"], (kind, at)
    return outcomes


def test_the_order_of_files_is_splits_then_vectors_then_the_version(tmp_path: Path) -> None:
    path = made(tmp_path / "t", splits=2)
    store = RecordingStore(open_store(path))
    update_rows(log_of(path, store, **{"deletionVector.maxInlineBytes": 0}), "k = 3", {"v": 5})
    writes = [c for c in store.calls if c.op in ("put", "put_file", "put_if_absent")]
    assert [c.op for c in writes] == ["put_file", "put", "put_if_absent"]


def test_a_vector_written_for_one_attempt_serves_the_next(tmp_path: Path) -> None:
    """A lost race over other files writes no second vector file."""
    path = made(tmp_path / "t")
    log = log_of(path)
    add = log.snapshot().file(0)
    narrow = Narrowing(log.store, [Taken(add, 10, np.array([1], np.uint32))], 0)
    first = narrow.actions(log.snapshot())
    made(tmp_path / "t", rows=3)
    assert narrow.actions(log.snapshot()) == [replace(first[0])]
    assert len(narrow.files) == 1
