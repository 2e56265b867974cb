"""Every verb of a table where there is nothing to find: no rows at all, or none that match."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables
from indextables.cli.main import cli
from indextables.splits.read.reader import forget_readers

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "msg": pa.string(),
        "host": pa.string(),
        "ip": pa.string(),
        "doc": pa.string(),
        "x": pa.float64(),
        "flag": pa.bool_(),
        "price": pa.decimal128(20, 4),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "tags": pa.list_(pa.string()),
        "p": pa.string(),
    }
)
ROW = {
    "id": 1,
    "msg": "the quick fox",
    "host": "a",
    "ip": "10.0.0.1",
    "doc": '{"k": 1}',
    "x": 1.5,
    "flag": True,
    "price": Decimal("1.5"),
    "day": date(2024, 1, 1),
    "at": datetime(2024, 1, 1, tzinfo=UTC),
    "tags": ["red"],
    "p": "one",
}
OPTIONS = {"spark.indextables.storage.fsync": "false"}
NEVER = [
    "id = 7",
    "id > 100",
    "id in (7, 8)",
    "x > 1e300",
    "x = 'NaN'",
    "host = 'nowhere'",
    "host like 'no%'",
    "msg indexquery 'nowhere'",
    "price = 7.25",
    "day = '1999-01-01'",
    "at < '1999-01-01'",
    "flag = false",
    "p = 'two'",
    "id is null",
    "false",
]


def write(path: Path, rows: list[dict[str, Any]], mode: str) -> None:
    data = pa.Table.from_pylist(rows, schema=SCHEMA)
    indextables.write(
        data,
        str(path),
        mode=mode,
        text=["msg"],
        json=["doc"],
        ip=["ip"],
        partition_by=["p"],
        options=OPTIONS,
    )


def made_empty(path: Path) -> None:
    write(path, [], "error")


def emptied(path: Path) -> None:
    write(path, [ROW], "error")
    indextables.open(str(path), options=OPTIONS).truncate()


def filled(path: Path) -> None:
    for number in range(3):
        write(path, [{**ROW, "id": 1 + number}], "append" if number else "error")


def indexed(path: Path) -> None:
    filled(path)
    table = indextables.open(str(path), options=OPTIONS)
    table.create_index("id")
    table.create_index("host")
    table.build_xref()


STATES: dict[str, Callable[[Path], None]] = {
    "made empty": made_empty,
    "emptied": emptied,
    "filled": filled,
    "indexed": indexed,
}


@pytest.fixture(params=STATES, scope="module")
def table(request: Any, tmp_path_factory: pytest.TempPathFactory) -> indextables.Table:
    path = tmp_path_factory.mktemp("nothing") / "t"
    STATES[request.param](path)
    forget_readers()
    return indextables.open(str(path), options=OPTIONS)


@pytest.mark.parametrize("where", NEVER)
def test_reads_that_match_nothing(table: indextables.Table, where: str) -> None:
    assert table.count(where) == 0
    found = table.to_arrow(where=where)
    assert (found.num_rows, found.schema) == (0, SCHEMA)
    assert table.to_arrow(where=where, columns=[]).num_rows == 0
    assert len(table.to_pandas(where=where)) == 0
    assert sum(batch.num_rows for batch in table.scan(where=where, limit=3)) == 0
    for form in ("text", "json", "html"):
        assert table.explain(where, format=form)
    for name in ("id", "host", "x", "price", "day", "at", "flag"):
        assert table.top(name, 5, where=where, columns=["id"]).num_rows == 0
        assert table.top(name, 5, where=where, descending=True).schema == SCHEMA


@pytest.mark.parametrize("where", NEVER)
def test_aggregates_over_nothing(table: indextables.Table, where: str) -> None:
    numbers = ["id", "x", "price"]
    asked = {f"{kind}_{name}": (kind, name) for kind in ("sum", "avg", "min") for name in numbers}
    asked |= {f"max_{name}": ("max", name) for name in ("host", "day", "at", "flag", "p")}
    whole = table.aggregate({"n": "count", **asked}, where=where)
    assert whole.to_pylist() == [{"n": 0, **dict.fromkeys(asked)}]
    for group in ("host", "id", "flag", "day", "p"):
        grouped = table.aggregate({"n": "count", **asked}, group_by=[group], where=where)
        assert grouped.num_rows == 0


@pytest.mark.parametrize("query", ["nowhere", "msg:nowhere", "host:no*", "id:7", "doc.k:9"])
@pytest.mark.parametrize("where", [None, "id = 7", "p = 'two'"])
def test_a_search_without_a_hit(table: indextables.Table, query: str, where: str | None) -> None:
    found = table.search(query, where=where, snippet="msg")
    assert found.num_rows == 0
    assert found.schema.names == [*SCHEMA.names, "_score", "_snippet"]
    assert table.search(query, columns=["id"], where=where).schema.names == ["id", "_score"]


def test_a_search_without_a_hit_on_the_command_line(table: indextables.Table) -> None:
    for words in (["search"], ["--json", "search"], ["--wide", "search"]):
        done = CliRunner().invoke(cli, [*words, table.path, "nowhere"])
        assert done.exit_code == 0, done.output + repr(done.exception)


@pytest.mark.parametrize("state", STATES)
def test_maintenance_of_nothing(state: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    STATES[state](path)
    table = indextables.open(str(path), options=OPTIONS)
    rows = table.count()
    assert table.delete("id = 700").rows_deleted == 0
    assert table.delete("host = 'nowhere'", dry_run=True).rows_deleted == 0
    table.drop_partitions("p = 'nowhere'")
    table.merge(where="p = 'nowhere'")
    assert table.purge(dry_run=True).metrics.orphaned_files_found >= 0
    assert not [f for f in table.doctor() if f.severity == "error"]
    assert table.build_xref(where="p = 'nowhere'") == table.build_xref(where="p = 'nowhere'")
    table.build_xref(dry_run=True)
    if state != "indexed":
        table.create_index("id")
        table.create_index("host")
    assert not table.index_lookup("id", eq=700)
    assert not table.index_lookup("host", isin=[])
    table.index_splits(where="p = 'nowhere'")
    table.reindex()
    table.rebuild_index("id")
    assert table.prune_stale_indexes() >= 0
    table.drop_index("host")
    table.index_coverage()
    table.stats_coverage()
    table.describe_history(limit=0)
    table.analyze_table()
    table.xref_coverage()
    table.xrefs()
    table.indexes()
    table.checkpoint()
    table.truncate_time_travel(dry_run=True)
    assert table.history(0) == []
    newest = table.refresh()
    assert newest.diff(newest.version).added == ()
    assert (len(newest), newest.count()) == (rows, rows)
    assert sum(batch.num_rows for batch in newest) == rows
    newest.merge()
    newest.restore(newest.version)
    assert repr(newest)
    assert newest._repr_html_()
    assert newest.refresh().count() == rows
