"""Which splits to merge: bin packing, oldest first, never across partitions or mappings.

A split at or above ``skip_threshold`` of the target size is large enough and left alone. The rest
of a partition is packed in order of age: a group closes when the next split would carry it over the
target, or when it has the most sources allowed. Groups of one are no merge. Groups with more
sources come first, older ones before younger; a limit on destinations keeps the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from indextables.errors import MaintenanceError
from indextables.log.actions import AddFile

DEFAULT_TARGET = 5 << 30
SMALLEST_TARGET = 1 << 20


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """What the caller asked for."""

    target_size: int = DEFAULT_TARGET
    max_dest_splits: int | None = None
    max_source_splits: int = 1000
    skip_threshold: float = 0.45

    def __post_init__(self) -> None:
        if self.target_size < SMALLEST_TARGET:
            raise MaintenanceError(
                f"TARGET SIZE {self.target_size} is too small", hint="Use at least 1M"
            )
        if self.max_dest_splits is not None and self.max_dest_splits < 1:
            raise MaintenanceError("MAX DEST SPLITS must be at least 1")
        if self.max_source_splits < 2:
            raise MaintenanceError("MAX SOURCE SPLITS PER MERGE must be at least 2")


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Splits that become one."""

    sources: tuple[AddFile, ...]

    @property
    def size(self) -> int:
        return sum(f.size for f in self.sources)

    @property
    def partition_values(self) -> Mapping[str, str | None]:
        return self.sources[0].partition_values

    @property
    def oldest(self) -> int:
        return min(f.modification_time for f in self.sources)


Place = Callable[[AddFile], tuple[Any, ...]]


def plan_merges(
    files: Iterable[AddFile], limits: MergeLimits, place: Place | None = None
) -> list[MergeGroup]:
    """The groups to merge, in order; ``place`` says which splits are neighbours."""
    bins: dict[tuple[object, ...], list[AddFile]] = {}
    near: Place = place or (lambda add: ())
    for add in sorted(files, key=lambda f: (*near(f), f.modification_time, f.path)):
        if add.size < limits.target_size * limits.skip_threshold:
            bins.setdefault(tuple(sorted(add.partition_values.items())), []).append(add)
    groups = [g for members in bins.values() for g in _pack(members, limits)]
    groups.sort(key=lambda g: (-len(g.sources), g.oldest, g.sources[0].path))
    return groups[: limits.max_dest_splits]


def _pack(members: Sequence[AddFile], limits: MergeLimits) -> list[MergeGroup]:
    groups: list[MergeGroup] = []
    current: list[AddFile] = []
    size = 0
    for add in members:
        full = len(current) >= limits.max_source_splits
        if current and (full or size + add.size > limits.target_size):
            groups.append(MergeGroup(tuple(current)))
            current, size = [], 0
        current.append(add)
        size += add.size
    groups.append(MergeGroup(tuple(current)))
    return [g for g in groups if len(g.sources) > 1]
