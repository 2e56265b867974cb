"""Small splits of a task of many: scanned with the index closed, the rows being the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from indextables.splits.read.access import count_split, read_split
from indextables.splits.read.reader import SplitReader, forget_readers
from indextables.table import open_table, write_table
from indextables.table.execute import FEW_SPLITS

CONDITIONS = [
    ("n = 7", False),
    ("n > 90 or k = 'k3'", False),
    ("k is null and not n = 5", False),
    ("k in ('k1', 'k4') and x < 3.5", False),
    ("k like '%4'", False),
    ("m textsearch 'word7'", False),
    ("m textsearch 'word7' or n = 3", True),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("spare") / "t")
    rows = [
        {"n": i, "k": None if i % 9 == 0 else f"k{i % 5}", "x": i / 8, "m": f"some word{i % 11}"}
        for i in range(100)
    ]
    write_table(rows, place, text=["m"], rows_per_split=100)
    return place


def rows_of(reader: Any, predicate: Any, schema: Any, spare: bool) -> list[Any]:
    batches = read_split(reader, predicate, ["x", "n"], schema=schema, spare_index=spare)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(("condition", "needs_index"), CONDITIONS)
def test_same_rows_without_the_index(path: str, condition: str, needs_index: bool) -> None:
    table = open_table(path)
    (task,) = table.plan(condition).tasks
    forget_readers()
    reader = SplitReader.open(table.store, task.splits[0], config=table.config)
    spared = rows_of(reader, task.predicate, table.schema, True)
    count = count_split(reader, task.predicate, schema=table.schema, spare_index=True)
    assert reader.has_open_index is needs_index
    assert spared == rows_of(reader, task.predicate, table.schema, False)
    assert count == len(spared) > 0


def test_a_task_of_many_splits_opens_no_index(tmp_path: Path) -> None:
    place = str(tmp_path / "many")
    write_table([{"n": i, "k": f"k{i % 5}"} for i in range(200)], place, rows_per_split=10)
    table = open_table(place, options={"spark.indextables.read.splitsPerTask": "20"})
    plan = table.plan("k = 'k3'")
    assert len(plan.tasks[0].splits) > FEW_SPLITS
    forget_readers()
    assert table.count("k = 'k3'") == 40
    assert table.to_arrow("k = 'k3'").num_rows == 40
    opened = [SplitReader.open(table.store, s, config=table.config) for s in plan.tasks[0].splits]
    assert not any(reader.has_open_index for reader in opened)
