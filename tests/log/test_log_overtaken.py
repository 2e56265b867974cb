"""A writer that stands still while others commit, checkpoint and truncate the log.

Its slot is empty again when it wakes up, so the store lets it create the version; but readers
start from the checkpoint above and would never see it. It must notice, and commit again on top.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from log_helpers import append, memory_store, new_table, reopen, split

from indextables.errors import (
    AmbiguousWriteError,
    CommitStateUnknownError,
    CorruptFileError,
    VersionNotFoundError,
)
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.loader import first_look, load_snapshot
from indextables.log.read.versions import state_dir, version_path
from indextables.maintenance.logwork import truncate_time_travel
from indextables.storage.base import Store
from indextables.storage.wrapped import WrappedStore


class Paused(WrappedStore):
    """Does something else just before its first conditional create of a version."""

    def __init__(self, inner: Store, meanwhile: Callable[[], None]) -> None:
        super().__init__(inner)
        self.meanwhile: Callable[[], None] | None = meanwhile
        self.loses_reply = False
        self.loses_request = False

    def put_if_absent(self, path: str, data: bytes) -> None:
        run, self.meanwhile = self.meanwhile, None
        if run is not None:
            if self.loses_reply:
                self.inner.put_if_absent(path, data)
            run()
            if self.loses_reply or self.loses_request:
                raise AmbiguousWriteError("no reply", path=path)
        self.inner.put_if_absent(path, data)


def names(log: TransactionLog) -> set[str]:
    return {add.path.removesuffix(".split") for add in log.snapshot().files()}


def paused(log: TransactionLog, commits: int) -> tuple[TransactionLog, Paused]:
    """A second writer; while it pauses the first commits, checkpoints and truncates."""

    def meanwhile() -> None:
        for i in range(commits):
            append(log, f"other{i}")
        truncate_time_travel(log)

    store = Paused(log.store, meanwhile)
    return TransactionLog(log.path, store, log.config), store


@pytest.mark.parametrize("commits", [2, 3, 7])
def test_a_commit_behind_the_truncation_is_made_again_on_top(commits: int) -> None:
    log = new_table(memory_store(), checkpoint__interval=0)
    append(log, "a")
    slow, _ = paused(log, commits)
    result = slow.commit(Transaction(None, "append", actions=[split("slow")]))
    assert result.version == 2 + commits
    assert names(reopen(log)) == {"a", "slow", *(f"other{i}" for i in range(commits))}
    assert not log.store.exists(version_path(2))


def test_a_lost_reply_before_the_truncation_stays_unknown() -> None:
    """The first try landed in time and others built on it; a second commit would double it."""
    log = new_table(memory_store(), checkpoint__interval=0)
    append(log, "a")
    slow, store = paused(log, 3)
    store.loses_reply = True
    with pytest.raises(CommitStateUnknownError, match="truncated"):
        slow.commit(Transaction(None, "append", actions=[split("slow")]))
    assert "slow" in names(reopen(log))


def test_the_first_version_of_a_table_cannot_tell_and_says_so() -> None:
    log = new_table(memory_store(), checkpoint__interval=0)
    slow, _ = paused(log, 2)
    with pytest.raises(CommitStateUnknownError, match="first version"):
        slow.commit(Transaction(None, "append", actions=[split("slow")]))


@pytest.mark.parametrize("before", [0, 1])
def test_a_second_run_does_not_take_a_version_left_behind_for_its_commit(before: int) -> None:
    """Ours lies in the emptied slot and every later version is there, but no reader sees it."""
    log = new_table(memory_store(), checkpoint__interval=0)
    for _ in range(before):
        append(log, "a")
    slow, store = paused(log, 2)
    store.loses_request = before > 0
    transaction = Transaction(None, "append", actions=[split("slow")])
    with pytest.raises(CommitStateUnknownError):
        slow.commit(transaction)
    assert all(log.store.exists(version_path(before + k)) for k in (1, 2))
    with pytest.raises(CommitStateUnknownError, match="left behind"):
        reopen(log).commit(transaction)
    assert "slow" not in names(reopen(log))


def test_a_second_run_recognises_what_landed_before_the_truncation() -> None:
    log = new_table(memory_store(), checkpoint__interval=0)
    append(log, "a")
    slow, store = paused(log, 1)
    store.loses_reply = True
    transaction = Transaction(None, "append", actions=[split("slow")])
    with pytest.raises(CommitStateUnknownError, match="truncated"):
        slow.commit(transaction)
    again = reopen(log).commit(transaction)
    assert (again.version, again.already_committed) == (2, True)
    assert names(reopen(log)) == {"a", "other0", "slow"}


def test_a_log_without_its_newest_version_file_is_still_written_to() -> None:
    """Another program may have deleted the file a checkpoint covers."""
    log = new_table(memory_store(), checkpoint__interval=0)
    for name in "abc":
        append(log, name)
    log.checkpoint()
    log.store.delete([version_path(v) for v in (1, 2, 3)])
    fresh = reopen(log)
    assert fresh.commit(Transaction(None, "append", actions=[split("d")])).version == 4
    assert names(reopen(log)) == {"a", "b", "c", "d"}


@pytest.mark.parametrize("form", ["json", "avro"])
def test_checkpoints_that_a_truncation_removes_are_no_reason_to_serve_less(form: str) -> None:
    """A reader that listed before the truncation and reads after it lists again."""
    log = new_table(state__format=form)
    for i in range(3):
        append(log, f"early{i}")
    truncate_time_travel(log)
    listed = first_look(log.store)
    for i in range(3):
        append(log, f"late{i}")
    truncate_time_travel(log)
    assert not listed.listing.states & first_look(log.store).listing.states
    found = load_snapshot(log.store, log.config, look=listed).snapshot
    assert found.version == log.snapshot().version
    assert found.num_files == 6


def half_deleted(newest: bool) -> TransactionLog:
    """A log with a state whose deletion was interrupted, and no version file to replace it."""
    log = new_table(memory_store(), checkpoint__interval=0)
    for number in (1, 2, 3):
        append(log, f"s{number}")
        if number != 1:
            log.checkpoint()
    gone = 3 if newest else 2
    log.store.put(f"{state_dir(gone)}/left-behind", b"")
    log.store.delete([f"{state_dir(gone)}/_manifest.avro"])
    log.store.delete([version_path(v) for v in (range(4) if newest else range(3))])
    if newest:
        log.store.delete([f"{state_dir(2)}/_manifest.avro"])
    return reopen(log)


def test_a_version_whose_state_is_half_deleted_is_not_found() -> None:
    """Nothing changes while it is read, so "try again" would be bad advice."""
    log = half_deleted(newest=False)
    assert names(log) == {"s1", "s2", "s3"}
    with pytest.raises(VersionNotFoundError, match=r"can be read: 3$"):
        log.snapshot(version=2)


def test_a_half_deleted_newest_state_is_damage() -> None:
    with pytest.raises(CorruptFileError, match="incomplete"):
        half_deleted(newest=True).snapshot()
