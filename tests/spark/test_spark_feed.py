"""The change feed in Spark: options as Delta's users know them, batch and streaming."""

from __future__ import annotations

import datetime as dt
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.spark.driver.feeding import FeedStream
from indextables.spark.driver.request import access
from indextables.spark.source import spark_schema
from indextables.table.feed import feed_schema

LAYERS = ["indextables", "indextables_python"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten rows; two are deleted, one is updated, one is updated and one new; a merge."""
    made = str(tmp_path_factory.mktemp("feed") / "t")
    data = pa.table({"k": list(range(10)), "s": ["old"] * 10})
    indextables.write(data, made, rows_per_split=5)
    indextables.open(made).delete("k IN (3, 7)")
    indextables.open(made).update("k = 1", {"s": "'new'"})
    indextables.open(made).upsert(pa.table({"k": [2, 99], "s": ["up", "up"]}), on="k")
    indextables.open(made).merge()
    return made


def versions(path: str) -> list[int]:
    """The versions of the four changes, whatever was committed between them."""
    wanted = ("delete", "update", "upsert")
    log = indextables.open(path).history()
    found = [e.version for e in log if e.operation.lower() in wanted]
    return sorted([min(found) - 1, *found])


def feed(spark: Any, path: str, layer: str = "indextables", **options: Any) -> Any:
    reader = spark.read.format(layer).option("readChangeFeed", "true")
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader.load(path)


def listed(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((r._commit_version, r._change_type, r.k, r.s) for r in frame.collect())


def expected(path: str) -> list[tuple[Any, ...]]:
    found = []
    for batch in indextables.open(path).changes(0):
        for r in batch.to_pylist():
            found.append((r["_commit_version"], r["_change_type"], r["k"], r["s"]))
    return sorted(found)


@pytest.mark.parametrize("layer", LAYERS)
def test_everything_and_ranges(spark: Any, path: str, layer: str) -> None:
    everything = expected(path)
    _, deleted, updated, upserted = versions(path)
    frame = feed(spark, path, layer, startingVersion=0)
    assert frame.schema.fieldNames() == [
        "k", "s", "_change_type", "_commit_version", "_commit_timestamp",
    ]  # fmt: skip
    assert listed(frame) == everything
    assert {kind for _, kind, _, _ in everything} == {
        "insert", "delete", "update_preimage", "update_postimage",
    }  # fmt: skip
    some = feed(spark, path, layer, startingVersion=deleted, endingVersion=updated)
    assert listed(some) == [row for row in everything if deleted <= row[0] <= updated]
    last = feed(spark, path, layer, startingVersion=upserted)
    assert listed(last) == [
        (upserted, "insert", 99, "up"),
        (upserted, "update_postimage", 2, "up"),
        (upserted, "update_preimage", 2, "old"),
    ]
    assert last.filter("_change_type = 'insert' AND k > 50").select("s").collect() == [("up",)]
    assert last.count() == 3
    assert last.select("_commit_timestamp").first()[0] is not None
    nothing = feed(spark, path, layer, startingVersion=upserted + 1)
    assert nothing.count() == 0


def test_moments(spark: Any, tmp_path: Path) -> None:
    made = str(tmp_path / "t")
    indextables.write(pa.table({"k": [1], "s": ["a"]}), made)
    time.sleep(0.05)
    middle = dt.datetime.now(dt.UTC)
    time.sleep(0.05)
    indextables.write(pa.table({"k": [2], "s": ["b"]}), made)
    text = middle.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert [r[2] for r in listed(feed(spark, made, startingTimestamp=text))] == [2]
    until = feed(spark, made, startingVersion=0, endingTimestamp=text)
    assert [r[2] for r in listed(until)] == [1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "startingVersion or startingTimestamp"),
        ({"startingVersion": 99}, "after the newest"),
        ({"startingVersion": 3, "endingVersion": 2}, "before it starts"),
        ({"startingVersion": "x"}, "must be a version"),
        ({"startingVersion": 1, "startingTimestamp": "2026-01-01"}, "not both"),
        ({"startingTimestamp": "never"}, "moment"),
    ],
)
def test_what_cannot_be_read(spark: Any, path: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(Exception, match=said):
        feed(spark, path, **options).collect()


@pytest.mark.parametrize("start", [None, 0])
def test_a_stream_of_changes(spark: Any, path: str, tmp_path: Path, start: int | None) -> None:
    """Without a start, the rows of the table come first as inserts; then what changes."""
    path = shutil.copytree(path, str(tmp_path / "copy"))
    place, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")

    def run() -> None:
        reader = spark.readStream.format("indextables").option("readChangeFeed", "true")
        if start is not None:
            reader = reader.option("startingVersion", start)
        query = (
            reader.load(path)
            .writeStream.format("parquet")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(place)
        )
        query.awaitTermination(300)
        if query.exception() is not None:
            raise query.exception()

    run()
    before = indextables.open(path)
    rows = sorted((r["k"], r["s"]) for r in before.to_arrow().to_pylist())
    if start is None:
        want = [(before.version, "insert", k, s) for k, s in rows]
    else:
        want = expected(path)
    assert listed(spark.read.parquet(place)) == sorted(want)
    done = before.delete("k = 0")
    run()
    now = listed(spark.read.parquet(place))
    assert now == sorted([*want, (done.version, "delete", 0, "old")])


@pytest.mark.parametrize("start", [None, 0])
def test_offsets_of_a_stream(path: str, tmp_path: Path, start: int | None) -> None:
    """What Spark asks of the stream, without Spark: each version is in one batch, once."""
    copy = shutil.copytree(path, str(tmp_path / "copy"))
    options = {"path": copy, **({} if start is None else {"startingVersion": str(start)})}
    output = spark_schema(feed_schema(indextables.open(copy).schema))
    stream = FeedStream(access(options), output, options)

    def batch(begin: dict[str, Any], end: dict[str, Any]) -> list[tuple[Any, ...]]:
        found = [b for part in stream.partitions(begin, end) for b in stream.read(part)]
        rows = [row for one in found for row in one.to_pylist()]
        return sorted((r["_commit_version"], r["_change_type"], r["k"], r["s"]) for r in rows)

    table = indextables.open(copy)
    begin = stream.initialOffset()
    end = stream.latestOffset(begin)
    rows = [(table.version, "insert", r["k"], r["s"]) for r in table.to_arrow().to_pylist()]
    assert batch(begin, end) == (sorted(rows) if start is None else expected(copy))
    assert stream.latestOffset(end) == end
    done = table.delete("k = 0")
    last = stream.latestOffset(end)
    assert last != end
    assert batch(end, last) == [(done.version, "delete", 0, "old")]
    stream.prepareForTriggerAvailableNow()
    indextables.open(copy).delete("k = 1")
    assert stream.latestOffset(last) == last
