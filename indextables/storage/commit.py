"""How one commit lands in one slot of the log although replies get lost.

A slot is a path that is created once and never changed; ``put_if_absent`` decides who gets it.
"It already exists" does not say who: the client library may have sent our bytes twice and lost
the first reply. So after every answer but success the slot is read back:

* it holds our bytes (``is_mine`` finds our commit id)  -> committed;
* it holds another writer's                             -> ``CommitConflictError``;
* it is empty                                           -> send the same bytes to the same slot.

A slot that was emptied again (old entries are deleted at some point) can be taken by a writer that
stood still meanwhile, where no reader will ever look. ``overtaken`` is asked after every success
whether that happened: then nothing of ours is visible, which is a conflict, unless an earlier try
may have landed in time, which can no longer be known.

An empty slot is never skipped: a writer that moved on to the next version would leave a hole
that hides every later commit from readers. Two endings are kept apart: a definite refusal, when
no earlier try can still arrive, is ``CommitFailedError`` and the caller may delete its files;
running out of time is ``CommitStateUnknownError`` and the caller must keep them.
"""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from indextables.errors import (
    AmbiguousWriteError,
    CommitConflictError,
    CommitFailedError,
    CommitStateUnknownError,
    IndexTablesError,
    MachineError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from indextables.storage.base import Store
from indextables.storage.deleting import Kind, delete
from indextables.storage.machine import machine_error
from indextables.storage.retry import Patience, RetryPolicy

EMPTY = None
_NO_ANSWER = (StorageError, MachineError, MemoryError)
"""A question that was not answered; a commit may have landed, so none of these ends the asking."""


@dataclass(slots=True)
class _Asking:
    """The patience of one commit, and what went wrong last."""

    path: str
    patience: Patience
    last_error: Exception | None = None

    def wait(self) -> None:
        """Pause before the next try, or end in ``CommitStateUnknownError``."""
        if not self.patience.wait():
            raise CommitStateUnknownError(
                "no answer from the store proved whether the commit landed",
                path=self.path,
                hint="Keep every file of this commit; look its commit id up in the log before "
                "running it again",
            ) from self.last_error


def commit_slot(
    store: Store,
    path: str,
    data: bytes,
    *,
    is_mine: Callable[[bytes], bool],
    deadline_s: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    rng: random.Random | None = None,
    overtaken: Callable[[], bool] = lambda: False,
) -> None:
    """Create ``path`` with ``data`` exactly once; see the module's docstring for the outcomes."""
    policy = RetryPolicy(attempts=math.inf, budget_s=deadline_s)
    asking = _Asking(path, Patience(policy, clock=clock, sleep=sleep, rng=rng))
    may_have_landed = False
    while True:
        try:
            store.put_if_absent(path, data)
            _refuse_if_overtaken(store, overtaken, asking, may_have_landed)
            return
        except (ObjectExistsError, AmbiguousWriteError) as error:
            may_have_landed = True
            asking.last_error = error
        except _NO_ANSWER as error:
            if not may_have_landed:
                raise _refused(path, error) from error
            asking.last_error = error
        found = _read_back(store, path, asking)
        if found is not EMPTY:
            _settle(found, path, is_mine)
            _refuse_if_overtaken(store, overtaken, asking, True)
            return
        asking.wait()


def _refused(path: str, error: Exception) -> CommitFailedError:
    """Why nothing was written."""
    if isinstance(error, StorageError):
        text, hint = f"the store refused the commit: {error.message}", error.hint
    else:
        short = machine_error(error) or error
        text = f"the commit was not written: {getattr(short, 'message', short)}"
        hint = short.hint if isinstance(short, IndexTablesError) else None
    return CommitFailedError(text, path=path, hint=hint)


def _read_back(store: Store, path: str, asking: _Asking) -> bytes | None:
    """What the slot holds, ``EMPTY`` when nothing; asked until the store answers."""
    while True:
        try:
            return store.read(path)
        except ObjectNotFoundError:
            return EMPTY
        except _NO_ANSWER as error:
            asking.last_error = error
        asking.wait()


def _refuse_if_overtaken(
    store: Store, overtaken: Callable[[], bool], asking: _Asking, may_have_landed: bool
) -> None:
    """Raise when the slot is one that readers have left behind; asked until the store answers."""
    path = asking.path
    while True:
        try:
            if not overtaken():
                return
            break
        except _NO_ANSWER as error:
            asking.last_error = error
        asking.wait()
    if may_have_landed:
        raise CommitStateUnknownError(
            "the log was truncated while the commit was on its way",
            path=path,
            hint="Keep every file of this commit; look for its rows before running it again",
        )
    with contextlib.suppress(StorageError):
        delete(store, Kind.VERSION, [path])
    raise CommitConflictError(
        "the log was truncated past this slot", path=path, hint="Refresh and run it again"
    )


def _settle(found: bytes, path: str, is_mine: Callable[[bytes], bool]) -> None:
    """Return when the slot is ours, else raise what it is."""
    try:
        mine = is_mine(found)
    except Exception as error:
        raise CommitStateUnknownError(
            "the slot holds bytes that cannot be told apart from ours",
            path=path,
            hint="Keep every file of this commit and inspect that log entry",
        ) from error
    if not mine:
        raise CommitConflictError(
            "another writer committed first", path=path, hint="Refresh and run it again"
        )
