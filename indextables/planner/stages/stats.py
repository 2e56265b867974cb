"""Statistics texts of the log as typed columns, one value per split.

A bound is used only where it is provably one. Everything else is unknown, and unknown is an
interval without ends. Per type:

* whole numbers, dates, booleans, decimals: the text read exactly; decimals at the column's scale.
* timestamps: plain microseconds only from a writer that is known to write them, which is one that
  also counts nulls; other writers' numbers could be milliseconds or seconds. A text with its zone
  is an instant, one without a wall clock; what may have been cut off an upper text is added.
* FLOAT and DOUBLE: NaN is above every number and in no bound, so the upper end is NaN unless the
  split is known to hold none. A short text of a DOUBLE may stem from a FLOAT and covers both.
* strings: byte order; an upper text is a prefix unless the writer says that it is whole; see
  ``strings`` and ``text_ends``.

Nulls: a count of zero and a count of all rows are used, nothing between. "All rows" is believed
only beside no bounds, and not where deleted rows may have been counted (``tightBounds`` false).
Bounds that contradict each other are no bounds.

Typed columns are computed once per log segment and kept with the snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.log.read.columns import StringColumn
from indextables.log.read.facts import Fact
from indextables.log.read.view import SnapshotView, StatSource
from indextables.native import _bounds, _prune, _textbounds
from indextables.planner.stages.strings import KEY_MAX, KEY_MIN
from indextables.planner.stages.verdict import (
    ALL_NULL,
    EMPTY,
    HAS_HIGH,
    HAS_LOW,
    HIGH_OPEN,
    NO_NULL,
    Int64s,
    Verdicts,
)

ZONE = 1024
ZONES_ABOVE = 16 * ZONE
LONGEST_COMMON = 256


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Intervals of keys. With ``exact`` keys order as the values do; else ties decide nothing.

    Keys of strings are the eight bytes behind ``common``, the beginning that all of them share.
    """

    lows: Int64s
    highs: Int64s
    facts: Verdicts
    exact: bool = True
    common: bytes = b""

    def zones(self) -> KeyColumn:
        bounds = _prune.zone_bounds(self.lows, self.highs, self.facts, ZONE)
        return KeyColumn(*bounds, self.exact, self.common)


@dataclass(frozen=True, slots=True)
class TextBounds:
    """Intervals of strings; the keys are the eight bytes behind their ``common`` beginning."""

    lows: _prune.TextColumn
    highs: _prune.TextColumn
    low_keys: Int64s
    high_keys: Int64s
    facts: Verdicts
    common: bytes = b""

    def zones(self) -> KeyColumn:
        bounds = _prune.zone_bounds(self.low_keys, self.high_keys, self.facts, ZONE)
        return KeyColumn(*bounds, exact=False, common=self.common)


BoundsColumn = KeyColumn | TextBounds
BOUNDS: Fact[tuple[str, str], BoundsColumn] = Fact()
"""The typed bounds of a column, by its name and type."""
ZONES: Fact[tuple[str, str], KeyColumn] = Fact()
KEYS: Fact[tuple[str, str | None, int], Int64s] = Fact()
TEXTS: Fact[str, Int64s] = Fact()


def kind_of(dtype: pa.DataType) -> str | None:
    """How the statistics of a type are read; ``None``: they are not."""
    t = pa.types
    if t.is_integer(dtype):
        return "integer"
    if t.is_string(dtype):
        return "text"
    if t.is_float64(dtype):
        return "double"
    if t.is_float32(dtype):
        return "single"
    if t.is_date(dtype):
        return "date"
    if t.is_timestamp(dtype):
        return "wall_clock" if dtype.tz is None else "instant"
    if t.is_boolean(dtype):
        return "boolean"
    return "decimal" if t.is_decimal128(dtype) else None


def literal_key(kind: str, value: Any) -> int | None:
    """The key of a physical literal, or ``None`` when it lies where keys cannot follow."""
    if kind in ("double", "single"):
        return _bounds.double_key(float(value))
    key = int(value)
    edge = 1 if kind == "decimal" else 0
    return key if KEY_MIN + edge <= key <= KEY_MAX - edge else None


# -- nulls --------------------------------------------------------------------------------------


def _unknown(n: int) -> Int64s:
    return np.full(n, -1, np.int64)


