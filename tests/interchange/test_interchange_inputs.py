"""What ``write`` takes: the same three rows in every form end up as the same table."""

from __future__ import annotations

import datetime
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import indextables
from indextables.errors import ConfigError, SchemaMismatchError
from indextables.table.interchange.files import FileFormat, read_files

ROWS = [{"id": 1, "m": "one"}, {"id": 2, "m": None}, {"id": 3, "m": "three"}]
DATA = pa.Table.from_pylist(ROWS)


def generator() -> Iterator[pa.RecordBatch]:
    for start in range(3):
        yield DATA.slice(start, 1).to_batches()[0]


FORMS: dict[str, Any] = {
    "table": lambda: DATA,
    "batch": lambda: DATA.to_batches()[0],
    "reader": lambda: DATA.to_reader(),
    "dataset": lambda: ds.dataset(DATA),
    "scanner": lambda: ds.dataset(DATA).scanner(),
    "pandas": lambda: pd.DataFrame({"id": [1, 2, 3], "m": ["one", None, "three"]}),
    "polars": lambda: pl.DataFrame(ROWS),
    "lazy": lambda: pl.LazyFrame(ROWS),
    "dicts": lambda: ROWS,
    "columns": lambda: {"id": [1, 2, 3], "m": ["one", None, "three"]},
    "generator": generator,
    "generator of dicts": lambda: (row for row in ROWS),
    "list of tables": lambda: [DATA.slice(0, 2), DATA.slice(2)],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_written(tmp_path: Path, form: str) -> None:
    indextables.write(FORMS[form](), tmp_path / "t")
    assert indextables.open(tmp_path / "t").to_arrow().sort_by("id").to_pylist() == ROWS


def test_a_table_is_written_to_another(tmp_path: Path) -> None:
    indextables.write(DATA, tmp_path / "a")
    indextables.write(indextables.open(tmp_path / "a"), tmp_path / "b")
    assert indextables.open(tmp_path / "b").count() == 3


def files(folder: Path) -> dict[str, Path]:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (folder / "rows.ndjson").write_text(lines)
    (folder / "rows.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    pa.csv.write_csv(DATA, folder / "rows.csv")
    (folder / "rows.tsv").write_text("id\tm\n1\tone\n2\t\n3\tthree\n")
    pq.write_table(DATA, folder / "rows.parquet")
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize(
    "name", ["rows.ndjson", "rows.jsonl.gz", "rows.csv", "rows.tsv", "rows.parquet"]
)
def test_files_are_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    path = files(tmp_path / "in")[name]
    indextables.write(path, tmp_path / "t")
    assert indextables.open(tmp_path / "t").to_arrow().sort_by("id").to_pylist() == ROWS


def test_globs_folders_and_lists_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    files(folder)
    asked: list[tuple[Any, int]] = [
        (folder / "rows.?s*", 3),
        ([folder / "rows.csv", folder / "rows.parquet"], 2),
        (folder, 5),
    ]
    for data, count in asked:
        indextables.write(data, tmp_path / "t", mode="overwrite")
        assert indextables.open(tmp_path / "t").count("id = 2") == count


def test_a_later_value_decides_the_type(tmp_path: Path) -> None:
    """The last line of a long file is not an integer, or has one more field."""
    csv = "id,v\n" + "".join(f"{i},{i}\n" for i in range(200_000)) + "200000,1.5\n200001,n/a?\n"
    (tmp_path / "a.csv").write_text(csv)
    lines = [json.dumps({"id": i}) for i in range(30_000)] + ['{"id": 1.5, "late": "x"}']
    (tmp_path / "a.ndjson").write_text("\n".join(lines))
    schema, batches = read_files([str(tmp_path / "a.csv")], FileFormat())
    assert schema.field("v").type == pa.string()
    assert sum(batch.num_rows for batch in batches) == 200_002
    schema, batches = read_files([str(tmp_path / "a.ndjson")], FileFormat())
    assert schema == pa.schema([("id", pa.float64()), ("late", pa.string())])
    assert pa.Table.from_batches(batches)["late"].to_pylist()[-1] == "x"


@pytest.mark.parametrize(
    ("name", "text", "bad"),
    [
        ("a.csv", "id,m\n1,one\n2\n3,three\n", "2"),
        ("a.ndjson", '{"id":1,"m":"one"}\n[1]\n{"id":3,"m":"three"}\n', "[1]"),
        ("b.ndjson", '{"id":1,"m":"one"}\n{"id":\n{"id":3,"m":"three"}\n', '{"id":'),
    ],
)
def test_bad_lines_stop_are_skipped_or_kept(tmp_path: Path, name: str, text: str, bad: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SchemaMismatchError, match=name):
        read_files([str(path)], FileFormat())
    skip = FileFormat(bad_lines="skip")
    _, batches = read_files([str(path)], skip)
    assert pa.Table.from_batches(batches)["id"].to_pylist() == [1, 3]
    assert skip.bad == 1
    keep = FileFormat(bad_lines="keep")
    _, batches = read_files([str(path)], keep)
    kept = pa.Table.from_batches(batches).to_pylist()
    assert {"id": None, "m": None, "_raw": bad} in kept
    assert len(kept) == 3


def test_text_lines_and_unknown_names(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_bytes(b"one\r\ntwo \xff\n\nlast")
    indextables.write(tmp_path / "app.log", tmp_path / "t")
    found = indextables.open(tmp_path / "t").to_arrow()["line"].to_pylist()
    assert found == ["one", "two \ufffd", "", "last"]
    (tmp_path / "x.bin").write_bytes(b"?")
    with pytest.raises(ConfigError, match="parquet, csv, ndjson, text"):
        indextables.write(tmp_path / "x.bin", tmp_path / "u")
    with pytest.raises(ConfigError, match="no such file"):
        indextables.write(str(tmp_path / "none*.csv"), tmp_path / "u")


@pytest.mark.parametrize("data", [[], iter([]), (row for row in [])], ids=["list", "iter", "gen"])
def test_nothing_without_a_schema_is_an_error(tmp_path: Path, data: Any) -> None:
    with pytest.raises(ConfigError, match="nothing to write"):
        indextables.write(data, tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_an_empty_table_is_an_empty_write(tmp_path: Path) -> None:
    indextables.write(DATA.slice(0, 0), tmp_path / "t")
    assert indextables.open(tmp_path / "t").count() == 0


@pytest.mark.parametrize("data", [5, b"bytes", object(), [1, 2], [DATA, 3]], ids=repr)
def test_what_is_no_data_is_refused(tmp_path: Path, data: Any) -> None:
    with pytest.raises(ConfigError, match="cannot write data of type"):
        indextables.write(data, tmp_path / "t")


def test_mixed_rows_and_late_columns(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatchError, match="make no table"):
        indextables.write([{"a": 1}, {"a": "x"}], tmp_path / "t")
    indextables.write([{"a": 1}, {"a": 2, "late": "x"}], tmp_path / "t")
    assert indextables.open(tmp_path / "t").to_arrow()["late"].to_pylist() == [None, "x"]
    parts = [pa.table({"a": [1]}), pa.table({"a": [1], "b": [2]})]
    with pytest.raises(SchemaMismatchError, match="part 2 of the data has columns"):
        indextables.write(parts, tmp_path / "u")


def test_types_that_cannot_be_stored_name_their_column(tmp_path: Path) -> None:
    clock = pa.table({"at": pa.array([datetime.time(1)], pa.time64("us"))})
    with pytest.raises(SchemaMismatchError, match=r"column 'at'.*time64"):
        indextables.write(clock, tmp_path / "t")
