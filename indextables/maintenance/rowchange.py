"""One change of rows, whatever verb asked for it: rows that go, rows that come, one commit.

Rows that go are taken from their splits by deletion vectors; the splits stay as they are. Above
``deletionVector.maxShare`` of deleted rows a split is written again without them, in the same
commit, since reading around them would cost more than it saves; 0 writes always, for tables that
older programs must read. A split without a row left is removed.

Rows that come are in splits that were written before and that no version names yet. Whatever goes
wrong before the commit leaves the table as it was; files of a commit that lost are deleted.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from indextables.config import Config
from indextables.errors import (
    CommitConflictError,
    CommitFailedError,
    MaintenanceError,
    ProtocolError,
)
from indextables.log.actions import Action, AddFile
from indextables.log.commit.rowlevel import (
    DELETED_TAG,
    Narrowing,
    Taken,
    inline_text,
    update_tags,
)
from indextables.log.commit.transaction import CommitResult, ReadSet, Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.log.retention.rules import discard
from indextables.maintenance.rewrite import RewriteTask, Rewritten, Runner, run_locally
from indextables.storage.deleting import Kind

LOST = (CommitConflictError, CommitFailedError, ProtocolError)


@dataclass
class RowChange:
    """What a verb decided on ``base``; ``commit`` makes it a version."""

    log: TransactionLog
    base: Snapshot
    operation: str
    config: Config
    reads: ReadSet
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    whole: Sequence[AddFile] = ()
    """Splits that go with every row."""
    taken: Sequence[Taken] = ()
    added: Sequence[AddFile] = ()
    """New splits; see ``as_updated`` for those that hold changed rows."""
    heads: Callable[[Snapshot], Iterable[Action]] | None = None
    """Further actions, such as a schema that grew."""
    run: Runner | None = None
    commit_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    rewritten: list[Rewritten] = field(default_factory=list)
    narrowed: int = 0

    def commit(self) -> CommitResult:
        """Commit it; ``CommitConflictError`` when it may not follow what others did."""
        try:
            narrow = self._prepare()
        except BaseException:
            self._discard(None)
            raise
        try:
            return self.log.commit(self._transaction(narrow))
        except LOST:
            self._discard(narrow)
            raise

    def _prepare(self) -> Narrowing:
        """Write again the splits that have too few rows left; the others are narrowed."""
        limit = self.config["deletionVector.maxShare"]
        heavy = [one for one in self.taken if self._share(one) > limit]
        light = [one for one in self.taken if self._share(one) <= limit]
        tasks = [self._task(one) for one in heavy]
        for result in (self.run or run_locally)(tasks) if tasks else ():
            self.rewritten.append(checked(result))
        self.narrowed = len(light)
        most_inline = self.config["deletionVector.maxInlineBytes"]
        return Narrowing(self.log.store, light, most_inline)

    def _share(self, one: Taken) -> float:
        """The share of deleted rows afterwards; 0 for a split that goes whole."""
        gone = one.add.num_deleted + len(one.rows)
        return 0.0 if gone >= one.num_rows else gone / one.num_rows

    def _task(self, one: Taken) -> RewriteTask:
        task = RewriteTask.of(self.log.store, self.config, self.base, [one.add])
        return replace(task, drop_rows={one.add.path: one.rows})

    def _transaction(self, narrow: Narrowing) -> Transaction:
        now = int(time.time() * 1000)
        by_path = {one.add.path: one for one in self.taken}
        fixed: list[Action] = [add.removal(now) for add in self.whole]
        for result in self.rewritten:
            one = by_path[result.task.sources[0].path]
            tags = {DELETED_TAG: inline_text(one.rows), **one.tags}
            fixed.append(one.add.removal(now, tags=tags))
            fixed += [result.add] if result.add is not None else []
        fixed += self.added

        def actions(latest: Snapshot) -> list[Action]:
            heads = list(self.heads(latest)) if self.heads is not None else []
            return [*heads, *narrow.actions(latest), *fixed]

        return Transaction(
            self.base,
            self.operation,
            parameters=self.parameters,
            actions=actions,
            reads=self.reads,
            metrics=self.metrics,
            commit_id=self.commit_id,
        )

    def _discard(self, narrow: Narrowing | None) -> None:
        splits = [add.path for add in self.added]
        splits += [r.add.path for r in self.rewritten if r.add is not None]
        discard(self.log, Kind.SPLIT, splits)
        discard(self.log, Kind.VECTOR, [] if narrow is None else narrow.files)

    @property
    def removes_splits(self) -> bool:
        """Are splits gone from the table? Then cross-references may be stale."""
        emptied = (one.add.num_deleted + len(one.rows) >= one.num_rows for one in self.taken)
        return bool(self.whole or self.rewritten) or any(emptied)

    @property
    def is_empty(self) -> bool:
        return not (self.whole or self.taken or self.added)


def as_updated(adds: Sequence[AddFile], rows: int | None = None) -> list[AddFile]:
    """New splits that hold the new form of rows, marked for the change feed.

    ``rows``: so many of them are, the first ones in the order of the splits; the others are new.
    """
    marked = []
    left = sum(add.num_records or 0 for add in adds) if rows is None else rows
    for add in adds:
        count = add.num_records or 0
        tags = update_tags(min(left, count), count)
        left -= min(left, count)
        marked.append(replace(add, tags={**(add.tags or {}), **tags}) if tags else add)
    return marked


def checked(result: Rewritten) -> Rewritten:
    """The result of a rewrite, or the error that names the split which could not be read."""
    if result.error is not None:
        raise MaintenanceError(
            f"a split could not be read: {result.error}",
            path=result.failed_path,
            hint="Run DOCTOR; nothing was changed",
        )
    return result
