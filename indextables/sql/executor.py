"""Running a parsed statement: find the table, run its verb, give the rows as Arrow.

A table is a path, or a name the Spark session's catalog resolves to one. With a Spark session the
heavy verbs run their work as Spark tasks; without one, in this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.errors import MaintenanceError
from indextables.expr.lexer import quoted_name
from indextables.sql.parser import Statement, TableName, parse
from indextables.verbs import Target, as_table, invoke


class Session:
    """What a statement runs with."""

    def __init__(
        self,
        spark: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.spark = spark
        self.storage_options = storage_options
        self.config = Config.of(options, session_settings(spark))

    def path(self, name: TableName) -> str:
        if name.path is not None:
            return name.path
        if self.spark is None:
            raise MaintenanceError(
                f"'{name}' is a table name and there is no Spark session to resolve it",
                hint="Give the path in quotes",
            )
        return catalog_path(self.spark, name)

    def target(self, name: TableName | None) -> Target:
        """The table a verb works on; without a name there is none."""
        return Target(
            None if name is None else self.path(name),
            config=self.config,
            storage_options=self.storage_options,
            spark=self.spark,
        )


def session_settings(spark: Any) -> dict[str, str]:
    """The session's settings under our prefix."""
    if spark is None:
        return {}
    found = spark.conf.getAll
    settings = found() if callable(found) else found
    return {k: v for k, v in dict(settings).items() if k.startswith("spark.indextables.")}


def catalog_path(spark: Any, name: TableName) -> str:
    """The location of a table the session knows by name."""
    location = _catalog_facts(spark, name).get("Location")
    if location is None:
        raise MaintenanceError(f"the catalog has no location for '{name}'")
    return location.removeprefix("file:")


def is_our_table(spark: Any, name: TableName) -> bool:
    """Does the session's catalog know this as a table of ours? Spark says what is wrong with one
    that it does not know."""
    try:
        return _catalog_facts(spark, name).get("Provider", "").lower() == "indextables"
    except Exception as error:
        if type(error).__module__.startswith("pyspark."):
            return False
        raise


def row_change(text: str, spark: Any) -> tuple[Any, str] | None:
    """A DELETE, UPDATE or MERGE INTO of a table of ours, and the path of that table.

    A path in quotes is a table of ours; DELETE and UPDATE by path are verbs of their own.
    """
    from indextables.spark.sql.rowlevel import parsed

    change = parsed(text)
    if change is None:
        return None
    if change.path is not None:
        return (change, change.path) if change.verb == "MERGE" else None
    name = TableName(parts=change.parts)
    if not is_our_table(spark, name):
        return None
    return change, catalog_path(spark, name)


def _catalog_facts(spark: Any, name: TableName) -> dict[str, str]:
    """What the catalog says of a table; its columns, which come first, may be called anything."""
    quoted = ".".join(map(quoted_name, name.parts))
    rows = iter(spark.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect())
    for row in rows:
        if row[0] == "# Detailed Table Information":
            break
    return {str(row[0]): str(row[1]) for row in rows}


def execute(
    text: str,
    spark: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Run one statement and return its rows."""
    if spark is not None and (found := row_change(text, spark)) is not None:
        from indextables.maintenance.rows import as_dict
        from indextables.spark.driver.changing import change_rows

        change, path = found
        result = change_rows(spark, change, path)
        return pa.Table.from_pylist([as_dict(result)], schema=type(result).COLUMNS)
    return run_statement(parse(text), Session(spark, storage_options, options))


def run_statement(statement: Statement, session: Session) -> pa.Table:
    """Run a parsed statement."""
    return as_table(statement.verb, invoke(statement.verb, session.target(statement.table)))
