"""Arrow values made from buffers, for what the first query of a process needs.

``pa.array`` and ``pa.scalar`` import pandas wherever it is installed, to recognise objects of it:
a third of a second of processor time before the first answer. Code on the way of a query therefore
makes its arrays here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def text_array(texts: Sequence[str | None]) -> pa.StringArray:
    """``pa.array(texts, pa.string())``."""
    raw = [b"" if text is None else text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, raw)], dtype=np.int32)
    valid = None
    if None in texts:
        present = np.array([text is not None for text in texts], np.bool_)
        valid = pa.py_buffer(np.packbits(present, bitorder="little"))
    data = pa.py_buffer(b"".join(raw))
    return pa.Array.from_buffers(pa.string(), len(raw), [valid, pa.py_buffer(ends), data])


def number_array(values: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """``pa.array(values, mask=nulls)`` of integers or floats."""
    whole = np.ascontiguousarray(values)
    dtype = pa.from_numpy_dtype(whole.dtype)
    valid = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(dtype, len(whole), [valid, pa.py_buffer(whole)])


def optional_numbers(values: Sequence[int | float | None], dtype: Any) -> pa.Array:
    """``pa.array(values, dtype)``; a number that does not fit is an ``OverflowError``."""
    nulls = np.array([value is None for value in values], np.bool_)
    return number_array(np.array([value or 0 for value in values], dtype), nulls)


def numbers_of(values: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """``values.to_numpy()`` of integers or floats without NULLs."""
    parts = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    dtype = np.dtype(values.type.to_pandas_dtype())
    found = [
        np.frombuffer(part.buffers()[1], dtype, part.offset + len(part))[part.offset :]
        for part in parts
        if len(part)
    ]
    return found[0] if len(found) == 1 else np.concatenate([np.empty(0, dtype), *found])


def flag_array(values: NDArray[np.bool_]) -> pa.BooleanArray:
    """``pa.array(values)`` of booleans."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def flags_of(values: pa.BooleanArray) -> NDArray[np.bool_]:
    """Where a column of booleans is TRUE; NULL is not."""
    valid, bits = values.buffers()
    found = _bits(bits, values)
    return found if valid is None else found & _bits(valid, values)


def _bits(buffer: Any, values: pa.Array) -> NDArray[np.bool_]:
    packed = np.frombuffer(buffer, np.uint8)
    plain = np.unpackbits(packed, count=values.offset + len(values), bitorder="little")
    return plain[values.offset :].view(np.bool_)


def scalar_of(value: Any, dtype: pa.DataType) -> pa.Scalar:
    """``pa.scalar(value, dtype)``."""
    if value is None:
        return pa.nulls(1, dtype)[0]
    if isinstance(value, str) and pa.types.is_string(dtype):
        return text_array([value])[0]
    if isinstance(value, bool) and pa.types.is_boolean(dtype):
        return flag_array(np.array([value]))[0]
    if type(value) in (int, float) and (pa.types.is_integer(dtype) or pa.types.is_floating(dtype)):
        try:
            made = np.array([value], dtype.to_pandas_dtype())
        except OverflowError:
            return pa.scalar(value, dtype)
        if made[0] == value or value != value:
            return pa.Array.from_buffers(dtype, 1, [None, pa.py_buffer(made)])[0]
    return pa.scalar(value, dtype)


NEVER, ALWAYS = (flag_array(np.array([flag]))[0] for flag in (False, True))
"""The boolean scalars."""
