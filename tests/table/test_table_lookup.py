"""Looking up many keys: equal to joins in memory, and only splits that may hold a key are asked."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import IndexTablesError, PlanningError
from indextables.expr.predicate import InSet
from indextables.splits.read import narrowing
from indextables.splits.read.access import SplitScan

START = datetime(2024, 1, 1, tzinfo=UTC)
KEYS: dict[str, Any] = {
    "text": lambda i: f"key {i}",
    "number": lambda i: i * 7 - 50,
    "time": lambda i: START + timedelta(seconds=i),
    "amount": lambda i: Decimal(i) / 4,
    "real": lambda i: i / 8,
    "words": lambda i: f"common word{i}",
}
TYPES = {"amount": pa.decimal128(12, 2), "time": pa.timestamp("us", "UTC")}


def table_of(
    rng: random.Random, folder: Path, rows: int = 600
) -> tuple[indextables.Table, pa.Table]:
    picked = [rng.randrange(400) if rng.random() > 0.05 else None for _ in range(rows)]
    columns = {
        name: pa.array([None if i is None else make(i) for i in picked], TYPES.get(name))
        for name, make in KEYS.items()
    }
    data = pa.table({"id": range(rows), **columns})
    path = str(folder / f"t{rng.random()}")
    indextables.write(data, path, text=["words"], rows_per_split=rng.choice([70, 250, 600]))
    return indextables.open(path), data


@pytest.mark.parametrize("column", KEYS)
def test_equal_to_joins(tmp_path: Path, seed: int, column: str) -> None:
    rng = random.Random(f"{seed}-{column}")
    table, data = table_of(rng, tmp_path)
    for count in (0, 1, 40, 900):
        wanted = [rng.choice([*range(500), None]) for _ in range(count)]
        keys = [None if i is None else KEYS[column](i) for i in wanted]
        given: Any = pa.array(keys, data.schema.field(column).type) if count % 2 else keys
        found = table.lookup(given, on=column)
        kinds = {
            "inner": "inner",
            "left semi": "left semi",
            "left anti": "left anti",
            "left outer": "left outer",
        }
        small = pa.table({column: pa.array(keys, data.schema.field(column).type)})
        for kind in kinds:
            whole = sorted_rows(small.join(data, column, join_type=kind))
            assert sorted_rows(small.join(found, column, join_type=kind)) == whole, kind
        semi = data.join(small, column, join_type="left semi")["id"].to_pylist()
        assert sorted(found["id"].to_pylist()) == sorted(semi)


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def test_splits_look_for_their_own_keys_only(tmp_path: Path) -> None:
    data = pa.table({"key": [f"k{i * 7919 % 5000}" for i in range(5000)], "n": range(5000)})
    path = str(tmp_path / "t")
    indextables.write(data, path, rows_per_split=500)
    table = indextables.open(path)
    keys = [f"k{i}" for i in range(0, 5000, 5)] + [f"absent{i}" for i in range(3000)]
    asked: list[int] = []
    kept = SplitScan.batches

    def batches(scan: SplitScan, *args: Any) -> Any:
        assert isinstance(scan.predicate, InSet)
        asked.append(len(scan.predicate.values))
        return kept(scan, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SplitScan, "batches", batches)
        found = table.lookup(keys, on="key", columns=["n"])
    assert found.num_rows == 1000
    assert len(asked) == 10
    assert 1000 <= sum(asked) <= 1000 + 10 * len(keys) * 0.02


def test_columns_filters_and_mistakes(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    indextables.write(pa.table({"k": ["a", "b", "a"], "n": [1, 2, 3]}), path)
    table = indextables.open(path)
    assert table.lookup(["a", "a", None], on="K", columns=["n"])["n"].to_pylist() == [1, 3]
    assert table.lookup(["a"], on="k", where="n > 1")["n"].to_pylist() == [3]
    assert table.lookup([], on="k").num_rows == 0
    assert table.lookup([], on="k").schema == table.schema
    assert table.lookup(pa.chunked_array([["b"], ["zz"]]), on="k").num_rows == 1
    with pytest.raises(IndexTablesError, match="nok"):
        table.lookup(["a"], on="nok")
    with pytest.raises(IndexTablesError, match="nok"):
        table.lookup([], on="nok")
    with pytest.raises(PlanningError, match="list"):
        table.lookup("a", on="k")
    table.delete("true")
    assert indextables.open(path).lookup(["a"], on="k").num_rows == 0


def test_lists_of_types_without_keys_are_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    data = pa.table({"x": [i / 3 for i in range(300)], "s": [f"some words{i}" for i in range(300)]})
    indextables.write(data, path, text=["s"])
    table = indextables.open(path)
    assert table.lookup([i / 3 for i in range(0, 600, 2)], on="x").num_rows == 150
    assert table.lookup([f"some words{i}" for i in range(0, 600, 2)], on="s").num_rows == 150
    assert narrowing.MANY <= 300
