"""Building cross-references after commits, when the settings and the table make it worth it.

A build is worth it when the table has ``minSplitsToTrigger`` splits and as many of them are not
covered as ``minUncoveredSplitsToTrigger`` says (where that is not set, no more than
``minSplitsToTrigger``, so that this one alone has an effect). Builds keep a distance of
``minIntervalMs``, with two exceptions, so that coverage catches up:

* where more splits are uncovered than covered, the build runs at once. Each such build at least
  doubles what is covered, so their cost stays in proportion to the splits written;
* what the interval put off is built when it is over, by a thread of this process, or when the
  process ends, or by the next commit of any writer, whichever comes first.

Nothing is built where key maps, made by themselves, cover all but a few splits.

Cross-references whose sources are gone (a merge, an overwrite, a delete) are rebuilt after the
commit that took them away (``rebuildOnSourceChange``).
"""

from __future__ import annotations

import logging
import threading
import time

from indextables.config import Config
from indextables.errors import IndexTablesError
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.splits.write.keeping import is_automatic, keeps_keys
from indextables.xref import build, coverage
from indextables.xref.builder import XRefBuildResult
from indextables.xref.keymaps.build import leaves_uncovered

LOG = logging.getLogger("indextables.xref")
MOST_AT_EXIT = 16
_last_run: dict[str, float] = {}
_put_off: dict[str, tuple[threading.Timer, TransactionLog, Config]] = {}
_lock = threading.Lock()


def is_worth_it(snapshot: Snapshot, config: Config) -> bool:
    """Would a build cover enough?"""
    if not config["xref.autoIndex.enabled"]:
        return False
    least = config["xref.autoIndex.minSplitsToTrigger"]
    if snapshot.num_files < least:
        return False
    return coverage(snapshot).uncovered >= max(1, _fewest_uncovered(config, least))


def _fewest_uncovered(config: Config, least: int) -> int:
    fewest: int = config["xref.autoIndex.minUncoveredSplitsToTrigger"]
    return (
        fewest
        if config.is_set("xref.autoIndex.minUncoveredSplitsToTrigger")
        else min(fewest, least)
    )


def waits_seconds(log: TransactionLog, config: Config, *, now: float | None = None) -> float:
    """How long the interval still puts a build off."""
    last = _last_run.get(log.table_id)
    if last is None:
        return 0.0
    reached = coverage(log.snapshot())
    if reached.uncovered > reached.covered:
        return 0.0
    moment = time.monotonic() if now is None else now
    left: float = last + config["xref.autoIndex.minIntervalMs"] / 1000 - moment
    return max(0.0, left)


def _has_keymaps(log: TransactionLog, config: Config) -> bool:
    """Do key maps, made by themselves, answer for nearly all splits?"""
    least = config["xref.autoIndex.minUncoveredSplitsToTrigger"]
    if config.is_set("xref.autoIndex.enabled") or not is_automatic(config):
        return False
    if not log.snapshot().keymaps or not keeps_keys(config, log.store):
        return False
    return bool(leaves_uncovered(log, config) < least)


def run_auto_index(log: TransactionLog, config: Config) -> list[XRefBuildResult]:
    """Build if it is due; callers after a commit run it behind ``follow_up``.

    The lock guards notes in memory alone: no thread waits for another one's requests. Of two that
    find a build due at the same time, the second leaves it to the first.
    """
    table, seen = log.table_id, _last_run.get(log.table_id)
    if not is_worth_it(log.snapshot(), config) or _has_keymaps(log, config):
        return []
    wait = waits_seconds(log, config)
    with _lock:
        if _last_run.get(table) != seen:
            wait = max(wait, config["xref.autoIndex.minIntervalMs"] / 1000)
        if wait > 0:
            _put_off_build(table, log, config, wait)
            return []
        _last_run[table] = time.monotonic()
        waiting = _put_off.pop(table, None)
    if waiting is not None:
        waiting[0].cancel()
    return build(log, config=config)


def rebuild_stale(log: TransactionLog, config: Config) -> list[XRefBuildResult]:
    """After source splits went away: rebuild what refers to them."""
    snapshot = log.snapshot()
    if not snapshot.xrefs or not config["xref.autoIndex.rebuildOnSourceChange"]:
        return []
    if all((snapshot.indices_of(x.source_split_paths) >= 0).all() for x in snapshot.xrefs):
        return []
    return build(log, config=config)


# -- what the interval put off ---------------------------------------------------------------------


def _put_off_build(table_id: str, log: TransactionLog, config: Config, seconds: float) -> None:
    """Come back when the interval is over; one thread for a table, which ends with the process."""
    if table_id in _put_off:
        return
    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), _come_back, (table_id,))
    timer.daemon = True
    timer.name = f"indextables-xref-{table_id[:8]}"
    _put_off[table_id] = (timer, log, config)
    timer.start()


def _come_back(table_id: str) -> None:
    with _lock:
        waiting = _put_off.pop(table_id, None)
    if waiting is None:
        return
    timer, log, config = waiting
    timer.cancel()
    try:
        if is_worth_it(log.snapshot(), config):
            _last_run[table_id] = time.monotonic()
            build(log, config=config)
    except (IndexTablesError, OSError) as error:
        LOG.info("cross-references are left to the next commit: %s", error)


def run_put_off(most: int = MOST_AT_EXIT) -> int:
    """Build now what waits for its interval, as the process ends; returns how many tables did."""
    with _lock:
        waiting = list(_put_off)[:most]
    for table_id in waiting:
        _come_back(table_id)
    return len(waiting)
