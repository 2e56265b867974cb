"""How many tasks a scan becomes: enough for every core, none smaller than what starting it costs.

The planner deals splits out to four tasks a core, so that one slow task does not hold up a long
scan. Starting a task costs Spark 50 to 100 ms, whatever is in it, so fewer serve a short scan
better. Its work is estimated (opening each split, then reading the asked share of its bytes), and
tasks that check the same are joined while they stay under a second or, in a scan so short that
this would leave cores idle, under an even share for each core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from indextables.planner.tasks import SplitTask

OPEN_SECONDS = 0.0005
BYTES_PER_SECOND = 100e6
SHORTEST, LONGEST = 0.1, 1.0
_ROUNDING = 1.01


def seconds(task: SplitTask, share: float = 1.0) -> float:
    """About how long one core works on a task that reads this share of its bytes."""
    return len(task.splits) * OPEN_SECONDS + task.size * share / BYTES_PER_SECOND


def packed(tasks: Sequence[SplitTask], cores: int, share: float = 1.0) -> list[SplitTask]:
    """The tasks, those that check the same joined while they stay short."""
    even = sum(seconds(task, share) for task in tasks) / max(cores, 1)
    most = min(max(even, SHORTEST), LONGEST) * _ROUNDING
    found: list[SplitTask] = []
    for task in tasks:
        last = found[-1] if found else None
        if last is not None and _alike(last, task) and _together(last, task, share) <= most:
            found[-1] = replace(last, splits=(*last.splits, *task.splits))
        else:
            found.append(task)
    return found


def _alike(one: SplitTask, other: SplitTask) -> bool:
    same = one.predicate == other.predicate and one.limit == other.limit
    return same and one.indexes is None and other.indexes is None


def _together(one: SplitTask, other: SplitTask, share: float) -> float:
    return seconds(one, share) + seconds(other, share)