def null_facts(
    source: StatSource, nulls: Int64s, nans: Int64s | None, bounded: npt.NDArray[np.bool_]
) -> tuple[Verdicts, npt.NDArray[np.bool_]]:
    """The facts that counts prove, and where counts of all rows can be believed."""
    rows = source.ints("numRecords")
    counted = rows > 0
    needed = (nulls > 0).any() or (nans is not None and (nans > 0).any())
    documents = source.texts("stats") if needed else None
    if documents is not None:
        loose = _textbounds.scan_loose(documents.data, documents.offsets, documents.valid)
        counted &= loose == 0
    facts = np.where(nulls == 0, NO_NULL, 0)
    facts |= np.where(counted & (nulls == rows) & ~bounded, ALL_NULL, 0)
    facts |= np.where(rows == 0, EMPTY, 0)
    return facts.astype(np.uint8), counted


# -- numbers ------------------------------------------------------------------------------------


def _keys(
    kind: str, scale: int, texts: StringColumn | None, out: Int64s, trusted: Verdicts, upper: bool
) -> npt.NDArray[np.bool_]:
    known = np.zeros(len(out), np.uint8)
    if texts is None:
        return known.astype(bool)
    buffers = texts.data, texts.offsets, texts.valid
    if kind in ("double", "single"):
        single = kind == "single"
        _bounds.parse_double_keys(*buffers, out, known, upper=upper, single=single)
    else:
        _bounds.parse_keys(kind, *buffers, out, known, trusted, scale=scale, upper=upper)
    return known.astype(bool)


def measure_keys(source: StatSource, column: str, kind: str | None, scale: int) -> Int64s:
    """Lower keys, upper keys and facts of each split, as three columns of one array."""
    n = source.n
    lows, highs = np.full(n, KEY_MIN, np.int64), np.full(n, KEY_MAX, np.int64)
    nulls = source.counts("nullCount", column)
    nulls = _unknown(n) if nulls is None else nulls
    bounded = np.zeros(n, bool)
    if kind is not None and kind != "text":
        trusted = (nulls >= 0).astype(np.uint8)
        has_low = _keys(kind, scale, source.map_texts("minValues", column), lows, trusted, False)
        has_high = _keys(kind, scale, source.map_texts("maxValues", column), highs, trusted, True)
        lows[~has_low], highs[~has_high] = KEY_MIN, KEY_MAX
        wrong = lows > highs
        lows[wrong], highs[wrong] = KEY_MIN, KEY_MAX
        bounded = has_low | has_high
    floating = kind in ("double", "single")
    nans = source.counts("nanCount", column) if floating else None
    facts, counted = null_facts(source, nulls, nans, bounded)
    if floating:
        _raise_to_nan(nans, nulls, source.ints("numRecords"), counted & ~bounded, lows, highs)
    return np.column_stack((lows, highs, facts.astype(np.int64)))


def _raise_to_nan(
    nans: Int64s | None,
    nulls: Int64s,
    rows: Int64s,
    counted: npt.NDArray[np.bool_],
    lows: Int64s,
    highs: Int64s,
) -> None:
    """NaN is the upper end unless there is none; a split of nothing else is all NaN."""
    if nans is None:
        highs[:] = KEY_MAX
        return
    highs[nans != 0] = KEY_MAX
    only_nan = counted & (nans > 0) & (nulls >= 0) & (nans + nulls == rows)
    lows[only_nan] = KEY_MAX


# -- strings ------------------------------------------------------------------------------------


def measure_text(source: StatSource, column: str) -> Int64s:
    """Sizes and keys of both texts, and facts, as five columns of one array."""
    n = source.n
    nulls = source.counts("nullCount", column)
    nulls = _unknown(n) if nulls is None else nulls
    ordered = (nulls >= 0).astype(np.uint8)
    low_size, low_key, has_low, _ = _ends(
        source.map_texts("minValues", column), n, None, ordered, False
    )
    high = source.map_texts("maxValues", column)
    whole = _whole(source, column) if high is not None else None
    high_size, high_key, has_high, is_open = _ends(high, n, whole, ordered, True)
    low_key[~has_low], high_key[~has_high] = KEY_MIN, KEY_MAX
    wrong = low_key > high_key
    has_low &= ~wrong
    has_high &= ~wrong
    low_key[wrong], high_key[wrong] = KEY_MIN, KEY_MAX
    bounded = has_low | has_high | wrong
    facts = null_facts(source, nulls, None, bounded)[0].astype(np.int64)
    facts |= np.where(has_low, HAS_LOW, 0) | np.where(has_high, HAS_HIGH, 0)
    facts |= np.where(is_open, HIGH_OPEN, 0)
    return np.column_stack((low_size, low_key, high_size, high_key, facts))


def _whole(source: StatSource, column: str) -> Verdicts:
    """1 where the writer says that it did not cut the column's maximum."""
    documents = source.texts("stats")
    if documents is None:
        return np.zeros(source.n, np.uint8)
    cut = _textbounds.scan_truncated(
        documents.data, documents.offsets, documents.valid, column.encode()
    )
    whole: Verdicts = (cut == 0).astype(np.uint8)
    return whole


