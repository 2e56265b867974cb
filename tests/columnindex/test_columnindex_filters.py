"""Filters to predicates, the row cache, the counters, names."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from columnindex_counters import counters
from columnindex_seed import seed_range

import indextables
from indextables.errors import IndexTablesError
from indextables.expr.bind import bind
from indextables.splits.lookup.colindex.layout import VersionedBlockId, sidecar_path, split_id
from indextables.splits.lookup.colindex.metrics import (
    METRICS,
    size_text,
    stop_logging_metrics,
)
from indextables.splits.lookup.colindex.predicates import (
    Exact,
    FilterAnalyzer,
    In,
    IsNull,
    Nothing,
    Range,
    answers_exactly,
    prefix_range,
)
from indextables.splits.lookup.colindex.rowcache import RowIdCache, configured_capacity
from indextables.splits.lookup.colindex.values import float_key

SCHEMA = pa.schema(
    [
        ("age", pa.int64()),
        ("name", pa.string()),
        ("email", pa.string()),
        ("price", pa.float64()),
        ("single", pa.float32()),
        ("flag", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("part", pa.string()),
    ]
)


def asked(text: str) -> dict[str, Any]:
    predicate = bind(text, SCHEMA, partition_columns=("part",))
    return {f.column: f.predicate for f in FilterAnalyzer.extract_indexable(predicate)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("email = 'a@x'", {"email": Exact(b"a@x")}),
        ("'v' = name", {"name": Exact(b"v")}),
        ("age IN (3, 1, 3, NULL)", {"age": In((1, 3))}),
        ("age IN (3)", {"age": Exact(3)}),
        ("age = 25", {"age": Exact(25)}),
        ("age <=> 25", {"age": Exact(25)}),
        ("age + 1 = 5", {}),
        ("age > 18", {"age": Range(low=18, low_open=True)}),
        ("18 < age", {"age": Range(low=18, low_open=True)}),
        ("price <= 100.0", {"price": Range(high=float_key(100.0))}),
        ("age >= 18 AND age <= 65", {"age": Range(18, 65)}),
        ("age BETWEEN 18 AND 65", {"age": Range(18, 65)}),
        (
            "age >= 18 AND name = 'x' AND age < 65",
            {"age": Range(18, 65, False, True), "name": Exact(b"x")},
        ),
        ("age > 5 AND age < 5", {"age": Nothing()}),
        ("age >= 5 AND age <= 5", {"age": Exact(5)}),
        ("age IN (1, 2, 9) AND age > 1 AND age <= 8", {"age": Exact(2)}),
        ("age >= 1 AND age IN (-1, 0)", {"age": Nothing()}),
        ("age IN (1, 2) AND age IN (2, 3)", {"age": Exact(2)}),
        ("name IS NULL", {"name": IsNull()}),
        ("name IS NOT NULL", {}),
        ("name LIKE 'ab%'", {"name": Range(b"ab", b"ac", False, True)}),
        ("name LIKE 'ab%z'", {"name": Range(b"ab", b"ac", False, True)}),
        ("name LIKE '%z'", {}),
        ("age = 1 OR age = 2", {"age": In((1, 2))}),
        ("age = 1 OR name = 'x'", {}),
        ("age != 1", {}),
        ("age NOT IN (1, 2)", {}),
        ("part = 'x'", {}),
        ("single = 0.5", {"single": Exact(float_key(0.5))}),
        ("flag = true", {"flag": Exact(1)}),
        ("day = DATE '1970-01-03'", {"day": Exact(2)}),
    ],
)
def test_filters(text: str, expected: dict[str, Any]) -> None:
    assert asked(text) == expected


def test_the_ends_of_the_seed() -> None:
    predicate = bind("age > 18", SCHEMA)
    (found,) = FilterAnalyzer.extract_indexable(predicate)
    assert seed_range(found) == (18, (1 << 63) - 1)
    (found,) = FilterAnalyzer.extract_indexable(bind("price <= 100.0", SCHEMA))
    assert seed_range(found) == (-math.inf, 100.0)


def test_exact_answers() -> None:
    assert answers_exactly(bind("age > 3", SCHEMA))
    assert not answers_exactly(bind("name LIKE 'a%z'", SCHEMA))
    assert not answers_exactly(bind("age + 1 = 3", SCHEMA))


def test_prefixes_at_the_end_of_bytes() -> None:
    assert prefix_range(b"a\xff") == Range(b"a\xff", b"b", False, True)
    assert prefix_range(b"\xff\xff") == Range(b"\xff\xff", None)


# -- cache ----------------------------------------------------------------------------------------


def rows(count: int) -> Any:
    return np.arange(count, dtype=np.uint32)


def test_the_least_recently_used_rows_go() -> None:
    cache = RowIdCache(2)
    cache.insert("1", rows(1))
    cache.insert("2", rows(2))
    assert cache.get("1") is not None
    cache.insert("3", rows(3))
    assert cache.get("2") is None
    assert cache.get("absent") is None
    assert cache.get("1") is not None
    assert cache.get("3") is not None
    assert len(cache) == 2
    cache.clear()
    assert len(cache) == 0


def test_the_cache_has_a_byte_cap() -> None:
    cache = RowIdCache(10, most_bytes=100)
    cache.insert("a", rows(20))
    cache.insert("b", rows(20))
    assert len(cache) == 1
    assert cache.get("b") is not None
    cache.insert("c", rows(1000))
    assert cache.get("c") is None
    assert cache.get("b") is not None


@pytest.mark.parametrize(
    ("ours", "seeds", "expected"),
    [(None, None, 100), ("7", "9", 7), (None, "9", 9), ("0", None, 100), ("x", "-3", 100)],
)
def test_cache_capacity(
    monkeypatch: pytest.MonkeyPatch, ours: str | None, seeds: str | None, expected: int
) -> None:
    given = {"INDEXTABLES_ROWID_CACHE_SIZE": ours, "BUNDLEBASE_ROWID_CACHE_SIZE": seeds}
    for name, value in given.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert configured_capacity() == expected


# -- counters -------------------------------------------------------------------------------------


def test_the_three_lines() -> None:
    lookups = [("email", "hit", 15), ("status", "fallback", 5)]
    assert counters(lookups, hits=1, misses=1).lines() == [
        "Index lookups: email=15 (hit), status=5 (fallback)",
        "Cache stats: hits=1, misses=1, size=23/100",
        "Bytes read: email=1.2MB, status=500KB",
    ]
    assert size_text(12) == "12B"


def test_counters_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    import threading

    seen = threading.Event()

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("Bytes read"):
                seen.set()

    logger = logging.getLogger("indextables.columnindex")
    watch = Watch()
    logger.addHandler(watch)
    try:
        with caplog.at_level(logging.INFO, logger.name):
            assert indextables.init_logging_metrics()
            assert indextables.init_logging_metrics_with_interval(0.01)
            assert seen.wait(10)
    finally:
        stop_logging_metrics()
        logger.removeHandler(watch)
    assert any(m.startswith("Index lookups: ") for m in caplog.messages)
    with pytest.raises(ValueError, match="positive"):
        indextables.init_logging_metrics_with_interval(0)
    assert METRICS.lines()


# -- names ----------------------------------------------------------------------------------------


def test_versioned_blocks() -> None:
    assert str(VersionedBlockId(0x2A, "v1.0")) == "2a@v1.0"
    assert VersionedBlockId.parse("ff@v2.5") == VersionedBlockId(255, "v2.5")
    for bad in ("ff", "zzzz@v1"):
        with pytest.raises(IndexTablesError):
            VersionedBlockId.parse(bad)


def test_sidecar_names() -> None:
    split = "d=1/part-369f30b7-4053-4619-ab26-33ce4ad06260.split"
    assert split_id(split) == "369f30b7-4053-4619-ab26-33ce4ad06260"
    path = sidecar_path("3f", split)
    assert path.startswith("_colindex/")
    assert path.endswith(f"/idx_3f_{split_id(split)}.idx")
    assert split_id("a/x.split") != split_id("b/x.split")
