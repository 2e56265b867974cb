"""Aggregating one split without materialising its rows.

Counts come from the index, from codes or from ``split.json``. Everything else reads just the
columns that are grouped by or measured, of the matching rows, and groups them in Arrow, a batch at
a time. A coded column is grouped by its codes and gets its values back at the end; where only rows
are counted by coded columns, counting the codes is all there is to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.expr.predicate import TRUE, Predicate, referenced_columns
from indextables.splits.lookup.coded import is_coded
from indextables.splits.lookup.codes import Codes
from indextables.splits.read.access import SplitScan, count_split
from indextables.splits.read.partials import (
    Aggregation,
    Group,
    Metric,
    Partial,
    Terms,
    group_key,
    group_states,
    merge,
    state_columns,
)
from indextables.splits.read.reader import SplitReader

MOST_CELLS = 1 << 22
Coded = dict[int, Codes]


def aggregate_split(
    reader: SplitReader,
    metrics: Sequence[Metric],
    groups: Sequence[Group] = (),
    predicate: Predicate = TRUE,
    *,
    schema: pa.Schema | None = None,
    partition_values: Mapping[str, str | None] | None = None,
    row_hint: NDArray[Any] | None = None,
) -> Partial:
    """The partial result of one split; ``merge`` those of several, then ``finalize``."""
    table = reader.schema if schema is None else schema
    aggregation = Aggregation(tuple(metrics), tuple(groups), table)
    aggregation.check()
    values = reader.ref.partition_values if partition_values is None else partition_values
    scan = SplitScan(reader, predicate, schema=table, partition_values=values, row_hint=row_hint)
    counts_only = all(m.column is None for m in metrics)
    if not groups and counts_only:
        count = count_split(
            reader, predicate, schema=table, partition_values=values, row_hint=row_hint
        )
        return group_states(aggregation, [], {"rows": pa.array([count], pa.int64())})
    coded = _coded(reader, scan, aggregation)
    if counts_only and len(coded) == len(groups):
        return _counted(scan, aggregation, coded)
    return _columnar(scan, aggregation, coded, reader.config["read.batchRows"])


def _coded(reader: SplitReader, scan: SplitScan, aggregation: Aggregation) -> Coded:
    """The codes of the groups that have them, by the group's number."""
    names: dict[int, str] = {}
    for number, group in enumerate(aggregation.groups):
        stored = scan.shaper.stored_name(group.column)
        dtype = aggregation.dtype(group.column)
        if isinstance(group, Terms) and stored and reader.has_codes(stored, dtype):
            names[number] = stored
    tested = referenced_columns(scan.predicate) if is_coded(scan.predicate, reader) else ()
    reader.load_codes([*names.values(), *tested])
    return {number: reader.codes(name) for number, name in names.items()}


# -- counting codes -------------------------------------------------------------------------------


def _counted(scan: SplitScan, aggregation: Aggregation, coded: Coded) -> Partial:
    sizes = [len(codes.values) + 1 for codes in coded.values()]
    cells = int(np.prod(sizes, dtype=np.float64))
    if cells > MOST_CELLS:
        return _columnar(scan, aggregation, coded, scan.reader.config["read.batchRows"])
    counts = np.zeros(cells, np.int64)
    for rows in scan.matching():
        cell = np.zeros(len(rows), np.int64)
        for size, codes in zip(sizes, coded.values(), strict=True):
            cell = cell * size + codes.codes[rows]
        counts += np.bincount(cell, minlength=cells)
    return _counts_partial(aggregation, coded, sizes, counts)


def _counts_partial(
    aggregation: Aggregation, coded: Coded, sizes: list[int], counts: NDArray[np.int64]
) -> Partial:
    held = np.flatnonzero(counts)
    keys = []
    rest = held
    for size, codes in zip(reversed(sizes), reversed(coded.values()), strict=True):
        rest, code = np.divmod(rest, size)
        keys.append(codes.labels(code))
    return group_states(aggregation, keys[::-1], {"rows": pa.array(counts[held])})


# -- reading columns ------------------------------------------------------------------------------


def _columnar(scan: SplitScan, aggregation: Aggregation, coded: Coded, batch_rows: int) -> Partial:
    grouped = {g.column for i, g in enumerate(aggregation.groups) if i not in coded}
    measured = {m.column for m in aggregation.metrics}
    needed = [c for c in aggregation.columns() if c in grouped or c in measured]
    partials = [
        batch_partial(aggregation, batch, {i: c.codes[rows] for i, c in coded.items()})
        for rows, batch in scan.pieces(needed, batch_rows)
    ]
    if not partials:
        return empty_partial(aggregation)
    return _labelled(merge(partials), coded)


def _labelled(partial: Partial, coded: Coded) -> Partial:
    """Give codes their values back."""
    table = partial.table
    for number, codes in coded.items():
        column = table.column(f"k{number}").to_numpy()
        at = table.column_names.index(f"k{number}")
        table = table.set_column(at, f"k{number}", codes.labels(column))
    return Partial(partial.aggregation, table)


def batch_partial(
    aggregation: Aggregation,
    batch: pa.RecordBatch,
    codes: Mapping[int, NDArray[Any]] | None = None,
) -> Partial:
    """The partial result of one batch that has the aggregation's columns (or their codes)."""
    given = codes or {}
    keys = [
        pa.array(given[i]) if i in given else group_key(g, batch.column(g.column))
        for i, g in enumerate(aggregation.groups)
    ]
    states: dict[str, Any] = {"rows": pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)}
    for number, metric in enumerate(aggregation.metrics):
        if metric.column is not None:
            states |= state_columns(number, metric, batch.column(metric.column))
    return group_states(aggregation, keys, states)


def empty_partial(aggregation: Aggregation) -> Partial:
    """No rows: no groups, or one row of zeros and NULLs where nothing is grouped."""
    fields = [aggregation.schema.field(c) for c in aggregation.columns()]
    arrays = [pa.nulls(0, f.type) for f in fields]
    if not fields:
        return group_states(aggregation, [], {"rows": pa.array([0], pa.int64())})
    empty = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    made = batch_partial(aggregation, empty)
    if aggregation.groups:
        return made
    zero = [0 if n.endswith(("rows", "_count", "_nans")) else None for n in made.table.column_names]
    columns = [
        pa.array([v], made.table.schema.field(n).type)
        for n, v in zip(made.table.column_names, zero, strict=True)
    ]
    return Partial(aggregation, pa.table(columns, schema=made.table.schema))
