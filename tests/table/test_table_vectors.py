"""A table whose splits have deletion vectors answers as one that never had the deleted rows.

Each question is asked of two tables: one with vectors, one written without the rows. Vectors are of
every kind: none, a few rows, most rows, all rows, in the log and in a file.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables.log.actions import AddFile
from indextables.log.commit.transaction import Transaction
from indextables.log.vectors.stored import store_vectors
from indextables.table.table import Table

QUIET = {"checkpoint.interval": 0, "xref.autoIndex.enabled": False}
WORDS = ["alpha", "beta", "gamma", "delta", "eps"]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("word", pa.string()),
        ("body", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
    ]
)
WHERE = [
    None,
    "word = 'beta'",
    "word IN ('alpha', 'gamma') AND n < 30",
    "id = 17",
    "id IN (3, 44, 71, 105)",
    "n IS NULL",
    "x > 0.25",
    "body indexquery 'lazy'",
    "body indexquery 'quick AND NOT lazy' OR n = 4",
    "word LIKE '%et%'",
    "id >= 0",
    "id < 0",
]


def some_rows(rng: random.Random, first: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": first + i,
            "word": rng.choice(WORDS),
            "body": " ".join(rng.choices(["quick", "lazy", "fox", "dog"], k=3)),
            "n": rng.choice([None, *range(50)]),
            "x": rng.random(),
        }
        for i in range(count)
    ]


class Pair:
    """The table with vectors, and the one that never had the rows."""

    def __init__(self, folder: Path, rng: random.Random, *, indexed: bool, large: int = 0) -> None:
        sizes = [40, 1, 25, 60, 30, large or 50]
        parts, first = [], 0
        for size in sizes:
            parts.append(some_rows(rng, first, size))
            first += size
        kinds = [0.0, 1.0, 1.0, 0.1, 0.9, 0.05]
        gone = [
            sorted(rng.sample(range(s), round(k * s))) for s, k in zip(sizes, kinds, strict=True)
        ]
        self.parts, self.gone = parts, gone
        self.live = [
            row
            for part, g in zip(parts, gone, strict=True)
            for i, row in enumerate(part)
            if i not in set(g)
        ]
        self.table = written(folder / "vectors", parts, indexed)
        self.narrow(rng)
        self.clean = written(folder / "clean", [self.live], indexed)

    def narrow(self, rng: random.Random) -> None:
        table = self.table
        by_first = {
            part[0]["id"]: np.array(g, np.uint32)
            for part, g in zip(self.parts, self.gone, strict=True)
        }
        rows = {}
        adds: dict[str, AddFile] = {}
        for add in table.snapshot.files():
            first = int((add.min_values or {})["id"])
            if len(by_first[first]):
                rows[add.path], adds[add.path] = by_first[first], add
        vectors = store_vectors(table.store, rows, rng.choice([0, 40, 4000]))
        actions = [replace(adds[p], deletion_vector=v) for p, v in vectors.items()]
        table.log.commit(Transaction(table.snapshot, "TEST", actions=actions))
        self.table = table.refresh()


def written(path: Path, parts: list[list[dict[str, Any]]], indexed: bool) -> Table:
    for part in parts:
        data = pa.Table.from_pylist(part, SCHEMA)
        indextables.write(data, str(path), text=["body"], options=QUIET)
    table = indextables.open(str(path), options=QUIET)
    if indexed:
        for column in ("n", "word", "id"):
            table.create_index(column)
        table = table.refresh()
    return table


def by_id(table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sorted(table.to_pylist(), key=lambda row: row["id"])
    return found


_made: dict[Any, Pair] = {}


@pytest.fixture(params=[False, True], ids=["plain", "indexed"])
def pair(request: Any, tmp_path_factory: Any, seed: int) -> Pair:
    """A pair that tests only read, made once for all of them."""
    key = (request.param, seed)
    if key not in _made:
        _made[key] = Pair(
            tmp_path_factory.mktemp("pair"), random.Random(seed), indexed=request.param
        )
    return _made[key]


@pytest.fixture
def own_pair(tmp_path: Path, rng: random.Random) -> Pair:
    return Pair(tmp_path, rng, indexed=rng.random() < 0.5)


def test_rows_and_counts(pair: Pair) -> None:
    for where in WHERE:
        expected = by_id(pair.clean.to_arrow(where))
        assert by_id(pair.table.to_arrow(where)) == expected, where
        assert pair.table.count(where) == len(expected), where
        narrow = pair.table.to_arrow(where, columns=["n"])
        assert narrow.num_rows == len(expected), where
        empty = pair.table.to_arrow(where, columns=[])
        assert empty.num_rows == len(expected), where
    assert len(pair.table) == len(pair.live)
    assert pair.table.snapshot.num_rows == len(pair.live)


def test_limits(pair: Pair) -> None:
    everything = {row["id"] for row in pair.live}
    for where in (None, "word = 'beta'", "id >= 0"):
        most = pair.clean.count(where)
        for limit in (0, 1, 7, most, most + 50):
            found = pair.table.to_arrow(where, limit=limit).column("id").to_pylist()
            assert len(found) == min(limit, most)
            assert len(set(found)) == len(found)
            assert set(found) <= everything


def test_aggregates_and_groups(pair: Pair) -> None:
    asked = {
        "rows": "count", "low": ("min", "n"), "high": ("max", "n"), "sum": ("sum", "n"),
        "ids": ("max", "id"), "words": ("min", "word"), "mean": ("avg", "x"),
        "held": ("count", "n"),
    }  # fmt: skip
    for where in WHERE:
        for group in ((), ("word",), ("n",)):
            ours = pair.table.aggregate(asked, group, where).to_pylist()
            theirs = pair.clean.aggregate(asked, group, where).to_pylist()
            for row in [*ours, *theirs]:
                row["mean"] = None if row["mean"] is None else round(row["mean"], 9)
            assert sorted(ours, key=str) == sorted(theirs, key=str), (where, group)
    ends = {"low": ("min", "n"), "high": ("max", "n"), "held": ("count", "n")}
    assert pair.table.aggregate(ends).to_pylist() == pair.clean.aggregate(ends).to_pylist()
    only = {"rows": "count"}
    for group in (("word",), ("n",), ("word", "n")):
        ours = pair.table.aggregate(only, group).to_pylist()
        assert sorted(ours, key=str) == sorted(
            pair.clean.aggregate(only, group).to_pylist(), key=str
        )


def test_first_rows_in_order(pair: Pair) -> None:
    for column in ("n", "id", "x"):
        for descending in (False, True):
            for limit in (0, 1, 5, 500):
                ours = pair.table.top(column, limit, descending=descending, columns=[column])
                theirs = pair.clean.top(column, limit, descending=descending, columns=[column])
                assert ours == theirs, (column, descending, limit)


def test_searches_find_no_deleted_row_and_miss_no_other(pair: Pair) -> None:
    live = {row["id"] for row in pair.live if "lazy" in row["body"]}
    for limit in (1, 3, 10, 500):
        found = pair.table.search("lazy", limit=limit)
        ids = found.column("id").to_pylist()
        assert len(ids) == len(set(ids)) == min(limit, len(live))
        assert set(ids) <= live
        scores = found.column("_score").to_pylist()
        assert scores == sorted(scores, reverse=True)
    both = pair.table.search("lazy AND quick", limit=500, where="n < 30")
    expected = {
        row["id"] for row in pair.live
        if {"lazy", "quick"} <= set(row["body"].split()) and row["n"] is not None and row["n"] < 30
    }  # fmt: skip
    assert set(both.column("id").to_pylist()) == expected


def test_indexes_name_no_deleted_row(pair: Pair) -> None:
    if not pair.table.indexes():
        return
    found = pair.table.index_lookup("n", between=(0, 100))
    expected = sum(row["n"] is not None for row in pair.live)
    assert sum(map(len, found.values())) == expected


def test_an_index_built_after_the_deletion_serves_every_version(
    tmp_path: Path, rng: random.Random
) -> None:
    """The index is about the split: time travel to before the deletion asks the same file."""
    pair = Pair(tmp_path, rng, indexed=False)
    before = pair.table.version - 1
    pair.table.create_index("n")
    now = pair.table.refresh()
    for value in range(50):
        assert now.count(f"n = {value}") == sum(row["n"] == value for row in pair.live)
    everything = [row for part in pair.parts for row in part]
    old = now.at(version=before)
    for value in range(50):
        assert old.count(f"n = {value}") == sum(row["n"] == value for row in everything)


def test_time_travel_and_restore_bring_rows_back(own_pair: Pair) -> None:
    before = own_pair.table.version - 1
    everything = [row for part in own_pair.parts for row in part]
    assert by_id(own_pair.table.at(version=before).to_arrow()) == everything
    version = own_pair.table.version
    own_pair.table.restore(before)
    assert by_id(own_pair.table.refresh().to_arrow()) == everything
    own_pair.table.restore(version)
    assert by_id(own_pair.table.refresh().to_arrow()) == by_id(own_pair.clean.to_arrow())


def test_a_merge_leaves_deleted_rows_behind(own_pair: Pair) -> None:
    own_pair.table.merge()
    merged = own_pair.table.refresh()
    assert merged.snapshot.num_deleted.sum() == 0
    assert merged.snapshot.num_records.sum() == len(own_pair.live)
    for where in WHERE:
        assert by_id(merged.to_arrow(where)) == by_id(own_pair.clean.to_arrow(where)), where
        assert merged.count(where) == own_pair.clean.count(where)


def test_large_splits_in_many_batches(tmp_path: Path, rng: random.Random) -> None:
    pair = Pair(tmp_path, rng, indexed=False, large=20_000)
    assert pair.table.to_arrow().sort_by("id") == pair.clean.to_arrow().sort_by("id")
    small = pa.Table.from_batches(pair.table.scan(batch_rows=700))
    assert small.sort_by("id") == pair.clean.to_arrow().sort_by("id")
    assert pair.table.count("word = 'beta'") == pair.clean.count("word = 'beta'")
    top = pair.table.to_arrow("x > 0.5", columns=["id"], limit=50)
    assert set(top.column("id").to_pylist()) <= {row["id"] for row in pair.live if row["x"] > 0.5}


def test_doctor_sees_a_vector_that_is_gone_or_damaged(tmp_path: Path, rng: random.Random) -> None:
    pair = Pair(tmp_path, random.Random(3), indexed=False, large=9000)
    files = list((tmp_path / "vectors").glob("deletion_vector_*.bin"))
    assert {f.severity for f in pair.table.doctor()} == {"ok"}
    if not files:
        pair.table.log.commit(_into_a_file(pair.table))
        files = list((tmp_path / "vectors").glob("deletion_vector_*.bin"))
    files[0].unlink()
    table = indextables.open(str(tmp_path / "vectors"), options=QUIET)
    indextables.log.vectors.stored._kept.clear()
    indextables.splits.read.reader.forget_readers()
    found = [f for f in table.doctor() if f.severity == "error"]
    assert found
    assert all("deletion_vector" in f.detail for f in found)


def _into_a_file(table: Table) -> Transaction:
    snapshot = table.log.snapshot()
    adds = {f.path: f for f in snapshot.files() if f.num_live}
    rows = {p: np.arange(f.num_records or 0, dtype=np.uint32) for p, f in adds.items()}
    vectors = store_vectors(table.store, rows, 0)
    actions = [replace(adds[p], deletion_vector=v) for p, v in vectors.items()]
    return Transaction(snapshot, "TEST", actions=actions)
