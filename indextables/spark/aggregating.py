"""Partial aggregates inside a task: one row per group instead of all rows.

Spark merges the partial results of tasks, so a task only has to be exact for its own rows: COUNT,
MIN, MAX and SUM per group. Spark's rules hold: NaN is the greatest number, SUM of integers is a
BIGINT and an overflow is an error, NULLs do not count. What cannot be kept to those rules
(DISTINCT, sums of decimals, keys of floating type, nested values) is not accepted and Spark
computes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import EvaluationError

MOST_LONG = 2**63
_FLUSH_ROWS = 1_000_000


@dataclass(frozen=True)
class Aggregate:
    """One function over one column; ``column`` of ``None`` is COUNT(*)."""

    function: str
    column: str | None
    name: str
    dtype: pa.DataType

    @property
    def merge(self) -> str:
        """The Arrow function that merges partial results of this one."""
        return {"count": "sum", "sum": "sum", "min": "min", "max": "max"}[self.function]


@dataclass(frozen=True)
class Aggregation:
    """Aggregates by groups of plain columns."""

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the aggregation reads."""
        read = [*self.keys, *(a.column for a in self.aggregates if a.column is not None)]
        return tuple(dict.fromkeys(read))

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch with the partial results of all rows."""
        partial = [self._partial(batch) for batch in batches if batch.num_rows]
        if not partial:
            if not self.keys:
                yield self._nothing()
            return
        merged = self._merged(pa.concat_tables(partial))
        yield from merged.combine_chunks().to_batches()

    def _partial(self, batch: pa.RecordBatch) -> pa.Table:
        columns = {k: batch.column(k) for k in self.keys}
        for a in self.aggregates:
            columns[a.name] = _contribution(batch, a)
        return self._merged(pa.table(columns))

    def _merged(self, table: pa.Table) -> pa.Table:
        for a in self.aggregates:
            if a.function == "sum" and pa.types.is_integer(a.dtype):
                _check_sum(table.column(a.name), a)
        specs = [(a.name, a.merge) for a in self.aggregates]
        if self.keys:
            found = table.group_by(list(self.keys), use_threads=False).aggregate(specs)
        else:
            found = pa.table({f"{n}_{how}": [_global(table, n, how)] for n, how in specs})
        arrays = [found.column(k) for k in self.keys]
        arrays += [_restored(found.column(f"{a.name}_{a.merge}"), a) for a in self.aggregates]
        return pa.table(arrays, names=[*self.keys, *(a.name for a in self.aggregates)])

    def _nothing(self) -> pa.RecordBatch:
        values = [
            pa.array([0 if a.function == "count" else None], a.dtype) for a in self.aggregates
        ]
        return pa.RecordBatch.from_arrays(values, names=[a.name for a in self.aggregates])


def _global(table: pa.Table, name: str, how: str) -> Any:
    column = table.column(name)
    return {"sum": pc.sum, "min": pc.min, "max": pc.max}[how](column).as_py()


def _contribution(batch: pa.RecordBatch, aggregate: Aggregate) -> pa.Array:
    """What each row adds to the aggregate."""
    if aggregate.column is None:
        return pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)
    values = batch.column(aggregate.column)
    if aggregate.function == "count":
        return pc.cast(pc.is_valid(values), pa.int64())
    if aggregate.function == "sum":
        return pc.cast(values, aggregate.dtype)
    return _ordered(values)


def _ordered(values: pa.Array) -> pa.Array:
    """The values in a type whose plain order is Spark's."""
    if pa.types.is_boolean(values.type):
        return pc.cast(values, pa.int8())
    return values


def _restored(column: pa.ChunkedArray, aggregate: Aggregate) -> pa.ChunkedArray:
    return column if column.type == aggregate.dtype else column.cast(aggregate.dtype)


def _check_sum(column: pa.ChunkedArray, aggregate: Aggregate) -> None:
    """Arrow's sums wrap round; Spark's fail."""
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None:
        return
    if max(abs(low), abs(high)) * len(column) >= MOST_LONG:
        exact = pc.sum(pc.cast(column, pa.decimal128(38, 0))).as_py()
        spread = pc.sum(pc.abs(column.cast(pa.float64(), safe=False))).as_py()
        if abs(int(exact)) >= MOST_LONG or spread >= MOST_LONG:
            raise EvaluationError(
                f"the sum of '{aggregate.column}' overflows a BIGINT",
                hint="Sum it as a decimal: sum(cast(column AS DECIMAL(38,0)))",
            )


_KEY_TYPES = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
)


def supported(
    schema: pa.Schema, keys: Sequence[Sequence[str]], functions: Sequence[dict[str, Any]]
) -> Aggregation | None:
    """The aggregation, when tasks can compute it exactly."""
    names = [_column(schema, key) for key in keys]
    if any(n is None or not _is_key(schema.field(n).type) for n in names):
        return None
    found = []
    for i, function in enumerate(functions):
        aggregate = _aggregate(schema, function, f"agg_{i}")
        if aggregate is None:
            return None
        found.append(aggregate)
    return Aggregation(tuple(n for n in names if n is not None), tuple(found))


def _is_key(dtype: pa.DataType) -> bool:
    return any(test(dtype) for test in _KEY_TYPES)


def _column(schema: pa.Schema, path: Sequence[str]) -> str | None:
    if len(path) != 1:
        return None
    return next((n for n in schema.names if n.lower() == path[0].lower()), None)


def _aggregate(schema: pa.Schema, function: dict[str, Any], name: str) -> Aggregate | None:
    kind = function["function"].lower()
    if function.get("distinct"):
        return None
    if kind == "countstar":
        return Aggregate("count", None, name, pa.int64())
    column = _column(schema, function.get("column") or ())
    if column is None:
        return None
    dtype = schema.field(column).type
    if kind == "count":
        return Aggregate("count", column, name, pa.int64())
    if kind == "sum":
        return _sum(column, name, dtype)
    if kind in ("min", "max") and _is_key(dtype):
        return Aggregate(kind, column, name, dtype)
    return None


def _sum(column: str, name: str, dtype: pa.DataType) -> Aggregate | None:
    if pa.types.is_integer(dtype):
        return Aggregate("sum", column, name, pa.int64())
    if pa.types.is_floating(dtype):
        return Aggregate("sum", column, name, pa.float64())
    return None
