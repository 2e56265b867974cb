"""Random tables for the tests of rows: every type, nested, in the styles that real columns have."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from indextables.splits.rows import RowsFile, RowsReader, RowsWriter

LEAVES = [
    pa.null(),
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.decimal128(9, 2),
    pa.decimal128(38, 10),
    pa.string(),
    pa.binary(),
]
NASTY_FLOATS = [
    0x7FF8000000000000,
    0x7FF8DEADBEEF0001,
    0xFFF0000000000001,
    0x8000000000000000,
    0x7FF0000000000000,
    0xFFF0000000000000,
    0x0000000000000001,
    0x7FEFFFFFFFFFFFFF,
]


def types(depth: int = 2) -> st.SearchStrategy[pa.DataType]:
    leaves = st.sampled_from(LEAVES)
    if depth == 0:
        return leaves
    below = types(depth - 1)
    keys = st.sampled_from([pa.string(), pa.int32(), pa.date32()])
    return st.one_of(
        leaves,
        below.map(pa.list_),
        st.lists(below, min_size=0, max_size=3).map(
            lambda kinds: pa.struct([(f"f{i}", kind) for i, kind in enumerate(kinds)])
        ),
        st.tuples(keys, below).map(lambda pair: pa.map_(*pair)),
    )


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 300, max_columns: int = 3) -> pa.Table:
    kinds = draw(st.lists(types(), min_size=1, max_size=max_columns))
    rows = draw(st.integers(0, max_rows))
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    columns = [random_array(rng, kind, rows) for kind in kinds]
    return pa.table(columns, names=[f"c{i}" for i in range(len(kinds))])


def random_array(rng: random.Random, dtype: pa.DataType, n: int) -> pa.Array:
    """``n`` values in one random style, with none, some or only nulls."""
    if pa.types.is_null(dtype):
        return pa.nulls(n)
    rate = rng.choice([0.0, 0.0, 0.1, 0.7, 1.0])
    valid = np.array([rng.random() >= rate for _ in range(n)], bool)
    if pa.types.is_struct(dtype):
        children = [random_array(rng, f.type, n) for f in dtype.fields]
        return _masked_struct(dtype, children, valid)
    if pa.types.is_list(dtype) or pa.types.is_map(dtype):
        return _random_lists(rng, dtype, n, valid)
    if pa.types.is_floating(dtype):
        return _floats(rng, dtype, n, valid)
    make = _maker(rng, dtype)
    return pa.array([make(i) if valid[i] else None for i in range(n)], dtype)


def _masked_struct(dtype: pa.DataType, children: list[pa.Array], valid: Any) -> pa.Array:
    bitmap = pa.array(valid).buffers()[1] if not valid.all() else None
    return pa.Array.from_buffers(dtype, len(valid), [bitmap], children=children)


def _random_lists(rng: random.Random, dtype: pa.DataType, n: int, valid: Any) -> pa.Array:
    most = rng.choice([0, 1, 3, 8])
    lengths = [rng.randint(0, most) for i in range(n)]
    if rng.random() < 0.5:
        lengths = [length if ok else 0 for length, ok in zip(lengths, valid, strict=True)]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    total = int(offsets[-1])
    if pa.types.is_map(dtype):
        keys = random_array(rng, dtype.key_type, total)
        keys = keys.fill_null(_maker(rng, dtype.key_type)(0))
        child = pa.StructArray.from_arrays(
            [keys, random_array(rng, dtype.item_type, total)],
            fields=[dtype.key_field, dtype.item_field],
        )
    else:
        child = random_array(rng, dtype.value_type, total)
    bitmap = pa.array(valid).buffers()[1] if not valid.all() else None
    return pa.Array.from_buffers(dtype, n, [bitmap, pa.py_buffer(offsets)], children=[child])


def _floats(rng: random.Random, dtype: pa.DataType, n: int, valid: Any) -> pa.Array:
    wide = pa.types.is_float64(dtype)
    style = rng.choice(["short", "bits", "few", "mixed", "whole"])
    few = [rng.gauss(0, 1e6) for _ in range(3)]
    values = np.array(
        [
            {"short": round(rng.gauss(0, 50), 2), "few": rng.choice(few), "whole": float(i)}.get(
                style, round(rng.gauss(0, 50), 3)
            )
            for i in range(n)
        ],
        np.float64 if wide else np.float32,
    )
    bits = values.view(np.uint64 if wide else np.uint32).copy()
    for i in range(n):
        if style == "bits" or (style == "mixed" and rng.random() < 0.05):
            bits[i] = _nasty(rng, wide)
    bitmap = pa.array(valid).buffers()[1] if not valid.all() else None
    return pa.Array.from_buffers(dtype, n, [bitmap, pa.py_buffer(bits)])


def _nasty(rng: random.Random, wide: bool) -> int:
    word = rng.choice([*NASTY_FLOATS, rng.getrandbits(64)])
    return word if wide else (word >> 32) | (word & 1)


def _maker(rng: random.Random, dtype: pa.DataType) -> Any:
    """A function from slot number to a Python value, in one style of the type."""
    t = pa.types
    if t.is_boolean(dtype):
        odds = rng.choice([0.0, 0.5, 1.0])
        return lambda i: rng.random() < odds
    if t.is_string(dtype) or t.is_binary(dtype):
        text = _text_maker(rng)
        return (lambda i: text(i).encode()) if t.is_binary(dtype) else text
    bits = 64 if t.is_decimal(dtype) else dtype.bit_width
    top = (1 << (bits - 1)) - 1
    if t.is_decimal(dtype):
        top = 10 ** rng.choice([1, dtype.precision]) - 1
    number = _number_maker(rng, top)
    if t.is_decimal(dtype):
        return lambda i: Decimal(number(i)).scaleb(-dtype.scale)
    if t.is_date(dtype) or t.is_timestamp(dtype):
        return number
    return number


def _number_maker(rng: random.Random, top: int) -> Any:
    style = rng.choice(["any", "few", "line", "steps", "constant"])
    base = rng.randint(-top, top)
    few = [rng.randint(-top, top) for _ in range(5)]
    rise = rng.randint(-1000, 1000)

    def make(i: int) -> int:
        if style == "any":
            return rng.randint(-top - (1 if top & (top + 1) == 0 else 0), top)
        if style == "few":
            return rng.choice(few)
        if style == "steps":
            return rng.randint(0, min(top // 7, 50)) * 7 if top >= 7 else 0
        if style == "constant":
            return base
        return max(-top, min(top, base + rise * i + rng.randint(-2, 2)))

    return make


def _text_maker(rng: random.Random) -> Any:
    style = rng.choice(["words", "few", "uuid", "id", "unicode", "empty", "long", "hex"])
    few = ["".join(rng.choices("abcde é", k=rng.randint(0, 9))) for _ in range(4)]
    words = ["timeout", "connection", "reset by peer", "user", "ü", "日本", "ok"]

    def make(i: int) -> str:
        if style == "words":
            return " ".join(rng.choices(words, k=rng.randint(0, 9)))
        if style == "few":
            return rng.choice(few)
        if style == "uuid":
            h = f"{rng.getrandbits(128):032x}"
            return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
        if style == "id":
            return f"order-{rng.randint(0, 9999):06d}"
        if style == "unicode":
            return "".join(chr(rng.choice([0, 65, 0x7FF, 0x20AC, 0x1F600])) for _ in range(3))
        if style == "long":
            return "prefix " + "xyz" * rng.randint(0, 200)
        return "" if style == "empty" else f"{rng.getrandbits(40):010X}"

    return make


def write(
    table: pa.Table, *, batch_rows: int | None = None, **options: Any
) -> tuple[RowsFile, bytes]:
    """The file of a table and its payload in one piece."""
    writer = RowsWriter(table.schema, **options)
    for batch in table.to_batches(max_chunksize=batch_rows):
        writer.write(batch)
    file = writer.finish()
    return file, b"".join(file.pages)


def ranged(file: RowsFile, payload: bytes) -> RowsReader:
    """A reader that fetches ranges."""

    def read(ranges: Any) -> list[bytes]:
        return [payload[a:b] for a, b in ranges]

    return RowsReader(read, file.directory, len(payload))


def mapped(file: RowsFile, payload: bytes) -> RowsReader:
    """A reader over a payload in memory."""
    return RowsReader(_never, file.directory, len(payload), payload=memoryview(payload))


def _never(ranges: Any) -> list[bytes]:
    raise AssertionError("a mapped payload needs no reads")


def scanned(reader: RowsReader, **options: Any) -> pa.Table:
    return pa.Table.from_batches(list(reader.scan(**options)), schema=reader.schema)
