"""Writes from Spark to a table that asks for a newer writer: refused before any task runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import indextables
from indextables.log.actions import Protocol
from indextables.log.actions.codec import encode_actions
from indextables.log.read import cache
from indextables.log.read.versions import version_path
from indextables.storage.base import open_store

FRAME = ("id", "concat('v', id) v")


@pytest.fixture
def newer(spark: Any, tmp_path: Path) -> Path:
    path = tmp_path / "table"
    spark.range(10).selectExpr(*FRAME).write.format("indextables").save(str(path))
    body = indextables.open(str(path)).snapshot.protocol.to_dict()
    body["writerFeatures"] = [*(body["writerFeatures"] or ()), "timeMachines"]
    store = open_store(str(path))
    store.put(version_path(2), encode_actions([Protocol.from_dict(body)]))
    cache.SHARED.invalidate()
    assert indextables.open(str(path)).version == 2
    return path


def tree(path: Path) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in path.rglob("*") if p.is_file()}


def _save(mode: str) -> Callable[[Any, Path, Path], None]:
    def save(spark: Any, path: Path, folder: Path) -> None:
        frame = spark.range(5).selectExpr(*FRAME)
        frame.write.format("indextables").mode(mode).save(str(path))

    return save


def _stream(spark: Any, path: Path, folder: Path) -> None:
    spark.range(3).selectExpr(*FRAME).write.parquet(str(folder / "in"))
    schema = spark.read.parquet(str(folder / "in")).schema
    stream = spark.readStream.schema(schema).parquet(str(folder / "in")).writeStream
    query = (
        stream.format("indextables")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(path))
    )
    query.awaitTermination()


def _sql(text: str) -> Callable[[Any, Path, Path], None]:
    def run(spark: Any, path: Path, folder: Path) -> None:
        spark.sql(text.format(t=path)).collect()

    return run


WAYS = {
    "append": _save("append"),
    "overwrite": _save("overwrite"),
    "stream": _stream,
    "insert": _sql("INSERT INTO indextables.`{t}` VALUES (1, 'a')"),
    "delete": _sql("DELETE FROM '{t}' WHERE id = 1"),
    "merge splits": _sql("MERGE SPLITS '{t}'"),
    "purge": _sql("PURGE INDEXTABLE '{t}'"),
    "properties": _sql("ALTER TABLE indextables.`{t}` SET TBLPROPERTIES ('a' = 'b')"),
}


def _told(way: str) -> Any:
    """A stream that is refused says so in the driver's log too."""
    marks = [pytest.mark.driver_errors("terminated with error")] if way == "stream" else []
    return pytest.param(way, marks=marks)


@pytest.mark.parametrize("way", [_told(way) for way in WAYS])
def test_every_way_from_spark_is_refused(spark: Any, newer: Path, tmp_path: Path, way: str) -> None:
    before = tree(newer)
    with pytest.raises(Exception, match="timeMachines"):
        WAYS[way](spark, newer, tmp_path)
    assert tree(newer) == before
    assert spark.read.format("indextables").load(str(newer)).count() == 10
