"""Building cross-references after commits, when the settings and the table make it worth it."""

from __future__ import annotations

import threading
import time

from indextables.config import Config
from indextables.log.log import TransactionLog
from indextables.xref import build, coverage
from indextables.xref.builder import XRefBuildResult

_last_run: dict[str, float] = {}
_lock = threading.Lock()


def is_due(log: TransactionLog, config: Config, *, now: float | None = None) -> bool:
    """Whether an automatic build should run now."""
    if not config["xref.autoIndex.enabled"]:
        return False
    snapshot = log.snapshot()
    if snapshot.num_files < config["xref.autoIndex.minSplitsToTrigger"]:
        return False
    if coverage(snapshot).uncovered < config["xref.autoIndex.minUncoveredSplitsToTrigger"]:
        return False
    moment = time.monotonic() if now is None else now
    last = _last_run.get(log.table_id)
    return last is None or (moment - last) * 1000 >= config["xref.autoIndex.minIntervalMs"]


def run_auto_index(log: TransactionLog, config: Config) -> list[XRefBuildResult]:
    """Build if it is due; callers after a commit run it behind ``follow_up``."""
    with _lock:
        if not is_due(log, config):
            return []
        _last_run[log.table_id] = time.monotonic()
    most = config["xref.autoIndex.maxSourceSplits"]
    return build(log, config=config.updated({"xref.build.maxSourceSplits": most}))


def rebuild_stale(log: TransactionLog, config: Config) -> list[XRefBuildResult]:
    """After source splits were replaced (a merge): rebuild what refers to them."""
    snapshot = log.snapshot()
    if not snapshot.xrefs or not config["xref.autoIndex.rebuildOnSourceChange"]:
        return []
    if all((snapshot.indices_of(x.source_split_paths) >= 0).all() for x in snapshot.xrefs):
        return []
    return build(log, config=config)
