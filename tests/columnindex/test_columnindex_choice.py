"""One chooser: every kind of read of a split asks its column indexes, each of them once."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables import columnindex
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.metrics import METRICS
from indextables.splits.read.reader import forget_readers

ROWS = 200


@pytest.fixture
def path(tmp_path: Path) -> str:
    """One split: ``k`` has forty values and an index, ``plain`` has the same without one."""
    where = str(tmp_path / "t")
    values = [i % 40 for i in range(ROWS)]
    columns = {"id": range(ROWS), "k": values, "plain": values, "body": ["a fox", "a hen"] * 100}
    table = pa.table({n: pa.array(v) for n, v in columns.items()})
    indextables.write(table, where, text=["body"])
    indextables.open(where).create_index("k")
    METRICS.reset()
    return where


READS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda t: t.to_arrow("k = 8").num_rows,
    "count": lambda t: t.count("k = 8"),
    "filtered aggregate": lambda t: t.aggregate({"s": ("sum", "id")}, where="k = 8").to_pylist(),
    "filtered groups": lambda t: t.aggregate({"n": "count"}, "id", "k = 8").num_rows,
    "ends": lambda t: t.aggregate({"low": ("min", "k"), "high": ("max", "k")}).to_pylist(),
    "groups": lambda t: t.aggregate({"n": "count"}, group_by="k").num_rows,
    "first": lambda t: t.top("k", 3)["k"].to_pylist(),
    "filtered first": lambda t: t.top("id", 3, where="k = 8")["id"].to_pylist(),
    "search": lambda t: t.search("fox", where="k = 8", limit=500).num_rows,
}


@pytest.mark.parametrize("name", READS)
def test_every_read_asks_the_index_once(path: str, name: str) -> None:
    read = READS[name]
    plain = read(indextables.open(path, options={"columnIndex.enabled": False}))
    assert not METRICS.lookups
    assert read(indextables.open(path)) == plain
    assert {o: n for (c, o), n in METRICS.lookups.items() if c == "k"} == {"hit": 1}


@pytest.mark.parametrize("name", READS)
def test_the_index_gives_the_answer(path: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that knows other values changes every answer: nothing else was asked."""
    expected = READS[name](indextables.open(path))
    columnindex.forget_indexes()
    wrong = ColumnIndex.build(pa.array([1_000_000 - i for i in range(ROWS)]))
    home = "indextables.splits.lookup.colindex.asking.open_index"
    monkeypatch.setattr(home, lambda *_: (wrong, "wrong"))
    assert READS[name](indextables.open(path)) != expected


@pytest.mark.parametrize("indexed", [True, False], ids=["other index", "no index"])
@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.to_arrow("plain = 7"),
        lambda t: t.count("plain = 7"),
        lambda t: t.top("plain", 2),
        lambda t: t.aggregate({"high": ("max", "plain")}),
        lambda t: t.aggregate({"n": "count"}, group_by="plain"),
    ],
)
def test_a_column_without_an_index_is_a_miss(path: str, indexed: bool, read: Any) -> None:
    table = indextables.open(path)
    if not indexed:
        table.drop_index("k")
    read(indextables.open(path))
    assert METRICS.lookups == {("plain", "miss"): 1}
    assert METRICS.lines()[0] == "Index lookups: plain=1 (miss)"


@pytest.mark.parametrize(
    "read", [lambda t: t.to_arrow(), lambda t: t.count(), lambda t: t.to_arrow("plain != 7")]
)
def test_what_no_index_could_answer_is_no_miss(path: str, read: Any) -> None:
    read(indextables.open(path))
    assert not METRICS.lookups


@pytest.mark.parametrize("name", ["rows", "count", "filtered aggregate", "filtered groups"])
@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ValueError("bits"), "error"), (OSError(errno.EMFILE, "too many files"), "fallback")],
    ids=["damaged", "short of files"],
)
def test_an_index_that_fails_later_is_passed_by_once(
    path: str,
    name: str,
    error: Exception,
    outcome: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It opens, and breaks when it is asked: one warning, one count, the rows as without it."""
    expected = READS[name](indextables.open(path, options={"columnIndex.enabled": False}))

    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(ColumnIndex, "count", fail)
    with caplog.at_level(logging.WARNING, "indextables.columnindex"):
        assert READS[name](indextables.open(path)) == expected
    assert METRICS.lookups == {("k", outcome): 1}
    assert len(caplog.records) == 1


def test_a_partition_filter_leaves_the_index_exact(tmp_path: Path) -> None:
    """What is the same in all rows is decided before indexes are asked, so that they can count."""
    where = str(tmp_path / "t")
    rows = pa.table({"p": ["a"] * 90 + ["b"] * 90, "k": list(range(90)) * 2})
    indextables.write(rows, where, partition_by="p")
    indextables.open(where).create_index("k")
    METRICS.reset()
    forget_readers()
    table = indextables.open(where)
    assert table.count("k < 80 AND (p = 'a' OR k = 85)") == 80
    assert METRICS.lookups == {("k", "hit"): 2}
