"""What a commit sets off, each by its setting: cross-references, merge, purge.

Merge-on-write counts the groups MERGE SPLITS would make. A batch is the share of the processors in
``batchCpuFraction``, at least one group; ``minBatchesToTrigger`` batches make a merge worth it. It
runs in one background thread per table unless a setting says otherwise: a write that finds its
table being merged leaves the rest to that merge, which looks at the newest version in every pass.
At exit the process waits for running merges up to the timeout; one cut off leaves files for PURGE,
no damage.

Purge-on-write follows a merge that changed something, or every n-th write of this process to the
table. Its retentions obey the minimum PURGE obeys.

None of it may fail the write that came before; ``log.follow_up`` is the boundary.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from indextables.config import Config
from indextables.log.commit.follow_up import Failures, follow_up
from indextables.log.log import TransactionLog
from indextables.maintenance.merge import merge_splits
from indextables.maintenance.merge_plan import MergeLimits, plan_merges
from indextables.maintenance.purging import purge
from indextables.maintenance.rewrite import RewriteTask, Rewritten, rewrite
from indextables.xref.auto import rebuild_stale, run_auto_index, run_put_off
from indextables.xref.keymaps.build import update_keymaps

LOG = logging.getLogger("indextables.maintenance")
_lock = threading.Lock()
_running: dict[str, tuple[threading.Thread, float]] = {}
_writes: dict[str, int] = {}


def run_after_write(
    log: TransactionLog,
    config: Config,
    failures: Failures | None = None,
    *,
    replaced: bool = False,
) -> None:
    """Run everything that is due after a commit; what went wrong is added to ``failures``.

    ``replaced``: the commit took splits away, so cross-references may be stale.
    """
    found: Failures = {} if failures is None else failures
    if replaced and config["xref.autoIndex.enabled"]:
        step = "rebuild of cross-references"
        follow_up(step, log.path, found, lambda: rebuild_stale(log, config))
    follow_up("key maps", log.path, found, lambda: update_keymaps(log, config))
    follow_up("cross-references", log.path, found, lambda: run_auto_index(log, config))
    if config["mergeOnWrite.enabled"]:
        follow_up("merge", log.path, found, lambda: _merge_if_due(log, config))
    if config["purgeOnWrite.enabled"]:
        follow_up("purge", log.path, found, lambda: _purge_if_due(log, config))


def wait_for_merges(timeout_ms: int | None = None) -> bool:
    """Wait for background merges, each up to its own timeout or this one; are all done?"""
    with _lock:
        running = list(_running.values())
    start = time.monotonic()
    for thread, own_seconds in running:
        most = own_seconds if timeout_ms is None else timeout_ms / 1000
        thread.join(max(0.0, start + most - time.monotonic()))
    return not any(thread.is_alive() for thread, _ in running)


# -- merge -----------------------------------------------------------------------------------------


def merge_is_due(log: TransactionLog, config: Config) -> bool:
    """Whether there are enough groups to merge."""
    limits = MergeLimits(
        target_size=config["mergeOnWrite.targetSize"],
        max_source_splits=config["merge.maxSourceSplitsPerMerge"],
        skip_threshold=config["merge.skipSplitThreshold"],
    )
    batches: int = max(1, config["mergeOnWrite.minBatchesToTrigger"])
    needed = _groups_per_batch(config) * batches
    return len(plan_merges(log.snapshot().files(), limits)) >= needed


def _groups_per_batch(config: Config) -> int:
    return max(1, int((os.cpu_count() or 1) * config["mergeOnWrite.batchCpuFraction"]))


def _merge_if_due(log: TransactionLog, config: Config) -> None:
    if not merge_is_due(log, config):
        return
    if config["mergeOnWrite.async.enabled"]:
        _start(log, config)
    else:
        _merge(log, config)


def _start(log: TransactionLog, config: Config) -> None:
    """Merge in the background, unless this table is being merged already."""
    key = log.table_id

    def work() -> None:
        try:
            follow_up("merge", log.path, {}, lambda: _merge(log, config))
        finally:
            with _lock:
                _running.pop(key, None)

    with _lock:
        if key in _running:
            return
        thread = threading.Thread(target=work, name=f"indextables-merge-{key[:8]}", daemon=True)
        _running[key] = (thread, config["mergeOnWrite.shutdownTimeoutMs"] / 1000)
        thread.start()


def _merge(log: TransactionLog, config: Config) -> None:
    at_once = max(1, config["mergeOnWrite.maxConcurrentBatches"]) * _groups_per_batch(config)
    result = merge_splits(
        log,
        target_size=config["mergeOnWrite.targetSize"],
        config=config.updated({"merge.batchSize": at_once}),
        run=_in_threads,
    )
    LOG.info("merge after a write: %s", result.metrics.message)
    wanted = config["purgeOnWrite.enabled"] and config["purgeOnWrite.triggerAfterMerge"]
    if wanted and result.metrics.merge_groups:
        follow_up("purge", log.path, {}, lambda: _purge(log, config))


def _in_threads(tasks: Sequence[RewriteTask]) -> Iterator[Rewritten]:
    """No processes: a background merge must not start the caller's script again."""
    with ThreadPoolExecutor(max(1, len(tasks)), thread_name_prefix="indextables-merge") as pool:
        yield from pool.map(rewrite, tasks)


# -- purge -----------------------------------------------------------------------------------------


def _is_nth_write(log: TransactionLog, config: Config) -> bool:
    every = config["purgeOnWrite.triggerAfterWrites"]
    if every <= 0:
        return False
    with _lock:
        count = _writes.get(log.table_id, 0) + 1
        _writes[log.table_id] = 0 if count >= every else count
    return bool(count >= every)


def _purge_if_due(log: TransactionLog, config: Config) -> None:
    if _is_nth_write(log, config):
        _purge(log, config)


def _purge(log: TransactionLog, config: Config) -> None:
    result = purge(
        log,
        older_than_hours=config["purgeOnWrite.splitRetentionHours"],
        log_retention_hours=config["purgeOnWrite.txLogRetentionHours"],
        config=config,
    )
    LOG.info("purge after a write: %s", result.metrics.message)


def _at_exit() -> None:
    run_put_off()
    wait_for_merges()


# Pools refuse work once the interpreter leaves its main thread, which is before ``atexit`` runs;
# the merge needs them, so the wait comes first where the interpreter allows that.
_register: Callable[[Callable[[], Any]], Any] = getattr(
    threading, "_register_atexit", atexit.register
)
_register(_at_exit)
