"""``ingest``, ``sql`` and ``shell``: an analyst's first hour, at the command line."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import indextables
from indextables.cli import prompt
from indextables.cli.main import main
from indextables.errors import ConfigError
from indextables.table.ingest import Ingest
from indextables.table.interchange.files import FileFormat


def run(*words: str, typed: str = "") -> tuple[int, str]:
    out, code = io.StringIO(), 0
    before, sys.stdin = sys.stdin, io.StringIO(typed)
    try:
        with redirect_stdout(out), redirect_stderr(out):
            main(list(words))
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdin = before
    return code, out.getvalue()


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_ingest_and_ask(tmp_path: Path) -> None:
    log = tmp_path / "a.ndjson"
    log.write_text(lines({"day": "d1", "m": "disk full"}, {"day": "d2", "m": "all fine"}))
    (tmp_path / "b.csv").write_text('day,m\nd1,"disk, again"\n')
    table = str(tmp_path / "t")
    code, said = run(
        "ingest", str(log), str(tmp_path / "b.csv"), table,
        "--text", "m", "--partition-by", "day", "--json",
    )  # fmt: skip
    assert code == 0, said
    assert json.loads(said) == [{"files": 2, "rows": 3, "bad_lines": 0, "version": 1}]
    opened = indextables.open(table)
    assert opened.partition_columns == ("day",)
    question = f"SELECT day, count(*) AS n FROM '{table}' WHERE m TEXTSEARCH 'disk' GROUP BY day"
    code, said = run("sql", question, "--json")
    assert (code, json.loads(said)) == (0, [{"day": "d1", "n": 2}])
    code, said = run("ingest", str(log), table, "--overwrite", "--json")
    assert json.loads(said)[0]["rows"] == 2
    assert indextables.open(table).count() == 2


def test_bad_lines_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": 1}\noops\n')
    table = str(tmp_path / "t")
    code, said = run("ingest", str(tmp_path / "a.ndjson"), table)
    assert code == 1
    assert "line 2 is not a JSON object" in said
    assert not os.path.exists(table)
    code, said = run("ingest", str(tmp_path / "a.ndjson"), table, "--bad-lines", "skip", "--json")
    assert json.loads(said)[0]["bad_lines"] == 1
    code, said = run("ingest", str(tmp_path / "nothing.csv"), table)
    assert (code, "no such file" in said) == (1, True)


def followed(path: Path, table: Path, **how: Any) -> list[int]:
    """Rows of the commits until there is nothing new."""
    work = Ingest(str(table), text=["m"] if path.suffix == ".ndjson" else ())
    return [r.rows for r in work.follow([str(path)], FileFormat(**how), is_over=lambda: True)]


def test_follow_commits_complete_lines_once(tmp_path: Path) -> None:
    log, table = tmp_path / "app.ndjson", tmp_path / "t"
    log.write_text(lines({"m": "one"}, {"m": "two"}) + '{"m": "half')
    assert followed(log, table) == [2]
    assert followed(log, table) == []
    with log.open("a") as file:
        file.write(' line"}\n' + lines({"m": "four", "new": 4}))
    assert followed(log, table) == [2]
    rows = indextables.open(table).to_arrow().to_pylist()
    assert [row["m"] for row in rows] == ["one", "two", "half line", "four"]
    assert [row["new"] for row in rows] == [None, None, None, 4]
    log.write_text(lines({"m": "rotated"}))
    assert followed(log, table) == [1]
    assert followed(log, table) == []
    log.write_text(lines({"m": "x"}))
    assert followed(log, table) == [1]
    assert indextables.open(table).count() == 6


def test_follow_of_text_and_of_what_cannot_grow(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("a\nb\n")
    assert followed(tmp_path / "app.log", tmp_path / "t") == [2]
    assert indextables.open(tmp_path / "t").count("line TEXTSEARCH 'b'") == 1
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(ConfigError, match="cannot be followed"):
        followed(tmp_path / "a.csv", tmp_path / "u")


def test_the_shell_runs_statements_and_survives_errors(tmp_path: Path) -> None:
    table = tmp_path / "t"
    indextables.write([{"id": 1, "m": "x"}, {"id": 2, "m": "y"}], table)
    typed = (
        f"SELECT id\n FROM '{table}'\n WHERE m = 'y';\n\nSELECT broken FROM '{table}';\n"
        f"DESCRIBE INDEXTABLES STATE '{table}';\nSELECT count(*) AS n FROM '{table}'"
    )
    code, said = run("shell", "--json", typed=typed)
    assert code == 1
    assert '"id": 2' in said
    assert "broken" in said
    assert '"num_tombstones": 0' in said
    assert '"n": 2' in said
    assert run("shell", typed="\\q\nSELECT 1;\n") == (0, "")
    assert run("shell", typed="") == (0, "")


def test_words_for_the_tab_key() -> None:
    words = prompt.completions()
    assert prompt.matches("tex", words) == ["textsearch"]
    assert "MERGE" in prompt.matches("ME", words)
    assert prompt.matches("zzz", words) == []
