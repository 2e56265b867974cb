"""DELETE FROM and TRUNCATE TABLE: rows go by rewriting the splits that hold them.

The planner finds the splits that may hold matching rows; where every row matches, the split is
removed without being opened. The others are written again without those rows. One commit; it
conflicts when a touched split is gone meanwhile, or when a file was added that may hold matching
rows by its partition values and statistics, so that no matching row slips through.

DELETE needs a condition: none at all (an unset variable, an empty list) is an error. All rows go by
TRUNCATE TABLE, or by a condition that says so (``TRUE``). A truncation opens no split and so also
empties a table whose splits cannot be read; the files stay until PURGE, and RESTORE brings them
back until then.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from indextables.config import Config
from indextables.errors import CommitConflictError, MaintenanceError, PlanningError
from indextables.expr.filters import says_nothing
from indextables.expr.predicate import TRUE
from indextables.log.actions import Action, AddFile
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import ReadSet, Transaction
from indextables.log.log import TransactionLog
from indextables.log.retention.rules import discard
from indextables.maintenance.rewrite import RewriteTask, Rewritten, Runner, run_locally
from indextables.maintenance.rows import DeleteResult
from indextables.planner import Plan, Planner
from indextables.planner.concurrent import file_test
from indextables.planner.stages.verdict import MUST_MATCH
from indextables.storage.deleting import Kind

MOST_ATTEMPTS = 3


@mutates("DELETE")
def delete_rows(
    log: TransactionLog,
    where: Any,
    *,
    dry_run: bool = False,
    config: Config | None = None,
    run: Runner | None = None,
) -> DeleteResult:
    """Delete every row that satisfies ``where``, which has to say something."""
    if says_nothing(where):
        raise PlanningError(
            "DELETE needs a condition, and none was given",
            path=log.path,
            hint="Say which rows go; TRUNCATE TABLE (table.truncate()) deletes all of them",
        )
    settings = config or log.config
    return _persistently(lambda: _delete(log, where, dry_run, settings, run or run_locally))


@mutates("TRUNCATE")
def truncate_table(log: TransactionLog, *, dry_run: bool = False) -> DeleteResult:
    """Delete all rows, in one commit that opens no split."""
    return _persistently(lambda: _truncate(log, dry_run))


def _persistently(attempt: Callable[[], DeleteResult]) -> DeleteResult:
    """Try again a few times when another commit was faster."""
    for _ in range(MOST_ATTEMPTS - 1):
        with contextlib.suppress(CommitConflictError):
            return attempt()
    return attempt()


def _truncate(log: TransactionLog, dry_run: bool) -> DeleteResult:
    snapshot = log.snapshot()
    files = list(snapshot.files())
    gone = sum(f.num_records or 0 for f in files)
    if dry_run:
        text = f"Would remove {len(files)} splits"
        return DeleteResult(log.path, "DRY_RUN", gone, 0, len(files), -1, text)
    if not files:
        text = "The table has no rows"
        return DeleteResult(log.path, "no_action", 0, 0, 0, snapshot.version, text)
    done = log.commit(
        Transaction(
            snapshot,
            "TRUNCATE",
            actions=list(_actions(files, [])),
            reads=ReadSet.table(),
            metrics={"numDeletedRows": gone},
        )
    )
    text = f"Deleted all {gone:,} rows"
    return DeleteResult(log.path, "success", gone, 0, len(files), done.version, text)


def _delete(
    log: TransactionLog, where: Any, dry_run: bool, config: Config, run: Runner
) -> DeleteResult:
    snapshot = log.snapshot()
    plan = Planner(log, config=config).plan(where)
    plan.check_decidable()
    whole, partly = _sort(plan)
    gone = sum(f.num_records or 0 for f in whole)
    if dry_run:
        text = f"Would remove {len(whole)} splits and look into {len(partly)}"
        return DeleteResult(log.path, "DRY_RUN", gone, len(partly), len(whole), -1, text)
    tasks = [RewriteTask.of(log.store, config, snapshot, [f], plan.predicate) for f in partly]
    done = [_checked(r) for r in run(tasks)] if tasks else []
    touched = [r for r in done if r.dropped]
    gone += sum(r.dropped for r in touched)
    if not whole and not touched:
        return DeleteResult(log.path, "no_action", 0, 0, 0, snapshot.version, "No row matches")
    transaction = Transaction(
        snapshot,
        "DELETE",
        parameters={"where": str(where)},
        actions=list(_actions(whole, touched)),
        reads=_reads(plan),
        metrics={"numDeletedRows": gone},
    )
    try:
        version = log.commit(transaction).version
    except CommitConflictError:
        discard(log, Kind.SPLIT, [r.add.path for r in touched if r.add is not None])
        raise
    text = f"Deleted {gone:,} rows"
    return DeleteResult(log.path, "success", gone, len(touched), len(whole), version, text)


def _reads(plan: Plan) -> ReadSet:
    everything = plan.predicate == TRUE
    return ReadSet(whole_table=True) if everything else ReadSet.matching(file_test(plan.predicate))


def _sort(plan: Plan) -> tuple[list[AddFile], list[AddFile]]:
    """Splits that vanish whole, and splits that must be looked into."""
    whole: list[AddFile] = []
    partly: list[AddFile] = []
    for add, verdict in zip(plan.splits, plan.verdicts, strict=True):
        known = add.num_records is not None and verdict == MUST_MATCH
        (whole if known else partly).append(add)
    return whole, partly


def _checked(result: Rewritten) -> Rewritten:
    if result.error is not None:
        raise MaintenanceError(
            f"a split could not be read: {result.error}",
            path=result.failed_path,
            hint="Run DOCTOR; nothing was deleted",
        )
    return result


def _actions(whole: list[AddFile], touched: list[Rewritten]) -> Iterator[Action]:
    now = int(time.time() * 1000)
    for add in whole:
        yield add.removal(now)
    for result in touched:
        yield result.task.sources[0].removal(now)
        if result.add is not None:
            yield result.add
