"""Cross-references. Decides which splits certainly do not hold a term, before they are opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from indextables.log.log import TransactionLog
    from indextables.log.read.snapshot import Snapshot
    from indextables.xref.builder import XRefBuildResult

__all__ = ["Coverage", "build", "coverage"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far the cross-references of a table reach."""

    xrefs: int
    covered: int
    total: int

    @property
    def uncovered(self) -> int:
        return self.total - self.covered

    @property
    def percent(self) -> float:
        return 100.0 * self.covered / self.total if self.total else 100.0

    def __str__(self) -> str:
        return f"Coverage: {self.covered}/{self.total} ({self.percent:.2f}%)"


def coverage(snapshot: Snapshot) -> Coverage:
    """How many live splits the live cross-references cover."""
    covered = np.zeros(snapshot.num_files, np.bool_)
    for xref in snapshot.xrefs:
        places = snapshot.indices_of(xref.source_split_paths)
        covered[places[places >= 0]] = True
    return Coverage(len(snapshot.xrefs), int(covered.sum()), snapshot.num_files)


def build(
    log: TransactionLog,
    *,
    scope: frozenset[str] | None = None,
    partition: str = "",
    force: bool = False,
    dry_run: bool = False,
    filter_type: str | None = None,
    config: Any = None,
    gather: Any = None,
) -> list[XRefBuildResult]:
    """Build or update the cross-references of a table.

    ``scope`` limits the work to some splits; the caller chose them by a partition predicate, whose
    text is ``partition``.
    """
    from indextables.xref.builder import XRefBuildManager

    manager = XRefBuildManager(log, config, gather)
    return manager.build_cross_references(
        scope=scope, partition=partition, force=force, dry_run=dry_run, filter_type=filter_type
    )
