"""What the source says about the columns of one file, as our log says it about a split.

Bounds may be wider than the values (formats cut long texts and round moments outwards), so they may
drop a file and may say that all its rows match; they are never an answer to MIN or MAX.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from indextables.sources.base import Bounds, SourceColumn, SourceFile
from indextables.splits.write.stats import ColumnStatistics, is_eligible

Texts = dict[str, str]


def statistics(file: SourceFile, columns: Iterable[SourceColumn]) -> tuple[Texts, Texts, str]:
    """Minimum and maximum texts, and the ``stats`` text, of a file."""
    low: Texts = {}
    high: Texts = {}
    nulls: dict[str, int] = {}
    for column in columns:
        known = _known(file, column.identity)
        if known is None:
            continue
        if known.nulls is not None:
            nulls[column.identity] = known.nulls
        pair = _texts(known, column.type)
        if pair is not None:
            low[column.identity], high[column.identity] = pair
    body = {"nullCount": nulls, "tightBounds": False, "truncated": sorted(low)}
    if file.rows is not None:
        body["numRecords"] = file.rows
    return low, high, json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def _known(file: SourceFile, identity: str) -> Bounds | None:
    """The bounds of a column; of one that is the same in all rows, its value."""
    if identity not in file.partition:
        return file.bounds.get(identity)
    value = file.partition[identity]
    if value is None:
        return Bounds(nulls=file.rows)
    return Bounds(value, value, 0)


def _texts(known: Bounds, dtype: pa.DataType) -> tuple[str, str] | None:
    if known.low is None or known.high is None or not is_eligible(dtype):
        return None
    try:
        array = pa.array([_value(known.low, dtype), _value(known.high, dtype)], dtype)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError, OverflowError):
        return None
    if pa.types.is_floating(dtype) and any(v.as_py() != v.as_py() for v in array):
        return None
    found = ColumnStatistics(dtype, bounded=True)
    found.add(array)
    return found.texts()


def _value(value: Any, dtype: pa.DataType) -> Any:
    if isinstance(value, str) and not pa.types.is_string(dtype):
        return pa.scalar(value).cast(dtype).as_py()
    if isinstance(value, datetime.datetime) and pa.types.is_timestamp(dtype):
        return value if dtype.tz or value.tzinfo is None else value.replace(tzinfo=None)
    return Decimal(value) if pa.types.is_decimal(dtype) and isinstance(value, int) else value
