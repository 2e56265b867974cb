"""DROP PARTITIONS: take the splits of the named partitions out of the table.

The files stay until PURGE; older versions still read them.
"""

from __future__ import annotations

import time
from typing import Any

from indextables.log.actions import Action
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import ReadSet, Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.maintenance.rows import DropResult
from indextables.maintenance.scope import matching_files, partition_predicate


@mutates("DROP PARTITIONS")
def drop_partitions(log: TransactionLog, where: Any) -> DropResult:
    """Remove every split whose partition satisfies ``where``; files added meanwhile too."""
    base = log.snapshot()
    predicate = partition_predicate(where, base)
    if not matching_files(base, predicate):
        return DropResult(log.path, "no_action", 0, 0, 0, "No partition matches")
    removed: list[Any] = []

    def actions(snapshot: Snapshot) -> list[Action]:
        removed[:] = matching_files(snapshot, predicate)
        now = int(time.time() * 1000)
        return [add.removal(now) for add in removed]

    result = log.commit(
        Transaction(
            base,
            "DROP PARTITIONS",
            parameters={"where": str(where)},
            actions=actions,
            reads=ReadSet(metadata=True),
        )
    )
    values = {tuple(sorted(f.partition_values.items(), key=str)) for f in removed}
    size = sum(f.size for f in removed)
    text = f"Dropped {len(values)} partitions ({len(removed)} splits) in version {result.version}"
    return DropResult(log.path, "success", len(values), len(removed), size, text)
