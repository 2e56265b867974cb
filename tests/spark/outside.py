"""Run in a process of its own: a write, a read and a search on a cluster or on Spark Connect.

The first argument is ``connect``, ``cluster`` or the address of a master, where only a write with
speculation is run; the second is a folder.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import indextables.functions as it_functions
import indextables.spark as it


def session(kind: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.sql.shuffle.partitions", "2")
    if kind == "connect":
        return builder.remote("local[2]").getOrCreate()
    builder = builder.config("spark.ui.enabled", "false").config("spark.executor.memory", "512m")
    if kind == "cluster":
        return builder.master("local-cluster[2,1,1024]").getOrCreate()
    return (
        builder.master(kind)
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "100ms")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.multiplier", "1.2")
        .getOrCreate()
    )


def write_speculated(spark: Any, folder: str) -> dict[str, Any]:
    """A write in which one task hangs until Spark has run a second attempt of it."""
    it.register(spark)

    def slow_at_first(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        part, attempt = context.partitionId(), context.attemptNumber()
        Path(folder, f"attempt-{part}-{attempt}").touch()
        yield from batches
        if (part, attempt) == (1, 0):
            time.sleep(30)

    rows = spark.range(0, 80, 1, 4).mapInArrow(slow_at_first, "id long")
    path = f"{folder}/speculated"
    it.write(rows, path, options={"write.rowsPerSplit": 5})
    table = spark.read.format("indextables").load(path)
    return {
        "ids": sorted(row.id for row in table.collect()),
        "attempts": sorted(file.name for file in Path(folder).glob("attempt-1-*")),
        "splits": it.last_plan(spark).report.splits_total,
    }


def everything(spark: Any, folder: str) -> dict[str, Any]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        layer = it.register(spark)
    path = f"{folder}/table"
    frame = spark.range(0, 200, 1, 4).selectExpr(
        "id", "concat('hello w', id % 7) m", "cast(id % 2 as string) k"
    )
    text = {"spark.indextables.indexing.typemap.m": "text"}
    it.write(frame, path, partition_by=["k"], options={**text, "write.rowsPerSplit": 20})
    table = spark.read.format("indextables").load(path)
    found = {
        "layer": layer,
        "warnings": sum("indextables" in str(w.message) for w in seen),
        "needle": [r.id for r in table.filter("id = 77 or id = 78").collect()],
        "again": table.count(),
        "groups": sorted(map(tuple, table.groupBy("k").count().collect())),
        "where": it.read(spark, path, where="m textsearch 'w3'", columns=["id"]).count(),
        "view": None,
    }
    plain = spark.read.format("indextables_python").load(path)
    found["plain"] = [plain.filter("id = 5").count(), plain.count()]
    table.createOrReplaceTempView("v")
    query = "select id, (select count(*) from v) n from v where id = 3"
    found["view"] = [tuple(r) for r in spark.sql(query).collect()]
    found["workers"] = it.check_workers(spark).problems
    if layer == 2:
        plan = it.last_plan(spark)
        query = "select count(*) from v where m TEXTSEARCH 'w3'"
        found["search"] = spark.sql(query).collect()[0][0]
        found["planned"] = plan is not None
        found["function"] = table.filter(it_functions.textsearch("m", "w3")).count()
        found["sums"] = table.groupBy("k").agg({"id": "sum"}).count()
        known = table.filter("id between 70 and 75")
        found["distinct"] = known.selectExpr("count(distinct k)").collect()[0][0]
        found["joined"] = known.join(table.filter("id = 77"), "k").orderBy("k").count()
        found["state"] = spark.sql(f"DESCRIBE INDEXTABLES STATE '{path}'").collect()[0].table_path
    return found


if __name__ == "__main__":
    session_of = session(sys.argv[1])
    job = write_speculated if sys.argv[1].startswith("spark://") else everything
    print("RESULT " + json.dumps(job(session_of, sys.argv[2])))
    session_of.stop()
