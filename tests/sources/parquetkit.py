"""Random Parquet files: every kind of type, page, compression and encoding that Arrow writes."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from indextables.sources.base import SourceColumn
from indextables.sources.parquet import usable

LEAVES: list[pa.DataType] = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.binary(4),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.timestamp("ms"),
    pa.decimal128(9, 2),
    pa.decimal128(30, 5),
]
COMPRESSIONS = ["NONE", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4"]
EPOCH = datetime(2020, 1, 1)


def random_type(rng: Random, depth: int = 2) -> pa.DataType:
    if depth == 0 or rng.random() < 0.5:
        return rng.choice(LEAVES)
    kind = rng.choice(["list", "struct", "map"])
    if kind == "list":
        return pa.list_(random_type(rng, depth - 1))
    if kind == "map":
        return pa.map_(rng.choice([pa.string(), pa.int32()]), random_type(rng, depth - 1))
    names = rng.sample(["a", "b.c", "d", "E f"], rng.randrange(1, 4))
    return pa.struct([pa.field(n, random_type(rng, depth - 1)) for n in names])


def random_value(rng: Random, dtype: pa.DataType, nulls: float = 0.2) -> Any:
    t = pa.types
    if rng.random() < nulls:
        return None
    if t.is_string(dtype) or t.is_large_string(dtype):
        return rng.choice(["", "é", "word", "w" * rng.randrange(40), str(rng.randrange(50))])
    if t.is_boolean(dtype):
        return rng.random() < 0.5
    if t.is_integer(dtype):
        low = 0 if t.is_unsigned_integer(dtype) else -(1 << (dtype.bit_width - 1))
        return rng.choice([low, low + (1 << dtype.bit_width) - 1, rng.randrange(100)])
    if t.is_floating(dtype):
        return float(rng.randrange(-1000, 1000)) / 8
    if t.is_fixed_size_binary(dtype) and not t.is_decimal(dtype):
        return rng.randbytes(dtype.byte_width)
    if t.is_binary(dtype):
        return rng.randbytes(rng.randrange(6))
    if t.is_date(dtype):
        return date(2020, 1, 1) + timedelta(days=rng.randrange(-20000, 20000))
    if t.is_timestamp(dtype):
        at = EPOCH + timedelta(milliseconds=rng.randrange(-(10**12), 10**12))
        return at.replace(tzinfo=UTC) if dtype.tz else at
    if t.is_decimal(dtype):
        return Decimal(rng.randrange(-(10**6), 10**6)).scaleb(-dtype.scale)
    if t.is_list(dtype):
        return [random_value(rng, dtype.value_type) for _ in range(rng.randrange(4))]
    if t.is_map(dtype):
        keys = dict.fromkeys(random_value(rng, dtype.key_type, 0) for _ in range(rng.randrange(4)))
        return [(key, random_value(rng, dtype.item_type)) for key in keys]
    return {f.name: random_value(rng, f.type) for f in dtype.fields}


def random_table(rng: Random, rows: int) -> pa.Table:
    names = [f"c{i}" for i in range(rng.randrange(1, 5))]
    types = [random_type(rng) for _ in names]
    columns = [
        pa.array([random_value(rng, t, nulls) for _ in range(rows)], t)
        for t, nulls in zip(types, rng.choices([0.0, 0.2, 0.9, 1.0], k=len(names)), strict=True)
    ]
    return pa.table(columns, names=names)


def written(rng: Random, table: pa.Table) -> tuple[bytes, bool]:
    """The table as a Parquet file of random settings, and whether it has an offset index."""
    out = io.BytesIO()
    indexed = rng.random() < 0.75
    pq.write_table(
        table,
        out,
        row_group_size=rng.choice([30, 100, 1000]),
        data_page_size=rng.choice([64, 400, 1 << 20]),
        write_batch_size=rng.choice([7, 20, 1024]),
        compression=rng.choice(COMPRESSIONS),
        use_dictionary=rng.choice([True, False]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        dictionary_pagesize_limit=rng.choice([100, 1 << 20]),
        write_page_index=indexed,
        write_page_checksum=rng.choice([True, False]),
        store_schema=rng.choice([True, False]),
    )
    return out.getvalue(), indexed


def columns_of(schema: pa.Schema) -> list[SourceColumn]:
    """Columns of a table whose types are those of a file."""
    return [SourceColumn(f.name, usable(f.type), f.name, f.name) for f in schema]
