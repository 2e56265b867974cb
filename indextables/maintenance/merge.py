"""MERGE SPLITS: fewer, larger splits, the same rows.

Passes over the newest snapshot until nothing is left to merge. Groups run in batches and each
batch is one commit: sources out, merged splits in, ``dataChange`` false. A commit that finds a
source gone (another merge, a drop) discards its groups and the next pass plans again. A source that
cannot be read stays live and is noted as ``mergeskip``, once; the others of its group are merged
without it, and it is tried again after the cooldown. A machine that ran short ends the merge and
leaves no note: what was merged stays merged. Stale cross-references are rebuilt at the end, the
log's state is compacted.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from indextables.clustering import cluster_columns, place_of
from indextables.config import Config
from indextables.errors import (
    CommitConflictError,
    CommitFailedError,
    MaintenanceError,
)
from indextables.log.actions import Action, AddFile, SkipFile
from indextables.log.commit.follow_up import Failures, follow_up
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.log.retention.rules import discard
from indextables.maintenance.merge_plan import (
    DEFAULT_TARGET,
    MergeGroup,
    MergeLimits,
    Place,
    plan_merges,
)
from indextables.maintenance.rewrite import RewriteTask, Rewritten, Runner, run_locally
from indextables.maintenance.rows import MergeMetrics, MergeResult
from indextables.maintenance.scope import matching_files, partition_predicate
from indextables.naming import stored_columns
from indextables.progress import progress
from indextables.storage.deleting import Kind
from indextables.xref.auto import rebuild_stale
from indextables.xref.keymaps.build import update_keymaps

LOG = logging.getLogger("indextables.maintenance")


@dataclass
class _Tally:
    merged_files: int = 0
    groups: int = 0
    before: int = 0
    after: int = 0
    skipped: list[str] = field(default_factory=list)
    conflicts: int = 0


@mutates("MERGE SPLITS")
def merge_splits(
    log: TransactionLog,
    *,
    where: Any = None,
    target_size: int | None = None,
    max_dest_splits: int | None = None,
    max_source_splits: int | None = None,
    precommit: bool = False,
    config: Config | None = None,
    run: Runner | None = None,
) -> MergeResult:
    """Merge small splits into larger ones."""
    settings = config or log.config
    if precommit:
        raise MaintenanceError("PRECOMMIT is not supported", hint="Leave it out; merges are atomic")
    limits = MergeLimits(
        target_size=DEFAULT_TARGET if target_size is None else target_size,
        max_dest_splits=max_dest_splits,
        max_source_splits=(
            settings["merge.maxSourceSplitsPerMerge"]
            if max_source_splits is None
            else max_source_splits
        ),
        skip_threshold=settings["merge.skipSplitThreshold"],
    )
    merger = _Merger(log, settings, limits, where, run or run_locally)
    return merger.run_passes()


class _Merger:
    def __init__(
        self, log: TransactionLog, config: Config, limits: MergeLimits, where: Any, run: Runner
    ) -> None:
        self.log = log
        self.config = config
        self.limits = limits
        self.where = where
        self.run = run
        self.tally = _Tally()
        self.failed: set[str] = set()
        """Splits that could not be read in this run; they are not tried twice."""

    def run_passes(self) -> MergeResult:
        snapshot = self.log.snapshot()
        if self.where is not None:
            partition_predicate(self.where, snapshot)
        if snapshot.num_files == 0:
            return self._result("no_action", "Table is empty")
        with progress("merge splits", 0) as bar:
            for _ in range(self.config["merge.maxPasses"]):
                now = self.log.snapshot()
                groups = plan_merges(self._candidates(now), self.limits, self._place(now))
                bar.expect(sum(len(group.sources) for group in groups))
                if not groups or not self._one_pass(groups, bar.advance):
                    break
        if self.tally.groups:
            self._follow_up()
        return self._summary()

    def _candidates(self, snapshot: Snapshot) -> list[AddFile]:
        files = list(snapshot.files())
        if self.where is not None:
            files = matching_files(snapshot, partition_predicate(self.where, snapshot))
        now = int(time.time() * 1000)
        cooling = {
            path
            for path, skip in snapshot.skips.items()
            if self.config["skippedFiles.trackingEnabled"] and (skip.retry_after or 0) > now
        }
        return [f for f in files if f.path not in cooling and f.path not in self.failed]

    def _place(self, snapshot: Snapshot) -> Place | None:
        """Where a split stands in the order of the columns that the table is clustered by."""
        known = snapshot.metadata.configuration
        columns = cluster_columns(snapshot.schema, self.config, known)
        stored = stored_columns(snapshot.schema, columns)
        pairs = [(c, snapshot.stored_schema.field(c).type) for c in stored]
        if not pairs:
            return None
        return lambda add: tuple(
            part
            for name, dtype in pairs
            for part in place_of((add.min_values or {}).get(name), dtype)
        )

    def _one_pass(self, groups: Sequence[MergeGroup], advance: Any) -> bool:
        """Merge the groups; was anything changed?"""
        size = self.config["merge.batchSize"] or max(1, os.cpu_count() or 1)
        changed = False
        for start in range(0, len(groups), size):
            batch = groups[start : start + size]
            snapshot = self.log.snapshot()
            tasks = [
                RewriteTask.of(self.log.store, self.config, snapshot, g.sources) for g in batch
            ]
            changed |= self._commit(snapshot, self._rewritten(tasks, advance))
        return changed

    def _rewritten(self, tasks: Sequence[RewriteTask], advance: Any) -> list[Rewritten]:
        """What came of the tasks; if one fails, no file of the others stays behind."""
        done: list[Rewritten] = []
        try:
            for result in self.run(tasks):
                done.append(result)
                advance(len(result.task.sources))
        except BaseException:
            self._discard(done)
            raise
        return done

    def _discard(self, results: Sequence[Rewritten]) -> None:
        """Delete splits that are in no version; PURGE finds what cannot be deleted now."""
        discard(self.log, Kind.SPLIT, [r.add.path for r in results if r.add is not None])

    def _commit(self, snapshot: Snapshot, done: Sequence[Rewritten]) -> bool:
        actions = list(self._actions(snapshot, done))
        if not actions:
            return any(r.error is not None for r in done)
        merged = [r for r in done if r.error is None]
        try:
            self.log.commit(
                Transaction(
                    snapshot,
                    "MERGE SPLITS",
                    parameters={"targetSize": self.limits.target_size, "groups": len(merged)},
                    actions=actions,
                )
            )
        except CommitConflictError as error:
            LOG.info("a merged split was changed meanwhile, planning again: %s", error)
            self._discard(merged)
            self.tally.conflicts += 1
            return True
        except CommitFailedError:
            self._discard(merged)
            raise
        self._count(merged)
        return True

    def _actions(self, snapshot: Snapshot, done: Sequence[Rewritten]) -> Iterator[Action]:
        now = int(time.time() * 1000)
        for result in done:
            if result.error is not None:
                yield from self._skip(snapshot, result, now)
                continue
            for source in result.task.sources:
                yield source.removal(now, data_change=False)
            if result.add is not None:
                yield result.add

    def _skip(self, snapshot: Snapshot, result: Rewritten, now: int) -> Iterator[SkipFile]:
        path = result.failed_path or ""
        self.failed.add(path)
        self.tally.skipped.append(f"{path}: {result.error}")
        if not self.config["skippedFiles.trackingEnabled"]:
            return
        source = next(f for f in result.task.sources if f.path == path)
        earlier = snapshot.skips.get(path)
        yield SkipFile(
            path=path,
            skip_timestamp=now,
            reason=result.error or "",
            operation="merge",
            partition_values=source.partition_values,
            size=source.size,
            retry_after=now + self.config["skippedFiles.cooldownDuration"] * 3_600_000,
            skip_count=1 + (earlier.skip_count if earlier else 0),
        )

    def _count(self, merged: Sequence[Rewritten]) -> None:
        for result in merged:
            self.tally.groups += 1
            self.tally.merged_files += len(result.task.sources)
            self.tally.before += result.task.size
            self.tally.after += result.add.size if result.add else 0

    def _follow_up(self) -> None:
        failures: Failures = {}
        stale = partial(rebuild_stale, self.log, self.config)
        follow_up("rebuild of cross-references", self.log.path, failures, stale)
        eager = bool(self.log.snapshot().keymaps)
        maps = partial(update_keymaps, self.log, self.config, eager=eager)
        follow_up("key maps", self.log.path, failures, maps)
        if self.config["state.compaction.afterMerge"] and self.config["checkpoint.enabled"]:
            compact = partial(self.log.checkpoint, compact=True)
            follow_up("compaction of the state", self.log.path, failures, compact)

    def _summary(self) -> MergeResult:
        tally = self.tally
        if tally.skipped:
            text = f"Merged {tally.merged_files} splits, could not read {'; '.join(tally.skipped)}"
            return self._result("partial_success" if tally.groups else "error", text)
        if not tally.groups:
            return self._result("no_action", "Splits are already optimal")
        text = f"Merged {tally.merged_files} splits into {tally.groups}"
        return self._result("success", text)

    def _result(self, status: str, message: str) -> MergeResult:
        t = self.tally
        metrics = MergeMetrics(status, t.merged_files, t.groups, t.before, t.after, message)
        return MergeResult(self.log.path, metrics, self.config["merge.tempDirectoryPath"])
