"""Delta tables are read as they are: files, columns, vectors, checkpoints, versions."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltakit import CHECKPOINTS, DeltaBook, touch
from stories import HandDelta, LibraryDelta, in_order

from indextables.errors import (
    CorruptFileError,
    ProtocolError,
    TableNotFoundError,
    UnsafePathError,
    VersionNotFoundError,
)
from indextables.sources import delta_log
from indextables.sources.base import SourceSnapshot
from indextables.sources.delta import open_delta
from indextables.sources.delta_schema import bound, partition_value
from indextables.sources.reading import live_batches, read_all

LAKE = Path(__file__).parents[3] / "shared" / "lake" / "delta"
INSTANT = pa.timestamp("us", "UTC")
EXACT = Decimal("12345678901234567890.12")


def shared(name: str) -> str:
    if not (LAKE / name).is_dir():
        pytest.skip("Delta tables written by others are not on this machine")
    return str(LAKE / name)


def rows_of(location: Any, **asked: Any) -> list[dict[str, Any]]:
    """The rows of a table that is read as if for the first time."""
    delta_log._kept.clear()
    rows: list[dict[str, Any]] = read_all(open_delta(str(location)).snapshot(**asked)).to_pylist()
    return rows


def check_snapshot(snapshot: SourceSnapshot) -> None:
    """What the snapshot says of its files is true of their rows."""
    for file in snapshot.files():
        rows = snapshot.rows(file)
        if file.rows is not None:
            assert rows.num_rows == file.rows
        gone = snapshot.deleted_positions(file)
        assert (0 if gone is None else len(gone)) == (file.deletes.count or 0)
        held = pa.Table.from_batches(rows.scan(), rows.schema)
        for identity, bounds in file.bounds.items():
            values = held.column(identity).to_pylist()
            there = [v for v in values if v is not None]
            assert bounds.low is None or all(v >= bounds.low for v in there), (identity, bounds)
            assert bounds.high is None or all(v <= bounds.high for v in there), (identity, bounds)
            assert bounds.nulls is None or bounds.nulls == len(values) - len(there)


# -- tables of others ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("table-with-dv-small", 8),
        ("with-short-dv", 7),
        ("basic_partitioned", 6),
        ("type-widening", 2),
    ],
)
def test_tables_of_others_have_their_rows(name: str, count: int) -> None:
    location = shared(name)
    snapshot = open_delta(location).snapshot()
    assert read_all(snapshot).num_rows == count
    check_snapshot(snapshot)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("dv-partitioned-with-checkpoint", "delta"),
        ("table-with-columnmapping-mode-name", "delta"),
    ],
)
def test_tables_of_others_have_the_expected_rows(name: str, folder: str) -> None:
    location = Path(shared(name))
    snapshot = open_delta(str(location / folder)).snapshot()
    expected = pq.read_table(location / "expected").to_pylist()
    assert in_order(read_all(snapshot).to_pylist()) == in_order(expected)
    check_snapshot(snapshot)


def test_a_vector_takes_rows_away_by_position() -> None:
    (file,) = open_delta(shared("table-with-dv-small")).snapshot().files()
    snapshot = open_delta(shared("table-with-dv-small")).snapshot()
    assert snapshot.deleted_positions(file).tolist() == [0, 9]  # type: ignore[union-attr]
    ((positions, batch),) = live_batches(snapshot, file)
    assert positions.tolist() == list(range(1, 9))
    assert batch.num_rows == 8


@pytest.mark.parametrize("mode", ["id", "name", "none"])
def test_partition_columns_are_mapped_too(mode: str) -> None:
    snapshot = open_delta(shared(f"partition_cm/{mode}")).snapshot()
    by_name = {c.name: c for c in snapshot.columns}
    assert snapshot.partition_columns == (by_name["category"].identity,)
    assert (by_name["category"].identity == "category") is (mode == "none")
    assert (by_name["value"].field_id is not None) is (mode == "id")


# -- stories ---------------------------------------------------------------------------------------


def told(snapshot: SourceSnapshot) -> list[Any]:
    """What must be the same whatever the log was read from; statistics may be fewer."""
    return [(f.key, f.rows, f.partition, f.deletes) for f in snapshot.files()]


def check_hand_story(folder: Path, rng: Random, mode: str, steps: int) -> Counter[str]:
    story, seen = HandDelta(folder, rng, mode), Counter[str]()
    history = {}
    for _ in range(steps):
        seen[story.step()] += 1
        snapshot = open_delta(story.location).snapshot()
        assert snapshot.version == story.book.version
        delta_log._kept.clear()
        fresh = open_delta(story.location).snapshot()
        assert told(fresh) == told(snapshot), "from the log alone, and from the kept state"
        assert (fresh.columns, fresh.timestamp) == (snapshot.columns, snapshot.timestamp)
        want = in_order(story.rows())
        assert in_order(read_all(snapshot).to_pylist()) == want, seen
        check_snapshot(snapshot)
        history[snapshot.version] = want
    again = pickle.loads(pickle.dumps(snapshot))
    assert in_order(read_all(again).to_pylist()) == want
    for version in rng.sample(sorted(history), min(5, len(history))):
        if version >= story.book.oldest:
            assert in_order(rows_of(folder, version=version)) == history[version]
    return seen


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_stories_by_hand(tmp_path: Path, rng: Random, mode: str) -> None:
    check_hand_story(tmp_path / "t", rng, mode, 30)


@pytest.mark.slow
def test_stories_by_hand_long(tmp_path: Path, rng: Random) -> None:
    for number in range(100):
        check_hand_story(tmp_path / str(number), rng, rng.choice(["none", "name", "id"]), 40)


def check_library_story(folder: Path, rng: Random, steps: int) -> None:
    story, seen = LibraryDelta(folder, rng), Counter[str]()
    for _ in range(steps):
        seen[story.step()] += 1
        snapshot = open_delta(story.location).snapshot()
        assert in_order(read_all(snapshot).to_pylist()) == in_order(story.rows()), seen
        check_snapshot(snapshot)


def test_stories_by_the_library(tmp_path: Path, rng: Random) -> None:
    pytest.importorskip("deltalake")
    check_library_story(tmp_path / "t", rng, 15)


@pytest.mark.slow
def test_stories_by_the_library_long(tmp_path: Path, rng: Random) -> None:
    pytest.importorskip("deltalake")
    for number in range(50):
        check_library_story(tmp_path / str(number), rng, 25)


def test_the_library_agrees_with_the_hand(tmp_path: Path, rng: Random) -> None:
    """The tables that are written by hand are Delta tables."""
    deltalake = pytest.importorskip("deltalake")
    book = DeltaBook(tmp_path / "t", rng, "none")
    book.append(30)
    book.delete()
    book.update()
    table = deltalake.DeltaTable(str(tmp_path / "t"))
    found = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
    assert in_order(pa.table(found).to_pylist()) == in_order(book.rows())


# -- the log ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_checkpoints_of_every_kind(tmp_path: Path, rng: Random, kind: str) -> None:
    book = DeltaBook(tmp_path / "t", rng, "name")
    book.append(30)
    book.delete()
    book.checkpoint(kind, clean=True)
    assert in_order(rows_of(tmp_path / "t")) == in_order(book.rows())
    book.update()
    assert in_order(rows_of(tmp_path / "t")) == in_order(book.rows())
    with pytest.raises(VersionNotFoundError):
        rows_of(tmp_path / "t", version=0)


def test_a_damaged_checkpoint_beside_a_good_one(tmp_path: Path, rng: Random) -> None:
    book = DeltaBook(tmp_path / "t", rng)
    book.append(10)
    book.checkpoint("v2-json")
    want = in_order(book.rows())
    (book.log / f"{book.version:020d}.checkpoint.parquet").write_bytes(b"PAR1 not one")
    assert in_order(rows_of(tmp_path / "t")) == want
    for path in book.log.glob("*.checkpoint.*.json"):
        path.unlink()
    with pytest.raises(CorruptFileError):
        rows_of(tmp_path / "t")


def test_gaps_and_missing_versions(tmp_path: Path, rng: Random) -> None:
    book = DeltaBook(tmp_path / "t", rng)
    for _ in range(3):
        book.append(3)
    with pytest.raises(VersionNotFoundError, match="newest is 3"):
        rows_of(tmp_path / "t", version=9)
    (book.log / f"{2:020d}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="version 2"):
        rows_of(tmp_path / "t")
    assert len(rows_of(tmp_path / "t", version=1)) == 3
    with pytest.raises(TableNotFoundError):
        rows_of(tmp_path / "nothing")


def test_a_wrong_hint_is_not_believed(tmp_path: Path, rng: Random) -> None:
    book = DeltaBook(tmp_path / "t", rng)
    book.append(5)
    for hint in ('{"version": 99}', '{"version": 1}', "{", "[]", ""):
        (book.log / "_last_checkpoint").write_text(hint)
        assert in_order(rows_of(tmp_path / "t")) == in_order(book.rows())


def test_travel_in_time(tmp_path: Path, rng: Random) -> None:
    book = DeltaBook(tmp_path / "t", rng)
    for version in range(4):
        if version:
            book.append(1)
        touch(book.log / f"{version:020d}.json", [1000, 2000, 1500, 5000][version])
    table = open_delta(str(tmp_path / "t"))
    for at, version in ((1000, 0), (1999, 0), (2000, 1), (2001, 2), (4999, 2), (9999, 3)):
        assert table.snapshot(timestamp=at).version == version
    with pytest.raises(VersionNotFoundError):
        table.snapshot(timestamp=999)


def test_times_in_commits_win(tmp_path: Path, rng: Random) -> None:
    book = DeltaBook(tmp_path / "t", rng)
    metadata = book.metadata()
    metadata["configuration"] |= {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "1",
    }
    for version, stamp in ((1, 2000), (2, 3000), (3, 4000)):
        info = {"commitInfo": {"inCommitTimestamp": stamp}}
        lines = [info, {"metaData": metadata}]
        path = book.log / f"{version:020d}.json"
        path.write_text("\n".join(json.dumps(line) for line in lines))
    touch(book.log / f"{0:020d}.json", 1000)
    table = open_delta(str(tmp_path / "t"))
    for at, version in ((1500, 0), (2000, 1), (3999, 2), (10_000, 3)):
        assert table.snapshot(timestamp=at).version == version
    assert table.snapshot().timestamp == 4000


# -- what is refused -------------------------------------------------------------------------------


def with_action(tmp_path: Path, rng: Random, *actions: dict[str, Any]) -> str:
    book = DeltaBook(tmp_path / "t", rng)
    book.append(3)
    book._commit(actions)
    return str(tmp_path / "t")


@pytest.mark.parametrize(
    ("protocol", "named"),
    [
        ({"minReaderVersion": 4, "minWriterVersion": 7}, "reader version 4"),
        ({"minReaderVersion": 3, "readerFeatures": ["variantType"]}, "variantType"),
        ({"minReaderVersion": 3, "readerFeatures": ["catalogManaged"]}, "catalogManaged"),
        ({"minReaderVersion": 3, "readerFeatures": ["rowLevelSecurity"]}, "rowLevelSecurity"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(
    tmp_path: Path, rng: Random, protocol: dict[str, Any], named: str
) -> None:
    with pytest.raises(ProtocolError, match=named):
        rows_of(with_action(tmp_path, rng, {"protocol": protocol}))


@pytest.mark.parametrize(
    "path", ["../secret.parquet", "file:///etc/passwd", "s3://other/x.parquet", "%2e%2e/x.parquet"]
)
def test_files_outside_of_the_table_are_refused(tmp_path: Path, rng: Random, path: str) -> None:
    add = {"path": path, "size": 10, "partitionValues": {}, "modificationTime": 0}
    with pytest.raises(UnsafePathError):
        rows_of(with_action(tmp_path, rng, {"add": add}))


def test_files_in_declared_roots_are_read(tmp_path: Path, rng: Random) -> None:
    other = DeltaBook(tmp_path / "other", rng, partition=False)
    other.append(4)
    (file,) = other.files.values()
    book = DeltaBook(tmp_path / "t", rng, partition=False)
    book._commit([{"add": {**file.add, "path": f"file://{tmp_path}/other/{file.path}"}}])
    with pytest.raises(UnsafePathError):
        open_delta(book.folder.as_posix()).snapshot()
    table = open_delta(book.folder.as_posix(), {"roots": [str(tmp_path / "other")]})
    assert in_order(read_all(table.snapshot()).to_pylist()) == in_order(other.rows())


def test_damaged_vectors_and_files_are_errors(tmp_path: Path, rng: Random) -> None:
    book = DeltaBook(tmp_path / "t", rng, partition=False)
    book.append(10)
    (file,) = book.files.values()
    book._commit(book.delete_rows(file, {3}, "u"))
    vector = next(book.folder.rglob("deletion_vector_*.bin"))
    good = vector.read_bytes()
    vector.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(CorruptFileError, match="deletion vector"):
        rows_of(tmp_path / "t")
    vector.unlink()
    with pytest.raises(FileNotFoundError, match="deletion vector"):
        rows_of(tmp_path / "t")
    vector.write_bytes(good)
    assert len(rows_of(tmp_path / "t")) == 9
    (book.folder / file.path).unlink()
    with pytest.raises(FileNotFoundError):
        rows_of(tmp_path / "t")


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value", "low", "high"),
    [
        (pa.int64(), 5, 5, 5),
        (pa.int64(), "5", None, None),
        (pa.string(), "short", "short", "short"),
        (pa.string(), "x" * 32, "x" * 32, None),
        (pa.string(), "x" * 32 + "\U0010ffff", "x" * 32 + "\U0010ffff", "x" * 32 + "\U0010ffff"),
        (pa.float32(), 3.4, 3.4, 3.4000000953674316),
        (pa.float64(), "NaN", None, None),
        (pa.decimal128(38, 2), EXACT, EXACT, EXACT),
        (pa.timestamp("us", "UTC"), "2026-01-01T00:00:00.123Z",
         datetime(2026, 1, 1, 0, 0, 0, 123000, UTC), datetime(2026, 1, 1, 0, 0, 0, 123999, UTC)),
        (pa.binary(), "x", None, None),
    ],
)  # fmt: skip
def test_statistics_are_bounds(dtype: pa.DataType, value: Any, low: Any, high: Any) -> None:
    assert bound(value, False, dtype, 32, False) == low
    assert bound(value, True, dtype, 32, False) == high


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        (None, pa.int32(), None),
        ("", pa.string(), None),
        ("-7", pa.int32(), -7),
        ("true", pa.bool_(), True),
        ("1.50", pa.decimal128(5, 2), Decimal("1.50")),
        ("2026-01-02 03:04:05", INSTANT, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.000001Z", INSTANT, datetime(2026, 1, 2, 3, 4, 5, 1, UTC)),
        ("2026-01-02 03:04:05.5", pa.timestamp("us"), datetime(2026, 1, 2, 3, 4, 5, 500000)),
    ],
)  # fmt: skip
def test_partition_values_are_typed(text: str | None, dtype: pa.DataType, value: Any) -> None:
    assert partition_value(text, dtype) == value


def test_partition_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="'abc'"):
        partition_value("abc", pa.int32())
