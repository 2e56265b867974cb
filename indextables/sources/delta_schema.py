"""Columns and statistics of a Delta table.

The identity of a column is its physical name: with column mapping it is given once and never
again, without it is the name. In the mode ``id`` files are read by field id, in the others by
physical name.

Statistics are bounds, not values. A maximum of text may be cut off: writers that do so end it with
a character that sorts after all others, and where that is not seen, a text that is as long as the
limit proves nothing. Timestamps are cut to milliseconds. Numbers of 32 bits are printed shorter
than they are. Counts of NULL under wide bounds (files with deletion vectors) are exact only where
they say "none" or "all".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.errors import CorruptFileError, ProtocolError, SchemaMismatchError
from indextables.sources.base import Bounds, SourceColumn, nested_field
from indextables.types import type_from_json

MODE = "delta.columnMapping.mode"
PHYSICAL = "delta.columnMapping.physicalName"
_ID = "delta.columnMapping.id"
_CHANGES = "delta.typeChanges"
_PREFIX = "delta.dataSkippingStringPrefixLength"
_LONGEST = 32
_TIES = ("\u7fff", "\U0010ffff", "\x7f")
_CUT = timedelta(microseconds=999)


def columns_of(metadata: Mapping[str, Any], mapped: bool) -> list[SourceColumn]:
    """The columns that the metadata of a Delta table describes."""
    mode = (metadata.get("configuration") or {}).get(MODE, "none") if mapped else "none"
    if mode not in ("none", "name", "id"):
        raise ProtocolError(f"the column mapping mode '{mode}' is not known")
    try:
        fields = json.loads(metadata["schemaString"])["fields"]
        return [_column(node, mode) for node in fields]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise CorruptFileError(f"the schema of the Delta table does not parse: {error!r}") from None


def _column(node: Mapping[str, Any], mode: str) -> SourceColumn:
    notes = node.get("metadata") or {}
    physical = node["name"] if mode == "none" else notes[PHYSICAL]
    try:
        dtype = _type(node["type"], mode)
    except SchemaMismatchError as error:
        raise ProtocolError(f"column '{node['name']}': {error.message}") from error
    return SourceColumn(
        node["name"],
        dtype,
        physical,
        physical,
        field_id=int(notes[_ID]) if mode == "id" else None,
        nullable=bool(node.get("nullable", True)),
        comment=notes.get("comment"),
    )


def _type(node: Any, mode: str) -> pa.DataType:
    if isinstance(node, str):
        return type_from_json(node)
    kind = node["type"]
    if kind == "struct":
        return pa.struct([_field(f, mode) for f in node["fields"]])
    if kind == "array":
        return pa.list_(pa.field("element", _type(node["elementType"], mode)))
    if kind == "map":
        value = pa.field("value", _type(node["valueType"], mode))
        return pa.map_(_type(node["keyType"], mode), value)
    return type_from_json(node)


def _field(node: Mapping[str, Any], mode: str) -> pa.Field:
    notes = node.get("metadata") or {}
    names = [node["name"] if mode == "none" else notes[PHYSICAL]]
    field_id = int(notes[_ID]) if mode == "id" else None
    return nested_field(node["name"], _type(node["type"], mode), field_id=field_id, names=names)


# -- partition values -----------------------------------------------------------------------------


def partition_value(text: str | None, dtype: pa.DataType) -> Any:
    """A value of ``partitionValues``; no text and the empty text are NULL."""
    t = pa.types
    if text is None or text == "":
        return None
    if t.is_string(dtype):
        return text
    if t.is_binary(dtype):
        return text.encode()
    try:
        if t.is_boolean(dtype):
            return {"true": True, "false": False}[text.lower()]
        if t.is_timestamp(dtype):
            return _moment(text, dtype)
        return pa.scalar(text, pa.string()).cast(dtype).as_py()
    except (ValueError, KeyError) as error:
        raise CorruptFileError(f"the partition value {text!r} is no {dtype}: {error}") from None


def _moment(text: str, dtype: pa.DataType) -> datetime:
    found = datetime.fromisoformat(text)
    if dtype.tz is None:
        return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


# -- statistics -----------------------------------------------------------------------------------


class StatsReader:
    """Bounds out of the statistics of one table's files."""

    def __init__(self, columns: list[SourceColumn], metadata: Mapping[str, Any]) -> None:
        configured = str((metadata.get("configuration") or {}).get(_PREFIX, _LONGEST))
        limit = min(_LONGEST, int(configured)) if configured.isdigit() else _LONGEST
        changed = _CHANGES in metadata.get("schemaString", "")
        self._columns = {c.physical: c for c in columns}
        self._how = limit, changed

    def bounds(self, stats: Mapping[str, Any]) -> dict[str, Bounds]:
        """By identity what the statistics of a file say."""
        lows, highs = _object(stats.get("minValues")), _object(stats.get("maxValues"))
        counts, rows = _object(stats.get("nullCount")), stats.get("numRecords")
        wide = stats.get("tightBounds") is False
        found = {}
        for name in {**lows, **highs, **counts}:
            column = self._columns.get(name)
            if column is None:
                continue
            nulls = counts.get(name)
            if not isinstance(nulls, int) or (wide and nulls not in (0, rows)):
                nulls = None
            low = bound(lows.get(name), False, column.type, *self._how)
            high = bound(highs.get(name), True, column.type, *self._how)
            if (low, high, nulls) != (None, None, None):
                found[column.identity] = Bounds(low, high, nulls)
        return found


