"""What a run of actions means: the latest action per path wins, in log order.

A ``ReplayState`` is a delta. Alone it is the whole table (replayed from version 0 or from a JSON
checkpoint); over a base it says what the versions after that base changed:

* ``files``            splits added and still there; they replace a base entry of the same path,
* ``removed``          splits removed and not added again; they mask base entries,
* ``skips``            latest skip of a path; an add or a remove of the path clears older skips,
* ``xrefs`` and ``removed_xrefs``, ``indexes`` and ``dropped_indexes``, ``index_files``, ``txns``
  follow the same rule under their own keys,
* ``protocol`` and ``metadata`` are the newest ones seen, ``None`` when the base's still hold.

So ``live = (base - removed - files) + files``, and a path that was removed and added again is
live, whatever the order of kinds inside one version. Applying a delta to a delta is
``extend``. An index file counts only under a definition of the same index id, so files of a
dropped and redefined index stay without effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from indextables.log.actions import (
    Action,
    AddFile,
    AddXRef,
    CommitInfo,
    DefineIndex,
    DropIndex,
    IndexBlocks,
    IndexFile,
    Metadata,
    Protocol,
    RemoveFile,
    RemoveXRef,
    SkipFile,
    Txn,
)


@dataclass(frozen=True, slots=True)
class IndexedSplit:
    """One index file with what its ``indexBlocks`` action said about all of them."""

    index_id: str
    column: str
    format: str
    file: IndexFile


@dataclass(slots=True)
class ReplayState:
    """The outcome of applying actions in order; see the module's docstring."""

    version: int = -1
    timestamp_ms: int = 0
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[str, AddFile] = field(default_factory=dict)
    removed: dict[str, RemoveFile] = field(default_factory=dict)
    skips: dict[str, SkipFile] = field(default_factory=dict)
    xrefs: dict[str, AddXRef] = field(default_factory=dict)
    removed_xrefs: dict[str, RemoveXRef] = field(default_factory=dict)
    indexes: dict[str, DefineIndex] = field(default_factory=dict)
    dropped_indexes: dict[str, DropIndex] = field(default_factory=dict)
    index_files: dict[tuple[str, str], IndexedSplit] = field(default_factory=dict)
    txns: dict[str, Txn] = field(default_factory=dict)

    def apply(self, version: int, timestamp_ms: int, actions: Iterable[Action]) -> None:
        """Apply one version; its adds learn which version and time brought them."""
        for action in actions:
            if isinstance(action, AddFile) and action.added_at_version is None:
                self.apply_action(action.stamped(version, timestamp_ms))
            else:
                self.apply_action(action)
        self.version = version
        self.timestamp_ms = timestamp_ms

    def apply_action(self, action: Action) -> None:
        if isinstance(action, AddFile):
            self._add(action)
        elif isinstance(action, RemoveFile):
            self._remove(action)
        elif isinstance(action, Metadata):
            self.metadata = action
        elif isinstance(action, Protocol):
            self.protocol = action
        else:
            self._apply_side(action)

    def _add(self, action: AddFile) -> None:
        self.files.pop(action.path, None)
        self.files[action.path] = action
        self.removed.pop(action.path, None)
        self.skips.pop(action.path, None)

    def _remove(self, action: RemoveFile) -> None:
        self.files.pop(action.path, None)
        self.removed[action.path] = action
        self.skips.pop(action.path, None)

    def _apply_side(self, action: Action) -> None:
        if isinstance(action, SkipFile):
            self.skips[action.path] = action
        elif isinstance(action, AddXRef):
            self.xrefs[action.path] = action
            self.removed_xrefs.pop(action.path, None)
        elif isinstance(action, RemoveXRef):
            self.xrefs.pop(action.path, None)
            self.removed_xrefs[action.path] = action
        elif isinstance(action, Txn):
            self.txns[action.app_id] = action
        else:
            self._apply_index(action)

    def _apply_index(self, action: Action) -> None:
        if isinstance(action, DefineIndex):
            self.indexes[action.column] = action
            self.dropped_indexes.pop(action.column, None)
        elif isinstance(action, DropIndex):
            self.indexes.pop(action.column, None)
            self.dropped_indexes[action.column] = action
            stale = [key for key in self.index_files if key[0] == action.column]
            for key in stale:
                del self.index_files[key]
        elif isinstance(action, IndexBlocks):
            for file in action.files:
                entry = IndexedSplit(action.index_id, action.column, action.format, file)
                self.index_files[action.column, file.split] = entry

    def extend(self, later: ReplayState) -> None:
        """Apply a delta that came after this one."""
        for path in (*later.removed, *later.files):
            self.skips.pop(path, None)
        for action in later.actions():
            self.apply_action(action)
        self.version = later.version
        self.timestamp_ms = later.timestamp_ms

    def actions(self) -> Iterator[Action]:
        """Actions that rebuild this state when applied in this order."""
        if self.protocol is not None:
            yield self.protocol
        if self.metadata is not None:
            yield self.metadata
        yield from self.removed.values()
        yield from self.files.values()
        yield from self.side_actions()

    def side_actions(self) -> Iterator[Action]:
        """Everything but protocol, metadata and splits."""
        yield from self.skips.values()
        yield from self.removed_xrefs.values()
        yield from self.xrefs.values()
        yield from self.dropped_indexes.values()
        yield from self.indexes.values()
        for entry in self.index_files.values():
            yield IndexBlocks(entry.index_id, entry.column, entry.format, (entry.file,))
        yield from self.txns.values()


def commit_info(actions: Iterable[Action]) -> CommitInfo | None:
    """The commit information of one version, when its writer left any."""
    return next((action for action in actions if isinstance(action, CommitInfo)), None)
