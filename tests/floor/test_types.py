"""Spark types as Arrow types, both ways, and what is normalised on the way in."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import ConfigError, SchemaMismatchError, UnknownColumnError
from indextables.mapping import DocMapping, FieldMapping, IndexingOptions
from indextables.types import normalize_schema, schema_from_json, schema_to_json, type_name

SIMPLE = [
    pa.string(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
    pa.bool_(), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.binary(), pa.null(),
    pa.decimal128(38, 10),
]  # fmt: skip

types = st.recursive(
    st.sampled_from(SIMPLE),
    lambda inner: st.one_of(
        inner.map(lambda t: pa.list_(pa.field("element", t))),
        inner.map(lambda t: pa.map_(pa.string(), pa.field("value", t))),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda ts: pa.struct([pa.field(f"f{i}", t) for i, t in enumerate(ts)])
        ),
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(types, st.booleans()), max_size=5))
def test_json_round_trip(columns: list[tuple[pa.DataType, bool]]) -> None:
    schema = pa.schema(
        [pa.field(f"c{i}", t, n or t == pa.null()) for i, (t, n) in enumerate(columns)]
    )
    assert schema_from_json(schema_to_json(schema)) == schema
    assert normalize_schema(schema) == schema


def test_spellings_of_spark() -> None:
    text = json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": "v", "type": "varchar(10)", "nullable": True, "metadata": {}},
                {"name": "d", "type": "decimal(10, 2)", "nullable": False, "metadata": {"a": 1}},
            ],
        }
    )
    schema = schema_from_json(text)
    assert schema.field("v").type == pa.string()
    assert schema.field("d").type == pa.decimal128(10, 2)
    assert json.loads(schema_to_json(schema))["fields"][1]["metadata"] == {"a": 1}


@pytest.mark.parametrize("text", ["", "[]", '{"type":"array"}', '{"type":"struct"}', "nope"])
def test_bad_schema_text_is_an_error(text: str) -> None:
    with pytest.raises(SchemaMismatchError):
        schema_from_json(text)


@pytest.mark.parametrize(
    ("given_type", "stored"),
    [
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.uint32(), pa.int64()),
        (pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.large_list(pa.int8()), pa.list_(pa.field("element", pa.int8()))),
    ],
)
def test_normalised_types(given_type: pa.DataType, stored: pa.DataType) -> None:
    assert normalize_schema(pa.schema([("c", given_type)])).field("c").type == stored


@pytest.mark.parametrize("bad", [pa.uint64(), pa.duration("us"), pa.time64("us")])
def test_types_without_a_home(bad: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match="cannot be stored"):
        normalize_schema(pa.schema([("c", bad)]))


def test_names_that_differ_by_case_only() -> None:
    with pytest.raises(SchemaMismatchError, match="duplicate column"):
        normalize_schema(pa.schema([("a", pa.int8()), ("A", pa.int8())]))


def test_names_a_user_knows() -> None:
    dtype = pa.struct([("x", pa.list_(pa.int64())), ("y", pa.map_(pa.string(), pa.float64()))])
    assert type_name(dtype) == "struct<x:array<bigint>,y:map<string,double>>"


SCHEMA = pa.schema([("id", pa.int64()), ("msg", pa.string()), ("tags", pa.list_(pa.string()))])


def test_mapping_defaults_and_choices() -> None:
    mapping = DocMapping.for_schema(SCHEMA, ["id"], IndexingOptions(text=("MSG",)))
    assert mapping.names == ["msg", "tags"]
    field = mapping.get("Msg")
    assert field is not None
    assert field.is_tokenized
    assert field.tokenizer == "default"
    assert DocMapping.from_json(mapping.to_json()) == mapping


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (IndexingOptions(text=("nope",)), UnknownColumnError),
        (IndexingOptions(text=("id",)), ConfigError),
        (IndexingOptions(text=("msg",), ip=("msg",)), ConfigError),
        (IndexingOptions(tokenizers={"msg": "french"}), ConfigError),
        (IndexingOptions(json=("id",)), ConfigError),
    ],
)
def test_mapping_mistakes(options: IndexingOptions, error: type[Exception]) -> None:
    with pytest.raises(error):
        DocMapping.for_schema(SCHEMA, (), options)


def test_mapping_of_real_tables() -> None:
    text = '{"field_mappings":[{"name":"t","type":"text"},{"name":"o","type":"object"}]}'
    assert DocMapping.from_json(text).fields == (
        FieldMapping("t", "text", tokenizer="default", fast=False),
    )
