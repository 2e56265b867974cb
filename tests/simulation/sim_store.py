"""The store under the simulation: one healthy world, and what each actor sees of it.

``WorldStore`` is the truth. It knows every object and when it was born (by the scheduler's clock),
keeps each version file the moment it is created, which is the order all writers agree on, and
judges every write and deletion on the spot: no version is written twice, no file of the newest
version is deleted, nothing is deleted where only a newer release may write.

``SimStore`` is the store of one process of one actor. Every call is a point of the scheduler, and
then perhaps a fault strikes, as ``sim_faults`` draws it. A process that died makes no more calls.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from sim_faults import WRITES, Fault, FaultPlan, failure_of
from sim_scheduler import Scheduler
from store_doubles import CrashError

from indextables.log.actions import Action, AddFile, RemoveFile
from indextables.log.actions.codec import decode_actions
from indextables.log.read.versions import LOG_DIR
from indextables.storage.base import Capabilities, ObjectInfo, Store
from indextables.storage.deleting import Kind
from indextables.storage.paths import temporary_name
from indextables.storage.wrapped import Call, WrappedStore

T = TypeVar("T")
_runs = count()


class BrokenPromiseError(AssertionError):
    """The table broke a promise; ``check`` names which."""

    def __init__(self, check: str, text: str) -> None:
        super().__init__(f"{check}: {text}")
        self.check = check


def version_of(path: str) -> int | None:
    folder, _, name = path.rpartition("/")
    if folder == LOG_DIR and len(name) == 25 and name.endswith(".json") and name[:20].isdigit():
        return int(name[:20])
    return None


class WorldStore(WrappedStore):
    """The truth about a table's files."""

    def __init__(self, inner: Store, scheduler: Scheduler) -> None:
        super().__init__(inner)
        self.scheduler = scheduler
        self.run = next(_runs)
        """No cache of this process may know anything of an earlier run."""
        self.born: dict[str, int] = {}
        self.versions: dict[int, bytes] = {}
        self.made_at: dict[int, int] = {}
        self.live: dict[str, str | None] = {}
        """Files of the newest version that we made, and the file of their deletion vectors."""
        self.deleted: dict[str, int] = {}
        self.recent: list[str] = []
        """Paths in the order they were created, for listings that lag."""
        self.is_closed_to_us = False
        """A newer release has taken the table: nothing of ours may change it any more."""

    @property
    def newest(self) -> int:
        return max(self.versions, default=-1)

    def actions(self, version: int) -> list[Action]:
        return decode_actions(self.versions[version], root=self.uri, path="", version=version)

    # -- writing ----------------------------------------------------------------------------------

    def put(self, path: str, data: bytes) -> None:
        number = version_of(path)
        if number is not None and self._is_there(path) and self.inner.read(path) != data:
            raise BrokenPromiseError("a version is made once", f"{path} is replaced")
        self.inner.put(path, data)
        self._wrote(path, data)

    def put_file(self, path: str, local_path: str) -> None:
        self.inner.put_file(path, local_path)
        self._wrote(path, None)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.inner.put_if_absent(path, data)
        self._wrote(path, data)

    def _is_there(self, path: str) -> bool:
        return path in self.born and path not in self.deleted

    def _wrote(self, path: str, data: bytes | None) -> None:
        self.born[path] = self.scheduler.now_ms
        self.deleted.pop(path, None)
        self.recent.append(path)
        number = version_of(path)
        if number is None or data is None or number in self.versions:
            return
        if self.is_closed_to_us:
            raise BrokenPromiseError(
                "the protocol gate", f"{path} was made in a newer release's table"
            )
        self.versions[number] = data
        self.made_at[number] = self.scheduler.now_ms
        if number == max(self.versions):
            self._fold(self.actions(number))

    def _fold(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, RemoveFile):
                self.live.pop(action.path, None)
        for action in actions:
            if isinstance(action, AddFile):
                vector = action.deletion_vector
                self.live[action.path] = None if vector is None else vector.path

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._judge_deletion(path)
        self.inner.delete(paths)
        for path in paths:
            if path in self.born:
                self.deleted[path] = self.scheduler.now_ms

    def _judge_deletion(self, path: str) -> None:
        vectors = (vector for vector in self.live.values() if vector is not None)
        if path in self.live or path in vectors:
            raise BrokenPromiseError(
                "live files stay", f"{path} of version {self.newest} is deleted"
            )
        if path == f"{LOG_DIR}/{0:020d}.json":
            raise BrokenPromiseError("live files stay", "version 0 is deleted")

    # -- reading ----------------------------------------------------------------------------------

    def _dated(self, info: ObjectInfo) -> ObjectInfo:
        return replace(info, modified_ms=self.born.get(info.path, info.modified_ms))

    def stat(self, path: str) -> ObjectInfo:
        return self._dated(self.inner.stat(path))

    def list(
        self, prefix: str = "", start_after: str | None = None, recursive: bool = False
    ) -> Iterator[ObjectInfo]:
        return iter([self._dated(i) for i in self.inner.list(prefix, start_after, recursive)])

    def list_temporaries(self) -> Iterator[ObjectInfo]:
        return iter([self._dated(i) for i in self.inner.list_temporaries()])


