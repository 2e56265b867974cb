"""UPDATE: rows get new values, in one commit.

The rows are found as those of a DELETE are. Their new form is written to new splits, the old form
goes by deletion vectors, and no reader sees both or neither. Expressions see the row as it was:
``{"a": "b", "b": "a"}`` swaps. A condition that says nothing is an error; ``TRUE`` means all rows.

A commit that loses to another change of the same row, or to new rows that match, is decided again
on the newest version, so no update is lost; after a few attempts it ends with the conflict.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.errors import PlanningError
from indextables.expr.assign import Assignment, bind_assignments, row_scope
from indextables.expr.filters import says_nothing
from indextables.log.actions import AddFile
from indextables.log.commit.gate import mutates
from indextables.log.commit.rowlevel import Taken
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.maintenance.after_write import run_after_write
from indextables.maintenance.delete import persistently, reads_of
from indextables.maintenance.finding import find, snapshot_of
from indextables.maintenance.rewrite import Runner
from indextables.maintenance.rowchange import RowChange, as_updated
from indextables.maintenance.rows import ChangeResult
from indextables.mapping import DocMapping
from indextables.naming import stored_batch
from indextables.planner import Plan, Planner
from indextables.splits.write.table_writer import TableWriter


@mutates("UPDATE")
def update_rows(
    log: TransactionLog,
    where: Any,
    values: Mapping[str, Any],
    *,
    dry_run: bool = False,
    config: Config | None = None,
    run: Runner | None = None,
) -> ChangeResult:
    """Give the rows that satisfy ``where`` new values."""
    if says_nothing(where):
        raise PlanningError(
            "UPDATE needs a condition, and none was given",
            path=log.path,
            hint="Say which rows change; TRUE means all of them",
        )
    settings = config or log.config
    return persistently(lambda: _update(log, where, values, dry_run, settings, run))


def _update(
    log: TransactionLog,
    where: Any,
    values: Mapping[str, Any],
    dry_run: bool,
    config: Config,
    run: Runner | None,
) -> ChangeResult:
    plan = Planner(log, config=config).plan(where)
    plan.check_decidable()
    snapshot = snapshot_of(plan)
    row = row_scope(snapshot.schema)
    assignments = bind_assignments(values, snapshot.schema, row, path=log.path)
    if dry_run:
        text = f"Would look into {len(plan)} splits"
        return ChangeResult(log.path, "DRY_RUN", 0, 0, 0, len(plan), -1, text)
    taken, added = _written(log, plan, assignments, config)
    count = sum(len(one.rows) for one in taken)
    if not taken:
        text = "No row matches"
        return ChangeResult(log.path, "no_action", 0, 0, 0, 0, snapshot.version, text)
    shown = {name: str(value) for name, value in values.items()}
    change = RowChange(
        log,
        snapshot,
        "UPDATE",
        config,
        reads_of(plan),
        parameters={"where": str(where), "set": shown},
        metrics={"numUpdatedRows": count},
        taken=taken,
        added=as_updated(added),
        heads=lambda latest: refuse_other_schema(snapshot, latest),
        run=run,
    )
    done = change.commit()
    run_after_write(log, config, done.failures, replaced=change.removes_splits)
    text = f"Updated {count:,} rows"
    return ChangeResult(log.path, "success", count, 0, 0, len(taken), done.version, text)


def _written(
    log: TransactionLog, plan: Plan, assignments: Mapping[str, Assignment], config: Config
) -> tuple[list[Taken], list[AddFile]]:
    """The rows that go, and the splits with their new form."""
    writer = row_writer(log, snapshot_of(plan), config)
    schema = plan.snapshot.schema
    taken = []
    try:
        for found in find(log.store, plan, config, schema.names):
            taken.append(Taken(found.add, found.num_rows, found.rows, found.rows))
            for batch in found.batches:
                writer.write(stored_batch(changed(batch, assignments, schema), schema))
        return taken, writer.finish()
    except BaseException:
        writer.abort()
        raise


def changed(
    batch: pa.RecordBatch, assignments: Mapping[str, Assignment], schema: pa.Schema
) -> pa.RecordBatch:
    """Rows with their new values."""
    arrays = [
        assignments[name].over(batch) if name in assignments else batch.column(name)
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def row_writer(log: TransactionLog, snapshot: Snapshot, config: Config) -> TableWriter:
    """A writer of splits that fit the table as it is; it takes rows in the names of files."""
    known = snapshot.table_mapping
    return TableWriter(
        snapshot.stored_schema,
        snapshot.stored_partition_columns,
        known or DocMapping.for_schema(snapshot.stored_schema, snapshot.stored_partition_columns),
        config,
        log.store,
        job_id=uuid.uuid4().hex,
        column_indexes={c: d.id for c, d in snapshot.indexes.definitions.items()},
    )


def refuse_other_schema(base: Snapshot, latest: Snapshot) -> tuple[()]:
    """The new rows have the columns of ``base``; a schema that changed meanwhile is a conflict."""
    from indextables.log.commit.conflict import conflict

    same = base.metadata.schema_string == latest.metadata.schema_string
    if not same or base.metadata.id != latest.metadata.id:
        raise conflict("metadata changed", "the schema is another now", latest.version)
    return ()
