"""Iceberg tables are read as they are: files, columns, every kind of delete, snapshots."""

from __future__ import annotations

import gzip
import json
import pickle
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from icebergkit import IcebergBook
from stories import HandIceberg, LibraryIceberg, in_order
from test_delta import check_snapshot

from indextables.errors import (
    ConfigError,
    CorruptFileError,
    ProtocolError,
    TableNotFoundError,
    UnsafePathError,
    VersionNotFoundError,
)
from indextables.sources.iceberg import open_iceberg
from indextables.sources.iceberg_schema import bound, columns_of, partition_value
from indextables.sources.reading import read_all

LAKE = Path(__file__).parents[3] / "shared" / "lake" / "iceberg" / "data" / "persistent"


def shared(name: str) -> Any:
    if not (LAKE / name).is_dir():
        pytest.skip("Iceberg tables written by others are not on this machine")
    return open_iceberg(str(LAKE / name), {"relocate": {"data/persistent": str(LAKE)}})


def rows_of(location: Any, **asked: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_all(open_iceberg(str(location)).snapshot(**asked)).to_pylist()
    return rows


# -- tables of others ------------------------------------------------------------------------------


def test_equality_deletes_of_others() -> None:
    rows = read_all(shared("equality_deletes/warehouse/mydb/mytable").snapshot()).to_pylist()
    assert in_order(rows) == in_order(
        [
            {"id": 4, "name": "d", "bir": date(2025, 1, 4)},
            {"id": 5, "name": "e", "bir": date(2025, 1, 5)},
        ]
    )


def test_equality_deletes_in_partitions_of_others() -> None:
    table = shared("equality_deletes/warehouse/mydb/mytable_partitioned")
    rows = read_all(table.snapshot()).to_pylist()
    assert sorted((row["id"], row["name"]) for row in rows) == [(1, "a"), (4, "d"), (5, "e")]


def test_a_bare_vector_of_others() -> None:
    table = shared("legacy_bare_deletion_vector/warehouse/default/legacy_bare_deletion_vector")
    assert [row["id"] for row in read_all(table.snapshot()).to_pylist()] == [1, 3]
    older = table.snapshot(version=8314182234503896325)
    assert read_all(older).num_rows == 3


def test_files_without_ids_of_others() -> None:
    rows = read_all(shared("name_mapping/warehouse_1/mydb/t1").snapshot())
    assert rows.num_rows == 10_000
    assert sorted(rows["a"].to_pylist()) == list(range(10_000))
    assert rows["b"].null_count == 10_000


def test_partitions_of_others() -> None:
    snapshot = shared("hive_partitioned_table").snapshot()
    assert read_all(snapshot).num_rows == 6
    stamped = shared("partition_timestamptz/default.db/partition_timestamptz").snapshot()
    want = {
        datetime(2023, 5, 15, 14, 30, 45, tzinfo=UTC),
        datetime(2023, 8, 22, 9, 15, 20, tzinfo=UTC),
    }
    assert set(read_all(stamped)["partition_col"].to_pylist()) == want
    assert {v for f in stamped.files() for v in f.partition.values()} == want


# -- stories ---------------------------------------------------------------------------------------


def check_bounds(snapshot: Any) -> None:
    """As ``check_snapshot`` does, without counting positions that files of deletes name twice."""
    for file in snapshot.files():
        rows = snapshot.rows(file)
        assert rows.num_rows == file.rows
        held = pa.Table.from_batches(rows.scan(), rows.schema)
        for identity, bounds in file.bounds.items():
            values = held.column(identity).to_pylist()
            there = [v for v in values if v is not None]
            assert bounds.low is None or all(v >= bounds.low for v in there), (identity, bounds)
            assert bounds.high is None or all(v <= bounds.high for v in there), (identity, bounds)
            assert bounds.nulls == len(values) - len(there)


def check_hand_story(folder: Path, rng: Random, steps: int, **how: Any) -> Counter[str]:
    story, seen = HandIceberg(folder, rng, **how), Counter[str]()
    history: dict[int, list[str]] = {}
    for _ in range(steps):
        before = story.book.snapshot_id
        seen[story.step()] += 1
        snapshot = open_iceberg(story.location).snapshot()
        assert snapshot.version == story.book.snapshot_id
        want = in_order(story.rows())
        assert in_order(read_all(snapshot).to_pylist()) == want, seen
        check_bounds(snapshot)
        if story.book.snapshot_id != before:
            history[snapshot.version] = want
    again = pickle.loads(pickle.dumps(snapshot))
    assert in_order(read_all(again).to_pylist()) == want
    for version in rng.sample(sorted(history), min(4, len(history))):
        if how.get("ids", True):
            assert in_order(rows_of(folder, version=version)) == history[version]
    return seen


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("ids", [True, False])
def test_stories_by_hand(tmp_path: Path, rng: Random, version: int, ids: bool) -> None:
    check_hand_story(tmp_path / "t", rng, 15, version=version, ids=ids)


@pytest.mark.slow
def test_stories_by_hand_long(tmp_path: Path, rng: Random) -> None:
    for number in range(100):
        how = {"version": rng.choice([2, 3]), "ids": rng.random() < 0.6}
        check_hand_story(tmp_path / str(number), rng, 40, **how)


def check_library_story(folder: Path, rng: Random, steps: int) -> None:
    story, seen = LibraryIceberg(folder, rng), Counter[str]()
    try:
        for _ in range(steps):
            seen[story.step()] += 1
            want = in_order(story.rows())
            snapshot = open_iceberg(story.table.metadata_location).snapshot()
            assert in_order(read_all(snapshot).to_pylist()) == want, seen
            check_snapshot(snapshot)
        assert in_order(rows_of(story.location)) == want
    finally:
        story.close()


def test_stories_by_the_library(tmp_path: Path, rng: Random) -> None:
    pytest.importorskip("pyiceberg.catalog.sql")
    check_library_story(tmp_path / "t", rng, 12)


@pytest.mark.slow
def test_stories_by_the_library_long(tmp_path: Path, rng: Random) -> None:
    pytest.importorskip("pyiceberg.catalog.sql")
    for number in range(40):
        check_library_story(tmp_path / str(number), rng, 20)


def test_the_library_agrees_with_the_hand(tmp_path: Path, rng: Random) -> None:
    """The tables that are written by hand are Iceberg tables."""
    static = pytest.importorskip("pyiceberg.table")
    book = IcebergBook(tmp_path / "t", rng)
    book.append(30)
    book.delete_positions()
    table = static.StaticTable.from_metadata(
        str(tmp_path / "t" / "metadata" / f"v{book.number}.metadata.json")
    )
    assert in_order(table.scan().to_arrow().to_pylist()) == in_order(book.rows())


# -- deletes, one by one ---------------------------------------------------------------------------


STEPS: dict[str, Callable[[IcebergBook], None]] = {
    "positions": IcebergBook.delete_positions,
    "vector": IcebergBook.delete_by_vector,
    "value": IcebergBook.delete_by_value,
    "upsert": IcebergBook.upsert,
    "write and delete": IcebergBook.write_and_delete,
}


@pytest.mark.parametrize("name", STEPS)
def test_deletes_change_the_token_and_not_the_file(tmp_path: Path, rng: Random, name: str) -> None:
    book = IcebergBook(tmp_path / "t", rng, 3)
    book.append(12)
    before = {f.path: f for f in open_iceberg(str(tmp_path / "t")).snapshot().files()}
    assert all(not f.deletes and f.deletes.token == "" for f in before.values())
    STEPS[name](book)
    after = {f.path: f for f in open_iceberg(str(tmp_path / "t")).snapshot().files()}
    assert all(after[path].key == file.key for path, file in before.items())
    changed = [f for f in after.values() if f.deletes.token]
    assert changed
    assert all(bool(f.deletes) for f in changed)
    assert in_order(rows_of(tmp_path / "t")) == in_order(book.rows())


def test_an_equality_delete_on_a_dropped_column_still_acts(tmp_path: Path, rng: Random) -> None:
    book = IcebergBook(tmp_path / "t", rng)
    book.append(20)
    while not any(len(e["equality_ids"]) == 1 for _, _, e in book.deletes):
        book.delete_by_value()
    for column in [c for c in book.columns if c.name != "part"][:1]:
        book.columns.remove(column)
    book.change_schema()
    assert in_order(rows_of(tmp_path / "t")) == in_order(book.rows())


# -- metadata --------------------------------------------------------------------------------------


def newest(book: IcebergBook) -> Path:
    return book.folder / "metadata" / f"v{book.number}.metadata.json"


def edited(book: IcebergBook, **changes: Any) -> None:
    body = json.loads(newest(book).read_text())
    newest(book).write_text(json.dumps({**body, **changes}))


def test_the_newest_metadata_of_a_folder(tmp_path: Path, rng: Random) -> None:
    book = IcebergBook(tmp_path / "t", rng)
    assert rows_of(tmp_path / "t") == []
    for _ in range(10):
        book.append(1)
    assert len(rows_of(tmp_path / "t")) == 10
    assert len(rows_of(book.folder / "metadata" / "v6.metadata.json")) == 5
    text = newest(book).read_bytes()
    newest(book).with_name(f"v{book.number + 1}.gz.metadata.json").write_bytes(gzip.compress(text))
    assert len(rows_of(tmp_path / "t")) == 10
    newest(book).with_name(f"{book.number + 1}-lost.metadata.json").write_bytes(text)
    with pytest.raises(ConfigError, match="2 newest"):
        rows_of(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        rows_of(tmp_path)


def test_travel_in_time(tmp_path: Path, rng: Random) -> None:
    book = IcebergBook(tmp_path / "t", rng)
    counts = {}
    for number in range(1, 4):
        book.append(number)
        counts[number * 1000] = (book.snapshot_id, len(book.rows()))
    book.add_column()
    table = open_iceberg(str(tmp_path / "t"))
    assert len(table.snapshot().columns) == 4
    for at, (version, count) in counts.items():
        for snapshot in (table.snapshot(version=version), table.snapshot(timestamp=at + 999)):
            assert (snapshot.version, read_all(snapshot).num_rows) == (version, count)
            assert len(snapshot.columns) == 3, "the columns of that time"
    for asked in ({"version": 5}, {"timestamp": 999}):
        with pytest.raises(VersionNotFoundError):
            table.snapshot(**asked)


def test_a_catalog_names_the_metadata(tmp_path: Path, rng: Random) -> None:
    pytest.importorskip("pyiceberg.catalog.sql")
    story = LibraryIceberg(tmp_path / "t", rng)
    try:
        table = open_iceberg("db.t", {"catalog": story.catalog})
        assert in_order(read_all(table.snapshot()).to_pylist()) == in_order(story.rows())
        with pytest.raises(TableNotFoundError, match="catalog"):
            open_iceberg("db.none", {"catalog": story.catalog}).snapshot()
    finally:
        story.close()


# -- what is refused -------------------------------------------------------------------------------


def test_newer_formats_are_refused(tmp_path: Path, rng: Random) -> None:
    book = IcebergBook(tmp_path / "t", rng)
    for version in (4, 0, "2"):
        edited(book, **{"format-version": version})
        with pytest.raises(ProtocolError, match=f"format version {version}"):
            rows_of(tmp_path / "t")
    newest(book).write_text("{")
    with pytest.raises(CorruptFileError):
        rows_of(tmp_path / "t")


@pytest.mark.parametrize("kind", ["variant", "geometry(srid:4326)", "quaternion"])
def test_types_to_come_are_refused_by_name(kind: str) -> None:
    with pytest.raises(ProtocolError, match=r"'c'.*" + kind[:6]):
        columns_of({"fields": [{"id": 1, "name": "c", "type": kind}]}, None)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"file_format": "ORC"}, ProtocolError),
        ({"file_path": "file:///etc/passwd"}, UnsafePathError),
        ({"file_path": "s3://other/file.parquet"}, UnsafePathError),
        ({"content": 7}, ProtocolError),
    ],
)
def test_strange_files_are_refused(
    tmp_path: Path, rng: Random, changes: dict[str, Any], error: type[Exception]
) -> None:
    book = IcebergBook(tmp_path / "t", rng)
    book.append(3)
    next(iter(book.files.values())).entry.update(changes)
    book._commit()
    with pytest.raises(error):
        rows_of(tmp_path / "t")


