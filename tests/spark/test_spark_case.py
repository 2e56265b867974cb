"""Fields of one struct that differ by case alone, in a session where case counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_world import ALL_IN_DRIVER, ALL_IN_TASKS, bag

import indextables as it

QUERIES = (
    "SELECT * FROM {t}",
    "SELECT st.x FROM {t}",
    "SELECT st.X, id FROM {t}",
    "SELECT st.X, st.x FROM {t}",
    "SELECT id FROM {t} WHERE st.x = 3",
    "SELECT id FROM {t} WHERE st.X = 30",
    "SELECT id, st.X FROM {t} WHERE st.x > 4 AND st.X < 80",
    "SELECT id FROM {t} WHERE st.X IS NULL",
    "SELECT id FROM {t} WHERE st.x IS NULL AND st.X IS NOT NULL",
    "SELECT sum(st.x), max(st.X), count(st.X) FROM {t}",
    "SELECT sum(st.X) FROM {t} WHERE st.x < 5",
    "SELECT st.X, count(*) FROM {t} GROUP BY st.X",
    "SELECT st.x, sum(st.X) FROM {t} GROUP BY st.x",
    "SELECT sum(CASE WHEN st.X > 20 THEN st.x END) FROM {t}",
    "SELECT st.in.A, st.in.a FROM {t} WHERE st.in.a = 'a2'",
    "SELECT max(st.in.A), min(st.in.a) FROM {t}",
    "SELECT items.A, items[0].a FROM {t}",
    "SELECT items FROM {t} WHERE id = 4",
    "SELECT m['k'].A, m['k'].a FROM {t}",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("case")
    pair = pa.struct([("a", pa.string()), ("A", pa.string())])
    numbers = [("x", pa.int64()), ("X", pa.int64()), ("in", pair)]
    both = [{"a": f"a{i}", "A": f"A{i}"} for i in range(12)]
    table = pa.table(
        {
            "id": range(12),
            "st": pa.array(
                [
                    None if i == 7 else {"x": None if i == 9 else i, "X": 10 * i, "in": both[i]}
                    for i in range(12)
                ],
                pa.struct(numbers),
            ),
            "items": pa.array([[pair_of, None] for pair_of in both], pa.list_(pair)),
            "m": pa.array([[("k", pair_of)] for pair_of in both], pa.map_(pa.string(), pair)),
        }
    )
    it.write(table, str(folder / "t"), rows_per_split=4)
    pq.write_table(table, folder / "copy.parquet")
    return folder


@pytest.fixture
def exact(spark: Any) -> Iterator[Any]:
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield spark
    spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize("way", ["l1", "tasks", "driver"])
def test_exact_fields(exact: Any, folder: Path, way: str) -> None:
    name = "indextables_python" if way == "l1" else "indextables"
    options = {"l1": {}, "tasks": ALL_IN_TASKS, "driver": ALL_IN_DRIVER}[way]
    reader = exact.read.format(name).options(**options)
    reader.load(str(folder / "t")).createOrReplaceTempView("case_mine")
    exact.read.parquet(str(folder / "copy.parquet")).createOrReplaceTempView("case_theirs")
    for query in QUERIES:
        mine, theirs = (exact.sql(query.format(t=t)) for t in ("case_mine", "case_theirs"))
        assert bag(mine) == bag(theirs), query


def test_spark_writes_what_it_has(exact: Any, folder: Path, tmp_path: Path) -> None:
    frame = exact.read.parquet(str(folder / "copy.parquet"))
    target = str(tmp_path / "written")
    frame.write.format("indextables").save(target)
    frame.filter("st.X = 30").write.format("indextables").mode("append").save(target)
    found = exact.read.format("indextables").load(target)
    assert bag(found) == bag(frame.union(frame.filter("st.X = 30")))
