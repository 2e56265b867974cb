"""Aggregates over a table: partial results of each split, merged, finished once.

Aggregates are given as ``{"rows": "count", "slowest": ("max", "latency")}`` (name to function, or
function and column) or as ``Metric`` objects; groups as column names or group objects (``Terms``,
``Histogram``, ``DateHistogram``, ``Ranges``). A split in which no filter is left to check answers
from its column indexes where they can tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import UnknownColumnError
from indextables.planner import Plan
from indextables.planner.tasks import SplitTask
from indextables.splits.read.aggregate import empty_partial
from indextables.splits.read.partials import (
    Aggregation,
    Group,
    Metric,
    Partial,
    Terms,
    finalize,
    merge,
)
from indextables.table.execute import aggregate_task, each_task

if TYPE_CHECKING:
    from indextables.table.table import Table


def aggregate_plan(
    table: Table,
    plan: Plan,
    aggregates: Mapping[str, str | tuple[str, str]] | Sequence[Any],
    group_by: Sequence[Any] = (),
) -> pa.Table:
    """The aggregates of the rows a plan keeps."""
    plan.check_decidable()
    metrics = metrics_of(aggregates)
    groups = tuple(Terms(g) if isinstance(g, str) else g for g in _listed(group_by))
    _check_columns(table, metrics, groups)
    aggregation = Aggregation(metrics, groups, table.schema)
    aggregation.check()

    def run(task: SplitTask) -> Partial:
        return aggregate_task(table.store, task, table.schema, table.config, aggregation)

    return finalize(merge([empty_partial(aggregation), *each_task(table, run, plan)]))


def metrics_of(
    aggregates: Mapping[str, str | tuple[str, str]] | Sequence[Any],
) -> tuple[Metric, ...]:
    """The metrics a caller means."""
    if not isinstance(aggregates, Mapping):
        return tuple(m if isinstance(m, Metric) else Metric(*m) for m in aggregates)
    found = []
    for name, what in aggregates.items():
        kind, column = (what, None) if isinstance(what, str) else what
        found.append(Metric(kind, column, name))
    return tuple(found)


def _listed(group_by: Any) -> Sequence[Any]:
    return (group_by,) if isinstance(group_by, str) else tuple(group_by)


def _check_columns(table: Table, metrics: Sequence[Metric], groups: Sequence[Group]) -> None:
    named = [m.column for m in metrics if m.column] + [g.column for g in groups]
    for column in named:
        if column not in table.schema.names:
            raise UnknownColumnError.of(column, table.schema.names, path=table.path)
