"""Maintenance spread over Spark tasks: the same answers as in one process, done elsewhere."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables import maintenance
from indextables.log.log import TransactionLog
from indextables.maintenance.crossref import index_cross_references
from indextables.maintenance.prewarm import prewarm
from indextables.maintenance.rewrite import RewriteTask, run_locally, run_on_spark

OPTIONS = {
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.xref.autoIndex.minSplitsToTrigger": "1",
    "spark.indextables.xref.query.minSplitsForXRef": "1",
}
DAYS = ("mon", "tue", "wed")
SPLITS, ROWS = 12, 20


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("spark-maintenance") / "table"
    for i in range(SPLITS):
        ids = list(range(i * ROWS, (i + 1) * ROWS))
        data = pa.table(
            {
                "id": ids,
                "word": [f"w{j} common" for j in ids],
                "x": [None if j % 7 == 0 else j / 4 for j in ids],
                "day": [DAYS[i % 3]] * ROWS,
            }
        )
        indextables.write(data, str(place), partition_by=["day"], text=["word"], options=OPTIONS)
    indextables.open(str(place), options=OPTIONS).create_index("id")
    return place


@pytest.fixture
def table(template: Path, tmp_path: Path) -> Callable[[], str]:
    made = iter(range(100))

    def copy() -> str:
        place = str(tmp_path / f"table{next(made)}")
        shutil.copytree(template, place)
        return place

    return copy


def told(path: str) -> dict[str, Any]:
    """All rows, what statistics say, and what each kind of index finds."""
    TransactionLog.open(path).invalidate_cache()
    opened = indextables.open(path, options=OPTIONS)
    rows = opened.to_arrow(columns=["id", "day", "x"]).to_pylist()
    return {
        "rows": sorted(rows, key=lambda row: row["id"]),
        "stats": opened.aggregate(
            {"n": "count", "lo": ("min", "x"), "hi": ("max", "x")}
        ).to_pylist(),
        "word": opened.to_arrow("word TEXTSEARCH 'w77'", ["id"]).to_pylist(),
        "index": opened.to_arrow("id IN (3, 150, 999)", ["id", "day"]).to_pylist(),
        "splits": Counter(f.partition_values["day"] for f in opened.snapshot.files()),
    }


def test_merge_on_spark_equals_merge_here(spark: Any, table: Callable[[], str]) -> None:
    here, there = table(), table()
    maintenance.merge_splits(TransactionLog.open(here))
    seen: list[int] = []

    def run(tasks: Any) -> Any:
        seen.append(len(tasks))
        yield from run_on_spark(spark)(tasks)

    result = maintenance.merge_splits(TransactionLog.open(there), run=run)
    assert result.metrics.status == "success"
    assert (result.metrics.merged_files, result.metrics.merge_groups) == (12, 3)
    assert sum(seen) == 3
    assert told(there) == told(here)
    assert told(there)["splits"] == dict.fromkeys(DAYS, 1)
    assert not [f for f in indextables.open(there).doctor() if f.severity == "error"]


def test_the_work_is_done_in_workers(spark: Any, table: Callable[[], str]) -> None:
    log = TransactionLog.open(table())
    snapshot = log.snapshot()
    files = list(snapshot.files())
    tasks = [RewriteTask.of(log.store, log.config, snapshot, [f]) for f in files[:3]]
    done = list(run_on_spark(spark)(tasks))
    assert [r.task.sources for r in done] == [t.sources for t in tasks]
    assert [r.add.num_records for r in done if r.add] == [ROWS] * 3
    assert [r.add.min_values for r in done if r.add] == [
        r.add.min_values for r in run_locally(tasks) if r.add
    ]
    here = os.getpid()
    pids = spark.sparkContext.parallelize(range(2), 2).map(lambda _: os.getpid()).collect()
    assert here not in pids


def test_a_source_no_task_can_read_is_skipped(spark: Any, table: Callable[[], str]) -> None:
    path = table()
    victim = next(iter(TransactionLog.open(path).snapshot().files()))
    (Path(path) / victim.path).write_bytes(b"no split")
    result = maintenance.merge_splits(TransactionLog.open(path), run=run_on_spark(spark))
    assert result.metrics.status == "partial_success"
    snapshot = TransactionLog.open(path).snapshot()
    assert snapshot.skips[victim.path].operation == "merge"
    assert snapshot.index_of(victim.path) is not None
    assert snapshot.num_rows == SPLITS * ROWS


def test_merge_on_spark_meets_a_writer(spark: Any, table: Callable[[], str]) -> None:
    path = table()
    raced: list[int] = []

    def run(tasks: Any) -> Any:
        done = list(run_on_spark(spark)(tasks))
        if not raced:
            raced.append(1)
            indextables.open(path).delete("id < 5")
        yield from done

    result = maintenance.merge_splits(TransactionLog.open(path), run=run)
    assert result.metrics.status == "success"
    assert [row["id"] for row in told(path)["rows"]] == list(range(5, SPLITS * ROWS))


def test_delete_on_spark(spark: Any, table: Callable[[], str]) -> None:
    path = table()
    found = indextables.sql(spark, f"DELETE FROM '{path}' WHERE id % 2 = 0 AND day = 'mon'")
    assert found.collect()[0].rows_deleted == 4 * ROWS // 2
    kept = [row for row in told(path)["rows"] if row["day"] == "mon"]
    assert len(kept) == 4 * ROWS // 2
    assert all(row["id"] % 2 for row in kept)


@pytest.mark.parametrize("kind", ["fuse8", "fuse16"])
def test_cross_references_on_spark(spark: Any, table: Callable[[], str], kind: str) -> None:
    here, there = table(), table()
    rows = [
        index_cross_references(TransactionLog.open(path), filter_type=kind, spark=session)
        for path, session in ((here, None), (there, spark))
    ]
    names = ("action", "source_splits_count", "total_terms", "xref_size_bytes")
    first, second = ([{n: getattr(row, n) for n in names} for row in found] for found in rows)
    assert first == second
    assert first[0]["source_splits_count"] == SPLITS
    opened = indextables.open(there, options=OPTIONS)
    assert opened.xref_coverage().percent == 100.0
    plan = opened.plan("word TEXTSEARCH 'w77'")
    assert [s.path for s in plan.splits] == [
        s.path for s in indextables.open(here, options=OPTIONS).plan("word TEXTSEARCH 'w77'").splits
    ]
    assert told(there) == told(here)


def test_cross_references_leave_out_what_no_task_can_read(
    spark: Any, table: Callable[[], str]
) -> None:
    path = table()
    victim = next(iter(TransactionLog.open(path).snapshot().files()))
    (Path(path) / victim.path).write_bytes(b"no split")
    rows = index_cross_references(TransactionLog.open(path), spark=spark)
    assert sum(row.source_splits_count for row in rows) == SPLITS - 1
    covered = indextables.open(path).xrefs()[0].source_split_paths
    assert victim.path not in covered


def test_prewarm_on_spark(spark: Any, table: Callable[[], str]) -> None:
    path = table()
    text = f"PREWARM INDEXTABLES CACHE '{path}' FOR SEGMENTS (TERM_DICT, STORE)"
    (row,) = indextables.sql(spark, text).collect()
    assert (row.splits_prewarmed, row.status, row.failed_splits_by_host) == (
        SPLITS,
        "success",
        None,
    )
    (only,) = indextables.sql(spark, f"{text} WHERE day = 'mon'").collect()
    assert only.splits_prewarmed == SPLITS // 3
    victim = next(iter(TransactionLog.open(path).snapshot().files()))
    (Path(path) / victim.path).write_bytes(b"no split")
    found = prewarm(TransactionLog.open(path), spark=spark).to_pylist()
    assert [(r["status"], r["failed_splits_by_host"]) for r in found] == [("partial", victim.path)]
    assert found[0]["splits_prewarmed"] == SPLITS - 1


def test_tasks_are_silent(spark: Any) -> None:
    def mode(_: int) -> str:
        from indextables.progress import _mode

        return _mode()

    assert set(spark.sparkContext.parallelize(range(2), 2).map(mode).collect()) == {"off"}
