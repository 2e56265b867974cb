"""Index files: golden bytes, round trips, look-ups against brute force, hostile bytes."""

from __future__ import annotations

import json
import math
import random
import struct
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.errors import CorruptFileError, IndexTablesError
from indextables.splits.lookup.colindex import bbidx1, compact
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.postings import (
    Postings,
    TextKeys,
    build_postings,
    merge_postings,
)
from indextables.splits.lookup.colindex.predicates import Exact, In, IsNull, Nothing, Range, any_of
from indextables.splits.lookup.colindex.values import IndexedValue, Kind, float_key, key_of, kind_of

TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "utf8": pa.string(),
    "bool": pa.bool_(),
    "ts": pa.timestamp("us"),
}


@pytest.fixture(scope="module")
def golden(data_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data_dir / "columnindex" / "manifest.json").read_text())
    return found


def read(value: Any, dtype: str) -> Any:
    return float(value) if dtype == "float" and value is not None else value


def test_golden_bytes(golden: dict[str, Any]) -> None:
    checked = 0
    for name, case in golden.items():
        if "values" not in case:
            continue
        values = [read(v, case["dtype"]) for v in case["values"]]
        postings = build_postings(pa.array(values, TYPES[case["dtype"]]))
        data = bbidx1.encode(postings)
        assert data.hex() == case["hex"], name
        assert bbidx1.encode(bbidx1.decode(data, len(values))) == data
        checked += 1
    assert checked >= 9


def test_the_emails_of_the_seed(data_dir: Path) -> None:
    data = (data_dir / "columnindex" / "seed_emails.bbidx1").read_bytes()
    assert len(data) == 340
    found = bbidx1.decode(data, 1000)
    assert found.distinct == 3
    assert bbidx1.encode(found) == data


def test_text_that_is_not_packed_stays_readable(data_dir: Path) -> None:
    """A file written before digits were packed."""
    data = (data_dir / "columnindex" / "uuids.bbidx2").read_bytes()
    index = ColumnIndex.from_bytes(data, num_rows=60)
    step = 0x9E3779B97F4A7C15F39CC0605CEDC835
    ids = [str(uuid.UUID(int=(i * step + i) % (1 << 128))) for i in range(60)]
    column = [ids[i * 7 % 60] for i in range(60)]
    packed = compact.encode(build_postings(pa.array(column)))
    assert len(packed) < len(data)
    for form in (index, ColumnIndex.from_bytes(packed, num_rows=60)):
        assert [form.exact(v.encode()).tolist() for v in ids] == [
            [row for row, v in enumerate(column) if v == one] for one in ids
        ]
        assert form.flat().rows.tolist() == index.flat().rows.tolist()
        assert [form.key_at(i) for i in range(form.distinct)] == sorted(
            v.encode() for v in set(column)
        )


def test_nan_payloads_and_zeros_are_one_value() -> None:
    odd = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
    index = ColumnIndex.build(pa.array([0.0, -0.0, math.nan, odd, 1.0, math.inf]))
    assert index.distinct == 4
    assert index.exact(float_key(-0.0)).tolist() == [0, 1]
    assert index.exact(float_key(math.nan)).tolist() == [2, 3]
    above = Range(low=float_key(0.5), low_open=True)
    assert index.lookup(above).tolist() == [2, 3, 4, 5]
    assert math.isnan(index.max())


def test_order_of_values() -> None:
    null, zero = IndexedValue(Kind.INT, None), IndexedValue.of(Kind.INT, 0)
    assert null < zero
    assert zero < IndexedValue.of(Kind.INT, 1)
    assert not zero < null
    assert not null < null
    assert IndexedValue.of(Kind.TEXT, "a") < IndexedValue.of(Kind.TEXT, "b")
    with pytest.raises(IndexTablesError):
        assert zero < IndexedValue.of(Kind.TEXT, "a")
    for kind, value in [(Kind.FLOAT, -3.14), (Kind.TEXT, "é"), (Kind.BOOL, True), (Kind.INT, -5)]:
        assert IndexedValue.of(kind, value).value == value


def test_what_cannot_be_indexed() -> None:
    assert kind_of(pa.list_(pa.int64())) is None
    assert kind_of(pa.decimal128(5)) is None
    with pytest.raises(IndexTablesError, match="cannot be indexed"):
        build_postings(pa.array([[1]]), "c")
    with pytest.raises(IndexTablesError, match="64-bit"):
        build_postings(pa.array([1 << 63], pa.uint64()))


# -- against brute force --------------------------------------------------------------------------

VALUES = {
    "int": st.integers(-5, 5) | st.integers(-(1 << 63), (1 << 63) - 1),
    "float": st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf, -math.inf]) | st.floats(),
    "utf8": st.text(max_size=3) | st.sampled_from(["a", "ab", "abc", ""]),
    "bool": st.booleans(),
    "ts": st.integers(-100, 100),
}


