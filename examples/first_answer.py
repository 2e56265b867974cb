"""Write a table, search it, and ask Spark the same where Spark is installed.

Run after ``pip install`` by the tests of the wheels: it needs nothing but the package, prints how
long each step took, and fails if an answer is wrong.
"""

import importlib.util
import os
import sys
import tempfile
import time

START = time.perf_counter()


def said(what: str) -> None:
    print(f"{time.perf_counter() - START:6.2f} s  {what}", flush=True)


def without_spark(path: str) -> None:
    import pyarrow as pa

    import indextables

    said(f"imported indextables {indextables.__version__} on Python {sys.version.split()[0]}")
    words = ["disk full", "link down", "disk slow", "all well"]
    rows = pa.table({"id": range(4000), "message": [words[i % 4] for i in range(4000)]})
    indextables.write(rows, path, text=["message"])
    table = indextables.open(path)
    found = table.to_arrow(where="message TEXTSEARCH 'disk' and id < 10")
    assert sorted(found["id"].to_pylist()) == [0, 2, 4, 6, 8], found
    said("first answer, without Spark")


def with_spark(path: str) -> None:
    from pyspark.sql import SparkSession

    import indextables

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    layer = indextables.register(spark)
    query = f"select count(*) from indextables.`{path}` where message TEXTSEARCH 'disk'"
    assert spark.sql(query).collect()[0][0] == 2000
    spark.range(10).selectExpr("id", "'disk new' message").write.format("indextables").mode(
        "append"
    ).save(path)
    assert spark.sql(query).collect()[0][0] == 2010
    said(f"first answer of Spark {spark.version}, layer {layer}")
    spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        without_spark(f"{folder}/events")
        if importlib.util.find_spec("pyspark"):
            with_spark(f"{folder}/events")
