"""Actors that take turns: any interleaving of store calls, drawn from a seed and repeatable.

Each actor is a thread, but only the one that has the turn runs; at every store call the turn may
pass to another. So a race is a number, and the same number gives the same race again. An actor
plays one process: it has its own identity in every cache, its own faults, and when it "dies" every
later call of that life fails too. What would make two runs differ (thread pools, random names) is
replaced while actors run.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import random
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar
from unittest import mock

from store_doubles import CrashError, FaultKind, RandomFaults

import indextables
from indextables.storage.base import Store
from indextables.storage.wrapped import Call, WrappedStore

T = TypeVar("T")
STUCK_S = 900.0
PARTS = ("columnindex", "log", "maintenance", "planner", "splits", "storage", "table", "xref")

_KINDS = (
    [FaultKind.FAIL_BEFORE] * 3
    + [FaultKind.FAIL_AFTER] * 2
    + [FaultKind.LOST_REQUEST] * 3
    + [FaultKind.LOST_REPLY] * 5
    + [FaultKind.CRASH_BEFORE] * 2
    + [FaultKind.CRASH_AFTER] * 2
)


class Turns:
    """Who runs; ``trace`` is the order in which calls were made."""

    def __init__(self, rng: random.Random, restless: float) -> None:
        self._rng = rng
        self._restless = restless
        self._waiting = threading.Condition()
        self._actors: list[str] = []
        self._now: str | None = None
        self.trace: list[str] = []
        self.failure: BaseException | None = None

    def play(self, actors: dict[str, Callable[[], None]]) -> None:
        """Run all actors to their end; the first failure is raised."""
        self._actors = list(actors)
        self._now = self._rng.choice(self._actors)
        threads = [
            threading.Thread(target=self._run, args=(name, work), name=name, daemon=True)
            for name, work in actors.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self, name: str, work: Callable[[], None]) -> None:
        try:
            self._await(name)
            work()
        except BaseException as error:
            self.failure = self.failure or error
        finally:
            with self._waiting:
                self._actors.remove(name)
                self._now = self._rng.choice(self._actors) if self._actors else None
                self._waiting.notify_all()

    def _await(self, name: str) -> None:
        with self._waiting:
            while self._now != name:
                if not self._waiting.wait(STUCK_S):
                    raise TimeoutError(f"{name} waits for a turn that {self._now} does not give")

    def at_call(self, name: str, call: Call) -> None:
        """Perhaps pass the turn before this call."""
        if self.failure is not None:
            raise CrashError("the run is over")
        self.trace.append(f"{name} {call.op} {call.path}")
        with self._waiting:
            if self._now == name and self._rng.random() < self._restless:
                self._now = self._rng.choice(self._actors)
                self._waiting.notify_all()
        if name in self._actors:
            self._await(name)


class ActorStore(WrappedStore):
    """The store as one process sees it: turns, then faults, then the real thing."""

    def __init__(
        self, inner: Store, name: str, life: int, turns: Turns | None, faults: RandomFaults
    ) -> None:
        super().__init__(inner)
        self.name = name
        self.injected: list[tuple[FaultKind, Call]] = []
        self._life = life
        self._turns = turns
        self._faults = faults
        self._is_dead = False

    @property
    def identity(self) -> str:
        return f"{self.inner.identity}#{self.name}.{self._life}"

    def _around(self, call: Call, run: Callable[[], T]) -> T:
        from store_doubles import _failure

        if self._is_dead:
            raise CrashError("this process is gone")
        if self._turns is not None:
            self._turns.at_call(self.name, call)
        kind = self._faults.draw(call.op)
        if kind is None:
            return run()
        self.injected.append((kind, call))
        if self._turns is not None:
            self._turns.trace.append(f"{self.name} ! {kind.name}")
        if kind in (FaultKind.FAIL_AFTER, FaultKind.LOST_REPLY, FaultKind.CRASH_AFTER):
            run()
        if kind in (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER):
            self._is_dead = True
            raise CrashError(f"{call.op} {call.path}")
        raise _failure(kind, call)


def faults(seed: int, rate: float) -> RandomFaults:
    return RandomFaults(seed, rate, _KINDS)


class _AtOnce(Executor):
    """Runs what is submitted there and then, in the caller's thread."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


def users_of_pools() -> list[ModuleType]:
    """Every module of the package that has a thread pool at hand."""
    for found in pkgutil.walk_packages(indextables.__path__, "indextables."):
        if found.name.split(".")[1] in PARTS:
            importlib.import_module(found.name)
    return [
        module
        for name, module in sys.modules.items()
        if name.startswith("indextables.") and hasattr(module, "ThreadPoolExecutor")
    ]


@contextmanager
def repeatable(rng: random.Random) -> Iterator[None]:
    """No thread pools, one processor, names from the seed."""

    def named() -> uuid.UUID:
        return uuid.UUID(int=rng.getrandbits(128), version=4)

    with (
        mock.patch.object(uuid, "uuid4", named),
        mock.patch.object(os, "cpu_count", return_value=1),
    ):
        users = users_of_pools()
        patches = [mock.patch.object(user, "ThreadPoolExecutor", _AtOnce) for user in users]
        for patch in patches:
            patch.start()
        try:
            yield
        finally:
            for patch in patches:
                patch.stop()
