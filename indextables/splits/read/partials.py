"""Aggregates: what is asked, partial results that merge, and the finished table.

A partial result is an Arrow table: one row for each group, key columns, and state columns for each
metric. Merging is concatenation and one more grouping, so partials of batches, of splits and of
tasks merge alike, at any number of groups.

Sums of integers are kept as two 32-bit halves and are exact whatever they grow to; decimals are
summed in 256 bits; doubles as doubles. NULL is ignored by every metric except ``count`` without a
column, and is a key like any other. NaN is the largest number, one key, and ``-0.0`` is ``0.0``.

Keys: ``Terms`` is the value itself; ``Histogram`` the lower end of a bucket of equal width, as a
double; ``DateHistogram`` the start of a span of time; ``Ranges`` the name of the first ``[from,
to)`` that holds the value. NULL and what no range holds have the key NULL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.buffers import (
    NEVER,
    flags_of,
    number_array,
    numbers_of,
    optional_numbers,
    scalar_of,
)
from indextables.errors import (
    EvaluationError,
    IndexTablesError,
    PlanningError,
    require_characters,
)
from indextables.expr.functions import compute
from indextables.expr.kernels import checked
from indextables.expr.timetext import DAY_MICROS, INT64_MAX, INT64_MIN
from indextables.expr.typednode import Typed
from indextables.types import type_name

METRICS = ("count", "min", "max", "sum", "avg")
_LOW = scalar_of(0xFFFFFFFF, pa.int64())
_HALF = scalar_of(32, pa.int64())
_ZERO = scalar_of(0, pa.int64())
_LARGEST = 2**62
"""The widest bucket whose steps are counted in integers."""


@dataclass(frozen=True, slots=True)
class Metric:
    """``count`` (of rows, or of values of a column), ``min``, ``max``, ``sum`` or ``avg``."""

    kind: str
    column: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in METRICS:
            raise PlanningError(
                f"unknown aggregate '{self.kind}'", hint=f"Use {', '.join(METRICS)}"
            )
        require_characters(self.label)
        if self.column is None and self.kind != "count":
            raise PlanningError(f"{self.kind} needs a column")

    @property
    def label(self) -> str:
        return self.name or f"{self.kind}({self.column or '*'})"


@dataclass(frozen=True, slots=True)
class Terms:
    """Group by the value."""

    column: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Histogram:
    """Group numbers into buckets of equal width."""

    column: str
    interval: float
    offset: float = 0.0
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DateHistogram:
    """Group dates or timestamps into spans of ``interval`` microseconds."""

    column: str
    interval: int
    offset: int = 0
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Ranges:
    """Group numbers by named ranges ``(name, from, to)``; ``None`` is an open end."""

    column: str
    ranges: tuple[tuple[str, float | None, float | None], ...]
    name: str | None = None


Group: TypeAlias = Terms | Histogram | DateHistogram | Ranges


@dataclass(frozen=True)
class Aggregation:
    """Metrics by groups, bound to the types of a table."""

    metrics: tuple[Metric, ...]
    groups: tuple[Group, ...] = ()
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    computed: Mapping[str, Typed] = field(default_factory=dict)
    """Expressions that groups and metrics name like columns."""

    def columns(self) -> list[str]:
        """The columns to read."""
        named = [g.column for g in self.groups] + [m.column for m in self.metrics if m.column]
        read = [name for name in named if name not in self.computed]
        for made in self.computed.values():
            read += [column.root for column in made.columns()]
        return list(dict.fromkeys(read))

    def dtype(self, column: str) -> pa.DataType:
        made = self.computed.get(column)
        return self.schema.field(column).type if made is None else made.dtype

    def completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of the columns to read, with the values of the expressions."""
        if not self.computed:
            return batch
        made = {name: compute(node, batch) for name, node in self.computed.items()}
        names = [*batch.schema.names, *made]
        return pa.RecordBatch.from_arrays([*batch.columns, *made.values()], names)

    def check(self) -> None:
        """Refuse what has no meaning, before anything is read."""
        for metric in self.metrics:
            if metric.column is not None:
                _check_metric(metric, self.dtype(metric.column))
        for group in self.groups:
            _check_group(group, self.dtype(group.column))


