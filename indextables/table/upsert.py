"""Upserts: data meets the rows with the same keys, in one commit.

Each row of the data is compared with the rows of the table that have equal values in the ``on``
columns (NULL equals nothing). A row that matches is updated: with all columns of the data, or with
``update`` expressions, which see the table's row by its plain names (also as ``target.x``) and the
data's as ``source.x``; ``update=False`` leaves it alone. ``delete`` is a condition over the same
two: where it is TRUE the row goes instead. A row of the data without a match is inserted, unless
``insert`` is ``False`` or a condition over the data's row that is not TRUE.

Two rows of the data for one row of the table are an error, as in the standard's MERGE: which of
them should win is not known. Columns that the table does not have follow ``write.mergeSchema``,
as in an append. The table's rows are found by its indexes; only the splits that may hold a key are
looked into. A commit that loses to a change of the same rows is decided again a few times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.buffers import flag_array, number_array
from indextables.config import Config
from indextables.errors import PlanningError
from indextables.expr import filters as f
from indextables.expr.assign import Assignment, bind_assignments, bind_condition, row_scope
from indextables.expr.functions import compute
from indextables.expr.scope import Scope
from indextables.log.actions import AddFile
from indextables.log.commit.gate import mutates
from indextables.log.commit.rowlevel import NO_ROWS, Taken
from indextables.log.commit.transaction import ReadSet
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.log.vectors.codec import Rows32
from indextables.maintenance.after_write import run_after_write
from indextables.maintenance.delete import persistently, reads_of
from indextables.maintenance.finding import Found, find
from indextables.maintenance.rowchange import RowChange, as_updated
from indextables.maintenance.rows import ChangeResult
from indextables.naming import stored_batch
from indextables.planner import Planner
from indextables.splits.write.table_writer import TableWriter
from indextables.table.evolution import conform
from indextables.table.interchange.inputs import as_batches
from indextables.table.order import WriteOrder

MOST_LISTED = 20_000
"""Up to so many keys are looked up one by one; more are looked for between the least and the
greatest."""
AT_ONCE = 65_536
"""So many matched rows get their new form at once."""
SOURCE, TARGET = "source", "target"
_TOO_MANY = "more than one row of the data has the same keys as one row of the table"


@dataclass(frozen=True)
class Upsert:
    """What was asked for."""

    data: pa.Table
    on: tuple[str, ...]
    update: Any = None
    insert: Any = True
    delete: Any = None


@mutates("UPSERT")
def upsert_rows(
    log: TransactionLog,
    data: Any,
    on: str | Sequence[str],
    *,
    update: Any = None,
    insert: Any = True,
    delete: Any = None,
    config: Config | None = None,
) -> ChangeResult:
    """Bring data into a table: rows with equal keys change, the others are added."""
    schema, batches = as_batches(data)
    rows = pa.Table.from_batches(list(batches), schema=schema)
    keys = (on,) if isinstance(on, str) else tuple(on)
    asked = Upsert(rows, keys, update, insert, delete)
    settings = config or log.config
    return persistently(lambda: _Run(log, asked, settings).run())


@dataclass
class _Counts:
    updated: int = 0
    deleted: int = 0
    inserted: int = 0


@dataclass
class _Run:
    """One attempt."""

    log: TransactionLog
    asked: Upsert
    config: Config
    counts: _Counts = field(default_factory=_Counts)

    def __post_init__(self) -> None:
        self.base: Snapshot = self.log.snapshot()
        self.order = WriteOrder(
            self.log.path,
            self.asked.data.schema,
            config=self.config,
            storage_options=self.log.store.options,
        ).decide_on(self.base)
        self.schema = self.order.schema
        self.source = self._conformed()
        self.on = [self._key(name) for name in self.asked.on]
        if not self.on:
            raise PlanningError("an upsert needs key columns", path=self.log.path, hint="Give on=")
        self.given = {self.schema.field(i).name for i in self._given()}
        self._bind()

    def _conformed(self) -> pa.Table:
        """The data in the columns of the table; what it does not have is NULL."""
        parts = [conform(batch, self.schema) for batch in self.asked.data.to_batches()]
        return pa.Table.from_batches(parts, schema=self.schema).combine_chunks()

    def _given(self) -> list[int]:
        names = {name.lower() for name in self.asked.data.schema.names}
        return [i for i, field_ in enumerate(self.schema) if field_.name.lower() in names]

    def _key(self, name: str) -> str:
        (column,) = Scope(self.schema).fields_of((name,))
        if column.name.lower() not in {n.lower() for n in self.asked.data.schema.names}:
            raise PlanningError(f"the data has no key column '{name}'", path=self.log.path)
        if pa.types.is_nested(column.type):
            raise PlanningError(f"column '{name}' is nested and cannot be a key")
        return str(column.name)

    def _bind(self) -> None:
        asked, path = self.asked, self.log.path
        sides = [pa.field(side, pa.struct(list(self.schema))) for side in (SOURCE, TARGET)]
        plain = [c for c in self.schema if c.name.lower() not in (SOURCE, TARGET)]
        self.both = row_scope([*plain, *sides])
        lone = row_scope([*plain, sides[0]])
        self.assignments: dict[str, Assignment] | None = None
        if isinstance(asked.update, Mapping):
            self.assignments = bind_assignments(asked.update, self.schema, self.both, path=path)
        says = isinstance(asked.delete, bool) or asked.delete is None
        self.deletes = None if says else bind_condition(asked.delete, self.both, path=path)
        says = isinstance(asked.insert, bool) or asked.insert is None
        self.inserts = None if says else bind_condition(asked.insert, lone, path=path)

    # -- finding ----------------------------------------------------------------------------------

    def _filter(self) -> Any:
        """What the rows of the table that have a key of the data satisfy."""
        parts: list[Any] = []
        for name in self.on:
            if name not in self.base.schema.names:
                return f.Lit(False)
            values = self.source.column(name).drop_null().unique()
            if len(values) == 0:
                return f.Lit(False)
            if len(values) <= MOST_LISTED:
                parts.append(f.In(name, tuple(values.to_pylist())))
            else:
                ends = pc.min_max(values).as_py()
                parts.append(f.GreaterThanOrEqual(name, ends["min"]))
                parts.append(f.LessThanOrEqual(name, ends["max"]))
        return parts[0] if len(parts) == 1 else f.And(*parts)

    def run(self) -> ChangeResult:
        plan = Planner(self.log, config=self.config).plan(self._filter())
        if plan.snapshot.version != self.base.version:
            plan = Planner(self.base, config=self.config).plan(self._filter())
        writers = [self.order.writer(self.log.store)]
        try:
            taken, matched = self._match(plan, writers[0])
            new = self._new_rows(matched)
            if not writers[0].keeps_order:
                writers.append(self.order.writer(self.log.store))
            for batch in new.to_batches():
                writers[-1].write(stored_batch(batch, self.schema))
            added = [add for writer in writers for add in writer.finish()]
        except BaseException:
            for writer in writers:
                writer.abort()
            raise
        added = as_updated(added, self.counts.updated)
        return self._commit(taken, added, reads_of(plan))

    def _match(self, plan: Any, writer: TableWriter) -> tuple[list[Taken], NDArray[np.bool_]]:
        """The rows of the table that change, whose new form is written on the way."""
        matched = np.zeros(self.source.num_rows, np.bool_)
        coder = _Coder(self.source, self.on)
        taken: list[Taken] = []
        waiting: list[_Hits] = []
        for found in find(self.log.store, plan, self.config, self._columns()):
            waiting.append(self._hits(found, coder, matched))
            if sum(len(one.rows) for one in waiting) >= AT_ONCE:
                taken += self._change(waiting, coder, writer)
                waiting = []
        taken += self._change(waiting, coder, writer)
        return taken, matched

    def _columns(self) -> list[str]:
        """What has to be read of a row: its keys, and whatever the new form takes from the old."""
        known = list(self.base.schema.names)
        if self.asked.update is False and self.deletes is None:
            return self.on
        everything = self.assignments is not None or self.deletes is not None
        if everything:
            return known
        return [n for n in known if n in self.on or n not in self.given]

    def _hits(self, found: Found, coder: _Coder, matched: NDArray[np.bool_]) -> _Hits:
        """The rows of one split that have a key of the data."""
        at, rows, places, batches = 0, [NO_ROWS], [np.empty(0, np.int64)], []
        for batch in found.batches:
            here = coder.places(batch)
            hit = np.flatnonzero(here >= 0)
            rows.append(found.rows[at + hit])
            places.append(here[hit])
            whole = len(hit) == batch.num_rows
            batches.append(batch if whole else batch.take(number_array(hit)))
            at += batch.num_rows
        hits = _Hits(found, np.concatenate(rows), np.concatenate(places), batches)
        matched[coder.rows_of(hits.places)] = True
        return hits

    def _change(
        self, waiting: Sequence[_Hits], coder: _Coder, writer: TableWriter
    ) -> Iterator[Taken]:
        """The rows that go, in the order of the splits; the new form of those that are updated."""
        if self.asked.update is False and self.deletes is None and self.asked.delete is not True:
            return
        places = np.concatenate([np.empty(0, np.int64), *(one.places for one in waiting)])
        if not len(places):
            return
        coder.require_single(places, self.log.path)
        theirs = self.source.take(number_array(coder.first_rows(places))).combine_chunks()
        parts = [conform(batch, self.schema) for one in waiting for batch in one.batches]
        mine = pa.Table.from_batches(parts, schema=self.schema).combine_chunks().to_batches()[0]
        goes, changes = self._fates(mine, theirs, writer)
        self.counts.deleted += int(goes.sum())
        self.counts.updated += int(changes.sum())
        at = 0
        for one in waiting:
            here = slice(at, at + len(one.rows))
            at += len(one.rows)
            gone, changed = one.rows[goes[here] | changes[here]], one.rows[changes[here]]
            if len(gone):
                yield Taken(one.found.add, one.found.num_rows, gone, changed)

    def _fates(
        self, mine: pa.RecordBatch, theirs: pa.Table, writer: TableWriter
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which of the matched rows are deleted, and which are updated (and written)."""
        goes = np.full(mine.num_rows, self.asked.delete is True)
        both = None
        if self.deletes is not None or self.assignments is not None:
            both = _side_by_side(mine, theirs, self.schema)
        if self.deletes is not None:
            goes = _is_true(compute(self.deletes, both))
        if self.asked.update is False:
            return goes, np.zeros(mine.num_rows, np.bool_)
        stays = np.flatnonzero(~goes)
        if len(stays):
            new = self._new_form(mine, theirs, both)
            new = new if len(stays) == mine.num_rows else new.take(number_array(stays))
            writer.write(stored_batch(new, self.schema))
        return goes, ~goes

    def _new_form(
        self, mine: pa.RecordBatch, theirs: pa.Table, both: pa.RecordBatch | None
    ) -> pa.RecordBatch:
        arrays = []
        for column in self.schema:
            name = column.name
            if self.assignments is not None:
                one = self.assignments.get(name)
                arrays.append(mine.column(name) if one is None else one.over(both))
            elif name in self.given:
                arrays.append(_flat(theirs.column(name)))
            else:
                arrays.append(mine.column(name))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    # -- inserting --------------------------------------------------------------------------------

    def _new_rows(self, matched: NDArray[np.bool_]) -> pa.Table:
        """The rows of the data that are inserted."""
        if self.asked.insert is False:
            return self.source.slice(0, 0)
        left = self.source.filter(flag_array(~matched)).combine_chunks()
        if self.inserts is not None and left.num_rows:
            (batch,) = left.to_batches()
            row = _side_by_side(batch, None, self.schema)
            left = left.filter(flag_array(_is_true(compute(self.inserts, row))))
        self.counts.inserted += left.num_rows
        return left

    # -- the commit -------------------------------------------------------------------------------

    def _commit(
        self,
        taken: list[Taken],
        added: list[AddFile],
        reads: ReadSet,
    ) -> ChangeResult:
        counts, path = self.counts, self.log.path
        numbers = (counts.updated, counts.deleted, counts.inserted)
        if not taken and not added:
            version = self.base.version
            return ChangeResult(path, "no_action", 0, 0, 0, 0, version, "Nothing changes")
        metrics = dict(
            zip(("numUpdatedRows", "numDeletedRows", "numInsertedRows"), numbers, strict=True)
        )
        change = RowChange(
            self.log,
            self.base,
            "UPSERT",
            self.config,
            reads,
            parameters={"on": list(self.on)},
            metrics=metrics,
            taken=taken,
            added=added,
            heads=lambda latest: self.order.changes_of_schema(latest),
        )
        done = change.commit()
        run_after_write(self.log, self.config, done.failures, replaced=change.removes_splits)
        text = "Updated {:,} rows, deleted {:,}, inserted {:,}".format(*numbers)
        return ChangeResult(path, "success", *numbers, len(taken), done.version, text)


