"""Aggregates, first rows and merged splits from indexes alone, equal to those of rows."""

from __future__ import annotations

import logging
import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables import columnindex
from indextables.errors import IndexTablesError
from indextables.maintenance import rewrite
from indextables.splits.format.members import column_index
from indextables.splits.lookup.colindex import encode
from indextables.splits.lookup.colindex.encode import build_member
from indextables.splits.lookup.colindex.metrics import METRICS

COLUMNS = ("word", "n", "x", "single", "flag", "at", "day")


def make(count: int, rng: random.Random, start: int = 0) -> pa.Table:
    def some(choose: Any) -> list[Any]:
        return [None if rng.random() < 0.1 else choose() for _ in range(count)]

    floats = [0.0, -0.0, math.nan, 1.5, -2.5, math.inf, -math.inf]
    return pa.table(
        {
            "id": pa.array(range(start, start + count)),
            "word": pa.array(some(lambda: rng.choice(["a", "é", "zz", "", "b\x00"]))),
            "n": pa.array(some(lambda: rng.randrange(-9, 9)), pa.int16()),
            "x": pa.array(some(lambda: rng.choice(floats)), pa.float64()),
            "single": pa.array(some(lambda: rng.choice(floats)), pa.float32()),
            "flag": pa.array(some(lambda: rng.random() < 0.3)),
            "at": pa.array(some(lambda: rng.randrange(99)), pa.timestamp("us", "UTC")),
            "day": pa.array(some(lambda: rng.randrange(40)), pa.date32()),
            "part": pa.array([("p", "q")[start > 0]] * count),
        }
    )


@pytest.fixture
def path(tmp_path: Path, rng: random.Random) -> str:
    where = str(tmp_path / "t")
    indextables.write(make(300, rng), where, partition_by="part")
    indextables.write(make(200, rng, 300), where, partition_by="part")
    return where


def summaries(path: str) -> list[str]:
    table = indextables.open(path)
    found = []
    for column in COLUMNS:
        ends = {"rows": "count", "some": ("count", column)}
        ends |= {"low": ("min", column), "high": ("max", column)}
        found.append(str(table.aggregate(ends).to_pylist()))
        found.append(str(table.aggregate(ends, where="part = 'q'").to_pylist()))
        groups = table.aggregate(ends, group_by=column).to_pylist()
        found.append(str(sorted(map(str, groups))))
    return found


def firsts(path: str) -> list[str]:
    table = indextables.open(path)
    found = []
    for column in COLUMNS:
        for descending in (False, True):
            for limit in (0, 3, 77, 1000):
                rows = table.top(column, limit, descending=descending, columns=["id", column])
                found.append(str(rows.to_pylist()))
        found.append(str(table.top(column, 5, where="id > 290").to_pylist()))
    return found


def outcomes() -> set[str]:
    return {outcome for column, outcome in METRICS.lookups if column in COLUMNS}


@pytest.mark.parametrize("format", ["bbidx1", "bbidx2"])
@pytest.mark.parametrize("splits", ["all", "one"])
def test_summaries_equal_those_of_rows(path: str, format: str, splits: str) -> None:
    expected = summaries(path), firsts(path)
    assert outcomes() == {"miss"}
    METRICS.reset()
    table = indextables.open(path, options={"columnIndex.format": format})
    for column in COLUMNS:
        table.define_index(column)
    table.index_splits(where=None if splits == "all" else "part = 'q'")
    assert (summaries(path), firsts(path)) == expected
    assert outcomes() == ({"hit"} if splits == "all" else {"hit", "miss"})


def test_first_rows_are_those_of_a_sort(path: str) -> None:
    table = indextables.open(path)
    table.create_index("n")
    table = indextables.open(path)
    rows = table.to_arrow(columns=["id", "n"]).to_pylist()
    rows.sort(key=lambda r: (r["n"] is not None, r["n"] or 0))
    assert table.top("n", 120, columns=["id", "n"]).to_pylist() == rows[:120]
    rows.sort(key=lambda r: (r["n"] is None, -(r["n"] or 0)))
    assert table.top("n", 4, descending=True, columns=["id"]).column_names == ["id"]
    found = table.top("n", 120, descending=True, columns=["id", "n"]).to_pylist()
    assert [r["n"] for r in found] == [r["n"] for r in rows[:120]]
    assert outcomes() == {"hit"}
    with pytest.raises(IndexTablesError, match="nope"):
        table.top("nope", 3)
    with pytest.raises(IndexTablesError, match="limit"):
        table.top("n", -1)


