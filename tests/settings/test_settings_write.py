"""Settings of writes act: splits, statistics, mappings and errors show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from settings_world import opened, settings, write

from indextables.errors import ConfigError, IndexTablesError
from indextables.mapping import FieldMapping
from indextables.spark.driver.distributing import distribution
from indextables.spark.driver.request import Access
from indextables.table import open_table

ROWS = {"id": [1, 2, 3], "msg": ["Disk-full now", "disk ok", "all fine"], "host": ["a", "b", "c"]}


def field(path: Path, name: str) -> FieldMapping:
    (found,) = [f for f in opened(path).mapping.fields if f.name == name]
    return found


# -- statistics ----------------------------------------------------------------------------------


def bounds(path: Path) -> dict[str, str]:
    return dict(opened(path).snapshot.file(0).max_values)


@pytest.mark.parametrize(
    ("given", "longest"),
    [
        ({}, 32),
        ({"stats__truncation__maxLength": 5}, 5),
        ({"stats__truncation__maxLength": 5, "stats__truncation__enabled": False}, 100),
    ],
    ids=["default", "stats.truncation.maxLength", "stats.truncation.enabled"],
)
def test_truncation(tmp_path: Path, given: dict[str, Any], longest: int) -> None:
    write({"s": ["x" * 100]}, tmp_path / "t", **given)
    assert len(bounds(tmp_path / "t")["s"]) == longest


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        ({"dataSkippingNumIndexedCols": 2}, {"id", "msg"}),
        ({"dataSkippingNumIndexedCols": 0}, set()),
        ({"dataSkippingStatsColumns": "host"}, {"host"}),
    ],
    ids=["dataSkippingNumIndexedCols", "none", "dataSkippingStatsColumns"],
)
def test_columns_with_statistics(tmp_path: Path, given: dict[str, Any], columns: set[str]) -> None:
    write(ROWS, tmp_path / "t", **given)
    assert set(bounds(tmp_path / "t")) == columns


# -- indexing ------------------------------------------------------------------------------------

TYPED = {"indexing__typemap__msg": "text"}


@pytest.mark.parametrize("given", [TYPED, {"indexing__typemap__text": "msg"}])
def test_indexing_typemap(tmp_path: Path, given: dict[str, Any]) -> None:
    """``indexing.typemap.<column>`` and ``indexing.typemap.<type>``."""
    write(ROWS, tmp_path / "exact")
    write(ROWS, tmp_path / "t", **given)
    assert field(tmp_path / "t", "msg").is_tokenized
    assert not field(tmp_path / "exact", "msg").is_tokenized
    assert opened(tmp_path / "t").count("msg TEXTSEARCH 'disk'") == 2


def test_indexing_fastfields_and_nonfastfields(tmp_path: Path) -> None:
    """``indexing.fastfields`` and ``indexing.nonfastfields``."""
    write(ROWS, tmp_path / "plain", **TYPED)
    assert not field(tmp_path / "plain", "msg").fast
    assert field(tmp_path / "plain", "host").fast
    given = {"indexing__fastfields": "msg", "indexing__nonfastfields": "host"}
    write(ROWS, tmp_path / "t", **TYPED, **given)
    assert field(tmp_path / "t", "msg").fast
    assert not field(tmp_path / "t", "host").fast
    assert opened(tmp_path / "t").count("host = 'b'") == 1


def test_indexing_storeonlyfields(tmp_path: Path) -> None:
    """``indexing.storeonlyfields``: not in the index, found by reading."""
    write(ROWS, tmp_path / "t", indexing__storeonlyfields="host")
    assert not field(tmp_path / "t", "host").indexed
    assert field(tmp_path / "t", "msg").indexed
    assert opened(tmp_path / "t").count("host = 'b'") == 1


@pytest.mark.parametrize(
    ("tokenizer", "hits"), [("default", 2), ("whitespace", 1), ("raw", 0), ("en_stem", 2)]
)
def test_indexing_tokenizer(tmp_path: Path, tokenizer: str, hits: int) -> None:
    """``indexing.tokenizer.<column>``."""
    write(ROWS, tmp_path / "t", **TYPED, indexing__tokenizer__msg=tokenizer)
    assert field(tmp_path / "t", "msg").tokenizer == tokenizer
    if tokenizer != "raw":
        assert opened(tmp_path / "t").count("msg TEXTSEARCH 'disk'") == hits


@pytest.mark.parametrize(
    "given",
    [
        {"indexing__indexrecordoption__msg": "freq"},
        {"indexing__text__indexRecordOption": "freq"},
    ],
    ids=["indexing.indexrecordoption.*", "indexing.text.indexRecordOption"],
)
def test_indexing_record_option(tmp_path: Path, given: dict[str, Any]) -> None:
    write(ROWS, tmp_path / "plain", **TYPED)
    write(ROWS, tmp_path / "t", **TYPED, **given)
    assert field(tmp_path / "plain", "msg").record == "position"
    assert field(tmp_path / "t", "msg").record == "freq"
    assert opened(tmp_path / "t").count("msg TEXTSEARCH 'disk'") == 2


@pytest.mark.parametrize(
    "given",
    [{"indexing__text__maxTokenLength": "3"}, {"indexing__tokenLength__msg": 3}],
    ids=["indexing.text.maxTokenLength", "indexing.tokenLength.*"],
)
def test_indexing_token_length(tmp_path: Path, given: dict[str, Any]) -> None:
    write(ROWS, tmp_path / "t", **TYPED, **given)
    table = opened(tmp_path / "t")
    assert table.count("msg TEXTSEARCH 'all'") == 1
    assert table.count("msg TEXTSEARCH 'disk'") == 0, "longer than the limit, so not a word"


@pytest.mark.parametrize("key", ["indexWriter.tempDirectoryPath", "merge.tempDirectoryPath"])
def test_work_folders(tmp_path: Path, key: str) -> None:
    """A folder that is not there is named; one that is there is used and left empty."""
    path, folder = tmp_path / "t", tmp_path / "work"
    given = {key.replace(".", "__"): str(folder)}

    def work() -> Any:
        if key.startswith("merge"):
            return opened(path, **given).merge()
        return write(ROWS, path, **given)

    if key.startswith("merge"):
        write(ROWS, path)
        write(ROWS, path)
    with pytest.raises(ConfigError, match=rf"work.*{key}"):
        work()
    folder.mkdir()
    work()
    assert list(folder.iterdir()) == []
    assert opened(path).count() == (6 if key.startswith("merge") else 3)


# -- writes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "splits"),
    [
        ({}, 1),
        ({"write__rowsPerSplit": 1000}, 5),
    ],
    ids=["default", "write.rowsPerSplit"],
)
def test_rows_per_split(tmp_path: Path, given: dict[str, Any], splits: int) -> None:
    write({"id": list(range(5000))}, tmp_path / "t", **given)
    assert opened(tmp_path / "t").snapshot.num_files == splits


def test_write_target_split_size(tmp_path: Path) -> None:
    """``write.targetSplitSize``: looked at every 65,536 rows."""
    noise = [i * 0x9E3779B97F4A7C15 % (1 << 63) for i in range(200_000)]
    for size, closed in ((None, False), ("100K", True)):
        given = {} if size is None else {"write__targetSplitSize": size}
        write({"n": noise}, tmp_path / str(size), **given)
        assert (opened(tmp_path / str(size)).snapshot.num_files > 1) is closed


def test_write_merge_schema(tmp_path: Path) -> None:
    """``write.mergeSchema``: an append may add columns."""
    path = tmp_path / "t"
    write({"id": [1]}, path)
    with pytest.raises(IndexTablesError, match="extra"):
        write({"id": [2], "extra": ["x"]}, path)
    write({"id": [2], "extra": ["x"]}, path, write__mergeSchema=True)
    assert opened(path).schema.names == ["id", "extra"]


def test_write_cluster_by(tmp_path: Path) -> None:
    """``write.clusterBy``: Spark is asked to sort the rows, as the write or the table says."""
    asked = Access(str(tmp_path / "none"), settings={"write.clusterBy": "id,m"})
    assert distribution(asked, [])["sort"] == ["id", "m"]
    write({"id": [1]}, tmp_path / "t")
    opened(tmp_path / "t").set_properties({"spark.indextables.write.clusterBy": "id"})
    assert distribution(Access(str(tmp_path / "t")), [])["sort"] == ["id"]
    assert distribution(Access(str(tmp_path / "other")), [])["sort"] == []


def test_write_overwrite_schema(tmp_path: Path) -> None:
    """``write.overwriteSchema``: an overwrite may replace the columns, in one version."""
    path = tmp_path / "t"
    write({"id": [1], "m": ["a b"]}, path, indexing__typemap__text="m")
    with pytest.raises(IndexTablesError, match="extra"):
        write({"extra": ["x"]}, path, mode="overwrite")
    write({"m": ["c d"], "extra": ["x"]}, path, mode="overwrite", write__overwriteSchema=True)
    table = opened(path)
    assert table.to_arrow().to_pylist() == [{"m": "c d", "extra": "x"}]
    assert table.snapshot.version == 2
    assert table.snapshot.table_mapping.get("m").is_tokenized
    assert open_table(str(path), version=1).to_arrow().to_pylist() == [{"id": 1, "m": "a b"}]
    for given in ({"write__replaceWhere": "m = 'x'"}, {"write__partitionOverwriteMode": "dynamic"}):
        with pytest.raises(IndexTablesError, match="overwriteSchema replaces the whole table"):
            write({"n": [1]}, path, mode="overwrite", write__overwriteSchema=True, **given)
    assert opened(path).snapshot.version == 2


DAYS = {"id": [1, 2], "day": ["mon", "tue"]}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"write__partitionOverwriteMode": "static"}, [("mon", 9)]),
        ({"write__partitionOverwriteMode": "dynamic"}, [("mon", 9), ("tue", 2)]),
        ({"write__replaceWhere": "day = 'mon'"}, [("mon", 9), ("tue", 2)]),
    ],
    ids=["static", "write.partitionOverwriteMode", "write.replaceWhere"],
)
def test_overwrites(tmp_path: Path, given: dict[str, Any], left: list[tuple[str, int]]) -> None:
    path = tmp_path / "t"
    write(DAYS, path, partition_by=["day"])
    write({"id": [9], "day": ["mon"]}, path, partition_by=["day"], mode="overwrite", **given)
    found = opened(path).to_arrow()
    assert sorted(zip(found["day"].to_pylist(), found["id"].to_pylist(), strict=True)) == left


def test_write_optimize_write(tmp_path: Path) -> None:
    """``write.optimizeWrite.*``: how Spark is asked to bring the rows."""

    def asked(path: Path = tmp_path / "none", **values: Any) -> tuple[list[str], int]:
        given = {"enabled": True, "targetSplitSize": 1000, "samplingRatio": 2, **values}
        keys = {f"write__optimizeWrite__{k}": v for k, v in given.items()}
        found = distribution(Access(str(path), settings(**keys).raw()), ["day"])
        return found["columns"], found["bytes"]

    assert asked() == (["day"], 500)
    assert asked(enabled=False) == ([], 0)
    assert asked(targetSplitSize=2000) == (["day"], 1000)
    assert asked(maxSplitSize=100) == (["day"], 50)
    assert asked(samplingRatio=4) == (["day"], 250)
    assert asked(distributionMode="none") == ([], 0)
    assert asked(distributionMode="balanced") == asked(distributionMode="hash")
    write({"id": list(range(100)), "day": ["mon"] * 100}, tmp_path / "t", partition_by=["day"])
    assert asked(tmp_path / "t") == (["day"], 500)
    assert asked(tmp_path / "t", minRowsForEstimation=100)[1] != 500, "from the table's splits"
