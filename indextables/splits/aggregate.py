"""Aggregating one split without materialising its rows.

Counts come from the index or from ``split.json``. Groups by terms, with metrics over numbers, are
computed by tantivy where its doubles are provably exact (``fastaggs``). Everything else reads just
the columns that are grouped by or measured, of the matching rows, and groups them in Arrow, a batch
at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from indextables.expr.predicate import TRUE, Predicate
from indextables.splits.access import SplitScan, count_split
from indextables.splits.aggregates import (
    Aggregation,
    Group,
    Metric,
    Partial,
    group_key,
    group_states,
    merge,
    state_columns,
)
from indextables.splits.fastaggs import fast_partial
from indextables.splits.reader import SplitReader


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
    if not groups and all(m.column is None for m in metrics):
        count = count_split(
            reader, predicate, schema=table, partition_values=values, row_hint=row_hint
        )
        return group_states(aggregation, [], {"rows": pa.array([count], pa.int64())})
    if row_hint is None and not reader.is_foreign:
        found = fast_partial(reader, scan, aggregation)
        if found is not None:
            return found
    return _columnar(scan, aggregation, reader.config["read.batchRows"])


def _columnar(scan: SplitScan, aggregation: Aggregation, batch_rows: int) -> Partial:
    partials = [
        batch_partial(aggregation, batch)
        for batch in scan.batches(aggregation.columns(), None, batch_rows)
    ]
    return merge(partials) if partials else empty_partial(aggregation)


def batch_partial(aggregation: Aggregation, batch: pa.RecordBatch) -> Partial:
    """The partial result of one batch that has the aggregation's columns."""
    keys = [group_key(g, batch.column(g.column)) for g in aggregation.groups]
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
