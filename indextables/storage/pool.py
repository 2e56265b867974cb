"""One pool of threads for all reads that go side by side.

Reading from an object store is waiting: a request takes tens of milliseconds of which the processor
works one. So the number of requests in flight follows the latency, not the number of cores. Local
reads only compute, and there the cores decide. ``workers`` is that decision, and its setting
(``read.remoteParallelism``) bounds what one query has in flight; the pool bounds what all queries
of a process have together.

A call made inside a thread of the pool runs its parts one after another: threads of the pool never
wait for the pool, so it cannot be locked by itself. Parts of one object are read side by side all
the same, by the event loop of the client (``objects``).

A forked child starts with a pool of its own. Nothing runs on after an answer: a caller that leaves
early cancels what has not started and waits for what has.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

from indextables.storage.machine import explained

if TYPE_CHECKING:
    from indextables.storage.base import Store

T = TypeVar("T")
R = TypeVar("R")

MOST_THREADS = 128
DEFAULT_WORKERS = 64


class _State:
    """The pool of this process, made when it is first needed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.executor: ThreadPoolExecutor | None = None
        self.inside = threading.local()

    def submit(self, run: Callable[..., R], *given: Any) -> Future[R]:
        with self.lock:
            if self.executor is None:
                self.executor = ThreadPoolExecutor(
                    MOST_THREADS, "indextables", initializer=self._enter
                )
        return self.executor.submit(run, *given)

    def _enter(self) -> None:
        self.inside.pool = True

    @property
    def is_inside(self) -> bool:
        return getattr(self.inside, "pool", False)


_state = _State()


def _start_anew() -> None:
    global _state
    _state = _State()


_ahead: dict[Callable[[], None], threading.Thread] = {}


def ahead(store: Store, run: Callable[[], None]) -> None:
    """Start what will be needed, once in a process, where the store lets us wait anyway.

    ``run`` is an import: code that needs it sooner waits for it by the interpreter's own locks. A
    fork waits too, for a child would never see such a lock released.
    """
    if store.capabilities.remote and run not in _ahead:
        _ahead[run] = threading.Thread(target=_silently, args=(run,), name="indextables-ahead")
        _ahead[run].start()


def _silently(run: Callable[[], None]) -> None:
    """What fails here fails again where it is needed, and is reported there."""
    with contextlib.suppress(Exception):
        run()


def _settle() -> None:
    for thread in _ahead.values():
        if thread is not threading.current_thread():
            thread.join()


os.register_at_fork(before=_settle, after_in_child=_start_anew)


def workers(store: Store, most: int | None = None) -> int:
    """How many reads of this store go side by side; ``most`` is the setting."""
    cores = os.cpu_count() or 1
    if not store.capabilities.remote:
        return cores
    return max(1, min(MOST_THREADS, DEFAULT_WORKERS if most is None else most))


def submit(run: Callable[[T], R], item: T) -> Future[R]:
    """The coming result of one call; inside the pool it is there at once."""
    if not _state.is_inside:
        return _state.submit(run, item)
    done: Future[R] = Future()
    try:
        done.set_result(run(item))
    except Exception as error:
        done.set_exception(error)
    return done


def side_by_side(store: Store, *calls: Callable[[], Any]) -> list[Any]:
    """The results of a few calls, made at once where the store is remote."""
    if not store.capabilities.remote or _state.is_inside or len(calls) < 2:
        return [call() for call in calls]
    others = [_state.submit(call) for call in calls[1:]]
    try:
        return [calls[0](), *(other.result() for other in others)]
    finally:
        _leave(others)


def one_ahead(store: Store, make: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """``make`` of each item, the next one begun while the last is worked on.

    Only where the store lets us wait. A thread of the pool makes one after the other: other threads
    of the pool fill its waiting.
    """
    if not store.capabilities.remote or _state.is_inside:
        yield from map(make, items)
        return
    coming: Future[R] | None = None
    try:
        for item in items:
            this, coming = coming, _state.submit(make, item)
            if this is not None:
                yield this.result()
        if coming is not None:
            this, coming = coming, None
            yield this.result()
    finally:
        if coming is not None:
            _leave([coming])


def in_order(
    run: Callable[[T], R],
    items: Iterable[T],
    count: int,
    weigh: Callable[[T], int] | None = None,
    budget: int = 0,
) -> Iterator[R]:
    """``run`` over the items, ``count`` at once; results in the order of the items.

    With ``weigh`` less is in flight where items are heavy: their weights stay within ``budget``,
    but for as many items as there are cores. What the machine lacks (memory, descriptors, threads)
    comes out as ``MachineError``.
    """

    def told(item: T) -> R:
        with explained():
            return run(item)

    waiting = deque(items)
    if len(waiting) <= 1 or count <= 1 or _state.is_inside:
        yield from map(told, waiting)
        return
    running: deque[tuple[Future[R], int]] = deque()
    cores, load = os.cpu_count() or 1, 0
    try:
        while waiting or running:
            while waiting and len(running) < count:
                weight = weigh(waiting[0]) if weigh is not None else 0
                if load + weight > budget and weigh is not None and len(running) >= cores:
                    break
                with explained():
                    running.append((_state.submit(told, waiting.popleft()), weight))
                load += weight
            future, weight = running.popleft()
            try:
                yield future.result()
            finally:
                load -= weight
    finally:
        _leave([future for future, _ in running])


def _leave(futures: Iterable[Future[Any]]) -> None:
    wait([future for future in futures if not future.cancel()])
