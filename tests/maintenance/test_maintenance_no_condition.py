"""A condition that says nothing is never "all rows": not for a verb, a write or a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables
from indextables import maintenance
from indextables.cli.main import cli
from indextables.errors import CommandSyntaxError, IndexTablesError, PlanningError
from indextables.expr import filters as f
from indextables.log.log import TransactionLog
from indextables.planner.explain.text import explain
from indextables.sql import execute
from indextables.sql.parser import is_command

BLANK_TEXTS = ["", " ", "\t\n", "\u00a0", "-- all of them", "/* none */", " -- a\n /* b */ ", ";"]
NOTHING: list[Any] = [None, [], (), [None], [[], (None,)], *BLANK_TEXTS, [""], ["id > 3", " "]]
QUIET = {"spark.indextables.xref.autoIndex.enabled": "false"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "table")
    for day in ("mon", "tue"):
        rows = pa.table({"id": list(range(5)), "day": [day] * 5})
        indextables.write(rows, place, partition_by=["day"], options=QUIET)
    return place


def rows_and_version(path: str) -> tuple[int, int]:
    table = indextables.open(path)
    return table.count(), table.version


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
def test_delete_refuses_no_condition(path: str, nothing: Any) -> None:
    before = rows_and_version(path)
    for dry_run in (False, True):
        with pytest.raises(PlanningError):
            indextables.open(path).delete(nothing, dry_run=dry_run)
    assert rows_and_version(path) == before


def test_the_refusal_names_the_way_to_delete_all(path: str) -> None:
    with pytest.raises(PlanningError, match=r"table\.truncate\(\)"):
        indextables.open(path).delete(None)


@pytest.mark.parametrize("text", BLANK_TEXTS, ids=repr)
def test_every_place_that_takes_a_predicate_refuses_blank_text(path: str, text: str) -> None:
    table = indextables.open(path)
    before = rows_and_version(path)
    log = TransactionLog.open(path)
    rows = pa.table({"id": [9], "day": ["mon"]})
    asked = [
        lambda: table.drop_partitions(text),
        lambda: table.merge(where=text),
        lambda: table.build_xref(where=text),
        lambda: table.index_splits(where=text),
        lambda: table.count(text),
        lambda: table.to_arrow(text),
        lambda: table.plan(text),
        lambda: table.explain(text),
        lambda: table.scan(text),
        lambda: table.aggregate({"id": "max"}, where=text),
        lambda: table.top("id", where=text),
        lambda: table.search("x", fields=["day"], where=text),
        lambda: explain(text),
        lambda: maintenance.delete_rows(log, text),
        lambda: indextables.write(rows, path, mode="overwrite", replace_where=text, options=QUIET),
    ]
    for call in asked:
        with pytest.raises(IndexTablesError):
            call()
    assert rows_and_version(path) == before


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM '{}'",
        "DELETE FROM '{}';",
        "DELETE FROM '{}' WHERE",
        "DELETE FROM '{}' WHERE -- x",
        "DELETE FROM '{}' WHERE /* x */ ;",
    ],
)
def test_sql_delete_needs_where(path: str, statement: str) -> None:
    before = rows_and_version(path)
    with pytest.raises(CommandSyntaxError):
        execute(statement.format(path))
    assert rows_and_version(path) == before


def test_sql_says_how_to_delete_all(path: str) -> None:
    with pytest.raises(CommandSyntaxError, match="TRUNCATE TABLE"):
        execute(f"DELETE FROM '{path}'")


@pytest.mark.parametrize("words", [[""], [" "], ["-- x"], [], ["id = 1", "--all"]], ids=repr)
def test_the_command_line_refuses(path: str, words: list[str]) -> None:
    before = rows_and_version(path)
    for extra in ([], ["--dry-run"]):
        assert CliRunner().invoke(cli, ["delete", path, *words, *extra]).exit_code != 0
    assert rows_and_version(path) == before


# -- all rows, said in so many words ---------------------------------------------------------------


def truncate(path: str) -> Any:
    return indextables.open(path).truncate()


def truncate_by_sql(path: str) -> Any:
    return execute(f"TRUNCATE TABLE '{path}'")


def delete_where_true(path: str) -> Any:
    return execute(f"DELETE FROM '{path}' WHERE TRUE")


def delete_true(path: str) -> Any:
    return indextables.open(path).delete(True)


def delete_always_true(path: str) -> Any:
    return indextables.open(path).delete(f.AlwaysTrue())


def delete_on_the_command_line(path: str) -> Any:
    assert CliRunner().invoke(cli, ["delete", path, "--all"]).exit_code == 0


@pytest.mark.parametrize(
    "way",
    [truncate, truncate_by_sql, delete_where_true, delete_true, delete_always_true,
     delete_on_the_command_line],
)  # fmt: skip
def test_all_rows_go_when_that_is_said(path: str, way: Any) -> None:
    version = indextables.open(path).version
    way(path)
    assert rows_and_version(path) == (0, version + 1)
    assert indextables.open(path).at(version).count() == 10
    indextables.open(path).restore(version)
    assert indextables.open(path).count() == 10


def test_truncation_of_a_table_whose_splits_are_damaged(path: str) -> None:
    for add in indextables.open(path).snapshot.files():
        (Path(path) / add.path).write_bytes(b"damaged")
    assert indextables.open(path).truncate(dry_run=True).status == "DRY_RUN"
    found = indextables.open(path).truncate()
    assert (found.status, found.rows_deleted, found.splits_removed) == ("success", 10, 2)
    assert indextables.open(path).truncate().status == "no_action"


def test_truncation_meets_a_concurrent_append(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that was added while the truncation was on its way goes too, or comes after it."""
    log = TransactionLog.open(path)
    commit = log.commit
    raced = []

    def after_an_append(transaction: Any) -> Any:
        if not raced:
            raced.append(True)
            indextables.write(pa.table({"id": [9], "day": ["mon"]}), path, options=QUIET)
        return commit(transaction)

    monkeypatch.setattr(log, "commit", after_an_append)
    assert maintenance.truncate_table(log).rows_deleted == 11
    assert indextables.open(path).count() == 0


def test_truncate_table_is_ours_only_with_a_path() -> None:
    assert is_command("TRUNCATE TABLE '/a/b'")
    assert not is_command("TRUNCATE TABLE a.b")
