"""Which files a partition predicate names, for overwrites and drops.

The predicate may read partition columns only; it is decided exactly, per file, from the values in
the log. A file it cannot be decided for is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indextables.errors import PlanningError
from indextables.expr.bind import bind
from indextables.expr.predicate import Predicate, referenced_columns
from indextables.log.actions import AddFile
from indextables.log.read.snapshot import Snapshot
from indextables.planner import Planner


def partition_predicate(where: Any, snapshot: Snapshot, time_zone: str = "UTC") -> Predicate:
    """Bind a predicate that may read partition columns only."""
    columns = snapshot.partition_columns
    if not columns:
        raise PlanningError(
            "WHERE is not supported on a table without partitions", hint="Leave WHERE out"
        )
    predicate = bind(where, snapshot.schema, partition_columns=columns, time_zone=time_zone)
    read = referenced_columns(predicate)
    others = [c for c in read if c not in snapshot.stored_partition_columns]
    if others or not read:
        what = f"not {', '.join(others)}" if others else "and at least one"
        raise PlanningError(
            f"only partition columns may be used here, {what}",
            hint=f"Partition columns: {', '.join(columns)}",
        )
    return predicate


def split_scope(snapshot: Snapshot, where: Any) -> frozenset[str] | None:
    """Paths of the splits a partition predicate names; ``None``: all of them."""
    if where is None:
        return None
    chosen = matching_files(snapshot, partition_predicate(where, snapshot))
    return frozenset(f.path for f in chosen)


def matching_files(
    snapshot: Snapshot, predicate: Predicate, files: Sequence[AddFile] | None = None
) -> list[AddFile]:
    """The files (of the snapshot, or the given ones) whose rows satisfy the predicate."""
    if files is not None:
        snapshot = snapshot.with_only(files)
    plan = Planner(snapshot).plan(predicate)
    if plan.must_match < len(plan):
        raise PlanningError(
            "the predicate cannot be decided from the partition values of every file",
            hint="Compare partition columns with literals of their own type",
        )
    return list(plan.splits)
