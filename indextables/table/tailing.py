"""The newest rows of a table, and those that come.

The newest are those of the splits that were written last, in the order in which they lie there.
Following asks the change feed of each new version for its inserted and updated rows, so that
commits that only move rows (merges, REORG) show nothing, and no row is shown twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.expr.evaluate import evaluate
from indextables.naming import stored_columns
from indextables.planner import Planner
from indextables.table import feed

if TYPE_CHECKING:
    from indextables.table.table import Table

NEW = ("insert", "update_postimage")
PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class Tail:
    """Which rows, and which columns of them."""

    table: Table
    where: Any = None
    columns: Sequence[str] | None = None

    def last(self, rows: int) -> pa.Table:
        """The newest rows, the newest at the end."""
        plan = self.table.plan(self.where, self.columns)
        plan.check_decidable()
        names = self._names()
        found: list[pa.Table] = []
        files = sorted(plan.splits, key=lambda add: (add.modification_time, add.path))
        while files and sum(part.num_rows for part in found) < rows:
            only = self._only([files.pop()])
            found.insert(0, only.to_arrow(self.where, names))
        empty = pa.schema([self.table.schema.field(n) for n in names]).empty_table()
        whole = pa.concat_tables([empty, *found])
        return whole.slice(max(0, whole.num_rows - rows))

    def _only(self, files: list[Any]) -> Table:
        return type(self.table)(self.table.log, self.table.snapshot.with_only(files))

    def _names(self) -> list[str]:
        plan = self.table.plan(self.where, self.columns)
        return list(self.table.schema.names if plan.columns is None else plan.columns)

    def follow(
        self,
        is_over: Callable[[], bool] = lambda: False,
        pause: Callable[[float], None] = time.sleep,
    ) -> Iterator[pa.Table]:
        """The rows of each version from now on that match."""
        log, seen, names = self.table.log, self.table.version, self._names()
        while not is_over():
            now = log.snapshot().version
            if now == seen:
                pause(PAUSE_SECONDS)
                continue
            for batch in feed.changes(log, seen + 1, now):
                found = self._matching(batch)
                if found.num_rows:
                    yield found.select(names)
            seen = now

    def _matching(self, batch: pa.RecordBatch) -> pa.Table:
        new = pc.is_in(batch.column("_change_type"), pa.array(NEW))
        rows = pa.Table.from_batches([batch]).filter(new)
        known = [name for name in self.table.schema.names if name in rows.column_names]
        rows = rows.select(known)
        if self.where is None or not rows.num_rows:
            return rows
        predicate = Planner(self.table).bind(self.where)
        stored = rows.rename_columns(stored_columns(self.table.schema, known)).combine_chunks()
        kept = evaluate(predicate, stored, mapping=self.table.snapshot.table_mapping)
        return rows.filter(pc.fill_null(kept, False))
