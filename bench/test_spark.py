"""Spark: needle queries, planning latency and throughput against Parquet, in one run.

One table of at least 1,000 splits. Wall-clock times are the best of several runs that take turns,
since Spark works in other processes. ``job floor`` is the time of the smallest Spark job with a
Python task in this session; the goal for a warm query is that floor plus 150 ms. Goals are largest
ratios, so throughputs are compared as times. A comparison with Delta in Spark needs the jar of
delta-spark, which is not part of this environment; Delta read without Spark would be no comparison.

``INDEXTABLES_BENCH_SPARK_DIR`` keeps the tables in a folder, for the tests to run one by one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROWS = int(os.environ.get("INDEXTABLES_BENCH_SPARK_ROWS", "2000000"))
ROWS_PER_SPLIT = ROWS // 1000
KEPT = os.environ.get("INDEXTABLES_BENCH_SPARK_DIR")
ROUNDS = 5
WRITTEN = 200_000

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


class Tables:
    """The same log rows as a table and as Parquet."""

    def __init__(self, spark: Any, folder: Path) -> None:
        import logdata

        from indextables.table import open_table

        self.spark = spark
        self.path, self.parquet = str(folder / "table"), str(folder / "copy")
        if not (folder / "done").exists():
            self._write(folder / "source.parquet")
            (folder / "done").touch()
        self.needle = logdata.part(0, logdata.PART, ROWS, 42)["request_id"][12_345].as_py()
        assert open_table(self.path).snapshot.num_files >= 1000

    def _write(self, source: Path) -> None:
        import logdata
        import pyarrow.parquet as pq

        pq.write_table(logdata.make(ROWS), source, row_group_size=ROWS // 8)
        rows = self.spark.read.parquet(str(source))
        rows.write.mode("overwrite").parquet(self.parquet)
        save(rows, self.path, ROWS_PER_SPLIT)

    @property
    def ours(self) -> Any:
        return self.spark.read.format("indextables").load(self.path)

    @property
    def theirs(self) -> Any:
        return self.spark.read.parquet(self.parquet)


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    if KEPT:
        Path(KEPT).mkdir(parents=True, exist_ok=True)
    return Tables(spark, Path(KEPT) if KEPT else tmp_path_factory.mktemp("spark"))


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def race(*works: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """The best time of each work; they take turns, the first round is not counted."""
    for work in works:
        work()
    found = [[seconds(work) for work in works] for _ in range(rounds)]
    return [min(times) for times in zip(*found, strict=True)]


def save(rows: Any, path: str, rows_per_split: int) -> None:
    options = {
        "spark.indextables.indexing.typemap.text": "message",
        "spark.indextables.write.rowsPerSplit": rows_per_split,
        "spark.indextables.storage.fsync": "false",
    }
    rows.write.format("indextables").options(**options).mode("overwrite").save(path)


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def test_needle(tables: Tables, report: Any) -> None:
    where = f"request_id = '{tables.needle}'"
    assert tables.ours.filter(where).count() == 1
    ours, theirs = race(
        lambda: tables.ours.filter(where).collect(), lambda: tables.theirs.filter(where).collect()
    )
    report("needle end to end", ours, theirs, "parquet scan", goal=0.1)


def test_warm_query_over_the_job_floor(tables: Tables, report: Any) -> None:
    where = f"request_id = '{tables.needle}'"
    frame = tables.ours
    tiny = tables.spark.range(1).repartition(1)
    ours, floor = race(
        lambda: frame.filter(where).collect(),
        lambda: tiny.rdd.map(lambda row: row.id).collect(),
    )
    report("the smallest job with a Python task", floor, floor, "itself")
    report("warm needle", ours, floor + 0.15, "job floor + 150 ms", goal=1)


def test_planning(tables: Tables, report: Any) -> None:
    where = f"request_id = '{tables.needle}'"

    def planned(frame: Any) -> None:
        frame.filter(where)._jdf.queryExecution().executedPlan()

    python = tables.spark.read.format("indextables_python")
    two, one, theirs = race(
        lambda: planned(tables.ours),
        lambda: planned(python.load(tables.path)),
        lambda: planned(tables.theirs),
    )
    report("planning, layer 2", two, theirs, "parquet")
    report("planning, layer 1", one, theirs, "parquet")


def test_read_throughput(tables: Tables, report: Any) -> None:
    ours, theirs = race(lambda: noop(tables.ours), lambda: noop(tables.theirs))
    report("full scan", ours, theirs, "parquet", goal=2)
    print(f"full scan: {ROWS / ours:,.0f} rows/s, parquet {ROWS / theirs:,.0f} rows/s")
    columns = ["status", "service"]
    ours, theirs = race(
        lambda: noop(tables.ours.select(columns)), lambda: noop(tables.theirs.select(columns))
    )
    report("scan of two columns", ours, theirs, "parquet", goal=2)


AGGREGATES = {
    "aggregate with a filter": (
        "select status, count(*), max(latency) from {t} where service = 'auth' group by status"
    ),
    "aggregate by histogram": (
        "select floor(latency / 10) h, count(*), avg(latency) from {t} group by h"
    ),
    "count(*)": "select count(*) from {t}",
    "count(*) with a filter": "select count(*) from {t} where service = 'auth'",
}


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate(tables: Tables, report: Any, name: str) -> None:
    query = AGGREGATES[name]
    tables.ours.createOrReplaceTempView("ours")
    tables.theirs.createOrReplaceTempView("theirs")
    ours, theirs = race(
        lambda: tables.spark.sql(query.format(t="ours")).collect(),
        lambda: tables.spark.sql(query.format(t="theirs")).collect(),
    )
    report(name, ours, theirs, "parquet")


@pytest.mark.parametrize("kind", ["common", "rare"])
def test_full_text(tables: Tables, report: Any, kind: str) -> None:
    import logdata

    spark = tables.spark
    tables.ours.createOrReplaceTempView("ours")
    tables.theirs.createOrReplaceTempView("theirs")
    words = logdata.vocabulary()[130 if kind == "common" else 49_990].as_py()
    query = "select count(*) from {t} where message {how}"
    search, pattern = f"TEXTSEARCH '{words}'", f"rlike '\\\\b{words}\\\\b'"
    ours, theirs = race(
        lambda: spark.sql(query.format(t="ours", how=search)).collect(),
        lambda: spark.sql(query.format(t="theirs", how=pattern)).collect(),
    )
    report(f"a {kind} word in messages", ours, theirs, "parquet with rlike")


def test_write_throughput(tables: Tables, report: Any, tmp_path: Path) -> None:
    rows = tables.theirs.limit(WRITTEN).repartition(2).cache()
    rows.count()
    ours, theirs = race(
        lambda: save(rows, str(tmp_path / "table"), WRITTEN // 4),
        lambda: rows.write.mode("overwrite").parquet(str(tmp_path / "copy")),
        rounds=2,
    )
    report("write with indexes", ours, theirs, "parquet without")
    print(f"write: {WRITTEN / ours:,.0f} rows/s, parquet {WRITTEN / theirs:,.0f} rows/s")
    rows.unpersist()
