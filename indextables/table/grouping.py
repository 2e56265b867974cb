"""Aggregates over a table: partial results of each split, merged, finished once.

Aggregates are given as ``{"rows": "count", "slowest": ("max", "latency")}`` (name to function, or
function and column), as SQL text (``"sum(bytes * 8)"``, ``"count(DISTINCT host)"``) or as
``Metric`` objects; groups as column names, SQL expressions or group objects (``Terms``,
``Histogram``, ``DateHistogram``, ``Ranges``). A split in which no filter is left to check answers
from its column indexes where they can tell.

Distinct counts, medians and percentiles are exact. They come from one more aggregation by the value
itself, which says how often each occurs in each group (``table.distribution``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import IndexTablesError, PlanningError, UnknownColumnError
from indextables.expr import filters as f
from indextables.expr.aggregates import KNOWN, Call, compiled, parse_aggregate
from indextables.expr.sqltext import parse_value
from indextables.expr.typednode import Typed
from indextables.planner import Plan
from indextables.planner.tasks import SplitTask
from indextables.splits.read.aggregate import empty_partial
from indextables.splits.read.partials import (
    METRICS,
    Aggregation,
    DateHistogram,
    Group,
    Histogram,
    Metric,
    Partial,
    Ranges,
    Terms,
    finalize,
    merge,
)
from indextables.table import distribution
from indextables.table.buckets import Expressed
from indextables.table.execute import aggregate_task, each_task

if TYPE_CHECKING:
    from indextables.table.table import Table

GROUPS = (Terms, Histogram, DateHistogram, Ranges)
BY_VALUE = ("count_distinct", "median", "percentile")


@dataclass(frozen=True, slots=True)
class Measure:
    """One aggregate as it was asked for; ``column`` may name an expression."""

    name: str
    kind: str
    column: str | None = None
    place: float | None = None


@dataclass
class _Asked:
    """The columns of a table, and the expressions that stand beside them."""

    table: Table
    computed: dict[str, Typed] = field(default_factory=dict)

    def column(self, expression: f.Expression, shown: str) -> str:
        """The name of a column, or of an expression that is computed."""
        names = self.table.schema.names
        if isinstance(expression, f.Attribute) and len(expression.path) == 1:
            found = [n for n in names if n.lower() == expression.path[0].lower()]
            if len(found) == 1:
                return str(found[0])
            raise UnknownColumnError.of(expression.path[0], names, path=self.table.path)
        made = compiled(expression, self.table.schema, shown)
        name = f"({made!r})"
        self.computed[name] = made
        return name

    def group(self, given: Any) -> Group:
        if isinstance(given, GROUPS):
            return given
        if isinstance(given, Expressed):
            return Terms(self.column(parse_value(given.text), given.text), given.name or given.text)
        if not isinstance(given, str):
            raise PlanningError(
                f"a group cannot be a {type(given).__name__}",
                hint="Give a column name, an expression, histogram(...) or date_histogram(...)",
            )
        if given in self.table.schema.names:
            return Terms(given)
        return Terms(self.column(parse_value(given), given), given)


def aggregate_plan(
    table: Table,
    plan: Plan,
    aggregates: Mapping[str, str | tuple[str, str]] | Sequence[Any],
    group_by: Sequence[Any] = (),
) -> pa.Table:
    """The aggregates of the rows a plan keeps."""
    plan.check_decidable()
    asked = _Asked(table)
    measures = [_measure(asked, name, what) for name, what in _items(aggregates)]
    groups = tuple(asked.group(g) for g in _listed(group_by))
    _check_columns(asked, measures, groups)
    plain = [m for m in measures if m.kind in METRICS]
    metrics = tuple(Metric(m.kind, m.column, m.name) for m in plain)
    found = _run(asked, plan, metrics or (Metric("count", None, ""),), groups)
    columns = {m.name: found.column(len(groups) + i) for i, m in enumerate(plain)}
    for measure in measures:
        if measure.kind in BY_VALUE:
            columns[measure.name] = _by_value(asked, plan, measure, groups, found)
    keys = [found.column(i) for i in range(len(groups))]
    names = found.column_names[: len(groups)]
    return pa.table(
        [*keys, *(columns[m.name] for m in measures)], names=[*names, *(m.name for m in measures)]
    )


def _by_value(
    asked: _Asked, plan: Plan, measure: Measure, groups: tuple[Group, ...], found: pa.Table
) -> pa.Array:
    assert measure.column is not None
    distribution.check(measure, Aggregation((), (), asked.table.schema, asked.computed))
    by_value = (*groups, Terms(measure.column))
    counted = _run(asked, plan, (Metric("count", None, "n"),), by_value)
    return distribution.results(measure.kind, measure.place, counted, found, len(groups))


def _run(
    asked: _Asked, plan: Plan, metrics: tuple[Metric, ...], groups: tuple[Group, ...]
) -> pa.Table:
    table = asked.table
    used = {m.column for m in metrics} | {g.column for g in groups}
    computed = {name: made for name, made in asked.computed.items() if name in used}
    aggregation = Aggregation(metrics, groups, table.schema, computed)
    aggregation.check()

    def run(task: SplitTask) -> Partial:
        return aggregate_task(table.store, task, table.schema, table.config, aggregation)

    return finalize(merge([empty_partial(aggregation), *each_task(table, run, plan)]))


# -- what is asked --------------------------------------------------------------------------------


def _items(aggregates: Any) -> list[tuple[str | None, Any]]:
    if isinstance(aggregates, Mapping):
        return list(aggregates.items())
    if isinstance(aggregates, str):
        return [(None, aggregates)]
    if not isinstance(aggregates, Sequence):
        raise PlanningError(
            f"aggregates cannot be a {type(aggregates).__name__}",
            hint='Give a dict such as {"rows": "count", "slowest": "max(latency)"}',
        )
    return [(None, what) for what in aggregates]


def _measure(asked: _Asked, name: str | None, what: Any) -> Measure:
    if isinstance(what, Metric):
        return Measure(name or what.label, what.kind, what.column)
    if isinstance(what, str):
        return _of_text(asked, name, what)
    if not isinstance(what, Sequence) or not 1 <= len(what) <= 3:
        raise PlanningError(
            f"'{what!r}' is not an aggregate", hint='Write ("max", "latency") or "max(latency)"'
        )
    kind, column, last = (*what, None, None)[:3]
    place = None
    if kind in BY_VALUE:
        place = _place(kind, last)
    elif last is not None:
        name = name or str(last)
    elif kind not in METRICS:
        raise PlanningError(f"unknown aggregate '{kind}'", hint=f"Known are {KNOWN}")
    return Measure(name or f"{kind}({column or '*'})", kind, column, place)


def _of_text(asked: _Asked, name: str | None, text: str) -> Measure:
    if text in METRICS:
        return Measure(name or Metric(text).label, text)
    call = parse_aggregate(text) if "(" in text else None
    if call is None:
        raise PlanningError(f"unknown aggregate '{text}'", hint=f"Known are {KNOWN}")
    column = None if call.argument is None else asked.column(call.argument, text)
    return Measure(name or text, call.kind, column, _place_of(call))


def _place_of(call: Call) -> float | None:
    return 0.5 if call.kind == "median" else call.place


def _place(kind: str, given: Any) -> float | None:
    if kind == "count_distinct":
        return None
    if kind == "median":
        return 0.5
    if not isinstance(given, int | float) or not 0 <= given <= 1:
        raise PlanningError(
            "a percentile needs a number from 0 to 1", hint='Write ("percentile", "x", 0.95)'
        )
    return float(given)


def _listed(group_by: Any) -> Sequence[Any]:
    if isinstance(group_by, (str, Expressed, *GROUPS)):
        return (group_by,)
    if not isinstance(group_by, Sequence):
        raise PlanningError(
            f"group_by cannot be a {type(group_by).__name__}", hint="Give a list of column names"
        )
    return tuple(group_by)


def _check_columns(asked: _Asked, measures: Sequence[Measure], groups: Sequence[Group]) -> None:
    known = asked.table.schema.names
    for measure in measures:
        if measure.column is None and measure.kind != "count":
            raise PlanningError(f"{measure.kind} needs a column")
    if not measures:
        raise IndexTablesError("there is nothing to aggregate", hint='Ask for {"rows": "count"}')
    for column in [m.column for m in measures if m.column] + [g.column for g in groups]:
        if column not in known and column not in asked.computed:
            raise UnknownColumnError.of(column, known, path=asked.table.path)