def parsed_stats(text: str | None) -> Mapping[str, Any]:
    """The statistics of an ``add``; none where they are not JSON."""
    try:
        return _object(json.loads(text, parse_float=Decimal)) if text else {}
    except (ValueError, RecursionError):
        return {}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


class LazyBounds(Mapping[str, Bounds]):
    """Bounds that are parsed when one is asked for."""

    def __init__(self, text: str | None, parsed: Any, reader: StatsReader) -> None:
        self._text, self._parsed, self._reader = text, parsed, reader
        self._found: dict[str, Bounds] | None = None

    def _all(self) -> dict[str, Bounds]:
        if self._found is None:
            stats = parsed_stats(self._text) if self._text else _object(self._parsed)
            self._found = self._reader.bounds(stats)
        return self._found

    def __getitem__(self, identity: str) -> Bounds:
        return self._all()[identity]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __reduce__(self) -> Any:
        return dict, (self._all(),)


def _float(value: Any, high: bool, narrow: bool) -> float | None:
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        return None
    exact = float(value)
    if exact != exact:
        return None
    both = (exact, float(np.float32(exact))) if narrow else (exact,)
    return max(both) if high else min(both)


def _text(value: Any, high: bool, limit: int) -> str | None:
    if not isinstance(value, str):
        return None
    cut_off = high and len(value) >= limit and not value.endswith(_TIES)
    return None if cut_off else value


def _time(value: Any, high: bool, dtype: pa.DataType) -> datetime | None:
    if isinstance(value, datetime):
        found = value if value.tzinfo or dtype.tz is None else value.replace(tzinfo=UTC)
    else:
        found = _moment(value, dtype)
    return found + _CUT if high else found


def _date(value: Any) -> date | None:
    return value if isinstance(value, date) else date.fromisoformat(value[:10])


def _decimal(value: Any, dtype: pa.DataType) -> Decimal | None:
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        return None
    return Decimal(value)


def bound(value: Any, high: bool, dtype: pa.DataType, limit: int, changed: bool) -> Any:
    """What a number or text of the statistics proves; ``None`` where it proves nothing."""
    t = pa.types
    try:
        if value is None:
            return None
        if t.is_integer(dtype):
            return value if isinstance(value, int) and not isinstance(value, bool) else None
        if t.is_floating(dtype):
            return _float(value, high, t.is_float32(dtype) or changed)
        if t.is_decimal(dtype):
            return _decimal(value, dtype)
        if t.is_string(dtype):
            return _text(value, high, limit)
        if t.is_date(dtype):
            return _date(value)
        return _time(value, high, dtype) if t.is_timestamp(dtype) else None
    except (ValueError, ArithmeticError, TypeError):
        return None