def test_nothing_but_the_index_is_read(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = indextables.open(path)
    expected = table.aggregate({"low": ("min", "n"), "high": ("max", "n")})
    groups = sorted(map(str, table.aggregate({"rows": "count"}, group_by="n").to_pylist()))
    table.create_index("n")

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("rows were read")

    monkeypatch.setattr("indextables.splits.read.access.SplitScan.batches", refuse)
    monkeypatch.setattr("indextables.splits.read.access.SplitScan.pieces", refuse)
    table = indextables.open(path)
    assert table.aggregate({"low": ("min", "n"), "high": ("max", "n")}).equals(expected)
    found = table.aggregate({"rows": "count"}, group_by="n").to_pylist()
    assert sorted(map(str, found)) == groups
    for asked in ({"total": ("sum", "n")}, {"low": ("min", "x")}):
        with pytest.raises(AssertionError, match="rows were read"):
            table.aggregate(asked)


def test_a_broken_index_is_passed_by(path: str, caplog: pytest.LogCaptureFixture) -> None:
    expected = summaries(path), firsts(path)
    table = indextables.open(path)
    for row in table.create_index("n"):
        table.store.put(row.index_path, bytes(row.size_bytes))
    columnindex.forget_indexes()
    with caplog.at_level(logging.WARNING):
        assert (summaries(path), firsts(path)) == expected
    assert METRICS.lookups[("n", "error")] > 0
    assert "Falling back to full scan" in caplog.text


# -- merging --------------------------------------------------------------------------------------


def members(path: str) -> dict[str, bytes]:
    from indextables.splits.read.reader import SplitReader

    table = indextables.open(path)
    (add,) = table.snapshot.files()
    reader = SplitReader.open(table.store, add, config=table.config)
    found = {
        c: reader.source.member(name) if reader.source.has(name := column_index(c)) else None
        for c in COLUMNS
    }
    assert all(found.values())
    return {c: data or b"" for c, data in found.items()}


def rebuilt(path: str) -> dict[str, bytes]:
    table = indextables.open(path)
    rows = table.to_arrow()
    return {c: build_member(rows.column(c), table.config) for c in COLUMNS}


@pytest.mark.parametrize("format", ["bbidx1", "bbidx2"])
def test_merged_splits_merge_their_indexes(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    where, options = str(tmp_path / "t"), {"columnIndex.format": format}
    table = indextables.write(make(50, rng), where, options=options)
    for column in COLUMNS:
        indextables.open(where, options=options).create_index(column)
    for count in (70, 1, 30):
        indextables.write(make(count, rng), where, options=options)

    def refuse(*_: Any) -> Any:
        raise AssertionError("an index was built from rows")

    monkeypatch.setattr(encode, "build_postings", refuse)
    table = indextables.open(where, options=options)
    table.merge()
    monkeypatch.undo()
    assert table.refresh().snapshot.num_files == 1
    table = indextables.open(where, options=options)
    rows = table.to_arrow()
    expected = {c: build_member(rows.column(c), table.config) for c in COLUMNS}
    assert members(where) == expected


def test_deleted_rows_leave_merged_indexes(tmp_path: Path, rng: random.Random) -> None:
    where = str(tmp_path / "t")
    indextables.write(make(120, rng), where)
    for column in COLUMNS:
        indextables.open(where).create_index(column)
    rewriting = {"spark.indextables.deletionVector.maxShare": 0}
    table = indextables.open(where, options=rewriting)
    table.delete("n IN (1, 2, 3) OR word = 'a'")
    assert 0 < table.refresh().count() < 120
    assert members(where) == rebuilt(where)


def test_a_source_without_an_index_is_read_again(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = str(tmp_path / "t")
    indextables.write(make(50, rng), where)
    for column in COLUMNS:
        indextables.open(where).define_index(column)
    indextables.write(make(60, rng), where)
    merged = []
    monkeypatch.setattr(
        rewrite, "merged_member", lambda *a: merged.append(columnindex.merged_member(*a))
    )
    indextables.open(where).merge()
    assert merged == [None] * len(COLUMNS)
    assert members(where) == rebuilt(where)
