"""Arguments of the wrong kind give errors of ours that say what to do, never another library's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import ConfigError, IndexTablesError, PlanningError


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> indextables.Table:
    path = tmp_path_factory.mktemp("messages") / "t"
    rows = [{"id": i, "x": i / 2, "msg": f"line {i}", "host": "a"} for i in range(20)]
    indextables.write(rows, path, text=["msg"])
    return indextables.open(path)


BAD_COUNTS: list[Any] = ["10", 2**63, -1, 1.5, True, [1], "ten"]
CALLS: dict[str, Callable[[indextables.Table, Any], Any]] = {
    "to_arrow": lambda t, n: t.to_arrow(limit=n),
    "scan": lambda t, n: t.scan(limit=n),
    "plan": lambda t, n: t.plan(limit=n),
    "to_pandas": lambda t, n: t.to_pandas(limit=n),
    "top": lambda t, n: t.top("x", limit=n),
    "search": lambda t, n: t.search("line", limit=n),
    "offset": lambda t, n: t.search("line", offset=n),
    "history": lambda t, n: t.history(n),
}


@pytest.mark.parametrize("value", BAD_COUNTS, ids=repr)
@pytest.mark.parametrize("call", CALLS)
def test_numbers_of_rows(table: indextables.Table, call: str, value: Any) -> None:
    with pytest.raises(PlanningError, match="cannot be"):
        CALLS[call](table, value)


BAD_AGGREGATES: list[Any] = [
    ["median"],
    [("median",)],
    {"m": "mode(x)"},
    {"m": "x"},
    {"m": "sum(x) + 1"},
    {"m": "count(DISTINCT x, id)"},
    {"m": "sum(DISTINCT x)"},
    {"m": "percentile(x, 2)"},
    {"m": "percentile(x)"},
    {"m": "median(msg)"},
    {"m": "sum(nothing)"},
    {"m": "sum(soundex(msg))"},
    {"m": "sum(x"},
    {"m": ("percentile", "x")},
    {"m": ("max", "nothing")},
    {"m": 5},
    {"m": ("max", "x", "a", "b")},
    {},
    [],
    5,
    None,
]


@pytest.mark.parametrize("asked", BAD_AGGREGATES, ids=repr)
def test_aggregates(table: indextables.Table, asked: Any) -> None:
    with pytest.raises(IndexTablesError):
        table.aggregate(asked)


@pytest.mark.parametrize("group", [5, [5], ["nothing"], [None], ["x +"], ["soundex(msg)"]])
def test_groups(table: indextables.Table, group: Any) -> None:
    with pytest.raises(IndexTablesError):
        table.aggregate({"n": "count"}, group_by=group)


def test_sizes_may_be_texts(table: indextables.Table) -> None:
    assert table.merge(target_size="1G").metrics.status
    for call in (
        lambda: table.merge(target_size="big"),
        lambda: table.merge(max_dest_splits="few"),
        lambda: table.purge(older_than_hours="long", dry_run=True),
    ):
        with pytest.raises(ConfigError, match="cannot be"):
            call()


def test_columns_that_are_one_text(table: indextables.Table) -> None:
    with pytest.raises(PlanningError, match=r"\['id'\]"):
        table.to_arrow(columns="id")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"versionasoff": 1}, "version="),
        ({"versionAsOf": 1}, "version="),
        ({"mergeschma": True}, "merge_schema="),
        ({"read.batchRow": 5}, "read.batchRows"),
        ({"spark.indextables.read.batchRow": 5}, "read.batchRows"),
    ],
)
def test_misspelt_options(table: indextables.Table, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        indextables.open(table.path, options=options)
    with pytest.raises(ConfigError, match=said):
        indextables.write([{"id": 1}], table.path, options=options)


def test_options_of_others_pass(table: indextables.Table) -> None:
    options = {"fs.s3a.access.key": "x", "header": "true", "compression": "zstd"}
    assert indextables.open(table.path, options=options).count() == 20


def test_spark_options() -> None:
    from indextables.spark.driver.request import access

    for name in ("versionAsOff", "mergeSchma", "replaceWere"):
        with pytest.raises(ConfigError, match="Did you mean"):
            access({"path": "somewhere", name: "1"})
    assert access({"path": "somewhere", "versionAsOf": "1", "header": "x"}).config["read.version"]


def test_rows_of_mixed_types(tmp_path: Path) -> None:
    mixed: list[Any] = [
        [{"a": 1}, {"a": "x"}],
        {"a": [1, "x"]},
        [{"a": 1}, 5],
        [{"a": {"b": 1}}, {"a": 1}],
        [{1: 2}],
        {"a": 1},
    ]
    for data in mixed:
        with pytest.raises(IndexTablesError):
            indextables.write(data, tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_storage_errors_name_the_table_and_the_file(tmp_path: Path) -> None:
    indextables.write(pa.table({"a": [1]}), tmp_path / "gone")
    gone = indextables.open(tmp_path / "gone")
    (split,) = (tmp_path / "gone").glob("*.split")
    split.unlink()
    from indextables.splits.read.reader import forget_readers

    forget_readers()
    with pytest.raises(IndexTablesError) as caught:
        gone.to_arrow()
    assert split.name in str(caught.value)
    assert "gone" in str(caught.value)
    assert caught.value.hint
