"""Writes: modes, partitions, replacements, schema checks, retries, aborted jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from indextables.table import open_table


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def frame(spark: Any) -> Any:
    return spark.range(60).selectExpr("id", "cast(id % 3 as string) k", "concat('v', id) v")


def save(frame: Any, path: str, mode: str = "append", **options: Any) -> None:
    writer = frame.write.format("indextables").mode(mode)
    for key, value in options.items():
        writer = writer.option(key, value)
    writer.save(path)


def count(spark: Any, path: str) -> int:
    return int(spark.read.format("indextables").load(path).count())


@pytest.mark.parametrize("mode", ["append", "overwrite", "errorifexists", "ignore"])
def test_every_mode_creates_a_partitioned_table(
    spark: Any, frame: Any, path: str, mode: str
) -> None:
    frame.write.format("indextables").mode(mode).partitionBy("k").save(path)
    table = open_table(path)
    assert table.partition_columns == ("k",)
    assert table.count() == 60


@pytest.mark.parametrize(("mode", "after"), [("append", 80), ("overwrite", 20), ("ignore", 60)])
def test_modes_on_an_existing_table(
    spark: Any, frame: Any, path: str, mode: str, after: int
) -> None:
    frame.write.format("indextables").partitionBy("k").save(path)
    part = frame.filter("k = '1'")
    part.write.format("indextables").mode(mode).partitionBy("k").save(path)
    assert count(spark, path) == after


def test_error_mode_refuses_an_existing_table(spark: Any, frame: Any, path: str) -> None:
    save(frame, path, "errorifexists")
    with pytest.raises(Exception, match="already exists"):
        save(frame, path, "error")
    assert count(spark, path) == 60


def test_other_partition_columns_are_refused(spark: Any, frame: Any, path: str) -> None:
    frame.write.format("indextables").partitionBy("k").save(path)
    with pytest.raises(Exception, match="partition"):
        frame.write.format("indextables").mode("append").partitionBy("v").save(path)


def test_replace_where(spark: Any, frame: Any, path: str) -> None:
    frame.write.format("indextables").partitionBy("k").save(path)
    save(frame.filter("k = '1' and id < 10"), path, "overwrite", replaceWhere="k = '1'")
    found = {r.k: r["count"] for r in reread(spark, path).groupBy("k").count().collect()}
    assert found == {"0": 20, "1": 3, "2": 20}


@pytest.mark.driver_errors("is aborting")
def test_replace_where_refuses_rows_outside(spark: Any, frame: Any, path: str) -> None:
    frame.write.format("indextables").partitionBy("k").save(path)
    with pytest.raises(Exception, match="outside"):
        save(frame, path, "overwrite", replaceWhere="k = '1'")
    assert count(spark, path) == 60


def test_dynamic_overwrite(spark: Any, frame: Any, path: str) -> None:
    frame.write.format("indextables").partitionBy("k").save(path)
    save(frame.filter("k = '2' and id < 9"), path, "overwrite", partitionOverwriteMode="dynamic")
    found = {r.k: r["count"] for r in reread(spark, path).groupBy("k").count().collect()}
    assert found == {"0": 20, "1": 20, "2": 3}


def test_dataframe_writer_v2(spark: Any, frame: Any, path: str) -> None:
    name = f"indextables.`{path}`"
    frame.writeTo(name).create()
    frame.filter("id < 5").writeTo(name).append()
    assert count(spark, path) == 65
    frame.filter("id < 7").writeTo(name).createOrReplace()
    assert count(spark, path) == 7


def test_overwrite_by_filter_in_sql(spark: Any, frame: Any, path: str) -> None:
    frame.write.format("indextables").partitionBy("k").save(path)
    spark.sql(
        f"insert into indextables.`{path}` replace where k = '0' "
        "select cast(1 as bigint) id, '0' k, 'x' v"
    )
    found = {r.k: r["count"] for r in reread(spark, path).groupBy("k").count().collect()}
    assert found == {"0": 1, "1": 20, "2": 20}


def reread(spark: Any, path: str) -> Any:
    return spark.read.format("indextables").load(path)


def test_missing_and_extra_columns(spark: Any, frame: Any, path: str) -> None:
    save(frame, path)
    save(frame.select("id", "k"), path)
    assert reread(spark, path).filter("v is null").count() == 60
    with pytest.raises(Exception, match="no column 'extra'"):
        save(frame.selectExpr("*", "1 extra"), path)
    save(frame.selectExpr("*", "1 extra"), path, mergeSchema="true")
    assert reread(spark, path).filter("extra = 1").count() == 60


def test_wrong_types_are_refused(spark: Any, frame: Any, path: str) -> None:
    save(frame, path)
    with pytest.raises(Exception, match="bigint in the table"):
        save(frame.selectExpr("v as id", "k", "v"), path)


def test_no_rows_create_a_table(spark: Any, frame: Any, path: str) -> None:
    save(frame.filter("id < 0"), path)
    assert count(spark, path) == 0


def test_indexing_options(spark: Any, frame: Any, path: str) -> None:
    save(frame, path, **{"spark.indextables.indexing.typemap.text": "v"})
    mapping = open_table(path).mapping
    field = mapping.get("v")
    assert field is not None
    assert field.is_tokenized


def test_unknown_option_is_refused_with_a_suggestion(frame: Any, path: str) -> None:
    with pytest.raises(Exception, match="rowsPerSplit"):
        save(frame, path, **{"spark.indextables.write.rowPerSplit": "5"})


def test_option_on_an_unknown_column_is_refused(frame: Any, path: str) -> None:
    with pytest.raises(Exception, match="nope"):
        save(frame, path, **{"spark.indextables.indexing.fastfields": "nope"})


def test_session_setting_and_option_precedence(spark: Any, frame: Any, path: str) -> None:
    key = "spark.indextables.write.rowsPerSplit"
    spark.conf.set(key, "5")
    try:
        save(frame.coalesce(1), path + "a")
        save(frame.coalesce(1), path + "b", **{"SPARK.indextables.write.ROWSPERSPLIT": "30"})
    finally:
        spark.conf.unset(key)
    assert open_table(path + "a").snapshot.num_files == 12
    assert open_table(path + "b").snapshot.num_files == 2


@pytest.mark.driver_errors("this attempt fails")
def test_retried_tasks_write_each_row_once(
    spark: Any, frame: Any, path: str, tmp_path: Path
) -> None:
    from pyspark.sql.functions import udf

    marker = str(tmp_path / "failed-once")

    @udf("bigint")
    def fragile(i: int) -> int:
        import os

        if i == 40 and not os.path.exists(marker):
            open(marker, "w").close()
            raise RuntimeError("this attempt fails")
        return i

    save(frame.select(fragile("id").alias("id"), "k", "v"), path)
    found = sorted(r.id for r in reread(spark, path).collect())
    assert found == list(range(60))
    live = {f.path for f in open_table(path).snapshot.files()}
    assert all("part-" in p for p in live)


@pytest.mark.driver_errors("DIVIDE_BY_ZERO")
def test_a_failed_job_leaves_the_table_as_it_was(spark: Any, frame: Any, path: str) -> None:
    save(frame, path)
    before = open_table(path).version
    splits = {f.path for f in open_table(path).snapshot.files()}
    with pytest.raises(Exception, match=r"division|DIVIDE"):
        save(
            frame.selectExpr("id / (id - 50) as x", "k", "v").selectExpr(
                "cast(x as bigint) id", "k", "v"
            ),
            path,
        )
    assert open_table(path).version == before
    assert count(spark, path) == 60
    assert {f.path for f in open_table(path).snapshot.files()} == splits


@pytest.mark.driver_errors("DIVIDE_BY_ZERO")
def test_a_failed_first_write_leaves_no_table(spark: Any, frame: Any, path: str) -> None:
    with pytest.raises(Exception, match=r"division|DIVIDE"):
        save(frame.selectExpr("id / (id - 50) as x"), path)
    assert not Path(path, "_transaction_log").exists()


def test_attempts_never_share_a_file_name(spark: Any, frame: Any, tmp_path: Path) -> None:
    """Two attempts of one task, as speculation makes them, write different files."""
    import pyarrow as pa

    from indextables.spark.driver.request import access
    from indextables.spark.driver.writing import BatchWriter

    path = str(tmp_path / "attempts")
    writer = BatchWriter.prepare(access({"path": path}), frame.schema, False)
    batch = pa.table({"id": [1], "k": ["a"], "v": ["b"]}).to_batches()[0]
    loser, winner = writer.write(iter([batch])), writer.write(iter([batch]))
    assert loser.adds[0].path != winner.adds[0].path
    writer.commit([winner])
    assert [f.path for f in open_table(path).snapshot.files()] == [winner.adds[0].path]
    assert open_table(path).count() == 1


def test_committing_twice_is_one_commit(spark: Any, frame: Any, tmp_path: Path) -> None:
    """A reply that was lost and a commit that runs again do not double the rows."""
    import pyarrow as pa

    from indextables.spark.driver.request import access
    from indextables.spark.driver.writing import BatchWriter

    path = str(tmp_path / "twice")
    writer = BatchWriter.prepare(access({"path": path}), frame.schema, False)
    batch = pa.table({"id": [1], "k": ["a"], "v": ["b"]}).to_batches()[0]
    message = writer.write(iter([batch]))
    writer.commit([message])
    writer.commit([message])
    assert open_table(path).count() == 1


def test_optimised_write_makes_one_split_per_partition(spark: Any, frame: Any, path: str) -> None:
    many = frame.repartition(6)
    on = {"spark.indextables.write.optimizeWrite.enabled": "true"}
    many.write.format("indextables").partitionBy("k").options(**on).save(path)
    assert open_table(path).snapshot.num_files == 3
    assert count(spark, path) == 60


def test_python_layer_writes_with_its_option(spark: Any, frame: Any, path: str) -> None:
    frame.write.format("indextables_python").mode("append").option("partitionBy", "k").save(path)
    assert open_table(path).partition_columns == ("k",)
    assert count(spark, path) == 60


def test_python_layer_refuses_error_and_ignore_clearly(frame: Any, path: str) -> None:
    for mode in ("error", "ignore"):
        with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            frame.write.format("indextables_python").mode(mode).save(path)


@pytest.mark.parametrize("name", ["indextables", "indextables_python"])
def test_a_write_without_a_path_is_refused(frame: Any, name: str) -> None:
    with pytest.raises(Exception, match="needs a path"):
        frame.write.format(name).mode("append").save()


def test_write_function(spark: Any, frame: Any, path: str) -> None:
    import indextables.spark

    indextables.spark.write(frame, path, partition_by=["k"], options={"write.rowsPerSplit": 5})
    assert open_table(path).partition_columns == ("k",)
    assert count(spark, path) == 60
