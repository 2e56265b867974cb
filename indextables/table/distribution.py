"""Aggregates that need every value: distinct counts, medians, percentiles; all of them exact.

They are read off a distribution: how often each value occurs in each group. A percentile is
Spark's: at position ``(n - 1) * p`` of the values in order, between two of them in proportion. NULL
does not count; NaN is the largest number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.errors import PlanningError
from indextables.types import type_name

if TYPE_CHECKING:
    from indextables.splits.read.partials import Aggregation
    from indextables.table.grouping import Measure

_NAN = object()


def check(measure: Measure, types: Aggregation) -> None:
    """Refuse percentiles of what is no number."""
    dtype = types.dtype(measure.column or "")
    t = pa.types
    number = t.is_integer(dtype) or t.is_floating(dtype) or t.is_decimal(dtype)
    if measure.kind != "count_distinct" and not number:
        raise PlanningError(f"{measure.name}: {type_name(dtype)} is not a number")


def results(
    kind: str, place: float | None, counted: pa.Table, found: pa.Table, keys: int
) -> pa.Array:
    """One result for each group of ``found``; ``counted`` has its keys, the value and a count."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(_keys(counted, keys)):
        groups.setdefault(key, []).append(row)
    values = counted.column(keys).combine_chunks()
    present = values.is_valid().to_numpy(zero_copy_only=False)
    order = [np.asarray(groups.get(key, []), np.int64) for key in _keys(found, keys)]
    if kind == "count_distinct":
        return pa.array([int(present[rows].sum()) for rows in order], pa.int64())
    numbers = values.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy()
    counts = counted.column(keys + 1).to_numpy()
    made = [_percentile(numbers, counts, rows[present[rows]], place or 0.0) for rows in order]
    return pa.array(made, pa.float64())


def _keys(table: pa.Table, keys: int) -> Iterator[tuple[Any, ...]]:
    if not keys:
        return iter([()] * table.num_rows)
    columns = ([_comparable(v) for v in table.column(i).to_pylist()] for i in range(keys))
    return zip(*columns, strict=True)


def _comparable(value: Any) -> Any:
    return _NAN if isinstance(value, float) and math.isnan(value) else value


def _percentile(
    numbers: NDArray[Any], counts: NDArray[Any], rows: NDArray[np.int64], place: float
) -> float | None:
    if not len(rows):
        return None
    rows = rows[np.argsort(numbers[rows], kind="stable")]
    ends = np.cumsum(counts[rows])
    position = (int(ends[-1]) - 1) * place
    low, high = math.floor(position), math.ceil(position)
    first = float(numbers[rows[np.searchsorted(ends, low, side="right")]])
    if low == high:
        return first
    second = float(numbers[rows[np.searchsorted(ends, high, side="right")]])
    return first if first == second else (high - position) * first + (position - low) * second
