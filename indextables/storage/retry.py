"""Retries with jitter for calls that may be repeated.

Only ``TransientStorageError`` is retried: throttling, server errors, resets, timeouts. The pause
before try *n* is drawn evenly from ``[0, base * 2**n]``, capped, so that clients which failed
together do not come back together. Conditional creates are never retried here: repeating one
turns our own success into "exists"; ``commit.commit_slot`` knows how to ask.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from indextables.errors import TransientStorageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Full-jitter exponential pauses, in seconds."""

    base_s: float = 0.05
    cap_s: float = 2.0

    def pauses(self, rng: random.Random) -> Iterator[float]:
        ceiling = self.base_s
        while True:
            yield rng.uniform(0.0, ceiling)
            ceiling = min(ceiling * 2, self.cap_s)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently an idempotent call is repeated."""

    attempts: int = 5
    backoff: Backoff = Backoff()


def with_retries(
    call: Callable[[], T],
    policy: RetryPolicy,
    *,
    sleep: Callable[[float], None] = time.sleep,
    rng: random.Random | None = None,
) -> T:
    """The result of ``call``, tried again after transient failures; the last one is raised."""
    pauses = policy.backoff.pauses(rng or random.Random())
    for _ in range(policy.attempts - 1):
        try:
            return call()
        except TransientStorageError:
            sleep(next(pauses))
    return call()
