"""``tail``, ``python -m indextables``, and errors without tracebacks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import indextables
from indextables.cli import commands
from indextables.cli.main import main
from indextables.table.tailing import Tail


def rows(first: int, count: int = 5) -> list[dict[str, Any]]:
    return [{"id": i, "msg": f"line {i}", "even": i % 2 == 0} for i in range(first, first + count)]


@pytest.fixture
def table(tmp_path: Path) -> indextables.Table:
    for first in (0, 5, 10):
        indextables.write(rows(first), tmp_path / "t", text=["msg"])
    return indextables.open(tmp_path / "t")


def ids(found: Any) -> list[int]:
    return [int(i) for i in found["id"].to_pylist()]


def test_the_newest_rows(table: indextables.Table) -> None:
    assert ids(Tail(table).last(3)) == [12, 13, 14]
    assert ids(Tail(table, "even").last(3)) == [10, 12, 14]
    assert ids(Tail(table, "msg TEXTSEARCH '3'").last(3)) == [3]
    assert Tail(table, "id > 100", ["msg"]).last(3).column_names == ["msg"]


def test_follow_shows_each_new_row_once(table: indextables.Table) -> None:
    steps = iter(range(7))

    def act(seconds: float) -> None:
        step = next(steps, None)
        if step == 0:
            indextables.write(rows(15), table.path)
        elif step == 1:
            table.refresh().merge()
            table.refresh().reorg()
        elif step == 2:
            table.refresh().update("id = 3", {"msg": "'changed'"})
            table.refresh().delete("id = 4")
        elif step == 3:
            indextables.write(rows(20, 2), table.path)

    over = iter([False] * 12 + [True] * 100)
    found = list(Tail(table, None, ["id"]).follow(lambda: next(over), act))
    assert [i for part in found for i in ids(part)] == [15, 16, 17, 18, 19, 3, 20, 21]


def test_follow_filters(table: indextables.Table) -> None:
    table.rename_column("id", "number")
    renamed = table.refresh()
    fresh = [{"number": r["id"], "msg": r["msg"], "even": r["even"]} for r in rows(30)]
    pending = iter([fresh])

    def act(seconds: float) -> None:
        for data in pending:
            indextables.write(data, table.path)

    over = iter([False] * 4 + [True] * 100)
    parts = list(Tail(renamed, "number % 2 = 0 AND msg TEXTSEARCH 'line'", ["number"]).follow(
        lambda: next(over), act
    ))  # fmt: skip
    assert [n for part in parts for n in part["number"].to_pylist()] == [30, 32, 34]


def test_the_command_in_a_process(table: indextables.Table) -> None:
    command = [
        sys.executable,
        "-m",
        "indextables",
        "tail",
        table.path,
        "--follow",
        "--json",
        "-n",
        "1",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        head = json.loads(_one_list(process.stdout))
        assert [row["id"] for row in head] == [14]
        indextables.write(rows(50, 2), table.path)
        assert [row["id"] for row in json.loads(_one_list(process.stdout))] == [50, 51]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def _one_list(stream: Any) -> str:
    """The lines of one JSON list."""
    lines = []
    for line in stream:
        lines.append(line)
        if line.rstrip().endswith("]"):
            break
    return "".join(lines)


def test_no_traceback_leaves(
    table: indextables.Table, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: Any, **given: Any) -> None:
        raise RuntimeError("the moon")

    monkeypatch.setattr(commands, "_columns", broken)
    with pytest.raises(SystemExit) as left:
        main(["schema", table.path])
    said = capsys.readouterr().err
    assert left.value.code == 1
    assert "Traceback" not in said
    assert "ITX-1000" in said
    assert "the moon" in " ".join(said.split())
    monkeypatch.setenv("INDEXTABLES_TRACEBACK", "1")
    with pytest.raises(SystemExit):
        main(["schema", table.path])
    assert "Traceback" in capsys.readouterr().err


def test_search_by_pages_and_pasted_text(
    table: indextables.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[int] = []
    for offset in range(0, 15, 5):
        with pytest.raises(SystemExit):
            main(["search", table.path, "line", "-n", "5", "--offset", str(offset), "--json"])
        found += [row["id"] for row in json.loads(capsys.readouterr().out)]
    assert sorted(found) == list(range(15))
    with pytest.raises(SystemExit) as left:
        main(["search", table.path, "(line 3", "--literal", "--json"])
    assert left.value.code == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == [3]


def test_python_m(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "indextables", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    assert indextables.__version__ in done.stdout
