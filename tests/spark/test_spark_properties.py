"""ALTER TABLE ... TBLPROPERTIES does the same, however the table is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indextables.log.log import TransactionLog
from indextables.table import open_table, write_table

WAYS = ("path", "catalog", "identifier")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table whose columns are called as the catalog calls its own facts."""
    place = str(tmp_path / "t")
    write_table(
        [{"id": i, "Location": "no place", "Provider": "none"} for i in range(4)],
        place,
        options={"checkpoint.enabled": False, "protocol.version": 2},
    )
    return place


@pytest.fixture
def names(spark: Any, path: str) -> Iterator[dict[str, str]]:
    spark.sql("drop table if exists altered")
    spark.sql(f"create table altered using indextables options (path '{path}')")
    yield {"path": f"'{path}'", "catalog": "default.altered", "identifier": f"indextables.`{path}`"}
    spark.sql("drop table altered")


def configuration(path: str) -> dict[str, str]:
    return dict(open_table(path).snapshot.metadata.configuration)


@pytest.mark.parametrize("way", WAYS)
def test_properties_are_set_and_unset(
    spark: Any, path: str, names: dict[str, str], way: str
) -> None:
    before = configuration(path)
    spark.sql(f"ALTER TABLE {names[way]} SET TBLPROPERTIES ('team' = 'us', 'a.b' = 'c')")
    assert configuration(path) == {**before, "team": "us", "a.b": "c"}
    spark.sql(f"ALTER TABLE {names[way]} UNSET TBLPROPERTIES ('team', 'never.set')")
    assert configuration(path) == {**before, "a.b": "c"}
    spark.sql(f"ALTER TABLE {names[way]} UNSET TBLPROPERTIES IF EXISTS ('a.b')")
    assert configuration(path) == before


@pytest.mark.parametrize("way", WAYS)
def test_the_protocol_is_raised(spark: Any, path: str, names: dict[str, str], way: str) -> None:
    before = configuration(path)
    first = TransactionLog.open(path).snapshot().protocol
    wanted = first.min_reader_version + 1
    spark.sql(f"ALTER TABLE {names[way]} SET TBLPROPERTIES ('minReaderVersion' = '{wanted}')")
    found = TransactionLog.open(path).snapshot()
    assert found.protocol.min_reader_version == wanted
    assert dict(found.metadata.configuration) == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("SET TBLPROPERTIES ('minReaderVersion' = 'three')", "must be a number"),
        ("UNSET TBLPROPERTIES ('minWriterVersion')", "never lowered"),
        ("SET TBLPROPERTIES ('indextables.docMapping' = '{}')", "kept by the table itself"),
        ("UNSET TBLPROPERTIES ('indextables.docMapping')", "kept by the table itself"),
    ],
)
def test_mistakes_are_refused(
    spark: Any, path: str, names: dict[str, str], way: str, clause: str, message: str
) -> None:
    version = open_table(path).snapshot.version
    with pytest.raises(Exception, match=message):
        spark.sql(f"ALTER TABLE {names[way]} {clause}")
    assert open_table(path).snapshot.version == version


def test_tables_of_others_are_left_to_spark(spark: Any) -> None:
    spark.sql("drop table if exists plain_table")
    spark.sql("create table plain_table (id int) using parquet")
    try:
        spark.sql("ALTER TABLE plain_table SET TBLPROPERTIES ('team' = 'us')")
        shown = spark.sql("SHOW TBLPROPERTIES plain_table").collect()
        assert ("team", "us") in [tuple(row) for row in shown]
        spark.sql("ALTER TABLE plain_table UNSET TBLPROPERTIES ('team')")
        shown = spark.sql("SHOW TBLPROPERTIES plain_table").collect()
        assert "team" not in [row[0] for row in shown]
    finally:
        spark.sql("drop table plain_table")


def test_the_catalog_itself_takes_both(spark: Any, path: str) -> None:
    """What other programs of the same JVM call: no SQL of ours stands before it."""
    before = configuration(path)
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    connector = jvm.org.apache.spark.sql.connector.catalog
    catalog = spark._jsparkSession.sessionState().catalogManager().catalog("indextables")
    ident = connector.Identifier.of(gateway.new_array(jvm.java.lang.String, 0), path)

    def alter(change: Any) -> None:
        changes = gateway.new_array(connector.TableChange, 1)
        changes[0] = change
        catalog.alterTable(ident, changes)

    alter(connector.TableChange.setProperty("team", "us"))
    assert configuration(path) == {**before, "team": "us"}
    alter(connector.TableChange.removeProperty("team"))
    assert configuration(path) == before