def _check_metric(metric: Metric, dtype: pa.DataType) -> None:
    t = pa.types
    number = t.is_integer(dtype) or t.is_floating(dtype) or t.is_decimal(dtype)
    if metric.kind in ("sum", "avg") and not number:
        raise PlanningError(f"{metric.label}: {type_name(dtype)} is not a number")
    if metric.kind in ("min", "max") and (t.is_nested(dtype) or t.is_map(dtype)):
        raise PlanningError(f"{metric.label}: {type_name(dtype)} has no order")


def _check_group(group: Group, dtype: pa.DataType) -> None:
    t = pa.types
    if isinstance(group, Terms):
        good = not (t.is_nested(dtype) or t.is_map(dtype))
    elif isinstance(group, DateHistogram):
        good = (t.is_date(dtype) or t.is_timestamp(dtype)) and 0 < group.interval <= _LARGEST
    else:
        good = t.is_integer(dtype) or t.is_floating(dtype) or t.is_decimal(dtype)
        if isinstance(group, Histogram):
            good = good and 0 < group.interval < math.inf and math.isfinite(group.offset)
    if not good:
        raise PlanningError(
            f"{type(group).__name__} cannot group column '{group.column}' of {type_name(dtype)}"
        )


# -- states ---------------------------------------------------------------------------------------


def state_columns(number: int, metric: Metric, values: Any) -> dict[str, Any]:
    """Arrow columns whose sums, minima and maxima are the metric's state; by name and verb."""
    name = f"m{number}"
    if metric.column is None:
        return {}
    dtype = values.type
    found: dict[str, Any] = {f"{name}_count": values.is_valid().cast(pa.int64())}
    if metric.kind in ("sum", "avg"):
        found |= _sum_columns(name, values)
    elif metric.kind != "count":
        if pa.types.is_floating(dtype):
            nan = pc.fill_null(pc.is_nan(values), NEVER)
            found[f"{name}_nans"] = nan.cast(pa.int64())
            values = pc.if_else(nan, scalar_of(None, dtype), pc.add(values, scalar_of(0, dtype)))
        found[f"{name}_{metric.kind}"] = values
    return found


def _sum_columns(name: str, values: Any) -> dict[str, Any]:
    dtype = values.type
    if pa.types.is_floating(dtype):
        return {f"{name}_real": values.cast(pa.float64())}
    if pa.types.is_decimal(dtype):
        return {f"{name}_wide": values.cast(pa.decimal256(76, dtype.scale))}
    whole = values.cast(pa.int64())
    return {
        f"{name}_high": pc.shift_right(whole, _HALF),
        f"{name}_low": pc.bit_wise_and(whole, _LOW),
    }


def _verb(column: str) -> str:
    last = column.rsplit("_", 1)[-1]
    return last if last in ("min", "max") else "sum"


@dataclass(frozen=True)
class Partial:
    """Partial results: mergeable with others of the same aggregation, and picklable."""

    aggregation: Aggregation
    table: pa.Table


def group_states(aggregation: Aggregation, keys: Sequence[Any], states: dict[str, Any]) -> Partial:
    """One partial from keys and state columns of some rows (``rows`` counts them)."""
    names = [f"k{i}" for i in range(len(keys))]
    arrays = dict(zip(names, keys, strict=True)) | states
    return Partial(aggregation, _regroup(pa.table(arrays), names))


def _regroup(table: pa.Table, keys: list[str]) -> pa.Table:
    states = [n for n in table.column_names if n not in keys]
    asked = [(n, _verb(n)) for n in states]
    return _carried(_grouped(table, keys, asked).select(keys + states))


def _grouped(table: pa.Table, keys: list[str], asked: list[tuple[str, str]]) -> pa.Table:
    """What ``TableGroupBy`` does, without the datasets and the pandas that it imports first."""
    try:
        from pyarrow import _acero as acero
    except ImportError:
        made = pa.TableGroupBy(table, keys, use_threads=False).aggregate(asked)
        return made.rename_columns({f"{n}_{verb}": n for n, verb in asked})
    hashed = "hash_" if keys else ""
    verbs = [(name, hashed + verb, None, name) for name, verb in asked]
    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
        acero.Declaration("aggregate", acero.AggregateNodeOptions(verbs, keys=keys)),
    ]
    return acero.Declaration.from_sequence(steps).to_table(use_threads=False)


