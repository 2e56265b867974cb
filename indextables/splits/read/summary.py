"""Aggregates and first rows of a split from its indexes alone.

``count``, ``min`` and ``max`` of indexed columns, without groups, need the ends of each index.
Grouped by one indexed column, with metrics of that column or of rows, they need its values and how
often each occurs: this is also how distinct values are listed. The first rows in the order of a
column are those of its first values. All of this holds for whole splits only; where a filter is
left to check, an index is missing, damaged or of another kind than the column now is, the answer is
``None`` and the caller reads rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.splits.lookup.colindex.asking import ColumnIndexes
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.metrics import HIT, METRICS
from indextables.splits.lookup.colindex.opening import UNREADABLE, report_broken
from indextables.splits.lookup.colindex.postings import Keys, Rows, TextKeys
from indextables.splits.lookup.colindex.predicates import Exact
from indextables.splits.lookup.colindex.values import MAGNITUDE, NAN_BITS, Kind
from indextables.splits.read.partials import (
    Aggregation,
    Partial,
    Terms,
    group_states,
    state_columns,
)

FROM_ENDS = ("count", "min", "max")


def summarize(
    indexes: ColumnIndexes,
    aggregation: Aggregation,
    in_rows: Callable[[str], str | None] = str,
) -> Partial | None:
    """The aggregates of all rows of a split; ``None``: its indexes cannot tell.

    ``in_rows`` says what the split calls a column.
    """
    if not _covered(aggregation):
        return None
    opened: dict[str, ColumnIndex] = {}
    for column in aggregation.columns():
        index = indexes.of(in_rows(column) or column, aggregation.dtype(column))
        if index is None:
            return None
        opened[column] = index
    try:
        found = _grouped(opened, aggregation) if aggregation.groups else _whole(opened, aggregation)
    except UNREADABLE as error:
        report_broken(next(iter(opened)), error)
        return None
    for column in opened:
        METRICS.lookup(column, HIT)
    return found


def _covered(aggregation: Aggregation) -> bool:
    """Could indexes of its columns answer an aggregation?"""
    columns = aggregation.columns()
    if not columns or any(m.kind not in FROM_ENDS for m in aggregation.metrics):
        return False
    if not aggregation.groups:
        return True
    (group, *others) = aggregation.groups
    return isinstance(group, Terms) and not others and columns == [group.column]


def _whole(opened: dict[str, ColumnIndex], aggregation: Aggregation) -> Partial:
    num_rows = next(iter(opened.values())).num_rows
    states: dict[str, Any] = {"rows": _pair(num_rows)}
    for number, metric in enumerate(aggregation.metrics):
        if metric.column is None:
            continue
        index = opened[metric.column]
        states |= state_columns(number, metric, _ends(index, aggregation.dtype(metric.column)))
        states[f"m{number}_count"] = _pair(num_rows - index.null_count)
        if f"m{number}_nans" in states:
            states[f"m{number}_nans"] = _pair(index.count(Exact(NAN_BITS)))
    return group_states(aggregation, [], states)


def _pair(number: int) -> Any:
    return pa.array([number, 0], pa.int64())


def _ends(index: ColumnIndex, dtype: pa.DataType) -> Any:
    """The smallest and the largest value, NaN not among them."""
    last = index.distinct - 1
    if index.kind is Kind.FLOAT and last >= 0 and index.key_at(last) == NAN_BITS:
        last -= 1
    if last < 0:
        return pa.nulls(2, dtype)
    keys = [index.key_at(0), index.key_at(last)]
    if index.kind is Kind.TEXT:
        return pa.array(keys, pa.large_binary()).cast(pa.large_string()).cast(dtype)
    return values_array(index.kind, np.array(keys, np.int64), dtype)


def _grouped(opened: dict[str, ColumnIndex], aggregation: Aggregation) -> Partial:
    ((column, index),) = opened.items()
    dtype = aggregation.dtype(column)
    flat = index.flat()
    values = values_array(index.kind, flat.keys, dtype)
    counts = np.diff(flat.offsets)
    if index.null_count:
        values = pa.concat_arrays([pa.nulls(1, dtype), values])
        counts = np.concatenate([[index.null_count], counts])
    often = pa.array(counts, pa.int64())
    states: dict[str, Any] = {"rows": often}
    for number, metric in enumerate(aggregation.metrics):
        if metric.column is not None:
            found = state_columns(number, metric, values)
            states |= {n: _times(n, state, often) for n, state in found.items()}
    return group_states(aggregation, [values], states)


def _times(name: str, state: Any, often: Any) -> Any:
    return pc.multiply(state, often) if name.endswith(("_count", "_nans")) else state


def values_array(kind: Kind, keys: Keys, dtype: pa.DataType) -> Any:
    """The values behind keys, in the type of their column."""
    if isinstance(keys, TextKeys):
        return keys.to_arrow().cast(pa.large_string()).cast(dtype)
    if kind is Kind.FLOAT:
        bits = np.where(keys >= 0, keys, keys ^ np.int64(MAGNITUDE))
        return pa.array(bits.view(np.float64)).cast(dtype)
    if kind is Kind.BOOL:
        return pa.array(keys.astype(np.bool_))
    if pa.types.is_date32(dtype):
        return pa.array(keys.astype(np.int32)).cast(dtype)
    if kind is Kind.TIMESTAMP:
        return pa.array(keys).cast(pa.timestamp("us", dtype.tz)).cast(dtype)
    return pa.array(keys).cast(dtype)


def first_rows(
    indexes: ColumnIndexes, column: str, dtype: pa.DataType, count: int, descending: bool
) -> Rows | None:
    """The first rows of a split in the order of a column, as ascending row numbers.

    NULL comes first, or last where descending. ``None``: the split has no index that can tell.
    """
    index = indexes.of(column, dtype)
    if index is None:
        return None
    try:
        found = np.concatenate(_in_order(index, count, descending))[:count]
    except UNREADABLE as error:
        report_broken(column, error)
        return None
    METRICS.lookup(column, HIT)
    return np.sort(found)


def _in_order(index: ColumnIndex, count: int, descending: bool) -> Sequence[Rows]:
    nulls = index.nulls[:count]
    if descending:
        return index.top(count, descending=True), nulls
    return nulls, index.top(count - len(nulls))
