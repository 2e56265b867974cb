"""Statistics of a split's columns, gathered while rows pass by.

Bounds are over values that are neither null nor NaN; a column without such a value has none. Their
texts: integers and unscaled parts in decimal, doubles in the shortest form that reads back, a zero
bound widened to ``-0.0`` below and ``0.0`` above (the two are equal in SQL), bools ``true`` and
``false``, dates ISO, timestamps microseconds since 1970, decimals plain, strings cut to the
configured number of characters. Order is numeric, and by UTF-8 bytes for strings.

Bounds are kept for the first configured number of eligible columns, or for those named; nulls are
counted for every column.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.config import Config
from indextables.log.actions.statistics import truncate_statistics

_EPOCH = date(1970, 1, 1).toordinal()
_LAST_DAY = date.max.toordinal()


def is_eligible(dtype: pa.DataType) -> bool:
    """Can the column have bounds?"""
    t = pa.types
    return bool(
        t.is_string(dtype)
        or t.is_integer(dtype)
        or t.is_floating(dtype)
        or t.is_boolean(dtype)
        or t.is_date(dtype)
        or t.is_timestamp(dtype)
        or t.is_decimal(dtype)
    )


def bounded_columns(schema: pa.Schema, config: Config) -> list[str]:
    """The columns that get bounds."""
    eligible = [f.name for f in schema if is_eligible(f.type)]
    named = {c.lower() for c in config["dataSkippingStatsColumns"]}
    if named:
        return [c for c in eligible if c.lower() in named]
    limit = config["dataSkippingNumIndexedCols"]
    return eligible if limit < 0 else eligible[:limit]


class ColumnStatistics:
    """Null count, NaN count and bounds of one column."""

    def __init__(self, dtype: pa.DataType, *, bounded: bool) -> None:
        self.dtype = dtype
        self.bounded = bounded
        self.nulls = 0
        self.nans = 0
        self.low: Any = None
        self.high: Any = None

    def add(self, array: Any) -> None:
        self.nulls += len(array) if pa.types.is_null(array.type) else array.null_count
        if pa.types.is_floating(self.dtype):
            nans = pc.is_nan(array)
            count = pc.sum(nans).as_py() or 0
            self.nans += count
            if count:
                array = array.filter(pc.invert(nans))
        if self.bounded and array.null_count < len(array):
            self._widen(array)

    def _widen(self, array: Any) -> None:
        found = pc.min_max(_physical(array))
        low, high = found["min"].as_py(), found["max"].as_py()
        self.low = low if self.low is None else min(self.low, low, key=_order)
        self.high = high if self.high is None else max(self.high, high, key=_order)

    def texts(self) -> tuple[str, str] | None:
        """The bounds as texts, uncut."""
        if self.low is None:
            return None
        low, high = _text(self.dtype, self.low), _text(self.dtype, self.high)
        if pa.types.is_floating(self.dtype):
            low = "-0.0" if self.low == 0 else low
            high = "0.0" if self.high == 0 else high
        return None if low is None or high is None else (low, high)


def _physical(array: Any) -> Any:
    if pa.types.is_date(array.type):
        return array.cast(pa.int32())
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64())
    return array


def _order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _text(dtype: pa.DataType, value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if pa.types.is_date(dtype):
        day = value + _EPOCH
        return date.fromordinal(day).isoformat() if 1 <= day <= _LAST_DAY else None
    if isinstance(value, float):
        return repr(value).replace("inf", "Infinity")
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)


@dataclass(frozen=True, slots=True)
class SplitStatistics:
    """What the log keeps about a split."""

    stats_json: str
    min_values: dict[str, str]
    max_values: dict[str, str]
    null_counts: dict[str, int]
    nan_counts: dict[str, int]
    integers: dict[str, tuple[int, int]]


class StatisticsCollector:
    """Statistics of all columns of a split."""

    def __init__(self, schema: pa.Schema, config: Config) -> None:
        bounded = set(bounded_columns(schema, config))
        self._config = config
        self._columns = {
            f.name: ColumnStatistics(f.type, bounded=f.name in bounded) for f in schema
        }

    def add(self, batch: pa.RecordBatch) -> None:
        for name, column in self._columns.items():
            column.add(batch.column(name))

    def finish(self, num_rows: int) -> SplitStatistics:
        texts = {n: t for n, c in self._columns.items() if (t := c.texts()) is not None}
        low, high, cut = self._shorten(texts)
        nulls = {n: c.nulls for n, c in self._columns.items()}
        nans = {n: c.nans for n, c in self._columns.items() if pa.types.is_floating(c.dtype)}
        body = {
            "numRecords": num_rows,
            "nullCount": nulls,
            "nanCount": nans,
            "tightBounds": True,
            "truncated": list(cut),
        }
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        return SplitStatistics(text, low, high, nulls, nans, self._integers())

    def _integers(self) -> dict[str, tuple[int, int]]:
        """The exact bounds of integer columns."""
        return {
            n: (int(c.low), int(c.high))
            for n, c in self._columns.items()
            if pa.types.is_integer(c.dtype) and c.low is not None
        }

    def _shorten(
        self, texts: dict[str, tuple[str, str]]
    ) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
        strings = {n for n in texts if pa.types.is_string(self._columns[n].dtype)}
        low = {n: t[0] for n, t in texts.items()}
        high = {n: t[1] for n, t in texts.items()}
        others = [n for n in texts if n not in strings]
        short = truncate_statistics(low, high, others, self._config)
        return short.min_values, short.max_values, short.cut