def test_a_table_elsewhere_is_refused_until_it_is_relocated(tmp_path: Path, rng: Random) -> None:
    book = IcebergBook(tmp_path / "t", rng)
    book.append(5)
    book.delete_positions()
    book.folder.rename(tmp_path / "moved")
    with pytest.raises(UnsafePathError):
        rows_of(tmp_path / "moved")
    options = {"relocate": {f"file://{tmp_path}/t": f"{tmp_path}/moved"}}
    table = open_iceberg(str(tmp_path / "moved"), options)
    assert in_order(read_all(table.snapshot()).to_pylist()) == in_order(book.rows())


def test_files_without_ids_need_a_mapping(tmp_path: Path, rng: Random) -> None:
    book = IcebergBook(tmp_path / "t", rng, ids=False)
    book.append(5)
    assert in_order(rows_of(tmp_path / "t")) == in_order(book.rows())
    edited(book, properties={})
    with pytest.raises(ProtocolError, match="name mapping"):
        rows_of(tmp_path / "t")


def test_damaged_deletes_are_errors(tmp_path: Path, rng: Random) -> None:
    book = IcebergBook(tmp_path / "t", rng, 3)
    book.append(10)
    book.delete_by_vector()
    (vector,) = (tmp_path / "t" / "data").glob("*.puffin")
    good = vector.read_bytes()
    for bad in (good[:-1] + bytes([good[-1] ^ 255]), good[:-1], b""):
        vector.write_bytes(bad)
        with pytest.raises(CorruptFileError):
            rows_of(tmp_path / "t")
    vector.unlink()
    with pytest.raises(FileNotFoundError):
        rows_of(tmp_path / "t")


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype", "value"),
    [
        (b"\x05\0\0\0", pa.int64(), 5),
        (b"\xff" * 8, pa.int64(), -1),
        (b"\0\0\x80?", pa.float64(), 1.0),
        (b"\0\0\xc0\x7f", pa.float32(), None),
        (b"abc", pa.string(), "abc"),
        (b"\xff\xfe", pa.string(), None),
        (b"\x04\xd2", pa.decimal128(9, 2), Decimal("12.34")),
        (b"\x01\0\0\0", pa.date32(), date(1970, 1, 2)),
        (b"\x01\0\0\0", pa.timestamp("us"), datetime(1970, 1, 2)),
        (b"\x01" + b"\0" * 7, pa.timestamp("us", "UTC"), datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
        (b"\x01", pa.int64(), None),
        (None, pa.int64(), None),
    ],
)
def test_bounds_in_binary(data: bytes | None, dtype: pa.DataType, value: Any) -> None:
    assert bound(data, dtype) == value


