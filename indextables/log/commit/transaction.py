"""A transaction: what was read, and what to do. Pure data, built by callers.

``actions`` is a list, or a function of the newest snapshot that is asked again on every attempt:
an overwrite that must remove whatever is live then passes a function and never conflicts. What a
transaction depends on is its ``ReadSet`` plus the files, cross-references and indexes its own
actions remove. The commit id is fixed here, so that running one transaction object again after a
lost reply or a crash finds its own commit instead of making a second one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from indextables.log.actions import Action, AddFile

if TYPE_CHECKING:
    from indextables.log.read.snapshot import Snapshot

FileTest: TypeAlias = "Callable[[Snapshot, Sequence[AddFile]], Sequence[AddFile]]"
"""Of some files of a table, those that may hold a row that was asked for. The log cannot prune, so
callers that can decide pass this; it may only keep too much."""
ActionSource: TypeAlias = "Sequence[Action] | Callable[[Snapshot], Iterable[Action]]"


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What must still be true at commit time."""

    may_match: FileTest | None = None
    """No file of which this keeps any was added meanwhile."""
    whole_table: bool = False
    """No file at all was added meanwhile."""
    metadata: bool = False
    """Schema, partitioning and configuration are unchanged."""
    files: frozenset[str] = frozenset()
    """These files are still live."""

    @classmethod
    def nothing(cls) -> ReadSet:
        return cls()

    @classmethod
    def table(cls) -> ReadSet:
        return cls(whole_table=True, metadata=True)

    @classmethod
    def matching(cls, may_match: FileTest) -> ReadSet:
        return cls(may_match=may_match)

    @property
    def sees_adds(self) -> bool:
        return self.whole_table or self.may_match is not None


@dataclass(slots=True)
class Transaction:
    """One commit to be made; ``base`` is the snapshot its decisions were taken on."""

    base: Snapshot | None
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    actions: ActionSource = field(default=(), kw_only=True)
    reads: ReadSet = field(default=ReadSet(), kw_only=True)
    metrics: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    commit_id: str = field(default_factory=lambda: uuid.uuid4().hex, kw_only=True)
    first_seen_version: int | None = field(default=None, kw_only=True, repr=False)
    """The newest version when this transaction was first tried; set by the log."""

    def actions_on(self, snapshot: Snapshot) -> list[Action]:
        """The actions to commit on top of ``snapshot``."""
        return list(self.actions(snapshot) if callable(self.actions) else self.actions)


@dataclass(slots=True)
class CommitResult:
    """A commit that landed."""

    version: int
    commit_id: str
    attempts: int
    already_committed: bool = False
    """An earlier run of the same transaction had landed; nothing was written now."""
    failures: dict[str, BaseException] = field(default_factory=dict)
    """What did not succeed after the commit, by step; the commit itself stands."""
    files: tuple[str, ...] = ()
    """Paths of the splits that a write added."""
    load: Callable[[], Snapshot] | None = field(default=None, repr=False)

    @property
    def snapshot(self) -> Snapshot:
        """The table at this version; read when first asked for."""
        if self.load is None:
            raise LookupError("this result does not know its log")
        return self.load()

    @property
    def checkpoint_error(self) -> BaseException | None:
        """Why the checkpoint that was due could not be written."""
        return self.failures.get("checkpoint")
