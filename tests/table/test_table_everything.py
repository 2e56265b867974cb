"""Every public method of a table, where there are no rows: made empty, or all of them deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.table.tailing import Tail

DATA = pa.table({"id": [1, 2], "msg": ["a b", "c"], "p": ["x", "y"]})
CALLS: dict[str, Callable[[Any], Any]] = {
    "add_column": lambda t: t.add_column("fresh", "int"),
    "aggregate": lambda t: t.aggregate({"n": "count", "m": "median(id)"}, ["msg"]),
    "at": lambda t: t.at(t.version),
    "build_xref": lambda t: t.build_xref(),
    "changes": lambda t: t.changes(t.version).read_all(),
    "checkpoint": lambda t: t.checkpoint(),
    "compact": lambda t: t.compact(),
    "component_sizes": lambda t: t.component_sizes(),
    "count": lambda t: t.count("id = 7"),
    "create_index": lambda t: t.create_index("id"),
    "dataset": lambda t: t.dataset().to_table(),
    "define_index": lambda t: t.define_index("id"),
    "delete": lambda t: t.delete("id = 7"),
    "diff": lambda t: t.diff(t.version),
    "doctor": lambda t: t.doctor(),
    "drop_column": lambda t: t.drop_column("id"),
    "drop_partitions": lambda t: t.drop_partitions("p = 'z'"),
    "erase": lambda t: t.erase("id = 7"),
    "explain": lambda t: t.explain("id = 7"),
    "history": lambda t: t.history(),
    "lookup": lambda t: t.lookup([7], on="id"),
    "merge": lambda t: t.merge(),
    "plan": lambda t: t.plan("id = 7"),
    "prewarm": lambda t: t.prewarm(),
    "purge": lambda t: t.purge(dry_run=True),
    "refresh": lambda t: t.refresh(),
    "rename_column": lambda t: t.rename_column("id", "number"),
    "reorg": lambda t: t.reorg(),
    "restore": lambda t: t.restore(t.version),
    "scan": lambda t: t.scan("id = 7").read_all(),
    "search": lambda t: t.search("nothing", offset=3, snippet="msg"),
    "tail": lambda t: Tail(t, "id = 7").last(5),
    "to_arrow": lambda t: t.to_arrow("id = 7"),
    "to_polars": lambda t: t.to_polars("id = 7"),
    "top": lambda t: t.top("id"),
    "truncate": lambda t: t.truncate(),
    "update": lambda t: t.update("id = 7", {"msg": "'x'"}),
    "upsert": lambda t: t.upsert(DATA.slice(0, 0), "id"),
    "xref_search": lambda t: t.xref_search("id = 7"),
}


def made_empty(path: Path) -> None:
    indextables.write(DATA.slice(0, 0), path, text=["msg"], partition_by=["p"])


def all_deleted(path: Path) -> None:
    indextables.write(DATA, path, text=["msg"], partition_by=["p"])
    indextables.open(path).delete("id IN (1, 2)")


@pytest.mark.parametrize("state", [made_empty, all_deleted])
@pytest.mark.parametrize("name", CALLS)
def test_a_table_without_rows(name: str, state: Callable[[Path], None], tmp_path: Path) -> None:
    state(tmp_path / "t")
    table = indextables.open(tmp_path / "t")
    CALLS[name](table)
    assert table.refresh().count() == 0
