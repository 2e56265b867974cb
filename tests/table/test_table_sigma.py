"""Sigma rules over a table: equal to evaluating them event by event."""
# ruff: noqa: E501

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables
from indextables.cli.main import cli
from indextables.errors import ConfigError, IndexTablesError

pytest.importorskip("sigma.collection")
from sigma_oracle import HEAD, holds, rules

IMAGES = ["C:\\Windows\\System32\\cmd.exe", "C:\\WINDOWS\\SYSTEM32\\CMD.EXE", "/bin/sh", "powershell.exe",
          "C:\\tools\\PowerShell.exe", "cmd.exe", None]  # fmt: skip
COMMANDS = ["whoami", "WhoAmI /all", "net user admin /add", "sc  stop spooler", "p -enc AAA -ep bypass",
            "p /enc x", "echo c2VjcmV0", "a*b", "a_b", "100% done", "", None, "who\nmi", "NET  STOP x"]  # fmt: skip
ADDRESSES = ["10.1.2.3", "10.1.2.30", "192.168.1.77", "172.20.0.1", "8.8.8.8", "", None]
SCHEMA = pa.schema([("Image", pa.string()), ("CommandLine", pa.string()), ("ParentImage", pa.string()),
                    ("User", pa.string()), ("DestinationIp", pa.string()), ("EventID", pa.int64()),
                    ("Elevated", pa.bool_())])  # fmt: skip
RULES = rules()


def events(rng: random.Random, count: int = 400) -> pa.Table:
    made = []
    for _ in range(count):
        image = rng.choice(IMAGES)
        made.append(
            {
                "Image": image,
                "CommandLine": rng.choice(COMMANDS),
                "ParentImage": image if rng.random() < 0.3 else rng.choice(IMAGES),
                "User": rng.choice(["root", "Root", "alice", "4688", None]),
                "DestinationIp": rng.choice(ADDRESSES),
                "EventID": rng.choice([1, 4688, 7, 5000, None]),
                "Elevated": rng.choice([True, False, None]),
            }
        )
    return pa.Table.from_pylist(made, SCHEMA).append_column("n", pa.array(range(count)))


def test_there_are_enough_rules() -> None:
    assert len(RULES) >= 50


def test_rules_detect_what_they_say(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = events(rng)
    path = str(tmp_path / "t")
    indextables.write(data, path, substring=["CommandLine"], rows_per_split=150)
    table = indextables.open(path)
    found = 0
    for rule in RULES:
        (detection,) = indextables.sigma(rule)
        expected = [row["n"] for row in data.to_pylist() if holds(rule, row)]
        got = sorted(detection.matches(table, columns=["n"])["n"].to_pylist())
        assert got == expected, rule
        assert detection.count(table) == len(expected)
        found += 0 < len(expected) < data.num_rows
    assert found >= 45


@pytest.fixture
def table(tmp_path: Path) -> Any:
    path = str(tmp_path / "t")
    process = [{"cmd": "whoami /all"}, {"cmd": None}, None]
    indextables.write(pa.table({"n": [1, 2, 3], "process": process}), path)
    return indextables.open(path)


RULE = HEAD.format(1, 1, "  selection:\n    CommandLine|contains: WHOAMI\n  condition: selection")


def test_fields_are_mapped_to_columns(table: Any) -> None:
    (detection,) = indextables.sigma([RULE], {"CommandLine": "process.cmd"})
    assert detection.matches(table)["n"].to_pylist() == [1]
    assert detection.title == "rule 1"
    assert detection.level == "high"
    with pytest.raises(IndexTablesError, match="CommandLine"):
        indextables.sigma(RULE)[0].where(table)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("  s:\n    n|expand: '%x%'\n  condition: s", "expand|placeholder"),
        ("  s:\n    n: abc\n  condition: s", "abc"),
        ("  s:\n    process|cidr: 2001:db8::/32\n  condition: s", "cidr"),
        ("  s:\n    n: 1\n  condition: missing", "missing"),
        ("  s:\n    n|nonsense: 1\n  condition: s", "nonsense"),
    ],
)
def test_what_cannot_be_run_is_named(table: Any, body: str, words: str) -> None:
    with pytest.raises(IndexTablesError, match=words):
        indextables.sigma(HEAD.format(2, 2, body))[0].where(table)


def test_files_folders_and_mistakes(tmp_path: Path, table: Any) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "a.yml").write_text(RULE)
    (folder / "b.yaml").write_text(RULE)
    assert len(indextables.sigma(str(folder))) == 2
    assert len(indextables.sigma([str(folder / "a.yml")])) == 1
    with pytest.raises(ConfigError, match="nowhere"):
        indextables.sigma("nowhere.yml")
    with pytest.raises(IndexTablesError):
        indextables.sigma("title: x\nno: rule\n")


def test_the_command(tmp_path: Path, table: Any) -> None:
    rule = tmp_path / "rule.yml"
    rule.write_text(RULE)
    asked = ["sigma", str(rule), "--table", table.path, "--map", "CommandLine=process.cmd"]
    result = CliRunner().invoke(cli, ["--json", *asked])
    assert result.exit_code == 0, result.output
    assert '"rule 1"' in result.output
    assert '"matches": 1' in result.output
    result = CliRunner().invoke(cli, asked[:-2])
    assert result.exit_code != 0
