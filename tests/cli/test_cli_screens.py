"""Every command on a screen of 80 columns: no line is longer, what matters can be read."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout

import pyarrow as pa
import pytest

import indextables
from indextables.cli.main import main


def screen(*words: str) -> str:
    """What the command prints, run in this process."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out), contextlib.suppress(SystemExit):
        main(list(words))
    return out.getvalue()


def screen_of_a_process(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "indextables.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def build(path: str) -> None:
    for i in range(11):
        n = 3
        data = pa.table(
            {
                "event_id": [i * n + j for j in range(n)],
                "timestamp": pa.array(
                    [dt.datetime(2024, 1, 1 + i, j) for j in range(n)], pa.timestamp("us", "UTC")
                ),
                "message": [
                    f"connection to backend-{j}.eu-central-1.example.com timed out after {j} ms, "
                    "retrying with exponential backoff"
                    for j in range(n)
                ],
                "customer_email": [f"customer-{i}-{j}@example-company.com" for j in range(n)],
                "tags": [["a", "b"]] * n,
                "day": [f"2024-01-{1 + i:02d}"] * n,
            }
        )
        indextables.write(data, path, partition_by=["day"], text=["message"])
    table = indextables.open(path)
    table.create_index("customer_email")
    table.refresh().build_xref(force=True)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    root = tmp_path_factory.mktemp("screens") / "warehouse/production"
    sound = root / "web_events_partitioned_by_day"
    build(str(sound))
    damaged = root / "damaged"
    shutil.copytree(sound, damaged)
    splits = sorted(damaged.glob("day=*/*.split"))
    splits[0].unlink()
    splits[1].write_bytes(splits[1].read_bytes() + b"more")
    (damaged / "stray.split").touch()
    return lambda name: str(damaged if name == "damaged" else sound)


EMAIL = "customer_email = 'customer-3-1@example-company.com'"
COMMANDS: list[tuple[str, ...]] = [
    ("--help",), ("merge", "--help"), ("xref", "--help"), ("config",), ("config", "xref", "auto"),
    ("describe", "P"), ("schema", "P"), ("history", "P"), ("splits", "P"), ("head", "P"),
    ("head", "P", "event_id = 3"), ("head", "P", "--columns", "event_id,message"),
    ("count", "P"), ("explain", "P", EMAIL), ("search", "P", "backend-1"), ("stats", "P"),
    ("doctor", "P"), ("doctor", "damaged"), ("merge", "P"), ("purge", "P", "--dry-run"),
    ("checkpoint", "P"), ("compact", "P"), ("truncate-time-travel", "P", "--dry-run"),
    ("delete", "P", EMAIL, "--dry-run"), ("update", "P", EMAIL, "email='x'", "--dry-run"),
    ("reorg", "P", "--dry-run"), ("restore", "P", "12"),
    ("drop-partitions", "P", "day = 'none'"),
    ("repair", "P/_transaction_log", "P/_transaction_log"),
    ("xref", "build", "P"), ("xref", "list", "P"), ("xref", "coverage", "P"),
    ("index", "list", "P"), ("index", "build", "P", "--dry-run"),
    ("index", "create", "P", "event_id"), ("index", "drop", "P", "event_id"),
    ("index", "reindex", "P"), ("truncate", "P", "--dry-run"), ("state", "P"), ("log", "P"),
    ("sizes", "P"), ("environment",), ("properties", "set", "P", "owner=me", "team=us"),
    ("properties", "unset", "P", "owner", "team"), ("cache", "disk"), ("cache", "fetched"),
    ("cache", "flush-disk"), ("cache", "flush-searcher"), ("cache", "invalidate", "P"),
    ("cache", "prewarm", "P", "--fields", "event_id, message"), ("cache", "prewarm", "--help"),
    ("column", "add", "P", "extra", "int"), ("column", "rename", "P", "extra", "more"),
    ("column", "type", "P", "more", "bigint"), ("column", "drop", "P", "more"),
    ("ingest", "--help"), ("ingest", "P/none.csv", "P"), ("shell", "--help"), ("mcp", "--help"),
    ("serve", "--help"), ("sigma", "--help"), ("analyze", "Two words"),
    ("tail", "--help"), ("erase", "P", EMAIL, "--dry-run"), ("show-partitions", "P"),
    ("analyze-table", "P"), ("describe-history", "P"), ("companion", "build", "--help"),
    ("companion", "sync", "P"), ("companion", "describe", "P"),
    ("sql", "SELECT day, count(*) AS n FROM 'P' WHERE message TEXTSEARCH 'backend' GROUP BY day"),
    ("sql", "DESCRIBE INDEXTABLES STATE 'P'"),
    ("sql", "DESCRIBE INDEXTABLES TRANSACTION LOG 'P'"),
    ("sql", "DESCRIBE INDEXTABLES TRANSACTION LOG 'P' INCLUDE ALL"),
    ("sql", "DESCRIBE INDEXTABLES COMPONENT SIZES 'P'"),
    ("sql", "DESCRIBE INDEXTABLES ENVIRONMENT"),
    ("sql", "DESCRIBE INDEXTABLES DISK CACHE"), ("sql", "DESCRIBE INDEXTABLES STORAGE STATS"),
    ("sql", "DESCRIBE INDEXTABLES INDEXES 'P'"), ("sql", "PREWARM INDEXTABLES CACHE 'P'"),
    ("sql", "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE FOR 'P'"),
    ("sql", "FLUSH INDEXTABLES DISK CACHE"), ("sql", "FLUSH INDEXTABLES SEARCHER CACHE"),
    ("sql", "ALTER TABLE 'P' SET TBLPROPERTIES ('owner' = 'me')"),
    ("sql", "MERGE SPLITS 'P' TARGET SIZ 10G"), ("count", "P", "nope = 1"), ("count", "P/nowhere"),
    ("head", "P", "event_id = = 1"), ("frobnicate",),
]  # fmt: skip


@pytest.mark.parametrize("run", [screen, pytest.param(screen_of_a_process, marks=pytest.mark.slow)])
def test_no_line_is_longer_than_80(tables: Callable[[str], str], run: Callable[..., str]) -> None:
    def placed(word: str) -> str:
        if word in ("P", "damaged"):
            return tables(word)
        if word.startswith("P/"):
            return tables("P") + word[1:]
        return word.replace("'P'", f"'{tables('P')}'")

    def one(words: tuple[str, ...]) -> str:
        return run(*map(placed, words))

    shown = {words: one(words) for words in COMMANDS}
    for words, text in shown.items():
        assert text.strip(), words
        long = [line for line in text.splitlines() if len(line) > 80]
        assert not long, (words, long)
    readable(shown)


def readable(shown: dict[tuple[str, ...], str]) -> None:
    """What a person looks for is on the screen, whole."""
    doctor = " ".join(shown["doctor", "damaged"].split())
    assert "the log lists a split that is not there" in doctor
    assert "PURGE INDEXTABLE" in doctor
    log = shown["sql", "DESCRIBE INDEXTABLES TRANSACTION LOG 'P'"]
    assert [word.strip("_") for word in log.split()[:3]] == ["version", "action", "path"]
    assert "Coverage: 11/11 (100.00%)" in shown["xref", "list", "P"]
    assert "customer_email" in shown["index", "list", "P"]
    typo = shown["sql", "MERGE SPLITS 'P' TARGET SIZ 10G"].splitlines()
    assert typo[-1].strip() == "Expected: SIZE"
    assert typo[1][typo[2].index("^") :].startswith("SIZ 10G")
    assert "xref.autoIndex.minUncoveredSplitsToTrigger" in shown["config", "xref", "auto"]


def test_wide_and_json_hold_everything(tables: Callable[[str], str]) -> None:
    text = f"DESCRIBE INDEXTABLES TRANSACTION LOG '{tables('P')}' INCLUDE ALL"
    wide = screen("sql", text, "--wide", "--limit", "4")
    assert "metadata_schema_string" in wide
    assert "..." not in wide
    rows = json.loads(screen("sql", text, "--json", "--limit=4"))
    assert (len(rows), len(rows[0])) == (4, 49)
    grid = screen("splits", tables("P"), "--wide", "-n", "2")
    path = json.loads(screen("splits", tables("P"), "--json", "-n", "1"))[0]["path"]
    assert path in grid


def test_every_command_is_on_the_list() -> None:
    from indextables.cli import commands  # noqa: F401
    from indextables.cli.app import cli

    names = {
        (name, *sub)
        for name, command in cli.commands.items()
        for sub in ([(s,) for s in command.commands] if hasattr(command, "commands") else [()])
    }
    tried = {words[:n] for words in COMMANDS for n in (1, 2)}
    assert names <= tried
