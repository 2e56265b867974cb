"""Tables by name: the script of ``sql_script`` gives what it says, and the page tells it.

``docs/spark-sql.md`` holds one row for each statement, made by this run. To write it again:
``python tests/spark/test_spark_names.py``.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sql_script import OURS_ALONE, SCRIPT, SINCE

from indextables.spark import compat

PAGE = Path(__file__).parents[2] / "docs" / "spark-sql.md"
BEGIN = "<!-- made by tests/spark/test_spark_names.py -->\n"
EXPECTED_ERRORS = ("boom", "NULL", "USER_RAISED", "ITX-", "ClosedByInterrupt")


def run(spark: Any, statement: str) -> Any:
    """Rows of a statement, or what a line of Python gives."""
    if statement.startswith("py:"):
        return eval(statement[3:], {"spark": spark})
    return [tuple(row) for row in spark.sql(statement).collect()]


def problem(spark: Any, statement: str, expected: Any) -> str | None:
    """What is wrong with the outcome of a statement."""
    try:
        found = run(spark, statement)
    except Exception as error:
        if isinstance(expected, str) and expected != "ROW":
            text = " ".join(str(error).split())
            return None if re.search(expected, text) else f"refused otherwise: {text[:300]}"
        return f"refused: {' '.join(str(error).split())[:300]}"
    if expected == "ROW":
        return None if found else "no rows"
    if isinstance(expected, str):
        return f"not refused: {found}"
    wanted = [] if expected is None and not statement.startswith("py:") else expected
    return None if found == wanted else f"found {found}"


def told_of(spark: Any, statement: str, expected: Any, folder: str) -> str | None:
    """The same on the Spark that is there: an older one may refuse a statement."""
    since, refusal, instead = SINCE.get(statement, ((4, 0), "", None))
    if compat.minor_of(spark.version) >= since:
        return problem(spark, statement.replace("{w}", folder), expected)
    told = problem(spark, statement.replace("{w}", folder), refusal)
    return told or (problem(spark, instead, None) if instead else None)


@pytest.fixture
def names(spark: Any) -> Iterator[Any]:
    """The session with an empty default database."""
    yield spark
    for table in spark.catalog.listTables():
        kind = "VIEW" if table.tableType in ("VIEW", "TEMPORARY") else "TABLE"
        spark.sql(f"DROP {kind} IF EXISTS {table.name}")


@pytest.mark.driver_errors(*EXPECTED_ERRORS)
def test_the_script(names: Any, tmp_path: Path) -> None:
    wrong = [
        f"{statement}\n    {told}"
        for statements in SCRIPT.values()
        for _, statement, expected in statements
        if (told := told_of(names, statement, expected, str(tmp_path)))
    ]
    assert wrong == [], "\n".join(wrong)
    assert sum(map(len, SCRIPT.values())) >= 150


def test_show_create_table_makes_the_same_table(names: Any) -> None:
    """Running what SHOW CREATE TABLE says makes a table of which it says the same."""
    spark = names
    spark.sql(
        "CREATE TABLE one (id BIGINT COMMENT 'i', m STRING, e STRING, ip STRING, url STRING, "
        "k STRING DEFAULT 'a''b', st STRUCT<x: INT>) USING indextables PARTITIONED BY (k) "
        "COMMENT 'it''s' "
        "TBLPROPERTIES ('team' = 'me', 'spark.indextables.indexing.typemap.text' = 'm,e,url', "
        "'spark.indextables.indexing.tokenizer.e' = 'en_stem', "
        "'spark.indextables.indexing.typemap.ip' = 'ip')"
    )
    spark.sql("ALTER TABLE one RENAME COLUMN m TO msg")
    spark.sql("ALTER TABLE one CLUSTER BY (id)")
    (said,) = run(spark, "SHOW CREATE TABLE one")[0]
    spark.sql(said.replace("default.one", "default.two"))
    (again,) = run(spark, "SHOW CREATE TABLE two")[0]
    assert again.replace("default.two", "default.one") == said
    spark.sql("INSERT INTO two (id, e) VALUES (1, 'running')")
    assert run(spark, "SELECT id, k FROM two WHERE e TEXTSEARCH 'run'") == [(1, "a'b")]


def test_streams_by_name(names: Any, tmp_path: Path) -> None:
    spark = names
    spark.sql("CREATE TABLE source USING indextables AS SELECT id, 'first' AS m FROM range(3)")
    spark.sql("INSERT INTO source VALUES (3, 'second')")
    (made,) = run(spark, "SELECT timestamp FROM source.history WHERE version = 1")[0]
    between = made.astimezone(datetime.UTC).isoformat()
    for name, options in (("everything", {}), ("later", {"startingTimestamp": between})):
        stream = spark.readStream.options(**options).table("source").writeStream
        query = (
            stream.format("indextables")
            .option("checkpointLocation", str(tmp_path / name))
            .trigger(availableNow=True)
            .toTable(name)
        )
        query.awaitTermination()
    assert run(spark, "SELECT count(*) FROM everything") == [(4,)]
    assert run(spark, "SELECT id, m FROM later") == [(3, "second")]


def table_of_the_page() -> str:
    """The rows of the page: statement, what we do, who else has it."""
    lines = []
    for title, statements in SCRIPT.items():
        lines += [f"\n### {title}\n", "| statement | indextables | Delta | Iceberg |"]
        lines.append("|---|---|---|---|")
        for who, statement, expected in statements:
            text = statement.removeprefix("py:").replace("|", "\\|")
            refused = isinstance(expected, str) and expected != "ROW"
            theirs = "refused" if refused and expected not in OURS_ALONE else "yes"
            others = " | ".join(theirs if letter in who else "no" for letter in "DI")
            since = SINCE.get(statement)
            ours = "refused" if refused else "yes"
            if since and not refused:
                ours += ", since Spark {}.{}".format(*since[0])
            lines.append(f"| `{text}` | {ours} | {others} |")
    return "\n".join(lines) + "\n"


def test_the_page_holds_the_script() -> None:
    assert PAGE.read_text("utf-8").split(BEGIN)[1] == table_of_the_page(), (
        "run: python tests/spark/test_spark_names.py"
    )


if __name__ == "__main__":
    head = PAGE.read_text("utf-8").split(BEGIN)[0]
    PAGE.write_text(head + BEGIN + table_of_the_page(), "utf-8")
