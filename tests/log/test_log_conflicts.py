"""Commits that meet: the optimistic loop and every named conflict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from log_helpers import (
    append,
    config,
    names,
    new_table,
    race,
    remove,
    reopen,
    run,
    split,
)
from store_doubles import (
    WrappedStore,
)

from indextables.errors import (
    CommitConflictError,
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
    AddXRef,
    DefineIndex,
    DropIndex,
    IndexBlocks,
    IndexFile,
    Metadata,
    Protocol,
    RemoveXRef,
)
from indextables.log.commit.transaction import ReadSet, Transaction
from indextables.log.log import TransactionLog
from indextables.planner.concurrent import file_test


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
        base, "DELETE", actions=[split("mine", "9")], reads=ReadSet.matching(file_test(predicate))
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

    from indextables.log.commit.loop import CommitLoop

    target = TransactionLog(log.path, Unlucky(log.store), config(transaction__retry__maxAttempts=4))
    mine = Transaction(None, "WRITE", actions=[split("mine")])
    with pytest.raises(CommitConflictError, match="4 versions in a row"):
        CommitLoop(target, mine, sleep=pauses.append).run()
    assert len(pauses) == 3
    for pause, longest in zip(pauses, (0.001, 0.002, 0.004), strict=True):
        assert 0 <= pause <= longest
    assert "mine" not in names(log)
