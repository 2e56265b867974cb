"""Maintenance commands through ``spark.sql``: the rows of the in-process form, Spark's own left
alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables
from indextables.sql import execute
from indextables.sql.parser import parse
from indextables.table import open_table, write_table
from indextables.verbs import REGISTRY

STATEMENTS = (
    "DESCRIBE INDEXTABLES STATE {t}",
    "DESCRIBE INDEXTABLES TRANSACTION LOG {t} INCLUDE ALL",
    "DESCRIBE INDEXTABLES TRANSACTION LOG {t} XREFS",
    "DESCRIBE INDEXTABLES COMPONENT SIZES {t}",
    "DESCRIBE INDEXTABLES STATS COVERAGE {t}",
    "DESCRIBE INDEXTABLES INDEXES {t}",
    "DESCRIBE HISTORY {t}",
    "SHOW PARTITIONS {t}",
    "ANALYZE TABLE {t} COMPUTE STATISTICS",
    "DESCRIBE INDEXTABLES DISK CACHE",
    "DESCRIBE INDEXTABLES STORAGE STATS",
    "FLUSH INDEXTABLES SEARCHER CACHE",
    "FLUSH INDEXTABLES DISK CACHE",
    "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE FOR {t}",
    "PREWARM INDEXTABLES CACHE {t}",
    "INDEX CROSSREFERENCES FOR {t}",
    "CREATE INDEX ON {t} (v)",
    "REINDEX {t}",
    "INDEX SPLITS FOR {t} (v)",
    "DROP INDEX ON {t} (v)",
    "MERGE SPLITS {t} TARGET SIZE 1G",
    "-- a note first\nDELETE FROM {t} WHERE id = 1",
    "UPDATE {t} SET v = upper(v) WHERE id = 2",
    "REORG TABLE {t} APPLY (PURGE)",
    "ALTER TABLE {t} ADD COLUMN n INT",
    "ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT",
    "ALTER TABLE {t} RENAME COLUMN n TO m",
    "ALTER TABLE {t} DROP COLUMN m",
    "DROP INDEXTABLES PARTITIONS FROM {t} WHERE k = '1'",
    "RESTORE {t} TO VERSION 1",
    "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'us')",
    "ALTER TABLE {t} UNSET TBLPROPERTIES ('team')",
    "ALTER TABLE {t} ADD COLUMN extra int",
    "ALTER TABLE {t} ALTER COLUMN extra TYPE bigint",
    "ALTER TABLE {t} RENAME COLUMN extra TO more",
    "ALTER TABLE {t} DROP COLUMN more",
    "UPDATE {t} SET v = 'new' WHERE id = 2",
    "REORG TABLE {t} APPLY (PURGE)",
    "ERASE FROM {t} WHERE id = 4",
    "BUILD INDEXTABLES COMPANION FOR PARQUET '{p}-source' AT LOCATION '{p}-companion'",
    "SYNC INDEXTABLES COMPANION '{p}-companion'",
    "DESCRIBE INDEXTABLES COMPANION '{p}-companion'",
    "CHECKPOINT INDEXTABLES {t}",
    "COMPACT INDEXTABLES {t}",
    "TRUNCATE INDEXTABLES TIME TRAVEL {t} DRY RUN",
    "PURGE INDEXTABLE {t} DRY RUN",
    "DOCTOR {t}",
    "TRUNCATE TABLE {t}",
    "DESCRIBE INDEXTABLES ENVIRONMENT",
    "TRUNCATE TABLE {t} DRY RUN",
    "REPAIR INDEXFILES TRANSACTION LOG '{p}/_transaction_log' AT LOCATION '{p}2/_transaction_log'",
)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two equal tables of two partitions and four splits."""
    folder = tmp_path_factory.mktemp("commands")
    here, there = str(folder / "spark"), str(folder / "plain")
    rows = [{"id": i, "k": str(i % 2), "v": f"v{i}"} for i in range(40)]
    write_table(rows, here, partition_by=["k"], rows_per_split=10)
    shutil.copytree(here, there)
    for place in (here, there):
        source = Path(f"{place}-source")
        source.mkdir()
        pq.write_table(pa.Table.from_pylist(rows), source / "a.parquet")
    return here, there


@pytest.mark.parametrize("statement", STATEMENTS)
def test_command(spark: Any, places: tuple[str, str], statement: str) -> None:
    here, there = (statement.format(t=f"'{p}'", p=p) for p in places)
    frame = spark.sql(here)
    found = frame.collect()
    expected = execute(there)
    assert frame.columns == expected.column_names
    assert expected.num_rows in (len(found), 0) or "ENVIRONMENT" in statement
    assert len(found) >= min(expected.num_rows, 1)


def test_every_verb_is_asked() -> None:
    asked = {type(parse(s.format(t="'t'", p="p")).verb) for s in STATEMENTS}
    assert asked == set(REGISTRY)


def test_the_rows_changed(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_table([{"id": i} for i in range(20)], path, rows_per_split=5)
    first = spark.sql(f"merge splits '{path}'").collect()[0]
    assert first.metrics.status == "success"
    assert open_table(path).snapshot.num_files == 1
    assert indextables.sql(spark, f"DELETE FROM '{path}' WHERE id < 5").collect()[0].version >= 2
    assert indextables.sql(spark, f"select count(*) from indextables.`{path}`").collect() == [(15,)]


def test_a_table_of_the_catalog(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_table([{"id": i} for i in range(20)], path, rows_per_split=5)
    spark.sql("drop table if exists commanded")
    spark.sql(f"create table commanded using indextables options (path '{path}')")
    try:
        assert spark.sql("merge splits commanded").collect()[0].metrics.merged_files == 4
        assert open_table(path).snapshot.num_files == 1
    finally:
        spark.sql("drop table commanded")


def test_mistakes_are_explained(spark: Any) -> None:
    with pytest.raises(Exception, match="TARGET"):
        spark.sql("MERGE SPLITS 'x' TARGT SIZE 1G")
    with pytest.raises(Exception, match="no transaction log"):
        spark.sql("MERGE SPLITS '/nowhere/at/all'")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("describe table extended nothing_here", "TABLE_OR_VIEW_NOT_FOUND"),
        ("drop table nothing_here", "TABLE_OR_VIEW_NOT_FOUND"),
        ("delete from nothing_here where id = 1", "TABLE_OR_VIEW_NOT_FOUND"),
        ("alter table nothing_here set tblproperties ('a' = 'b')", "TABLE_OR_VIEW_NOT_FOUND"),
        ("truncate table nothing_here", "TABLE_OR_VIEW_NOT_FOUND"),
        ("merge into a using b on a.x = b.x when matched then delete", "TABLE_OR_VIEW_NOT_FOUND"),
        ("repair table nothing_here", "TABLE_OR_VIEW_NOT_FOUND"),
        ("purge everything", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_what_is_not_ours_is_sparks(spark: Any, statement: str, error: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=error):
        spark.sql(statement)


def test_statements_of_spark_still_work(spark: Any) -> None:
    assert spark.sql("describe function upper").count() > 0
    assert spark.sql("create or replace temp view index_words as select 1 as merge").columns == []
    assert spark.sql("select merge from index_words").collect()[0][0] == 1
    assert spark.sql("explain select 1").count() == 1