def _carried(table: pa.Table) -> pa.Table:
    """Carry low halves of sums into the high ones, so that they never overflow."""
    for name in table.column_names:
        if name.endswith("_low"):
            high = name.replace("_low", "_high")
            low = table.column(name)
            carried = pc.add(table.column(high), pc.shift_right(low, _HALF))
            table = table.set_column(table.column_names.index(high), high, carried)
            rest = pc.bit_wise_and(low, _LOW)
            table = table.set_column(table.column_names.index(name), name, rest)
    return table


def merge(partials: Sequence[Partial]) -> Partial:
    """The partial result of all rows together."""
    if not partials:
        raise IndexTablesError("there is nothing to merge")
    first = partials[0].aggregation
    if len(partials) == 1:
        return partials[0]
    tables = [p.table for p in partials]
    names = [f"k{i}" for i in range(len(first.groups))]
    return Partial(first, _regroup(pa.concat_tables(tables), names))


# -- results --------------------------------------------------------------------------------------


def finalize(partial: Partial) -> pa.Table:
    """The finished aggregates: key columns, then metrics; without groups always one row."""
    aggregation, table = partial.aggregation, partial.table
    names = [g.name or g.column for g in aggregation.groups]
    columns = [table.column(f"k{i}") for i in range(len(names))]
    for number, metric in enumerate(aggregation.metrics):
        names.append(metric.label)
        columns.append(_finished(number, metric, aggregation, table))
    return pa.table(columns, names=names)


def _finished(number: int, metric: Metric, aggregation: Aggregation, table: pa.Table) -> Any:
    name = f"m{number}"
    if metric.column is None:
        return table.column("rows")
    dtype = aggregation.dtype(metric.column)
    if metric.kind == "count":
        return table.column(f"{name}_count")
    if metric.kind in ("min", "max"):
        return _extreme(name, metric.kind, dtype, table)
    if pa.types.is_floating(dtype):
        total = table.column(f"{name}_real")
        return total if metric.kind == "sum" else pc.divide(total, _counts(name, table))
    if pa.types.is_decimal(dtype):
        return _decimal_result(name, metric, dtype, table)
    return _integer_result(name, metric, table)


def _counts(name: str, table: pa.Table) -> Any:
    counts = table.column(f"{name}_count")
    return pc.if_else(
        pc.equal(counts, scalar_of(0, counts.type)), pa.nulls(1, pa.int64())[0], counts
    ).cast(pa.float64())


def _extreme(name: str, kind: str, dtype: pa.DataType, table: pa.Table) -> Any:
    values = table.column(f"{name}_{kind}")
    if not pa.types.is_floating(dtype):
        return values
    nan = scalar_of(float("nan"), dtype)
    has_nan = pc.greater(table.column(f"{name}_nans"), _ZERO)
    if kind == "max":
        return pc.if_else(has_nan, nan, values)
    return pc.if_else(pc.and_(has_nan, pc.is_null(values)), nan, values)


def _integer_sums(name: str, table: pa.Table) -> list[int | None]:
    highs = table.column(f"{name}_high").to_pylist()
    lows = table.column(f"{name}_low").to_pylist()
    return [None if h is None else (h << 32) + w for h, w in zip(highs, lows, strict=True)]


def _integer_result(name: str, metric: Metric, table: pa.Table) -> Any:
    sums = _integer_sums(name, table)
    if metric.kind == "avg":
        counts = table.column(f"{name}_count").to_pylist()
        means = [None if s is None else s / c for s, c in zip(sums, counts, strict=True)]
        return optional_numbers(means, np.float64)
    try:
        return optional_numbers(sums, np.int64)
    except (OverflowError, pa.ArrowInvalid) as error:
        raise IndexTablesError(
            f"{metric.label} does not fit a BIGINT", hint="Sum the column as a decimal"
        ) from error


def _decimal_result(name: str, metric: Metric, dtype: pa.DataType, table: pa.Table) -> Any:
    sums = table.column(f"{name}_wide").to_pylist()
    if metric.kind == "sum":
        target = pa.decimal128(min(38, dtype.precision + 10), dtype.scale)
        return _decimals(sums, target, metric)
    target = mean_type(dtype)
    counts = table.column(f"{name}_count").to_pylist()
    context = Context(prec=76)
    step = Decimal(1).scaleb(-target.scale)
    means = [
        None if s is None else context.divide(s, c).quantize(step, ROUND_HALF_UP, context)
        for s, c in zip(sums, counts, strict=True)
    ]
    return _decimals(means, target, metric)