def test_partition_values_of_avro() -> None:
    assert partition_value(1, pa.date32()) == date(1970, 1, 2)
    assert partition_value(1, pa.timestamp("us")) == datetime(1970, 1, 1, 0, 0, 0, 1)
    aware = datetime(2020, 1, 1, tzinfo=UTC)
    assert partition_value(aware, pa.timestamp("us")) == datetime(2020, 1, 1)
    assert partition_value(None, pa.int32()) is None
    assert partition_value(7, pa.int64()) == 7


def test_default_values_fill_older_files() -> None:
    fields = [
        {"id": 1, "name": "a", "type": "date", "initial-default": "2026-01-02"},
        {"id": 2, "name": "b", "type": "decimal(9,2)", "initial-default": "14.20"},
        {"id": 3, "name": "c", "type": "binary", "initial-default": "00ff"},
        {
            "id": 4,
            "name": "d",
            "type": "timestamptz",
            "initial-default": "2026-01-01T00:00:00+00:00",
        },
        {"id": 5, "name": "e", "type": "string", "initial-default": "x"},
    ]
    found = [column.default for column in columns_of({"fields": fields}, None)]
    assert found == [
        date(2026, 1, 2), Decimal("14.20"), b"\0\xff", datetime(2026, 1, 1, tzinfo=UTC), "x",
    ]  # fmt: skip
    inner = {"type": "struct", "fields": [fields[4]]}
    with pytest.raises(ProtocolError, match=r"s\.e"):
        columns_of({"fields": [{"id": 9, "name": "s", "type": inner}]}, None)
