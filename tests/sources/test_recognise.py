"""The format of a source is seen from its location."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltakit import DeltaBook
from icebergkit import IcebergBook

from indextables.errors import ConfigError, TableNotFoundError
from indextables.sources.recognise import open_source, recognise


@pytest.fixture
def tables(tmp_path: Path, rng: Random) -> Path:
    DeltaBook(tmp_path / "delta", rng).append(3)
    IcebergBook(tmp_path / "iceberg", rng).append(3)
    (tmp_path / "parquet").mkdir()
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "parquet" / "a.parquet")
    return tmp_path


@pytest.mark.parametrize("name", ["delta", "iceberg", "parquet"])
def test_a_folder_tells_its_format(tables: Path, name: str) -> None:
    assert recognise(str(tables / name)) == name
    table = open_source(str(tables / name))
    snapshot = table.snapshot()
    assert (table.format, snapshot.format) == (name, name)
    assert sum(file.rows or 3 for file in snapshot.files()) == 3
    assert snapshot.location == f"file://{tables / name}"


def test_files_and_globs_tell_their_format(tables: Path) -> None:
    assert recognise(str(tables / "iceberg" / "metadata" / "v2.metadata.json")) == "iceberg"
    assert recognise("db.table", {"catalog": "prod"}) == "iceberg"
    for location in (str(tables / "parquet" / "a.parquet"), f"{tables}/parquet/*"):
        assert recognise(location) == "parquet"
        assert sum(1 for _ in open_source(location).snapshot().files()) == 1
    assert recognise([str(tables / "parquet" / "a.parquet")]) == "parquet"


def test_a_delta_table_with_iceberg_metadata_is_a_delta_table(tables: Path) -> None:
    (tables / "iceberg" / "metadata").rename(tables / "delta" / "metadata")
    assert recognise(str(tables / "delta")) == "delta"


def test_what_is_no_table_is_refused(tables: Path) -> None:
    with pytest.raises(TableNotFoundError, match="Delta, Iceberg or Parquet"):
        recognise(str(tables / "nothing"))
    with pytest.raises(ConfigError, match="delta"):
        open_source(str(tables / "delta"), "delt")
    with pytest.raises(ConfigError, match="one location"):
        open_source([str(tables / "delta")], "delta")
    with pytest.raises(TableNotFoundError):
        open_source(str(tables / "parquet"), "delta").snapshot()
