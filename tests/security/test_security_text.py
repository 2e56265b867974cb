"""Quotes and other signs inside values are data, in every language a value passes through; and no
secret is in anything that is shown."""

from __future__ import annotations

import json
import logging
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indextables
from indextables import col
from indextables.errors import IndexTablesError

NASTY = [
    "it's", '"', "''", "\\", "\\'", "' OR 1=1 --", "'; DROP TABLE t; --", "%", "_", "*", "a:b",
    "/x/", "(", "[a TO b]", "\n", "\t'", "${x}", "{0}", "`", "AND", "NOT", "-x", "C:\\temp", "é'ß",
    "\u202e'", "\x01",
]  # fmt: skip
SECRET = "hunter2/very+secret=value"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> indextables.Table:
    path = str(tmp_path_factory.mktemp('it\'s "quoted"'))
    data = pa.table({"id": list(range(len(NASTY))), "s": NASTY, "p": [v[:1] for v in NASTY]})
    options = {"spark.indextables.storage.fsync": "false"}
    indextables.write(data, path, partition_by=["p"], options=options)
    return indextables.open(path)


def spelled(value: str) -> str:
    """A value as a literal of Spark SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def ids(table: indextables.Table, where: object) -> list[int]:
    return sorted(table.to_arrow(where=where, columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize("value", NASTY, ids=repr)
def test_a_value_finds_its_own_row_and_no_other(table: indextables.Table, value: str) -> None:
    expected = [NASTY.index(value)]
    assert ids(table, col("s") == value) == expected
    assert ids(table, f"s = {spelled(value)}") == expected
    assert ids(table, f"s IN ({spelled(value)})") == expected
    quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    assert ids(table, col("s").fieldmatch(f"s:{quoted}")) == expected
    assert ids(table, f"s FIELDMATCH {spelled(f's:{quoted}')}") == expected


@settings(max_examples=60)
@given(text=st.text(max_size=12))
def test_any_text_is_a_condition_an_error_of_ours_or_nothing(
    table: indextables.Table, text: str
) -> None:
    for where in (text, f"s = '{text}'", f"s FIELDMATCH '{text}'", col("s").fieldmatch(text)):
        try:
            table.count(where)
        except IndexTablesError:
            continue


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("0E", "not a number"),
        ("id = " + "9" * 5000, "not a number"),
        ("s = '\\U99999999'", "no character"),
        ("s = '\ud800'", "surrogate"),
        ("s FIELDMATCH '\ud800'", "surrogate"),
        ("(" * 3000 + "true" + ")" * 3000, "nested too deeply"),
        ("NOT " * 3000 + "true", "nested too deeply"),
        ("s FIELDMATCH '" + "(" * 3000 + "'", "parentheses"),
    ],
    ids=lambda text: ascii(text[:16]),
)
def test_texts_that_other_parsers_choke_on(table: indextables.Table, text: str, word: str) -> None:
    with pytest.raises(IndexTablesError, match=word):
        table.count(text)


def test_halves_of_a_character_are_put_together(table: indextables.Table) -> None:
    assert table.count("concat(s, '\\ud83d\\ude00') = 'it\\'s😀'") == 1


@settings(max_examples=60)
@given(text=st.text(max_size=20))
def test_any_text_is_a_command_or_an_error_of_ours(text: str) -> None:
    from indextables.sql.parser import parse

    for command in (text, f"MERGE SPLITS '{text}'", f"DELETE FROM 'x' WHERE s = '{text}'"):
        try:
            parse(command)
        except IndexTablesError:
            continue


def test_a_command_deletes_the_quoted_row_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "o'table")
    for value in ("' OR 1=1 --", "x' OR 'a'='a"):
        indextables.write(pa.table({"s": [value, "other"]}), path, mode="overwrite")
        indextables.sql(None, f"DELETE FROM {spelled(path)} WHERE s = {spelled(value)}")
        assert indextables.open(path).to_arrow()["s"].to_pylist() == ["other"]


def test_the_command_line_passes_values_on(table: indextables.Table) -> None:
    value = "' OR 1=1 --"
    words = [sys.executable, "-m", "indextables.cli.main", "count", table.path]
    done = subprocess.run(
        [*words, f"s = {spelled(value)}", "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [{"count": 1}]


def test_markup_in_values_is_shown_as_text(tmp_path: Path) -> None:
    path = str(tmp_path / "<img src=x onerror=alert(1)>")
    evil = "<script>alert(1)</script>"
    indextables.write([{evil: "a", "m": evil}], path, text=["m"])
    table = indextables.open(path)
    plan = table.plan(col("m").textsearch("alert") & (col(evil) == evil))
    for page in (table._repr_html_(), plan._repr_html_(), plan.explain("html")):
        assert "<script>alert" not in page
        assert "<img" not in page


# -- secrets ------------------------------------------------------------------------------------


def test_no_secret_in_anything_a_table_shows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    options = {
        "spark.indextables.aws.accessKey": "AKIAIOSFODNN7EXAMPLE",
        "spark.indextables.aws.secretKey": SECRET,
        "spark.indextables.aws.sessionToken": SECRET,
    }
    indextables.write([{"id": 1}], "memory://secrets", storage_options=options, options=options)
    table = indextables.open("memory://secrets", storage_options=options, options=options)
    plan = table.plan("id = 1")
    environment = indextables.sql(None, "DESCRIBE INDEXTABLES ENVIRONMENT", options=options)
    shown = [
        repr(table), table._repr_html_(), repr(table.config), repr(table.store), repr(plan),
        plan.explain(), plan.explain("json"), plan.explain("html"), repr(plan.tasks),
        repr(table.log), str(table.history()), str(environment.to_pylist()), caplog.text,
        str(table.snapshot.metadata),
    ]  # fmt: skip
    for text in shown:
        assert SECRET not in text
        assert "AKIAIOSFODNN7EXAMPLE" not in text
    assert pickle.loads(pickle.dumps(plan.tasks[0])) == plan.tasks[0]


def test_no_secret_in_errors_of_a_store_that_is_not_there() -> None:
    options = {
        "spark.indextables.aws.accessKey": "AKIAIOSFODNN7EXAMPLE",
        "spark.indextables.aws.secretKey": SECRET,
        "spark.indextables.s3.endpoint": "http://127.0.0.1:9",
        "spark.indextables.storage.attempts": "1",
        "spark.indextables.storage.connectTimeoutSeconds": "1",
    }
    with pytest.raises(IndexTablesError) as caught:
        indextables.open("s3://bucket/t", storage_options=options)
    whole = "".join(traceback.format_exception(caught.value))
    assert SECRET not in whole
    assert "AKIAIOSFODNN7EXAMPLE" not in whole


def test_no_secret_on_the_command_line() -> None:
    words = ["describe", "memory://nowhere", "--storage-option", f"secret={SECRET}"]
    words += ["--set", f"aws.secretKey={SECRET}"]
    done = subprocess.run(
        [sys.executable, "-m", "indextables.cli.main", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "AWS_SECRET_ACCESS_KEY": SECRET},
        check=False,
    )
    assert done.returncode == 1
    assert SECRET not in done.stdout + done.stderr
