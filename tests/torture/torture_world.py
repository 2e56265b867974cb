"""One tortured table: actors in rounds, and a thorough look after every round.

Between rounds all actors have ended, so time may pass: files age, and a purge with short
retentions may delete whatever no readable version needs (and may itself die on the way). Then a
process that knows nothing opens the table over the healthy store: every version the log can still
build must equal the model, every file it names must exist, and the doctor must find no error.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
import time
from dataclasses import dataclass

import pyarrow as pa
from store_doubles import CrashError
from torture_model import History, Model
from torture_steps import Actor, compare
from torture_turns import ActorStore, Turns, faults, repeatable

from indextables import maintenance
from indextables.config import Config
from indextables.errors import IndexTablesError
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.loader import reachable_versions
from indextables.log.read.snapshot import TABLE_MAPPING
from indextables.log.read.versions import list_log
from indextables.mapping import DocMapping, IndexingOptions
from indextables.splits.lookup.colindex.opening import forget_indexes
from indextables.splits.read.reader import forget_readers
from indextables.storage.base import Store, open_store
from indextables.storage.memory import clear_memory
from indextables.table.table import Table
from indextables.xref.cache import shared_cache

HOUR_MS = 3_600_000
SCHEMA = pa.schema(
    [("id", pa.int64()), ("word", pa.string()), ("x", pa.float64()), ("day", pa.string())]
)


@dataclass(frozen=True)
class Shape:
    """How hard one table is treated."""

    rounds: int = 3
    steps: int = 8
    most_actors: int = 4


def forget_everything() -> None:
    """Empty the caches of this process, so that a run does not depend on the one before."""
    cache.SHARED.invalidate()
    forget_readers()
    forget_indexes()
    shared_cache(1 << 30).clear()


class World:
    """A table, its history, its model, and those who work on it."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.seed = seed
        self.shape = shape
        self.rng = random.Random(seed)
        self.rate = self.rng.choice([0.0, 0.005, 0.02, 0.06])
        self.steps: list[str] = []
        self.next_id = 0
        self.turns: Turns | None = None
        self._folder: str | None = None
        self.path = self._place()
        self.history = History(self._open_store())
        self.model = Model(self.history)
        self.config = self._settings()
        self.mapping = DocMapping.for_schema(SCHEMA, ("day",), IndexingOptions(text=("word",)))
        self.trace: list[str] = []

    def _place(self) -> str:
        if self.rng.random() < 0.25:
            self._folder = tempfile.mkdtemp(prefix="torture-")
            return f"{self._folder}/table"
        return f"memory://torture-{self.seed}"

    def _open_store(self) -> Store:
        return open_store(self.path, {"spark.indextables.storage.fsync": "false"})

    def _settings(self) -> Config:
        choose = self.rng.choice
        return Config(
            {
                "checkpoint.interval": choose([1, 3, 5, 0]),
                "state.format": choose(["avro", "avro", "json"]),
                "state.entriesPerManifest": choose([4, 50]),
                "state.compaction.maxManifests": choose([2, 20]),
                "state.retention.versions": choose([1, 2]),
                "state.retention.hours": choose([0, 168]),
                "state.gc.minManifestAgeHours": 1,
                "checkpointRetention.duration": choose([0, 7_200_000]),
                "checkpoint.actionsPerPart": choose([5, 100_000]),
                "transaction.cache.enabled": choose([True, True, False]),
                "transaction.retry.baseDelayMs": 0,
                "transaction.commit.deadlineSeconds": choose([0.0, 5.0]),
                "state.cache.enabled": False,
                "xref.autoIndex.enabled": False,
                "xref.query.minSplitsForXRef": 1,
                "xref.build.maxSourceSplits": choose([3, 1024]),
                "columnIndex.format": choose(["bbidx1", "bbidx2"]),
                "columnIndex.selectivityThreshold": 1.0,
                "indexWriter.heapSize": 15 << 20,
            }
        )

    def note(self, text: str) -> None:
        self.steps.append(text)

    def new_ids(self, count: int) -> range:
        ids = range(self.next_id, self.next_id + count)
        self.next_id = ids.stop
        return ids

    def store_for(self, name: str, life: int) -> ActorStore:
        return ActorStore(
            self.history, name, life, self.turns, faults(self.rng.getrandbits(32), self.rate)
        )

    # -- the run ----------------------------------------------------------------------------------

    def run(self) -> None:
        forget_everything()
        try:
            with repeatable(random.Random(self.seed + 1)):
                TransactionLog.create(
                    self.path,
                    SCHEMA,
                    partition_columns=["day"],
                    configuration={TABLE_MAPPING: self.mapping.to_json()},
                    config=self.config,
                    store=self.history,
                )
                for number in range(self.shape.rounds):
                    self._round(number)
        finally:
            self._clear()

    def _round(self, number: int) -> None:
        self.turns = Turns(random.Random(self.rng.getrandbits(32)), self.rng.choice([0.1, 0.5]))
        count = self.rng.randint(1, self.shape.most_actors)
        actors = [
            Actor(self, f"r{number}a{i}", random.Random(self.rng.getrandbits(32)))
            for i in range(count)
        ]
        self.turns.play({a.name: lambda a=a: a.run(self.shape.steps) for a in actors})
        self.trace += self.turns.trace
        self.turns = None
        self.inspect()
        self._time_passes()
        self.inspect()

    def _time_passes(self) -> None:
        """Weeks later: the log forgets, a purge deletes, perhaps not to its end."""
        actor = Actor(self, f"t{len(self.steps)}", random.Random(self.rng.getrandbits(32)))
        hours = self.rng.choice([24, 100])
        later = int(time.time() * 1000) + self.rng.choice([1, 2000]) * HOUR_MS
        self.note(f"purge of {hours} hours")
        if self.rng.random() < 0.5:
            actor.step("truncate")
        with contextlib.suppress(CrashError, IndexTablesError):
            maintenance.purge(
                actor.log,
                older_than_hours=hours,
                log_retention_hours=self.rng.choice([0, 720]),
                now_ms=later,
            )

    # -- what must hold ---------------------------------------------------------------------------

    def inspect(self) -> None:
        """Everything that can be read reads right, over the healthy store, knowing nothing."""
        log = TransactionLog(self.path, self.history, self.config)
        log.invalidate_cache()
        newest = log.snapshot()
        assert newest.version == self.history.newest
        there = {info.path for info in self.history.list("", recursive=True)}
        readable = reachable_versions(list_log(self.history))
        assert newest.version in readable
        for version in readable:
            self._inspect_version(log, version, there)
        errors = [f for f in maintenance.doctor(log) if f.severity == "error"]
        assert not errors, errors

    def _inspect_version(self, log: TransactionLog, version: int, there: set[str]) -> None:
        snapshot = log.snapshot(version=version)
        missing = set(snapshot.paths.to_pylist()) - there
        assert not missing, f"version {version} lost {missing}; {self.steps[-12:]}"
        table = Table(log, snapshot)
        want = self.model.at(version)
        assert snapshot.num_rows == len(want), f"version {version}: {self.steps[-12:]}"
        compare(table, None, want, self.steps)
        for i in self.rng.sample(sorted(want), min(2, len(want))):
            compare(table, f"id = {i}", {i: want[i]}, self.steps)
            compare(table, f"word TEXTSEARCH 'w{i}'", {i: want[i]}, self.steps)

    def _clear(self) -> None:
        forget_everything()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            clear_memory(self.path.removeprefix("memory://"))
