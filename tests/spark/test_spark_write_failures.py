"""Writes that fail or race: the message comes first, the loser appends, the result is one's own."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables import columnindex
from indextables.errors import (
    ConfigError,
    IndexTablesError,
    QuerySyntaxError,
    SchemaMismatchError,
    TableExistsError,
)
from indextables.log.log import TransactionLog
from indextables.spark.driver.failing import SparkWorkerError, explained
from indextables.spark.driver.request import access
from indextables.spark.driver.writing import BatchWriter
from indextables.table import open_table


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def frame(spark: Any) -> Any:
    return spark.range(0, 6, 1, 2).selectExpr("id", "cast(id % 2 as string) k")


# -- messages --------------------------------------------------------------------------------------


@pytest.mark.driver_errors("PYTHON_EXCEPTION")
def test_a_failing_task_says_what_where_and_why_first(spark: Any, path: str) -> None:
    """A value that no partition can have is found by the task that meets it."""
    indextables.write(pa.table({"id": [1], "k": ["a"]}), path, partition_by=["k"])
    bad = spark.createDataFrame([(2, "__HIVE_DEFAULT_PARTITION__")], "id bigint, k string")
    bad.createOrReplaceTempView("bad")
    ways = {
        "save": lambda: bad.write.format("indextables").mode("append").save(path),
        "python": lambda: bad.write.format("indextables_python").mode("append").save(path),
        "v2": lambda: bad.writeTo(f"indextables.`{path}`").append(),
        "function": lambda: indextables.write(bad, path),
        "sql": lambda: spark.sql(f"insert into indextables.`{path}` select * from bad"),
    }
    for name, write in ways.items():
        with pytest.raises(SchemaMismatchError, match=r"^ITX-4000 .* stands for NULL") as found:
            write()
        assert path in str(found.value), name
        assert "Traceback" not in str(found.value)
        assert "Traceback" in str(found.value.__cause__)
    assert open_table(path).count() == 1


def test_a_refusal_before_the_first_task_is_ours(frame: Any, path: str) -> None:
    frame.write.format("indextables").save(path)
    with pytest.raises(SchemaMismatchError, match=r"^ITX-4000 the table has no column 'extra'"):
        frame.selectExpr("*", "1 extra").write.format("indextables").mode("append").save(path)


@pytest.mark.driver_errors("DIVIDE_BY_ZERO")
def test_errors_of_others_pass_untouched(frame: Any, path: str) -> None:
    with pytest.raises(Exception, match=r"DIVIDE|division") as found:
        frame.selectExpr("id div (id - 3) x").write.format("indextables").save(path)
    assert not isinstance(found.value, IndexTablesError)


def test_workers_without_the_package(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python for the workers in which our package cannot be imported."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'indextables':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}')\n"
        "sys.meta_path.insert(0, Hide())\n"
    )
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{hidden}:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", os.fspath(python))
    session = spark.newSession()
    with pytest.warns(UserWarning, match="cannot import indextables"):
        assert indextables.register(session) == 2
    frame = session.range(3)
    with pytest.raises(SparkWorkerError, match=r"^ITX-6001 .*cannot import indextables") as found:
        frame.write.format("indextables").mode("append").save(str(tmp_path / "t"))
    assert "PYSPARK_PYTHON=" in str(found.value)
    monkeypatch.undo()
    again = spark.newSession()
    assert indextables.register(again) == 2
    again.range(3).write.format("indextables").mode("append").save(str(tmp_path / "t"))


def test_the_error_that_ended_the_traceback_is_told() -> None:
    text = (
        "Job aborted: Traceback (most recent call last):\n"
        "indextables.errors.StorageError: ITX-2100 the cause\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "indextables.errors.QuerySyntaxError: ITX-4104 bad query\n  a AND\n       ^\n"
        "Expected more\n"
        "\n\tat org.apache.spark.Worker.run(Worker.scala:1)\n"
        "Caused by: indextables.errors.StorageError: ITX-2100 again\n"
    )
    found = explained(text)
    assert type(found) is QuerySyntaxError
    assert str(found) == "ITX-4104 bad query\n  a AND\n       ^\nExpected more"
    assert explained("java.lang.ArithmeticException: / by zero") is None
    other = explained("indextables.xref.build.NoFilterError: ITX-7000 no filter\n")
    assert str(other) == "ITX-7000 no filter"


# -- sessions and threads --------------------------------------------------------------------------


def test_register_says_the_layer(spark: Any) -> None:
    assert indextables.register(spark) == 2


def test_the_first_write_may_come_from_any_thread(spark: Any, tmp_path: Path) -> None:
    session = spark.newSession()
    indextables.register(session)
    session.conf.set("spark.indextables.write.rowsPerSplit", "2")
    outcomes: list[Any] = []

    def write(place: str) -> None:
        try:
            rows = session.range(0, 6, 1, 1)
            rows.write.format("indextables").mode("append").save(place)
            outcomes.append(session.read.format("indextables").load(place).count())
        except Exception as error:
            outcomes.append(error)

    thread = threading.Thread(target=write, args=(str(tmp_path / "t"),))
    thread.start()
    thread.join()
    assert outcomes == [6]
    assert open_table(str(tmp_path / "t")).snapshot.num_files == 3


def test_a_session_that_nobody_registered_says_so(spark: Any, frame: Any, path: str) -> None:
    frame.write.format("indextables").save(path)
    stranger = spark.newSession()
    ways = [
        lambda: stranger.read.format("indextables").load(path),
        lambda: stranger.range(3).write.format("indextables").mode("append").save(path),
        lambda: stranger.sql(f"select * from indextables.`{path}`"),
    ]
    for way in ways:
        with pytest.raises(ConfigError, match=r"indextables\.register\(spark\)"):
            way()


# -- results and column indexes --------------------------------------------------------------------


def test_a_write_returns_its_own_commit(
    frame: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer commits between our commit and our looking for it."""
    from indextables.spark.driver import session as sessions

    real = sessions.own_commit

    def late(*args: Any) -> Any:
        indextables.write(pa.table({"id": [77], "k": ["z"]}), path)
        return real(*args)

    monkeypatch.setattr(sessions, "own_commit", late)
    result = indextables.write(frame, path)
    assert result is not None
    assert result.version == 1
    assert open_table(path).version == 2
    assert open_table(path, version=1).count() == 6
    assert result.snapshot.version == 1
    entry = next(e for e in open_table(path).log.history() if e.version == 1)
    assert result.commit_id
    assert result.commit_id == entry.commit_id
    assert set(result.files) == {f.path for f in result.snapshot.files()}


