"""Building key maps after commits: a map for the new splits, then joins as the levels fill.

A map of new splits is made of the keys each split keeps (``keys.bin``): a footer and one member of
each new split are read, nothing of the others. Joins read maps only. Each map is written and
committed by itself; if another writer retired one of its sources meanwhile, ours is discarded and
the next build looks again. Splits without keys (older ones, those of other programs) are covered
by no map; this process remembers them so as not to open them again at every commit.
"""

from __future__ import annotations

import logging
import os
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import zstandard
from numpy.typing import NDArray

from indextables.config import Config
from indextables.errors import (
    CommitConflictError,
    CommitFailedError,
    CorruptFileError,
    ObjectNotFoundError,
)
from indextables.log.actions import Action, AddFile, AddKeyMap, RemoveKeyMap
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.log.retention.rules import discard
from indextables.lru import LRU
from indextables.splits.format import members
from indextables.splits.format.keymap import (
    TAIL_BYTES,
    KeyMap,
    ReadRange,
    Shard,
    digest_of,
    open_keymap,
)
from indextables.splits.read.reader import SplitReader
from indextables.splits.write.keeping import is_automatic, keeps_keys
from indextables.storage import pool, workfolders
from indextables.storage.deleting import Kind
from indextables.storage.machine import refuse_to_judge
from indextables.storage.scratch import in_scratch, scratch_folder
from indextables.xref.builder import WORK_FOLDER
from indextables.xref.keymaps.catalog import Catalog, Files, grouped, places_of
from indextables.xref.keymaps.layout import new_keymap_path
from indextables.xref.keymaps.levels import Run, Step, next_step
from indextables.xref.keymaps.merging import Source, Written, join, shards_for

LOG = logging.getLogger("indextables.xref")
MOST_NEW = 1024
MOST_STEPS = 16
OPENING_BYTES = 48 << 10
"""A map whose end is no longer than this is opened by the log."""

_keyless: LRU[str, set[str]] = LRU(64)
"""Splits without keys that can be read, by the id of their table."""


@dataclass(frozen=True, slots=True)
class KeyMapBuilt:
    """One map that a build made or retired."""

    path: str
    action: str
    splits: int
    size: int


@dataclass(frozen=True, slots=True)
class _State:
    """The usable maps of a snapshot, and the actions of those that are not."""

    snapshot: Snapshot
    maps: dict[str, KeyMap]
    files: dict[str, Files]
    broken: tuple[AddKeyMap, ...]

    def run(self, path: str) -> Run:
        found = self.maps[path]
        live = int((places_of(self.snapshot, found) >= 0).sum())
        return Run(path, self.files[path].size, found.splits, live)


