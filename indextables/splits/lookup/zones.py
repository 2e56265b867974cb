"""Zones: the least and greatest number of every 4,096 rows of a column.

Numbers are not fed to the index: the rows hold them already, packed, and a column is decoded
faster than an index answers a wide range. What a narrow range needs is to know which rows not to
look at. So each zone of rows has its bounds, as the 64-bit integers by which a column is compared
(``number_keys``); a zone whose bounds exclude a range holds no row of it. Rows of the other zones
are candidates and are verified.

    "ITXZONE1"  u32 rows of a zone  u32 zones z  u32 columns
    for each column:  u32 number of the column  i64 least[z]  i64 greatest[z]

A zone without a value has a least number above its greatest. Doubles are ordered by their bits:
one zero, and one NaN above infinity.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.errors import CorruptFileError

ZONE_ROWS = 4096
INT64 = (-(2**63), 2**63 - 1)
_HEADER = struct.Struct("<8sIII")
_MAGIC = b"ITXZONE1"
_MASK = np.int64(INT64[1])

Numbers = NDArray[np.int64]


# -- numbers in order ----------------------------------------------------------------------------


def physical_integers(column: Any) -> Any:
    """The 64-bit integers by which a column of integers, times or short decimals is compared."""
    dtype = column.type
    if pa.types.is_decimal(dtype):
        return unscaled_integers(column)
    if pa.types.is_date(dtype):
        column = column.cast(pa.int32())
    return column.cast(pa.int64())


def unscaled_integers(column: Any) -> Any:
    """The unscaled integers of decimals of at most 18 digits: the low words of their storage."""
    words = np.frombuffer(column.buffers()[1], np.int64)
    low = words[2 * column.offset : 2 * (column.offset + len(column)) : 2]
    mask = None
    if column.null_count:
        mask = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(low, pa.int64(), mask=mask)


def double_keys(values: NDArray[np.float64]) -> Numbers:
    """Integers in the order of doubles: one zero, one NaN above infinity."""
    one_zero = values + 0.0
    one_zero[np.isnan(one_zero)] = np.nan
    bits = np.abs(one_zero).view(np.int64)
    return np.where(np.signbit(one_zero) & ~np.isnan(one_zero), ~bits, bits)


def double_key(value: float) -> int:
    return int(double_keys(np.array([value], np.float64))[0])


def number_keys(column: Any) -> Any:
    """The integers by which a column is compared, NULL where it is."""
    if not pa.types.is_floating(column.type):
        return physical_integers(column)
    values = column.cast(pa.float64())
    keys = double_keys(pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False))
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(keys, pa.int64(), mask=mask)


# -- writing -------------------------------------------------------------------------------------


class ZoneBuilder:
    """Bounds of the zones of some columns, array by array."""

    def __init__(self, columns: Mapping[str, int]) -> None:
        """``columns`` gives each column its number."""
        self._columns = dict(columns)
        self._ends: dict[str, list[tuple[Numbers, Numbers]]] = {c: [] for c in columns}
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """The next rows of the split."""
        edges = np.arange(-(self._rows % ZONE_ROWS), batch.num_rows, ZONE_ROWS)
        edges[0] = 0
        for column, ends in self._ends.items():
            keys = number_keys(batch.column(column))
            least = pc.fill_null(keys, INT64[1]).to_numpy(zero_copy_only=False)
            greatest = pc.fill_null(keys, INT64[0]).to_numpy(zero_copy_only=False)
            found = np.minimum.reduceat(least, edges), np.maximum.reduceat(greatest, edges)
            if self._rows % ZONE_ROWS:
                last = ends[-1]
                last[0][-1] = min(last[0][-1], found[0][0])
                last[1][-1] = max(last[1][-1], found[1][0])
                found = found[0][1:], found[1][1:]
            if len(found[0]):
                ends.append(found)
        self._rows += batch.num_rows

    def finish(self) -> bytes:
        zones = -(-self._rows // ZONE_ROWS)
        parts = [_HEADER.pack(_MAGIC, ZONE_ROWS, zones, len(self._columns))]
        for column, ends in self._ends.items():
            parts.append(struct.pack("<I", self._columns[column]))
            parts += [np.concatenate([e[side] for e in ends]).tobytes() for side in (0, 1)]
        return b"".join(parts)


# -- reading -------------------------------------------------------------------------------------


class Zones:
    """The bounds of one column's zones."""

    def __init__(self, least: Numbers, greatest: Numbers) -> None:
        self._least = least
        self._greatest = greatest

    def __len__(self) -> int:
        return len(self._least)

    def between(self, first: int, last: int) -> Numbers:
        """Zones that may hold a number of the range, both ends included."""
        return np.flatnonzero((self._least <= last) & (self._greatest >= first))

    def holding(self, values: Numbers) -> Numbers:
        """Zones that may hold one of the numbers."""
        ordered = np.sort(values)
        first = np.searchsorted(ordered, self._least, "left")
        last = np.searchsorted(ordered, self._greatest, "right")
        return np.flatnonzero(first < last)


def parse_zones(raw: bytes, num_rows: int, path: str) -> dict[int, Zones]:
    """The zones by column number, of a member that passed its checksum."""
    try:
        magic, rows, zones, columns = _HEADER.unpack_from(raw)
        if magic != _MAGIC or rows != ZONE_ROWS or zones != -(-num_rows // ZONE_ROWS):
            raise ValueError("not the zones of this split")
        size = 4 + 16 * zones
        if len(raw) != _HEADER.size + columns * size:
            raise ValueError("lengths do not fit")
        found = {}
        for at in range(_HEADER.size, len(raw), size):
            (number,) = struct.unpack_from("<I", raw, at)
            ends = np.frombuffer(raw, "<i8", 2 * zones, at + 4)
            found[number] = Zones(ends[:zones], ends[zones:])
    except (ValueError, struct.error) as error:
        raise CorruptFileError(f"the zones do not parse ({error})", path=path) from error
    return found


def rows_of(zones: Numbers, num_rows: int) -> NDArray[np.uint32]:
    """The rows of some zones, ascending."""
    rows = (zones[:, None] * ZONE_ROWS + np.arange(ZONE_ROWS)).reshape(-1)
    return rows[rows < num_rows].astype(np.uint32)