class SimStore(WrappedStore):
    """The world as one process sees it: its turn, then perhaps a fault, then the real thing."""

    def __init__(
        self, world: WorldStore, scheduler: Scheduler, plan: FaultPlan, name: str, life: int
    ) -> None:
        super().__init__(world)
        self.world = world
        self.scheduler = scheduler
        self.plan = plan
        self.name = name
        self.life = life
        self.is_dead = False
        self.is_refused = False
        """The table was a newer release's when the running step began."""
        self.excuses = 0
        """Faults after which a call of ours may fail."""
        self.lagged = 0
        """Listings that did not show everything."""

    @property
    def identity(self) -> str:
        return f"{self.inner.identity}#{self.world.run}.{self.name}.{self.life}"

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        own = self.inner.capabilities
        return replace(own, remote=True) if self.plan.looks_remote else own

    def local_path(self, path: str) -> str | None:
        return None if self.plan.looks_remote else self.inner.local_path(path)

    def _around(self, call: Call, run: Callable[[], T]) -> T:
        if self.is_dead:
            raise CrashError("this process is gone")
        if self.is_refused and call.op in WRITES:
            text = f"{call.op} {call.path} in a table that only a newer release may write"
            raise BrokenPromiseError("the protocol gate", text)
        self.scheduler.point(call.op, call.path)
        if self.is_dead:
            raise CrashError("this process is gone")
        fault = self.plan.draw(self.name, call)
        if fault is None:
            return run()
        self.scheduler.note("!", f"{fault.value} at {call.op} {call.path}")
        return self._strike(fault, call, run)

    def _strike(self, fault: Fault, call: Call, run: Callable[[], T]) -> T:
        if fault is Fault.SLOW:
            self.scheduler.stand_still(self.plan.rng.choice([1_000, 60_000, 600_000]))
            return run()
        if fault is Fault.CLOCK_JUMP:
            actor = self.scheduler.current
            if actor is not None:
                actor.skew_ms = self.plan.skew()
            return run()
        if fault is Fault.STALE_LIST:
            self.lagged += 1
            return self._lagging(call, run)
        self.excuses += 1
        if fault is Fault.TORN_READ:
            flips = call.path.endswith((".split", ".bin")) and self.plan.rng.random() < 0.7
            return torn(run(), self.plan.rng.random(), flips=flips)
        if fault in (Fault.FAIL_AFTER, Fault.LOST_REPLY, Fault.CRASH_AFTER):
            run()
        if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
            self._die(fault, call)
        raise failure_of(fault, call)

    def _die(self, fault: Fault, call: Call) -> None:
        self.is_dead = True
        if fault is Fault.CRASH_BEFORE and call.op in ("put", "put_file", "put_if_absent"):
            folder = call.path.rpartition("/")[0]
            name = temporary_name()
            self.plan.fired[Fault.HALF_WRITTEN] += 1
            self.world.put(f"{folder}/{name}" if folder else name, b"half of it")
        raise CrashError(f"{call.op} {call.path}")

    def _lagging(self, call: Call, run: Callable[[], T]) -> T:
        """A listing without what came last; a process always sees what it wrote itself."""
        hidden = set(self.world.recent[-self.plan.rng.randint(1, 3) :])
        found: Any = run()
        if call.op == "list":
            return [i for i in found if i.path not in hidden]  # type: ignore[return-value]
        young = {p.rpartition("/")[0] for p in hidden}
        old = {p.rpartition("/")[0] for p in self.world.recent if p not in hidden}
        return [f for f in found if f not in young - old]  # type: ignore[return-value]

    def list_temporaries(self) -> Iterator[ObjectInfo]:
        call = Call("list_temporaries", "")
        return iter(self._around(call, lambda: builtins.list(self.inner.list_temporaries())))

    def put_file(self, path: str, local_path: str) -> None:
        """A file is on its way for a while, under a temporary name, before it is there."""
        if self.plan.shows_uploads:
            folder = path.rpartition("/")[0]
            draft = f"{folder}/{temporary_name()}" if folder else temporary_name()
            self.world.put(draft, b"on its way")
            super().put_file(path, local_path)
            if draft in self.world.deleted:
                raise BrokenPromiseError(
                    "uploads stay", f"{draft} was deleted while {path} was written"
                )
            self.world.inner.delete([draft])
            self.world.deleted[draft] = self.scheduler.now_ms
            return
        super().put_file(path, local_path)


def torn(found: Any, where: float, *, flips: bool = False) -> Any:
    """Bytes of which the last part did not arrive and reads as zeros; or one byte is another."""
    if isinstance(found, bytes | bytearray | memoryview):
        data = bytes(found)
        cut = int(len(data) * where)
        if flips and data:
            return data[:cut] + bytes((data[cut] ^ 1,)) + data[cut + 1 :]
        return data[:cut] + b"\0" * (len(data) - cut)
    if isinstance(found, list) and found:
        at = int(len(found) * where)
        whole = found[at]
        if isinstance(whole, bytes | bytearray | memoryview):
            return [*found[:at], torn(whole, where, flips=flips), *found[at + 1 :]]
    return found


def is_data(path: str) -> bool:
    """Is this a file that PURGE judges?"""
    kinds = (Kind.SPLIT, Kind.XREF, Kind.SIDECAR, Kind.KEYMAP, Kind.VECTOR)
    return any(kind.has(path) for kind in kinds)
