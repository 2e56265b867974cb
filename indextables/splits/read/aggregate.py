"""Aggregating one split without materialising its rows.

Ends and groups of indexed columns come from column indexes, counts from the index, from codes or
from ``split.json``. Everything else reads just the columns that are grouped by or
measured, of the matching rows, and groups them in Arrow, a batch at a time. A coded column is
grouped by its codes and gets its values back at the end; where only rows are counted by coded
columns, counting the codes is all there is to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.buffers import number_array, numbers_of, scalar_of
from indextables.expr.predicate import referenced_columns
from indextables.splits.lookup.coded import is_coded
from indextables.splits.lookup.codes import Codes
from indextables.splits.read.access import SplitScan
from indextables.splits.read.partials import (
    Aggregation,
    Partial,
    Terms,
    group_key,
    group_states,
    merge,
    state_columns,
)
from indextables.splits.read.summary import summarize

MOST_CELLS = 1 << 22
SMALL_ROWS = 8192
GATHERED_ROWS = 1 << 17
Coded = dict[int, Codes]


def aggregate_scans(
    scans: Iterable[SplitScan], aggregation: Aggregation, batch_rows: int
) -> Partial:
    """The partial result of some splits: of members that can tell, else of columns.

    Grouping has a price per call, so the rows of small splits are gathered before.
    """
    partials, small = [], []
    for scan in scans:
        known = _known(scan, aggregation)
        if known is not None:
            partials.append(known)
        elif scan.reader.num_rows > SMALL_ROWS and not aggregation.computed:
            partials.append(_columnar(scan, aggregation, batch_rows))
        else:
            small.append(scan)
    columns = aggregation.columns()
    rows = (batch for scan in small for batch in scan.batches(columns, None, batch_rows))
    partials += [batch_partial(aggregation, batch) for batch in gathered(rows, GATHERED_ROWS)]
    return merge(partials) if partials else empty_partial(aggregation)


def _known(scan: SplitScan, aggregation: Aggregation) -> Partial | None:
    """What column indexes, codes and the index can tell without a column being read."""
    if aggregation.computed:
        return None
    if scan.is_whole and scan.indexes and all(map(scan.in_rows, aggregation.columns())):
        known = summarize(scan.indexes, aggregation, scan.in_rows)
        if known is not None:
            return known
    if any(m.column is not None for m in aggregation.metrics):
        return None
    if not aggregation.groups:
        count = number_array(np.array([scan.count()], np.int64))
        return group_states(aggregation, [], {"rows": count})
    coded = _coded(scan, aggregation)
    return _counted(scan, aggregation, coded) if len(coded) == len(aggregation.groups) else None


def _coded(scan: SplitScan, aggregation: Aggregation) -> Coded:
    """The codes of the groups that have them, by the group's number."""
    reader = scan.reader
    names: dict[int, str] = {}
    for number, group in enumerate(aggregation.groups):
        stored = scan.in_rows(group.column)
        dtype = aggregation.dtype(group.column)
        if isinstance(group, Terms) and stored and reader.has_codes(stored, dtype):
            names[number] = stored
    tested = referenced_columns(scan.predicate) if is_coded(scan.predicate, reader) else ()
    reader.load_codes([*names.values(), *tested])
    return {number: reader.codes(name) for number, name in names.items()}


# -- counting codes -------------------------------------------------------------------------------


def _counted(scan: SplitScan, aggregation: Aggregation, coded: Coded) -> Partial | None:
    sizes = [len(codes.values) + 1 for codes in coded.values()]
    cells = int(np.prod(sizes, dtype=np.float64))
    if cells > MOST_CELLS:
        return None
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
    return group_states(aggregation, keys[::-1], {"rows": number_array(counts[held])})


# -- reading columns ------------------------------------------------------------------------------


def _columnar(scan: SplitScan, aggregation: Aggregation, batch_rows: int) -> Partial:
    coded = _coded(scan, aggregation)
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
        column = numbers_of(table.column(f"k{number}"))
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
    batch = aggregation.completed(batch)
    keys = [
        number_array(given[i]) if i in given else group_key(g, batch.column(g.column))
        for i, g in enumerate(aggregation.groups)
    ]
    states: dict[str, Any] = {"rows": pa.repeat(scalar_of(1, pa.int64()), batch.num_rows)}
    for number, metric in enumerate(aggregation.metrics):
        if metric.column is not None:
            states |= state_columns(number, metric, batch.column(metric.column))
    return group_states(aggregation, keys, states)


def empty_partial(aggregation: Aggregation) -> Partial:
    """No rows: no groups, or one row of zeros and NULLs where nothing is grouped."""
    fields = [aggregation.schema.field(c) for c in aggregation.columns()]
    arrays = [pa.nulls(0, f.type) for f in fields]
    if not fields and not aggregation.computed:
        return group_states(aggregation, [], {"rows": number_array(np.zeros(1, np.int64))})
    empty = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    made = batch_partial(aggregation, empty)
    if aggregation.groups:
        return made
    zero = [0 if n.endswith(("rows", "_count", "_nans")) else None for n in made.table.column_names]
    columns = [
        pa.repeat(scalar_of(v, made.table.schema.field(n).type), 1)
        for n, v in zip(made.table.column_names, zero, strict=True)
    ]
    return Partial(aggregation, pa.table(columns, schema=made.table.schema))


def gathered(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Small batches joined until they have this many rows; the order stays."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield joined(waiting)
            waiting, count = [], 0
    if waiting:
        yield joined(waiting)


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema as one; those without columns keep their rows."""
    if len(batches) == 1:
        return batches[0]
    if not batches[0].num_columns:
        filler = pa.nulls(sum(b.num_rows for b in batches))
        return pa.RecordBatch.from_arrays([filler], ["_"]).select([])
    return pa.concat_batches(batches)
