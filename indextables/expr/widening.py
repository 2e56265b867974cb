"""Casts that change no value, so that comparing after them is comparing before them.

INT32 and smaller fit a DOUBLE exactly, INT16 and smaller a FLOAT. A DATE becomes the first moment
of its day, which keeps the order and every difference.
"""

from __future__ import annotations

import pyarrow as pa

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}


def is_widening(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether ``CAST(source AS target)`` keeps every value apart and in order, and never fails."""
    t = pa.types
    if source == target:
        return True
    if t.is_integer(source):
        return _integer_fits(source, target)
    if t.is_decimal(source) and t.is_decimal(target):
        whole, target_whole = source.precision - source.scale, target.precision - target.scale
        return bool(target.scale >= source.scale and target_whole >= whole)
    if t.is_float32(source):
        return bool(t.is_float64(target))
    return bool(t.is_date(source) and t.is_timestamp(target))


def _integer_fits(source: pa.DataType, target: pa.DataType) -> bool:
    t = pa.types
    if t.is_integer(target):
        return bool(target.bit_width > source.bit_width)
    if t.is_decimal(target):
        return bool(target.precision - target.scale >= _DIGITS[source.bit_width])
    if t.is_float64(target):
        return bool(source.bit_width <= 32)
    return bool(t.is_float32(target) and source.bit_width <= 16)
