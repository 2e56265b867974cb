"""Partial aggregates inside a task: one row per group instead of all rows.

Spark merges the partial results of tasks, so a task only has to be exact for its own rows: COUNT,
MIN, MAX and SUM per group, the group keys and measures being columns, fields of structs or
expressions that ``computing`` knows. Spark's rules hold: NaN is the greatest number, ``-0.0`` is
zero, SUM of whole numbers is a BIGINT and an overflow is an error, NULLs do not count. Spark reads
a partial sum of decimals as the type of the column; a sum too wide for it goes over as several
rows that add up. DISTINCT is Spark's.

Keys and measures that are columns are grouped as ``Table.aggregate`` groups them, by the members of
each split where they can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa

from indextables.spark.tasks.computing import Computed
from indextables.splits.read.aggregate import (
    GATHERED_ROWS,
    batch_partial,
    empty_partial,
    gathered,
)
from indextables.splits.read.partials import Aggregation as Grouping
from indextables.splits.read.partials import Metric, Partial, Terms, finalize, group_states, merge


@dataclass(frozen=True)
class Aggregate:
    """One function over one expression; ``measure`` of ``None`` is COUNT(*)."""

    function: str
    measure: Computed | None
    name: str
    dtype: pa.DataType

    @property
    def text(self) -> str:
        return f"{self.function}({self.measure.text if self.measure else '*'})"


@dataclass(frozen=True)
class Key:
    """One expression to group by, and the name of its column in the result."""

    value: Computed
    name: str


@dataclass(frozen=True)
class Aggregation:
    """Aggregates by groups."""

    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the aggregation reads."""
        found = [name for key in self.keys for name in key.value.columns]
        found += [name for a in self.aggregates if a.measure for name in a.measure.columns]
        return tuple(dict.fromkeys(found))

    @property
    def counts_rows(self) -> bool:
        """Is COUNT(*) all that is asked?"""
        return all(a.measure is None for a in self.aggregates)

    @cached_property
    def grouping(self) -> Grouping:
        """The same over columns that hold the keys and measures already computed."""
        return self._over([k.name for k in self.keys], [a.name for a in self.aggregates])

    @cached_property
    def columnar(self) -> Grouping | None:
        """The same over columns of the table, where keys and measures are nothing else."""
        keys = [k.value.column for k in self.keys]
        measures = [a.measure.column if a.measure else "" for a in self.aggregates]
        return None if None in (*keys, *measures) else self._over(keys, measures)

    def _over(self, keys: Sequence[Any], measures: Sequence[Any]) -> Grouping:
        """Keys and measures in columns of these names."""
        types = {name: k.value.dtype for name, k in zip(keys, self.keys, strict=True)}
        metrics = []
        for name, a in zip(measures, self.aggregates, strict=True):
            metrics.append(Metric(a.function, name if a.measure else None, a.text))
            types |= {name: a.measure.dtype} if a.measure else {}
        return Grouping(tuple(metrics), tuple(map(Terms, keys)), pa.schema(types))

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch with the partial results of all rows; none without rows to group."""
        partials = [self._partial(batch) for batch in gathered(batches, GATHERED_ROWS)]
        if not self.keys:
            partials.append(empty_partial(self.grouping))
        if partials:
            yield from self.finished(merge(partials))

    def counted(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The partial result where only rows are counted and their number is known."""
        states = {"rows": pa.array([rows], pa.int64())}
        return self.finished(group_states(self.grouping, [], states))

    def _partial(self, batch: pa.RecordBatch) -> Partial:
        arrays = [key.value.over(batch) for key in self.keys]
        arrays += [a.measure.over(batch) for a in self.aggregates if a.measure is not None]
        found = pa.RecordBatch.from_arrays(arrays, schema=self.grouping.schema)
        return batch_partial(self.grouping, found)

    def finished(self, partial: Partial) -> Iterator[pa.RecordBatch]:
        """The rows that Spark merges."""
        table = finalize(partial)
        names = [key.name for key in self.keys] + [a.name for a in self.aggregates]
        table = in_pieces(table.rename_columns(names), self.aggregates)
        columns = [table.column(i) for i in range(len(self.keys))]
        columns += [table.column(a.name).cast(a.dtype) for a in self.aggregates]
        yield from pa.table(columns, names=names).combine_chunks().to_batches()


