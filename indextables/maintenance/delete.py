"""DELETE FROM and TRUNCATE TABLE: rows go, the splits that hold them stay.

The planner finds the splits that may hold matching rows; where every row matches, the split is
removed without being opened. In the others the matching rows are found by their indexes and taken
away by deletion vectors (see ``rowchange``). One commit; it conflicts when a row it deletes was
changed meanwhile, or when a file was added that may hold matching rows by its partition values and
statistics, so that no matching row slips through. It is then decided again, a few times.

DELETE needs a condition: none at all (an unset variable, an empty list) is an error. All rows go by
TRUNCATE TABLE, or by a condition that says so (``TRUE``). A truncation opens no split and so also
empties a table whose splits cannot be read; the files stay until PURGE, and RESTORE brings them
back until then.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from indextables.config import Config
from indextables.errors import CommitConflictError, PlanningError
from indextables.expr.filters import says_nothing
from indextables.expr.predicate import TRUE
from indextables.log.actions import AddFile
from indextables.log.commit.follow_up import follow_up
from indextables.log.commit.gate import mutates
from indextables.log.commit.rowlevel import Taken
from indextables.log.commit.transaction import ReadSet, Transaction
from indextables.log.log import TransactionLog
from indextables.maintenance.finding import find, snapshot_of
from indextables.maintenance.rewrite import Runner
from indextables.maintenance.rowchange import RowChange
from indextables.maintenance.rows import DeleteResult
from indextables.planner import Plan, Planner
from indextables.planner.concurrent import file_test
from indextables.planner.stages.verdict import MUST_MATCH
from indextables.xref.auto import rebuild_stale

MOST_ATTEMPTS = 3
T = TypeVar("T")


@mutates("DELETE")
def delete_rows(
    log: TransactionLog,
    where: Any,
    *,
    dry_run: bool = False,
    config: Config | None = None,
    run: Runner | None = None,
    note: Mapping[str, Any] | None = None,
) -> DeleteResult:
    """Delete every row that satisfies ``where``, which has to say something.

    The history keeps the condition, or ``note`` in its place.
    """
    if says_nothing(where):
        raise PlanningError(
            "DELETE needs a condition, and none was given",
            path=log.path,
            hint="Say which rows go; TRUNCATE TABLE (table.truncate()) deletes all of them",
        )
    settings = config or log.config
    said = {"where": str(where)} if note is None else note
    done = persistently(lambda: _delete(log, where, dry_run, settings, run, said))
    return _followed_up(log, settings, done)


@mutates("TRUNCATE")
def truncate_table(log: TransactionLog, *, dry_run: bool = False) -> DeleteResult:
    """Delete all rows, in one commit that opens no split."""
    return _followed_up(log, log.config, persistently(lambda: _truncate(log, dry_run)))


def _followed_up(log: TransactionLog, config: Config, done: DeleteResult) -> DeleteResult:
    """Cross-references of splits that went are rebuilt; that may not fail what is committed."""
    if done.status == "success" and config["xref.autoIndex.enabled"]:
        stale = partial(rebuild_stale, log, config)
        follow_up("rebuild of cross-references", log.path, {}, stale)
    return done


def persistently(attempt: Callable[[], T]) -> T:
    """Decide again a few times when another commit was faster."""
    for _ in range(MOST_ATTEMPTS - 1):
        with contextlib.suppress(CommitConflictError):
            return attempt()
    return attempt()


def _truncate(log: TransactionLog, dry_run: bool) -> DeleteResult:
    snapshot = log.snapshot()
    files = list(snapshot.files())
    gone = sum(f.num_live or 0 for f in files)
    if dry_run:
        text = f"Would remove {len(files)} splits"
        return DeleteResult(log.path, "DRY_RUN", gone, 0, len(files), -1, text)
    if not files:
        text = "The table has no rows"
        return DeleteResult(log.path, "no_action", 0, 0, 0, snapshot.version, text)
    now = int(time.time() * 1000)
    done = log.commit(
        Transaction(
            snapshot,
            "TRUNCATE",
            actions=[add.removal(now) for add in files],
            reads=ReadSet.table(),
            metrics={"numDeletedRows": gone},
        )
    )
    text = f"Deleted all {gone:,} rows"
    return DeleteResult(log.path, "success", gone, 0, len(files), done.version, text)


def _delete(
    log: TransactionLog,
    where: Any,
    dry_run: bool,
    config: Config,
    run: Runner | None,
    said: Mapping[str, Any],
) -> DeleteResult:
    plan = Planner(log, config=config).plan(where)
    plan.check_decidable()
    whole = _whole_splits(plan)
    gone = sum(f.num_live or 0 for f in whole)
    if dry_run:
        others = len(plan) - len(whole)
        text = f"Would remove {len(whole)} splits and look into {others}"
        return DeleteResult(log.path, "DRY_RUN", gone, others, len(whole), -1, text)
    known = {add.path for add in whole}
    taken = [Taken(f.add, f.num_rows, f.rows) for f in find(log.store, plan, config, skip=known)]
    gone += sum(len(one.rows) for one in taken)
    if not whole and not taken:
        version = plan.snapshot.version
        return DeleteResult(log.path, "no_action", 0, 0, 0, version, "No row matches")
    change = RowChange(
        log,
        snapshot_of(plan),
        "DELETE",
        config,
        reads_of(plan),
        parameters=said,
        metrics={"numDeletedRows": gone},
        whole=whole,
        taken=taken,
        run=run,
    )
    version = change.commit().version
    text = f"Deleted {gone:,} rows"
    again = len(change.rewritten)
    return DeleteResult(log.path, "success", gone, again, len(whole), version, text)


def reads_of(plan: Plan) -> ReadSet:
    """What must still be true of a plan's condition when its change is committed."""
    everything = plan.predicate == TRUE
    return ReadSet(whole_table=True) if everything else ReadSet.matching(file_test(plan.predicate))


def _whole_splits(plan: Plan) -> list[AddFile]:
    """Splits that vanish whole: every row matches, and the log knows how many there are."""
    return [
        add
        for add, verdict in zip(plan.splits, plan.verdicts, strict=True)
        if add.num_records is not None and verdict == MUST_MATCH
    ]
