"""The shortest proof that a minor of Spark is served: run as a program, one process for each.

Registers, writes by DataFrame and by SQL, reads with filters, groups and a text search, looks at an
older version, overwrites a partition, and streams a table into another. Every answer is checked;
the last line is ``SMOKE`` with the version.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from typing import Any

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.fallback": "false",
    "spark.driver.memory": "1g",
}


def session(folder: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", folder)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def equal(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise SystemExit(f"{what}: found {found!r}, expected {expected!r}")


def written(spark: Any, path: str) -> None:
    frame = spark.range(0, 200, 1, 4).selectExpr(
        "id",
        "concat('hello w', id % 7) m",
        "cast(id % 2 as string) k",
        "timestamp_seconds(id) ts",
    )
    writer = frame.write.format("indextables").partitionBy("k")
    writer.option("spark.indextables.indexing.typemap.m", "text").mode("append").save(path)
    frame.limit(0).write.format("indextables").mode("append").save(path)
    row = "(1000, 'bye', '1', timestamp'2024-01-01 00:00:00')"
    spark.sql(f"insert into indextables.`{path}` values {row}")


def read(spark: Any, path: str) -> None:
    table = spark.read.format("indextables").load(path)
    equal("count", table.count(), 201)
    equal("needle", [r.id for r in table.filter("id = 77").collect()], [77])
    both = table.filter("id = 1").union(table.filter("id = 2"))
    equal("two scans", sorted(r.id for r in both.collect()), [1, 2])
    groups = sorted(map(tuple, table.groupBy("k").count().collect()))
    equal("groups", groups, [("0", 100), ("1", 101)])
    query = f"select count(*) from indextables.`{path}` where m TEXTSEARCH 'w3'"
    equal("search", spark.sql(query).collect()[0][0], sum(i % 7 == 3 for i in range(200)))
    tasks = spark.read.format("indextables").option("read.driver.maxSplits", 0).load(path)
    rows = tasks.filter("id between 10 and 19").select("ts", "id").collect()
    equal(
        "rows of tasks", sorted((r.ts.second, r.id) for r in rows), [(i, i) for i in range(10, 20)]
    )
    bare = tasks.filter("id < 3").selectExpr("1 one").collect()
    equal("rows without columns", len(bare), 3)
    plain = spark.read.format("indextables_python").load(path)
    equal("layer 1", plain.filter("id < 5").count(), 5)
    older = spark.read.format("indextables").option("versionAsOf", 1).load(path)
    equal("older version", older.filter("id = 1000").count(), 0)


def overwritten(spark: Any, path: str) -> None:
    frame = spark.sql("select 7L id, 'new' m, '0' k, timestamp'2024-01-01 00:00:00' ts")
    writer = frame.write.format("indextables").mode("overwrite").option("replaceWhere", "k = '0'")
    writer.save(path)
    table = spark.read.format("indextables").load(path)
    equal(
        "overwritten",
        sorted(map(tuple, table.groupBy("k").count().collect())),
        [("0", 1), ("1", 101)],
    )


def streamed(spark: Any, source: str, sink: str, checkpoint: str) -> None:
    for _ in range(2):
        query = (
            spark.readStream.format("indextables")
            .load(source)
            .writeStream.format("indextables")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(sink)
        )
        query.awaitTermination()
    equal("streamed", spark.read.format("indextables").load(sink).count(), 102)


def main() -> None:
    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    import indextables

    with tempfile.TemporaryDirectory() as folder:
        spark = session(folder)
        layer = indextables.register(spark)
        equal("layer", layer, 2)
        path = f"{folder}/table"
        written(spark, path)
        read(spark, path)
        overwritten(spark, path)
        streamed(spark, path, f"{folder}/sink", f"{folder}/checkpoint")
        print(f"SMOKE Spark {spark.version} layer {layer}", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