def forms(column: Any) -> list[ColumnIndex]:
    """The index of a column in memory and read back from both formats."""
    postings = build_postings(column)
    rows = len(column)
    return [
        ColumnIndex(postings),
        ColumnIndex.from_bytes(bbidx1.encode(postings, 7), num_rows=rows, block_id=7),
        ColumnIndex.from_bytes(compact.encode(postings), num_rows=rows),
        ColumnIndex.from_bytes(compact.encode(postings, block_bytes=24), num_rows=rows),
    ]


def brute(keys: list[Any], predicate: Any) -> list[int]:
    def matches(key: Any) -> bool:
        match predicate:
            case IsNull():
                return key is None
            case Exact(wanted):
                return bool(key == wanted)
            case In(wanted):
                return key in wanted
            case Range():
                if key is None:
                    return False
                above = predicate.low is None or key > predicate.low
                below = predicate.high is None or key < predicate.high
                above |= key == predicate.low and not predicate.low_open
                below |= key == predicate.high and not predicate.high_open
                return bool(above and below)
        return False

    return [i for i, key in enumerate(keys) if matches(key)]


@settings(max_examples=60)
@given(data=st.data(), dtype=st.sampled_from(list(VALUES)))
def test_lookups_equal_brute_force(data: st.DataObject, dtype: str) -> None:
    values = data.draw(st.lists(st.none() | VALUES[dtype], max_size=40))
    column = pa.array(values, TYPES[dtype])
    kind = kind_of(column.type)
    assert kind is not None
    keys = [None if v is None else key_of(kind, v) for v in values]
    asked = [key_of(kind, v) for v in data.draw(st.lists(VALUES[dtype], min_size=2, max_size=6))]
    low, high = sorted(asked[:2])
    opens = data.draw(st.tuples(st.booleans(), st.booleans()))
    questions: list[Any] = [Exact(asked[0]), any_of(asked), IsNull(), Nothing(), Range()]
    questions += [Range(low, high, *opens), Range(low=low), Range(high=high, high_open=True)]
    for index in forms(column):
        for question in questions:
            expected = brute(keys, question)
            assert index.lookup(question).tolist() == expected, question
            assert index.count(question) == len(expected), question
        present = [k for k in keys if k is not None]
        assert index.distinct == len(set(present))
        assert index.null_count == len(keys) - len(present)


@pytest.mark.parametrize("distinct", [5, 900, 30_000])
def test_long_lists_in_batches(distinct: int, rng: random.Random) -> None:
    codes = [rng.randrange(distinct) for _ in range(30_000)]
    for column in (pa.array([f"v{c}" for c in codes]), pa.array(codes)):
        data = compact.encode(build_postings(column))
        index = ColumnIndex.from_bytes(data, num_rows=len(column))
        kind = index.kind
        wanted = [rng.randrange(2 * distinct) for _ in range(2500)]
        texts = [f"v{w}" if kind is Kind.TEXT else w for w in wanted]
        keys = [key_of(kind, t) for t in texts]
        expected = np.flatnonzero(np.isin(codes, wanted)).tolist()
        assert index.lookup(any_of(keys), 1000).tolist() == expected
        assert index.lookup(In(tuple(keys)), 1000).tolist() == expected
        assert index.count(any_of(keys)) == len(expected)


def test_more_rows_of_a_value_than_sixteen_bits_count() -> None:
    for value in ("same", 7, True):
        column = pa.array([value] * 65_537)
        postings = build_postings(column)
        for data in (bbidx1.encode(postings), compact.encode(postings)):
            index = ColumnIndex.from_bytes(data, num_rows=65_537)
            key = key_of(index.kind, value)
            assert index.count(Exact(key)) == 65_537
            assert np.array_equal(index.exact(key), np.arange(65_537))


@pytest.mark.slow
def test_a_million_distinct_values(rng: random.Random) -> None:
    values = np.random.default_rng(rng.getrandbits(32)).permutation(1_000_000)
    data = compact.encode(build_postings(pa.array(values)))
    index = ColumnIndex.from_bytes(data, num_rows=len(values))
    assert index.distinct == 1_000_000
    for _ in range(200):
        row = rng.randrange(len(values))
        assert index.exact(int(values[row])).tolist() == [row]


@pytest.mark.slow
def test_a_million_uuids(rng: random.Random) -> None:
    digits = rng.randbytes(16_000_000).hex()
    values = [str(uuid.UUID(digits[i : i + 32])) for i in range(0, len(digits), 32)]
    data = compact.encode(build_postings(pa.array(values)))
    assert len(data) < 18 * len(values)
    index = ColumnIndex.from_bytes(data, num_rows=len(values))
    rows = sorted(rng.sample(range(len(values)), 2000))
    for row in rows[:200]:
        assert index.exact(values[row].encode()).tolist() == [row]
        assert index.exact(values[row].upper().encode()).tolist() == []
    asked = any_of([values[row].encode() for row in rows])
    assert index.lookup(asked).tolist() == rows
    assert index.count(asked) == len(rows)
    low, high = b"8000", b"8010"
    between = [i for i, v in enumerate(values) if low <= v.encode() < high]
    assert index.lookup(Range(low, high, high_open=True)).tolist() == between


