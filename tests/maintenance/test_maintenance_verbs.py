"""The verbs on real tables: rows kept, conflicts met, crashes survived, damage found."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from store_doubles import CrashError, Fault, FaultKind, FaultyStore

import indextables
from indextables import maintenance
from indextables.config import Config
from indextables.errors import CommitConflictError, MaintenanceError, PlanningError
from indextables.log.log import TransactionLog
from indextables.maintenance.describe import flush_searcher_cache
from indextables.maintenance.merge_plan import MergeLimits, plan_merges
from indextables.maintenance.purging import needed_files
from indextables.maintenance.rewrite import run_locally
from indextables.splits.lookup.colindex import opening
from indextables.splits.read import reader as readers
from indextables.splits.read.workspace import workspace
from indextables.storage.base import open_store
from indextables.xref import cache as xref_cache
from indextables.xref.keymaps import catalog

HOUR = 3_600_000
QUIET = {"spark.indextables.xref.autoIndex.enabled": "false"}


def batch(first: int, n: int = 5, day: str = "mon") -> pa.Table:
    ids = list(range(first, first + n))
    return pa.table(
        {"id": ids, "word": [f"w{i} common" for i in ids], "x": [i / 2 for i in ids],
         "day": [day] * n}
    )  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "table")
    for i in range(8):
        day = "mon" if i % 2 else "tue"
        indextables.write(
            batch(i * 5, day=day), place, partition_by=["day"], text=["word"], options=QUIET
        )
    return place


def ids(path: str, where: str | None = None) -> list[int]:
    return sorted(indextables.open(path).to_arrow(where=where, columns=["id"])["id"].to_pylist())


# -- merge ---------------------------------------------------------------------------------------


def test_merge_keeps_rows_statistics_and_order(path: str) -> None:
    result = indextables.open(path).merge()
    assert result.metrics.status == "success"
    assert (result.metrics.merged_files, result.metrics.merge_groups) == (8, 2)
    assert ids(path) == list(range(40))
    table = indextables.open(path)
    for add in table.snapshot.files():
        assert add.min_values is not None
        assert int(add.min_values["id"]) in (0, 5)
        assert add.num_records == 20
        assert add.num_merge_ops == 1
    assert table.count("word TEXTSEARCH 'w17'") == 1
    assert indextables.open(path).merge().metrics.status == "no_action"


def test_merge_never_crosses_partitions_and_honours_limits(path: str) -> None:
    result = indextables.open(path).merge(
        where="day = 'mon'", max_source_splits=2, max_dest_splits=1
    )
    assert result.metrics.merge_groups >= 1
    files = indextables.open(path).snapshot.files()
    assert sum(1 for f in files if f.partition_values["day"] == "tue") == 4
    assert ids(path) == list(range(40))


def test_merge_plan_rules() -> None:
    from indextables.log.actions import AddFile

    def file(name: str, size: int, age: int, part: str = "a") -> AddFile:
        return AddFile(name, {"p": part}, size, age, True)

    target = 10 << 20
    limits = MergeLimits(target, None, 3, 0.45)
    files = [file(f"s{i}", 2 << 20, i) for i in range(7)] + [file("big", 5 << 20, 0)]
    groups = plan_merges(files, limits)
    assert [len(g.sources) for g in groups] == [3, 3]
    assert [f.path for f in groups[0].sources] == ["s0", "s1", "s2"]
    mixed = [file("a1", 1, 1, "a"), file("b1", 1, 2, "b")]
    assert plan_merges(mixed, limits) == []


def test_a_split_that_cannot_be_read_is_skipped_and_cools_down(path: str) -> None:
    table = indextables.open(path)
    victim = next(f for f in table.snapshot.files() if f.partition_values["day"] == "mon")
    file = Path(path) / victim.path
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    raw[40] ^= 0xFF
    file.write_bytes(bytes(raw))
    result = table.merge()
    assert result.metrics.status in ("partial_success", "error")
    snapshot = indextables.open(path).snapshot
    skip = snapshot.skips[victim.path]
    assert (skip.operation, skip.skip_count) == ("merge", 1)
    assert skip.retry_after > time.time() * 1000
    assert snapshot.index_of(victim.path) is not None


def test_two_merges_of_one_table(path: str) -> None:
    log = TransactionLog.open(path)
    done = False

    def slow(tasks):  # another merge lands while ours has written but not committed
        nonlocal done
        results = list(run_locally(tasks))
        if not done:
            done = True
            indextables.open(path).merge()
        yield from results

    result = maintenance.merge_splits(log, run=slow)
    assert result.metrics.status in ("success", "no_action")
    assert ids(path) == list(range(40))
    assert len(indextables.open(path).snapshot.files()) == 2


SCRIPT = """
import sys
import indextables
from indextables.config import Config
from indextables.maintenance import rewrite

