"""Clocks of the benchmarks: processor time of this thread, the best of several rounds.

Other work on the machine only ever makes a run slower, so the least time is the one to compare.
``SHORT`` (``BENCH_SHORT=1``) is the form CI runs: small data, at most two rounds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

SHORT = os.environ.get("BENCH_SHORT") == "1"
SHORT_ROUNDS = 2
LEFT_OUT_OF_SHORT = frozenset(("spark", "xref_spark"))  # a session alone takes most of the time
TESTS_LEFT_OUT_OF_SHORT = frozenset(("test_one_xref_term",))  # it needs a million splits
SHORT_ENVIRONMENT = {
    "BENCH_ROWS": "20000",
    "BENCH_ROUNDS": "1",
}
SHORT_SIZES: dict[str, dict[str, Any]] = {
    "planner": {"BARS": {}},
    "log": {"ROUNDS": 1},
    "keymap": {"SPLITS": 16, "KEYS": 4_000},
    "xref": {
        "SPLITS": 2_000,
        "DISTINCT": 200,
        "MEDIAN_KEYS": 1_000,
        "REAL_SPLITS": 4,
        "ROWS": 500,
        "BUILDS": (4, 8),
    },
    "native": {"FILTERS": 200, "MEDIAN_KEYS": 1_000},
    "dml": {"SPLITS": 20, "ROWS": 20_000, "KEYS": 100, "TURNS": 1},
    "maintenance": {"ROWS": 4_000, "SPLITS": 4, "STRAYS": 500},
    "remote": {"ROUNDS": 1, "SPLITS": 4, "MANY": 20, "SMALL": 100, "DELAY_S": 0.002},
    "curves": {"SIZES": (1_000, 3_000), "PEER_SIZES": (1_000,), "FILTERS": (50, 100)},
}

if SHORT:
    for _name, _value in SHORT_ENVIRONMENT.items():
        os.environ.setdefault(_name, _value)


def timed(work: Callable[[], Any], rounds: int = 5) -> float:
    """The least processor time of several runs, in seconds."""
    best = float("inf")
    for _ in range(min(rounds, SHORT_ROUNDS) if SHORT else rounds):
        start = time.thread_time_ns()
        work()
        best = min(best, (time.thread_time_ns() - start) / 1e9)
    return best


def race(ours: Callable[[], Any], peer: Callable[[], Any], rounds: int = 10) -> tuple[float, float]:
    """The least processor times of two works that take turns."""
    best = (float("inf"), float("inf"))
    for _ in range(min(rounds, SHORT_ROUNDS) if SHORT else rounds):
        best = min(best[0], timed(ours, 1)), min(best[1], timed(peer, 1))
    return best
