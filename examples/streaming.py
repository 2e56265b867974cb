"""Streams in and out: sensor readings flow into a table, alarms flow out of it into another.

    python examples/streaming.py

Both streams are stopped and started again in between; each reading arrives once.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

import indextables

TEXT = "spark.indextables.indexing.typemap.text"


def start_spark() -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def drop_readings(folder: str, batch: int, rows: int = 50) -> None:
    """A file of JSON lines, as a collector would leave it."""
    os.makedirs(folder, exist_ok=True)
    hidden, name = f"{folder}/.batch-{batch}", f"{folder}/batch-{batch}.json"
    with open(hidden, "w") as file:
        for i in range(rows):
            number = batch * rows + i
            word = "overheated" if number % 40 == 0 else "fine"
            file.write(f'{{"id": {number}, "message": "sensor {number % 7} is {word}"}}\n')
    os.rename(hidden, name)


def run_once(spark: Any, folder: str) -> None:
    """Everything that is there now: files into readings, readings into alarms."""
    readings = spark.readStream.schema("id BIGINT, message STRING").json(f"{folder}/incoming")
    ingest = readings.writeStream.format("indextables").option(TEXT, "message")
    _finish(ingest, f"{folder}/checkpoint-readings", f"{folder}/readings")

    stored = spark.readStream.format("indextables").load(f"{folder}/readings")
    alarms = stored.filter("message LIKE '%overheated%'").writeStream.format("indextables")
    _finish(alarms, f"{folder}/checkpoint-alarms", f"{folder}/alarms")


def _finish(writer: Any, checkpoint: str, path: str) -> None:
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(path)
    query.awaitTermination()


def main(spark: Any, folder: str, batches: int = 2) -> tuple[int, int]:
    indextables.register(spark)
    for batch in range(batches):
        drop_readings(f"{folder}/incoming", batch)
        run_once(spark, folder)
        readings = indextables.open(f"{folder}/readings")
        alarms = indextables.open(f"{folder}/alarms")
        print(f"after batch {batch}: {readings.count()} readings, {alarms.count()} alarms")
    assert readings.count("message TEXTSEARCH 'overheated'") == alarms.count()
    return readings.count(), alarms.count()


if __name__ == "__main__":
    session = start_spark()
    with tempfile.TemporaryDirectory() as place:
        main(session, place)
    session.stop()