print("started", flush=True)
rewrite.MOST_BYTES_IN_PROCESS = 0
done = indextables.open(sys.argv[1]).merge()
print(done.metrics.status, done.metrics.merge_groups)
"""


@pytest.mark.slow
def test_processes_do_not_run_the_callers_script_again(path: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    told = subprocess.run(
        [sys.executable, str(script), path], capture_output=True, text=True, timeout=120, check=True
    )
    assert told.stdout.split() == ["started", "success", "2"]
    assert ids(path) == list(range(40))


# -- delete, restore, drop -----------------------------------------------------------------------


@pytest.mark.parametrize(("share", "again"), [(0, 1), (0.5, 0)])
def test_delete_rewrites_only_what_it_must(path: str, share: float, again: int) -> None:
    before = {f.path for f in indextables.open(path).snapshot.files()}
    table = indextables.open(path, options={"deletionVector.maxShare": share})
    result = table.delete("id IN (3, 4) OR id BETWEEN 10 AND 14")
    assert (result.rows_deleted, result.splits_rewritten, result.splits_removed) == (7, again, 1)
    after = {f.path for f in indextables.open(path).snapshot.files()}
    assert len(before & after) == 7 - again
    assert ids(path) == [i for i in range(40) if i not in (3, 4, *range(10, 15))]


def test_delete_by_text_null_and_nothing(path: str) -> None:
    assert indextables.open(path).delete("word TEXTSEARCH 'w7'").rows_deleted == 1
    assert indextables.open(path).delete("id = 999").status == "no_action"
    assert indextables.open(path).delete("id = NULL").status == "no_action"
    assert indextables.open(path).delete("x > 18", dry_run=True).status == "DRY_RUN"
    assert len(ids(path)) == 39
    assert indextables.open(path).truncate().rows_deleted == 39
    assert indextables.open(path).count() == 0


def test_delete_meets_a_concurrent_append(path: str) -> None:
    log = TransactionLog.open(path, config=Config({"deletionVector.maxShare": 0}))
    raced = False

    def run(tasks):
        nonlocal raced
        results = list(run_locally(tasks))
        if not raced:
            raced = True
            indextables.write(batch(3, 1, "mon"), path, options=QUIET)
        yield from results

    maintenance.delete_rows(log, "id = 3", run=run)
    assert raced
    assert 3 not in ids(path)


def test_restore_brings_rows_back(path: str) -> None:
    indextables.open(path).delete("id < 20")
    result = indextables.open(path).restore(8)
    assert (result.status, result.restored_version) == ("success", 8)
    assert ids(path) == list(range(40))
    assert indextables.open(path).restore(8).status == "no_action"


def test_restore_refuses_what_was_purged(path: str) -> None:
    table = indextables.open(path)
    gone = table.snapshot.files()[0].path
    table.truncate()
    (Path(path) / gone).unlink()
    with pytest.raises(MaintenanceError, match="purged"):
        indextables.open(path).restore(8)


def test_drop_partitions(path: str) -> None:
    result = indextables.open(path).drop_partitions("day = 'mon'")
    assert (result.partitions_dropped, result.splits_removed) == (1, 4)
    assert indextables.open(path).drop_partitions("day = 'sun'").status == "no_action"
    assert len(ids(path)) == 20


# -- purge ---------------------------------------------------------------------------------------


def old(path: str, days: int = 60) -> int:
    """A moment at which everything in the table is that many days old."""
    return int(time.time() * 1000) + days * 24 * HOUR


def test_purge_protects_every_readable_version(path: str) -> None:
    indextables.open(path).merge()
    log = TransactionLog.open(path)
    result = maintenance.purge(log, older_than_hours=24, now_ms=old(path))
    assert result.metrics.orphaned_files_deleted == 0
    assert ids(path) == list(range(40))
    assert indextables.open(path, version=8).count() == 40


def test_purge_after_time_travel_is_given_up(path: str) -> None:
    table = indextables.open(path)
    table.merge()
    table.refresh().truncate_time_travel()
    log = TransactionLog.open(path)
    log.invalidate_cache()
    dry = maintenance.purge(log, older_than_hours=24, now_ms=old(path), dry_run=True)
    assert dry.metrics.orphaned_files_found == 8
    assert len(list(Path(path).rglob("*.split"))) == 10
    result = maintenance.purge(log, older_than_hours=24, now_ms=old(path))
    assert result.metrics.orphaned_files_deleted == 8
    assert ids(path) == list(range(40))


def test_purge_counts_age_from_the_removal(path: str) -> None:
    table = indextables.open(path)
    table.merge()
    table.refresh().truncate_time_travel()
    log = TransactionLog.open(path)
    log.invalidate_cache()
    result = maintenance.purge(log, older_than_hours=24)
    assert result.metrics.orphaned_files_found == 0


def test_purge_deletes_aborted_writes_only_when_old(path: str) -> None:
    stray = Path(path) / "part-stray.split"
    stray.write_bytes(b"x")
    foreign = Path(path) / "notes.txt"
    foreign.write_text("keep me")
    log = TransactionLog.open(path)
    assert maintenance.purge(log).metrics.orphaned_files_found == 0
    result = maintenance.purge(log, now_ms=old(path))
    assert result.metrics.orphaned_files_deleted == 1
    assert not stray.exists()
    assert foreign.exists()


def test_purge_refuses_short_retentions(path: str) -> None:
    with pytest.raises(MaintenanceError, match="minimum of 24"):
        indextables.open(path).purge(older_than_hours=1)


def test_needed_files_cover_all_readable_versions(path: str) -> None:
    indextables.open(path).delete("id < 7")
    indextables.open(path).merge()
    log = TransactionLog.open(path)
    needed = needed_files(log).listed
    for version in range(log.snapshot().version + 1):
        assert set(log.snapshot(version=version).paths.to_pylist()) <= needed


# -- log work ------------------------------------------------------------------------------------


def test_checkpoint_state_and_truncate(path: str) -> None:
    table = indextables.open(path)
    assert table.checkpoint().num_files == 8
    state = maintenance.describe_state(table.log)
    assert (state.format, state.num_files, state.status) == ("avro-state", 8, "OK")
    dry = table.truncate_time_travel(dry_run=True)
    assert dry.status == "DRY_RUN"
    assert indextables.open(path, version=3).count() == 15
    done = table.truncate_time_travel()
    assert done.versions_deleted == dry.versions_deleted == 7
    assert ids(path) == list(range(40))


def test_repair_leaves_missing_splits_out(path: str, tmp_path: Path) -> None:
    snapshot = indextables.open(path).snapshot
    (Path(path) / snapshot.files()[0].path).unlink()
    target = tmp_path / "repaired" / "_transaction_log"
    result = maintenance.repair_log(f"{path}/_transaction_log", str(target))
    assert (result.total_splits, result.valid_splits, result.missing_splits) == (8, 7, 1)
    shutil.rmtree(Path(path) / "_transaction_log")
    shutil.copytree(target, Path(path) / "_transaction_log")
    TransactionLog.open(path).invalidate_cache()
    assert len(ids(path)) == 35
    with pytest.raises(MaintenanceError, match="not empty"):
        maintenance.repair_log(f"{path}/_transaction_log", str(target))


def test_properties_raise_the_protocol(tmp_path: Path) -> None:
    place = str(tmp_path / "old")
    options = {**QUIET, "spark.indextables.protocol.version": 2}
    indextables.write(batch(0), place, options=options)
    log = TransactionLog.open(place)
    maintenance.set_properties(log, {"minReaderVersion": "3", "owner": "me"})
    snapshot = log.snapshot()
    assert snapshot.protocol.min_reader_version == 3
    assert snapshot.metadata.configuration["owner"] == "me"


# -- doctor --------------------------------------------------------------------------------------


def test_doctor_finds_nothing_in_a_sound_table(path: str) -> None:
    assert [f.severity for f in indextables.open(path).doctor()] == ["ok"]


def test_doctor_names_each_damage_and_its_remedy(path: str) -> None:
    files = indextables.open(path).snapshot.files()
    (Path(path) / files[0].path).unlink()
    with open(Path(path) / files[1].path, "ab") as file:
        file.write(b"more")
    damaged = Path(path) / files[2].path
    raw = bytearray(damaged.read_bytes())
    raw[10] ^= 1
    damaged.write_bytes(bytes(raw))
    (Path(path) / "part-orphan.split").write_bytes(b"x")
    found = indextables.open(path).doctor()
    checks = {f.check: f for f in found}
    assert set(checks) >= {"missing split", "split size", "split contents", "orphans"}
    assert checks["split contents"].path == files[2].path
    assert "PURGE" in checks["orphans"].remedy
    assert all(f.remedy for f in found)


# -- empty tables, crashes, tables of others -----------------------------------------------------


def test_empty_tables(tmp_path: Path) -> None:
    place = str(tmp_path / "empty")
    TransactionLog.create(place, batch(0).schema)
    table = indextables.open(place)
    assert table.merge().metrics.message == "Table is empty"
    assert table.purge().metrics.status == "SUCCESS"
    assert table.delete("id = 1").status == "no_action"
    assert table.checkpoint().num_files == 0
    assert [f.severity for f in table.doctor()] == ["ok"]


@pytest.mark.parametrize("verb", ["merge", "delete", "drop"])
def test_a_crash_leaves_the_old_or_the_new_table(path: str, verb: str) -> None:
    def run(log: TransactionLog) -> None:
        if verb == "merge":
            maintenance.merge_splits(log)
        elif verb == "delete":
            maintenance.delete_rows(log, "id < 7")
        else:
            maintenance.drop_partitions(log, "day = 'mon'")

    expected_after = {
        "merge": list(range(40)),
        "delete": list(range(7, 40)),
        "drop": [i for i in range(40) if (i // 5) % 2 == 0],
    }[verb]
    crashed = 0
    for at in range(1, 40, 3):
        copy = f"{path}-{verb}-{at}"
        shutil.copytree(path, copy)
        store = FaultyStore(open_store(copy), [Fault(FaultKind.CRASH_BEFORE, at)])
        log = TransactionLog.open(copy, store=store)
        try:
            run(log)
        except CrashError:
            crashed += 1
        TransactionLog.open(copy).invalidate_cache()
        assert ids(copy) in (list(range(40)), expected_after)
        run(TransactionLog.open(copy))
        assert ids(copy) == expected_after
        shutil.rmtree(copy)
    assert crashed >= 3


INTEROP = (
    "01_single_write", "02_five_appends", "03_with_removes", "04_partitioned", "06_schema_dedup",
    "07_two_writes_no_checkpoint", "09_partitioned_multi_append", "11_mixed_operations",
    "14_after_merge",
)  # fmt: skip


def text_of(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


@pytest.mark.interop
@pytest.mark.parametrize("name", INTEROP)
def test_tables_of_jvm_indextables_are_looked_after(
    interop_dir: Path, tmp_path: Path, name: str
) -> None:
    """Append, merge, checkpoint, purge, drop partitions; after each the rows are right."""
    place = str(tmp_path / name)
    shutil.copytree(interop_dir / name, place)
    before = indextables.open(place).to_arrow()
    indextables.write(before.slice(0, 1), place, options=QUIET)
    expected = text_of(pa.concat_tables([before, before.slice(0, 1)]))

    def rows() -> list[str]:
        TransactionLog.open(place).invalidate_cache()
        return text_of(indextables.open(place).to_arrow())

    assert rows() == expected
    sizes = len(indextables.open(place).snapshot.files())
    indextables.open(place).merge()
    assert len(indextables.open(place).snapshot.files()) < sizes
    assert rows() == expected
    assert indextables.open(place).checkpoint().status == "SUCCESS"
    assert rows() == expected
    indextables.open(place).truncate_time_travel()
    purged = maintenance.purge(TransactionLog.open(place), now_ms=old(place)).metrics
    assert purged.status == "SUCCESS"
    assert purged.orphaned_files_deleted > 0
    assert rows() == expected
    assert not [f for f in indextables.open(place).doctor() if f.severity == "error"]
    drop_first_partition(place)


def drop_first_partition(place: str) -> None:
    table = indextables.open(place)
    if not table.partition_columns:
        with pytest.raises(PlanningError, match="without partitions"):
            table.drop_partitions(f"{table.schema.names[0]} = 1")
        return
    column = table.partition_columns[0]
    value = table.to_arrow()[column][0].as_py()
    mine = indextables.col(column) == value
    total, gone = table.count(), table.count(mine)
    assert table.drop_partitions(mine).status == "success"
    table = indextables.open(place)
    assert (table.count(mine), table.count()) == (0, total - gone)


def test_conflicts_are_told_apart(path: str) -> None:
    log = TransactionLog.open(path)

    def always(tasks):
        results = list(run_locally(tasks))
        indextables.open(path).delete("id >= 0")
        indextables.write(batch(0), path, options=QUIET)
        yield from results

    with pytest.raises(CommitConflictError):
        maintenance.delete_rows(log, "id < 3", run=always)


def test_flushing_the_searcher_cache_empties_every_cache_of_open_files() -> None:
    held: list[Any] = [
        xref_cache.SHARED,
        catalog.OPEN,
        opening._open,
        opening.ROW_CACHE._kept,
        readers._readers,
        readers._codes,
        workspace(),
    ]
    flush_searcher_cache()
    for cache in held:
        measure, cache._size_of = cache._size_of, None
        cache.put("key", object())
        cache._size_of = measure
    bound = xref_cache.SHARED.most_bytes
    assert flush_searcher_cache().cleared_entries == len(held)
    assert [len(cache) for cache in held] == [0] * len(held)
    assert xref_cache.SHARED.most_bytes == bound
