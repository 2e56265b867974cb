"""The gate: a table that asks for a newer writer is not touched by any verb.

Every public verb is called on such a table. What changes a table must be refused, and whatever the
answer, nothing may have been written. That every verb is called is checked by listing them; that no
other way leads to a store, by reading the package for calls that change one.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from store_doubles import WRITES, RecordingStore

import indextables
from indextables import columnindex, maintenance
from indextables.config import Config
from indextables.errors import ProtocolError
from indextables.log.actions import AddXRef, Protocol, RemoveXRef
from indextables.log.actions.codec import encode_actions
from indextables.log.commit import gate
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.versions import list_log, version_path
from indextables.maintenance import after_write
from indextables.sql import execute
from indextables.storage.base import open_store
from indextables.table.table import Table
from indextables.table.verbs import Verbs
from indextables.verbs import REGISTRY

PACKAGE = Path(indextables.__file__).parent
XREF = AddXRef("_xrefsplits/abcd/xref-1.split", "xref-1", ("a.split",), 1, 10)


def rows(first: int) -> pa.Table:
    numbers = range(first, first + 10)
    return pa.table({"id": list(numbers), "text": [f"word{n}" for n in numbers], "p": ["x"] * 10})


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with splits, indexes, versions and orphans."""
    path = tmp_path_factory.mktemp("gate") / "table"
    options = {"checkpoint.enabled": False}
    for first in (0, 10, 20):
        indextables.write(rows(first), str(path), partition_by="p", text="text", options=options)
    table = indextables.open(str(path), options=options)
    table.create_index("id")
    table.build_xref()
    store = open_store(str(path))
    store.put("p=x/orphan.split", b"belongs to a feature nobody here knows")
    store.put("_columnidx/orphan.idx", b"the same")
    return path


@pytest.fixture(params=["version", "feature"])
def newer(request: pytest.FixtureRequest, template: Path, tmp_path: Path) -> Path:
    """A table that a newer writer raised."""
    path = Path(shutil.copytree(template, tmp_path / "table"))
    raise_writer(path, request.param)
    return path


def raise_writer(path: Path, how: str) -> None:
    """What a newer writer commits: a protocol, and nothing a reader must know."""
    store = open_store(str(path))
    cache.SHARED.invalidate()
    protocol = TransactionLog.open(str(path)).snapshot().protocol.to_dict()
    if how == "version":
        protocol["minWriterVersion"] = 5
    else:
        protocol["writerFeatures"] = [*(protocol["writerFeatures"] or ()), "timeMachines"]
    version = list_log(store).newest + 1
    store.put(version_path(version), encode_actions([Protocol.from_dict(protocol)]))
    cache.SHARED.invalidate()


def tree(path: Path) -> dict[str, tuple[int, int]]:
    """Every file of the table's folder with its size and time."""
    files = (p for p in path.parent.rglob("*") if p.is_file())
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in files}


def recorded(path: Path) -> tuple[TransactionLog, RecordingStore]:
    store = RecordingStore(open_store(str(path)))
    settings = Config({"purge.retentionCheckEnabled": False, "xref.autoIndex.enabled": True})
    return TransactionLog(str(path), store, settings), store


def refused(path: Path, call: Callable[[TransactionLog], object]) -> None:
    log, store = recorded(path)
    before = tree(path)
    with pytest.raises(ProtocolError, match="write"):
        call(log)
    assert [c for c in store.calls if c.op in WRITES] == []
    assert tree(path) == before


def harmless(path: Path, call: Callable[[TransactionLog], object]) -> None:
    log, store = recorded(path)
    before = tree(path)
    call(log)
    assert [c for c in store.calls if c.op in WRITES] == []
    assert tree(path) == before


# -- verbs of a table -----------------------------------------------------------------------------