def _ends(
    texts: StringColumn | None, n: int, whole: Verdicts | None, ordered: Verdicts, upper: bool
) -> tuple[Int64s, Int64s, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    sizes, keys = np.zeros(n, np.int64), np.zeros(n, np.int64)
    known, is_open = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    if texts is not None:
        whole = np.zeros(n, np.uint8) if whole is None else whole
        buffers = texts.data, texts.offsets, texts.valid
        _textbounds.text_ends(*buffers, whole, ordered, sizes, keys, known, is_open, upper=upper)
    return sizes, keys, known.astype(bool), is_open.astype(bool)


# -- columns of a snapshot ----------------------------------------------------------------------


def bounds_of(snapshot: SnapshotView, column: str, dtype: pa.DataType) -> BoundsColumn:
    """The typed bounds of a column, computed once per snapshot."""

    def compute() -> BoundsColumn:
        found = _text_bounds(snapshot, column) if kind_of(dtype) == "text" else None
        return found or _key_bounds(snapshot, column, dtype)

    return BOUNDS.of(snapshot, (column, str(dtype)), compute)


def zones_of(snapshot: SnapshotView, column: str, dtype: pa.DataType) -> KeyColumn:
    """The same over runs of ``ZONE`` splits."""
    key = (column, str(dtype))
    return ZONES.of(snapshot, key, lambda: bounds_of(snapshot, column, dtype).zones())


def _key_bounds(snapshot: SnapshotView, column: str, dtype: pa.DataType) -> KeyColumn:
    kind = kind_of(dtype)
    scale = dtype.scale if kind == "decimal" else 0
    parts = snapshot.derive(
        KEYS, (column, kind, scale), lambda source: measure_keys(source, column, kind, scale)
    )
    parts = parts.reshape(-1, 3)
    lows, highs = np.ascontiguousarray(parts[:, 0]), np.ascontiguousarray(parts[:, 1])
    return KeyColumn(lows, highs, parts[:, 2].astype(np.uint8), exact=kind != "text")


def _text_bounds(snapshot: SnapshotView, column: str) -> TextBounds | None:
    ends = snapshot.stat_column("min", column), snapshot.stat_column("max", column)
    if ends == (None, None):
        return None
    parts = snapshot.derive(TEXTS, column, lambda source: measure_text(source, column))
    facts = parts[:, 4].astype(np.uint8)
    low = _End.of(ends[0], parts[:, 0], parts[:, 1], facts & HAS_LOW != 0)
    high = _End.of(ends[1], parts[:, 2], parts[:, 3], facts & HAS_HIGH != 0)
    is_open = (facts & HIGH_OPEN != 0).view(np.uint8)
    common = _shared_beginning((low, high))
    if common:
        low.place_behind(common, np.zeros_like(is_open))
        high.place_behind(common, is_open)
    return TextBounds(low.column(), high.column(), low.keys, high.keys, facts, common)


@dataclass(frozen=True, slots=True)
class _End:
    """The lower or the upper texts of a column."""

    data: npt.NDArray[np.uint8]
    starts: Int64s
    sizes: Int64s
    keys: Int64s
    known: Verdicts

    @classmethod
    def of(
        cls, texts: StringColumn | None, sizes: Int64s, keys: Int64s, known: npt.NDArray[np.bool_]
    ) -> _End:
        data = np.zeros(0, np.uint8) if texts is None else texts.data
        starts = np.zeros(len(sizes), np.int64) if texts is None else texts.offsets[:-1]
        starts, sizes = np.ascontiguousarray(starts), np.ascontiguousarray(sizes)
        return cls(data, starts, sizes, keys.copy(), known.view(np.uint8))

    def place_behind(self, common: bytes, is_open: Verdicts) -> None:
        """Make the keys of what follows the common beginning."""
        buffers = self.data, self.starts, self.sizes, self.known, is_open
        _textbounds.text_keys(*buffers, len(common), self.keys)

    def column(self) -> _prune.TextColumn:
        return _prune.TextColumn(self.data, self.starts, self.sizes, self.keys)


def _shared_beginning(ends: tuple[_End, _End]) -> bytes:
    """What every known text of a column starts with."""
    shared: bytes | None = None
    for end in ends:
        if not end.known.any():
            continue
        if shared is None:
            first = int(np.argmax(end.known))
            size = min(int(end.sizes[first]), LONGEST_COMMON)
            shared = end.data[end.starts[first] : end.starts[first] + size].tobytes()
        count = _textbounds.common_prefix(end.data, end.starts, end.sizes, end.known, shared)
        shared = shared[:count]
    return shared or b""
