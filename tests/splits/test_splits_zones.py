"""Zones and codes of numbers: bounds against brute force, ranges and equality against rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from splitkit import open_split

from indextables.errors import CorruptFileError
from indextables.expr.bind import bind
from indextables.expr.evaluate import evaluate
from indextables.mapping import IndexingOptions
from indextables.splits.lookup.coded import look_up
from indextables.splits.lookup.zones import (
    ZONE_ROWS,
    ZoneBuilder,
    double_key,
    number_keys,
    parse_zones,
    rows_of,
)
from indextables.splits.read.access import count_split, matching_rows
from indextables.splits.read.reader import SplitReader

ROWS = 3 * ZONE_ROWS + 100


@given(st.lists(st.floats(), min_size=2, max_size=2))
def test_keys_of_doubles_have_their_order(values: list[float]) -> None:
    a, b = values
    ka, kb = double_key(a), double_key(b)
    if math.isnan(a) or math.isnan(b):
        assert (ka >= kb) if math.isnan(a) else (ka < kb)
    else:
        assert (ka < kb, ka == kb) == (a < b, a == b)


@pytest.mark.parametrize("sizes", [[ROWS], [5000, 5000, ROWS - 10_000], [1] * 3 + [ROWS - 3]])
def test_bounds_do_not_depend_on_batches(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = pa.array(rng.integers(-50, 50, ROWS), mask=rng.random(ROWS) < 0.3)
    reals = pa.array(rng.choice([0.5, -0.0, np.nan, -np.inf, 7e300], ROWS))
    batch = pa.record_batch({"n": numbers, "x": reals})
    builder = ZoneBuilder({"n": 0, "x": 4})
    start = 0
    for size in sizes:
        builder.add(batch.slice(start, size))
        start += size
    found = parse_zones(builder.finish(), ROWS, "p")
    for number, column in ((0, "n"), (4, "x")):
        keys = number_keys(batch.column(column)).to_pylist()
        for low, high in [(-60, 60), (0, 0), (double_key(0.0), double_key(7e300)), (50, 60)]:
            want = [
                z
                for z in range(4)
                if (held := [k for k in keys[z * ZONE_ROWS : (z + 1) * ZONE_ROWS] if k is not None])
                and min(held) <= high
                and max(held) >= low
            ]
            assert found[number].between(low, high).tolist() == want
    assert found[0].holding(np.array([0, 1000])).tolist() == [0, 1, 2, 3]
    assert found[0].holding(np.array([1000])).tolist() == []
    assert rows_of(np.array([1, 3]), ROWS).tolist() == [
        *range(ZONE_ROWS, 2 * ZONE_ROWS),
        *range(3 * ZONE_ROWS, ROWS),
    ]


def test_zones_of_another_split_are_refused() -> None:
    builder = ZoneBuilder({"n": 0})
    builder.add(pa.record_batch({"n": pa.array([1, 2])}))
    raw = builder.finish()
    for bad in (raw[:-1], b"x" + raw[1:], raw + b"\0", b""):
        with pytest.raises(CorruptFileError, match="zones"):
            parse_zones(bad, 2, "p")
    with pytest.raises(CorruptFileError, match="zones"):
        parse_zones(raw, ZONE_ROWS + 1, "p")


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 2**32))
def test_look_up_of_codes(truth: list[bool], seed: int) -> None:
    codes = np.random.default_rng(seed).integers(0, len(truth), 50).astype(np.uint8)
    assert look_up(np.array(truth), codes).tolist() == [truth[c] for c in codes]


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, SplitReader]:
    rng = np.random.default_rng(11)
    mask = rng.random(ROWS) < 0.02

    def some(values: Any, dtype: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, mask=mask).cast(dtype) if dtype else pa.array(values, mask=mask)

    words = rng.choice(["red", "green", "blue"], (ROWS, 3))
    table = pa.table(
        {
            "sorted": np.arange(ROWS) * 3,
            "id": some(rng.permutation(ROWS) * 7 - 1000),
            "few": some(rng.integers(-5, 6, ROWS), pa.int16()),
            "flag": some(rng.random(ROWS) < 0.5),
            "day": some(np.arange(ROWS) // 1000, pa.int32()).cast(pa.date32()),
            "ts": pa.array(np.arange(ROWS) * 1_000_000 + 10**15).cast(pa.timestamp("us", "UTC")),
            "x": some(np.round(rng.normal(size=ROWS), 3)),
            "msg": pa.array([" ".join(row) for row in words]),
        }
    )
    return table, open_split(
        table, tmp_path_factory.mktemp("zones"), IndexingOptions(text=("msg",))
    )


CONDITIONS = [
    "sorted = 300", "sorted = 301", "sorted BETWEEN 9000 AND 9030", "sorted > 36000", "sorted < 0",
    "id = -1000", "id = 6", "id IN (-1000, -993, 5, 70000)", "id > 80000", "NOT (id = 6)",
    "few = 3", "few >= 4", "few < -5", "few <> 0", "few IN (1, 2, 99)", "few IS NULL", "few <= 5",
    "flag", "NOT flag", "flag IS NOT NULL", "day = DATE '1970-01-05'", "day > DATE '1970-01-10'",
    "ts >= TIMESTAMP '2001-09-09 04:00:00' AND ts < TIMESTAMP '2001-09-09 04:01:00'",
    "x > 3.5", "x = 0.125", "x IN (0.5, 1.5)", "x >= 0 AND sorted < 600",
    "few = 3 AND sorted BETWEEN 100 AND 20000", "few = 3 OR id = 6", "id = 6 OR sorted < 30",
    "msg TEXTSEARCH 'red' AND sorted < 600", "msg TEXTSEARCH 'red blue' AND few = 2 AND x > 2",
    "msg INDEXQUERY 'red AND NOT blue' AND ts < TIMESTAMP '2001-09-09 01:50:00'",
    "_indexall INDEXQUERY 'msg:red AND few:3 AND sorted:[30 TO 900]'",
    "_indexall INDEXQUERY 'msg:red AND NOT id:[0 TO 70000]'",
    "_indexall INDEXQUERY 'msg:green AND id:6'", "_indexall INDEXQUERY 'msg:red AND x:[2 TO *]'",
]  # fmt: skip


@pytest.mark.parametrize("text", CONDITIONS)
def test_numbers_are_found_exactly(split: tuple[pa.Table, SplitReader], text: str) -> None:
    table, reader = split
    predicate = bind(text, table.schema, mapping=reader.mapping)
    batch = table.combine_chunks().to_batches()[0]
    truth = evaluate(predicate, batch, mapping=reader.mapping).to_pylist()
    want = [row for row, holds in enumerate(truth) if holds]
    assert matching_rows(reader, predicate).tolist() == want
    assert count_split(reader, predicate) == len(want)


def test_columns_got_the_structures_they_deserve(split: tuple[pa.Table, SplitReader]) -> None:
    _, reader = split
    fields = reader.info.fields
    assert {n for n, f in fields.items() if f.keyed} == {"few", "flag", "day"}
    assert {n for n, f in fields.items() if f.hashed} == {"id"}
    assert {n for n, f in fields.items() if f.codes} == {"few", "flag", "day"}
    assert len(reader.zones) == 7


def test_a_narrow_range_reads_few_rows(
    split: tuple[pa.Table, SplitReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, reader = split
    seen: list[int] = []
    scan = reader.rows.scan

    def watched(columns: Any, count: int, span: tuple[int, int], without: Any) -> Any:
        seen.append(span[1] - span[0])
        return scan(columns, count, span, without)

    monkeypatch.setattr(reader.rows, "scan", watched)
    matching_rows(reader, bind("sorted BETWEEN 9000 AND 9030", table.schema))
    assert sum(seen) == ZONE_ROWS
