"""Cross-references in the log: adding, replacing, and who is covered.

A split is covered when a live cross-reference lists its path. Coverage is by the whole path, since
two partitions may hold files of the same name; a bare file name is accepted where it is
unambiguous. A stale reference (one that lists a split which is gone) still covers the others.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from indextables.errors import IndexTablesError
from indextables.log.actions import AddFile, AddXRef, RemoveXRef
from indextables.log.commit.transaction import Transaction
from indextables.log.read.snapshot import Snapshot

if TYPE_CHECKING:
    from indextables.log.commit.transaction import CommitResult


class XRefMethods:
    """The part of ``TransactionLog`` that speaks of cross-references."""

    if TYPE_CHECKING:
        path: str

        def snapshot(self) -> Snapshot: ...
        def commit(self, transaction: Transaction) -> CommitResult: ...

    def add_xref(self, xref: AddXRef) -> int:
        """Make a cross-reference usable; gives the version."""
        transaction = Transaction(
            None, "ADD XREF", parameters={"xrefId": xref.xref_id}, actions=[xref]
        )
        return self.commit(transaction).version

    def remove_xref(self, path: str, reason: str = "explicit") -> int:
        """Retire a cross-reference; gives the version."""
        known = next((xref for xref in self.list_xrefs() if xref.path == path), None)
        if known is None:
            raise IndexTablesError(
                f"the table has no cross-reference '{path}'",
                path=self.path,
                hint="list_xrefs() shows the live ones",
            )
        removal = RemoveXRef(known.path, known.xref_id, int(time.time() * 1000), reason)
        transaction = Transaction(
            None,
            "REMOVE XREF",
            parameters={"xrefId": known.xref_id, "reason": reason},
            actions=[removal],
        )
        return self.commit(transaction).version

    def replace_xref(self, removal: RemoveXRef, xref: AddXRef) -> int:
        """Retire one cross-reference and make another usable, in one version."""
        parameters = {"removed": removal.xref_id, "xrefId": xref.xref_id}
        transaction = Transaction(
            None, "REPLACE XREF", parameters=parameters, actions=[removal, xref]
        )
        return self.commit(transaction).version

    def list_xrefs(self) -> list[AddXRef]:
        """The live cross-references."""
        return list(self.snapshot().xrefs)

    def list_removed_xrefs(self) -> list[RemoveXRef]:
        """Cross-references that were retired; their files may be purged."""
        return list(self.snapshot().ledger.removed_xrefs.values())

    def get_xref_for_split(self, split_path: str) -> AddXRef | None:
        """The cross-reference that covers a split, the newest if several do."""
        snapshot = self.snapshot()
        path = _full_path(snapshot, split_path)
        covering = [xref for xref in snapshot.xrefs if path in xref.source_split_paths]
        return covering[-1] if covering else None

    def get_splits_without_xref(self) -> list[AddFile]:
        """Live splits that no cross-reference covers."""
        snapshot = self.snapshot()
        covered = {path for xref in snapshot.xrefs for path in xref.source_split_paths}
        paths = snapshot.paths.to_pylist()
        return [snapshot.file(i) for i, path in enumerate(paths) if path not in covered]


def _full_path(snapshot: Snapshot, split_path: str) -> str:
    if "/" in split_path or snapshot.index_of(split_path) is not None:
        return split_path
    named = {
        path
        for xref in snapshot.xrefs
        for path in xref.source_split_paths
        if path.rpartition("/")[2] == split_path
    }
    return named.pop() if len(named) == 1 else split_path
