"""Commits: creating a table, what a version holds, idempotence, lost replies, gaps, cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from log_helpers import (
    SCHEMA,
    append,
    config,
    memory_store,
    names,
    new_table,
    race,
    remove,
    reopen,
    run,
    split,
)
from store_doubles import (
    Fault,
    FaultKind,
    FaultyStore,
    RecordingStore,
    UnconditionalStore,
    WrappedStore,
)

from indextables.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    TableExistsError,
    TableNotFoundError,
    UnknownColumnError,
    UnsafePathError,
    UnsupportedStoreError,
)
from indextables.log.actions import (
    CommitInfo,
    Metadata,
    Protocol,
    Txn,
)
from indextables.log.actions.codec import decode_actions, encode_actions
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.versions import version_path

# -- creating -----------------------------------------------------------------------------------


def test_version_0_holds_exactly_protocol_and_metadata() -> None:
    log = new_table(partitioned=True)
    data = log.store.read(version_path(0))
    assert data[:2] == b"\x1f\x8b"
    actions = decode_actions(data, root=log.store.uri, path="p", version=0)
    assert [type(action) for action in actions] == [Protocol, Metadata]
    snapshot = log.snapshot()
    assert snapshot.version == 0
    assert snapshot.schema == SCHEMA
    assert snapshot.partition_columns == ("day",)
    assert (snapshot.num_files, snapshot.num_rows, snapshot.num_bytes) == (0, 0, 0)
    assert log.table_id == snapshot.metadata.id


def test_creating_twice_is_refused() -> None:
    log = new_table()
    before = log.store.read(version_path(0))
    with pytest.raises(TableExistsError):
        new_table(log.store)
    assert log.store.read(version_path(0)) == before


def test_creating_and_opening_say_what_is_there() -> None:
    store = memory_store()
    assert not TransactionLog.exists(store.uri, store=store)
    with pytest.raises(TableNotFoundError, match="_transaction_log"):
        TransactionLog.open(store.uri, store=store)
    new_table(store)
    assert TransactionLog.exists(store.uri, store=store)
    assert TransactionLog.open(store.uri, store=store).snapshot().version == 0


def test_creating_on_a_store_without_conditions_is_refused() -> None:
    store = UnconditionalStore(memory_store())
    with pytest.raises(UnsupportedStoreError):
        TransactionLog.create("memory://x", SCHEMA, store=store)
    assert not TransactionLog.exists("memory://x", store=store)


def test_partition_columns_must_exist_once() -> None:
    for columns, error in ((["nope"], UnknownColumnError), (["day", "DAY"], Exception)):
        with pytest.raises(error):
            TransactionLog.create("m", SCHEMA, partition_columns=columns, store=memory_store())


def test_racing_creators_agree_on_one_table() -> None:
    """The slot is taken between our look and our write."""
    store = memory_store()
    taken = encode_actions(
        [Protocol(4, 4), Metadata("other", schema_string='{"type":"struct","fields":[]}')]
    )

    class Rival(WrappedStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            self.inner.put(path, taken)
            super().put_if_absent(path, data)

    with pytest.raises(TableExistsError):
        new_table(Rival(store))
    assert TransactionLog.open("m", store=store).table_id == "other"


def test_a_lost_reply_at_creation_is_recognised() -> None:
    faulty = FaultyStore(
        memory_store(), [Fault(FaultKind.LOST_REPLY, 0, frozenset(["put_if_absent"]))]
    )
    assert new_table(faulty).snapshot().version == 0


# -- what a version file holds ------------------------------------------------------------------


def test_commit_info_is_the_first_line() -> None:
    log = new_table()
    result = log.commit(
        Transaction(None, "WRITE", parameters={"mode": "Append"}, actions=[split("a")])
    )
    actions = decode_actions(
        log.store.read(version_path(1)), root=log.store.uri, path="p", version=1
    )
    info = actions[0]
    assert isinstance(info, CommitInfo)
    assert info.commit_id == result.commit_id
    assert info.operation == "WRITE"
    assert info.operation_parameters == {"mode": "Append"}
    assert info.operation_metrics["numAddedFiles"] == 1
    assert info.operation_metrics["numAddedRows"] == 5
    assert info.engine is not None
    assert info.engine.startswith("indextables/")


def test_compression_can_be_switched_off() -> None:
    log = new_table(transaction__compression__enabled=False)
    append(log, "a")
    assert log.store.read(version_path(0))[:1] == b"{"
    assert log.store.read(version_path(1))[:1] == b"{"
    assert names(reopen(log)) == ["a"]


def test_times_grow_even_when_the_clock_does_not() -> None:
    log = new_table()
    stamps = [
        log.commit(Transaction(None, "W", actions=[split(f"{i}")])).snapshot for i in range(5)
    ]
    times = [snapshot.timestamp_ms for snapshot in stamps]
    assert times == sorted(set(times))


def test_the_same_path_added_later_replaces_the_earlier() -> None:
    log = new_table()
    append(log, "a")
    run(log, "WRITE", [split("a", rows=9)])
    snapshot = reopen(log).snapshot()
    assert (snapshot.num_files, snapshot.num_rows) == (1, 9)


def test_removed_then_added_again_is_live() -> None:
    log = new_table()
    append(log, "a")
    add = log.snapshot().file(0)
    run(log, "REWRITE", [add.removal(5), split("a", rows=7)])
    assert reopen(log).snapshot().num_rows == 7
    remove(log, "a")
    append(log, "a")
    assert names(reopen(log)) == ["a"]


@pytest.mark.parametrize(
    "actions",
    [
        [split("a"), split("a")],
        [CommitInfo("x")],
        [Metadata("another table", schema_string="{}")],
        [split("a", day="1")],
    ],
    ids=["added twice", "commit info", "foreign metadata", "wrong partitioning"],
)
def test_commits_that_make_no_sense_are_refused(actions: list[Any]) -> None:
    log = new_table()
    with pytest.raises(CommitFailedError):
        run(log, "WRITE", actions)
    assert log.snapshot().version == 0


def test_paths_outside_the_table_are_refused_at_commit() -> None:
    log = new_table()
    with pytest.raises(UnsafePathError):
        run(log, "WRITE", [replace(split("a"), path="../b.split")])
    run(log, "WRITE", [replace(split("a"), path=f"{log.store.uri}/in.split")])
    assert names(log) == ["in"]


def test_nothing_to_do_is_no_version() -> None:
    log = new_table()
    result = run(log, "MERGE", lambda snapshot: [])
    assert (result.version, result.attempts) == (0, 0)
    assert log.snapshot().version == 0


# -- idempotence --------------------------------------------------------------------------------


def test_one_transaction_run_twice_is_one_commit() -> None:
    log = new_table()
    append(log, "a")
    base = log.snapshot()
    for transaction in (
        Transaction(base, "MERGE", actions=[split("a").removal(1), split("b")]),
        Transaction(None, "WRITE", actions=[split("c")]),
    ):
        first = log.commit(transaction)
        second = reopen(log).commit(transaction)
        assert second.already_committed
        assert second.version == first.version
    assert log.snapshot().version == 3


def test_a_streaming_step_is_committed_once() -> None:
    log = new_table()

    def step(number: int, name: str) -> Transaction:
        return Transaction(None, "STREAM", actions=[Txn("app", number, 1), split(name)])

    log.commit(step(1, "a"))
    again = reopen(log).commit(step(1, "a-again"))
    assert again.already_committed
    log.commit(step(2, "b"))
    assert log.commit(step(1, "late")).already_committed
    assert log.commit(Transaction(None, "S", actions=[Txn("other", 1), split("c")])).version == 3
    assert names(log) == ["a", "b", "c"]
    assert reopen(log).snapshot().txns == {"app": 2, "other": 1}


def test_a_streaming_step_that_landed_meanwhile_is_recognised() -> None:
    log = new_table()

    def step() -> Transaction:
        return Transaction(None, "STREAM", actions=[Txn("app", 1), split("a")])

    assert race(log, step(), lambda: log.commit(step())).already_committed
    assert log.snapshot().version == 1


@pytest.mark.parametrize(
    "kind", [FaultKind.LOST_REPLY, FaultKind.LOST_REQUEST, FaultKind.FAIL_AFTER]
)
def test_a_lost_reply_is_one_commit(kind: FaultKind) -> None:
    log = new_table()
    faulty = FaultyStore(log.store, [Fault(kind, 0, frozenset(["put_if_absent"]))])
    result = append(TransactionLog(log.path, faulty, log.config), "a")
    assert (result.version, result.attempts) == (1, 1)
    assert names(reopen(log)) == ["a"]
    assert log.snapshot().version == 1


def test_a_definite_refusal_is_a_failed_commit() -> None:
    log = new_table()
    faulty = FaultyStore(log.store, [Fault(FaultKind.FAIL_BEFORE, 0, frozenset(["put_if_absent"]))])
    with pytest.raises(CommitFailedError):
        append(TransactionLog(log.path, faulty, log.config), "a")
    assert log.snapshot().version == 0


def test_silence_is_an_unknown_outcome() -> None:
    log = new_table(transaction__commit__deadlineSeconds=0.05)

    class Silent(WrappedStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            from indextables.errors import AmbiguousWriteError

            raise AmbiguousWriteError("no reply")

    with pytest.raises(CommitStateUnknownError, match="Keep every file"):
        append(TransactionLog(log.path, Silent(log.store), log.config), "a")


# -- gaps ---------------------------------------------------------------------------------------


def test_a_log_with_a_gap_is_not_written_to() -> None:
    log = new_table()
    for name in "abc":
        append(log, name)
    log.store.delete([version_path(2)])
    again = reopen(log)
    assert again.snapshot().version == 1
    assert names(again) == ["a"]
    with pytest.raises(CommitFailedError, match="version 2 is missing"):
        append(again, "d")


def test_the_next_version_follows_states_too() -> None:
    """A table whose versions after 0 exist only as states."""
    log = new_table()
    append(log, "a")
    append(log, "b")
    log.checkpoint()
    log.store.delete([version_path(1), version_path(2)])
    again = reopen(log)
    assert append(again, "c").version == 3
    assert names(reopen(log)) == ["a", "b", "c"]


# -- cost ---------------------------------------------------------------------------------------


def test_a_commit_costs_one_look_one_write_and_one_check() -> None:
    """The check: that the log was not truncated past the version meanwhile."""
    log = new_table(checkpoint__enabled=False)
    for i in range(12):
        append(log, f"s{i}")
    store = RecordingStore(log.store)
    append(TransactionLog(log.path, store, log.config), "x")
    assert store.ops() == ["read", "list", "list_dirs", "put_if_absent", "stat"]
    store.clear()
    TransactionLog(log.path, store, log.config).snapshot()
    assert store.ops() == ["read", "list", "list_dirs"]


def test_refresh_reads_only_what_is_new() -> None:
    log = new_table(checkpoint__enabled=False)
    for i in range(5):
        append(log, f"s{i}")
    store = RecordingStore(log.store)
    reader = reopen(log, store=store)
    first = reader.snapshot()
    store.clear()
    other = TransactionLog(log.path, log.store, config(transaction__cache__enabled=False))
    append(other, "x")
    second = first.refresh()
    assert second.version == 6
    read = [path for call in store.calls if call.op == "read_many" for path in call.detail]
    assert read == [version_path(6)]
    assert first.version == 5
    assert first.index_of("x.split") is None
    assert second.index_of("x.split") is not None
