"""Failures put into statements by name: the old table is readable, catalog and log agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from indextables.errors import CommitFailedError
from indextables.log.log import TransactionLog

ROWS = [(1, "one"), (2, "two")]
IN_TASKS = (
    "CREATE OR REPLACE TABLE broken USING indextables AS SELECT raise_error('boom') FROM range(3)",
    "INSERT OVERWRITE broken SELECT id, raise_error('boom') FROM range(4)",
    "INSERT INTO broken SELECT id, raise_error('boom') FROM range(4)",
    "CREATE TABLE never USING indextables AS SELECT raise_error('boom') x FROM range(3)",
)
IN_THE_COMMIT = (
    "CREATE OR REPLACE TABLE broken (other DOUBLE) USING indextables",
    "ALTER TABLE broken ADD COLUMNS (a INT, b INT)",
    "ALTER TABLE broken RENAME COLUMN m TO msg",
    "ALTER TABLE broken DROP COLUMN m",
    "ALTER TABLE broken CLUSTER BY (id)",
    "COMMENT ON TABLE broken IS 'x'",
)


def state(spark: Any) -> tuple[Any, ...]:
    """All that is to stay: rows, definition, versions, names."""

    def rows(text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(text).collect()]

    return (
        rows("SELECT * FROM broken ORDER BY id"),
        rows("SHOW CREATE TABLE broken"),
        rows("SELECT version FROM broken.history"),
        sorted(table.name for table in spark.catalog.listTables()),
    )


@pytest.fixture
def before(spark: Any) -> Any:
    spark.sql("DROP TABLE IF EXISTS broken")
    spark.sql("CREATE TABLE broken (id BIGINT, m STRING) USING indextables COMMENT 'c'")
    spark.sql("INSERT INTO broken VALUES (1, 'one'), (2, 'two')")
    yield state(spark)
    spark.sql("DROP TABLE broken")


@pytest.mark.driver_errors("boom", "ITX-", "lost the store", "ClosedByInterrupt")
def test_failures_change_nothing(spark: Any, before: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))
    assert before[0] == ROWS
    for statement in IN_TASKS:
        with pytest.raises(Exception, match="boom"):
            spark.sql(statement)
        assert state(spark) == before, statement
    frame = spark.range(4).selectExpr("raise_error('boom') AS x")
    with pytest.raises(Exception, match="boom"):
        frame.write.format("indextables").mode("overwrite").saveAsTable("broken")
    assert state(spark) == before

    def lost(self: TransactionLog, transaction: Any) -> Any:
        raise CommitFailedError("lost the store", path=self.path)

    with monkeypatch.context() as patched:
        patched.setattr(TransactionLog, "commit", lost)
        for statement in IN_THE_COMMIT:
            with pytest.raises(Exception, match="lost the store"):
                spark.sql(statement)
    assert state(spark) == before
    with pytest.raises(Exception, match="bad-name"):
        spark.sql("CREATE TABLE `bad-name` USING indextables AS SELECT 1 AS a")
    assert state(spark) == before
    assert not (warehouse / "bad-name").exists()
    assert not (warehouse / "never").exists() or not list((warehouse / "never").rglob("*.json"))
