"""Tiny tables: rows, a statistics writer of the tests' own, and a snapshot made of plain arrays.

``Split`` is what a log entry says. ``write_split`` measures rows as our writer does;
``foreign_split`` as other writers do: no counts, UTF-16 order, cut texts nobody mentions.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.expr.predicate import Column
from indextables.log.read.columns import StringColumn
from indextables.log.read.facts import Facts
from indextables.log.read.ledger import ColumnIndexes

EPOCH = datetime.datetime(1970, 1, 1)
LIMIT = 32


class Texts(StringColumn):
    @classmethod
    def of(cls, values: Sequence[str | None]) -> Texts:
        encoded = [(v or "").encode() for v in values]
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum([len(e) for e in encoded], out=offsets[1:])
        data = np.frombuffer(b"".join(encoded), np.uint8)
        return cls(data, offsets, np.array([v is not None for v in values], np.uint8))


@dataclass
class Split:
    """One log entry, and the rows behind it."""

    rows: list[dict[str, Any]]
    partition: dict[str, str | None] = field(default_factory=dict)
    lows: dict[str, str] = field(default_factory=dict)
    highs: dict[str, str] = field(default_factory=dict)
    stats: str | None = None
    num_records: int = -1
    path: str = ""
    size: int = 1000
    measured: dict[str, Any] = field(default_factory=dict)


# -- physical values as text --------------------------------------------------------------------


def stat_text(value: Any, dtype: pa.DataType, upper: bool = False) -> str:
    t = pa.types
    if t.is_boolean(dtype):
        return "true" if value else "false"
    if t.is_date(dtype):
        return (EPOCH + datetime.timedelta(days=value)).date().isoformat()
    if t.is_decimal(dtype):
        return decimal_text(value, dtype.scale)
    if t.is_floating(dtype):
        return float_text(value, t.is_float32(dtype), upper)
    return str(value)


def decimal_text(unscaled: int, scale: int) -> str:
    return format(Decimal(unscaled).scaleb(-scale), "f")


def float_text(value: float, single: bool, upper: bool) -> str:
    if value == 0:
        return "0.0" if upper else "-0.0"
    return str(np.float32(value)) if single else repr(float(value))


def partition_text(value: Any, dtype: pa.DataType) -> str | None:
    if value is None:
        return None
    if pa.types.is_timestamp(dtype):
        moment = EPOCH + datetime.timedelta(microseconds=value)
        text = moment.strftime("%Y-%m-%d %H:%M:%S")
        return text if not moment.microsecond else f"{text}.{moment.microsecond:06d}"
    return stat_text(value, dtype)


def sort_key(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


# -- writers ------------------------------------------------------------------------------------


def measured(dtype: pa.DataType) -> bool:
    return not (pa.types.is_binary(dtype) or pa.types.is_nested(dtype) or pa.types.is_null(dtype))


def write_split(
    rows: list[dict[str, Any]],
    schema: pa.Schema,
    partition: Mapping[str, Any] | None = None,
    columns: Iterable[str] | None = None,
    limit: int = LIMIT,
) -> Split:
    """A split as our writer logs it."""
    partition = dict(partition or {})
    wanted = [f for f in schema if f.name not in partition]
    wanted = [f for f in wanted if columns is None or f.name in set(columns)]
    split = Split([{**r, **partition} for r in rows], num_records=len(rows))
    split.partition = {k: partition_text(v, schema.field(k).type) for k, v in partition.items()}
    nulls, nans, cut = {}, {}, []
    for f in wanted:
        values = [r.get(f.name) for r in rows]
        present = [v for v in values if v is not None]
        nulls[f.name] = len(values) - len(present)
        if pa.types.is_floating(f.type):
            nans[f.name] = sum(math.isnan(v) for v in present)
            present = [v for v in present if not math.isnan(v)]
        if present and measured(f.type):
            low = stat_text(min(present, key=sort_key), f.type)
            high = stat_text(max(present, key=sort_key), f.type, upper=True)
            if pa.types.is_string(f.type):
                if len(high) > limit:
                    cut.append(f.name)
                low, high = low[:limit], high[:limit]
            split.lows[f.name], split.highs[f.name] = low, high
    body = {"numRecords": len(rows), "nullCount": nulls, "nanCount": nans}
    split.stats = json.dumps({**body, "tightBounds": True, "truncated": cut}, ensure_ascii=False)
    return split


def java_key(value: Any) -> Any:
    return value.encode("utf-16-be") if isinstance(value, str) else value


def java_cut(text: str, limit: int) -> str:
    """The first UTF-16 units; half a pair is printed as a question mark."""
    return (
        text.encode("utf-16-be")[: 2 * limit].decode("utf-16-be", "replace").replace("\ufffd", "?")
    )


def foreign_split(
    rows: list[dict[str, Any]],
    schema: pa.Schema,
    partition: Mapping[str, Any] | None = None,
    limit: int = LIMIT,
    time: str = "micros",
) -> Split:
    """A split as writers in Java log it: bounds of the present values and nothing else."""
    split = write_split(rows, schema, partition, columns=())
    split.stats = None
    for f in schema:
        present = [r[f.name] for r in rows if r.get(f.name) is not None]
        if pa.types.is_floating(f.type):
            present = [v for v in present if not math.isnan(v)]
        if not present or not measured(f.type) or f.name in (partition or {}):
            continue
        low, high = min(present, key=java_key), max(present, key=java_key)
        if pa.types.is_string(f.type):
            texts = java_cut(low, limit), java_cut(high, limit)
        elif pa.types.is_timestamp(f.type):
            texts = foreign_time(low, f.type, time), foreign_time(high, f.type, time)
        else:
            texts = stat_text(low, f.type), stat_text(high, f.type, upper=True)
        split.lows[f.name], split.highs[f.name] = texts
    return split


def foreign_time(micros: int, dtype: pa.DataType, unit: str) -> str:
    if unit == "iso":
        text = (EPOCH + datetime.timedelta(microseconds=micros)).isoformat(timespec="milliseconds")
        return text + ("Z" if dtype.tz else "")
    return str(micros // {"micros": 1, "millis": 1000, "seconds": 1_000_000}[unit])


# -- the snapshot -------------------------------------------------------------------------------


class FakeSnapshot:
    """What the planner asks of a snapshot, out of a list of splits."""

    def __init__(
        self, splits: Sequence[Split], schema: pa.Schema, partition_columns: Sequence[str] = ()
    ) -> None:
        self.list = list(splits)
        for i, split in enumerate(self.list):
            split.path = split.path or f"part-{i:05d}.split"
        self.schema = schema
        self.partition_columns = tuple(partition_columns)
        self.stored_schema, self.stored_partition_columns = schema, self.partition_columns
        self.version = 7
        self.num_files = len(self.list)
        self.sizes = np.array([s.size for s in self.list], np.int64)
        self.num_records = np.array([s.num_records for s in self.list], np.int64)
        self.live_records = self.num_records
        self.footer_starts = np.full(self.num_files, -1, np.int64)
        self.footer_ends = np.full(self.num_files, -1, np.int64)
        self.paths = pa.array([s.path for s in self.list], pa.large_string())
        self.table_mapping = None
        self.mapping_registry: dict[str, str] = {}
        self.xrefs = self.keymaps = self.manifest_partition_bounds = ()
        self.indexes = ColumnIndexes()
        self.manifest_of = None
        self.facts = Facts()

    def file(self, i: int) -> Any:
        split = self.list[i]
        return SimpleNamespace(
            path=split.path, size=split.size, num_records=split.num_records, split=split
        )

    def index_of(self, path: str) -> int | None:
        return next((i for i, s in enumerate(self.list) if s.path == path), None)

    def partition_codes(self, column: str) -> tuple[Any, list[str | None]]:
        values = [s.partition.get(column) for s in self.list]
        distinct = list(dict.fromkeys(values))
        numbers = {v: k for k, v in enumerate(distinct)}
        return np.array([numbers[v] for v in values], np.int32), distinct

    def stat_column(self, which: str, column: str) -> Texts | None:
        values = [(s.lows if which == "min" else s.highs).get(column) for s in self.list]
        return Texts.of(values) if any(v is not None for v in values) else None

    def stats_counts(self, kind: str, column: str) -> Any:
        found = [
            json.loads(s.stats).get(kind, {}).get(column, -1) if s.stats else -1 for s in self.list
        ]
        return np.array(found, np.int64) if any(c >= 0 for c in found) else None

    def vectors(self, numbers: Any) -> list[None]:
        return [None] * len(numbers)

    def derive(self, fact: Any, key: Any, build: Any) -> Any:
        """All splits as one segment."""
        return fact.of(self, key, lambda: build(self))

    @property
    def n(self) -> int:
        return self.num_files

    def ints(self, name: str) -> Any:
        assert name == "numRecords"
        return self.num_records

    def texts(self, name: str) -> Texts:
        return self.text_column(name)

    def map_texts(self, name: str, column: str) -> Texts | None:
        return self.stat_column({"minValues": "min", "maxValues": "max"}[name], column)

    def counts(self, kind: str, column: str) -> Any:
        return self.stats_counts(kind, column)

    def indices_of(self, paths: Sequence[str]) -> Any:
        found = [self.index_of(path) for path in paths]
        return np.array([-1 if i is None else i for i in found], np.int64)

    def text_column(self, name: str) -> Texts:
        return Texts.of([s.stats if name == "stats" else None for s in self.list])

    @property
    def stat_columns(self) -> frozenset[str]:
        return frozenset(k for s in self.list for k in (*s.lows, *s.highs))


def column(schema: pa.Schema, name: str, partition_columns: Sequence[str] = ()) -> Column:
    return Column((name,), schema.field(name).type, name in partition_columns)
