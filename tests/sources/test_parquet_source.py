"""Folders, globs and lists of Parquet files as a table."""

from __future__ import annotations

import io
import os
import pickle
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from servers.counting_s3 import CountingS3

from indextables.errors import (
    ConfigError,
    IndexTablesError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsafePathError,
    VersionNotFoundError,
)
from indextables.sources.parquet import open_parquet, partition_type
from indextables.sources.reading import live_batches, read_all
from indextables.sources.roots import Roots
from indextables.storage import open_store


def put(folder: Path, name: str, **columns: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def rows_of(location: Any, **options: Any) -> list[dict[str, Any]]:
    table = read_all(open_parquet(location, options).snapshot())
    return sorted(table.to_pylist(), key=repr)


def test_a_folder_is_all_its_files(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", x=pa.array([1, 2], pa.int32()))
    put(tmp_path, "deep/er/b.parquet", x=pa.array([3], pa.int64()), y=["late"])
    put(tmp_path, "_hidden/c.parquet", x=[9])
    put(tmp_path, ".c.parquet", x=[9])
    (tmp_path / "_SUCCESS").write_text("")
    snapshot = open_parquet(str(tmp_path)).snapshot()
    assert [(c.name, c.type) for c in snapshot.columns] == [("x", pa.int64()), ("y", pa.string())]
    assert rows_of(str(tmp_path)) == [
        {"x": 1, "y": None},
        {"x": 2, "y": None},
        {"x": 3, "y": "late"},
    ]
    files = list(snapshot.files())
    assert [os.path.basename(f.path) for f in files] == ["a.parquet", "b.parquet"]
    assert all(f.token for f in files)
    again = pickle.loads(pickle.dumps(snapshot))
    assert list(again.files()) == files
    assert read_all(again).num_rows == 3


def test_a_replaced_file_is_another_file(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", x=[1])
    (before,) = open_parquet(str(tmp_path)).snapshot().files()
    put(tmp_path, "new", x=[2]).replace(tmp_path / "a.parquet")
    (after,) = open_parquet(str(tmp_path)).snapshot().files()
    assert (before.path, before.size) == (after.path, after.size)
    assert before.key != after.key


def test_globs_and_lists_and_single_files(tmp_path: Path) -> None:
    one = put(tmp_path, "d=1/a.parquet", x=[1])
    put(tmp_path, "d=1/b.pq", x=[2])
    two = put(tmp_path, "d=2/a.parquet", x=[3])
    assert rows_of(f"{tmp_path}/*/a.parquet") == [{"x": 1, "d": 1}, {"x": 3, "d": 2}]
    assert rows_of(f"{tmp_path}/**/*.pq") == [{"x": 2, "d": 1}]
    assert rows_of([str(one), str(two)]) == [{"x": 1, "d": 1}, {"x": 3, "d": 2}]
    assert rows_of(str(one)) == [{"x": 1}]
    with pytest.raises(ConfigError):
        open_parquet([])


def test_partitions_are_typed(tmp_path: Path) -> None:
    put(tmp_path, "day=2026-01-02/n=07/who=a%2Fb/f.parquet", x=[1], n=[99])
    put(tmp_path, "day=__HIVE_DEFAULT_PARTITION__/n=8/who=c/f.parquet", x=[2], n=[99])
    snapshot = open_parquet(str(tmp_path)).snapshot()
    assert snapshot.partition_columns == ("day", "n", "who")
    assert {c.name: c.type for c in snapshot.columns} == {
        "x": pa.int64(), "day": pa.date32(), "n": pa.int32(), "who": pa.string(),
    }  # fmt: skip
    assert rows_of(str(tmp_path)) == [
        {"x": 1, "day": date(2026, 1, 2), "n": 7, "who": "a/b"},
        {"x": 2, "day": None, "n": 8, "who": "c"},
    ]
    named = rows_of(str(tmp_path), partition_types={"n": "string"})
    assert [row["n"] for row in named] == ["07", "8"]
    with pytest.raises(SchemaMismatchError, match="partition_types"):
        rows_of(str(tmp_path), partition_types={"who": "int"})


@pytest.mark.parametrize(
    ("texts", "dtype"),
    [
        (["1", "-2"], pa.int32()),
        (["1", str(1 << 40)], pa.int64()),
        (["1", str(1 << 63)], pa.float64()),
        (["1", "1.5"], pa.float64()),
        (["2026-02-30"], pa.string()),
        (["2026-02-28"], pa.date32()),
        (["a", "1"], pa.string()),
        (["__HIVE_DEFAULT_PARTITION__"], pa.string()),
        (["__HIVE_DEFAULT_PARTITION__", "3"], pa.int32()),
    ],
)
def test_the_type_of_partition_values(texts: list[str], dtype: pa.DataType) -> None:
    assert partition_type(texts) == dtype


def test_files_in_different_depths_of_partitions_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", x=[1])
    put(tmp_path, "d=1/b.parquet", x=[1])
    with pytest.raises(SchemaMismatchError, match="different columns"):
        rows_of(str(tmp_path))


def test_types_without_a_common_one_are_refused_by_name(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", x=[1])
    put(tmp_path, "b.parquet", x=["text"])
    with pytest.raises(SchemaMismatchError, match=r"(?s)'x'.*a\.parquet.*b\.parquet"):
        rows_of(str(tmp_path))


def test_structs_are_united_field_by_field(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", s=[{"p": 1}], X=[1])
    put(tmp_path, "b.parquet", s=[{"q": [1.5]}], x=[2])
    assert rows_of(str(tmp_path)) == [
        {"s": {"p": 1, "q": None}, "X": 1},
        {"s": {"p": None, "q": [1.5]}, "X": 2},
    ]


def test_files_that_were_seen_are_not_read_again(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", x=[1])
    before = open_parquet(str(tmp_path)).snapshot()
    keys = {file.key for file in before.files()}
    damaged = tmp_path / "a.parquet"
    stat = damaged.stat()
    damaged.write_bytes(b"x" * stat.st_size)
    os.utime(damaged, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    put(tmp_path, "b.parquet", x=[2], y=[1.5])
    after = open_parquet(str(tmp_path)).snapshot(
        columns=before.columns, seen=lambda file: file.key in keys
    )
    assert [c.name for c in after.columns] == ["x", "y"]


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        open_parquet(str(tmp_path)).snapshot()
    put(tmp_path, "a.parquet", x=[1])
    for asked in ({"version": 1}, {"timestamp": 5}):
        with pytest.raises(VersionNotFoundError):
            open_parquet(str(tmp_path)).snapshot(**asked)
    (tmp_path / "rows.csv").write_text("1,2")
    with pytest.raises(IndexTablesError, match=r"rows\.csv"):
        open_parquet(str(tmp_path)).snapshot()


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", x=[1])
    snapshot = open_parquet(str(tmp_path)).snapshot()
    (file,) = snapshot.files()
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(FileNotFoundError):
        list(live_batches(snapshot, file))


# -- roots -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "{root}/../secret.parquet",
        "{root}/a/../../secret.parquet",
        "{root}x/a.parquet",
        "{root}//a.parquet",
        "/etc/passwd",
        "file://elsewhere{root}/a.parquet",
        "s3://bucket/a.parquet",
        "a.parquet",
        "",
    ],
)
def test_addresses_outside_of_the_roots_are_refused(tmp_path: Path, address: str) -> None:
    roots = Roots.of(str(tmp_path / "t"), {})
    with pytest.raises(UnsafePathError):
        roots.locate(address.format(root=tmp_path / "t"))


def test_links_that_lead_outside_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "secret.parquet", x=[1])
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.parquet").symlink_to(tmp_path / "secret.parquet")
    with pytest.raises(UnsafePathError):
        rows_of(str(tmp_path / "t"))


def test_declared_roots_and_relocation(tmp_path: Path) -> None:
    roots = Roots.of(
        "s3://one/t",
        {"roots": ["s3a://two/data"], "relocate": {"hdfs/old": "s3://one/t/x"}, "anon": True},
    )
    assert roots.storage == {"anon": True}
    assert roots.resolve("s3a://two/data/f") == "s3://two/data/f"
    store, path = roots.locate("s3n://two/data/p/f")
    assert (store.uri, path) == ("s3://two/data", "p/f")
    store, path = roots.locate("hdfs/old/f")
    assert (store.uri, path) == ("s3://one/t", "x/f")
    with pytest.raises(UnsafePathError):
        roots.locate("s3://two/other")
    with pytest.raises(UnsafePathError):
        roots.locate("hdfs/older/f")
    assert pickle.loads(pickle.dumps(roots)).locate("hdfs/old/f")[1] == "x/f"
    with pytest.raises(ConfigError):
        Roots.of(str(tmp_path), {"relocate": "x"})


def test_far_files_are_told_apart_by_their_contents() -> None:
    """Times of an object store are whole seconds: the size and time of a replaced file may stay."""
    with CountingS3() as server:
        options = {
            "key": "k", "secret": "s", "endpoint_url": server.endpoint,
            "client_kwargs": {"region_name": "us-east-1"},
        }  # fmt: skip
        store = open_store("s3://lake/t", options)
        found = []
        for value in (1, 2):
            out = io.BytesIO()
            pq.write_table(pa.table({"x": [value]}), out)
            store.put("a.parquet", out.getvalue())
            snapshot = open_parquet("s3://lake/t", options).snapshot()
            found += list(snapshot.files())
            assert read_all(snapshot).to_pylist() == [{"x": value}]
    assert (found[0].path, found[0].size) == (found[1].path, found[1].size)
    assert found[0].key != found[1].key