@settings(max_examples=40)
@given(data=st.data(), dtype=st.sampled_from(list(VALUES)))
def test_merging_equals_building(data: st.DataObject, dtype: str) -> None:
    lists = st.lists(st.none() | VALUES[dtype], max_size=15)
    parts = data.draw(st.lists(lists, min_size=1, max_size=4))
    whole = build_postings(pa.array([v for part in parts for v in part], TYPES[dtype]))
    merged = merge_postings([build_postings(pa.array(p, TYPES[dtype])) for p in parts])
    assert compact.encode(merged) == compact.encode(whole)


def test_summaries_from_the_index_alone() -> None:
    values = [3, None, 1, 3, 2, 1, 3]
    for index in forms(pa.array(values)):
        assert (index.min(), index.max(), index.distinct, index.cardinality) == (1, 3, 3, 4)
        flat = index.flat()
        assert (index.null_count, np.diff(flat.offsets).tolist()) == (1, [2, 1, 3])
        assert [flat.key_at(i) for i in range(3)] == [1, 2, 3]
        assert index.top(3).tolist() == [2, 5, 4]
        assert index.top(2, descending=True).tolist() == [0, 3]
    assert ColumnIndex.build(pa.array([None, None], pa.int64())).min() is None


def test_estimates_of_the_seed() -> None:
    index = ColumnIndex.build(pa.array([i % 20 for i in range(100)]))
    assert index.estimate_selectivity(Exact(999)) == 0.05
    assert index.estimate_selectivity(In((1, 2))) == 0.1
    assert index.estimate_selectivity(Range(5, 15)) == 0.55
    assert index.estimate_selectivity(In(tuple(range(50)))) == 1.0
    assert index.estimate_selectivity(Range(50, 60)) == 0.0
    assert index.share(Exact(999)) == 0.0
    assert ColumnIndex.build(pa.array([], pa.int64())).estimate_selectivity(Exact(1)) == 0.0


# -- hostile files --------------------------------------------------------------------------------


def seed_file() -> bytearray:
    return bytearray(bbidx1.encode(build_postings(pa.array([7, -1, 7, None])), 5))


def changed(at: int, value: bytes) -> bytes:
    data = seed_file()
    data[at : at + len(value)] = value
    return bytes(data)


RULES = {
    "shorter than": bytes(seed_file()[:35]),
    "not a BBIDX001": changed(0, b"COLIDX\0\0"),
    "unknown version": changed(8, b"\x02"),
    "unknown data type": changed(9, b"\x00"),
    "entry count differ": changed(32, struct.pack(">I", 2)),
    "is unknown": changed(36, b"\x09"),
    "differs from the column's": changed(36, b"\x03"),
    "more than one value": changed(37, b"\x01"),
    "not contiguous": changed(38, struct.pack(">Q", 0x6F)),
    "as its count says": changed(0x6F, struct.pack(">I", 9)),
    "do not add up": changed(22, struct.pack(">Q", 5)),
    "ascending inside the split": changed(0x7B, struct.pack(">Q", 4)),
    "another split": changed(0x73, struct.pack(">Q", 6)),
    "strictly ascending": changed(51, struct.pack(">q", 9) + b"\x01" + struct.pack(">q", 9)),
}


@pytest.mark.parametrize("rule", RULES)
def test_seed_files_are_refused_by_rule(rule: str) -> None:
    with pytest.raises(CorruptFileError, match=rule):
        bbidx1.decode(RULES[rule], 4, 5)


def test_truncated_files_are_refused() -> None:
    whole = bytes(seed_file())
    bbidx1.decode(whole, 4, 5)
    for size in range(len(whole)):
        with pytest.raises(CorruptFileError):
            bbidx1.decode(whole[:size], 4, 5)
    with pytest.raises(CorruptFileError):
        bbidx1.decode(whole + b"\0", 4, 5)


@pytest.mark.parametrize("column", [["b", "a", "b", None] * 30, [5, 6, None, 5] * 30])
def test_damaged_compact_files_are_refused(column: list[Any]) -> None:
    data = compact.encode(build_postings(pa.array(column)), block_bytes=64, extra={"split": 3})
    whole = ColumnIndex.from_bytes(data, num_rows=120, block_id=3).flat()
    for at in range(0, len(data), 7):
        bad = bytearray(data)
        bad[at] ^= 0x41
        with pytest.raises(CorruptFileError):
            ColumnIndex.from_bytes(bytes(bad), num_rows=120, block_id=3).flat()
    for size in range(0, len(data), 23):
        with pytest.raises(CorruptFileError):
            ColumnIndex.from_bytes(data[:size], num_rows=120, block_id=3).flat()
    for rows, split in ((121, 3), (120, 4)):
        with pytest.raises(CorruptFileError, match="another"):
            ColumnIndex.from_bytes(data, num_rows=rows, block_id=split)
    assert whole.num_rows == 120


def test_text_keys_are_a_sequence() -> None:
    keys = TextKeys.of(pa.array([b"x", b"a", b"bc"], pa.large_binary()).slice(1))
    assert list(keys) == [b"a", b"bc"]
    assert keys.to_arrow().to_pylist() == [b"a", b"bc"]
    assert isinstance(build_postings(pa.array(["a"])), Postings)