def mean_type(dtype: pa.DataType) -> pa.DataType:
    """The type of a mean of decimals: four more digits, or what fits, as Spark decides."""
    precision, scale = dtype.precision + 4, dtype.scale + 4
    if precision <= 38:
        return pa.decimal128(precision, scale)
    return pa.decimal128(38, max(38 - (precision - scale), min(scale, 6)))


def _decimals(values: list[Decimal | None], target: pa.DataType, metric: Metric) -> Any:
    try:
        return pa.array(values, target)
    except pa.ArrowInvalid as error:
        raise IndexTablesError(f"{metric.label} does not fit {type_name(target)}") from error


# -- keys -----------------------------------------------------------------------------------------


def group_key(group: Group, values: Any) -> Any:
    """The key of each row."""
    if isinstance(group, Terms):
        if pa.types.is_floating(values.type):
            zeroed = pc.add(values, scalar_of(0, values.type))
            nan = scalar_of(float("nan"), values.type)
            return pc.if_else(pc.is_nan(zeroed), nan, zeroed)
        return values
    if isinstance(group, Histogram):
        return _bucket(values, group)
    if isinstance(group, DateHistogram):
        return _span(values, group)
    return _named_range(values, group)


def _bucket(values: Any, group: Histogram) -> Any:
    interval, offset = float(group.interval), float(group.offset)
    whole = interval.is_integer() and offset.is_integer() and max(interval, abs(offset)) <= _LARGEST
    if pa.types.is_integer(values.type) and whole:
        return _whole_bucket(values.cast(pa.int64()), int(group.interval), int(group.offset))
    numbers = values.cast(pa.float64(), safe=False)
    steps = pc.floor(pc.divide(pc.subtract(numbers, offset), interval))
    return pc.add(pc.add(pc.multiply(steps, interval), offset), 0.0)


def _whole_bucket(values: Any, interval: int, offset: int) -> Any:
    """Where the bucket of each integer begins, as a double; it may begin below all integers."""
    numbers, above, mask = _in_bucket(values, interval, offset)
    starts = (numbers - above).astype(np.float64)
    for row in np.flatnonzero(numbers < INT64_MIN + above):
        starts[row] = float(int(numbers[row]) - int(above[row]))
    return number_array(starts, mask)


def _span(values: Any, group: DateHistogram) -> Any:
    zone = values.type.tz if pa.types.is_timestamp(values.type) else None
    if pa.types.is_date(values.type):
        days = values.cast(pa.int32()).cast(pa.int64())
        values = checked(lambda: pc.multiply_checked(days, DAY_MICROS), "a date as a timestamp")
    numbers, above, mask = _in_bucket(values.cast(pa.int64()), group.interval, group.offset)
    if bool((numbers < INT64_MIN + above).any()):
        raise EvaluationError(
            f"a value of '{group.column}' lies in a span that begins before any timestamp",
            hint="Leave such values out in WHERE",
        )
    return number_array(numbers - above, mask).cast(pa.timestamp("us", zone))


def _in_bucket(values: Any, interval: int, offset: int) -> tuple[Any, Any, Any]:
    """Integers, how far each lies above the start of its bucket, and which are NULL."""
    mask = flags_of(values.is_null())
    numbers = numbers_of(pc.fill_null(values, _ZERO)).astype(np.int64)
    above = np.mod(np.mod(numbers, interval) - offset % interval, interval)
    return numbers, above, mask


def _named_range(values: Any, group: Ranges) -> Any:
    numbers = values.cast(pa.float64(), safe=False)
    found: Any = pa.nulls(len(values), pa.string())
    for name, low, high in reversed(group.ranges):
        inside: Any = pc.is_valid(numbers)
        if low is not None:
            inside = pc.and_(inside, _at_least(values, numbers, low))
        if high is not None:
            inside = pc.and_(inside, pc.invert(_at_least(values, numbers, high)))
        found = pc.if_else(pc.fill_null(inside, False), name, found)
    return found


def _at_least(values: Any, numbers: Any, bound: float) -> Any:
    """``value >= bound`` with NaN above everything; integers are compared as integers."""
    if pa.types.is_integer(values.type) and math.isfinite(bound):
        first = math.ceil(bound)
        if INT64_MIN <= first <= INT64_MAX:
            return pc.greater_equal(values.cast(pa.int64()), first)
        return pa.array(np.full(len(values), first < 0))
    return pc.or_(pc.greater_equal(numbers, float(bound)), pc.is_nan(numbers))
