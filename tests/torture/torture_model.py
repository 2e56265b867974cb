"""What a table should hold: a dictionary of rows for every version, folded from the log itself.

``History`` stands next to the store and keeps every version file the moment it is created, which
is the order all writers agree on; nothing deletes it there, and a slot that is emptied and taken
again keeps its first content, as it does for readers. The rows of a version are those of the
version before, changed as its operation says: an append adds the rows its writer meant, a delete
takes away what its predicate names *at that point*. A table that equals this for every version is
serialisable, whatever the writers did to one another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from indextables.log.actions import CommitInfo
from indextables.log.actions.codec import decode_actions
from indextables.log.read.versions import LOG_DIR
from indextables.storage.base import Store
from indextables.storage.wrapped import WrappedStore

Row = tuple[str, str, float | None]
Rows = dict[int, Row]
Test = Callable[[int, Row], bool]


class History(WrappedStore):
    """The store all actors share, and every version that was ever created in it."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.versions: dict[int, bytes] = {}
        self._lock = threading.Lock()

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.inner.put_if_absent(path, data)
        folder, _, name = path.rpartition("/")
        if folder == LOG_DIR and name.endswith(".json") and name[:20].isdigit():
            with self._lock:
                self.versions.setdefault(int(name[:20]), data)

    @property
    def newest(self) -> int:
        return max(self.versions, default=-1)


@dataclass
class Intent:
    """What a writer meant to write; ``replaces`` says which rows go."""

    rows: Rows
    replaces: Test | None = None


@dataclass
class Model:
    """Rows of every version, computed when asked."""

    history: History
    intents: dict[str, Intent] = field(default_factory=dict)
    predicates: dict[str, Test] = field(default_factory=dict)
    infos: dict[int, CommitInfo] = field(default_factory=dict)
    _rows: list[Rows] = field(default_factory=lambda: [{}])

    def at(self, version: int) -> Rows:
        """The rows of a version."""
        while len(self._rows) <= version:
            self._rows.append(self._after(len(self._rows)))
        return self._rows[version]

    def _after(self, version: int) -> Rows:
        before = self._rows[version - 1]
        info = self._info(version)
        self.infos[version] = info
        parameters: Any = info.operation_parameters or {}
        if info.commit_id in self.intents:
            intent = self.intents[info.commit_id]
            kept = before
            if intent.replaces is not None:
                kept = {i: r for i, r in before.items() if not intent.replaces(i, r)}
            return {**kept, **intent.rows}
        if info.operation in ("DELETE", "DROP PARTITIONS"):
            gone = self.predicates[parameters["where"]]
            return {i: r for i, r in before.items() if not gone(i, r)}
        if info.operation == "RESTORE":
            return self._rows[parameters["version"]]
        assert info.operation not in ("append", "overwrite"), f"nobody meant version {version}"
        return before

    def _info(self, version: int) -> CommitInfo:
        data = self.history.versions[version]
        actions = decode_actions(data, root=self.history.uri, path="", version=version)
        return next(a for a in actions if isinstance(a, CommitInfo))

    def versions_of(self, commit_id: str) -> list[int]:
        """The versions this commit landed in; more than one is a commit done twice."""
        self.at(self.history.newest)
        return [v for v, info in self.infos.items() if info.commit_id == commit_id]
