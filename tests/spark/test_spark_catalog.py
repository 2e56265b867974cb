"""SQL over tables: by path, by name, in the past; and the traps of catalog tables."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pytest

from indextables.table import open_table


@pytest.fixture
def path(spark: Any, tmp_path: Path) -> str:
    place = str(tmp_path / "t")
    frame = spark.range(20).selectExpr("id", "concat('v', id) v")
    frame.write.format("indextables").save(place)
    time.sleep(0.01)
    frame.filter("id < 5").write.format("indextables").mode("append").save(place)
    return place


def one(spark: Any, query: str) -> Any:
    return spark.sql(query).collect()[0][0]


def test_select_by_path(spark: Any, path: str) -> None:
    assert one(spark, f"select count(*) from indextables.`{path}` where id = 3") == 2


def test_version_as_of(spark: Any, path: str) -> None:
    assert one(spark, f"select count(*) from indextables.`{path}` version as of 1") == 20
    assert one(spark, f"select count(*) from indextables.`{path}` version as of 2") == 25
    assert spark.read.option("versionAsOf", 1).format("indextables").load(path).count() == 20


def test_an_unknown_version_is_an_error(spark: Any, path: str) -> None:
    with pytest.raises(Exception, match="99"):
        spark.sql(f"select * from indextables.`{path}` version as of 99").collect()


def test_timestamp_as_of(spark: Any, path: str) -> None:
    first = open_table(path, version=1).snapshot.timestamp_ms
    moment = dt.datetime.fromtimestamp(first / 1000, dt.UTC).strftime("'%Y-%m-%d %H:%M:%S.%f'")
    assert one(spark, f"select count(*) from indextables.`{path}` timestamp as of {moment}") == 20


def test_create_insert_select_by_path(spark: Any, tmp_path: Path) -> None:
    name = f"indextables.`{tmp_path}/new`"
    spark.sql(
        f"create table {name} (id bigint, m string, k string) partitioned by (k) "
        "tblproperties ('spark.indextables.indexing.typemap.text' = 'm')"
    )
    spark.sql(f"insert into {name} values (1, 'hello world', 'a'), (2, 'bye', 'b')")
    assert one(spark, f"select id from {name} where m textsearch 'world'") == 1
    assert open_table(f"{tmp_path}/new").partition_columns == ("k",)


def test_create_table_as_select(spark: Any, path: str, tmp_path: Path) -> None:
    name = f"indextables.`{tmp_path}/ctas`"
    spark.sql(f"create table {name} as select * from indextables.`{path}` where id < 3")
    assert one(spark, f"select count(*) from {name}") == 6
    spark.sql(f"create table if not exists {name} as select 1 id")
    assert one(spark, f"select count(*) from {name}") == 6


def test_a_named_table_keeps_its_path(spark: Any, path: str) -> None:
    spark.sql("drop table if exists named")
    spark.sql(f"create table named using indextables options (path '{path}')")
    try:
        assert one(spark, "select count(*) from named where id = 3") == 2
        spark.sql("insert into named values (100, 'v')")
        assert open_table(path).count() == 26
        assert one(spark, "select max(id) from named") == 100
    finally:
        spark.sql("drop table named")


def test_a_named_table_of_the_python_layer_says_that_its_path_is_lost(
    spark: Any, path: str
) -> None:
    """Spark does not hand the path on to a Python source: no rows are read or written elsewhere."""
    spark.sql("drop table if exists lost")
    spark.sql(f"create table lost using indextables_python options (path '{path}')")
    try:
        for statement in ("select * from lost", "insert into lost values (1, 'v')"):
            with pytest.raises(Exception, match="needs a path"):
                spark.sql(statement).collect()
    finally:
        spark.sql("drop table lost")


def test_a_named_table_with_a_location(spark: Any, tmp_path: Path) -> None:
    place = tmp_path / "loc"
    spark.sql("drop table if exists located")
    spark.sql(f"create table located (id bigint, k string) using indextables location '{place}'")
    try:
        spark.sql("insert into located values (1, 'a'), (2, 'b')")
        assert one(spark, "select count(*) from located where k = 'a'") == 1
        assert open_table(str(place)).count() == 2
    finally:
        spark.sql("drop table located")


def test_temporary_view_using(spark: Any, path: str) -> None:
    spark.sql(f"create or replace temporary view vp using indextables options (path '{path}')")
    assert one(spark, "select count(*) from vp where id = 3") == 2


def test_per_query_options(spark: Any, path: str) -> None:
    query = f"select count(*) from indextables.`{path}` with (`where` = 'id < 3')"
    assert one(spark, query) == 6


def test_missing_table(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no transaction log found"):
        spark.read.format("indextables").load(str(tmp_path / "nope"))
    with pytest.raises(Exception, match="needs a path"):
        spark.read.format("indextables").load()


def test_properties(spark: Any, path: str) -> None:
    spark.sql(f"alter table indextables.`{path}` set tblproperties ('team' = 'me')")
    assert open_table(path).snapshot.metadata.configuration["team"] == "me"


def test_drop_is_refused(spark: Any, path: str) -> None:
    with pytest.raises(Exception, match="delete the folder"):
        spark.sql(f"drop table indextables.`{path}`")


def test_a_frame_sees_new_rows(spark: Any, path: str) -> None:
    frame = spark.read.format("indextables").load(path)
    assert frame.count() == 25
    spark.range(1).selectExpr("id", "'x' v").write.format("indextables").mode("append").save(path)
    assert frame.count() == 26


def test_a_frame_of_a_version_does_not(spark: Any, path: str) -> None:
    frame = spark.read.format("indextables").option("versionAsOf", "2").load(path)
    spark.range(1).selectExpr("id", "'x' v").write.format("indextables").mode("append").save(path)
    assert frame.count() == 25


def test_column_names_of_any_case(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "case")
    spark.sql("select 1 as MixedCase, 'x' as `with space`, 2 as `dot.ted`").write.format(
        "indextables"
    ).save(place)
    frame = spark.read.format("indextables").load(place)
    assert frame.filter("mixedcase = 1").count() == 1
    assert frame.filter("`with space` = 'x' and `dot.ted` = 2").select("MIXEDCASE").count() == 1
