"""A split that is not local gives the same rows as a local one, by other ways.

Of a far split, codes that came with the footer are asked before the index, filter columns and
others are read together, lists are fetched by range, and a short tail may leave members behind.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from splitkit import open_split
from store_doubles import RecordingStore

from indextables.expr.bind import bind
from indextables.mapping import IndexingOptions
from indextables.splits.read import source
from indextables.splits.read.access import count_split, matching_rows, read_split
from indextables.splits.read.choose import Chooser
from indextables.splits.read.reader import SplitReader, forget_readers

ROWS = 12_000
LEAVES = [
    "level = 'ERROR'",
    "level IN ('WARN', 'nope')",
    "level IS NULL",
    "code >= 7",
    "n >= 3000 AND n < 3400",
    "x > 0.999",
    "x IS NOT NULL",
    "id = 'id-00077'",
    "msg TEXTSEARCH 'w3'",
    "msg TEXTSEARCH 'w1 w3'",
    "msg TEXTSEARCH '\"w1 w2\"'",
    "level LIKE 'E%'",
]


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> SplitReader:
    rng = random.Random(5)
    rows = pa.table(
        {
            "n": range(ROWS),
            "id": [f"id-{i:05d}" for i in range(ROWS)],
            "level": [rng.choice(["INFO", "WARN", "ERROR", None]) for _ in range(ROWS)],
            "code": pa.array([rng.randrange(9) for _ in range(ROWS)], pa.int32()),
            "x": [rng.choice([rng.random(), None]) for _ in range(ROWS)],
            "msg": [" ".join(f"w{rng.randrange(9)}" for _ in range(6)) for _ in range(ROWS)],
        }
    )
    return open_split(rows, tmp_path_factory.mktemp("far"), IndexingOptions(text=("msg",)))


def far_reader(near: SplitReader) -> SplitReader:
    forget_readers()
    return SplitReader(RecordingStore(near.source.store, hide_local_files=True), near.ref)


@pytest.mark.parametrize("tail", [1, 2_000, source.TAIL_BYTES])
def test_a_far_split_gives_the_rows_of_a_near_one(
    near: SplitReader, rng: random.Random, tail: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "TAIL_BYTES", tail)
    for _ in range(12):
        parts = rng.sample(LEAVES, rng.choice([1, 2, 2, 3]))
        where = rng.choice([" AND ", " AND ", " OR "]).join(f"({part})" for part in parts)
        predicate = bind(where, near.schema, mapping=near.mapping)
        far = far_reader(near)
        expected = matching_rows(near, predicate).tolist()
        assert matching_rows(far, predicate).tolist() == expected, where
        assert count_split(far, predicate) == len(expected), where
        columns = rng.sample(near.schema.names, rng.choice([1, 2, 5]))
        found, same = (
            pa.Table.from_batches(
                read_split(reader, predicate, columns), near_schema(near, columns)
            )
            for reader in (far, near)
        )
        assert found.equals(same), where


def near_schema(near: SplitReader, columns: list[str]) -> pa.Schema:
    return pa.schema([near.schema.field(name) for name in columns])


def test_codes_that_are_at_hand_are_asked_first(near: SplitReader) -> None:
    predicate = bind("n >= 3000 AND n < 3400 AND level = 'ERROR'", near.schema)
    far = far_reader(near)
    assert Chooser(far, predicate).describe().detail.startswith("codes, then filter")
    assert Chooser(near, predicate).describe().detail.startswith("index")
    store = far.source.store
    assert isinstance(store, RecordingStore)
    store.clear()
    rows = list(read_split(far, predicate, ["n", "msg"]))
    assert sum(batch.num_rows for batch in rows) > 50
    assert len(store.calls) == 1, "all that is read of the rows comes at once"


def test_a_tail_follows_the_size_of_a_split(near: SplitReader, tmp_path: Path) -> None:
    small = open_split(pa.table({"n": range(50)}), tmp_path, IndexingOptions())
    assert small.source._tail_bytes() < near.source._tail_bytes() <= source.TAIL_BYTES
