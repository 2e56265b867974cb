"""When a state keeps its manifests, and when it rewrites them.

An incremental state keeps every manifest of its base, adds one for the new files and lists the
dead entries as tombstones. That is cheap to write and slowly grows dear to read, so:

* **full** compaction, when asked for (``force``), when nothing below is live, when one step hid
  more than ``largeRemoveThreshold`` files, or when selective compaction could keep less than a
  tenth of the entries: all live entries are rewritten, sorted by partition values, so that
  manifest bounds are narrow;
* **selective** compaction, when dead entries exceed ``tombstoneThreshold`` of all entries or
  manifests exceed ``maxManifests``: manifests with too many dead entries, and small ones, are
  rewritten; large clean ones are kept;
* a manifest that holds a dead entry of a path which lives elsewhere (a path that was removed and
  added again) is always rewritten: a tombstone could not tell the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from indextables.config import Config
from indextables.log.checkpoint.manifest import ManifestInfo
from indextables.log.read.snapshot import Snapshot

INCREMENTAL, SELECTIVE, FULL = "incremental", "selective", "full"
_WORTH_KEEPING = 0.10


@dataclass(frozen=True, slots=True)
class ManifestUse:
    """How much of a base manifest is still live in a snapshot."""

    info: ManifestInfo
    segments: tuple[int, ...]
    live: int
    dead: int
    has_second_lives: bool

    @property
    def dead_share(self) -> float:
        return tombstone_ratio(self.dead, self.live)


def tombstone_ratio(dead: int, live: int) -> float:
    """The share of entries that are dead: what ``tombstoneThreshold`` is compared with."""
    return dead / (live + dead) if dead else 0.0


@dataclass(frozen=True, slots=True)
class Layout:
    """What a new state does: which manifests stay, and why."""

    kind: str
    reason: str
    kept: tuple[ManifestUse, ...]

    @property
    def kept_segments(self) -> frozenset[int]:
        return frozenset(k for use in self.kept for k in use.segments)


def choose_layout(snapshot: Snapshot, config: Config, *, force: bool = False) -> Layout:
    """The layout of the state of ``snapshot``."""
    uses = manifest_uses(snapshot)
    if force:
        return Layout(FULL, "asked for", ())
    if not uses:
        return Layout(FULL, "no base state", ())
    dead = sum(use.dead for use in uses)
    if not any(use.live for use in uses):
        return Layout(FULL, "nothing of the base is live", ())
    if dead > config["state.compaction.largeRemoveThreshold"]:
        return Layout(FULL, "many files were removed", ())
    crowded = len(uses) + 1 > config["state.compaction.maxManifests"]
    limit = config["state.compaction.tombstoneThreshold"]
    if crowded or tombstone_ratio(dead, snapshot.num_files) > limit:
        return _selective(uses, config, crowded)
    kept = tuple(use for use in uses if not use.has_second_lives and use.live)
    return Layout(INCREMENTAL, "few changes", kept)


def _selective(uses: list[ManifestUse], config: Config, crowded: bool) -> Layout:
    limit = config["state.compaction.tombstoneThreshold"]
    small = config["state.entriesPerManifest"] // 2 if crowded else 0
    kept = tuple(
        use
        for use in uses
        if use.live and use.dead_share <= limit and not use.has_second_lives and use.live >= small
    )
    entries = sum(use.live + use.dead for use in uses)
    if sum(use.live for use in kept) < _WORTH_KEEPING * entries:
        return Layout(FULL, "most manifests changed", ())
    return Layout(SELECTIVE, "too many manifests" if crowded else "too many tombstones", kept)


def manifest_uses(snapshot: Snapshot) -> list[ManifestUse]:
    """Each base manifest with its live and dead entries, in the base's order."""
    by_path: dict[str, list[int]] = {}
    for k, segment in enumerate(snapshot.segments):
        if segment.manifest is not None:
            by_path.setdefault(segment.manifest, []).append(k)
    uses = []
    for info in snapshot.manifests:
        segments = tuple(by_path.get(info.path, ()))
        total = sum(snapshot.segments[k].n for k in segments)
        live = sum(_count_live(snapshot, k) for k in segments)
        second = any(_has_second_lives(snapshot, k) for k in segments)
        uses.append(ManifestUse(info, segments, live, total - live, second))
    return uses


def _count_live(snapshot: Snapshot, k: int) -> int:
    mask = snapshot.live[k]
    return snapshot.segments[k].n if mask is None else int(np.count_nonzero(mask))


def _has_second_lives(snapshot: Snapshot, k: int) -> bool:
    paths = dead_paths(snapshot, k)
    return bool(paths) and bool((snapshot.indices_of(paths) >= 0).any())


def dead_paths(snapshot: Snapshot, k: int) -> list[str]:
    """Paths of the hidden entries of one segment."""
    mask = snapshot.live[k]
    if mask is None:
        return []
    return [snapshot.segments[k].path(int(row)) for row in np.flatnonzero(~mask)]
