"""Test doubles that wrap a real store: one records the calls, others make them fail.

``RecordingStore`` lists every call, so that a test asserts *which* requests a plan costs, and
accounts a simulated latency per round trip. ``FaultyStore`` follows a plan of faults: a call
fails before or after it was applied, its reply is lost, or the process "dies" there
(``CrashError`` is a ``BaseException``, so no handler of ours can swallow it).

Calls are counted from 0 in the order they are made; ``ops`` of a fault narrows the counting to
some operations. To crash at every call of a scenario: record it once, then run it again for
each ``index`` in ``range(len(recording.calls))`` and each kind of fault.
"""

from __future__ import annotations

import builtins
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from indextables.errors import AmbiguousWriteError, StorageError, TransientStorageError
from indextables.storage.base import Store
from indextables.storage.wrapped import Call, WrappedStore

__all__ = [
    "READS",
    "WRITES",
    "Call",
    "CrashError",
    "Fault",
    "FaultKind",
    "FaultyStore",
    "RandomFaults",
    "RecordingStore",
    "ShortStore",
    "UnconditionalStore",
    "WrappedStore",
    "fault_points",
]

T = TypeVar("T")

WRITES = frozenset(("put", "put_file", "put_if_absent", "delete"))
READS = frozenset(("read", "read_range", "read_ranges", "read_many", "stat", "list", "list_dirs"))


class CrashError(BaseException):
    """The process is gone at this point."""


class RecordingStore(WrappedStore):
    """Remembers every call; ``latency_s`` is added to ``elapsed_s`` per call, slept on demand.

    With ``hide_local_files`` a local store looks remote: readers must use ranges, which are
    then counted.
    """

    def __init__(
        self,
        inner: Store,
        *,
        latency_s: float = 0.0,
        sleep: Callable[[float], None] | None = None,
        hide_local_files: bool = False,
    ) -> None:
        super().__init__(inner)
        self.calls: builtins.list[Call] = []
        self.elapsed_s = 0.0
        self._latency_s = latency_s
        self._sleep = sleep
        self._hide_local_files = hide_local_files
        self._lock = threading.Lock()

    def _around(self, call: Call, run: Callable[[], T]) -> T:
        with self._lock:
            self.calls.append(call)
            self.elapsed_s += self._latency_s
        if self._sleep is not None:
            self._sleep(self._latency_s)
        return run()

    def local_path(self, path: str) -> str | None:
        return None if self._hide_local_files else self.inner.local_path(path)

    def ops(self) -> builtins.list[str]:
        """The operations in order, for compact assertions."""
        return [call.op for call in self.calls]

    def count(self, op: str) -> int:
        return sum(call.op == op for call in self.calls)

    def clear(self) -> None:
        with self._lock:
            self.calls.clear()
            self.elapsed_s = 0.0


class FaultKind(Enum):
    FAIL_BEFORE = "fails, not applied"
    FAIL_AFTER = "applied, then fails"
    LOST_REQUEST = "not applied, but the caller cannot know"
    LOST_REPLY = "applied, but the caller cannot know"
    CRASH_BEFORE = "the process dies before the call"
    CRASH_AFTER = "the process dies after the call was applied"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at the ``at``-th call (from 0), counted among ``ops`` when given."""

    kind: FaultKind
    at: int
    ops: frozenset[str] | None = None


class RandomFaults:
    """A plan that draws faults from a seed, at a rate, from some kinds."""

    def __init__(
        self,
        seed: int,
        rate: float,
        kinds: Sequence[FaultKind] = (FaultKind.FAIL_BEFORE, FaultKind.LOST_REPLY),
        ops: frozenset[str] | None = None,
    ) -> None:
        self._rng = random.Random(seed)
        self._rate = rate
        self._kinds = tuple(kinds)
        self._ops = ops

    def draw(self, op: str) -> FaultKind | None:
        if self._ops is not None and op not in self._ops:
            return None
        return self._rng.choice(self._kinds) if self._rng.random() < self._rate else None


class FaultyStore(WrappedStore):
    """Follows a plan of faults: a sequence of ``Fault`` or a ``RandomFaults``."""

    def __init__(self, inner: Store, plan: Iterable[Fault] | RandomFaults = ()) -> None:
        super().__init__(inner)
        self.plan = plan if isinstance(plan, RandomFaults) else tuple(plan)
        self.injected: builtins.list[tuple[FaultKind, Call]] = []
        self.calls_made = 0
        self._seen: dict[Fault, int] = {}
        self._lock = threading.Lock()

    def _next_fault(self, call: Call) -> FaultKind | None:
        with self._lock:
            self.calls_made += 1
            kind = self._drawn(call.op)
            if kind is not None:
                self.injected.append((kind, call))
            return kind

    def _drawn(self, op: str) -> FaultKind | None:
        if isinstance(self.plan, RandomFaults):
            return self.plan.draw(op)
        hit = None
        for fault in self.plan:
            if fault.ops is None or op in fault.ops:
                seen = self._seen.get(fault, 0)
                self._seen[fault] = seen + 1
                if seen == fault.at:
                    hit = fault.kind
        return hit

    def _around(self, call: Call, run: Callable[[], T]) -> T:
        kind = self._next_fault(call)
        if kind is None:
            return run()
        if kind is FaultKind.CRASH_BEFORE:
            raise CrashError(f"before {call.op} {call.path}")
        if kind in (FaultKind.FAIL_BEFORE, FaultKind.LOST_REQUEST):
            raise _failure(kind, call)
        run()
        if kind is FaultKind.CRASH_AFTER:
            raise CrashError(f"after {call.op} {call.path}")
        raise _failure(kind, call)


def _failure(kind: FaultKind, call: Call) -> StorageError:
    conditional = call.op == "put_if_absent"
    if call.op in WRITES and (
        kind in (FaultKind.LOST_REQUEST, FaultKind.LOST_REPLY)
        or (conditional and kind is FaultKind.FAIL_AFTER)
    ):
        return AmbiguousWriteError("injected: no reply", path=call.path)
    if conditional:
        return StorageError("injected: refused", path=call.path)
    return TransientStorageError("injected: the store failed", path=call.path)


class ShortStore(WrappedStore):
    """On a machine that ran short: some calls on paths with some ending fail, as ``error`` says.

    A local store looks remote, so that reading a split is a call too.
    """

    def __init__(
        self,
        inner: Store,
        error: Callable[[], BaseException],
        *,
        ops: frozenset[str] = READS,
        suffix: str = ".split",
    ) -> None:
        super().__init__(inner)
        self._error = error
        self._ops = ops
        self._suffix = suffix
        self.failed = 0

    def _around(self, call: Call, run: Callable[[], T]) -> T:
        if call.op in self._ops and call.path.endswith(self._suffix):
            self.failed += 1
            raise self._error()
        return run()

    def local_path(self, path: str) -> str | None:
        return None


class UnconditionalStore(WrappedStore):
    """Ignores the condition of ``put_if_absent``, as some servers do."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.inner.put(path, data)


def fault_points(calls: int, kinds: Sequence[FaultKind] = tuple(FaultKind)) -> Iterator[Fault]:
    """Every fault of every kind at every call of a scenario that makes ``calls`` calls."""
    for at in range(calls):
        for kind in kinds:
            yield Fault(kind, at)