@dataclass(frozen=True, slots=True)
class _Hits:
    """The rows of one split that have a key of the data, and the places of their keys."""

    found: Found
    rows: Rows32
    places: NDArray[np.int64]
    batches: Sequence[pa.RecordBatch]


class _Coder:
    """Keys of the data as numbers; rows of the table find theirs by the same numbers."""

    def __init__(self, source: pa.Table, on: Sequence[str]) -> None:
        self._on = on
        self._values = [source.column(n).combine_chunks().drop_null().unique() for n in on]
        codes = self._codes([_flat(source.column(name)) for name in on])
        self._known, first, inverse, counts = np.unique(
            codes, return_index=True, return_inverse=True, return_counts=True
        )
        self._first, self._counts = first, counts
        self._order = np.argsort(inverse, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(counts)])

    def _codes(self, columns: Sequence[Any]) -> NDArray[np.int64]:
        """One number for each combination of keys, -1 where a key is NULL or not in the data."""
        total = np.zeros(len(columns[0]), np.int64)
        absent = np.zeros(len(columns[0]), np.bool_)
        for column, values in zip(columns, self._values, strict=True):
            found = pc.index_in(column, value_set=values).fill_null(-1)
            code = found.to_numpy(zero_copy_only=False).astype(np.int64)
            absent |= code < 0
            total = total * max(len(values), 1) + code
        total[absent] = -1
        return total

    def places(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """For each row the place of its key among the data's keys, -1 where there is none."""
        codes = self._codes([batch.column(name) for name in self._on])
        if not len(self._known):
            return np.full(len(codes), -1, np.int64)
        at = np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)
        hit = (self._known[at] == codes) & (codes >= 0)
        return np.where(hit, at, -1)

    def rows_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """All rows of the data that have one of these keys."""
        parts = [self._order[self._starts[p] : self._starts[p + 1]] for p in np.unique(places)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def first_rows(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self._first[places]
        return found

    def require_single(self, places: NDArray[np.int64], path: str) -> None:
        if len(places) and int(self._counts[places].max()) > 1:
            raise PlanningError(
                _TOO_MANY, path=path, hint="Keep one row for each key; nothing was changed"
            )


def _side_by_side(
    mine: pa.RecordBatch, theirs: pa.Table | None, schema: pa.Schema
) -> pa.RecordBatch:
    """A batch in which expressions see plain names, ``target`` and ``source``."""
    own = pa.StructArray.from_arrays(mine.columns, fields=list(schema))
    arrays = [mine.column(c.name) for c in schema if c.name.lower() not in (SOURCE, TARGET)]
    names = [c.name for c in schema if c.name.lower() not in (SOURCE, TARGET)]
    if theirs is None:
        return pa.RecordBatch.from_arrays([*arrays, own], names=[*names, SOURCE])
    given = pa.StructArray.from_arrays(
        [_flat(theirs.column(c.name)) for c in schema], fields=list(schema)
    )
    return pa.RecordBatch.from_arrays([*arrays, given, own], names=[*names, SOURCE, TARGET])


def _flat(column: Any) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _is_true(values: Any) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return found
