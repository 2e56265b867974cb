"""Run in a process of its own: a write, a read and a search on a cluster or on Spark Connect."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import indextables.functions as it_functions
import indextables.spark as it


def session(kind: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.sql.shuffle.partitions", "2")
    if kind == "connect":
        return builder.remote("local[2]").getOrCreate()
    return (
        builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .getOrCreate()
    )


def main(kind: str, folder: str) -> None:
    spark = session(kind)
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
    if layer == 2:
        plan = it.last_plan(spark)
        query = "select count(*) from v where m TEXTSEARCH 'w3'"
        found["search"] = spark.sql(query).collect()[0][0]
        found["planned"] = plan is not None
        found["function"] = table.filter(it_functions.textsearch("m", "w3")).count()
        found["sums"] = table.groupBy("k").agg({"id": "sum"}).count()
        found["state"] = spark.sql(f"DESCRIBE INDEXTABLES STATE '{path}'").collect()[0].table_path
    print("RESULT " + json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
