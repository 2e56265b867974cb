"""Which of the files that others added meanwhile concern a transaction: those it may match.

The verdict is the planner's own, on partition values and statistics, as for any query: a file that
a query would not open because no row of it can match is no conflict, and everything else is one.
Text searches and whatever statistics cannot decide keep the file, so they conflict.
"""

from __future__ import annotations

from collections.abc import Sequence

from indextables.expr.predicate import Predicate
from indextables.log.actions import AddFile
from indextables.log.commit.transaction import FileTest
from indextables.log.read.snapshot import Snapshot
from indextables.planner.plan import Planner


def file_test(predicate: Predicate) -> FileTest:
    """A test for ``ReadSet.matching``: of some files, those that may hold a matching row."""

    def may_match(table: Snapshot, files: Sequence[AddFile]) -> list[AddFile]:
        return list(Planner(table.with_only(files)).plan(predicate).splits)

    return may_match
