"""DELETE, UPDATE and MERGE INTO from Spark SQL, for tables by name.

What our own planner can decide, on little data, is done in the driver by the verbs that work
without Spark. Everything else becomes one query of Spark's: the rows of the target, which know
their split and number, joined with the source; for each row the clause that applies, and the new
values. Tasks write the new forms and answer with the rows that go; the driver makes one commit.

Target splits that cannot hold a row are left out first: by the condition where our planner
understands it, or by the source's keys where the ON condition compares columns of both sides and
the keys are few. Two rows of the source that change one row of the target are an error, as the
standard says; the same row deleted twice is not.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.config import Config
from indextables.errors import IndexTablesError, PlanningError
from indextables.expr import filters as f
from indextables.expr.lexer import quoted_name
from indextables.expr.predicate import TRUE, Predicate
from indextables.log.commit.rowlevel import Taken
from indextables.log.commit.transaction import ReadSet
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.maintenance.after_write import run_after_write
from indextables.maintenance.delete import reads_of
from indextables.maintenance.rowchange import RowChange, as_updated
from indextables.maintenance.rows import ChangeResult
from indextables.planner import Plan, Planner
from indextables.spark.driver.request import Access, access, session_settings
from indextables.spark.driver.tables import SHARED
from indextables.spark.sql.rowlevel import (
    BY_SOURCE,
    INSERTED,
    MATCHED,
    Change,
    Clause,
    key_pairs,
    unqualified,
)
from indextables.spark.tasks.locating import CLAUSE, ROW, SPLIT, Answer, Changer, Locator
from indextables.table.order import WriteOrder
from indextables.types import schema_to_json

HERE = "__here"
MOST_KEYS = 20_000
IN_DRIVER = 64 << 20
"""Bytes of splits that the driver looks into itself."""


def change_rows(spark: Any, change: Change, path: str) -> Any:
    """Run a statement on the table at ``path``; its result row."""
    table = access({**session_settings(spark), "path": path})
    log = SHARED.log(table)
    log.writable_snapshot()
    if change.verb != "MERGE":
        done = _in_driver(log, change)
        if done is not None:
            return done
    return _Run(spark, table, log, change).run()


def _in_driver(log: TransactionLog, change: Change) -> Any:
    """The same by a verb of ours, where that can be decided and is little to read."""
    from indextables.maintenance.delete import delete_rows, truncate_table
    from indextables.maintenance.update import update_rows

    (clause,) = change.clauses
    if clause.condition is None and clause.values is None:
        return truncate_table(log)
    where = unqualified(clause.condition or "TRUE", change.alias)
    try:
        plan = Planner(log).plan(where)
        plan.check_decidable()
        if int(plan.snapshot.sizes[plan.selection].sum()) > IN_DRIVER:
            return None
        if clause.values is None:
            return delete_rows(log, where)
        values = {name: unqualified(text, change.alias) for name, text in clause.values}
        return update_rows(log, where, values)
    except PlanningError:
        return None


@dataclass
class _Run:
    """One statement as a query of Spark's."""

    spark: Any
    table: Access
    log: TransactionLog
    change: Change

    def __post_init__(self) -> None:
        self.base: Snapshot = self.log.snapshot()
        self.reads = ReadSet(whole_table=True)
        self.source_columns: list[Any] = []
        if self.change.verb == "MERGE":
            self.source_columns = list(
                self.spark.sql(f"SELECT * FROM {self.change.source}").schema.fields
            )
        self.order = self._order()

    def _order(self) -> WriteOrder:
        """The schema that the new rows have; it grows where the statement asks for it."""
        from indextables.types import schema_from_json

        schema = self.base.schema
        extra = self._extra_columns()
        settings: dict[str, Any] = {}
        if extra:
            from pyspark.sql.types import StructType

            fields = schema_from_json(StructType(extra).json())
            schema = pa.schema([*schema, *(fields.field(i) for i in range(len(fields)))])
            settings = {"write.mergeSchema": True}
        return WriteOrder(
            self.table.path,
            schema,
            config=Config.of(settings, self.table.config),
            storage_options=dict(self.table.storage_options),
        ).decide_on(self.base)

    def _extra_columns(self) -> list[Any]:
        if not self.change.evolves or not any(c.takes_all for c in self.change.clauses):
            return []
        known = {name.lower() for name in self.base.schema.names}
        return [c for c in self.source_columns if c.name.lower() not in known]

    def run(self) -> ChangeResult:
        view = f"_indextables_{uuid.uuid4().hex}"
        self._target().createOrReplaceTempView(view)
        try:
            answers = self._answers(self.spark.sql(self._query(view)))
        finally:
            self.spark.catalog.dropTempView(view)
        return self._commit(answers)

    # -- the target -------------------------------------------------------------------------------

    def _plan(self) -> Plan:
        planner = Planner(self.log, config=self.table.config)
        predicate = self._pruning(planner)
        plan = planner.plan(predicate)
        if predicate is not None and plan.predicate != TRUE:
            self.reads = reads_of(plan)
        return plan

    def _pruning(self, planner: Planner) -> Predicate | None:
        """A condition that every row of the target satisfies which may change."""
        if any(c.kind == BY_SOURCE for c in self.change.clauses):
            return None
        try:
            if self.change.verb == "MERGE":
                keys = self._source_keys()
                return None if keys is None else planner.bind(keys)
            text = self.change.clauses[0].condition
            bound = planner.bind(unqualified(text, self.change.alias)) if text else None
            planner.plan(bound).check_decidable()
            return bound
        except IndexTablesError:
            return None

    def _source_keys(self) -> Any:
        """The target's key columns compared with the values that the source has."""
        change = self.change
        parts: list[Any] = []
        for target, source in key_pairs(change.on, change.alias, change.source_alias):
            column = quoted_name(source)
            found = self.spark.sql(
                f"SELECT DISTINCT {column} AS k FROM {change.source} WHERE {column} IS NOT NULL "
                f"LIMIT {MOST_KEYS + 1}"
            ).collect()
            if len(found) <= MOST_KEYS:
                values = tuple(row[0] for row in found)
                parts.append(f.In(target, values) if values else f.Lit(False))
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else f.And(*parts)

    def _target(self) -> Any:
        """A DataFrame of the target's rows with their places."""
        from pyspark.sql.types import LongType, StringType, StructType

        plan = self._plan()
        schema = self.base.schema
        output = StructType.fromJson(_json(schema)).add(SPLIT, StringType()).add(ROW, LongType())
        tasks = [replace(task, columns=None) for task in plan.tasks]
        blobs = [(pickle.dumps(task),) for task in tasks]
        frame = self.spark.createDataFrame(blobs, "task binary")
        if len(blobs) > 1:
            frame = frame.repartition(len(blobs))
        from indextables.spark.compat import arrow_schema

        locator = Locator(self.table, schema, arrow_schema(output))
        return frame.mapInArrow(lambda batches: locator(batches), output)

    # -- the query --------------------------------------------------------------------------------

    def _query(self, view: str) -> str:
        change = self.change
        target = quoted_name(change.alias)
        columns = [f"{self._clause_of()} AS {CLAUSE}", f"{target}.{SPLIT}", f"{target}.{ROW}"]
        columns += [self._value(column) for column in self.order.schema]
        if change.verb == "MERGE":
            source = quoted_name(change.source_alias)
            kinds = {clause.kind for clause in change.clauses}
            join = "FULL OUTER" if BY_SOURCE in kinds and INSERTED in kinds else "INNER"
            join = "LEFT OUTER" if join == "INNER" and BY_SOURCE in kinds else join
            join = "RIGHT OUTER" if join == "INNER" and INSERTED in kinds else join
            tables = (
                f"{view} AS {target} {join} JOIN (SELECT *, TRUE AS {HERE} FROM {change.source}) "
                f"AS {source} ON {change.on}"
            )
        else:
            tables = f"{view} AS {target}"
        return f"SELECT * FROM (SELECT {', '.join(columns)} FROM {tables}) WHERE {CLAUSE} > 0"

    def _clause_of(self) -> str:
        """The number of the first clause that applies to a row; 0 where none does."""
        change = self.change
        if change.verb != "MERGE":
            condition = change.clauses[0].condition
            return "1" if condition is None else f"CASE WHEN {condition} THEN 1 ELSE 0 END"
        target, source = quoted_name(change.alias), quoted_name(change.source_alias)
        tests = {
            MATCHED: f"{target}.{ROW} IS NOT NULL AND {source}.{HERE} IS NOT NULL",
            INSERTED: f"{target}.{ROW} IS NULL",
            BY_SOURCE: f"{source}.{HERE} IS NULL",
        }
        whens = []
        for number, clause in enumerate(change.clauses, 1):
            more = f" AND ({clause.condition})" if clause.condition else ""
            whens.append(f"WHEN {tests[clause.kind]}{more} THEN {number}")
        return f"CASE {' '.join(whens)} ELSE 0 END"

    def _value(self, column: pa.Field) -> str:
        name, dtype = quoted_name(column.name), self._type_text(column)
        whens = [
            f"WHEN {number} THEN CAST({self._new(clause, column)} AS {dtype})"
            for number, clause in enumerate(self.change.clauses, 1)
            if clause.values is not None
        ]
        if not whens:
            return f"CAST(NULL AS {dtype}) AS {name}"
        return f"CASE {CLAUSE} {' '.join(whens)} END AS {name}"

    def _new(self, clause: Clause, column: pa.Field) -> str:
        """What a clause makes of a column."""
        known = {n.lower() for n in self.base.schema.names}
        own = f"{quoted_name(self.change.alias)}.{quoted_name(column.name)}"
        old = own if clause.kind != INSERTED and column.name.lower() in known else "NULL"
        if clause.takes_all:
            given = {c.name.lower() for c in self.source_columns}
            if column.name.lower() not in given:
                return old
            return f"{quoted_name(self.change.source_alias)}.{quoted_name(column.name)}"
        values = {name.lower(): text for name, text in clause.values or ()}
        unknown = values.keys() - {c.name.lower() for c in self.order.schema}
        if unknown:
            raise PlanningError(
                f"the table has no column '{sorted(unknown)[0]}'", path=self.table.path
            )
        text = values.get(column.name.lower())
        return old if text is None else f"({text})"

    def _type_text(self, column: pa.Field) -> str:
        from pyspark.sql.types import StructType

        found = StructType.fromJson(_json(pa.schema([column])))
        return str(found.fields[0].dataType.simpleString())

    # -- tasks and commit -------------------------------------------------------------------------

    @property
    def _kinds(self) -> tuple[str, ...]:
        return tuple(
            "insert" if c.kind == INSERTED else "delete" if c.values is None else "update"
            for c in self.change.clauses
        )

    def _answers(self, frame: Any) -> list[Answer]:
        changer = Changer(self.order, self._kinds)
        rows = frame.mapInArrow(lambda batches: changer(batches), "answer binary").collect()
        return [pickle.loads(row[0]) for row in rows]

    def _commit(self, answers: Sequence[Answer]) -> ChangeResult:
        updated = [add for answer in answers for add in answer.updated]
        inserted = [add for answer in answers for add in answer.inserted]
        try:
            taken = self._taken(answers)
        except BaseException:
            self.order.discard([*updated, *inserted], self.log.store)
            raise
        counts = {
            kind: sum(answer.counts.get(kind, 0) for answer in answers)
            for kind in ("update", "insert")
        }
        deleted = sum(len(one.rows) - len(one.updated) for one in taken)
        numbers = (counts["update"], deleted, counts["insert"])
        path = self.table.path
        if not taken and not inserted:
            text = "Nothing changes"
            return ChangeResult(path, "no_action", 0, 0, 0, 0, self.base.version, text)
        names = ("numUpdatedRows", "numDeletedRows", "numInsertedRows")
        change = RowChange(
            self.log,
            self.base,
            self.change.verb,
            self.table.config,
            self.reads,
            parameters={"on": self.change.on} if self.change.on else {},
            metrics=dict(zip(names, numbers, strict=True)),
            taken=taken,
            added=[*as_updated(updated), *inserted],
            heads=self.order.changes_of_schema,
        )
        done = change.commit()
        run_after_write(self.log, self.table.config, done.failures, replaced=change.removes_splits)
        text = "Updated {:,} rows, deleted {:,}, inserted {:,}".format(*numbers)
        return ChangeResult(path, "success", *numbers, len(taken), done.version, text)

    def _taken(self, answers: Sequence[Answer]) -> list[Taken]:
        by_split: dict[str, list[Any]] = {}
        for answer in answers:
            for path, parts in answer.gone.items():
                by_split.setdefault(path, []).extend(parts)
        found = []
        for path, parts in by_split.items():
            place = self.base.index_of(path)
            assert place is not None
            add = self.base.file(place)
            deleted = np.concatenate([np.empty(0, np.uint32), *(r for r, new in parts if not new)])
            updated = np.concatenate([np.empty(0, np.uint32), *(r for r, new in parts if new)])
            deleted = np.unique(deleted)
            rows = np.concatenate([deleted, updated])
            if len(np.unique(rows)) < len(rows):
                raise PlanningError(
                    "more than one row of the source changes one row of the table",
                    path=self.table.path,
                    hint="Keep one row for each key of the source; nothing was changed",
                )
            found.append(Taken(add, _num_rows(self.log, add), np.sort(rows), np.sort(updated)))
        return found


def _num_rows(log: TransactionLog, add: Any) -> int:
    from indextables.splits.read.reader import SplitReader

    if add.num_records is not None:
        return int(add.num_records)
    return SplitReader.open(log.store, add, config=log.config).num_rows


def _json(schema: pa.Schema) -> Any:
    import json

    return json.loads(schema_to_json(schema))