def test_a_write_that_was_ignored_returns_no_commit(frame: Any, path: str) -> None:
    indextables.write(frame, path)
    result = indextables.write(frame, path, mode="ignore")
    assert result is not None
    assert (result.version, result.commit_id, result.files) == (1, "", ())
    assert result.already_committed


def test_splits_of_spark_have_the_defined_column_indexes(frame: Any, path: str) -> None:
    indextables.write(frame, path)
    log = TransactionLog.open(path)
    columnindex.create_index(log, "k")
    frame.write.format("indextables").mode("append").save(path)
    found = columnindex.index_coverage(log, "k")
    assert str(found).startswith("k: 4/4")


# -- races -----------------------------------------------------------------------------------------


def writer_of(frame: Any, path: str, **notes: str) -> BatchWriter:
    options = {"path": path, **{f"__{k}": v for k, v in notes.items()}}
    return BatchWriter.prepare(access(options), frame.schema, False)


def test_the_loser_of_a_creation_appends(frame: Any, path: str) -> None:
    data = pa.table({"id": [1], "k": ["a"]}).to_batches()
    orders = {
        "append": writer_of(frame, path),
        "partitioned": writer_of(frame, path, create="true", savemode="append"),
        "error": writer_of(frame, path, create="true"),
    }
    written = {name: order.write(iter(data)) for name, order in orders.items()}
    indextables.write(pa.table({"id": [0], "k": ["first"]}), path)
    orders["append"].commit([written["append"]])
    orders["partitioned"].commit([written["partitioned"]])
    with pytest.raises(TableExistsError):
        orders["error"].commit([written["error"]])
    assert open_table(path).count() == 3


def test_a_table_that_appears_while_spark_plans(
    frame: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``partitionBy`` on a new path asks Spark to create; somebody else is faster."""
    from indextables.spark.driver import writerpatch

    real = writerpatch._creating

    def slow(writer: Any, place: str | None) -> str | None:
        found = real(writer, place)
        indextables.write(pa.table({"id": [0], "k": ["x"]}), path, partition_by=["k"])
        return found

    monkeypatch.setattr(writerpatch, "_creating", slow)
    frame.write.format("indextables").mode("append").partitionBy("k").save(path)
    assert open_table(path).count() == 7


def test_threads_that_create_one_table_all_append(spark: Any, frame: Any, path: str) -> None:
    outcomes: list[Any] = []

    def write() -> None:
        try:
            frame.coalesce(1).write.format("indextables").mode("append").save(path)
            outcomes.append(None)
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [None] * 3
    assert open_table(path).count() == 18
