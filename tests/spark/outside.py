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
    builder = builder.config("spark.sql.warehouse.dir", f"{sys.argv[2]}/warehouse")
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


BY_NAME = (
    ("CREATE TABLE n (id BIGINT, m STRING) USING indextables COMMENT 'c' "
     "TBLPROPERTIES ('spark.indextables.indexing.tokenizer.m' = 'en_stem')", []),
    ("INSERT INTO n VALUES (1, 'running dogs'), (2, 'cats'), (3, NULL)", []),
    ("SELECT id FROM n WHERE m TEXTSEARCH 'run'", [[1]]),
    ("SELECT id, m TEXTSEARCH 'cat' FROM n ORDER BY id", [[1, False], [2, True], [3, False]]),
    ("SELECT l.id FROM n l LEFT JOIN n r ON l.id = r.id + 1 WHERE r.m TEXTSEARCH 'run' OR l.id = 3 "
     "ORDER BY 1", [[2], [3]]),
    ("ALTER TABLE n ADD COLUMN x INT", []),
    ("ALTER TABLE n RENAME COLUMN m TO msg", []),
    ("SELECT msg, x FROM n WHERE msg TEXTSEARCH 'dog'", [["running dogs", None]]),
    ("SELECT id FROM n VERSION AS OF 1 WHERE m TEXTSEARCH 'cat'", [[2]]),
    ("SELECT version, operation FROM n.history WHERE version < 2 ORDER BY 1",
     [[0, "CREATE TABLE"], [1, "append"]]),
    ("SELECT version FROM (SELECT * FROM n.history) ORDER BY 1 LIMIT 1", [[0]]),
    ("CREATE OR REPLACE TABLE n USING indextables AS SELECT 7 AS id", []),
    ("SELECT * FROM n", [[7]]),
    ("SELECT count(*) FROM n VERSION AS OF 1", [[3]]),
    ("CREATE TABLE plain USING parquet AS SELECT 'some words' AS m", []),
    ("SELECT m FROM plain WHERE m TEXTSEARCH 'words'", [["some words"]]),
    ("DROP TABLE plain", []),
    ("DROP TABLE n", []),
)  # fmt: skip


def by_name(spark: Any) -> list[str]:
    """Statements by name whose rows are not what is written beside them."""
    wrong = []
    for statement, expected in BY_NAME:
        found = [list(row) for row in spark.sql(statement).collect()]
        if found != expected:
            wrong.append(f"{statement}: {found}")
    spark.range(3).write.format("indextables").saveAsTable("saved")
    spark.range(5).write.format("indextables").mode("overwrite").saveAsTable("saved")
    if spark.table("saved").count() != 5:
        wrong.append("saveAsTable")
    spark.sql("DROP TABLE saved")
    return wrong


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
        found["names"] = by_name(spark)
        found["state"] = spark.sql(f"DESCRIBE INDEXTABLES STATE '{path}'").collect()[0].table_path
    return found


if __name__ == "__main__":
    session_of = session(sys.argv[1])
    job = write_speculated if sys.argv[1].startswith("spark://") else everything
    print("RESULT " + json.dumps(job(session_of, sys.argv[2])))
    session_of.stop()
