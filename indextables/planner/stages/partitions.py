"""Partition values: one known value for all rows of a split.

A partition column's test is decided, not estimated: it is TRUE, FALSE or NULL for the whole
split, so it is ``MUST_MATCH`` or ``CANNOT_MATCH`` (NULL is not TRUE) and leaves nothing to check
in the split. Values are compared typed: month 9 is before month 10, ``1.50`` is ``1.5``.

Splits share few distinct values, so a test is decided once per distinct value and then looked up
by code. NULL is a missing value or the marker; the empty text is the empty string in a column of
strings, as reading the split gives it. A text that is not a value of the column's type (the empty
one of a number, say) decides nothing.

The bounds that manifests store are not consulted: old writers ordered numbers as text (months
``1`` to ``12`` have the stored maximum ``9``). The span of codes of each run of splits does the
same work and is computed from the values themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.expr.evaluate import matching_rows
from indextables.expr.predicate import Column, ColumnTest, Like, NullTest, StringMatch
from indextables.log.actions import NULL_PARTITION
from indextables.log.read.facts import Fact
from indextables.log.read.view import SnapshotView
from indextables.native import _bounds, _prune, _textbounds
from indextables.planner.stages import stats
from indextables.planner.stages.ranges import ranges_of
from indextables.planner.stages.stats import (
    BoundsColumn,
    KeyColumn,
    TextBounds,
    kind_of,
)
from indextables.planner.stages.strings import KEY_MAX, KEY_MIN
from indextables.planner.stages.verdict import (
    ALL_NULL,
    CANNOT_MATCH,
    HAS_HIGH,
    HAS_LOW,
    MAY_MATCH,
    MUST_MATCH,
    NO_NULL,
    Verdicts,
    all_may_match,
)


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """Codes of the splits, and the distinct values as intervals of one point each."""

    codes: npt.NDArray[np.int32]
    texts: list[str | None]
    values: BoundsColumn
    zone_lows: npt.NDArray[np.int32]
    zone_highs: npt.NDArray[np.int32]

    @property
    def facts(self) -> Verdicts:
        return self.values.facts


COLUMNS: Fact[tuple[str, str], PartitionColumn] = Fact()


def partition_of(snapshot: SnapshotView, column: Column) -> PartitionColumn:
    """The typed partition column, computed once per snapshot."""

    def compute() -> PartitionColumn:
        codes, texts = snapshot.partition_codes(_logged_name(snapshot, column.root))
        codes = np.ascontiguousarray(codes, np.int32)
        texts = [None if t == NULL_PARTITION else t for t in texts]
        zones = _prune.zone_codes(codes, stats.ZONE)
        return PartitionColumn(codes, texts, typed_values(texts, column.dtype), *zones)

    return COLUMNS.of(snapshot, (column.root, str(column.dtype)), compute)


def _logged_name(snapshot: SnapshotView, name: str) -> str:
    """The column as the log spells it; the schema may differ in case."""
    spelled = {p.lower(): p for p in snapshot.stored_partition_columns}
    return str(spelled.get(name.lower(), name))


def typed_values(texts: list[str | None], dtype: pa.DataType) -> BoundsColumn:
    """Distinct partition values as points; NULL as "no value", the unreadable as "unknown"."""
    kind = kind_of(dtype)
    is_null = np.array([t is None for t in texts], bool)
    if kind == "text":
        return _text_points(texts, is_null)
    n = len(texts)
    lows, highs = np.full(n, KEY_MIN, np.int64), np.full(n, KEY_MAX, np.int64)
    known = np.zeros(n, bool)
    if kind is not None and n:
        scale = dtype.scale if kind == "decimal" else 0
        known = _parse_points(kind, scale, texts, lows, highs)
    facts = np.where(is_null, ALL_NULL, np.where(known, NO_NULL, 0)).astype(np.uint8)
    return KeyColumn(lows, highs, facts)


def _parse_points(
    kind: str, scale: int, texts: list[str | None], lows: Any, highs: Any
) -> npt.NDArray[np.bool_]:
    n = len(texts)
    buffers = _buffers(texts)
    known, also = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    if kind in ("double", "single"):
        single = kind == "single"
        for out, flag, upper in ((lows, known, False), (highs, also, True)):
            _bounds.parse_double_keys(
                *buffers, out, flag, upper=upper, single=single, as_bound=False
            )
        _add_nan(texts, lows, known, also)
    else:
        kind = "partition_time" if kind in ("instant", "wall_clock") else kind
        trusted = np.zeros(n, np.uint8)
        for out, flag, upper in ((lows, known, False), (highs, also, True)):
            _bounds.parse_keys(kind, *buffers, out, flag, trusted, scale=scale, upper=upper)
    both: npt.NDArray[np.bool_] = (known & also).astype(bool) & (lows == highs)
    lows[~both], highs[~both] = KEY_MIN, KEY_MAX
    return both


def _add_nan(texts: list[str | None], lows: Any, known: Verdicts, also: Verdicts) -> None:
    for i, text in enumerate(texts):
        if text is not None and text.lower() == "nan":
            lows[i] = KEY_MAX
            known[i] = also[i] = 1


def _buffers(texts: list[str | None]) -> tuple[Any, Any, Any]:
    encoded = [b"" if t is None else t.encode() for t in texts]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(e) for e in encoded], out=offsets[1:])
    data = np.frombuffer(b"".join(encoded), np.uint8)
    valid = np.array([t is not None for t in texts], np.uint8)
    return data, offsets, valid


def _text_points(texts: list[str | None], is_null: npt.NDArray[np.bool_]) -> TextBounds:
    n = len(texts)
    data, offsets, _ = _buffers(texts)
    sizes, keys = np.zeros(n, np.int64), np.zeros(n, np.int64)
    known, is_open = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    usable = np.array([t is not None for t in texts], np.uint8)
    sure = np.ones(n, np.uint8)
    _textbounds.text_ends(
        data, offsets, usable, sure, sure, sizes, keys, known, is_open, upper=True
    )
    facts = np.where(is_null, ALL_NULL, np.where(known, NO_NULL | HAS_LOW | HAS_HIGH, 0))
    low_keys, high_keys = np.where(known, keys, KEY_MIN), np.where(known, keys, KEY_MAX)
    starts = np.ascontiguousarray(offsets[:-1])
    lows, highs = (_prune.TextColumn(data, starts, sizes, k) for k in (low_keys, high_keys))
    return TextBounds(lows, highs, low_keys, high_keys, facts.astype(np.uint8))


# -- tests --------------------------------------------------------------------------------------


def partition_table(column: PartitionColumn, leaf: ColumnTest) -> Verdicts:
    """The verdict of a leaf for each distinct value."""
    if isinstance(leaf, NullTest):
        return _prune.test_nulls(column.facts, None, leaf.is_null)
    ranges = ranges_of(leaf)
    if ranges is not None and ranges.on_inside != MAY_MATCH:
        return ranges.verdicts(column.values, None)
    if isinstance(leaf, StringMatch | Like) and isinstance(column.values, TextBounds):
        return _match_each(column, leaf)
    return all_may_match(len(column.texts))


def _match_each(column: PartitionColumn, leaf: StringMatch | Like) -> Verdicts:
    """Patterns without an order are tested against each distinct value."""
    values = pa.record_batch({leaf.column.root: pa.array(column.texts, pa.string())})
    table: Verdicts = np.full(len(column.texts), CANNOT_MATCH, np.uint8)
    try:
        table[matching_rows(leaf, values)] = MUST_MATCH
    except UnicodeEncodeError:  # half a surrogate pair in the pattern
        return all_may_match(len(column.texts))
    return table
