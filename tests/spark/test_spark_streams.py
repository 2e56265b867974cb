"""Streams: each row once, across restarts, replays and bounded batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from indextables.table import open_table


def append(spark: Any, path: str, start: int, stop: int) -> None:
    frame = spark.range(start, stop, 1, 1).selectExpr("id", "concat('v', id) v")
    frame.write.format("indextables").mode("append").save(path)


def run(spark: Any, source: str, sink: str, checkpoint: str, **options: Any) -> None:
    reader = spark.readStream.format("indextables")
    for key, value in options.items():
        reader = reader.option(key, value)
    query = (
        reader.load(source)
        .writeStream.format("indextables")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(sink)
    )
    query.awaitTermination(300)
    if query.exception() is not None:
        raise query.exception()
    query.stop()


def ids(path: str) -> list[int]:
    return sorted(open_table(path).to_arrow(columns=["id"])["id"].to_pylist())


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str, str]:
    return str(tmp_path / "source"), str(tmp_path / "sink"), str(tmp_path / "checkpoint")


def test_restart_continues_where_it_stopped(spark: Any, places: tuple[str, str, str]) -> None:
    source, sink, checkpoint = places
    append(spark, source, 0, 10)
    append(spark, source, 10, 15)
    run(spark, source, sink, checkpoint)
    assert ids(sink) == list(range(15))
    append(spark, source, 15, 20)
    run(spark, source, sink, checkpoint)
    assert ids(sink) == list(range(20))
    run(spark, source, sink, checkpoint)
    assert ids(sink) == list(range(20))


def test_a_replayed_batch_is_not_written_twice(spark: Any, places: tuple[str, str, str]) -> None:
    source, sink, checkpoint = places
    append(spark, source, 0, 10)
    run(spark, source, sink, checkpoint)
    for done in Path(checkpoint, "commits").iterdir():
        done.unlink()
    run(spark, source, sink, checkpoint)
    assert ids(sink) == list(range(10))


def test_starting_version_and_bounded_batches(spark: Any, places: tuple[str, str, str]) -> None:
    source, sink, checkpoint = places
    for k in range(3):
        append(spark, source, 10 * k, 10 * k + 10)
    run(spark, source, sink, checkpoint, startingVersion="2", maxFilesPerTrigger="1")
    assert ids(sink) == list(range(10, 30))


@pytest.mark.driver_errors("terminated with error")
def test_removed_rows_are_an_error_unless_ignored(spark: Any, places: tuple[str, str, str]) -> None:
    source, sink, checkpoint = places
    append(spark, source, 0, 10)
    run(spark, source, sink, checkpoint)
    frame = spark.range(90, 95, 1, 1).selectExpr("id", "concat('v', id) v")
    frame.write.format("indextables").mode("overwrite").save(source)
    with pytest.raises(Exception, match="removed rows"):
        run(spark, source, sink, checkpoint)
    run(spark, source, sink, checkpoint, ignoreDeletes="true")
    assert ids(sink) == [*range(10), *range(90, 95)]


def test_the_log_names_the_batch(spark: Any, places: tuple[str, str, str]) -> None:
    source, sink, checkpoint = places
    append(spark, source, 0, 3)
    run(spark, source, sink, checkpoint)
    txns = open_table(sink).snapshot.txns
    assert list(txns.values()) == [0]
