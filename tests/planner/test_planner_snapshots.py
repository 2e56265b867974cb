"""The planner over real snapshots: the log's own columns, refreshes, tables of other writers."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from planner import oracle, twin
from planner.tables import FakeSnapshot, Split

from indextables.log.actions import AddFile, Metadata, Protocol, RemoveFile
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.planner import Planner, plan
from indextables.types import schema_to_json


def add_of(split: Split) -> AddFile:
    return AddFile(
        path=split.path,
        partition_values=split.partition,
        size=split.size,
        modification_time=0,
        data_change=True,
        stats=split.stats,
        min_values=split.lows,
        max_values=split.highs,
        num_records=None if split.num_records < 0 else split.num_records,
    )


def real(fake: FakeSnapshot, head: int) -> Snapshot:
    """The same splits as a snapshot of the log, the last ones added by a later version."""
    metadata = Metadata(
        id="t",
        schema_string=schema_to_json(fake.schema),
        partition_columns=fake.partition_columns,
    )
    first = [Protocol(4, 4), metadata, *map(add_of, fake.list[:head])]
    snapshot = Snapshot.from_replay([VersionActions(0, 0, first)])
    Planner(snapshot).plan(None)
    later = [add_of(split) for split in fake.list[head:]]
    return snapshot.with_versions([VersionActions(1, 1, later)])


def test_real_snapshots_give_the_same_verdicts(seed: int) -> None:
    for number in range(60):
        rng = random.Random(f"{seed}:{number}")
        fake = oracle.random_table(rng)
        snapshot = real(fake, rng.randint(0, len(fake.list)))
        for _ in range(15):
            predicate = oracle.random_predicate(rng, fake)
            expected = Planner(fake).plan(predicate)
            found = Planner(snapshot).plan(predicate)
            paths = [found.snapshot.paths[int(i)].as_py() for i in found.selection]
            assert paths == [fake.list[int(i)].path for i in expected.selection], predicate
            assert found.verdicts.tolist() == expected.verdicts.tolist()


def test_a_refresh_measures_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    from indextables.planner.stages import stats

    seen: list[int] = []
    measure = stats.measure_keys

    def counted(source: Any, *args: Any) -> Any:
        seen.append(source.n)
        return measure(source, *args)

    monkeypatch.setattr(stats, "measure_keys", counted)
    schema = pa.schema([("i", pa.int64())])
    splits = [
        Split([], lows={"i": str(k)}, highs={"i": str(k)}, num_records=1, path=f"{k}.split")
        for k in range(10)
    ]
    fake = FakeSnapshot(splits, schema)
    first = real(fake, 10)
    assert plan("i = 3", first).selection.tolist() == [3]
    before = len(seen)
    extra = Split([], lows={"i": "77"}, highs={"i": "77"}, num_records=1, path="77.split")
    removed = RemoveFile(path="3.split", deletion_timestamp=1, data_change=True)
    second = first.with_versions([VersionActions(2, 2, [add_of(extra), removed])])
    assert plan("i >= 3", second).splits[-1].path == "77.split"
    assert len(plan("i = 3", second)) == 0
    assert seen[before:] == [1]


def test_tasks_of_a_real_snapshot_open_splits(interop_tables: list[Path]) -> None:
    """Every table of another writer: planned rows are all rows that match."""
    from indextables.splits.read.access import read_split
    from indextables.splits.read.reader import SplitReader

    checked = 0
    for folder in interop_tables:
        log = TransactionLog.open(str(folder))
        snapshot = log.snapshot()
        for sql in ("id > 3", "id = 2", "text LIKE 'a%' OR id < 2", "score >= 0.5", "id IS NULL"):
            if not all(c in snapshot.schema.names for c in _names(sql)):
                continue
            whole, chosen = plan(None, log), plan(sql, log)
            tools = read_split, SplitReader, log, snapshot.schema
            rows = [i for t in whole.tasks for i in _ids(*tools, t, chosen.predicate)]
            kept = [i for t in chosen.tasks for i in _ids(*tools, t, t.predicate)]
            assert sorted(kept) == sorted(rows), (folder.name, sql)
            checked += 1
    assert checked > 10


def _names(sql: str) -> list[str]:
    return [word for word in ("id", "text", "score") if word in sql.split()]


def _ids(read: Any, reader: Any, log: Any, schema: Any, task: Any, predicate: Any) -> list[int]:
    found: list[int] = []
    for ref in task.splits:
        opened = reader.open(log.store, ref)
        batches = read(
            opened, predicate, ["id"], partition_values=ref.partition_values, schema=schema
        )
        for batch in batches:
            found += batch.column("id").to_pylist()
    return found


def test_partition_values_read_as_the_reader_reads_them() -> None:
    """The planner's value of a partition text is the value rows get."""
    from indextables.planner.stages.partitions import typed_values
    from indextables.splits.format.partition_values import partition_array, partition_texts

    for name, values in oracle.TYPES.items():
        dtype, pool = values
        if name == "bin":
            continue
        from planner.trapkit import arrow_column

        wanted = [v for v in pool if v != ""]
        texts = partition_texts(arrow_column(wanted, dtype), name)
        column = typed_values(list(texts), dtype)
        for i, (text, value) in enumerate(zip(texts, wanted, strict=True)):
            again = partition_array(text, dtype, 1, "p")
            assert again.equals(arrow_column([value], dtype)) or name in ("d", "f")
            known, own = twin.partition_value(str(text), dtype)
            if own:
                assert column.facts[i] & 1, (name, text)
            assert not own or twin.order(known) == twin.order(value), (name, text)


def test_plans_do_not_grow(seed: int) -> None:
    """Planning again and again keeps what it derived and nothing more."""
    fake = oracle.random_table(random.Random(seed))
    predicate = oracle.random_predicate(random.Random(seed), fake)
    for _ in range(3):
        oracle.check_pair(fake, predicate, Counter())
    size = len(fake.facts)
    for _ in range(50):
        Planner(fake).plan(predicate)
    assert len(fake.facts) == size
    assert np.all(fake.num_records >= -1)
