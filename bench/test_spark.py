"""Spark: needle queries, planning latency and throughput against Parquet, in one run.

One table of at least 1,000 splits. Wall-clock times are the best of several runs that take turns,
since Spark works in other processes. ``job floor`` is the time of the smallest Spark job of a
Python source in this session; the goal for a warm query is that floor plus 150 ms. A comparison
with Delta needs its jar, which is not part of this environment: not measured here.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROWS = int(os.environ.get("INDEXTABLES_BENCH_SPARK_ROWS", "1000000"))
ROWS_PER_SPLIT = ROWS // 1000
ROUNDS = 5

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def spark() -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        import indextables.spark

        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "2g")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        assert indextables.spark.register(session) == 2
        yield session
        session.stop()


class Tables:
    """The same log rows as a table and as Parquet, and how long writing took."""

    def __init__(self, spark: Any, folder: Path) -> None:
        import logdata
        import pyarrow.parquet as pq

        self.spark = spark
        source = str(folder / "source.parquet")
        data = logdata.make(ROWS)
        self.needle = data["request_id"][ROWS // 3].as_py()
        pq.write_table(data, source, row_group_size=ROWS // 8)
        rows = spark.read.parquet(source).repartition(2).cache()
        rows.count()
        self.path, self.parquet = str(folder / "table"), str(folder / "copy")
        self.parquet_seconds = seconds(lambda: rows.write.parquet(self.parquet))
        writer = rows.write.format("indextables").options(
            **{
                "spark.indextables.indexing.typemap.text": "message",
                "spark.indextables.write.rowsPerSplit": ROWS_PER_SPLIT,
                "spark.indextables.storage.fsync": "false",
            }
        )
        self.seconds = seconds(lambda: writer.save(self.path))
        rows.unpersist()
        from indextables.table import open_table

        assert open_table(self.path).snapshot.num_files >= 1000

    @property
    def ours(self) -> Any:
        return self.spark.read.format("indextables").load(self.path)

    @property
    def theirs(self) -> Any:
        return self.spark.read.parquet(self.parquet)


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(spark, tmp_path_factory.mktemp("spark"))


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def race(*works: Callable[[], Any]) -> list[float]:
    """The best time of each work; they take turns, the first round is not counted."""
    for work in works:
        work()
    found = [[seconds(work) for work in works] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*found, strict=True)]


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
    report("warm needle against the job floor plus 150 ms", ours, floor + 0.15, "floor + 150 ms")


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
    report("full scan, rows", ROWS / ours, ROWS / theirs, "parquet", unit="rows/s")
    columns = ["status", "service"]
    ours, theirs = race(
        lambda: noop(tables.ours.select(columns)), lambda: noop(tables.theirs.select(columns))
    )
    report("scan of two columns, rows", ROWS / ours, ROWS / theirs, "parquet", unit="rows/s")


def test_aggregate(tables: Tables, report: Any) -> None:
    query = "select status, count(*), max(latency) from {t} where service = 'auth' group by status"
    tables.ours.createOrReplaceTempView("ours")
    tables.theirs.createOrReplaceTempView("theirs")
    spark = tables.spark
    ours, theirs = race(
        lambda: spark.sql(query.format(t="ours")).collect(),
        lambda: spark.sql(query.format(t="theirs")).collect(),
    )
    report("aggregate with a filter", ours, theirs, "parquet")
    ours, theirs = race(lambda: tables.ours.count(), lambda: tables.theirs.count())
    report("count(*)", ours, theirs, "parquet")


def test_full_text(tables: Tables, report: Any) -> None:
    spark = tables.spark
    tables.ours.createOrReplaceTempView("ours")
    tables.theirs.createOrReplaceTempView("theirs")
    ours, theirs = race(
        lambda: spark.sql(
            "select count(*) from ours where message TEXTSEARCH 'leader election'"
        ).collect(),
        lambda: spark.sql(
            "select count(*) from theirs where message rlike '\\\\bleader\\\\b' "
            "and message rlike '\\\\belection\\\\b'"
        ).collect(),
    )
    report("two words in a message", ours, theirs, "parquet with rlike")


def test_write_throughput(tables: Tables, report: Any) -> None:
    report(
        "write, rows",
        ROWS / tables.seconds,
        ROWS / tables.parquet_seconds,
        "parquet",
        unit="rows/s",
    )