CHANGING_VERBS: dict[str, tuple[Any, ...]] = {
    "build_xref": (),
    "define_index": ("text",),
    "build_companion": ("parquet", "source"),
    "sync": (),
    "index_splits": (),
    "index_blocks": (),
    "create_index": ("text",),
    "reindex": (),
    "rebuild_index": ("id",),
    "drop_index": ("id",),
    "prune_stale_indexes": (),
    "merge": (),
    "purge": (),
    "checkpoint": (),
    "drop_partitions": ("p = 'x'",),
    "delete": ("id = 3",),
    "update": ("id = 3", {"text": "'x'"}),
    "upsert": (rows(3), "id"),
    "reorg": (),
    "erase": ("id = 3",),
    "truncate": (),
    "restore": (1,),
    "truncate_time_travel": (),
    "compact": (),
    "repair_log": ("elsewhere/_transaction_log",),
    "add_column": ("fresh", "int"),
    "rename_column": ("text", "words"),
    "drop_column": ("text",),
    "alter_column_type": ("text", "string"),
    "set_properties": ({"a": "b"},),
    "unset_properties": (["a"],),
}
READING_VERBS: dict[str, tuple[Any, ...]] = {
    "describe_companion": (),
    "xrefs": (),
    "xref_search": ("id = 1",),
    "xref_coverage": (),
    "indexes": (),
    "index_coverage": (),
    "index_lookup": ("id",),
    "stats_coverage": (),
    "describe_history": (),
    "show_partitions": (),
    "analyze_table": (),
    "doctor": (),
    "component_sizes": (),
    "describe_indexes": (),
    "describe_log": (),
    "describe_state": (),
    "describe_xrefs": (),
    "disk_cache": (),
    "environment": (),
    "flush_disk_cache": (),
    "flush_searcher_cache": (),
    "invalidate_cache": (),
    "prewarm": (),
    "storage_stats": (),
}


def table_of(log: TransactionLog) -> Table:
    return Table(log, log.snapshot())


def test_every_verb_of_a_table_is_listed_here() -> None:
    public = {n for n, v in vars(Verbs).items() if not n.startswith("_") and callable(v)}
    assert public == CHANGING_VERBS.keys() | READING_VERBS.keys()


@pytest.mark.parametrize("verb", CHANGING_VERBS)
def test_verbs_that_change_a_table_are_refused(newer: Path, verb: str) -> None:
    refused(newer, lambda log: getattr(table_of(log), verb)(*CHANGING_VERBS[verb]))


@pytest.mark.parametrize("verb", READING_VERBS)
def test_verbs_that_read_go_on(newer: Path, verb: str) -> None:
    more = {"eq": 3} if verb == "index_lookup" else {}
    harmless(newer, lambda log: getattr(table_of(log), verb)(*READING_VERBS[verb], **more))


@pytest.mark.parametrize("verb", ["purge", "truncate_time_travel", "delete", "build_xref"])
def test_a_dry_run_announces_nothing_that_would_be_refused(newer: Path, verb: str) -> None:
    arguments = CHANGING_VERBS[verb]
    refused(newer, lambda log: getattr(table_of(log), verb)(*arguments, dry_run=True))


def test_rows_are_still_read(newer: Path) -> None:
    harmless(newer, lambda log: table_of(log).to_arrow("id < 5"))
    assert indextables.open(str(newer)).count() == 30


# -- functions ------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[TransactionLog], object]] = {
    "checkpoint": maintenance.checkpoint,
    "compact": lambda log: maintenance.checkpoint(log, compact=True),
    "delete_rows": lambda log: maintenance.delete_rows(log, "id = 3"),
    "update_rows": lambda log: maintenance.update_rows(log, "id = 3", {"text": "'x'"}),
    "reorg_splits": maintenance.reorg_splits,
    "erase_rows": lambda log: maintenance.erase_rows(log, "id = 3"),
    "drop_partitions": lambda log: maintenance.drop_partitions(log, "p = 'x'"),
    "merge_splits": maintenance.merge_splits,
    "purge": lambda log: maintenance.purge(log, older_than_hours=0),
    "repair_log": lambda log: maintenance.repair_log(
        f"{log.path}/_transaction_log", f"{log.path}-new/_transaction_log"
    ),
    "restore_to_version": lambda log: maintenance.restore_to_version(log, 1),
    "add_column": lambda log: maintenance.add_column(log, "fresh", "int"),
    "alter_column": lambda log: maintenance.alter_column(log, "text", comment="words"),
    "alter_column_type": lambda log: maintenance.alter_column_type(log, "text", "string"),
    "drop_column": lambda log: maintenance.drop_column(log, "text"),
    "rename_column": lambda log: maintenance.rename_column(log, "text", "words"),
    "set_properties": lambda log: maintenance.set_properties(log, {"a": "b"}),
    "unset_properties": lambda log: maintenance.unset_properties(log, ["a"]),
    "truncate_table": maintenance.truncate_table,
    "truncate_time_travel": maintenance.truncate_time_travel,
}
QUESTIONS = {"describe_state", "doctor", "stats_coverage"}


