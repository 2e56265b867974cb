"""What a caller means by "table": a table, a log, a snapshot or a path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indextables.config import Config
from indextables.errors import PlanningError
from indextables.log.read.view import SnapshotView


@dataclass(frozen=True, slots=True)
class Target:
    """A snapshot to plan over, and what its tasks must know to read it."""

    snapshot: SnapshotView
    config: Config
    path: str = ""
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    store: Any = None


def resolve(table: Any, config: Config | None = None) -> Target:
    """The snapshot behind a table, a log, a snapshot or a path."""
    if isinstance(table, str | os.PathLike):
        from indextables.log.log import TransactionLog

        table = TransactionLog.open(os.fspath(table), config=config)
    if hasattr(table, "stat_column"):
        return Target(table, config or Config())
    snapshot = getattr(table, "snapshot", None)
    if callable(snapshot):
        snapshot = snapshot()
    if snapshot is None:
        raise PlanningError(
            f"cannot plan over a {type(table).__name__}",
            hint="Pass a Table, a Snapshot or the path of a table",
        )
    return Target(
        snapshot=snapshot,
        config=config or getattr(table, "config", None) or Config(),
        path=str(getattr(table, "path", "")),
        storage_options=dict(getattr(table, "storage_options", None) or {}),
        store=getattr(table, "store", None),
    )
