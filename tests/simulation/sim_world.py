"""One table and all that happens to it in one seed: the story, the model, and the last look.

After a story all actors have ended, and a process that knows nothing opens the table over the
healthy store. Every version that the log can still build must equal the model, every file it names
must exist, times must not run backwards, and the doctor must find no error. Then time passes and
everything is purged that may be: what is left on the store must be exactly what the versions that
can still be read list.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from sim_coverage import counting
from sim_faults import FaultPlan
from sim_machine import machine, work_folder
from sim_model import Meaning, Model, Rows
from sim_process import COLUMNS, Process
from sim_scheduler import Scheduler
from sim_store import BrokenPromiseError, SimStore, WorldStore, is_data
from store_doubles import CrashError

from indextables import maintenance
from indextables.config import Config
from indextables.errors import CommitConflictError, IndexTablesError
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.loader import reachable_versions
from indextables.log.read.snapshot import TABLE_MAPPING
from indextables.log.read.versions import list_log
from indextables.mapping import DocMapping, IndexingOptions
from indextables.splits.lookup.colindex.opening import forget_indexes
from indextables.splits.read.reader import forget_readers
from indextables.storage.base import Store, open_store
from indextables.storage.deleting import Kind
from indextables.storage.memory import clear_memory
from indextables.storage.paths import is_temporary
from indextables.table.table import Table
from indextables.xref.cache import shared_cache

HOUR_MS = 3_600_000
SCHEMA = pa.schema(
    [("id", pa.int64()), ("word", pa.string()), ("day", pa.string()), ("x", pa.float64())]
)
MAPPING = DocMapping.for_schema(SCHEMA, ("day",), IndexingOptions(text=("word",)))


def forget_everything() -> None:
    """Empty the caches of this process, so that a run does not depend on the one before."""
    cache.SHARED.invalidate()
    forget_readers()
    forget_indexes()
    shared_cache(1 << 30).clear()


@dataclass(frozen=True)
class Place:
    """Where tables live: in memory, on disk, or on a server (a uri and options)."""

    kind: str = "memory"
    uri: str = ""
    options: Mapping[str, Any] | None = None


class World:
    """A table, its truth, its model, and those who work on it."""

    def __init__(self, seed: int, place: Place) -> None:
        self.seed = seed
        self.rng = random.Random(f"world {seed}")
        self.scheduler = Scheduler(
            random.Random(f"turns {seed}"), self.rng.choice([0.05, 0.2, 0.5])
        )
        self.plan = FaultPlan.drawn(random.Random(f"faults {seed}"))
        self.did: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.next_id = self.columns = 0
        self._folder: str | None = None
        self.path = self._place(place)
        self.store = WorldStore(self._open(place), self.scheduler)
        self.model = Model(self.store)
        self.config = self._settings()
        self.busy: set[str] = set()
        """Who is in the middle of a step."""
        self.forgiven: set[str] = set()
        """Files without a date, which no purge may touch."""
        self.processes: dict[str, Process] = {}

    def _place(self, place: Place) -> str:
        if place.kind == "memory":
            return f"memory://simulation-{self.seed}"
        if place.kind == "disk":
            self._folder = tempfile.mkdtemp(prefix="simulation-", dir=work_folder())
            return f"{self._folder}/table"
        return f"{place.uri}/simulation-{self.seed}"

    def _open(self, place: Place) -> Store:
        return open_store(
            self.path, {"spark.indextables.storage.fsync": "false", **(place.options or {})}
        )

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
                "transaction.retry.baseDelayMs": 10,
                "transaction.commit.deadlineSeconds": choose([1.0, 60.0]),
                "deletionVector.maxShare": choose([0.3, 0.9]),
                "deletionVector.maxInlineBytes": choose([0, 4096]),
                "state.cache.enabled": False,
                "storage.probe": False,
                "cache.disk.enabled": False,
                "xref.autoIndex.enabled": False,
                "xref.query.minSplitsForXRef": 1,
                "xref.build.maxSourceSplits": choose([3, 1024]),
                "columnIndex.format": "bbidx2",
                "columnIndex.selectivityThreshold": 1.0,
                "indexWriter.heapSize": 15 << 20,
                "indexWriter.tempDirectoryPath": work_folder(),
                "merge.tempDirectoryPath": work_folder(),
            }
        )

    def new_ids(self, count: int) -> range:
        ids = range(self.next_id, self.next_id + count)
        self.next_id = ids.stop
        return ids

    # -- the run ----------------------------------------------------------------------------------

    def run(self, story: Any) -> None:
        """The whole life of the table: begin, story, last look."""
        forget_everything()
        with ExitStack() as stack:
            stack.callback(self._clear)
            stack.enter_context(machine(self.scheduler, self.seed))
            stack.enter_context(counting(self.rules))
            self.alone("begin", self._begin)
            story(self)
            self.alone("last look", self.inspect)

    def _begin(self) -> None:
        self.plan.is_quiet = True
        TransactionLog.create(
            self.path,
            SCHEMA,
            partition_columns=["day"],
            configuration={TABLE_MAPPING: MAPPING.to_json()},
            config=self.config,
            store=self.store,
        )
        self.plan.is_quiet = False

    def new_column(self) -> int:
        self.columns += 1
        return self.columns

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Settings of a story, for processes that start from now on."""
        self.config = self.config.updated(dict(settings))

    def actor(self, name: str, *steps: str) -> Process:
        """A process that goes through some steps."""
        process = self.process(name)
        self.scheduler.add(name, lambda: process.play(list(steps)))
        return process

    def process(self, name: str) -> Process:
        if name not in self.processes:
            self.processes[name] = Process(self, name)
        return self.processes[name]

    def play(self) -> None:
        self.scheduler.play()

    def alone(self, name: str, work: Any) -> None:
        """Do something while nobody else does."""
        self.scheduler.add(name, work)
        self.scheduler.play()

    # -- what must hold ---------------------------------------------------------------------------

    def conflict(self, error: CommitConflictError) -> None:
        self.rules[f"conflict: {error.message.partition(':')[0]}"] += 1

    def landed(self, meaning: Meaning) -> list[int]:
        self.model.newest()
        return meaning.landed

    def check_landed(self, meaning: Meaning, version: int) -> None:
        if self.landed(meaning) != [version]:
            text = f"{meaning.label} was said to be version {version}, it is {meaning.landed}"
            raise BrokenPromiseError("a commit that is reported is there", text)

    def check_failures(self, failures: Mapping[str, BaseException], store: SimStore) -> None:
        for step, error in failures.items():
            if isinstance(error, CrashError | BrokenPromiseError):
                raise error
            if not isinstance(error, IndexTablesError):
                raise BrokenPromiseError("what follows a commit", f"{step}: {error!r}") from error

    def check_may_be_gone(self, version: int, error: Exception) -> None:
        """A file of a version may be missing once the version was replaced for long enough."""
        since = self.model.superseded_at(version)
        if since is None or self.scheduler.now_ms - since <= 24 * HOUR_MS:
            text = f"a file of version {version} is gone: {error}"
            raise BrokenPromiseError("readers within the retention", text) from error

    def compare(self, table: Table, where: Any, want: Rows) -> None:
        """The rows of the table are these, each once."""
        found = table.to_arrow(where, columns=COLUMNS).to_pylist()
        got = {r["id"]: (r["word"], r["day"], r["x"]) for r in found}
        if got != want or len(found) != len(got):
            lost = sorted(set(want) - set(got))
            extra = sorted(set(got) - set(want))
            other = sorted(i for i in set(got) & set(want) if got[i] != want[i])
            text = (
                f"version {table.version} where {where}: lost {lost}, too many {extra}, other "
                f"values {other}, {len(found)} rows for {len(got)} ids"
            )
            raise BrokenPromiseError("rows equal the model", text)

    # -- the last look ----------------------------------------------------------------------------

    def inspect(self) -> None:
        """Everything that can be read reads right, over the healthy store, knowing nothing."""
        self.plan.is_quiet = True
        process = self.process("judge")
        self._inspect_versions(process)
        errors = [f for f in maintenance.doctor(process.log) if f.severity == "error"]
        if errors:
            raise BrokenPromiseError("the doctor is right", f"{errors[0].path}: {errors[0].detail}")
        self._inspect_times()
        if not self.store.is_closed_to_us:
            self._purge_everything(process)

    def _inspect_versions(self, process: Process) -> None:
        newest = process.log.snapshot()
        if newest.version != self.store.newest:
            text = f"the newest version is {self.store.newest}, read is {newest.version}"
            raise BrokenPromiseError("a fresh read is fresh", text)
        there = {info.path for info in self.store.list("", recursive=True)}
        readable = reachable_versions(list_log(self.store))
        chosen = {newest.version, *self.rng.sample(readable, min(2, len(readable)))}
        for version in sorted(chosen):
            snapshot = process.log.snapshot(version=version)
            named = {*snapshot.paths.to_pylist(), *snapshot.vector_files}
            named |= {x.path for x in snapshot.xrefs} | {k.path for k in snapshot.keymaps}
            missing = sorted(named - there)
            if missing:
                raise BrokenPromiseError("live files stay", f"version {version} lost {missing[0]}")
            self.compare(Table(process.log, snapshot), None, self.model.at(version))

    def _inspect_times(self) -> None:
        self.model.newest()
        times = [info.timestamp or 0 for _, info in sorted(self.model.infos.items())]
        for version, (one, two) in enumerate(pairwise(times), 1):
            if two < one:
                text = f"version {version + 1} is dated before version {version}"
                raise BrokenPromiseError("times run forward", text)

    def _purge_everything(self, process: Process) -> None:
        """What must be on the store after a purge, and what must not."""
        ahead = max((i.timestamp or 0 for i in self.model.infos.values()), default=0)
        if ahead > self.scheduler.now_ms + 2000 * HOUR_MS:
            return
        for _ in range(2):
            # The first may make a version itself, and files that versions before it removed wait
            # until that one is old.
            self.scheduler.now_ms += 2000 * HOUR_MS
            maintenance.purge(process.log, older_than_hours=24, log_retention_hours=0)
        needed: set[str] = set()
        for version in reachable_versions(list_log(self.store)):
            files = self.model.files(version)
            needed.update(files)
            needed.update(vector for vector in files.values() if vector is not None)
        found = {info.path for info in self.store.list("", recursive=True) if is_data(info.path)}
        rows = {p for p in found if Kind.SPLIT.has(p) and not Kind.XREF.has(p)}
        rows |= {p for p in found if Kind.VECTOR.has(p)}
        if needed - rows:
            raise BrokenPromiseError("live files stay", f"purged: {sorted(needed - rows)[:3]}")
        rows -= self.forgiven
        if rows - needed:
            raise BrokenPromiseError(
                "a purge is complete", f"left behind: {sorted(rows - needed)[:3]}"
            )
        drafts = [i.path for i in self.store.list_temporaries() if is_temporary(i.path)]
        if drafts:
            raise BrokenPromiseError("a purge is complete", f"left behind: {drafts[:3]}")
        self._inspect_versions(process)

    def _clear(self) -> None:
        forget_everything()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        elif self.path.startswith("memory://"):
            clear_memory(self.path.removeprefix("memory://"))
