"""Seed 000, cross-reference indexing: one test for each heading that promises something.

Chapters 3 (classes, storage layout) and 4 (actions) are also tested byte by byte in
``tests/log/test_log_actions.py`` and ``tests/xref/test_xref_files.py``; the settings of chapter 8
in ``tests/settings/test_settings_xref.py``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import CommitConflictError, StorageError
from indextables.log.actions import AddXRef, RemoveXRef
from indextables.log.log import TransactionLog
from indextables.storage.foldername import hash_directory
from indextables.xref import auto
from indextables.xref.builder import XRefBuildManager
from indextables.xref.searching import XRefSearcher

Options = dict[str, str]
OFF: Options = {"spark.indextables.xref.autoIndex.enabled": "false"}
ON: Options = {
    "spark.indextables.xref.autoIndex.minSplitsToTrigger": "2",
    "spark.indextables.xref.query.minSplitsForXRef": "1",
}
SHORT: Options = {
    "spark.indextables.purge.retentionCheckEnabled": "false",
    "spark.indextables.checkpoint.enabled": "true",
}


@pytest.fixture(autouse=True)
def no_build_waits() -> Iterator[None]:
    auto._last_run.clear()
    yield
    for timer, _, _ in auto._put_off.values():
        timer.cancel()
    auto._put_off.clear()


def write(path: Path, count: int, first: int = 0, mode: str = "append", **given: Any) -> None:
    """So many splits, a word of its own in each, between two that all have."""
    words = [(i, w) for i in range(first, first + count) for w in ("a", f"w{i}", "z")]
    data = pa.table({"word": [w for _, w in words], "day": [f"d{i % 2}" for i, _ in words]})
    per_split = {"spark.indextables.write.rowsPerSplit": "3"}
    options = {**given.pop("options", ON), **per_split}
    indextables.write(data, str(path), mode=mode, options=options, **given)


def opened(path: Path, options: Options = ON) -> indextables.Table:
    return indextables.open(str(path), options=options)


def removals(path: Path) -> list[RemoveXRef]:
    return TransactionLog.open(str(path)).list_removed_xrefs()


# -- 3. Architecture -------------------------------------------------------------------------------


def test_3_1_storage_layout(tmp_path: Path) -> None:
    write(tmp_path, 3)
    (xref,) = opened(tmp_path).xrefs()
    folder, hashed, name = xref.path.split("/")
    assert folder == "_xrefsplits"
    assert hashed == hash_directory(name)
    assert (tmp_path / xref.path).stat().st_size == xref.size


# -- 4. Transaction log changes --------------------------------------------------------------------


def test_4_2_reasons_of_remove_xref(tmp_path: Path) -> None:
    write(tmp_path, 3)
    opened(tmp_path).build_xref(force=True)
    assert [r.reason for r in removals(tmp_path)] == ["replaced"]
    opened(tmp_path).merge(target_size=1 << 30)
    assert sorted(r.reason for r in removals(tmp_path)) == ["replaced", "source_changed"]


def test_4_3_protocol_version_update(tmp_path: Path) -> None:
    write(tmp_path, 1, options=OFF)
    assert opened(tmp_path).snapshot.protocol.reader_features is None
    opened(tmp_path).build_xref()
    features = opened(tmp_path).snapshot.protocol.reader_features or frozenset()
    assert "crossReferenceIndex" in features


def test_4_4_transaction_log_api_extensions(tmp_path: Path) -> None:
    write(tmp_path, 2, options=OFF)
    log = TransactionLog.open(str(tmp_path))
    assert len(log.get_splits_without_xref()) == 2
    XRefBuildManager(log).build_cross_references()
    (xref,) = log.list_xrefs()
    assert log.get_xref_for_split(xref.source_split_paths[0]) == xref
    log.remove_xref(xref.path, "explicit")
    assert log.list_xrefs() == []
    assert [r.reason for r in log.list_removed_xrefs()] == ["explicit"]


# -- 5. Lifecycle ----------------------------------------------------------------------------------


def test_5_1_scenario_a_initial_build(tmp_path: Path) -> None:
    write(tmp_path, 5)
    assert [x.source_split_count for x in opened(tmp_path).xrefs()] == [5]


def test_5_1_scenario_b_incremental_update(tmp_path: Path) -> None:
    write(tmp_path, 3)
    write(tmp_path, 4, first=3)
    assert [x.source_split_count for x in opened(tmp_path).xrefs()] == [7]
    assert [r.reason for r in removals(tmp_path)] == ["replaced"]


def test_5_1_scenario_c_max_capacity(tmp_path: Path) -> None:
    full = {**ON, "spark.indextables.xref.autoIndex.maxSourceSplits": "3"}
    write(tmp_path, 3, options=full)
    write(tmp_path, 4, first=3, options=full)
    assert sorted(x.source_split_count for x in opened(tmp_path).xrefs()) == [1, 3, 3]


@pytest.mark.parametrize("way", ["automatic", "command", "forced", "after a merge"])
def test_5_1_every_build_honours_max_source_splits(tmp_path: Path, way: str) -> None:
    two = {**ON, "spark.indextables.xref.autoIndex.maxSourceSplits": "2"}
    write(tmp_path, 6, options=two if way == "automatic" else OFF)
    table = opened(tmp_path, two)
    if way in ("command", "forced", "after a merge"):
        table.build_xref(force=way == "forced")
    if way == "after a merge":
        table.merge(target_size=1 << 30, max_source_splits=2)
    assert {x.source_split_count for x in opened(tmp_path).xrefs()} <= {1, 2}
    assert opened(tmp_path).xref_coverage().uncovered == 0


@pytest.mark.parametrize("change", ["merge", "delete", "overwrite", "truncate"])
def test_5_1_scenario_d_source_splits_removed(tmp_path: Path, change: str) -> None:
    write(tmp_path, 4)
    table = opened(tmp_path)
    if change == "merge":
        table.merge(target_size=1 << 30)
    elif change == "delete":
        table.delete("day = 'd0'")
    elif change == "truncate":
        table.truncate()
    else:
        write(tmp_path, 3, first=10, mode="overwrite")
    now = opened(tmp_path)
    live = set(now.snapshot.paths.to_pylist())
    assert all(live >= set(x.source_split_paths) for x in now.xrefs())
    assert now.xref_coverage().uncovered == 0
    assert {r.reason for r in removals(tmp_path)} == {"source_changed"}


def test_5_1_sources_that_change_are_left_alone_when_told_so(tmp_path: Path) -> None:
    still = {**ON, "spark.indextables.xref.autoIndex.rebuildOnSourceChange": "false"}
    write(tmp_path, 4)
    opened(tmp_path, still).delete("day = 'd0'")
    assert removals(tmp_path) == []


def test_5_2_coverage_catches_up_within_the_interval(tmp_path: Path) -> None:
    """More uncovered than covered: built at once, whatever the interval says."""
    write(tmp_path, 2)
    write(tmp_path, 3, first=2)
    assert opened(tmp_path).xref_coverage().percent == 100


def test_5_2_what_the_interval_puts_off_comes_back(tmp_path: Path) -> None:
    late = {**ON, "spark.indextables.xref.autoIndex.minIntervalMs": "3600000"}
    write(tmp_path, 6, options=late)
    write(tmp_path, 4, first=6, options=late)
    assert opened(tmp_path).xref_coverage().uncovered == 4
    ((timer, _, _),) = auto._put_off.values()
    assert timer.is_alive()
    assert 3000 < timer.interval <= 3600
    timer.function(*timer.args)
    assert opened(tmp_path).xref_coverage().uncovered == 0
    assert not auto._put_off


def test_5_2_what_waits_is_built_when_the_process_ends(tmp_path: Path) -> None:
    late = {**ON, "spark.indextables.xref.autoIndex.minIntervalMs": "3600000"}
    write(tmp_path, 6, options=late)
    write(tmp_path, 4, first=6, options=late)
    assert opened(tmp_path).xref_coverage().uncovered == 4
    assert auto.run_put_off() == 1
    assert opened(tmp_path).xref_coverage().uncovered == 0
    assert auto.run_put_off() == 0


def test_5_2_min_splits_to_trigger_alone_has_an_effect(tmp_path: Path) -> None:
    for number, least in enumerate(("3", "4")):
        path = tmp_path / str(number)
        write(path, 3, options={"spark.indextables.xref.autoIndex.minSplitsToTrigger": least})
        assert len(opened(path).xrefs()) == (1 if least == "3" else 0)


def test_5_3_xrefs_span_partitions(tmp_path: Path) -> None:
    write(tmp_path, 4, partition_by=["day"])
    (xref,) = opened(tmp_path).xrefs()
    assert {p.split("/")[0] for p in xref.source_split_paths} == {"day=d0", "day=d1"}


def test_5_a_file_whose_commit_failed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 3, options=OFF)
    log = TransactionLog.open(str(tmp_path))

    def refuse(self: Any, transaction: Any) -> None:
        raise StorageError("the store is full")

    monkeypatch.setattr(TransactionLog, "commit", refuse)
    with pytest.raises(StorageError):
        XRefBuildManager(log).build_cross_references()
    assert list(tmp_path.rglob("xref-*.split")) == []


# -- 6. SQL commands -------------------------------------------------------------------------------


def test_6_1_index_crossreferences_command(tmp_path: Path) -> None:
    write(tmp_path, 3, options=OFF)
    where = f"INDEX CROSSREFERENCES FOR '{tmp_path}'"
    dry = indextables.sql(None, f"{where} DRY RUN").to_pylist()
    assert [(r["action"], r["source_splits_count"]) for r in dry] == [("would_create", 3)]
    made = indextables.sql(None, where)
    assert made.column_names == [
        "table_path", "partition", "action", "xref_path", "source_splits_count", "total_terms",
        "xref_size_bytes", "build_duration_ms",
    ]  # fmt: skip
    assert made["action"].to_pylist() == ["created"]
    assert indextables.sql(None, where)["action"].to_pylist() == ["unchanged"]
    again = indextables.sql(None, f"{where} FORCE REBUILD")
    assert again["action"].to_pylist() == ["rebuilt"]


def test_6_4_describe_transaction_log_include_all(tmp_path: Path) -> None:
    write(tmp_path, 2, partition_by=["day"])
    opened(tmp_path).build_xref(force=True)
    text = f"DESCRIBE INDEXTABLES TRANSACTION LOG '{tmp_path}' INCLUDE ALL"
    rows = indextables.sql(None, text).to_pylist()
    versions = [r["version"] for r in rows]
    assert versions == sorted(versions, reverse=True)
    by_kind = {r["action_type"]: r for r in rows}
    assert by_kind["addXRef"]["source_count"] == 2
    assert by_kind["addXRef"]["partition"] is None
    assert by_kind["removeXRef"]["source_count"] == 2
    assert {r["partition"] for r in rows if r["action_type"] == "add"} == {"day=d0", "day=d1"}
    assert all(r["source_count"] is None for r in rows if r["action_type"] == "add")
    newest = indextables.sql(None, f"{text} LIMIT 1").to_pylist()
    assert newest == rows[:1]


def test_6_4_xref_summary_view(tmp_path: Path) -> None:
    write(tmp_path, 2)
    time.sleep(0.01)
    write(tmp_path, 3, first=2)
    text = f"DESCRIBE INDEXTABLES TRANSACTION LOG '{tmp_path}' XREFS"
    rows = indextables.sql(None, text).to_pylist()
    assert list(rows[0]) == [
        "xref_path", "source_count", "total_terms", "size_bytes", "created_time", "status",
    ]  # fmt: skip
    assert [(r["status"], r["source_count"]) for r in rows] == [
        ("active", 5), ("removed", 2), ("summary", None),
    ]  # fmt: skip
    assert rows[-1]["xref_path"] == "Coverage: 5/5 (100.00%)"


# -- 7. Query-time integration ---------------------------------------------------------------------


def test_7_1_query_flow_with_xref(tmp_path: Path) -> None:
    write(tmp_path, 5, partition_by=["day"])
    table = opened(tmp_path)
    plan = table.plan("day = 'd1' AND word = 'w3'")
    names = [stage.name for stage in plan.report.stages]
    assert names.index("partition") < names.index("min/max") < names.index("xref")
    assert len(plan) == 1


def test_7_2_uncovered_splits_are_kept(tmp_path: Path) -> None:
    write(tmp_path, 3)
    write(tmp_path, 1, first=3, options=OFF)
    found = opened(tmp_path).xref_search("word = 'nowhere'")
    assert len(found) == 1
    assert found.matching_splits[0].undecided
    assert found.has_unevaluated_clauses


def test_7_2_search_gives_matching_splits(tmp_path: Path) -> None:
    write(tmp_path, 4)
    table = opened(tmp_path)
    (one,) = table.xref_search("word = 'w2'")
    assert table.to_arrow("word = 'w2'").num_rows == 1
    assert one.uri in table.snapshot.paths.to_pylist()
    assert (one.uri.removesuffix(".split"), one.undecided) == (one.split_id, False)
    assert 0 < one.footer_start < one.footer_end
    assert len(table.xref_search("word IN ('w1', 'w2', 'w3')", limit=2)) == 2
    searcher = XRefSearcher.open(table.store, table.xrefs()[0])
    assert len(searcher.search("word:w1")) == 1
    place = searcher.loaded.paths.index(one.uri)
    assert searcher.check(place, "word", "w2")
    assert not searcher.check(place, "word", "w1")


def test_7_3_ranges_are_not_evaluated(tmp_path: Path) -> None:
    write(tmp_path, 3)
    found = opened(tmp_path).xref_search("word > 'w1'")
    assert len(found) == 3
    assert found.has_unevaluated_clauses
    assert all(split.undecided for split in found)
    assert not opened(tmp_path).xref_search("word = 'w1'").has_unevaluated_clauses


def test_7_4_the_pre_scan_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, 3)
    with caplog.at_level(logging.INFO, "indextables.xref"):
        opened(tmp_path).count("word = 'w1'")
    assert "XRef pre-scan: 1 splits after XRef filtering" in caplog.messages


# -- 10. Testing strategy --------------------------------------------------------------------------


def test_10_2_purge_removes_orphaned_xref_files(tmp_path: Path) -> None:
    write(tmp_path, 3)
    (xref,) = opened(tmp_path).xrefs()
    quiet = {**OFF, **SHORT}
    table = opened(tmp_path, quiet)
    table.truncate()
    assert len(opened(tmp_path).xrefs()) == 1, "nothing rebuilt it: that is switched off"
    dry = table.purge(older_than_hours=0, log_retention_hours=0, dry_run=True)
    assert dry.metrics.status == "DRY_RUN"
    assert len(opened(tmp_path).xrefs()) == 1
    table.purge(older_than_hours=0, log_retention_hours=0)
    assert opened(tmp_path).xrefs() == []
    assert [r.reason for r in removals(tmp_path)] == ["source_changed"]
    for _ in range(2):
        table.checkpoint()
        time.sleep(0.01)
        table.purge(older_than_hours=0, log_retention_hours=0)
    assert not (tmp_path / xref.path).exists()


def test_10_2_purge_keeps_what_covers_a_live_split(tmp_path: Path) -> None:
    write(tmp_path, 3)
    table = opened(tmp_path, {**OFF, **SHORT})
    table.delete("word = 'w0'")
    table.purge(older_than_hours=0)
    assert len(opened(tmp_path).xrefs()) == 1
    assert opened(tmp_path).count("word = 'w1'") == 1


# -- 11. Migration ---------------------------------------------------------------------------------


def test_11_2_upgrade_path(tmp_path: Path) -> None:
    write(tmp_path, 1, options={**OFF, "spark.indextables.protocol.version": "2"})
    text = f"ALTER TABLE '{tmp_path}' SET TBLPROPERTIES ('minReaderVersion' = '3')"
    indextables.sql(None, text)
    assert opened(tmp_path).snapshot.protocol.min_reader_version == 3


def test_appendix_a_add_xref_action_fields() -> None:
    assert [f.json for f in AddXRef.FIELDS][:11] == [
        "path", "xrefId", "sourceSplitPaths", "sourceSplitCount", "size", "totalTerms",
        "footerStartOffset", "footerEndOffset", "createdTime", "buildDurationMs",
        "maxSourceSplits",
    ]  # fmt: skip


def test_two_builders_do_not_cover_a_split_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 2, options=OFF)
    log = TransactionLog.open(str(tmp_path))
    manager = XRefBuildManager(log)
    plan = manager.plan(log.snapshot())
    XRefBuildManager(log).build_cross_references()
    with pytest.raises(CommitConflictError):
        manager._run(plan, "", "fuse8")
    assert len(list(tmp_path.rglob("xref-*.split"))) == 1
