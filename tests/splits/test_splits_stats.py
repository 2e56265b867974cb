"""Statistics and keys written with a split: bounds, counts, truncation, filters."""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from splitkit import finish_split, open_split

from indextables.config import Config
from indextables.expr.keys import HASH_KIND, KeyCollector, key_for_term
from indextables.mapping import IndexingOptions
from indextables.native import BinaryFuse8, BinaryFuse16, hash_term
from indextables.splits.format.members import column_index
from indextables.splits.lookup.colindex.encode import build_member


def stats_of(column: Any, config: Config | None = None) -> tuple[Any, Any, dict[str, Any]]:
    finished = finish_split(pa.table({"c": column}), config=config)
    finished.discard()
    low, high = finished.min_values.get("c"), finished.max_values.get("c")
    return low, high, json.loads(finished.stats_json)


@pytest.mark.parametrize(
    ("values", "dtype", "low", "high"),
    [
        ([3, None, -7], pa.int8(), "-7", "3"),
        ([2**63 - 1, -(2**63)], pa.int64(), str(-(2**63)), str(2**63 - 1)),
        ([1.5, math.nan, -2.0], pa.float64(), "-2.0", "1.5"),
        ([0.0, 5.0], pa.float64(), "-0.0", "5.0"),
        ([-0.0, -5.0], pa.float64(), "-5.0", "0.0"),
        ([math.inf, -math.inf], pa.float64(), "-Infinity", "Infinity"),
        ([0.1], pa.float32(), "0.10000000149011612", "0.10000000149011612"),
        ([True, None], pa.bool_(), "true", "true"),
        ([date(1969, 12, 31), date(1, 1, 1)], pa.date32(), "0001-01-01", "1969-12-31"),
        ([1, -1], pa.timestamp("us", "UTC"), "-1", "1"),
        ([Decimal("1.50"), Decimal("-0.01")], pa.decimal128(10, 2), "-0.01", "1.50"),
        ([Decimal("12345678901234567890123456789012345.678")], pa.decimal128(38, 3),
         "12345678901234567890123456789012345.678", "12345678901234567890123456789012345.678"),
        (["b", "é", "a", "\U00010000"], pa.string(), "a", "\U00010000"),
        ([None, None], pa.int32(), None, None),
        ([math.nan], pa.float64(), None, None),
        ([b"x"], pa.binary(), None, None),
        ([[1]], pa.list_(pa.int8()), None, None),
    ],
)  # fmt: skip
def test_bounds(values: list[Any], dtype: pa.DataType, low: str, high: str) -> None:
    found_low, found_high, stats = stats_of(pa.array(values, dtype))
    assert (found_low, found_high) == (low, high)
    assert stats["numRecords"] == len(values)
    assert stats["nullCount"] == {"c": sum(v is None for v in values)}
    assert stats["tightBounds"]


def test_dates_no_calendar_can_spell_have_no_bounds() -> None:
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    low, high, _ = stats_of(far)
    assert (low, high) == (None, None)


def test_nans_are_counted() -> None:
    *_, stats = stats_of(pa.array([math.nan, 1.0, None, math.nan]))
    assert stats["nanCount"] == {"c": 2}


def test_strings_are_cut_by_characters_and_said_to_be() -> None:
    low, high, stats = stats_of(["ä" * 40, "ü" * 32])
    assert (low, high) == ("ä" * 32, "ü" * 32)
    assert stats["truncated"] == []
    low, high, stats = stats_of(["a", "ü" * 33])
    assert (low, high) == ("a", "ü" * 32)
    assert stats["truncated"] == ["c"]
    whole = Config({"stats.truncation.enabled": False})
    assert stats_of(["x" * 50], whole)[1] == "x" * 50


def test_some_columns_have_bounds() -> None:
    table = pa.table({f"c{i}": [i] for i in range(40)} | {"blob": [b"x"], "s": ["y"]})

    def bounded(**settings: Any) -> list[str]:
        finished = finish_split(table, config=Config(settings))
        finished.discard()
        assert len(json.loads(finished.stats_json)["nullCount"]) == 42
        return list(finished.min_values)

    assert bounded() == [f"c{i}" for i in range(32)]
    assert bounded(dataSkippingNumIndexedCols=2) == ["c0", "c1"]
    assert bounded(dataSkippingNumIndexedCols=0) == []
    assert len(bounded(dataSkippingNumIndexedCols=-1)) == 41
    assert bounded(dataSkippingStatsColumns="S,c7") == ["c7", "s"]


def test_filters_hold_exactly_the_keys(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": [f"id-{i}" for i in range(3000)],
            "n": pa.array([i % 50 for i in range(3000)], pa.int32()),
            "txt": [f"word{i % 70} Other" for i in range(3000)],
            "tags": [[f"t{i % 9}", "x y"] for i in range(3000)],
            "raw": pa.array([i.to_bytes(2, "big") for i in range(3000)], pa.binary()),
            "hidden": ["secret"] * 3000,
        }
    )
    options = IndexingOptions(text=("txt",), unindexed=("hidden",))
    config = Config({"xref.build.filterType": "fuse16"})
    reader = open_split(table, tmp_path, options, config)
    keys: set[int] = set()
    for field in reader.mapping.fields:
        collector = KeyCollector(field, HASH_KIND)
        collector.add(table.column(field.name).combine_chunks())
        keys |= set(collector.hashes().tolist())
    xref = reader.info.xref
    assert xref["hash"] == HASH_KIND
    assert xref["num_keys"] == len(keys)
    assert {f["name"] for f in xref["fields"]} == {"id", "n", "txt", "tags", "raw"}
    raw8, raw16 = reader.fuse_filter(), reader.fuse_filter("fuse16")
    assert raw8 is not None
    assert raw16 is not None
    for kind, raw in ((BinaryFuse8, raw8), (BinaryFuse16, raw16)):
        assert kind.from_postcard(raw).contains_many(np.array(sorted(keys), np.uint64)).all()
    wide = BinaryFuse16.from_postcard(raw16)
    mapping = reader.mapping.get("n")
    assert mapping is not None
    absent = [key_for_term(mapping, pa.int32(), v) for v in range(1000, 1200)]
    assert sum(wide.contains(hash_term("n", str(k), HASH_KIND)) for k in absent) < 5
    assert not wide.contains(hash_term("hidden", "secret", HASH_KIND))


def test_a_split_without_keys_has_an_empty_filter(tmp_path: Path) -> None:
    reader = open_split(pa.table({"a": pa.array([None, None], pa.int64())}), tmp_path)
    assert reader.info.xref["num_keys"] == 0
    assert reader.fuse_filter() is not None
    assert reader.fuse_filter("fuse16") is None


def test_splits_carry_the_indexes_of_their_columns(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(20_000)), "b": ["x"] * 20_000})
    reader = open_split(table, tmp_path, column_indexes={"a": "idx-1"})
    assert reader.source.member(column_index("a")) == build_member(table.column("a"), reader.config)
    assert not reader.source.has(column_index("b"))
