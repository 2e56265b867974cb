"""What changed between two versions of a table."""

from __future__ import annotations

from dataclasses import dataclass

from indextables.log.actions import AddFile
from indextables.log.read.snapshot import Snapshot


@dataclass(frozen=True)
class Difference:
    """Splits that only one of two versions has."""

    from_version: int
    to_version: int
    added: tuple[AddFile, ...]
    removed: tuple[AddFile, ...]

    @property
    def rows_added(self) -> int:
        return sum(f.num_live or 0 for f in self.added)

    @property
    def rows_removed(self) -> int:
        return sum(f.num_live or 0 for f in self.removed)

    def __repr__(self) -> str:
        return (
            f"Difference(v{self.from_version} -> v{self.to_version}: "
            f"+{len(self.added)} splits ({self.rows_added:,} rows), "
            f"-{len(self.removed)} splits ({self.rows_removed:,} rows))"
        )


def difference(a: Snapshot, b: Snapshot) -> Difference:
    """From ``a`` to ``b``."""
    before = {f.path: f for f in a.files()}
    after = {f.path: f for f in b.files()}
    return Difference(
        a.version,
        b.version,
        tuple(f for p, f in after.items() if p not in before),
        tuple(f for p, f in before.items() if p not in after),
    )
