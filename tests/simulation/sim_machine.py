"""One process that behaves the same twice: what the package takes from outside comes from the seed.

* Names come from ``uuid.uuid4``: here from the seed.
* Time comes from ``time.time`` and ``time.time_ns``, pauses from ``storage.retry.Patience``: here
  from the scheduler, for the threads of a story; other threads see the real clock.
* Work goes to pools through ``storage.pool`` and ``ThreadPoolExecutor``: here it is done at once,
  by the caller. ``_State.is_inside`` is the seam; it says that a thread must not wait for a pool.
* The disk cache belongs to whoever runs the tests: it is used only by a story that brings its own.
* Splits: equal rows in equal batches give equal bytes, and a full-text index is dear. The bytes of
  a split are kept by what went into it, and a split that was built before is not built again. That
  saves time and changes nothing; ``tests`` compare both.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any
from unittest import mock

import pyarrow as pa
from sim_scheduler import Scheduler

import indextables
from indextables.config import Config
from indextables.log.read import bounded
from indextables.splits.write.split_writer import FinishedSplit, SplitWriter
from indextables.storage import diskcache, pool, retry

PARTS = ("columnindex", "log", "maintenance", "planner", "splits", "storage", "table", "xref")
NOT_IN_A_SPLIT = (
    "checkpoint", "state.", "transaction.", "xref.query", "xref.autoIndex", "write.", "purge",
    "deletionVector", "storage.", "columnIndex.selectivity", "logRetention", "merge",
)  # fmt: skip
"""Settings by which no byte of a split changes."""
_built: dict[bytes, tuple[bytes, FinishedSplit]] = {}
MOST_BUILT = 20_000
_names: list[random.Random] = []
_users: list[ModuleType] = []
_real_time, _real_ns, _real_finish = time.time, time.time_ns, SplitWriter._finish
_real_cache = diskcache.default_cache
_real_uuid4 = uuid.uuid4
_real_patience = retry.Patience.__init__


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
    if not _users:
        for found in pkgutil.walk_packages(indextables.__path__, "indextables."):
            if found.name.split(".")[1] in PARTS:
                importlib.import_module(found.name)
        _users.extend(
            module
            for name, module in sorted(sys.modules.items())
            if name.startswith("indextables.") and hasattr(module, "ThreadPoolExecutor")
        )
    return _users


def work_folder() -> str:
    """Where splits are built: in memory where the machine has such a place."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


@contextmanager
def machine(scheduler: Scheduler, seed: int, *, reuse: bool = True) -> Iterator[None]:
    """While this lasts, nothing but the seed decides."""
    names, jitter = random.Random(f"names {seed}"), random.Random(f"jitter {seed}")
    with ExitStack() as stack:
        _names.append(names)
        stack.callback(_names.pop)
        patch = lambda owner, name, new: stack.enter_context(mock.patch.object(owner, name, new))  # noqa: E731
        patch(uuid, "uuid4", _namer(names))
        patch(os, "cpu_count", lambda: 1)
        patch(time, "time", _clock(scheduler, _real_time, 1e-3))
        patch(time, "time_ns", _clock(scheduler, _real_ns, 1_000_000))
        patch(pool._State, "is_inside", property(lambda self: True))
        patch(diskcache, "default_cache", _cache_of)
        patch(bounded, "in_time", lambda store, path, config, read, turns=1: read())
        patch(retry.Patience, "__init__", _patience(scheduler, jitter))
        for user in users_of_pools():
            patch(user, "ThreadPoolExecutor", _AtOnce)
        if reuse:
            patch(SplitWriter, "_finish", _finish)
        yield


def _namer(names: random.Random) -> Callable[[], uuid.UUID]:
    """Names for the package; a library that is imported meanwhile draws its own."""

    def named() -> uuid.UUID:
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("indextables."):
            return _real_uuid4()
        return uuid.UUID(int=names.getrandbits(128), version=4)

    return named


def _cache_of(config: Config | None = None) -> diskcache.DiskCache | None:
    """The disk cache of a story that has one; never that of whoever runs the tests."""
    chosen = config or Config()
    return _real_cache(chosen) if chosen.is_set("cache.disk.path") else None


def _clock(scheduler: Scheduler, real: Callable[[], Any], unit: float) -> Callable[[], Any]:
    def now() -> Any:
        return real() if scheduler.current is None else scheduler.moment_ms() * unit

    return now


def _patience(scheduler: Scheduler, jitter: random.Random) -> Callable[..., None]:
    def make(
        self: retry.Patience,
        policy: retry.RetryPolicy,
        *,
        clock: Any = None,
        sleep: Any = None,
        rng: Any = None,
    ) -> None:
        if scheduler.current is None:
            _real_patience(self, policy, rng=jitter)
            return
        pauses = {"clock": lambda: scheduler.now_ms / 1000, "sleep": scheduler.pause}
        _real_patience(self, policy, rng=jitter, **pauses)

    return make


def _finish(self: SplitWriter) -> FinishedSplit:
    """The split as it was built before from the same rows, else the real thing."""
    if self._sample != [] or not self._pending:
        return _real_finish(self)
    key = _key_of(self)
    found = _built.get(key)
    if found is None:
        state = _names[-1].getstate()
        done = _real_finish(self)
        _names[-1].setstate(state)
        if len(_built) >= MOST_BUILT:
            _built.clear()
        with open(done.local_path, "rb") as file:
            _built[key] = file.read(), done
        return done
    data, done = found
    local = os.path.join(self._folder, "split.bundle")
    with open(local, "wb") as file:
        file.write(data)
    return replace(done, local_path=local)


def _key_of(writer: SplitWriter) -> bytes:
    digest = hashlib.sha256(writer.mapping.to_json().encode())
    settings = sorted(writer._config.raw().items())
    kept = [pair for pair in settings if not pair[0].startswith(NOT_IN_A_SPLIT)]
    digest.update(repr(kept).encode())
    digest.update(repr([*writer._kept, *sorted(writer._carried.items())]).encode())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, writer.schema) as stream:
        for batch in writer._pending:
            stream.write_batch(batch)
    digest.update(sink.getvalue())
    return digest.digest()


def forget_splits() -> None:
    _built.clear()