class KeyMapBuilder:
    """Builds the key maps of one table."""

    def __init__(self, log: TransactionLog, config: Config | None = None) -> None:
        self.log = log
        self.config = config or log.config
        self._catalog = Catalog(log.store, self.config["xref.cache.maxSize"])

    @mutates("INDEX CROSSREFERENCES")
    def update(self) -> list[KeyMapBuilt]:
        """Cover what is new, join what is due; what was done."""
        done: list[KeyMapBuilt] = []
        try:
            done += self._retire()
            done += self._cover()
            for _ in range(MOST_STEPS):
                state = self._state()
                step = self._due(state)
                if step is None:
                    break
                done.append(self._join(state, step))
        except CommitConflictError as error:
            LOG.info("another builder was faster, the next commit looks again: %s", error)
        return done

    @property
    def is_due(self) -> bool:
        """Automatic maps wait until there is enough to cover, as cross-references do."""
        if not is_automatic(self.config):
            return True
        least = self.config["xref.autoIndex.minUncoveredSplitsToTrigger"]
        few = self.log.snapshot().num_files < self.config["xref.autoIndex.minSplitsToTrigger"]
        return not few and len(self._uncovered(self._state())) >= least

    @property
    def uncovered(self) -> int:
        """How many live splits no map covers."""
        return int(self._free(self._state()).sum())

    # -- what there is ----------------------------------------------------------------------------

    def _state(self) -> _State:
        snapshot = self.log.snapshot()
        groups, stray = grouped(snapshot.keymaps)
        maps: dict[str, KeyMap] = {}
        files: dict[str, Files] = {}
        opened = self._catalog.open_all([group.first for group in groups])
        for group, found in zip(groups, opened, strict=True):
            if isinstance(found, KeyMap):
                maps[group.first.path], files[group.first.path] = found, group
            else:
                if not isinstance(found, CorruptFileError | ObjectNotFoundError):
                    raise found
                LOG.warning("a key map cannot be used and is rebuilt: %s", found)
                stray += group.actions
        return _State(snapshot, maps, files, tuple(stray))

    def _due(self, state: _State) -> Step | None:
        runs = [run for path in state.maps if (run := state.run(path)).live]
        return next_step(
            runs, self.config["xref.keymap.fanOut"], self.config["xref.keymap.maxMaps"]
        )

    def _retire(self) -> list[KeyMapBuilt]:
        """Maps that cannot be read or cover nothing that lives."""
        state = self._state()
        dead = [run for path in state.maps if not (run := state.run(path)).live]
        gone = [a.path for a in state.broken]
        gone += [path for run in dead for path in state.files[run.path].paths]
        if gone:
            self._commit((), gone)
        return [KeyMapBuilt(path, "retired", 0, 0) for path in gone]

    # -- new splits -------------------------------------------------------------------------------

    def _cover(self) -> list[KeyMapBuilt]:
        state = self._state()
        fresh = self._uncovered(state)
        sources = [source for source in self._gathered(fresh) if source is not None]
        return [self._write(sources, (), "created")] if sources else []

    def _free(self, state: _State) -> NDArray[np.bool_]:
        """The live splits that no map covers."""
        free = np.ones(state.snapshot.num_files, np.bool_)
        for found in state.maps.values():
            places = places_of(state.snapshot, found)
            free[places[places >= 0]] = False
        return free

    def _uncovered(self, state: _State) -> list[AddFile]:
        """The newest live splits that no map covers and that may have keys."""
        snapshot, free = state.snapshot, self._free(state)
        known = list(_keyless.get(self.log.table_id) or ())
        places = snapshot.indices_of(known)
        free[places[places >= 0]] = False
        return [snapshot.file(int(i)) for i in np.flatnonzero(free)[-MOST_NEW:]]

    def _gathered(self, adds: Sequence[AddFile]) -> Iterator[Source | None]:
        workers = pool.workers(self.log.store, self.config["read.remoteParallelism"])
        for add, found in zip(adds, pool.in_order(self._keys_of, adds, workers), strict=True):
            if found is None:
                _keyless.load(self.log.table_id, set).add(add.path)
            yield found

    def _keys_of(self, add: AddFile) -> Source | None:
        """The keys of one split, ``None`` where it keeps none that can be read."""
        try:
            source = SplitReader.open(self.log.store, add, config=self.config).source
            if source.is_foreign or not source.has(members.KEYS):
                return None
            raw = memoryview(source.fetch(members.KEYS))
            found = open_keymap(lambda a, b: raw[a:b], len(raw), add.path)
        except (CorruptFileError, ObjectNotFoundError) as error:
            refuse_to_judge(error, path=add.path)
            LOG.warning("not covered by a key map: %s", error)
            return None
        return Source(found, lambda a, b: raw[a:b], (add.path,))

    # -- joining ----------------------------------------------------------------------------------

    def _join(self, state: _State, step: Step) -> KeyMapBuilt:
        sources = [self._source(state, run.path) for run in step.sources]
        replaced = [path for run in step.sources for path in state.files[run.path].paths]
        return self._write(sources, replaced, "joined")

    def _source(self, state: _State, path: str) -> Source:
        found = state.maps[path]
        live = places_of(state.snapshot, found) >= 0
        others = []
        for action in state.files[path].actions[1:]:
            others.append((self._catalog.open(action), self._reading(action.path)))
        keep = None if live.all() else live
        return Source(found, self._reading(path), found.paths, keep, tuple(others))

    def _reading(self, path: str) -> ReadRange:
        return lambda start, end: self.log.store.read_range(path, start, end)

    def _write(self, sources: Sequence[Source], replaced: Sequence[str], verb: str) -> KeyMapBuilt:
        paths = [p for source in sources for p in source.kept]
        digest, made = digest_of(paths), []
        try:
            for shard in shards_for(sources, self.config["xref.keymap.maxSize"]):
                made.append(self._write_shard(sources, shard, len(paths), digest))
            self._commit(made, replaced)
        except (CommitConflictError, CommitFailedError):
            discard(self.log, Kind.KEYMAP, [action.path for action in made])
            raise
        return KeyMapBuilt(made[0].path, verb, len(paths), sum(a.size for a in made))

    def _write_shard(
        self, sources: Sequence[Source], shard: Shard, splits: int, digest: str
    ) -> AddKeyMap:
        start = time.monotonic()
        parent = self.config["xref.build.tempDirectoryPath"]
        folder = scratch_folder("keymap", parent, WORK_FOLDER)
        path = new_keymap_path()
        local = os.path.join(folder, "map")
        try:
            with in_scratch(os.path.dirname(folder), WORK_FOLDER), open(local, "xb") as file:
                written = join(sources, file.write, shard)
            self.log.store.put_file(path, local)
        finally:
            workfolders.release(folder)
        return AddKeyMap(
            path=path,
            size=written.size,
            splits=splits,
            digest=digest,
            created_time=int(time.time() * 1000),
            build_duration_ms=int((time.monotonic() - start) * 1000),
            tail=len(written.tail),
            opening=_opening(written),
            shard=shard.number,
            shard_bits=shard.bits,
        )

    def _commit(self, made: Sequence[AddKeyMap], gone: Sequence[str]) -> None:
        def actions(snapshot: Snapshot) -> list[Action]:
            missing = [path for path in gone if path not in snapshot.ledger.keymaps]
            if missing:
                raise CommitConflictError("a key map was replaced", path=missing[0])
            now = int(time.time() * 1000)
            found: list[Action] = [RemoveKeyMap(path, now) for path in gone]
            return [*found, *made]

        self.log.commit(
            Transaction(
                self.log.snapshot(),
                "INDEX CROSSREFERENCES",
                parameters={"keyMaps": len(made), "replaced": len(gone)},
                actions=actions,
            )
        )


def _opening(written: Written) -> str:
    """The end of a map for the log; a map that one read brings whole has no use for it."""
    if written.size <= TAIL_BYTES or len(written.tail) > OPENING_BYTES:
        return ""
    return b64encode(zstandard.ZstdCompressor(level=9).compress(written.tail)).decode()


def update_keymaps(
    log: TransactionLog, config: Config, *, eager: bool = False
) -> list[KeyMapBuilt]:
    """Build what is due, if the table's settings want key maps; ``eager``: however little it is."""
    if not keeps_keys(config, log.store):
        return []
    builder = KeyMapBuilder(log, config)
    return builder.update() if eager or builder.is_due else []


def leaves_uncovered(log: TransactionLog, config: Config) -> int:
    """How many live splits no key map covers."""
    return KeyMapBuilder(log, config).uncovered