def test_every_function_of_maintenance_is_listed_here() -> None:
    assert set(maintenance.__all__) == (FUNCTIONS.keys() - {"compact"}) | QUESTIONS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_change_a_table_are_refused(newer: Path, name: str) -> None:
    refused(newer, FUNCTIONS[name])
    assert not newer.with_name("table-new").exists()


def _removal(log: TransactionLog) -> RemoveXRef:
    known = log.list_xrefs()[0]
    return RemoveXRef(known.path, known.xref_id, 1)


LOG_METHODS: dict[str, Callable[[TransactionLog], object]] = {
    "commit": lambda log: log.commit(Transaction(None, "WRITE", actions=[XREF])),
    "checkpoint": lambda log: log.checkpoint(),
    "cleanup": lambda log: log.cleanup(retention_ms=-1),
    "settled": lambda log: log.settled(),
    "upgrade_protocol": lambda log: log.upgrade_protocol(),
    "writable_snapshot": lambda log: log.writable_snapshot(),
    "writable": lambda log: log.writable(log.snapshot()),
    "add_xref": lambda log: log.add_xref(XREF),
    "remove_xref": lambda log: log.remove_xref(log.list_xrefs()[0].path),
    "replace_xref": lambda log: log.replace_xref(_removal(log), XREF),
}
LOG_QUESTIONS = {
    *("open", "exists", "create", "begin", "table_id", "snapshot", "newest", "changes", "history"),
    *("committed", "invalidate_cache", "list_xrefs", "list_removed_xrefs"),
    *("get_xref_for_split", "get_splits_without_xref"),
}


def test_every_method_of_the_log_is_listed_here() -> None:
    public = {name for name, _ in inspect.getmembers(TransactionLog) if not name.startswith("_")}
    assert public == LOG_METHODS.keys() | LOG_QUESTIONS


@pytest.mark.parametrize("name", LOG_METHODS)
def test_methods_of_the_log_are_refused(newer: Path, name: str) -> None:
    refused(newer, LOG_METHODS[name])


INDEX_FUNCTIONS: dict[str, Callable[[TransactionLog], object]] = {
    "create_index": lambda log: columnindex.create_index(log, "text"),
    "define_index": lambda log: columnindex.define_index(log, "text"),
    "drop_index": lambda log: columnindex.drop_index(log, "id"),
    "index_splits": lambda log: columnindex.index_splits(log, force=True),
    "prune_stale_indexes": columnindex.prune_stale_indexes,
    "rebuild_index": lambda log: columnindex.rebuild_index(log, "id"),
}


def test_functions_of_column_indexes_that_take_a_log_are_listed_here() -> None:
    takes_log = {
        name
        for name in columnindex.__all__
        if inspect.isfunction(found := getattr(columnindex, name))
        and next(iter(inspect.signature(found).parameters), "") == "log"
    }
    assert (
        takes_log - {"index_coverage", "index_lookup", "describe_indexes"} == INDEX_FUNCTIONS.keys()
    )


@pytest.mark.parametrize("name", INDEX_FUNCTIONS)
def test_functions_of_column_indexes_are_refused(newer: Path, name: str) -> None:
    refused(newer, INDEX_FUNCTIONS[name])


