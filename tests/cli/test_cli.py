"""The command line through real processes: output, JSON, exit codes, start-up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import indextables


def run(*words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "indextables.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout if code in (0, 3) else done.stderr


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("cli") / "table")
    for i in range(2):
        data = pa.table(
            {
                "id": [i * 3 + j for j in range(3)],
                "message": ["disk full", "connection timeout", None],
                "day": ["mon", "mon", "tue"],
            }
        )
        indextables.write(data, place, partition_by=["day"], text=["message"])
    return place


def test_describe_and_schema(path: str) -> None:
    text = run("describe", path)
    assert "6 rows" in text
    assert max(map(len, text.splitlines())) <= 80 or "/" in text
    facts = json.loads(run("describe", path, "--json"))[0]
    assert (facts["version"], facts["splits"], facts["rows"]) == (2, 4, 6)
    columns = json.loads(run("--json", "schema", path))
    assert [c["indexed"] for c in columns] == ["i64", "text (default)", "partition"]


def test_rows_counts_and_search(path: str) -> None:
    assert run("count", path, "id > 1").strip() == "4"
    found = json.loads(run("head", path, "id = 4", "--columns", "id,message", "--json"))
    assert found == [{"id": 4, "message": "connection timeout"}]
    best = json.loads(run("search", path, "timeout", "--json", "--limit", "1"))
    assert len(best) == 1
    assert best[0]["_score"] > 0


def test_history_splits_and_stats(path: str) -> None:
    history = json.loads(run("history", path, "--json"))
    assert [e["version"] for e in history] == [2, 1, 0]
    assert len(json.loads(run("splits", path, "--json", "--limit", "3"))) == 3
    assert json.loads(run("stats", path, "--json"))[0]["column"] == "id"


def test_explain_and_why(path: str) -> None:
    text = run("explain", path, "day = 'mon' AND id = 1")
    assert "4 splits -> " in text
    split = json.loads(run("splits", path, "--json"))[0]["path"]
    assert split in run("explain", path, "id = 1", "--why", split)
    assert json.loads(run("explain", path, "id = 1", "--json"))


def test_maintenance_verbs(path: str) -> None:
    assert "success" in run("merge", path, "--target-size", "1G")
    assert json.loads(run("purge", path, "--dry-run", "--json"))[0]["metrics"]["dry_run"] is True
    assert "SUCCESS" in run("checkpoint", path)
    assert "created" in run("xref", "build", path)
    assert "Coverage: 2/2" in run("xref", "list", path)
    assert json.loads(run("xref", "coverage", path, "--json"))[0]["percent"] == 100.0
    assert "sound" in run("doctor", path)
    assert "rows_deleted" in run("delete", path, "id = 0")
    assert "success" in run("restore", path, "2")
    assert "avro-state" in run("sql", f"DESCRIBE INDEXTABLES STATE '{path}'")


def test_doctor_exits_3_on_damage(tmp_path: Path) -> None:
    place = str(tmp_path / "damaged")
    indextables.write(pa.table({"id": [1]}), place)
    next(Path(place).glob("*.split")).unlink()
    assert "missing split" in run("doctor", place, code=3)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("count", "/nowhere/at/all"), 1, "ITX-3000"),
        (("frobnicate",), 2, "No such command"),
        (("count",), 2, "Missing argument"),
        (("count", "x", "--storage-option", "novalue"), 2, "KEY=VALUE"),
        (("count", "x", "--set", "checkpoint.intervall=1"), 1, "checkpoint.interval"),
        (("sql", "MERGE SPLTS 'x'"), 1, "SPLITS"),
    ],
)
def test_mistakes(words: tuple[str, ...], code: int, text: str) -> None:
    assert text in run(*words, code=code)


def test_unknown_column_suggests(path: str) -> None:
    assert "Did you mean 'message'" in run("count", path, "mesage = 'x'", code=1)


def test_help_and_config_fit_80_columns() -> None:
    for text in (run("--help"), run("merge", "--help"), run("config", "xref", "query")):
        assert max(map(len, text.splitlines())) <= 80
    assert "spark.indextables" in run("config", "timeoutMs", "--json")


def test_start_up_imports_nothing_heavy() -> None:
    code = (
        "import sys; import indextables.cli.main, indextables.cli.commands;"
        "heavy = {'pyspark', 'pandas', 's3fs', 'sqlglot', 'pyarrow', 'numpy', 'rich'}"
        " & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
