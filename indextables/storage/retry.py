"""The one loop that tries again, and how long it is patient.

A policy says how many tries there are, how the pauses between them grow, and how much time all of
it may take. The pause before try *n* is drawn evenly from ``[0, base * 2**n]``, where the upper end
never exceeds the cap, so that clients which failed together do not come back together and no pause
is longer than the setting says. A pause is cut to the time that is left; no try begins after it.

Everything that tries again does so with ``tries`` (or its parts): requests to a store
(``with_retries``), the race for a version (``transaction.retry.*``), the writing of a state
(``state.retry.*``), the question whether a commit landed (``commit.commit_slot``), the deletions of
PURGE (``purge.deleteRetries``). A request is repeated after ``TransientStorageError`` only:
throttling, server errors, resets, timeouts. A conditional create is never simply repeated, since
that would turn our own success into "exists": its callers look at what is there.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from indextables.errors import TransientStorageError

T = TypeVar("T")
Clock = Callable[[], float]
Sleep = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Full-jitter exponential pauses, in seconds; none is longer than ``cap_s``."""

    base_s: float = 0.05
    cap_s: float = 2.0

    def pauses(self, rng: random.Random) -> Iterator[float]:
        ceiling = min(self.base_s, self.cap_s)
        while True:
            yield rng.uniform(0.0, ceiling)
            ceiling = min(ceiling * 2, self.cap_s)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, how patiently and how long something is tried."""

    attempts: float = 5
    backoff: Backoff = Backoff()
    budget_s: float = math.inf

    @classmethod
    def of_ms(
        cls, attempts: int, base_ms: int, cap_ms: int, budget_s: float | None = None
    ) -> RetryPolicy:
        """A policy out of settings, which count pauses in milliseconds."""
        budget = math.inf if budget_s is None else budget_s
        return cls(attempts, Backoff(base_ms / 1000, cap_ms / 1000), budget)


class Patience:
    """What is left of a policy."""

    def __init__(
        self,
        policy: RetryPolicy,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = time.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._deadline = clock() + policy.budget_s
        self._left = policy.attempts - 1
        self._pauses = policy.backoff.pauses(rng or random.Random())

    def wait(self) -> bool:
        """Pause before another try; ``False``, at once, when no try or no time is left."""
        remaining = self._deadline - self._clock()
        if self._left < 1 or remaining <= 0:
            return False
        self._left -= 1
        self._sleep(min(next(self._pauses), remaining))
        return True


def tries(
    policy: RetryPolicy,
    *,
    clock: Clock = time.monotonic,
    sleep: Sleep = time.sleep,
    rng: random.Random | None = None,
) -> Iterator[int]:
    """The numbers of the tries, from 1; asking for the next one is the pause before it."""
    patience = Patience(policy, clock=clock, sleep=sleep, rng=rng)
    number = 1
    yield number
    while patience.wait():
        number += 1
        yield number


def with_retries(
    call: Callable[[], T],
    policy: RetryPolicy,
    *,
    clock: Clock = time.monotonic,
    sleep: Sleep = time.sleep,
    rng: random.Random | None = None,
) -> T:
    """The result of ``call``, tried again after transient failures; the last one is raised."""
    patience = Patience(policy, clock=clock, sleep=sleep, rng=rng)
    while True:
        try:
            return call()
        except TransientStorageError:
            if not patience.wait():
                raise
