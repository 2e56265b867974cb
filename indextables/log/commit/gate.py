"""The gate before a table is changed.

A table's protocol says who may write it. Writing is more than committing: a purge deletes files a
newer feature may own, a checkpoint leaves out what this release does not know, a merge that is
refused only at its commit leaves its splits behind. So every verb that changes a table asks first,
before any file is written or deleted: it is marked with ``mutates``, or takes its snapshot from
``TransactionLog.writable_snapshot``, which is the gate itself. A commit asks once more on every
attempt, since the protocol may be raised while a verb runs.

A dry run is let through only where it also answers a plain question (``DESCRIBE INDEXES``);
elsewhere it would announce what the verb then refuses to do.

A companion holds no rows of its own: verbs that would change rows or columns (``OF_ROWS``) are
refused at the same place, and the refusal names the table that has them. What a companion may
commit, a commit checks once more (``refuse_foreign_splits``).

``tests/maintenance/test_maintenance_gate.py`` calls every public verb on a table of a newer writer
and looks at every place that touches a store, so that a new verb cannot do without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from indextables.errors import MaintenanceError
from indextables.log.actions import Action, AddFile
from indextables.log.actions.protocol import is_companion

if TYPE_CHECKING:
    from indextables.log.read.snapshot import Snapshot

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

GATED: dict[str, str] = {}
"""Every function behind the gate, by its full name, and the verb it stands for."""
OF_ROWS = frozenset(
    (
        "ADD COLUMN",
        "ALTER COLUMN",
        "DELETE",
        "DROP COLUMN",
        "DROP PARTITIONS",
        "MERGE SPLITS",
        "RENAME COLUMN",
        "REORG",
        "RESTORE",
        "TRUNCATE",
        "UPDATE",
        "UPSERT",
    )
)
"""Verbs that change rows or columns, or write splits with their rows again."""
SOURCE_PATH = "indextables.companion.sourceTablePath"


def mutates(
    verb: str,
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Marks a verb whose first argument is a log, or has one as ``log``."""

    def gated(function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        GATED[f"{function.__module__}.{function.__qualname__}"] = verb

        @wraps(function)
        def run(subject: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            snapshot = require_writable(subject)
            if verb in OF_ROWS:
                refuse_companion(snapshot, verb)
            return function(subject, *args, **kwargs)

        return run

    return gated


def require_writable(subject: Any) -> Snapshot:
    """The newest snapshot of a log (or of what has one); refused where we must not write."""
    log = getattr(subject, "log", subject)
    snapshot: Snapshot = log.writable_snapshot()
    return snapshot


def refuse_companion(snapshot: Snapshot, verb: str) -> None:
    """Refuse to change the rows of a companion: they belong to the table that it indexes."""
    if is_companion(snapshot.metadata):
        source = snapshot.metadata.configuration.get(SOURCE_PATH, "another table")
        raise MaintenanceError(
            f"{verb}: the table is a companion, an index over the rows of {source}",
            version=snapshot.version,
            hint=f"Change {source} itself; the companion follows it",
        )


def refuse_foreign_splits(snapshot: Snapshot, actions: Iterable[Action]) -> None:
    """Refuse to bring splits into a companion that do not say whose rows they index."""
    if is_companion(snapshot.metadata) and any(
        isinstance(a, AddFile) and a.companion_source_files is None for a in actions
    ):
        refuse_companion(snapshot, "WRITE")