def in_pieces(table: pa.Table, aggregates: Sequence[Aggregate]) -> pa.Table:
    """The table with each sum of decimals that is too wide as rows that add up to it."""
    limits = {
        a.name: (Decimal(10) ** a.dtype.precision - 1).scaleb(-a.dtype.scale)
        for a in aggregates
        if a.function == "sum" and pa.types.is_decimal(a.dtype)
    }
    if not limits:
        return table
    rows = table.to_pylist()
    if all(abs(row[n] or 0) <= most for row in rows for n, most in limits.items()):
        return table
    counts = [a.name for a in aggregates if a.function == "count"]
    sums = [a.name for a in aggregates if a.function == "sum"]
    found = [part for row in rows for part in _pieces(row, limits, counts, sums)]
    return pa.Table.from_pylist(found, schema=table.schema)


def _pieces(
    row: dict[str, Any], limits: Mapping[str, Decimal], counts: list[str], sums: list[str]
) -> Iterator[dict[str, Any]]:
    left = {name: row[name] for name in limits}
    while True:
        step = {
            n: None if v is None else max(min(v, limits[n]), -limits[n]) for n, v in left.items()
        }
        yield {**row, **step}
        left = {n: None if v is None else v - (step[n] or 0) for n, v in left.items()}
        if not any(left.values()):
            return
        row = {**row, **dict.fromkeys(counts, 0), **dict.fromkeys(sums)}


_KEY_TYPES = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
    pa.types.is_floating,
)


def supported(
    schema: pa.Schema,
    keys: Sequence[Mapping[str, Any]],
    functions: Sequence[Mapping[str, Any]],
    ansi: bool = True,
) -> Aggregation | None:
    """The aggregation, when tasks can compute it exactly."""
    values = [Computed.of(key, schema, ansi) for key in keys]
    made = [
        Key(value, f"key_{i}")
        for i, value in enumerate(values)
        if value is not None and _is_key(value.dtype)
    ]
    found = [_aggregate(schema, f, f"agg_{i}", ansi) for i, f in enumerate(functions)]
    aggregates = [a for a in found if a is not None]
    if len(made) < len(values) or len(aggregates) < len(found):
        return None
    return Aggregation(tuple(made), tuple(aggregates))


def _is_key(dtype: pa.DataType) -> bool:
    return any(test(dtype) for test in _KEY_TYPES)


def _aggregate(
    schema: pa.Schema, function: Mapping[str, Any], name: str, ansi: bool
) -> Aggregate | None:
    kind = function["function"].lower()
    if function.get("distinct"):
        return None
    if kind == "countstar":
        return Aggregate("count", None, name, pa.int64())
    node = function.get("measure")
    measure = Computed.of(node, schema, ansi) if node else None
    if measure is None:
        return None
    if kind == "count":
        return Aggregate("count", measure, name, pa.int64())
    if kind == "sum":
        return _sum(measure, name, ansi)
    if kind in ("min", "max") and _is_key(measure.dtype):
        return Aggregate(kind, measure, name, measure.dtype)
    return None


def _sum(measure: Computed, name: str, ansi: bool) -> Aggregate | None:
    """Without ANSI rules sums wrap round or become NULL, which is Spark's to do."""
    dtype = measure.dtype
    if pa.types.is_floating(dtype):
        return Aggregate("sum", measure, name, pa.float64())
    if ansi and pa.types.is_integer(dtype):
        return Aggregate("sum", measure, name, pa.int64())
    if ansi and pa.types.is_decimal(dtype):
        return Aggregate("sum", measure, name, dtype)
    return None
