"""What a build has to do: which splits get a new key map, which maps are joined, which retire.

Key maps are the runs of a log-structured merge tree. New splits get a map of their own. A map's
level is the logarithm of the number of its splits to the base of the fan-out; as soon as a level
has as many maps as the fan-out they are joined into one, which belongs to a higher level. So a
table of S splits has at most (fan-out - 1) * levels maps, every key is rewritten once a level, and
adding ten splits to a million touches ten. A join that would be larger than the limit is left out.

Splits that are gone stay in a map as numbers that are not used. A map of which less than half is
live is rewritten without them; one without any live split retires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """What the plan needs to know of a map."""

    path: str
    size: int
    splits: int
    live: int


@dataclass(frozen=True, slots=True)
class Step:
    """One map to make out of others."""

    sources: tuple[Run, ...]


def level_of(splits: int, fan_out: int) -> int:
    """The level of a map of so many splits."""
    level = 0
    while splits >= fan_out:
        splits //= fan_out
        level += 1
    return level


def next_step(runs: Sequence[Run], fan_out: int, most_bytes: int) -> Step | None:
    """The next map to make; ``None`` when every level is small enough."""
    for run in runs:
        if 2 * run.live < run.splits:
            return Step((run,))
    levels: dict[int, list[Run]] = {}
    for run in runs:
        levels.setdefault(level_of(run.live, fan_out), []).append(run)
    for level in sorted(levels):
        chosen = _within(levels[level], most_bytes)
        if len(levels[level]) >= fan_out and len(chosen) > 1:
            return Step(tuple(chosen))
    return None


def _within(runs: Sequence[Run], most_bytes: int) -> list[Run]:
    """As many maps as may be joined, the smallest first."""
    chosen: list[Run] = []
    total = 0
    for run in sorted(runs, key=lambda run: run.size):
        if total + run.size <= most_bytes:
            chosen.append(run)
            total += run.size
    return chosen
