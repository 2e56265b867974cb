"""ERASE: no byte of a matching row is left in any file of the table, nor in its history."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import indextables
from indextables.cli.main import cli
from indextables.errors import IndexTablesError, MaintenanceError
from indextables.maintenance import erase as erasing
from indextables.sql import execute

PERSON = "zoe.quaintrell@example.org"
OPTIONS = {"spark.indextables.storage.fsync": "false"}


def rows(first: int, count: int = 30) -> list[dict[str, Any]]:
    names = [PERSON if i % 10 == 0 else f"user{i}@example.org" for i in range(first, first + count)]
    return [
        {"id": i, "email": name, "msg": f"mail from {name}", "p": "ab"[i % 2]}
        for i, name in zip(range(first, first + count), names, strict=True)
    ]


@pytest.fixture
def table(tmp_path: Path) -> indextables.Table:
    path = tmp_path / "t"
    for first in (0, 30, 60):
        indextables.write(rows(first), path, text=["msg"], partition_by=["p"], options=OPTIONS)
    found = indextables.open(path, options=OPTIONS)
    found.create_index("email")
    found.build_xref()
    found.delete(f"email = '{PERSON}' AND id = 0")
    found.update("id = 10", {"msg": f"'again {PERSON}'"})
    found.checkpoint()
    return found.refresh()


def mentions(table: indextables.Table) -> list[str]:
    """Files in which the text stands, plain or in what gzip packed."""
    root = Path(table.path.removeprefix("file://"))
    found = []
    for file in sorted(p for p in root.rglob("*") if p.is_file()):
        raw = file.read_bytes()
        plain = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        if PERSON.encode() in raw or PERSON.encode() in plain:
            found.append(str(file.relative_to(root)))
    return found


def test_nothing_is_left(table: indextables.Table) -> None:
    assert mentions(table)
    others = table.count(f"email != '{PERSON}'")
    before = table.to_arrow(f"email != '{PERSON}'").sort_by("id")
    done = table.erase(f"email = '{PERSON}'")
    assert (done.status, done.rows_erased) == ("SUCCESS", 8)
    assert done.versions_ended > 3
    assert done.files_deleted >= 4
    now = table.refresh()
    assert now.version == done.version
    assert now.count() == others
    assert now.to_arrow().sort_by("id").equals(before)
    assert mentions(now) == []
    for entry in now.history():
        assert PERSON not in repr(entry)
    with pytest.raises(IndexTablesError):
        now.at(now.version - 1)
    assert not [f for f in now.doctor() if f.severity == "error"]
    assert now.search("quaintrell").num_rows == 0
    indextables.write(rows(90, 5)[1:], now.path, options=OPTIONS)
    assert now.refresh().count() == others + 4


def test_a_row_that_was_deleted_before_is_erased_too(table: indextables.Table) -> None:
    table.delete(f"email = '{PERSON}'")
    assert mentions(table)
    done = table.erase(f"email = '{PERSON}'")
    assert done.rows_erased == 0
    assert mentions(table) == []


def test_the_value_of_a_partition_column(tmp_path: Path) -> None:
    data = [{"id": i, "person": PERSON if i % 2 else "other"} for i in range(10)]
    indextables.write(data, tmp_path / "t", partition_by=["person"], options=OPTIONS)
    table = indextables.open(tmp_path / "t", options=OPTIONS)
    assert table.erase(f"person = '{PERSON}'").rows_erased == 5
    assert mentions(table) == []
    assert [p for p in (tmp_path / "t").rglob("*.split") if PERSON in str(p)] == []


def test_a_dry_run_changes_nothing(table: indextables.Table) -> None:
    before = mentions(table)
    said = table.erase(f"email = '{PERSON}'", dry_run=True)
    assert said.status == "DRY_RUN"
    assert said.versions_ended >= table.version
    assert mentions(table) == before
    assert table.refresh().version == table.version


def test_sql_and_the_shell(table: indextables.Table) -> None:
    done = CliRunner().invoke(cli, ["--json", "erase", table.path, "id = 20", "--dry-run"])
    assert done.exit_code == 0, done.output
    found = execute(f"ERASE FROM '{table.path}' WHERE id = 20").to_pylist()
    assert (found[0]["status"], found[0]["rows_erased"]) == ("SUCCESS", 1)
    done = CliRunner().invoke(cli, ["--json", "erase", table.path, f"email = '{PERSON}'"])
    assert '"rows_erased": 7' in done.output
    for bad in ("ERASE FROM '{}'", "ERASE FROM '{}' WHERE"):
        with pytest.raises(IndexTablesError):
            execute(bad.format(table.path))
    for nothing in (None, "", []):
        with pytest.raises(IndexTablesError):
            table.erase(nothing)


def test_files_that_no_version_lists_are_reported_and_left(table: indextables.Table) -> None:
    root = Path(table.path.removeprefix("file://"))
    holder = root / table.plan(f"email = '{PERSON}'").splits[0].path
    stray = holder.with_name("part-11111111-2222-3333-4444-555555555555.split")
    stray.write_bytes(holder.read_bytes())
    done = table.erase(f"email = '{PERSON}'")
    assert stray.exists()
    assert done.status == "PARTIAL_SUCCESS"
    assert stray.name in done.message


def test_a_file_that_could_not_be_deleted_is_no_success(
    table: indextables.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "delete", lambda *args: None)
    with pytest.raises(MaintenanceError, match="could not be deleted"):
        table.erase(f"email = '{PERSON}'")
    monkeypatch.undo()


def test_a_log_that_still_names_the_value_is_no_success(
    table: indextables.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "NOTE", {"where": f"email = '{PERSON}'"})
    with pytest.raises(MaintenanceError, match="still names"):
        table.erase(f"email = '{PERSON}'")
    monkeypatch.undo()
    assert table.erase(f"email = '{PERSON}'").status == "SUCCESS"
    assert mentions(table) == []


def test_purge_says_what_older_versions_hold(table: indextables.Table) -> None:
    table.reorg()
    said = table.purge(dry_run=True).metrics.message
    assert "splits that the newest version does not need stay" in said
    table.erase("id = 20")
    assert "stay" not in table.purge(dry_run=True).metrics.message
