"""Streams: each row once, across restarts, replays and bounded batches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from indextables.table import open_table


def append(spark: Any, path: str, start: int, stop: int) -> None:
    frame = spark.range(start, stop, 1, 1).selectExpr("id", "concat('v', id) v")
    frame.write.format("indextables").mode("append").save(path)


LAYERS = ["indextables", "indextables_python"]


def run(
    spark: Any,
    source: str,
    sink: str,
    checkpoint: str,
    layer: str = "indextables",
    **options: Any,
) -> None:
    reader = spark.readStream.format("indextables")
    for key, value in options.items():
        reader = reader.option(key, value)
    query = (
        reader.load(source)
        .writeStream.format(layer)
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


def forget_commits(checkpoint: str) -> None:
    for done in Path(checkpoint, "commits").iterdir():
        done.unlink()


@pytest.mark.parametrize("layer", LAYERS)
def test_a_replayed_batch_is_not_written_twice(
    spark: Any, places: tuple[str, str, str], layer: str
) -> None:
    source, sink, checkpoint = places
    append(spark, source, 0, 10)
    run(spark, source, sink, checkpoint, layer)
    forget_commits(checkpoint)
    run(spark, source, sink, checkpoint, layer)
    assert ids(sink) == list(range(10))


@pytest.mark.parametrize("layer", LAYERS)
def test_a_reset_checkpoint_is_another_query(
    spark: Any, places: tuple[str, str, str], layer: str
) -> None:
    """The folder is the same, the query is not: its batch 0 holds rows that nobody wrote."""
    source, sink, checkpoint = places
    append(spark, source, 0, 10)
    run(spark, source, sink, checkpoint, layer)
    shutil.rmtree(checkpoint)
    run(spark, source, sink, checkpoint, layer)
    assert ids(sink) == sorted([*range(10), *range(10)])


def test_a_fresh_checkpoint_after_an_overwrite(spark: Any, places: tuple[str, str, str]) -> None:
    source, sink, checkpoint = places
    append(spark, source, 0, 30)
    run(spark, source, sink, checkpoint)
    empty = spark.range(0).selectExpr("id", "concat('v', id) v")
    empty.write.format("indextables").mode("overwrite").save(sink)
    assert ids(sink) == []
    shutil.rmtree(checkpoint)
    run(spark, source, sink, checkpoint)
    assert ids(sink) == list(range(30))


@pytest.mark.parametrize("layer", LAYERS)
def test_a_moved_checkpoint_is_the_same_query(
    spark: Any, places: tuple[str, str, str], tmp_path: Path, layer: str
) -> None:
    source, sink, checkpoint = places
    append(spark, source, 0, 10)
    run(spark, source, sink, checkpoint, layer)
    moved = str(tmp_path / "elsewhere")
    shutil.move(checkpoint, moved)
    forget_commits(moved)
    run(spark, source, sink, moved, layer)
    assert ids(sink) == list(range(10))
    append(spark, source, 10, 15)
    run(spark, source, sink, moved, layer)
    assert ids(sink) == list(range(15))


def test_two_queries_into_one_table(spark: Any, tmp_path: Path) -> None:
    sink = str(tmp_path / "sink")
    for name, start in (("a", 0), ("b", 100)):
        append(spark, str(tmp_path / name), start, start + 5)
        run(spark, str(tmp_path / name), sink, str(tmp_path / f"checkpoint-{name}"))
    forget_commits(str(tmp_path / "checkpoint-a"))
    run(spark, str(tmp_path / "a"), sink, str(tmp_path / "checkpoint-a"))
    assert ids(sink) == [*range(5), *range(100, 105)]
    assert list(open_table(sink).snapshot.txns.values()) == [0, 0]


def test_the_query_is_the_one_of_the_checkpoint(spark: Any, places: tuple[str, str, str]) -> None:
    source, sink, checkpoint = places
    append(spark, source, 0, 3)
    run(spark, source, sink, checkpoint)
    kept = json.loads(Path(checkpoint, "metadata").read_text())["id"]
    assert dict(open_table(sink).snapshot.txns) == {kept: 0}


def test_a_batch_of_an_unknown_query_is_refused(tmp_path: Path) -> None:
    """Outside a query, or with tasks that name none or two, nothing is guessed."""
    from indextables.errors import PlanningError
    from indextables.spark.driver.streaming import query_of, running_query
    from indextables.spark.driver.writing import Written

    with pytest.raises(PlanningError, match="which streaming query"):
        running_query("/a/table")
    for found in ([], [Written(())], [Written((), "a"), Written((), "b")]):
        with pytest.raises(PlanningError, match="which streaming query"):
            query_of(list(found), "/a/table")


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
