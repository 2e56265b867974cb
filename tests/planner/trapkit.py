"""Tables for the trap tests: a filter's rows by planning, by brute force and by hand must agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from planner.rows import truth
from planner.tables import FakeSnapshot, Split, write_split

from indextables.expr.evaluate import matching_rows
from indextables.expr.predicate import Predicate
from indextables.planner import Plan, Planner

SplitRows = list[dict[str, Any]]


class Table:
    """Splits of rows; every row gets an ``id`` of its own."""

    def __init__(
        self,
        splits: Sequence[SplitRows],
        schema: pa.Schema,
        *,
        partitions: Sequence[str] = (),
        write: Callable[..., Split] = write_split,
        change: Callable[[Split], None] | None = None,
        time_zone: str = "UTC",
    ) -> None:
        self.schema = pa.schema([*schema, pa.field("id", pa.int64())])
        self.time_zone = time_zone
        numbers = iter(range(1, 10_000))
        written = []
        for rows in splits:
            body = [{**{k: v for k, v in r.items() if k not in partitions}, "id": next(numbers)}
                    for r in rows]  # fmt: skip
            values = {q: rows[0].get(q) for q in partitions}
            written.append(write(body, self.schema, values))
            if change is not None:
                change(written[-1])
        self.snapshot = FakeSnapshot(written, self.schema, partitions)

    def plan(self, filters: Any, **options: Any) -> Plan:
        return Planner(self.snapshot, time_zone=self.time_zone).plan(filters, **options)

    def check(self, filters: Any, ids: Sequence[int]) -> Plan:
        """By hand, by row, by Arrow and by plan: the same rows."""
        plan = self.plan(filters)
        wanted = sorted(ids)
        assert self.brute_force(plan.predicate) == wanted, "the rows, one by one"
        assert self.by_arrow(plan.predicate) == wanted, "the evaluator over all rows"
        assert self.planned(plan) == wanted, "the rows of the kept splits"
        count = plan.count()
        assert count is None or count == len(wanted)
        return plan

    def brute_force(self, predicate: Predicate) -> list[int]:
        rows = [r for split in self.snapshot.list for r in split.rows]
        return sorted(r["id"] for r in rows if truth(predicate, r) is True)

    def by_arrow(self, predicate: Predicate) -> list[int]:
        rows = [r for split in self.snapshot.list for r in split.rows]
        found = matching_rows(predicate, arrow_table(rows, self.schema))
        return sorted(rows[i]["id"] for i in found.tolist())

    def planned(self, plan: Plan) -> list[int]:
        found = []
        for group in plan.residual_groups:
            for i in plan.selection[group.positions].tolist():
                rows = self.snapshot.list[i].rows
                found += [r["id"] for r in rows if truth(group.predicate, r) is True]
        return sorted(found)

    def kept(self, filters: Any) -> list[int]:
        """Numbers of the splits that stay."""
        return [int(i) for i in self.plan(filters).selection]

    def proved(self, filters: Any) -> list[int]:
        """Numbers of the splits that match with every row."""
        plan = self.plan(filters)
        pairs = zip(plan.selection, plan.verdicts, strict=True)
        return [int(i) for i, verdict in pairs if verdict == 2]


def arrow_table(rows: SplitRows, schema: pa.Schema) -> pa.Table:
    arrays = [arrow_column([r.get(f.name) for r in rows], f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def arrow_column(values: list[Any], dtype: pa.DataType) -> pa.Array:
    if pa.types.is_date(dtype):
        return pa.array(values, pa.int32()).cast(dtype)
    if pa.types.is_timestamp(dtype):
        return pa.array(values, pa.int64()).cast(dtype)
    if pa.types.is_decimal(dtype):
        scaled = [None if v is None else Decimal(v).scaleb(-dtype.scale) for v in values]
        return pa.array(scaled, dtype)
    return pa.array(values, dtype)


def column_of(name: str, values: Sequence[Any]) -> SplitRows:
    """A split of one column."""
    return [{name: v} for v in values]


def one(name: str, dtype: pa.DataType, *splits: Sequence[Any], **options: Any) -> Table:
    """A table of one column, a list of values for each split."""
    return Table([column_of(name, s) for s in splits], pa.schema([(name, dtype)]), **options)
