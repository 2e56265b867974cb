"""Commits: the optimistic loop, every named conflict, idempotence, lost replies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from log_helpers import (
    SCHEMA,
    append,
    config,
    memory_store,
    names,
    new_table,
    remove,
    reopen,
    run,
    split,
)

from indextables.errors import (
    CommitConflictError,
    CommitFailedError,
    CommitStateUnknownError,
    TableExistsError,
    TableNotFoundError,
    UnknownColumnError,
    UnsafePathError,
    UnsupportedStoreError,
)
from indextables.expr.predicate import (
    And,
    Column,
    Compare,
    InSet,
    NullTest,
    Op,
    Or,
    Predicate,
    Undecided,
)
from indextables.log.actions import (
    AddFile,
    AddXRef,
    CommitInfo,
    DefineIndex,
    DropIndex,
    IndexBlocks,
    IndexFile,
    Metadata,
    Protocol,
    RemoveFile,
    RemoveXRef,
    SkipFile,
    Txn,
)
from indextables.log.codec import decode_actions, encode_actions
from indextables.log.log import TransactionLog
from indextables.log.transaction import ReadSet, Transaction
from indextables.log.versions import version_path
from indextables.storage.testing import (
    Fault,
    FaultKind,
    FaultyStore,
    RecordingStore,
    UnconditionalStore,
    WrappedStore,
)

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


# -- racing -------------------------------------------------------------------------------------


class Interrupted(WrappedStore):
    """Runs something just before a version file is created, once."""

    def __init__(self, inner: Any, version: int, action: Callable[[], object]) -> None:
        super().__init__(inner)
        self.when = version_path(version)
        self.action: Callable[[], object] | None = action

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path == self.when and self.action is not None:
            action, self.action = self.action, None
            action()
        super().put_if_absent(path, data)


def race(log: TransactionLog, transaction: Transaction, rival: Callable[[], object]) -> Any:
    """Commit while ``rival`` takes the version we are about to write."""
    version = log.snapshot().version + 1
    store = Interrupted(log.store, version, rival)
    return TransactionLog(log.path, store, log.config).commit(transaction)


def test_appends_never_conflict() -> None:
    log = new_table()
    append(log, "a")
    rivals: list[Callable[[], object]] = [
        lambda: append(log, "r1"),
        lambda: remove(log, "a"),
        lambda: run(log, "ALTER", [replace(log.snapshot().metadata, description="new")]),
        lambda: log.add_xref(AddXRef("_x/x.split", "x", (), 0, 1)),
        lambda: run(log, "OVERWRITE", lambda s: [f.removal(1) for f in s.files()]),
    ]
    for number, rival in enumerate(rivals):
        base = log.snapshot()
        mine = Transaction(base, "WRITE", actions=[split(f"mine{number}")])
        result = race(log, mine, rival)
        assert result.attempts == 2
        assert result.version == base.version + 2
    assert names(log) == ["mine4"]
    assert reopen(log).snapshot().metadata.description == "new"


def test_two_merges_of_one_split_one_wins() -> None:
    log = new_table()
    append(log, "a", "b", "c")
    base = log.snapshot()

    def merge(sources: str, target: str) -> Transaction:
        removes = [split(s).removal(1, data_change=False) for s in sources]
        added = replace(split(target), data_change=False)
        return Transaction(base, "MERGE SPLITS", actions=[*removes, added])

    with pytest.raises(CommitConflictError, match=r"concurrent delete.*'b\.split'"):
        race(log, merge("ab", "ab"), lambda: log.commit(merge("bc", "bc")))
    assert names(reopen(log)) == ["a", "bc"]
    with pytest.raises(CommitConflictError):
        log.commit(merge("ab", "ab"))


def test_overwrite_with_a_function_sees_what_landed_meanwhile() -> None:
    log = new_table()
    append(log, "a")
    overwrite = Transaction(
        log.snapshot(),
        "OVERWRITE",
        actions=lambda s: [*(f.removal(1) for f in s.files()), split("new")],
    )
    race(log, overwrite, lambda: append(log, "late"))
    assert names(reopen(log)) == ["new"]


DAY = Column(("day",), pa.string(), is_partition=True)
ROW = Column(("id",), pa.int64())


@pytest.mark.parametrize(
    ("predicate", "day", "conflicts"),
    [
        (Compare(DAY, Op.EQ, "1"), "1", True),
        (Compare(DAY, Op.EQ, "1"), "2", False),
        (Compare(DAY, Op.NE, "1"), "1", False),
        (Compare(DAY, Op.GE, "2"), "1", False),
        (Compare(DAY, Op.LT, "2"), "1", True),
        (InSet(DAY, ("1", "3")), "3", True),
        (InSet(DAY, ("1", "3"), negated=True), "3", False),
        (NullTest(DAY, True), "1", False),
        (NullTest(DAY, True), None, True),
        (Compare(DAY, Op.EQ, "1"), None, False),
        (Compare(ROW, Op.EQ, 1), "1", True),
        (Undecided("f(day)"), "1", True),
        (And((Compare(DAY, Op.EQ, "1"), Compare(ROW, Op.EQ, 1))), "1", True),
        (And((Compare(DAY, Op.EQ, "1"), Compare(ROW, Op.EQ, 1))), "2", False),
        (Or((Compare(DAY, Op.EQ, "1"), Compare(DAY, Op.EQ, "2"))), "2", True),
        (Or((Compare(DAY, Op.EQ, "1"), Compare(DAY, Op.EQ, "2"))), "3", False),
    ],
)
def test_concurrent_adds_conflict_where_the_read_predicate_may_match(
    predicate: Predicate, day: str | None, conflicts: bool
) -> None:
    log = new_table(partitioned=True)
    base = log.snapshot()
    late = split("late", day, partitioned=True)
    mine = Transaction(
        base, "DELETE", actions=[split("mine", "9")], reads=ReadSet.matching(predicate)
    )
    if conflicts:
        with pytest.raises(CommitConflictError, match="concurrent add"):
            race(log, mine, lambda: run(log, "WRITE", [late]))
    else:
        race(log, mine, lambda: run(log, "WRITE", [late]))


def test_whole_table_reads_and_rearranged_rows() -> None:
    log = new_table()
    append(log, "a")
    base = log.snapshot()
    reads = ReadSet.table()
    merged = [split("a").removal(1, data_change=False), replace(split("m"), data_change=False)]
    race(
        log,
        Transaction(base, "X", actions=[split("x")], reads=reads),
        lambda: run(log, "M", merged),
    )
    with pytest.raises(CommitConflictError, match="concurrent add"):
        log.commit(Transaction(base, "Y", actions=[split("y")], reads=reads))


def test_files_that_were_read_must_live() -> None:
    log = new_table()
    append(log, "a", "b")
    reads = ReadSet(files=frozenset(["a.split"]))
    mine = Transaction(log.snapshot(), "X", actions=[split("x")], reads=reads)
    with pytest.raises(CommitConflictError, match="concurrent delete"):
        race(log, mine, lambda: remove(log, "a"))


def test_metadata_conflicts() -> None:
    log = new_table()
    base = log.snapshot()

    def alter(text: str) -> Transaction:
        return Transaction(base, "ALTER", actions=[replace(base.metadata, description=text)])

    with pytest.raises(CommitConflictError, match="metadata changed"):
        race(log, alter("mine"), lambda: log.commit(alter("theirs")))
    with pytest.raises(CommitConflictError, match="metadata changed"):
        log.commit(Transaction(base, "X", actions=[split("x")], reads=ReadSet(metadata=True)))
    assert log.snapshot().metadata.description == "theirs"


def test_a_growing_schema_registry_is_no_metadata_conflict() -> None:
    log = new_table()
    base = log.snapshot()
    mine = Transaction(base, "ALTER", actions=[replace(base.metadata, description="mine")])
    race(log, mine, lambda: append(log, "a"))
    snapshot = reopen(log).snapshot()
    assert snapshot.metadata.description == "mine"
    assert snapshot.doc_mapping(0) is not None
    assert any(k.startswith("docMappingSchema.") for k in snapshot.metadata.configuration)


def test_column_index_mirrors_merge_and_can_be_dropped() -> None:
    log = new_table()
    prefix = "indextables.columnIndex."

    def mirror(base: Any, **columns: str | None) -> Metadata:
        configuration = dict(base.metadata.configuration)
        for column, text in columns.items():
            configuration.pop(prefix + column, None)
            if text is not None:
                configuration[prefix + column] = text
        return replace(base.metadata, configuration=configuration)

    base = log.snapshot()
    mine = Transaction(base, "INDEX", actions=[mirror(base, id="mine")])
    race(log, mine, lambda: run(log, "INDEX", [mirror(base, text="theirs")], base=base))
    found = reopen(log).snapshot()
    assert dict(found.metadata.configuration) == {f"{prefix}id": "mine", f"{prefix}text": "theirs"}
    mine = Transaction(found, "DROP", actions=[mirror(found, id=None)])
    race(log, mine, lambda: run(log, "INDEX", [mirror(found, day="more")], base=found))
    kept = reopen(log).snapshot().metadata.configuration
    assert dict(kept) == {f"{prefix}text": "theirs", f"{prefix}day": "more"}


def test_protocol_conflicts_only_with_whoever_sets_it() -> None:
    log = new_table(version=2)
    base = log.snapshot()
    mine = Transaction(base, "UPGRADE", actions=[Protocol(4, 4)])
    with pytest.raises(CommitConflictError, match="protocol changed"):
        race(log, mine, lambda: log.upgrade_protocol(3))
    race(
        log,
        Transaction(log.snapshot(), "WRITE", actions=[split("a")]),
        lambda: log.upgrade_protocol(4),
    )
    assert reopen(log).snapshot().protocol == Protocol(4, 4)


def test_an_automatic_upgrade_follows_a_concurrent_one() -> None:
    log = new_table(version=1)
    xref = AddXRef("_x/x.split", "x", (), 0, 1)
    race(log, Transaction(None, "XREF", actions=[xref]), lambda: log.upgrade_protocol(4))
    protocol = reopen(log).snapshot().protocol
    assert protocol.min_reader_version == 4
    assert "crossReferenceIndex" in (protocol.reader_features or ())


def test_changed_partitioning_is_a_conflict_for_appends_that_do_not_fit() -> None:
    log = new_table()
    base = log.snapshot()
    mine = Transaction(base, "WRITE", actions=[split("a")])
    other = replace(base.metadata, partition_columns=("day",))
    with pytest.raises(CommitConflictError, match="partitioning changed"):
        race(log, mine, lambda: run(log, "OVERWRITE SCHEMA", [other]))


def test_cross_reference_and_index_conflicts() -> None:
    log = new_table()
    log.add_xref(AddXRef("_x/x.split", "x", (), 0, 1))
    run(log, "CREATE INDEX", [DefineIndex("1a", "id")])
    for name, action in (
        ("cross-reference gone", RemoveXRef("_x/gone.split", "g", 1)),
        ("index taken", DefineIndex("2b", "id")),
        ("index gone", DropIndex("3c", "text")),
    ):
        with pytest.raises(CommitConflictError, match=name):
            run(log, "X", [action])
    run(log, "CREATE INDEX", [DefineIndex("1a", "id")])
    run(log, "INDEX", [IndexBlocks("1a", "id", files=(IndexFile("gone.split", "_c/i.idx", 1),))])
    run(log, "DROP INDEX", [DropIndex("1a", "id")])
    assert reopen(log).snapshot().indexes.definitions == {}


def test_attempts_are_limited_and_paused_with_jitter() -> None:
    log = new_table(transaction__retry__maxAttempts=4)
    pauses: list[float] = []

    class Unlucky(WrappedStore):
        count = 0

        def put_if_absent(self, path: str, data: bytes) -> None:
            self.count += 1
            append(log, f"rival{self.count}")
            super().put_if_absent(path, data)

    from indextables.log.commit import CommitLoop

    target = TransactionLog(log.path, Unlucky(log.store), config(transaction__retry__maxAttempts=4))
    mine = Transaction(None, "WRITE", actions=[split("mine")])
    with pytest.raises(CommitConflictError, match="4 versions in a row"):
        CommitLoop(target, mine, sleep=pauses.append).run()
    assert len(pauses) == 3
    for pause, nominal in zip(pauses, (0.001, 0.002, 0.004), strict=True):
        assert 0.75 * nominal <= pause <= 1.25 * nominal
    assert "mine" not in names(log)


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


# -- cross-references ---------------------------------------------------------------------------


def xref(name: str, *sources: str) -> AddXRef:
    return AddXRef(f"_xrefsplits/abcd/{name}.split", name, sources, len(sources), 10)


def test_cross_reference_methods() -> None:
    log = new_table()
    append(log, "a", "b")
    run(
        log,
        "WRITE",
        [replace(split("x"), path="d=1/c.split"), replace(split("x"), path="d=2/c.split")],
    )
    log.add_xref(xref("x1", "a.split", "d=1/c.split"))
    assert [x.xref_id for x in log.list_xrefs()] == ["x1"]
    covering = log.get_xref_for_split("a.split")
    assert covering is not None
    assert covering.xref_id == "x1"
    assert log.get_xref_for_split("c.split") is not None
    assert log.get_xref_for_split("d=2/c.split") is None
    assert log.get_xref_for_split("b.split") is None
    assert sorted(f.path for f in log.get_splits_without_xref()) == ["b.split", "d=2/c.split"]
    old = log.list_xrefs()[0]
    log.replace_xref(
        RemoveXRef(old.path, old.xref_id, 5, "replaced"), xref("x2", "a.split", "b.split")
    )
    assert [x.xref_id for x in log.list_xrefs()] == ["x2"]
    assert [x.reason for x in log.list_removed_xrefs()] == ["replaced"]
    log.remove_xref(xref("x2").path, "source_changed")
    assert log.list_xrefs() == []
    assert len(log.get_splits_without_xref()) == 4
    with pytest.raises(Exception, match="list_xrefs"):
        log.remove_xref(xref("x2").path)


@pytest.mark.parametrize("form", ["avro", "json"])
def test_side_actions_survive_a_checkpoint(form: str) -> None:
    log = new_table(state__format=form)
    append(log, "a", "b")
    log.add_xref(xref("x1", "a.split"))
    run(log, "CREATE INDEX", [DefineIndex("1a", "id", 7)])
    blocks = IndexBlocks(
        "1a", "id", files=(IndexFile("a.split", "_colindex/a.idx", 9, 3, 5, 0, 4),)
    )
    run(log, "INDEX", [blocks])
    skip = SkipFile("b.split", 5, "broken", "merge", {}, 105, 99, 2)
    run(log, "SKIP", [skip, Txn("app", 3, 1)])
    before = log.snapshot()
    log.checkpoint()
    log.store.delete([version_path(v) for v in range(1, before.version + 1)])
    after = reopen(log).snapshot()
    assert after.version == before.version
    assert after.xrefs == before.xrefs != ()
    assert after.indexes == before.indexes
    assert after.indexes.file_of("id", "a.split") == blocks.files[0]
    assert after.skips == {"b.split": skip}
    assert after.txns == {"app": 3}
    assert after.protocol == before.protocol
    assert after.metadata == before.metadata
    assert sorted(f.path for f in after.files()) == ["a.split", "b.split"]
    remove(log, "b")
    assert reopen(log).snapshot().skips == {}


def test_removes_keep_what_they_know() -> None:
    log = new_table(partitioned=True)
    append(log, "a", day="1")
    add = log.snapshot().file(0)
    removal = add.removal(77, tags={"reason": "overwrite"})
    assert removal == RemoveFile(
        "a.split", 77, True, None, {"day": "1"}, 105, {"reason": "overwrite"}
    )
    assert isinstance(add, AddFile)
    assert (add.added_at_version, add.added_at_timestamp) == (1, log.snapshot().timestamp_ms)
