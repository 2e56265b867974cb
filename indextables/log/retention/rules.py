"""What is stale: the one decision behind the log's clean-up, the clean-up of states, and PURGE.

Three questions are asked of a file, and each is answered here:

* **Is it old enough?** Ages count from a moment in epoch milliseconds to the clock of the run. A
  moment that is unknown (zero or less) or in the future is not old. ``Retention`` holds the ages
  that the settings ask for.
* **Does a version need it that can still be read?** ``Needed`` holds what those versions list.
  Paths are compared loosely, as ``deleting.Live`` does.
* **Since when is it not needed?** A file that a version removed: since then, but no longer than the
  file has been there, whatever the log says. A file that was never listed: since it was written,
  and since the oldest version the log still knows, because one that is forgotten may have removed
  it.

Files of a commit that lost its race were never listed; ``discard`` deletes them at once, but looks
at the newest version first.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from indextables.config import Config
from indextables.errors import IndexTablesError, MaintenanceError
from indextables.storage.base import ObjectInfo
from indextables.storage.deleting import Kind, Live, delete, sift

if TYPE_CHECKING:
    from indextables.log.log import TransactionLog

logger = logging.getLogger(__name__)
HOUR_MS = 3_600_000
LEAST_TEMPORARY_HOURS = 24
"""A younger temporary file may be a write that is under way, whatever retention was asked for."""


def clock_ms() -> int:
    """The present moment."""
    return int(time.time() * 1000)


@dataclass(frozen=True, slots=True)
class Retention:
    """Ages in milliseconds before which files stay, and the present moment."""

    now_ms: int
    log_ms: int
    checkpoint_ms: int
    state_ms: int
    manifest_ms: int
    states_kept: int

    @classmethod
    def of(cls, config: Config, now_ms: int | None = None, log_ms: int | None = None) -> Retention:
        return cls(
            clock_ms() if now_ms is None else now_ms,
            config["logRetention.duration"] if log_ms is None else log_ms,
            config["checkpointRetention.duration"],
            config["state.retention.hours"] * HOUR_MS,
            config["state.gc.minManifestAgeHours"] * HOUR_MS,
            max(1, config["state.retention.versions"]),
        )

    def is_expired(self, info: ObjectInfo, age_ms: int) -> bool:
        return is_older(info.modified_ms, age_ms, self.now_ms)

    def are_expired(self, infos: Iterable[ObjectInfo], age_ms: int) -> bool:
        """Is there something, and all of it old?"""
        found = [self.is_expired(info, age_ms) for info in infos]
        return bool(found) and all(found)


def is_older(moment_ms: int, age_ms: int, now_ms: int) -> bool:
    """Is a known moment longer ago than ``age_ms``?"""
    return moment_ms > 0 and now_ms - moment_ms > age_ms


def checked_hours(config: Config, asked: int | None) -> int:
    """The retention of splits in hours, refused when it is shorter than the minimum."""
    hours: int = config["purge.defaultRetentionHours"] if asked is None else asked
    least = config["purge.minRetentionHours"]
    if hours < 0 or (hours < least and config["purge.retentionCheckEnabled"]):
        raise MaintenanceError(
            f"a retention of {hours} hours is shorter than the minimum of {least}",
            hint="Running readers may still need the files; to insist, set "
            "spark.indextables.purge.retentionCheckEnabled=false",
        )
    return hours


class Needed:
    """Paths that remaining versions list, and when others were removed."""

    def __init__(
        self, listed: Iterable[str], removed_at: Mapping[str, int], forgotten_until: int = 0
    ) -> None:
        self.listed = frozenset(listed)
        self.removed_at = removed_at
        self.forgotten_until = forgotten_until
        """Versions before this moment are gone from the log, and with them what they removed."""
        self.live = Live(self.listed)

    def deletable_since(self, info: ObjectInfo) -> int | None:
        """The moment from which a file's retention counts; ``None`` keeps it."""
        if info.path in self.live or owner_of_checksum(info.path) in self.live:
            return None
        if info.modified_ms <= 0:
            return None
        removed = self.removed_at.get(info.path)
        if removed is None:
            return max(info.modified_ms, self.forgotten_until)
        return max(info.modified_ms, removed) if removed > 0 else None


def owner_of_checksum(path: str) -> str:
    """The file whose checksum Hadoop keeps in ``.<name>.crc``; any other path is its own."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name[1:-4]}" if Kind.CHECKSUM.has(path) else path


def discard(log: TransactionLog, kind: Kind, paths: Sequence[str]) -> None:
    """Delete files of a commit that lost, best effort; what the table lists after all stays."""
    if not paths:
        return
    try:
        snapshot = log.snapshot()
        places = snapshot.indices_of(list(paths)).tolist()
        listed = [path for path, place in zip(paths, places, strict=True) if place >= 0]
        maps = (k.path for k in snapshot.keymaps)
        live = Live([*listed, *maps, *(x.path for x in snapshot.xrefs), *snapshot.vector_files])
        allowed, refused = sift(kind, paths, live)
        delete(log.store, kind, allowed, live)
    except (IndexTablesError, OSError) as error:
        logger.info("files of a lost commit are left to PURGE: %s", error)
        return
    for refusal in refused:
        logger.warning("not deleted after a lost commit: %s", refusal)
