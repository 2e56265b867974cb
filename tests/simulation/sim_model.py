"""What a table should hold: the rows of every version, folded from what writers meant.

A writer says what its commit means as a function from the rows before to the rows after. The order
of the commits is the order in which their version files were created, which the world saw. So the
rows of a version are those of the version before, changed as its commit meant. A table that equals
this for every version is serialisable, whatever the writers did to one another: no update is lost,
no deleted row comes back, nothing is there twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sim_store import BrokenPromiseError, WorldStore

from indextables.log.actions import AddFile, CommitInfo, RemoveFile, Txn

Row = tuple[str, str, float | None]
Rows = dict[int, Row]
Effect = Callable[[Rows], Rows]
Test = Callable[[int, Row], bool]


@dataclass
class Meaning:
    """What one step of one writer means to do; it may try several times, and must land once."""

    operation: str
    effect: Effect
    label: str
    landed: list[int] = field(default_factory=list)


def keeps(rows: Rows) -> Rows:
    return rows


@dataclass
class Model:
    """Rows, files and commits of every version, computed when asked."""

    world: WorldStore
    meant: dict[str, Meaning] = field(default_factory=dict)
    infos: dict[int, CommitInfo] = field(default_factory=dict)
    _rows: list[Rows] = field(default_factory=lambda: [{}])
    _files: list[dict[str, str | None]] = field(default_factory=lambda: [{}])
    _forks: dict[int, tuple[Rows, tuple[str, ...]]] = field(default_factory=dict)
    _steps: dict[tuple[str, int], int] = field(default_factory=dict)

    def at(self, version: int) -> Rows:
        """The rows of a version."""
        while len(self._rows) <= version:
            self._follow(len(self._rows))
        return self._rows[version]

    def files(self, version: int) -> dict[str, str | None]:
        """Splits of a version and the files of their deletion vectors."""
        self.at(version)
        return self._files[version]

    def newest(self) -> Rows:
        return self.at(self.world.newest)

    def _follow(self, version: int) -> None:
        actions = self.world.actions(version)
        info = next(a for a in actions if isinstance(a, CommitInfo))
        self.infos[version] = info
        meaning = self.meant.get(info.commit_id or "")
        effect = keeps
        if meaning is not None:
            effect = meaning.effect
            meaning.landed.append(version)
            if len(meaning.landed) > 1:
                raise BrokenPromiseError(
                    "commits land once", f"{meaning.label} landed as {meaning.landed}"
                )
        elif info.operation in ("append", "overwrite", "DELETE", "UPDATE", "UPSERT", "RESTORE"):
            raise BrokenPromiseError("commits land once", f"nobody meant version {version}")
        rows, also = self._forks.get(version, ({}, ()))
        self._rows.append({**effect(self._rows[version - 1]), **rows})
        files = dict(self._files[version - 1]) | dict.fromkeys(also)
        for action in actions:
            if isinstance(action, RemoveFile):
                files.pop(action.path, None)
        for action in actions:
            if isinstance(action, AddFile):
                vector = action.deletion_vector
                files[action.path] = None if vector is None else vector.path
            elif isinstance(action, Txn):
                self._step(action, version)
        self._files.append(files)

    def forked(self, version: int, rows: Rows, files: Sequence[str]) -> None:
        """Another program made this version too; both belong to the table."""
        self._forks[version] = rows, tuple(files)
        self._rows, self._files, self._steps = [{}], [{}], {}
        for meaning in self.meant.values():
            meaning.landed.clear()

    def _step(self, step: Txn, version: int) -> None:
        key = step.app_id, step.version
        if key in self._steps and not step.app_id.startswith("indextables."):
            text = f"batch {key} is in version {self._steps[key]} and in {version}"
            raise BrokenPromiseError("the sink writes once", text)
        self._steps[key] = version

    def superseded_at(self, version: int) -> int | None:
        """When a version stopped being the newest."""
        return self.world.made_at.get(version + 1)


# -- meanings --------------------------------------------------------------------------------------


def adds(rows: Rows) -> Effect:
    return lambda before: {**before, **rows}


def replaces(rows: Rows, test: Test | None) -> Effect:
    def effect(before: Rows) -> Rows:
        kept = {} if test is None else {i: r for i, r in before.items() if not test(i, r)}
        return {**kept, **rows}

    return effect


def takes(test: Test) -> Effect:
    return lambda before: {i: r for i, r in before.items() if not test(i, r)}


def raises(test: Test, by: float) -> Effect:
    """``x = x + by`` where a test holds."""

    def changed(i: int, row: Row) -> Row:
        if not test(i, row) or row[2] is None:
            return row
        return row[0], row[1], row[2] + by

    return lambda before: {i: changed(i, row) for i, row in before.items()}
