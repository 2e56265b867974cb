"""Making splits for tests: random tables of every type, written and opened in one call."""

from __future__ import annotations

import random
import string
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from indextables.config import Config
from indextables.mapping import DocMapping, IndexingOptions
from indextables.splits.read.reader import SplitReader
from indextables.splits.read.source import SplitRef
from indextables.splits.write.split_writer import FinishedSplit, SplitWriter
from indextables.storage.base import open_store

NESTED = pa.struct([("name", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us"))])
ALL_TYPES: dict[str, pa.DataType] = {
    "s": pa.string(),
    "txt": pa.string(),
    "ip": pa.string(),
    "js": pa.string(),
    "b": pa.bool_(),
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "dec": pa.decimal128(10, 2),
    "wide": pa.decimal128(38, 10),
    "d": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "ntz": pa.timestamp("us"),
    "bin": pa.binary(),
    "st": NESTED,
    "ar": pa.list_(pa.field("element", pa.string())),
    "mp": pa.map_(pa.string(), pa.field("value", pa.float64())),
    "nul": pa.null(),
}
SCHEMA = pa.schema(list(ALL_TYPES.items()))
OPTIONS = IndexingOptions(text=("txt",), json=("js",), ip=("ip",))

WORDS = ["red", "Green", "blue sky", "naïve", "Ⱥlpha", "", "x" * 300, "the quick fox", "42", "3.14"]
JSON_TEXTS = ['{"a": 1}', '{"a": {"b": ["red", "green car"]}}', "[1, 2.5, true]", "oops", '"red"']
ADDRESSES = ["10.0.0.1", "10.0.0.2", "::1", "2001:db8::7", "not an ip", "255.255.255.255"]


def text() -> st.SearchStrategy[str]:
    return st.sampled_from(WORDS) | st.text(max_size=12)


def value_strategy(name: str) -> st.SearchStrategy[Any]:
    """Physical values (days, microseconds, decimals as such) of a column of ``ALL_TYPES``."""
    micros = st.integers(-(2**62), 2**62) | st.sampled_from([0, -1, 1, 1_700_000_000_000_000])
    moment = {"name": st.none() | text(), "n": st.none() | st.integers(-5, 5), "at": st.none()}
    found: dict[str, st.SearchStrategy[Any]] = {
        "s": text(),
        "txt": text(),
        "ip": st.sampled_from(ADDRESSES),
        "js": st.sampled_from(JSON_TEXTS),
        "b": st.booleans(),
        "i8": st.integers(-128, 127),
        "i16": st.integers(-(2**15), 2**15 - 1),
        "i32": st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3),
        "i64": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
        "f32": st.floats(width=32),
        "f64": st.floats() | st.sampled_from([0.0, -0.0, 1.5, float("nan")]),
        "dec": st.integers(-(10**10) + 1, 10**10 - 1).map(lambda v: Decimal(f"{v}e-2")),
        "wide": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda v: Decimal(f"{v}e-10")),
        "d": st.integers(-800_000, 2_900_000) | st.integers(-2, 2),
        "ts": micros,
        "ntz": micros,
        "bin": st.binary(max_size=6),
        "st": st.fixed_dictionaries(moment),
        "ar": st.lists(st.none() | text(), max_size=3),
        "mp": st.lists(
            st.tuples(st.sampled_from("abc"), st.none() | st.floats(allow_nan=False)),
            max_size=2,
            unique_by=lambda p: p[0],
        ),
        "nul": st.none(),
    }
    return found[name]


def make_column(name: str, values: list[Any]) -> pa.Array:
    dtype = ALL_TYPES[name]
    if pa.types.is_date(dtype):
        return pa.array(values, pa.int32()).cast(dtype)
    if pa.types.is_timestamp(dtype):
        return pa.array(values, pa.int64()).cast(dtype)
    return pa.array(values, dtype)


@st.composite
def tables(draw: st.DrawFn, columns: tuple[str, ...] | None = None, max_rows: int = 12) -> pa.Table:
    """A table of all types (or some), nulls everywhere, at least one row."""
    rows = draw(st.integers(1, max_rows))
    names = columns or tuple(ALL_TYPES)
    arrays = []
    for name in names:
        values = st.none() | value_strategy(name)
        arrays.append(make_column(name, draw(st.lists(values, min_size=rows, max_size=rows))))
    return pa.table(dict(zip(names, arrays, strict=True)))


def random_table(rng: random.Random, rows: int) -> pa.Table:
    """A larger table of low and high cardinality columns, for counts and thresholds."""
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "Eta-Theta", "iota42"]

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.05 else value

    return pa.table(
        {
            "id": pa.array([str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(rows)]),
            "level": pa.array([maybe(rng.choice(["INFO", "WARN", "ERROR"])) for _ in range(rows)]),
            "host": pa.array([f"host-{rng.randrange(40):03d}" for _ in range(rows)]),
            "n": pa.array([maybe(rng.randrange(-50, 50)) for _ in range(rows)], pa.int32()),
            "x": pa.array(
                [maybe(rng.choice([rng.gauss(0, 1), 0.0, float("nan")])) for _ in range(rows)]
            ),
            "ts": pa.array(np.arange(rows) * 1_000_003 + 10**15).cast(pa.timestamp("us", "UTC")),
            "msg": pa.array(
                [maybe(" ".join(rng.choices(words, k=rng.randrange(1, 9)))) for _ in range(rows)]
            ),
            "ip": pa.array(
                [
                    f"10.{rng.randrange(4)}.{rng.randrange(4)}.{rng.randrange(9)}"
                    for _ in range(rows)
                ]
            ),
            "tags": pa.array(
                [rng.choices(string.ascii_lowercase[:5], k=rng.randrange(3)) for _ in range(rows)],
                pa.list_(pa.field("element", pa.string())),
            ),
        }
    )


