"""Open indexes: bounded, cleaned up, shared by threads, safe in forked children, few requests."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from splitkit import RANDOM_OPTIONS, finish_split, open_split, random_table
from store_doubles import RecordingStore

from indextables.config import Config
from indextables.expr import ast
from indextables.expr.bind import bind
from indextables.splits.read import workspace as workspaces
from indextables.splits.read.access import FEW_COLUMNS, count_split, matching_rows, read_split
from indextables.splits.read.indexfiles import store_tail
from indextables.splits.read.reader import SplitReader, forget_readers
from indextables.splits.read.source import SplitRef
from indextables.splits.read.workspace import Workspace
from indextables.storage.base import open_store
from indextables.storage.workfolders import PREFIX

TERM = ast.Fuzzy("msg", "alpha", 1)
"""Edits are for tantivy: lists of words do not open an index."""


@pytest.fixture
def own_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private folder for temporary files and a workspace that starts empty."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(workspaces, "_workspace", Workspace(limit=3))
    return folder


def make_splits(
    folder: Path, count: int, rows: int = 60
) -> tuple[list[pa.Table], list[SplitReader]]:
    tables = [random_table(random.Random(i), rows) for i in range(count)]
    return tables, [open_split(t, folder, RANDOM_OPTIONS) for t in tables]


def test_only_a_few_indexes_stay_open(own_temp: Path, tmp_path: Path) -> None:
    _, readers = make_splits(tmp_path, 8)
    first = [r.count(TERM) for r in readers]
    assert len(workspaces.workspace()) == 3
    assert len(list(own_temp.glob(f"{PREFIX}*/open-*"))) == 3
    assert [r.count(TERM) for r in reversed(readers)] == first[::-1]
    forget_readers()
    assert len(workspaces.workspace()) == 0
    assert list(own_temp.iterdir()) == []


def test_open_indexes_are_bounded_by_their_bytes(
    own_temp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, readers = make_splits(tmp_path, 6)
    readers[0].count(TERM)
    ((_, one),) = workspaces.workspace().items()
    assert one.laid_bytes > 0
    room = Workspace(limit=100, most_bytes=int(2.5 * one.laid_bytes))
    monkeypatch.setattr(workspaces, "_workspace", room)
    counts = [r.count(TERM) for r in readers]
    assert 1 <= len(room) <= 3
    assert [r.count(TERM) for r in readers] == counts


def test_an_evicted_index_in_use_lives_on(own_temp: Path, tmp_path: Path) -> None:
    _, readers = make_splits(tmp_path, 5)
    session = readers[0].session()
    expected = readers[0].count(TERM)
    for reader in readers[1:]:
        reader.count(TERM)
    found = session.queries.compile(TERM)
    assert session.count(found, readers[0].num_rows) == expected


def test_threads_share_a_reader(own_temp: Path, tmp_path: Path) -> None:
    tables, readers = make_splits(tmp_path, 5, 400)
    predicate = bind("level = 'ERROR' or n > 20", tables[0].schema)
    expected = [matching_rows(r, predicate).tolist() for r in readers]
    forget_readers()

    def work(number: int) -> bool:
        reader = readers[number % 5]
        rows = matching_rows(reader, predicate).tolist()
        return rows == expected[number % 5] and reader.count(TERM) > 0

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(60)))


def test_a_forked_child_searches_and_leaves_the_parent_alone(
    own_temp: Path, tmp_path: Path
) -> None:
    _, (reader,) = make_splits(tmp_path, 1)
    expected = reader.count(TERM)
    before = sorted(own_temp.rglob("*"))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if reader.count(TERM) == expected else 2
            forget_readers()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert [p for p in before if not p.exists()] == []
    assert reader.count(TERM) == expected


def test_the_folder_goes_with_the_process(tmp_path: Path) -> None:
    _, (reader,) = make_splits(tmp_path, 1)
    script = (
        "import sys\n"
        "from indextables.storage.base import open_store\n"
        "from indextables.splits.read.reader import SplitReader\n"
        "from indextables.splits.read.source import SplitRef\n"
        "from indextables.expr import ast\n"
        f"ref = SplitRef({reader.path!r}, {reader.ref.size})\n"
        f"reader = SplitReader.open(open_store({str(tmp_path)!r}), ref)\n"
        "print(reader.count(ast.Term('msg', 'alpha')))\n"
    )
    temp = tmp_path / "elsewhere"
    temp.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "TMPDIR": str(temp)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == reader.count(TERM)
    assert list(temp.iterdir()) == []


# -- requests ------------------------------------------------------------------------------------


@pytest.fixture
def remote(rng: random.Random) -> tuple[pa.Table, RecordingStore, SplitRef]:
    table = random_table(random.Random(8), 6000)
    finished = finish_split(table, RANDOM_OPTIONS)
    store = RecordingStore(open_store(f"memory://requests-{rng.getrandbits(40)}/t"))
    store.put_file("a.split", finished.local_path)
    finished.discard()
    ref = SplitRef("a.split", finished.size, finished.footer_start, finished.footer_end)
    return table, store, ref


def reads(store: RecordingStore) -> list[Any]:
    found = [call for call in store.calls if call[0].startswith("read")]
    store.calls.clear()
    return found


def test_opening_is_one_request(remote: tuple[pa.Table, RecordingStore, SplitRef]) -> None:
    _, store, ref = remote
    store.calls.clear()
    reader = SplitReader(store, ref, Config({"cache.disk.enabled": False}))
    assert len(reads(store)) == 1
    assert reader.num_rows == 6000
    assert reader.rows.num_rows == 6000


def test_a_search_fetches_only_the_slices_of_its_fields(
    remote: tuple[pa.Table, RecordingStore, SplitRef],
) -> None:
    table, store, ref = remote
    reader = SplitReader(store, ref, Config({"cache.disk.enabled": False}))
    fetched: list[int] = []
    whole = reader.source.ranges

    def counting(ranges: Any) -> Any:
        fetched.append(sum(end - start for start, end in ranges))
        return whole(ranges)

    reader.source.ranges = counting  # type: ignore[method-assign]
    predicate = bind("level = 'ERROR'", table.schema)
    count = count_split(reader, predicate)
    small = sum(fetched)
    assert count == table.column("level").to_pylist().count("ERROR")
    assert small < ref.size / 20
    reader.count(ast.Phrase("msg", ("alpha", "beta")))
    assert sum(fetched) < ref.size / 2
    fetched.clear()
    assert count_split(reader, predicate) == count
    assert fetched == []


def watched_takes(reader: SplitReader) -> list[tuple[int, tuple[str, ...]]]:
    """(rows, columns) of every trip to the rows from now on."""
    asked: list[tuple[int, tuple[str, ...]]] = []
    take = reader.rows.take

    def taking(rows: Any, columns: Any = None) -> Any:
        asked.append((len(np.asarray(rows)), tuple(columns)))
        return take(rows, columns)

    reader.rows.take = taking
    return asked


def test_late_columns_are_read_for_survivors_only(
    remote: tuple[pa.Table, RecordingStore, SplitRef],
) -> None:
    table, store, ref = remote
    reader = SplitReader(store, ref, Config({"cache.disk.enabled": False}))
    some = table.take(pa.array(range(0, 5000, 250)))
    asked = watched_takes(reader)
    listed = ", ".join(f"'{i}'" for i in some.column("id").to_pylist())
    predicate = bind(f"id IN ({listed}) AND x > 0", table.schema)
    late = [name for name in table.column_names if name not in ("id", "x")]
    assert len(late) > FEW_COLUMNS, "a few columns would be read in the first trip"
    found = pa.Table.from_batches(read_split(reader, predicate, [*late, "id"]))
    kept = [x is not None and (x > 0 or x != x) for x in some.column("x").to_pylist()]
    wanted = some.select([*late, "id"]).filter(pa.array(kept))
    assert found["msg"].equals(wanted["msg"])
    (first, filters), (second, others) = asked
    assert (first >= 20, set(filters)) == (True, {"id", "x"})
    assert (second, set(others)) == (sum(kept), set(late))


def test_a_needle_is_one_trip_to_the_rows(
    remote: tuple[pa.Table, RecordingStore, SplitRef],
) -> None:
    table, store, ref = remote
    reader = SplitReader(store, ref, Config({"cache.disk.enabled": False}))
    asked = watched_takes(reader)
    uuid = table.column("id")[3210].as_py()
    (batch,) = read_split(reader, bind(f"id = '{uuid}'", table.schema), ["msg", "id"])
    assert batch.to_pylist() == table.select(["msg", "id"]).slice(3210, 1).to_pylist()
    assert asked == [(1, ("id", "msg"))]


def test_a_store_of_many_blocks_opens_by_its_tail_alone(tmp_path: Path, rng: random.Random) -> None:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("t", stored=True)
    index = tantivy.Index(builder.build(), path=str(tmp_path))
    writer = index.writer(50_000_000, num_threads=1)
    for _ in range(400):
        document = tantivy.Document()
        document.add_text("t", rng.randbytes(10_000).hex())
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    for store in tmp_path.glob("*.store"):
        data = store.read_bytes()
        tail = store_tail(data)
        assert len(data) - tail > 1024
        store.write_bytes(bytes(tail) + data[tail:])
    assert tantivy.Index.open(str(tmp_path)).searcher().num_docs == 400
