"""REORG: write splits that have deleted rows again, without them.

A deletion vector hides rows; their bytes stay in the split. REORG removes them from the newest
version: every split with deleted rows is written again, in one commit that changes no row. The old
files go with PURGE, once no version that can still be read lists them; then the bytes are gone for
good, as laws on personal data ask for. A split that others change meanwhile is left for another
try, a few times.
"""

from __future__ import annotations

import time
from typing import Any

from indextables.config import Config
from indextables.errors import CommitConflictError
from indextables.log.actions import Action
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.retention.rules import discard
from indextables.maintenance.delete import persistently
from indextables.maintenance.rewrite import RewriteTask, Rewritten, Runner, run_locally
from indextables.maintenance.rowchange import checked
from indextables.maintenance.rows import ReorgResult
from indextables.maintenance.scope import split_scope
from indextables.storage.deleting import Kind


@mutates("REORG")
def reorg_splits(
    log: TransactionLog,
    *,
    where: Any = None,
    dry_run: bool = False,
    config: Config | None = None,
    run: Runner | None = None,
) -> ReorgResult:
    """Write every split with deleted rows again; ``where`` reads partition columns."""
    settings = config or log.config
    return persistently(lambda: _reorg(log, where, dry_run, settings, run or run_locally))


def _reorg(
    log: TransactionLog, where: Any, dry_run: bool, config: Config, run: Runner
) -> ReorgResult:
    snapshot = log.snapshot()
    scope = split_scope(snapshot, where)
    chosen = [
        snapshot.file(int(i))
        for i in snapshot.num_deleted.nonzero()[0]
        if scope is None or snapshot.path(int(i)) in scope
    ]
    gone = sum(add.num_deleted for add in chosen)
    if dry_run:
        text = f"Would write {len(chosen)} splits again"
        return ReorgResult(log.path, "DRY_RUN", len(chosen), gone, -1, text)
    if not chosen:
        text = "No split has deleted rows"
        return ReorgResult(log.path, "no_action", 0, 0, snapshot.version, text)
    tasks = [RewriteTask.of(log.store, config, snapshot, [add]) for add in chosen]
    done: list[Rewritten] = []
    try:
        done += [checked(result) for result in run(tasks)]
        actions = _actions(done)
        version = log.commit(Transaction(snapshot, "REORG", actions=actions)).version
    except CommitConflictError:
        discard(log, Kind.SPLIT, [r.add.path for r in done if r.add is not None])
        raise
    text = f"Wrote {len(chosen)} splits again without {gone:,} deleted rows; PURGE deletes the old"
    return ReorgResult(log.path, "success", len(chosen), gone, version, text)


def _actions(done: list[Rewritten]) -> list[Action]:
    now = int(time.time() * 1000)
    actions: list[Action] = []
    for result in done:
        actions += [source.removal(now, data_change=False) for source in result.task.sources]
        actions += [] if result.add is None else [result.add]
    return actions
