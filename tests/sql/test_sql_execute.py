"""Commands run without Spark: happy and unhappy paths."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables.errors import IndexTablesError, MaintenanceError, PlanningError


def sql(text: str) -> pa.Table:
    return indextables.sql(None, text)


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "it's a table")
    for i in range(3):
        data = pa.table({"id": list(range(i * 4, i * 4 + 4)), "m": [9, 10, 11, 12]})
        indextables.write(data, place, partition_by=["m"])
    return place


def quoted(path: str) -> str:
    return "'" + path.replace("'", "\\'") + "'"


def test_months_are_numbers(path: str) -> None:
    sql(f"DROP INDEXTABLES PARTITIONS FROM {quoted(path)} WHERE m > 9")
    assert set(indextables.open(path).to_arrow()["m"].to_pylist()) == {9}


@pytest.mark.parametrize(
    ("command", "error", "words"),
    [
        ("DROP INDEXTABLES PARTITIONS FROM {} WHERE id = 1", PlanningError, "partition columns"),
        ("PURGE INDEXTABLE {} OLDER THAN 1 HOURS", MaintenanceError, "minimum"),
        ("MERGE SPLITS {} TARGET SIZE 10", MaintenanceError, "too small"),
        ("RESTORE {} TO VERSION 99", IndexTablesError, "99"),
        ("DELETE FROM {} WHERE nope = 1", IndexTablesError, "nope"),
    ],
)
def test_refusals(path: str, command: str, error: type[Exception], words: str) -> None:
    before = indextables.open(path).version
    with pytest.raises(error, match=words):
        sql(command.format(quoted(path)))
    assert indextables.open(path).version == before


def test_a_name_needs_spark() -> None:
    with pytest.raises(MaintenanceError, match="no Spark session"):
        sql("CHECKPOINT INDEXTABLES db.t")


def test_xref_summary_shows_active_removed_and_coverage(path: str) -> None:
    where = quoted(path)
    sql(f"INDEX CROSSREFERENCES FOR {where}")
    sql(f"INDEX CROSSREFERENCES FOR {where} FORCE REBUILD")
    found = sql(f"DESCRIBE INDEXTABLES TRANSACTION LOG {where} XREFS").to_pylist()
    assert [row["status"] for row in found] == ["active", "removed", "summary"]
    assert found[-1]["xref_path"] == "Coverage: 12/12 (100.00%)"


def test_secrets_stay_hidden(path: str) -> None:
    options = {"spark.indextables.aws.secretKey": "hunter2hunter2"}
    found = indextables.sql(None, "DESCRIBE INDEXTABLES ENVIRONMENT", options=options)
    assert "hunter2" not in str(found.to_pylist())


def test_settings_about_tokenizers_are_no_secrets(path: str) -> None:
    options = {
        "spark.indextables.indexing.tokenizer.message": "whitespace",
        "spark.indextables.indexing.tokenLength.message": "100",
        "spark.indextables.gcs.token": "hunter2hunter2",
    }
    found = indextables.sql(None, "DESCRIBE INDEXTABLES ENVIRONMENT", options=options).to_pylist()
    shown = {row["property_name"].lower(): row["property_value"] for row in found}
    assert shown["spark.indextables.indexing.tokenizer.message"] == "whitespace"
    assert shown["spark.indextables.indexing.tokenlength.message"] == "100"
    assert shown["spark.indextables.indexing.text.maxtokenlength"] == "255"
    assert shown["spark.indextables.gcs.token"] == "***REDACTED***"
