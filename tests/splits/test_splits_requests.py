"""What a reader fetches of a split that is not local: once, together, and only what it needs."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from store_doubles import RecordingStore

import indextables
from indextables.config import Config
from indextables.splits.lookup.hashtable import HEAD_BYTES, HashTable
from indextables.splits.read import reader as readers
from indextables.splits.read.reader import SplitReader, forget_readers
from indextables.splits.read.source import TAIL_BYTES
from indextables.storage.base import open_store
from indextables.table.execute import read_task

LARGE, SMALL = 12_000, 200


def id_of(row: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(row)))


def make(folder: Path, rows: int) -> tuple[indextables.Table, RecordingStore]:
    """A table of one split behind a store that shows no local files and notes every read."""
    numbers = range(rows)
    data = pa.table(
        {
            "id": [id_of(i) for i in numbers],
            "body": [f"only{i} w{i % 97} common" for i in numbers],
            "pad": [hashlib.sha256(str(i).encode()).hexdigest() * 2 for i in numbers],
        }
    )
    indextables.write(data, str(folder), text=["body"])
    forget_readers()
    store = RecordingStore(open_store(str(folder)), hide_local_files=True)
    return indextables.open(str(folder)), store


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[indextables.Table, RecordingStore]:
    return make(tmp_path_factory.mktemp("large"), LARGE)


def read(
    table: indextables.Table, store: RecordingStore, where: str
) -> tuple[int, list[tuple[tuple[int, int], ...]]]:
    """(rows found, the ranges of every call) of a cold read."""
    forget_readers()
    store.clear()
    rows = 0
    for task in table.plan(where).tasks:
        rows += sum(b.num_rows for b in read_task(store, task, table.schema, Config()))
    assert set(store.ops()) <= {"read_ranges"}, store.ops()
    return rows, [call.detail for call in store.calls]


def overlap(calls: list[tuple[tuple[int, int], ...]]) -> int:
    """Bytes asked for more than once."""
    flat = sorted(r for call in calls for r in call)
    twice, reached = 0, 0
    for start, end in flat:
        twice += max(0, min(end, reached) - start)
        reached = max(reached, end)
    return twice


def test_a_small_split_is_one_read(tmp_path: Path) -> None:
    table, store = make(tmp_path, SMALL)
    size = int(table.snapshot.sizes[0])
    assert size < TAIL_BYTES + store.coalesce_gap
    for where in (f"id = '{id_of(7)}'", "body TEXTSEARCH 'only7'", "pad > '0' OR body = 'y'"):
        _, calls = read(table, store, where)
        assert calls == [((0, size),)], where


def test_a_large_split_is_not_read_whole(
    large: tuple[indextables.Table, RecordingStore],
) -> None:
    table, store = large
    size = int(table.snapshot.sizes[0])
    assert size > 2 * (TAIL_BYTES + store.coalesce_gap)
    rows, calls = read(table, store, "body TEXTSEARCH 'only77'")
    assert rows == 1
    assert calls[0][0][0] > 0, "the first read is the footer and what is near it"
    assert sum(end - start for call in calls for start, end in call) < size * 0.8


def test_a_word_is_footer_index_and_rows(large: tuple[indextables.Table, RecordingStore]) -> None:
    rows, calls = read(*large, "body TEXTSEARCH 'only77'")
    assert (rows, len(calls)) == (1, 3)
    assert overlap(calls) == 0


def test_a_phrase_comes_with_its_positions(
    large: tuple[indextables.Table, RecordingStore],
) -> None:
    rows, calls = read(*large, "body TEXTSEARCH '\"only77 w77\"'")
    assert (rows, len(calls)) == (1, 3)
    assert overlap(calls) == 0


def test_a_look_up_in_a_hash_table_opens_no_index(
    large: tuple[indextables.Table, RecordingStore],
) -> None:
    table, store = large
    rows, calls = read(table, store, f"id = '{id_of(77)}'")
    assert (rows, len(calls)) == (1, 3)
    assert overlap(calls) == 0
    (split,) = table.plan().tasks[0].splits
    assert not SplitReader.open(store, split).has_open_index
    read(table, store, "body TEXTSEARCH 'only77'")
    assert not SplitReader.open(store, split).has_open_index
    read(table, store, "body TEXTSEARCH 'only77~1'")
    assert SplitReader.open(store, split).has_open_index


def test_a_table_worth_a_request_is_read_by_pages(
    large: tuple[indextables.Table, RecordingStore],
) -> None:
    """With ``at_once`` too small for all of it the directory comes first, then one page."""
    table, store = large
    (split,) = table.plan().tasks[0].splits
    reader = SplitReader(store, split, Config())
    name = "hash/id.tbl"
    length = reader.source.range_of(name)[1] - reader.source.range_of(name)[0]
    asked: list[tuple[int, int]] = []

    def ranges(wanted):  # type: ignore[no-untyped-def]
        asked.extend(wanted)
        return reader.source.member_ranges(name, wanted)

    from indextables.expr.keys import HASH_KIND
    from indextables.native import hash_terms

    hashes = hash_terms("id", [id_of(77)], HASH_KIND)
    whole = HashTable(ranges, length, "x", at_once=length)
    assert 77 in whole.lookup(hashes)
    assert asked == [(0, length)]
    asked.clear()
    parts = HashTable(ranges, length, "x", at_once=0)
    assert parts.lookup(hashes).tolist() == whole.lookup(hashes).tolist()
    assert asked[0] == (0, min(length, HEAD_BYTES))


def test_readers_are_bounded_by_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pa.table({"n": range(60)})
    indextables.write(data, str(tmp_path), rows_per_split=10)
    table = indextables.open(str(tmp_path))
    store = RecordingStore(open_store(str(tmp_path)), hide_local_files=True)
    splits = [s for task in table.plan().tasks for s in task.splits]
    forget_readers()
    monkeypatch.setattr(readers._readers, "most_bytes", 2 * splits[0].size + splits[0].size // 2)
    for split in splits:
        SplitReader.open(store, split)
    store.clear()
    SplitReader.open(store, splits[-1])
    assert store.calls == []
    SplitReader.open(store, splits[0])
    assert len(store.calls) == 1
