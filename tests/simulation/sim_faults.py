"""What can go wrong at a store call, and how often.

A plan belongs to one seed. Which kinds it knows and how often they strike is drawn from the seed,
so that some runs are quiet, some have one kind of trouble, and some have all; a story may also
*arm* a fault, which then strikes at the next call that fits. ``fired`` counts every kind: one that
never fires over a whole run is a dead knob, and the run fails for it.
"""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Callable
from enum import Enum

from indextables.errors import (
    AmbiguousWriteError,
    IndexTablesError,
    StorageError,
    TransientStorageError,
)
from indextables.storage.machine import machine_error
from indextables.storage.wrapped import Call

HOUR_MS = 3_600_000
YEAR_MS = 8766 * HOUR_MS
WRITES = frozenset(("put", "put_file", "put_if_absent", "delete"))
READS = frozenset(("read", "read_range", "read_ranges", "read_many", "stat"))
BYTES = frozenset(("read", "read_range", "read_ranges", "read_many"))
LISTS = frozenset(("list", "list_dirs"))
EVERY = WRITES | READS | LISTS | {"list_temporaries"}


class Fault(Enum):
    FAIL_BEFORE = "fails, not applied"
    FAIL_AFTER = "fails, applied"
    LOST_REQUEST = "lost request"
    LOST_REPLY = "lost reply"
    CRASH_BEFORE = "the process dies before"
    CRASH_AFTER = "the process dies after"
    HALF_WRITTEN = "a temporary file stays behind"
    STALE_LIST = "stale listing"
    SLOW = "slow call"
    TORN_READ = "torn read"
    CLOCK_JUMP = "clock jump"
    NO_SPACE = "no space left"
    NO_DESCRIPTORS = "no descriptor left"
    NEWER_PROTOCOL = "a newer release takes the table"
    FOREIGN_WRITER = "another program writes too"


APPLIES = {
    Fault.FAIL_BEFORE: EVERY,
    Fault.FAIL_AFTER: WRITES,
    Fault.LOST_REQUEST: WRITES,
    Fault.LOST_REPLY: WRITES,
    Fault.CRASH_BEFORE: EVERY,
    Fault.CRASH_AFTER: WRITES,
    Fault.STALE_LIST: LISTS,
    Fault.SLOW: EVERY,
    Fault.TORN_READ: BYTES,
    Fault.CLOCK_JUMP: EVERY,
    Fault.NO_SPACE: frozenset(("put", "put_file", "put_if_absent")),
    Fault.NO_DESCRIPTORS: EVERY,
}
DRAWN = tuple(APPLIES)
OF_THE_STORY = frozenset((Fault.HALF_WRITTEN, Fault.NEWER_PROTOCOL, Fault.FOREIGN_WRITER))
"""Kinds that a story or another fault brings about."""

Fits = Callable[[str, Call], bool]


class FaultPlan:
    """The faults of one run."""

    def __init__(self, rng: random.Random, *, rate: float, kinds: tuple[Fault, ...]) -> None:
        self.rng = rng
        self.rate = rate
        self.kinds = kinds
        self.fired: Counter[Fault] = Counter()
        self.looks_remote = False
        self.shows_uploads = False
        self.is_quiet = False
        self._armed: list[tuple[Fault, Fits]] = []

    @classmethod
    def drawn(cls, rng: random.Random) -> FaultPlan:
        rate = rng.choice([0.0, 0.004, 0.01, 0.03])
        count = rng.choice([1, 2, 4, len(DRAWN)])
        plan = cls(rng, rate=rate, kinds=tuple(rng.sample(DRAWN, count)))
        plan.looks_remote = rng.random() < 0.5
        plan.shows_uploads = rng.random() < 0.2
        return plan

    def arm(self, fault: Fault, fits: Fits) -> None:
        """Let a fault strike at the next call that fits."""
        self._armed.append((fault, fits))

    def draw(self, actor: str, call: Call) -> Fault | None:
        if self.is_quiet:
            return None
        for armed in self._armed:
            fault, fits = armed
            if call.op in APPLIES[fault] and fits(actor, call):
                self._armed.remove(armed)
                self.fired[fault] += 1
                return fault
        if not self.kinds or self.rng.random() >= self.rate:
            return None
        fault = self.rng.choice(self.kinds)
        if call.op not in APPLIES[fault]:
            return None
        self.fired[fault] += 1
        return fault

    @property
    def has_torn(self) -> bool:
        """Did bytes arrive wrong? Then a verdict on data may be wrong too."""
        return self.fired[Fault.TORN_READ] > 0

    def skew(self) -> int:
        """How wrong a clock is."""
        return self.rng.choice([-30 * HOUR_MS, -HOUR_MS, 0, HOUR_MS, 10 * YEAR_MS])


def failure_of(fault: Fault, call: Call) -> IndexTablesError:
    """What the caller gets to see."""
    if fault is Fault.NO_SPACE or fault is Fault.NO_DESCRIPTORS:
        number = errno.ENOSPC if fault is Fault.NO_SPACE else errno.EMFILE
        found = machine_error(OSError(number, "injected"), path=call.path)
        assert found is not None
        return found
    unsure = fault in (Fault.LOST_REQUEST, Fault.LOST_REPLY)
    conditional = call.op == "put_if_absent"
    if call.op in WRITES and (unsure or (conditional and fault is Fault.FAIL_AFTER)):
        return AmbiguousWriteError("injected: no reply", path=call.path)
    if conditional:
        return StorageError("injected: refused", path=call.path)
    return TransientStorageError("injected: the store failed", path=call.path)
