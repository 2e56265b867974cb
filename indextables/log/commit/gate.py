"""The gate before a table is changed.

A table's protocol says who may write it. Writing is more than committing: a purge deletes files a
newer feature may own, a checkpoint leaves out what this release does not know, a merge that is
refused only at its commit leaves its splits behind. So every verb that changes a table asks first,
before any file is written or deleted: it is marked with ``mutates``, or takes its snapshot from
``TransactionLog.writable_snapshot``, which is the gate itself. A commit asks once more on every
attempt, since the protocol may be raised while a verb runs.

A dry run is let through only where it also answers a plain question (``DESCRIBE INDEXES``);
elsewhere it would announce what the verb then refuses to do.

``tests/maintenance/test_maintenance_gate.py`` calls every public verb on a table of a newer writer
and looks at every place that touches a store, so that a new verb cannot do without.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from indextables.log.read.snapshot import Snapshot

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

GATED: dict[str, str] = {}
"""Every function behind the gate, by its full name, and the verb it stands for."""


def mutates(
    verb: str,
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Marks a verb whose first argument is a log, or has one as ``log``."""

    def gated(function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        GATED[f"{function.__module__}.{function.__qualname__}"] = verb

        @wraps(function)
        def run(subject: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            require_writable(subject)
            return function(subject, *args, **kwargs)

        return run

    return gated


def require_writable(subject: Any) -> Snapshot:
    """The newest snapshot of a log (or of what has one); refused where we must not write."""
    log = getattr(subject, "log", subject)
    snapshot: Snapshot = log.writable_snapshot()
    return snapshot
