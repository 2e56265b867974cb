"""A companion through Spark gives what Spark gives over the files themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables

FILTERS = [
    "id = 205",
    "id < 40 OR host = 'web-2'",
    "host IS NULL",
    "host IN ('web-1', 'web-3') AND id % 2 = 0",
    "message LIKE '%disk%'",
    "NOT (host = 'web-1')",
]


def rows(first: int) -> pa.Table:
    numbers = range(first, first + 100)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "host": [None if n % 11 == 0 else f"web-{n % 5}" for n in numbers],
            "message": [f"disk {n % 7} is {'full' if n % 3 else 'empty'}" for n in numbers],
        }
    )


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str]:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(4):
        pq.write_table(rows(100 * number), source / f"{number}.parquet")
    return str(source), str(tmp_path / "index")


def same(spark: Any, source: str, at: str) -> None:
    ours = spark.read.format("indextables").load(at)
    theirs = spark.read.parquet(source)
    for where in FILTERS:
        wanted = sorted(map(tuple, theirs.where(where).collect()), key=repr)
        assert sorted(map(tuple, ours.where(where).collect()), key=repr) == wanted, where
    assert ours.count() == theirs.count()
    grouped = [frame.groupBy("host").count().collect() for frame in (ours, theirs)]
    assert sorted(map(repr, grouped[0])) == sorted(map(repr, grouped[1]))


def test_rows_are_those_of_the_files(spark: Any, places: tuple[str, str]) -> None:
    source, at = places
    indextables.index(source, at, text=["message"], spark=spark)
    same(spark, source, at)
    (Path(source) / "1.parquet").unlink()
    pq.write_table(rows(900), Path(source) / "9.parquet")
    same(spark, source, at)
    found = indextables.sql(spark, f"SYNC INDEXTABLES COMPANION '{at}'").collect()
    assert found[0]["parquet_files_indexed"] == 1
    same(spark, source, at)
