"""The same random script of changes, here and on a Delta table: equal rows after each step."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables

deltalake = pytest.importorskip("deltalake")
SCHEMA = pa.schema([("id", pa.int64()), ("word", pa.string()), ("n", pa.int64())])
CONDITIONS = [
    "id = {a}", "id IN ({a}, {b}, 7)", "n > {c}", "n IS NULL", "word = 'ash' AND n < {c}",
    "word = 'fir' OR id = {b}", "id < 0",
]  # fmt: skip


class Both:
    """One script for two tables."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.here, self.there, self.rng = str(folder / "here"), str(folder / "there"), rng
        self.next_id = 0

    def rows(self, count: int, keys: Any = None) -> pa.Table:
        rng = self.rng
        if keys is None:
            keys = range(self.next_id, self.next_id + count)
            self.next_id += count
        found = [
            {"id": k, "word": rng.choice(["ash", "fir", None]), "n": rng.choice([None, 1, 5, 9])}
            for k in keys
        ]
        return pa.Table.from_pylist(found, SCHEMA)

    def delta(self) -> Any:
        return deltalake.DeltaTable(self.there)

    def ours(self) -> Any:
        return indextables.open(self.here)

    def condition(self) -> str:
        rng = self.rng
        a, b, c = (rng.randrange(self.next_id + 1) for _ in range(3))
        return rng.choice(CONDITIONS).format(a=a, b=b, c=c % 10)

    def append(self) -> None:
        data = self.rows(self.rng.randint(1, 20))
        indextables.write(data, self.here)
        deltalake.write_deltalake(self.there, data, mode="append")

    def delete(self) -> None:
        where = self.condition()
        self.ours().delete(where)
        self.delta().delete(where)

    def update(self) -> None:
        where = self.condition()
        values = self.rng.choice(
            [{"n": "n + 1"}, {"word": "'oak'", "n": "3"}, {"word": "upper(word)"}]
        )
        self.ours().update(where, values)
        self.delta().update(updates=values, predicate=where)

    def upsert(self) -> None:
        keys = [*self.rng.sample(range(self.next_id), min(self.next_id, 4)), self.next_id]
        self.next_id += 1
        data = self.rows(0, keys)
        self.ours().upsert(data, on="id")
        merge = self.delta().merge(data, "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def check(self) -> None:
        theirs = self.delta().to_pyarrow_table().to_pylist()
        ours = self.ours().to_arrow().to_pylist()
        assert sorted(ours, key=str) == sorted(theirs, key=str)


def test_the_same_script_gives_the_same_rows(tmp_path: Path, rng: random.Random) -> None:
    both = Both(tmp_path, rng)
    both.append()
    both.check()
    steps = ["append", "delete", "update", "upsert"] * 2
    rng.shuffle(steps)
    for name in steps:
        getattr(both, name)()
        both.check()
