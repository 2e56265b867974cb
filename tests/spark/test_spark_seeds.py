"""What the seeds promise of Spark: names of the format, versions in paths, columns that change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import indextables

FORMATS = (
    "io.indextables.spark.core.IndexTables4SparkTableProvider",
    "io.indextables.provider.IndexTablesProvider",
)


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_under_the_names_of_the_seed(spark: Any, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "t")
    frame = spark.range(10).selectExpr("id", "cast(id % 2 as string) k")
    frame.write.format(name).mode("append").partitionBy("k").save(path)
    frame.write.format(name).mode("append").save(path)
    reader = spark.read.format(name).option("spark.indextables.xref.query.enabled", "false")
    assert reader.load(path).filter("id = 3").count() == 2


def test_versions_in_paths(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for _ in range(3):
        spark.range(5).write.format("indextables").mode("append").save(path)
    assert spark.read.format("indextables").load(f"{path}@v2").count() == 10
    assert spark.sql(f"SELECT * FROM indextables.`{path}@v1`").count() == 5
    assert spark.read.format("indextables").load(path).count() == 15


def test_columns_that_change(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = spark.range(10).selectExpr("id", "concat('v', id) v", "cast(id % 2 as string) k")
    frame.write.format("indextables").partitionBy("k").save(path)
    table = indextables.open(path)
    table.rename_column("v", "name")
    table.rename_column("k", "part")
    table.add_column("v", "int")
    loaded = spark.read.format("indextables").load(path)
    assert loaded.columns == ["id", "name", "part", "v"]
    assert [r.id for r in loaded.filter("name = 'v7' AND part = '1'").collect()] == [7]
    assert loaded.filter("v IS NULL").count() == 10
    assert sorted((r.part, r["count"]) for r in loaded.groupBy("part").count().collect()) == [
        ("0", 5), ("1", 5),
    ]  # fmt: skip
    more = spark.range(10, 12).selectExpr(
        "id", "concat('v', id) name", "'2' part", "cast(id as int) v"
    )
    more.write.format("indextables").mode("append").save(path)
    again = spark.read.format("indextables").load(path)
    assert [r.name for r in again.filter("v = 11").collect()] == ["v11"]
    spark.sql(f"ALTER TABLE '{path}' DROP COLUMN name")
    assert spark.read.format("indextables").load(path).columns == ["id", "part", "v"]