def test_work_after_a_write_does_nothing(newer: Path) -> None:
    more = {"mergeOnWrite.enabled": True, "mergeOnWrite.async.enabled": False}
    more |= {"mergeOnWrite.minBatchesToTrigger": 1, "purgeOnWrite.enabled": True}
    more |= {"xref.autoIndex.enabled": True, "xref.autoIndex.minSplitsToTrigger": 1}
    more |= {"xref.autoIndex.minUncoveredSplitsToTrigger": 0, "xref.autoIndex.minIntervalMs": 0}
    more |= {"xref.keymap.enabled": True}
    more |= {"purgeOnWrite.triggerAfterWrites": 1, "mergeOnWrite.batchCpuFraction": 0.1}
    harmless(newer, lambda log: after_write.run_after_write(log, Config(more)))


# -- writes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_writes_are_refused_before_a_split_is_written(newer: Path, mode: str) -> None:
    refused(newer, lambda log: indextables.write(rows(50), log.path, mode=mode))


def test_a_write_that_leaves_the_table_alone_is_no_write(newer: Path) -> None:
    harmless(newer, lambda log: indextables.write(rows(50), log.path, mode="ignore"))


# -- commands -------------------------------------------------------------------------------------

SQL: dict[str, str] = {
    "MergeSplits": "MERGE SPLITS '{t}'",
    "Purge": "PURGE INDEXTABLE '{t}'",
    "DropPartitions": "DROP INDEXTABLES PARTITIONS FROM '{t}' WHERE p = 'x'",
    "Checkpoint": "CHECKPOINT INDEXTABLES '{t}'",
    "Compact": "COMPACT INDEXTABLES '{t}'",
    "TruncateTimeTravel": "TRUNCATE INDEXTABLES TIME TRAVEL '{t}'",
    "RepairLog": "REPAIR INDEXFILES TRANSACTION LOG '{t}/_transaction_log' AT LOCATION "
    "'{t}-new/_transaction_log'",
    "IndexCrossReferences": "INDEX CROSSREFERENCES FOR '{t}' FORCE REBUILD",
    "Delete": "DELETE FROM '{t}' WHERE id = 3",
    "Update": "UPDATE '{t}' SET text = 'x' WHERE id = 3",
    "Reorg": "REORG TABLE '{t}' APPLY (PURGE)",
    "Erase": "ERASE FROM '{t}' WHERE id = 3",
    "Truncate": "TRUNCATE TABLE '{t}'",
    "Restore": "RESTORE '{t}' TO VERSION 1",
    "SetProperties": "ALTER TABLE '{t}' SET TBLPROPERTIES ('a' = 'b')",
    "UnsetProperties": "ALTER TABLE '{t}' UNSET TBLPROPERTIES ('a')",
    "AddColumn": "ALTER TABLE '{t}' ADD COLUMN fresh int",
    "RenameColumn": "ALTER TABLE '{t}' RENAME COLUMN text TO words",
    "DropColumn": "ALTER TABLE '{t}' DROP COLUMN text",
    "AlterColumnType": "ALTER TABLE '{t}' ALTER COLUMN text TYPE string",
    "CreateIndex": "CREATE INDEX ON '{t}' (text)",
    "DropIndex": "DROP INDEX ON '{t}' (id)",
    "Reindex": "REINDEX '{t}'",
    "IndexSplits": "INDEX SPLITS FOR '{t}'",
    "BuildCompanion": "BUILD INDEXTABLES COMPANION FOR PARQUET 'source' AT LOCATION '{t}'",
    "SyncCompanion": "SYNC INDEXTABLES COMPANION '{t}'",
}


def test_every_verb_that_changes_a_table_is_listed_here() -> None:
    assert {kind.__name__ for kind in REGISTRY if kind.MUTATES} == SQL.keys()


@pytest.mark.parametrize("verb", SQL)
def test_commands_that_change_a_table_are_refused(newer: Path, verb: str) -> None:
    refused(newer, lambda log: execute(SQL[verb].format(t=log.path)))
    assert not newer.with_name("table-new").exists()


# Every place that writes to a store is listed with its guard in docs/reliability.md.


def test_marked_verbs_are_in_the_registry() -> None:
    import indextables.maintenance.properties
    import indextables.xref.builder  # noqa: F401

    assert set(gate.GATED) >= {
        "indextables.maintenance.merge.merge_splits",
        "indextables.maintenance.purging.purge",
        "indextables.maintenance.properties.set_properties",
        "indextables.xref.builder.XRefBuildManager.build_cross_references",
    }
