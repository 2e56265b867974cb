"""What a build has to do: which splits get a new key map, which maps are joined, which retire.

Key maps are the runs of a log-structured merge tree. New splits get a map of their own. A map's
level is the logarithm of the number of its splits to the base of the fan-out; as soon as a level
has as many maps as the fan-out they are joined into one, which belongs to a higher level. So a
table of S splits has at most (fan-out - 1) * levels maps, every key is rewritten once a level, and
adding ten splits to a million touches ten. A question costs a request for each map, so there is a
limit to their number too: beyond it the smallest are joined, up to one that is more than twice as
large as all of them. A table that grows to a million splits writes every key about eight times. A
map larger than a file may be is cut into shards by hash, of which a question reads one.

Splits that are gone stay in a map as numbers that are not used. A map of which less than half is
live is rewritten without them; one without any live split retires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """What the plan needs to know of a map; ``path`` is that of its first file."""

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


def next_step(runs: Sequence[Run], fan_out: int, most_maps: int) -> Step | None:
    """The next map to make; ``None`` when there are few enough of every level and in all."""
    for run in runs:
        if 2 * run.live < run.splits:
            return Step((run,))
    levels: dict[int, list[Run]] = {}
    for run in runs:
        levels.setdefault(level_of(run.live, fan_out), []).append(run)
    for level in sorted(levels):
        if len(levels[level]) >= fan_out:
            return Step(tuple(levels[level]))
    if len(runs) > most_maps:
        return Step(_smallest(runs))
    return None


def _smallest(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The smallest maps, up to a gap in size, so that the joined one is not joined again soon."""
    ordered = sorted(runs, key=lambda run: run.size)
    total = ordered[0].size
    for count in range(2, len(ordered)):
        total += ordered[count - 1].size
        if 2 * total <= ordered[count].size:
            return tuple(ordered[:count])
    return tuple(ordered)
