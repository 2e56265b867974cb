"""Every verb, every way things go: alone, empty, partitioned, raced by a writer, cut off, misused.

A verb is its SQL text and what it does to the rows, a dict of ids to days. A race lets another
writer commit just before the verb's own commit; the outcome must be that of one after the other, or
a refusal that changed nothing. A crash stops the verb at a call of the store, a delete of several
files half way; the table must then read as before or as after, and running the verb again ends it.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from store_doubles import CrashError

import indextables
from indextables import maintenance
from indextables.config import Config
from indextables.errors import CommitConflictError, IndexTablesError, MaintenanceError
from indextables.log.log import TransactionLog
from indextables.sql.executor import Session, run_statement
from indextables.sql.parser import TableName, parse
from indextables.storage.base import Store, open_store
from indextables.storage.wrapped import Call, WrappedStore
from indextables.verbs import Target

Rows = dict[int, str]
OPTIONS = {
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.xref.autoIndex.minSplitsToTrigger": "1",
    "spark.indextables.purge.retentionCheckEnabled": "false",
}
DAYS = ("mon", "tue")


def same(rows: Rows) -> Rows:
    return rows


def without(keep: Callable[[int, str], bool]) -> Callable[[Rows], Rows]:
    return lambda rows: {i: day for i, day in rows.items() if keep(i, day)}


@dataclass(frozen=True)
class Verb:
    """``text`` has ``{}`` for the table; ``on_empty`` is a word of the answer on an empty table."""

    text: str
    after: Callable[[Rows], Rows] = same
    on_empty: str = ""
    needs_partitions: bool = False
    may_conflict: bool = False


CHANGING = {
    "merge": Verb("MERGE SPLITS {}", on_empty="Table is empty"),
    "merge where": Verb("MERGE SPLITS {} WHERE day = 'mon'", needs_partitions=True),
    "purge": Verb(
        "PURGE INDEXTABLE {} OLDER THAN 0 HOURS TRANSACTION LOG RETENTION 0 HOURS",
        on_empty="Deleted 0 files",
    ),
    "drop": Verb(
        "DROP INDEXTABLES PARTITIONS FROM {} WHERE day = 'mon'",
        without(lambda i, day: day != "mon"),
        on_empty="No partition matches",
        needs_partitions=True,
    ),
    "delete": Verb("DELETE FROM {} WHERE id < 7", without(lambda i, day: i >= 7), "No row matches"),
    "update": Verb(
        "UPDATE {} SET day = 'sun' WHERE id < 7",
        lambda rows: {i: "sun" if i < 7 else day for i, day in rows.items()},
        "No row matches",
    ),
    "reorg": Verb("REORG TABLE {} APPLY (PURGE)", on_empty="No split has deleted rows"),
    "delete all": Verb("DELETE FROM {} WHERE TRUE", lambda rows: {}, "No row matches"),
    "truncate table": Verb("TRUNCATE TABLE {}", lambda rows: {}, "The table has no rows"),
    "restore": Verb("RESTORE {} TO VERSION 2", may_conflict=True),
    "checkpoint": Verb("CHECKPOINT INDEXTABLES {}", on_empty="SUCCESS"),
    "compact": Verb("COMPACT INDEXTABLES {}", on_empty="SUCCESS"),
    "truncate": Verb("TRUNCATE INDEXTABLES TIME TRAVEL {}", on_empty="SUCCESS"),
    "xref": Verb("INDEX CROSSREFERENCES FOR {}", may_conflict=True),
    "xref force": Verb("INDEX CROSSREFERENCES FOR {} FORCE REBUILD", may_conflict=True),
    "properties": Verb("ALTER TABLE {} SET TBLPROPERTIES ('owner' = 'me')", on_empty="SUCCESS"),
    "create index": Verb("CREATE INDEX ON {} (id)", may_conflict=True),
    "drop index": Verb("DROP INDEX ON {} (x)", may_conflict=True),
    "reindex": Verb("REINDEX {}", may_conflict=True),
    "index splits": Verb("INDEX SPLITS FOR {} (x) FORCE REBUILD", may_conflict=True),
}
READING = {
    "purge dry": Verb("PURGE INDEXTABLE {} OLDER THAN 0 HOURS DRY RUN"),
    "truncate dry": Verb("TRUNCATE INDEXTABLES TIME TRAVEL {} DRY RUN"),
    "xref dry": Verb("INDEX CROSSREFERENCES FOR {} FORCE REBUILD DRY RUN"),
    "index splits dry": Verb("INDEX SPLITS FOR {} (x) FORCE REBUILD DRY RUN"),
    "state": Verb("DESCRIBE INDEXTABLES STATE {}"),
    "log": Verb("DESCRIBE INDEXTABLES TRANSACTION LOG {}", on_empty="metadata"),
    "log all": Verb("DESCRIBE INDEXTABLES TRANSACTION LOG {} INCLUDE ALL", on_empty="metadata"),
    "xrefs": Verb("DESCRIBE INDEXTABLES TRANSACTION LOG {} XREFS", on_empty="Coverage: 0/0"),
    "sizes": Verb("DESCRIBE INDEXTABLES COMPONENT SIZES {}"),
    "coverage": Verb("DESCRIBE INDEXTABLES STATS COVERAGE {}", on_empty="word"),
    "indexes": Verb("DESCRIBE INDEXTABLES INDEXES {}"),
    "history": Verb("DESCRIBE HISTORY {}", on_empty="CREATE TABLE"),
    "analyze": Verb("ANALYZE TABLE {} COMPUTE STATISTICS"),
    "doctor": Verb("DOCTOR {}", on_empty="0 splits are sound"),
    "prewarm": Verb("PREWARM INDEXTABLES CACHE {}", on_empty="success"),
    "invalidate": Verb("INVALIDATE INDEXTABLES TRANSACTION LOG CACHE FOR {}"),
}
VERBS = CHANGING | READING


# -- tables --------------------------------------------------------------------------------------


def batch(first: int, day: str, n: int = 4) -> pa.Table:
    ids = list(range(first, first + n))
    return pa.table(
        {
            "id": ids,
            "word": [f"w{i} all" for i in ids],
            "x": [i % 3 for i in ids],
            "y": [i % 2 for i in ids],
            "day": [day] * n,
        }
    )


def build(path: str, partitioned: bool) -> None:
    """Four splits; one without a cross-reference, all of them without the index of ``y``."""
    by = ["day"] if partitioned else []

    def append(i: int) -> None:
        data = batch(4 * i, DAYS[i % 2])
        indextables.write(data, path, partition_by=by, text=["word"], options=OPTIONS)

    for i in range(3):
        append(i)
    table = indextables.open(path, options=OPTIONS)
    table.create_index("x")
    table.delete("id = 11")
    table.refresh().build_xref()
    append(3)
    table.define_index("y")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Path]:
    places: dict[bool, Path] = {}

    def built(partitioned: bool) -> Path:
        if partitioned not in places:
            places[partitioned] = tmp_path_factory.mktemp("matrix") / "table"
            build(str(places[partitioned]), partitioned)
        return places[partitioned]

    return built


@pytest.fixture
def table(template: Callable[[bool], Path], tmp_path: Path) -> Callable[..., str]:
    made = iter(range(1000))

    def copy(partitioned: bool = True) -> str:
        place = tmp_path / f"table{next(made)}"
        shutil.copytree(template(partitioned), place)
        return str(place)

    return copy


def run(verb: Verb, path: str, store: Store | None = None) -> pa.Table:
    session = _Session(store)
    return run_statement(parse(verb.text.format(f"'{path}'")), session)


class _Session(Session):
    def __init__(self, store: Store | None) -> None:
        super().__init__(None, None, OPTIONS)
        self.store = store

    def target(self, name: TableName | None) -> Target:
        assert name is not None
        log = TransactionLog.open(self.path(name), config=self.config, store=self.store)
        log.invalidate_cache()
        return Target.of(log)


def rows(path: str, version: int | None = None) -> Rows:
    TransactionLog.open(path).invalidate_cache()
    found = indextables.open(path, version).to_arrow(columns=["id", "day"])
    ids = found["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, found["day"].to_pylist(), strict=True))


def before(verb: Verb, path: str) -> tuple[Rows, Rows]:
    """The rows now, and what the verb makes of them."""
    now = rows(path)
    return now, (rows(path, 2) if verb.text.startswith("RESTORE") else verb.after(now))


def contents(path: str) -> dict[str, bytes]:
    files = (p for p in Path(path).rglob("*") if p.is_file())
    return {str(p.relative_to(path)): p.read_bytes() for p in files}


# -- alone ---------------------------------------------------------------------------------------


slow = pytest.mark.slow
SHAPES = [(name, True) for name in VERBS]
SHAPES += [(name, False) for name, verb in VERBS.items() if not verb.needs_partitions]
LONG = [pytest.param(*shape, marks=() if shape[1] else slow) for shape in SHAPES]


@pytest.mark.parametrize(("name", "partitioned"), LONG)
def test_alone_and_again(table: Callable[..., str], name: str, partitioned: bool) -> None:
    verb = VERBS[name]
    path = table(partitioned)
    _, expected = before(verb, path)
    files = contents(path)
    assert run(verb, path).num_rows >= 1
    assert rows(path) == expected
    if name in READING:
        assert contents(path) == files
    again = verb.text.replace("CREATE INDEX ON {} (id)", "REINDEX {}")
    if name != "drop index":
        run(Verb(again), path)
    assert rows(path) == expected
    sound(path)


def sound(path: str) -> None:
    """Nothing is damaged, and every index that is left answers right."""
    findings = indextables.open(path, options=OPTIONS).doctor()
    assert not [f for f in findings if f.severity == "error"]
    options = {**OPTIONS, "spark.indextables.xref.query.minSplitsForXRef": "1"}
    opened = indextables.open(path, options=options)
    for i, day in list(rows(path).items())[::6]:
        assert opened.to_arrow(f"word TEXTSEARCH 'w{i}'")["day"].to_pylist() == [day]
        assert opened.count(f"x = {i % 3} AND id = {i}") == 1
        assert opened.count(f"id = {i}") == 1


@pytest.mark.parametrize(("name", "partitioned"), [s for s in LONG if s.values[0] != "restore"])
def test_on_an_empty_table(tmp_path: Path, name: str, partitioned: bool) -> None:
    verb = VERBS[name]
    path = str(tmp_path / "empty")
    by = ["day"] if partitioned else []
    TransactionLog.create(path, batch(0, "mon").schema, partition_columns=by)
    if "(x)" in verb.text:
        indextables.open(path).define_index("x")
    found = run(verb, path)
    assert verb.on_empty in str(found.to_pylist())
    assert indextables.open(path).count() == 0


# -- raced ---------------------------------------------------------------------------------------


class RacingStore(WrappedStore):
    """Lets ``other`` happen just before the first commit that goes through this store."""

    def __init__(self, inner: Store, other: Callable[[], None], when: Callable[[Call], bool]):
        super().__init__(inner)
        self.other: Callable[[], None] | None = other
        self.when = when

    def _around(self, call: Call, run: Callable[[], Any]) -> Any:
        if self.other is not None and self.when(call):
            other, self.other = self.other, None
            other()
        return run()


def is_commit(call: Call) -> bool:
    return call.op == "put_if_absent" and call.path.startswith("_transaction_log/0")


def is_listing(call: Call) -> bool:
    return call.op in ("list", "read_many")


OTHERS: dict[str, tuple[Callable[[str], Any], Callable[[Rows], Rows]]] = {
    "append": (
        lambda path: indextables.write(batch(100, "mon"), path, options=OPTIONS),
        lambda rows: rows | dict.fromkeys(range(100, 104), "mon"),
    ),
    "delete": (
        lambda path: indextables.open(path).delete("id IN (3, 8)"),
        without(lambda i, day: i not in (3, 8)),
    ),
    "merge": (lambda path: indextables.open(path).merge(), same),
    "xref": (lambda path: indextables.open(path).build_xref(force=True), same),
}


ON_THE_LOG_ALONE = ("purge", "truncate", "checkpoint", "compact")
SHORT_RACES = dict.fromkeys(("delete", "xref", "create index", "reindex", "restore"), "merge")
RACES = [
    pytest.param(name, other, marks=() if other == SHORT_RACES.get(name, "append") else slow)
    for name in CHANGING
    for other in OTHERS
]
RACES += [
    pytest.param(name, "merge", marks=() if name in ("log", "doctor", "xrefs", "sizes") else slow)
    for name in READING
]


@pytest.mark.parametrize(("name", "other"), RACES)
def test_with_a_concurrent_writer(table: Callable[..., str], name: str, other: str) -> None:
    verb, (act, also) = VERBS[name], OTHERS[other]
    path = table()
    now, expected = before(verb, path)
    when = is_commit if name in CHANGING and name not in ON_THE_LOG_ALONE else is_listing
    store = RacingStore(open_store(path), lambda: act(path), when)
    try:
        run(verb, path, store)
    except CommitConflictError:
        assert verb.may_conflict
        assert rows(path) == also(now)
    else:
        assert store.other is None or name == "invalidate"
        if store.other is not None:
            act(path)
        serial = verb.after(also(now)) if name != "restore" else also(expected)
        assert rows(path) == serial
    sound(path)


# -- cut off -------------------------------------------------------------------------------------


class CrashingStore(WrappedStore):
    """Dies at the n-th call that writes; a delete has then removed half of its files."""

    def __init__(self, inner: Store, at: int) -> None:
        super().__init__(inner)
        self.left = at

    def _around(self, call: Call, run: Callable[[], Any]) -> Any:
        if call.op not in ("put", "put_file", "put_if_absent", "delete"):
            return run()
        self.left -= 1
        if self.left == 0 and call.op != "delete":
            raise CrashError(call.path)
        return run()

    def delete(self, paths: Any) -> Any:
        given = [paths] if isinstance(paths, str) else list(paths)
        self.left -= 1
        if self.left == 0:
            self.inner.delete(given[: len(given) // 2])
            raise CrashError("in the middle of a delete")
        return self.inner.delete(given)


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=slow)])
@pytest.mark.parametrize("name", CHANGING)
def test_cut_off_at_a_write(table: Callable[..., str], name: str, every: int) -> None:
    verb = CHANGING[name]
    for at in range(1, 100, every):
        path = table()
        if name == "purge":
            maintenance.merge_splits(TransactionLog.open(path))
            maintenance.truncate_time_travel(TransactionLog.open(path))
        now, expected = before(verb, path)
        try:
            run(verb, path, CrashingStore(open_store(path), at))
        except CrashError:
            assert rows(path) in (now, expected)
            finish(verb, path)
            assert rows(path) == expected
            sound(path)
            shutil.rmtree(path)
        else:
            assert at > 1
            return
    raise AssertionError("the verb never ended")


def finish(verb: Verb, path: str) -> None:
    """Run the verb again; one that did its work before the crash may say so."""
    with contextlib.suppress(MaintenanceError):
        run(verb, path)
        return
    assert "INDEX ON" in verb.text
    run(Verb("REINDEX {}"), path)


def crashing(at: int, path: str, options: Any = None) -> Store:
    return CrashingStore(open_store(path, options), at)


def test_a_repair_cut_off_is_no_table_and_may_be_repeated(
    table: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from indextables.maintenance import logwork

    path, target = table(), str(tmp_path / "repaired")
    logs = (f"{path}/_transaction_log", f"{target}/_transaction_log")
    for at in (1, 2):
        with monkeypatch.context() as patched:
            patched.setattr(logwork, "open_store", partial(crashing, at))
            with pytest.raises(CrashError):
                maintenance.repair_log(*logs)
        with pytest.raises(IndexTablesError):
            indextables.open(target).count()
    assert maintenance.repair_log(*logs).status == "SUCCESS"
    assert TransactionLog.open(target).snapshot().num_files == len(
        indextables.open(path).snapshot.files()
    )


# -- misused -------------------------------------------------------------------------------------

REFUSED = [
    ("MERGE SPLITS {} TARGET SIZE 10", "too small"),
    ("MERGE SPLITS {} MAX DEST SPLITS 0", "at least 1"),
    ("MERGE SPLITS {} MAX SOURCE SPLITS PER MERGE 1", "at least 2"),
    ("MERGE SPLITS {} MAX SOURCE SPLITS PER MERGE 0", "at least 2"),
    ("MERGE SPLITS {} WHERE id = 3", "partition columns"),
    ("MERGE SPLITS {} WHERE 1 = 1", "partition columns"),
    ("MERGE SPLITS {} PRECOMMIT", "PRECOMMIT"),
    ("PURGE INDEXTABLE {} OLDER THAN 23 HOURS", "minimum of 24"),
    ("DROP INDEXTABLES PARTITIONS FROM {} WHERE id = 3", "partition columns"),
    ("DROP INDEXTABLES PARTITIONS FROM {} WHERE nope = 3", "nope"),
    ("DELETE FROM {} WHERE nope = 3", "nope"),
    ("RESTORE {} TO VERSION 99", "99"),
    ("RESTORE {} TO TIMESTAMP '1999-01-01'", "1999"),
    ("RESTORE {} TO TIMESTAMP 'noon'", "noon"),
    ("INDEX CROSSREFERENCES FOR {} WHERE id = 3", "partition columns"),
    ("INDEX CROSSREFERENCES FOR {} MAX XREF BUILDS 0", "at least 1"),
    ("CREATE INDEX ON {} (nope)", "nope"),
    ("CREATE INDEX ON {} (x)", "already exists"),
    ("DROP INDEX ON {} (id)", "id"),
    ("REINDEX {} ON (nope)", "nope"),
    ("INDEX SPLITS FOR {} (nope)", "nope"),
    ("INDEX SPLITS FOR {} WHERE id = 3", "partition columns"),
    ("PREWARM INDEXTABLES CACHE {} FOR SEGMENTS (nope)", "FASTFIELD"),
    ("PREWARM INDEXTABLES CACHE {} WITH PERWORKER PARALLELISM OF 0", "at least 1"),
    ("PREWARM INDEXTABLES CACHE {} WHERE id = 3", "partition columns"),
    ("DESCRIBE INDEXTABLES COMPONENT SIZES {} WHERE id = 3", "partition columns"),
    ("ALTER TABLE {} SET TBLPROPERTIES ('minReaderVersion' = 'three')", "number"),
    ("ALTER TABLE {} SET TBLPROPERTIES ('minReaderVersion' = '99')", "99"),
    ("REPAIR INDEXFILES TRANSACTION LOG {} AT LOCATION 'x/_transaction_log'", "log folder"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_wrong_input_changes_nothing(table: Callable[..., str], text: str, words: str) -> None:
    path = table()
    files = contents(path)
    with pytest.raises(IndexTablesError, match=words):
        indextables.sql(None, text.format(f"'{path}'"))
    assert contents(path) == files


@pytest.mark.parametrize(
    "text",
    [
        "MERGE SPLITS {} WHERE day = 'mon'",
        "DROP INDEXTABLES PARTITIONS FROM {} WHERE day = 'mon'",
        "INDEX CROSSREFERENCES FOR {} WHERE day = 'mon'",
        "PREWARM INDEXTABLES CACHE {} WHERE day = 'mon'",
    ],
)
def test_partition_predicates_need_partitions(table: Callable[..., str], text: str) -> None:
    with pytest.raises(IndexTablesError, match="without partitions"):
        indextables.sql(None, text.format(f"'{table(False)}'"))


@pytest.mark.parametrize("name", VERBS)
def test_no_table(tmp_path: Path, name: str) -> None:
    with pytest.raises(IndexTablesError, match="nowhere"):
        run(VERBS[name], str(tmp_path / "nowhere"))
    assert not list(tmp_path.iterdir())


def test_dry_delete_says_what_would_go(table: Callable[..., str]) -> None:
    path = table()
    files = contents(path)
    result = maintenance.delete_rows(TransactionLog.open(path), "id < 7", dry_run=True)
    assert result.status == "DRY_RUN"
    assert contents(path) == files


def test_dry_runs_foresee_what_happens(table: Callable[..., str]) -> None:
    path = table()
    config = Config.of(OPTIONS)
    log = TransactionLog.open(path, config=config)
    maintenance.merge_splits(log)
    dry = maintenance.truncate_time_travel(log, dry_run=True)
    wet = maintenance.truncate_time_travel(log)
    assert (dry.versions_deleted, dry.checkpoints_deleted) == (
        wet.versions_deleted,
        wet.checkpoints_deleted,
    )
    asked = {"older_than_hours": 0, "log_retention_hours": 0, "config": config}
    found = maintenance.purge(log, dry_run=True, **asked).metrics
    done = maintenance.purge(log, **asked).metrics
    assert found.orphaned_files_found == done.orphaned_files_deleted > 0
    assert (found.dry_run, done.dry_run) == (True, False)
