"""One canonical text for every value: built column by column, probed value by value."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import TypeMismatchError
from indextables.expr import jsonpaths
from indextables.expr.analyzers import analyze
from indextables.expr.ipaddr import (
    address_range,
    format_address,
    in_range,
    parse_address,
)
from indextables.expr.keys import (
    HASH_KIND,
    KeyCollector,
    canonical_text,
    canonical_texts,
    key_field,
    key_for_term,
    keys_for_equality,
)
from indextables.mapping import DocMapping, FieldMapping, IndexingOptions
from indextables.native._hash import hash_term

PLAIN: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i8": (pa.int8(), st.integers(-128, 127)),
    "i64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f32": (pa.float32(), st.floats(width=32)),
    "f64": (pa.float64(), st.floats()),
    "bool": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.integers(-(2**31), 2**31 - 1)),
    "ts": (pa.timestamp("us", "UTC"), st.integers(-(2**63), 2**63 - 1)),
    "ntz": (pa.timestamp("us"), st.integers(-(2**63), 2**63 - 1)),
    "dec": (pa.decimal128(38, 10), st.integers(-(10**38) + 1, 10**38 - 1)),
    "dec0": (pa.decimal128(5, 0), st.integers(-99999, 99999)),
    "bin": (pa.binary(), st.binary(max_size=8)),
    "str": (pa.string(), st.text(max_size=8)),
}


def physical_array(dtype: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_decimal(dtype):
        exact = [None if v is None else Decimal(f"{v}e{-dtype.scale}") for v in values]
        return pa.array(exact, dtype)
    if pa.types.is_date(dtype):
        return pa.array(values, pa.int32()).cast(dtype)
    if pa.types.is_timestamp(dtype):
        return pa.array(values, pa.int64()).cast(dtype)
    return pa.array(values, dtype)


def column_key_hashes(array: Any, mapping: FieldMapping) -> Any:
    """The distinct key hashes of a column, ascending."""
    collector = KeyCollector(mapping, HASH_KIND)
    collector.add(array)
    return collector.hashes()


def mapping_of(dtype: pa.DataType, **options: Any) -> FieldMapping:
    schema = pa.schema([("c", dtype)])
    return DocMapping.for_schema(schema, options=IndexingOptions(**options)).fields[0]


@pytest.mark.parametrize("name", PLAIN)
@given(data=st.data())
def test_column_and_value_are_spelt_alike(name: str, data: st.DataObject) -> None:
    dtype, values = PLAIN[name]
    column = data.draw(st.lists(st.none() | values, max_size=12))
    if dtype == pa.float32():
        column = [None if v is None else float(np.float32(v)) for v in column]
    array = physical_array(dtype, [None, *column]).slice(1)
    mapping = mapping_of(dtype)
    one_by_one = [canonical_text(dtype, v) for v in column if v is not None]
    assert [t for t in canonical_texts(array, mapping).to_pylist() if t is not None] == one_by_one
    expected = np.unique(np.array([hash_term("c", t, HASH_KIND) for t in one_by_one], np.uint64))
    assert np.array_equal(column_key_hashes(array, mapping), expected)
    keys = {key_for_term(mapping, dtype, v) for v in column if v is not None}
    assert keys == set(one_by_one)


def test_pinned_vectors(data_dir: Path) -> None:
    vectors = json.loads((data_dir / "keys" / "vectors.json").read_text())
    types = {k: v[0] for k, v in PLAIN.items()}
    for item in vectors:
        value = item["value"]
        dtype = types[item["type"]]
        if item["type"] == "bin":
            value = bytes.fromhex(value)
        if item["type"] in ("f32", "f64"):
            value = float(value)
        assert canonical_text(dtype, value) == item["text"]
        assert hash_term("c", item["text"], HASH_KIND) == int(item["hash"], 16)


def test_numbers_follow_the_known_display(data_dir: Path) -> None:
    assert canonical_text(pa.float64(), -0.0) == "0"
    assert canonical_text(pa.float64(), math.nan) == "NaN"
    assert canonical_text(pa.float64(), 1e16) == "10000000000000000"
    assert canonical_text(pa.float64(), math.inf) == "inf"


def test_any_year_is_exact() -> None:
    assert canonical_text(pa.date32(), -719162) == "-62135596800000000000"
    assert canonical_text(pa.timestamp("us"), 253402300799999999) == "253402300799999999000"
    assert canonical_text(pa.timestamp("us"), 0) == "0"


def test_text_is_keyed_by_its_tokens() -> None:
    mapping = mapping_of(pa.string(), text=("c",))
    found = column_key_hashes(pa.array(["Hello World", None, "x" * 300]), mapping)
    expected = sorted(hash_term("c", t, HASH_KIND) for t in ("hello", "world"))
    assert found.tolist() == expected
    assert keys_for_equality(mapping, pa.string(), "World, hello!") == ["world", "hello"]
    assert keys_for_equality(mapping, pa.string(), "--") is None


def test_exact_text_is_keyed_whole_at_any_length() -> None:
    mapping = mapping_of(pa.string())
    long = "x" * 70_000
    assert column_key_hashes(pa.array([long]), mapping)[0] == hash_term("c", long, HASH_KIND)
    assert keys_for_equality(mapping, pa.string(), "") == [""]


def test_what_is_not_indexed_cannot_be_decided() -> None:
    mapping = mapping_of(pa.int64(), unindexed=("c",))
    assert len(column_key_hashes(pa.array([1, 2]), mapping)) == 0
    assert key_for_term(mapping, pa.int64(), 1) is None
    assert keys_for_equality(mapping, pa.int64(), 1) is None
    nothing = mapping_of(pa.null())
    assert len(column_key_hashes(pa.nulls(3), nothing)) == 0
    assert key_for_term(nothing, pa.null(), 1) is None


def test_collector_joins_arrays() -> None:
    mapping = mapping_of(pa.int64())
    collector = KeyCollector(mapping)
    for part in ([1, 2], [2, 3], [None]):
        collector.add(pa.array(part, pa.int64()))
    whole = column_key_hashes(pa.array([1, 2, 3]), mapping)
    assert np.array_equal(collector.hashes(), whole)


# -- ip ------------------------------------------------------------------------------------------


def test_ip_keys_are_mapped_addresses() -> None:
    mapping = mapping_of(pa.string(), ip=("c",))
    array = pa.array(["10.0.0.1", "::1", "not an ip", None, "010.0.0.1", "::ffff:10.0.0.1"])
    texts = ["0" * 20 + "ffff0a000001", "0" * 31 + "1"]
    assert set(column_key_hashes(array, mapping).tolist()) == {
        hash_term("c", t, HASH_KIND) for t in texts
    }
    assert key_for_term(mapping, pa.string(), "10.0.0.1") == texts[0]
    assert key_for_term(mapping, pa.string(), "10.0.0.0/8") is None


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("10.1.2.3", "10.1.2.3", "10.1.2.3"),
        ("10.1.2.3/8", "10.0.0.0", "10.255.255.255"),
        ("10.0.*.*", "10.0.0.0", "10.0.255.255"),
        ("0.0.0.0/0", "0.0.0.0", "255.255.255.255"),
        ("2001:db8::/32", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ],
)
def test_ranges_of_addresses(text: str, low: str, high: str) -> None:
    assert address_range(text) == (parse_address(low), parse_address(high))


@pytest.mark.parametrize(
    "text",
    ["10.*.1.*", "*.*.*.*", "10.0.0.0/33", "::/129", "10.0.0", "", "1.2.3.4/", "x/8", "::1%1"],
)
def test_what_is_no_range_is_an_error(text: str) -> None:
    with pytest.raises(TypeMismatchError, match="CIDR"):
        address_range(text)


@given(
    st.lists(st.none() | st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(str)),
    st.ip_addresses().map(str),
    st.ip_addresses().map(str),
)
def test_in_range_equals_comparison_of_numbers(texts: list[str | None], one: str, two: str) -> None:
    low, high = sorted((address_range(one)[0], address_range(two)[0]))
    expected = [t is not None and low <= (parse_address(t) or 0) <= high for t in texts]
    assert in_range(pa.array(texts, pa.string()), low, high).tolist() == expected


@given(st.ip_addresses())
def test_addresses_round_trip(address: Any) -> None:
    number = parse_address(str(address))
    assert number is not None
    assert parse_address(format_address(number)) == number


# -- JSON ----------------------------------------------------------------------------------------


def brute_scalars(path: str, value: Any) -> set[tuple[str, str]]:
    """The plain twin of ``flatten`` over Python values, giving (path, token) pairs."""
    if value is None:
        return set()
    join = lambda part: f"{path}.{part}" if path else str(part)  # noqa: E731
    if isinstance(value, dict):
        return set().union(*(brute_scalars(join(k), v) for k, v in value.items()), set())
    if isinstance(value, list):
        return set().union(*(brute_scalars(path, v) for v in value), set())
    if isinstance(value, str):
        return {(path, t) for t in analyze("default", value)}
    return {(path, jsonpaths.number_text(value))}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=5))
def test_json_text_is_keyed_by_paths_and_tokens(documents: list[Any]) -> None:
    mapping = mapping_of(pa.string(), json=("c",))
    array = pa.array([None if d is None else json.dumps(d) for d in documents], pa.string())
    pairs = set().union(*(brute_scalars("", d) for d in documents), set())
    expected = {hash_term(key_field("c", p), t, HASH_KIND) for p, t in pairs}
    assert set(column_key_hashes(array, mapping).tolist()) == expected


def test_nested_columns_flatten_like_json() -> None:
    dtype = pa.struct(
        [
            ("a", pa.int32()),
            ("b", pa.list_(pa.string())),
            ("m", pa.map_(pa.string(), pa.list_(pa.float64()))),
            ("s", pa.struct([("d", pa.date32()), ("x", pa.decimal128(10, 2))])),
        ]
    )
    rows = [
        {"a": 9, "b": ["skip"], "m": [("q", [9.5])], "s": None},
        {"a": 1, "b": ["Red car", None], "m": [("k.1", [1.0, 2.5]), ("j", None)], "s": None},
        None,
        {
            "a": None,
            "b": [],
            "m": [("j", [3.0])],
            "s": {"d": date(1969, 5, 1), "x": Decimal("1.50")},
        },
    ]
    leaves = jsonpaths.flatten(pa.array(rows, dtype).slice(1))
    shown = {
        (leaf.path, tuple(leaf.rows.tolist()), tuple(leaf.values.to_pylist())) for leaf in leaves
    }
    assert shown == {
        ("a", (0,), (1,)),
        ("b", (0,), ("Red car",)),
        ("m.k.1", (0, 0), (1.0, 2.5)),
        ("m.j", (2,), (3.0,)),
        ("s.d", (2,), (date(1969, 5, 1),)),
        ("s.x", (2,), (Decimal("1.50"),)),
    }
    mapping = mapping_of(dtype)
    expected = [
        ("c.a", "1"), ("c.b", "red"), ("c.b", "car"), ("c.m.k.1", "1"), ("c.m.k.1", "2.5"),
        ("c.m.j", "3"), ("c.s.d", "1969"), ("c.s.d", "05"), ("c.s.d", "01"), ("c.s.x", "1.5"),
    ]  # fmt: skip
    found = column_key_hashes(pa.array(rows, dtype).slice(1), mapping)
    assert set(found.tolist()) == {hash_term(f, t, HASH_KIND) for f, t in expected}


def test_times_inside_json_are_their_iso_text() -> None:
    moment = datetime(1901, 2, 3, 4, 5, 6, 7, UTC)
    array = pa.array([{"t": moment}], pa.struct([("t", pa.timestamp("us", "UTC"))]))
    (leaf,) = jsonpaths.flatten(array)
    assert jsonpaths.scalar_texts(leaf.values).to_pylist() == ["1901-02-03T04:05:06.000007"]
    wide = pa.array([-(2**62), 2**62, 0], pa.int64()).cast(pa.timestamp("us"))
    assert len(jsonpaths.scalar_texts(wide)) == 3
    assert moment - timedelta(days=1) < moment


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3.14", [("3", "14"), ("3.14",)]),
        ("-5", [("5",), ("-5",)]),
        ("1e3", [("1e3",), ("1000",)]),
        ("007", [("007",), ("7",)]),
        ("Alice Smith", [("alice", "smith")]),
        ("true", [("true",)]),
        ("--", []),
        (True, [("true",)]),
        (1.0, [("1",)]),
        (-0.0, [("0",)]),
        (5, [("5",)]),
    ],
)
def test_alternatives_of_a_json_value(value: Any, expected: list[tuple[str, ...]]) -> None:
    assert jsonpaths.alternatives(value) == expected


def test_fields_of_arrays_may_be_spelt_with_values() -> None:
    assert jsonpaths.split_field("tags._values") == ("tags", "")
    assert jsonpaths.split_field("tags._values.x") == ("tags", "x")
    assert jsonpaths.split_field("user.name") == ("user", "name")