def value_pools(rng: random.Random) -> dict[str, list[Any]]:
    """A few values of every type, the awkward ones always among them."""
    micros = [0, -1, 1, 10**15, -(10**15), rng.randrange(-(2**62), 2**62)]
    doubles = [0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), rng.gauss(0, 9)]
    names = [None, *WORDS]
    return {
        "s": [*WORDS, "Red", "red car"],
        "txt": [*WORDS, "red red", "fox the quick"],
        "ip": ADDRESSES,
        "js": JSON_TEXTS,
        "b": [True, False],
        "i8": [-128, -1, 0, 1, 127],
        "i16": [-(2**15), 0, 5, 2**15 - 1],
        "i32": [-(2**31), -7, 0, 7, 2**31 - 1],
        "i64": [-(2**63), -7, 0, 7, 2**63 - 1, rng.randrange(2**60)],
        "f32": [float(np.float32(v)) for v in doubles],
        "f64": doubles,
        "dec": [Decimal("0.00"), Decimal("1.50"), Decimal("-99999999.99"), Decimal("0.01")],
        "wide": [Decimal("0"), Decimal("-1e-10"), Decimal("1234567890123456789012345678.5")],
        "d": [0, -1, 1, 19_000, -800_000, 2_900_000],
        "ts": micros,
        "ntz": micros,
        "bin": [b"", b"\x00", b"\xff\x00", b"abc"],
        "st": [{"name": rng.choice(names), "n": n, "at": None} for n in (None, 0, 1, 2, 3)],
        "ar": [[], ["red"], ["blue sky", None], ["42", "naïve"]],
        "mp": [[], [("a", 1.0)], [("a", None), ("b", 2.5)]],
        "nul": [None],
    }


def pooled_table(rng: random.Random, pools: dict[str, list[Any]], rows: int) -> pa.Table:
    """A table of all types drawn from the pools, a fifth of it null."""

    def draw(name: str) -> list[Any]:
        pool = pools[name]
        return [None if rng.random() < 0.2 else rng.choice(pool) for _ in range(rows)]

    return pa.table({name: make_column(name, draw(name)) for name in ALL_TYPES})


RANDOM_OPTIONS = IndexingOptions(text=("msg",), ip=("ip",))


def finish_split(
    table: pa.Table,
    options: IndexingOptions = OPTIONS,
    config: Config | None = None,
    folder: Path | None = None,
    **extra: Any,
) -> FinishedSplit:
    known = {n.lower() for n in table.schema.names}
    kept = IndexingOptions(
        **{k: tuple(n for n in getattr(options, k) if n in known) for k in ("text", "json", "ip")},
        unindexed=options.unindexed,
        tokenizers=options.tokenizers,
        records=options.records,
        token_lengths=options.token_lengths,
    )
    mapping = DocMapping.for_schema(table.schema, options=kept)
    return finish_mapped(table, mapping, config, folder, **extra)


def finish_mapped(
    table: pa.Table,
    mapping: DocMapping,
    config: Config | None = None,
    folder: Path | None = None,
    **extra: Any,
) -> FinishedSplit:
    work = None if folder is None else str(folder)
    writer = SplitWriter(table.schema, mapping, config or Config(), work_dir=work, **extra)
    for batch in table.to_batches():
        writer.write(batch)
    return writer.finish()


def open_split(
    table: pa.Table,
    folder: Path,
    options: IndexingOptions = OPTIONS,
    config: Config | None = None,
    **extra: Any,
) -> SplitReader:
    """Write a table as one split below ``folder`` and open it."""
    finished = finish_split(table, options, config, folder, **extra)
    return upload(finished, folder, config)


def write_split(table: pa.Table, mapping: DocMapping, folder: Path) -> SplitReader:
    """Write a table with a given mapping as one split and open it."""
    return upload(finish_mapped(table, mapping, None, folder), folder)


def upload(finished: FinishedSplit, folder: Path, config: Config | None = None) -> SplitReader:
    store = open_store(str(folder))
    name = f"part-{uuid.uuid4()}.split"
    store.put_file(name, finished.local_path)
    finished.discard()
    ref = SplitRef(
        name, finished.size, finished.footer_start, finished.footer_end, finished.num_records
    )
    return SplitReader.open(store, ref, config=config)


def same(left: Any, right: Any) -> bool:
    """Equal values and bits: NaN equals NaN, zeros keep their sign."""
    return left.type.equals(right.type) and _bits(left) == _bits(right)


def _bits(column: Any) -> Any:
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [_frozen(v) for v in column.to_pylist()]


def _frozen(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return {k: _frozen(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_frozen(v) for v in value]
    return value
