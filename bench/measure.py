"""Clocks of the benchmarks: processor time of this thread, the best of several rounds.

Other work on the machine only ever makes a run slower, so the least time is the one to compare.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def timed(work: Callable[[], Any], rounds: int = 5) -> float:
    """The least processor time of several runs, in seconds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time_ns()
        work()
        best = min(best, (time.thread_time_ns() - start) / 1e9)
    return best


def race(ours: Callable[[], Any], peer: Callable[[], Any], rounds: int = 10) -> tuple[float, float]:
    """The least processor times of two works that take turns."""
    best = (float("inf"), float("inf"))
    for _ in range(rounds):
        best = min(best[0], timed(ours, 1)), min(best[1], timed(peer, 1))
    return best
