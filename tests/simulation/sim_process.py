"""What an actor does to the table, one step at a time, and what each step may say.

An actor plays one process after another under one name: each has its own caches and its own view of
the store, and one that dies is started again. A step ends in success, in a conflict with another
writer, in an error that follows from a fault that struck it, or in the death of its process.
Anything else breaks a promise. What a step claims ("committed", "nothing was committed", "these are
the rows") is compared with the model at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sim_model import Meaning, Rows, Test, adds, raises, replaces, takes
from sim_store import BrokenPromiseError, SimStore
from store_doubles import CrashError

from indextables import columnindex, maintenance
from indextables.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    IndexTablesError,
    MaintenanceError,
    ObjectNotFoundError,
    ProtocolError,
    UnknownColumnError,
    VersionNotFoundError,
)
from indextables.log.commit.transaction import CommitResult, Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.cache import LogCache
from indextables.table.order import WriteOrder
from indextables.table.table import Table
from indextables.table.upsert import upsert_rows

if TYPE_CHECKING:
    from sim_world import World

HOUR_MS = 3_600_000
DAYS = ("mon", "tue", "wed")
WORDS = ("alpha", "beta", "gamma", "delta")
COLUMNS = ["id", "word", "day", "x"]
FIRST = "first version"
"""A table's first commit may not be able to tell whether a truncated log has left it behind."""
PURGE_HOURS = 24


class SimLog(TransactionLog):
    """A log of one process, which tells the model what its commits mean."""

    def __init__(self, process: Process) -> None:
        world = process.world
        super().__init__(world.path, process.store, world.config)
        self.process = process
        self.cache = LogCache(clock=lambda: world.scheduler.now_ms / 1000)

    def commit(self, transaction: Transaction) -> CommitResult:
        meaning = self.process.meaning
        if meaning is not None and transaction.operation == meaning.operation:
            self.process.world.model.meant[transaction.commit_id] = meaning
        return super().commit(transaction)


class Process:
    """An actor of a story."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.rng = random.Random(f"{name} {world.seed}")
        self.life = 0
        self.seen = 0
        self.held: Table | None = None
        self.meaning: Meaning | None = None
        self.start()

    def start(self) -> None:
        """A new process: nothing of the one before is left but files."""
        self.life += 1
        world = self.world
        self.store = SimStore(world.store, world.scheduler, world.plan, self.name, self.life)
        self.log = SimLog(self)
        self.held = None
        self.meaning = None
        self.seen = 0

    # -- steps ------------------------------------------------------------------------------------

    def play(self, names: list[str]) -> None:
        for name in names:
            self.step(name)
            self.world.scheduler.point("rest")

    def step(self, name: str, work: Callable[[], Any] | None = None) -> bool:
        """One step, with the rule about errors; did it succeed?"""
        self.world.scheduler.note("step", name)
        self.world.did[name] += 1
        self.world.busy.add(self.name)
        self.store.is_refused = self.world.store.is_closed_to_us
        excuses, lagged = self.store.excuses, self.store.lagged
        try:
            (work or getattr(self, name))()
            return True
        except CrashError:
            self.world.scheduler.note("died", name)
            self.start()
        except CommitConflictError as error:
            self.world.conflict(error)
            self.world.scheduler.note("conflict", f"{name}: {error.message}")
        except IndexTablesError as error:
            self.world.scheduler.note("failed", f"{name}: {error.message}")
            self._check_excused(name, error, excuses, lagged)
        finally:
            self.meaning = None
            self.world.busy.discard(self.name)
        return False

    def _check_excused(self, name: str, error: IndexTablesError, excuses: int, lagged: int) -> None:
        if self.store.excuses > excuses or self.store.lagged > lagged:
            return
        if isinstance(error, CommitStateUnknownError) and FIRST in error.message:
            return
        if isinstance(error, ProtocolError) and self.world.store.is_closed_to_us:
            return
        text = f"{name} of {self.name} failed without a fault: {error}"
        raise BrokenPromiseError("no failure without a fault", text) from error

    @contextmanager
    def means(self, operation: str, effect: Any) -> Iterator[Meaning]:
        label = f"{operation} of {self.name}.{self.life} at {len(self.world.scheduler.trace)}"
        self.meaning = Meaning(operation, effect, label)
        yield self.meaning
        self.meaning = None

    # -- rows -------------------------------------------------------------------------------------

    def new_rows(self, count: int, day: str | None = None) -> Rows:
        """Rows whose values follow from their ids, so that their splits are known already."""
        rows: Rows = {}
        for i in self.world.new_ids(count):
            x = None if i % 5 == 4 else float(i * 7 % 100 - 50)
            rows[i] = (f"w{i} {WORDS[i % 4]}", day or DAYS[i // 2 % 3], x)
        return rows

    def append(self) -> None:
        self.write(self.new_rows(2 * self.rng.randint(1, 3)))

    def dozen(self) -> None:
        self.write(self.new_rows(12))

    def single(self) -> None:
        """A split of one row."""
        self.write(self.new_rows(1))

    def nulls(self) -> None:
        """A split in which no row has a value."""
        self.write({i: (word, day, None) for i, (word, day, _) in self.new_rows(2, "mon").items()})

    def long_words(self) -> None:
        """Words that are longer than what statistics keep of them."""
        rows = self.new_rows(2, "tue")
        self.write({i: (f"{word} {'long ' * 20}", day, x) for i, (word, day, x) in rows.items()})

    def overwrite(self) -> None:
        """Replace one partition."""
        day = self.rng.choice(DAYS)
        self.write(self.new_rows(2, day), day)

    def overwrite_all(self) -> None:
        self.write(self.new_rows(2), mode="overwrite")

    def write(self, rows: Rows, day: str | None = None, mode: str | None = None) -> None:
        """One write, run again by its caller where it failed before anything was committed."""
        mode = mode or ("append" if day is None else "overwrite")
        test: Test | None = None if day is None else lambda i, row: row[1] == day
        effect = adds(rows) if mode == "append" else replaces(rows, test)
        job = f"{self.name}-{self.life}-{min(rows)}"
        with self.means(mode, effect) as meaning:
            base = self.log.writable_snapshot()
            order = WriteOrder(
                self.world.path,
                schema_of(base.schema),
                mode=mode,
                config=self.world.config,
                replaces=None if day is None else f"day = '{day}'",
                job_id=job,
            ).decide_on(base)
            made = order.write([as_batch(rows)], store=self.store)
            self.commit_write(lambda: order.commit(made, log=self.log), meaning)

    def commit_write(self, commit: Callable[[], CommitResult], meaning: Meaning) -> None:
        may_have_landed = False
        for attempt in range(3):
            try:
                done = commit()
                self.world.check_landed(meaning, done.version)
                self.world.check_failures(done.failures, self.store)
                return
            except CommitStateUnknownError as error:
                self.world.scheduler.note("unsure", meaning.label)
                may_have_landed = True
                if FIRST in error.message:
                    return
            except IndexTablesError as error:
                landed = self.world.landed(meaning)
                if landed and not may_have_landed:
                    text = f"{meaning.label} is version {landed}, and was said to have failed"
                    raise BrokenPromiseError("a failed write leaves nothing", text) from error
                is_conflict = isinstance(error, CommitConflictError)
                if is_conflict or attempt == 2 or self.rng.random() < 0.5:
                    raise

    def delete(self) -> None:
        where, test = self.predicate()
        with self.means("DELETE", takes(test)) as meaning:
            result = maintenance.delete_rows(self.log, where)
            if result.status == "success":
                self.world.check_landed(meaning, result.version)

    def update(self) -> None:
        where, test = self.predicate()
        with self.means("UPDATE", raises(test, 1.0)) as meaning:
            result = maintenance.update_rows(self.log, where, {"x": "x + 1"})
            if result.status == "success":
                self.world.check_landed(meaning, result.version)

    def count_up(self) -> None:
        """All writers raise the same rows: none of the raises may be lost."""
        test: Test = lambda i, row: i < 4  # noqa: E731
        with self.means("UPDATE", raises(test, 1.0)) as meaning:
            result = maintenance.update_rows(self.log, "id < 4", {"x": "x + 1"})
            if result.status == "success":
                self.world.check_landed(meaning, result.version)

    def delete_half(self) -> None:
        """One row of most splits goes."""
        with self.means("DELETE", takes(lambda i, row: i % 2 == 0)) as meaning:
            result = maintenance.delete_rows(self.log, "id % 2 = 0")
            if result.status == "success":
                self.world.check_landed(meaning, result.version)

    def upsert(self) -> None:
        known = sorted(self.world.model.newest())
        old = self.rng.sample(known, min(2, len(known)))
        rows = self.new_rows(2)
        for i in old:
            word, day, _ = self.world.model.newest().get(i, (f"w{i} up", "mon", None))
            rows[i] = (word, day, float(self.rng.randint(0, 3)))
        with self.means("UPSERT", adds(rows)) as meaning:
            data = pa.Table.from_batches([as_batch(rows)])
            result = upsert_rows(self.log, data, "id")
            if result.status == "success":
                self.world.check_landed(meaning, result.version)

    def empty(self) -> None:
        with self.means("TRUNCATE", takes(lambda i, row: True)):
            maintenance.truncate_table(self.log)

    def drop(self) -> None:
        day = self.rng.choice(DAYS)
        with self.means("DROP PARTITIONS", takes(lambda i, row: row[1] == day)):
            maintenance.drop_partitions(self.log, f"day = '{day}'")

    def restore(self) -> None:
        version = self.rng.randint(max(0, self.seen - 8), max(0, self.seen))
        effect = lambda before: self.world.model.at(version)  # noqa: E731
        with self.means("RESTORE", effect):
            try:
                maintenance.restore_to_version(self.log, version)
            except (VersionNotFoundError, MaintenanceError) as error:
                self.world.scheduler.note("not restored", error.message)

    # -- looking after ----------------------------------------------------------------------------

    def merge(self) -> None:
        maintenance.merge_splits(self.log, max_source_splits=self.rng.choice([2, 100]))

    def reorg(self) -> None:
        maintenance.reorg_splits(self.log)

    def xref(self) -> None:
        Table(self.log, self.log.snapshot()).build_xref(force=self.rng.random() < 0.3)

    def index(self) -> None:
        column = self.rng.choice(["id", "word", "x"])
        verbs = (columnindex.create_index, columnindex.rebuild_index, columnindex.drop_index)
        verb = self.rng.choice(verbs)
        try:
            verb(self.log, column)
        except MaintenanceError as error:
            self.world.scheduler.note("not indexed", error.message)

    def prune_indexes(self) -> None:
        columnindex.prune_stale_indexes(self.log)

    def checkpoint(self) -> None:
        maintenance.checkpoint(self.log, compact=self.rng.random() < 0.5)

    def plain_checkpoint(self) -> None:
        maintenance.checkpoint(self.log)

    def truncate(self) -> None:
        maintenance.truncate_time_travel(self.log)

    def purge(self) -> None:
        self.purge_after(PURGE_HOURS)

    def purge_after(self, hours: int) -> None:
        """The purger's own clock is right; that is the one clock PURGE must be able to trust."""
        actor = self.world.scheduler.current
        if actor is not None:
            actor.skew_ms = 0
        kept = self.rng.choice([0, 24, 720])
        maintenance.purge(self.log, older_than_hours=hours, log_retention_hours=kept)

    def wait(self) -> None:
        """Time passes. No write takes longer than a retention: that is what retentions are for."""
        world = self.world
        world.busy.discard(self.name)
        world.scheduler.hold(lambda: not world.busy)
        hours = 1 if world.busy else self.rng.choice([26, 26, 200])
        world.scheduler.now_ms += hours * HOUR_MS
        world.scheduler.point("wait", f"{hours} hours")

    def configure(self) -> None:
        number = self.rng.randint(0, 3)
        maintenance.set_properties(self.log, {"owner": f"team{number}"})

    def add_column(self) -> None:
        maintenance.add_column(self.log, f"c{self.world.new_column()}", "int")

    def rename_column(self) -> None:
        self._alter(lambda old: maintenance.rename_column(self.log, old, f"{old}r"))

    def drop_column(self) -> None:
        self._alter(lambda old: maintenance.drop_column(self.log, old))

    def _alter(self, change: Callable[[str], Any]) -> None:
        """Change one of the columns that no row has a value for."""
        known = [n for n in self.log.snapshot().schema.names if n not in COLUMNS]
        try:
            if known:
                change(self.rng.choice(known))
        except (MaintenanceError, UnknownColumnError) as error:
            self.world.scheduler.note("not altered", error.message)

    def doctor(self) -> None:
        lagged = self.store.lagged
        wrong = [f for f in maintenance.doctor(self.log) if f.severity == "error"]
        if wrong and self.store.lagged == lagged and not self.world.plan.has_torn:
            self._check_verdict(wrong[0])

    def _check_verdict(self, finding: Any) -> None:
        """The newest version may have changed while the doctor looked at an older one."""
        again = maintenance.doctor(self.log) if finding.check == "missing split" else [finding]
        wrong = [f for f in again if f.severity == "error"]
        if wrong:
            raise BrokenPromiseError("the doctor is right", f"{wrong[0].path}: {wrong[0].detail}")

    # -- reading ----------------------------------------------------------------------------------

    def read(self) -> None:
        """The newest version must be as new as the history, and hold what the model holds."""
        known, lagged = self.world.store.newest, self.store.lagged
        table = Table(self.log, self.log.snapshot())
        if self.store.lagged == lagged:
            if table.version < known:
                text = f"{self.name} got version {table.version} after {known} was made"
                raise BrokenPromiseError("a fresh read is fresh", text)
            if table.version < self.seen:
                text = f"{self.name} went from version {self.seen} back to {table.version}"
                raise BrokenPromiseError("reads are monotonic", text)
        self.seen = max(self.seen, table.version)
        self.held = table
        self.check(table)

    def read_all(self) -> None:
        table = Table(self.log, self.log.snapshot())
        self.world.compare(table, None, self.world.model.at(table.version))

    def look_again(self) -> None:
        """A table opened earlier still answers as it did."""
        if self.held is not None:
            self.check(self.held)

    def search(self) -> None:
        """Ask for single rows by the words that only they have, where indexes may be stale."""
        table = Table(self.log, self.log.snapshot())
        want = self.world.model.at(table.version)
        for _ in range(2):
            i = self.rng.randint(0, max(1, self.world.next_id))
            expected = {i: want[i]} if i in want else {}
            column = self.rng.choice([f"word TEXTSEARCH 'w{i}'", f"id = {i}"])
            try:
                self.world.compare(table, column, expected)
            except ObjectNotFoundError as error:
                self.world.check_may_be_gone(table.version, error)

    def by_time(self) -> None:
        """A moment names one version, and the version one moment."""
        history = self.log.history(6)
        if not history:
            return
        entry = self.rng.choice(history)
        try:
            snapshot = self.log.snapshot(timestamp=entry.timestamp)
        except VersionNotFoundError:
            return
        if snapshot.version != entry.version:
            text = f"{entry.timestamp} is version {entry.version}, got {snapshot.version}"
            raise BrokenPromiseError("times run forward", text)

    def travel(self) -> None:
        version = self.rng.randint(max(0, self.seen - 10), max(0, self.seen))
        try:
            snapshot = self.log.snapshot(version=version)
        except VersionNotFoundError:
            return
        if snapshot.version != version:
            raise BrokenPromiseError("time travel", f"asked for {version}, got {snapshot.version}")
        self.check(Table(self.log, snapshot))

    def check(self, table: Table) -> None:
        where, test = self.predicate()
        want = self.world.model.at(table.version)
        expected = {i: r for i, r in want.items() if test(i, r)}
        try:
            self.world.compare(table, where, expected)
            if self.rng.random() < 0.3:
                self.world.compare(table, None, want)
            if self.rng.random() < 0.3 and table.count(where) != len(expected):
                raise BrokenPromiseError(
                    "rows equal the model", f"count of {where} at {table.version}"
                )
        except ObjectNotFoundError as error:
            self.world.check_may_be_gone(table.version, error)

    def predicate(self) -> tuple[str, Test]:
        i = self.rng.randint(0, max(1, self.world.next_id))
        word, day = self.rng.choice(WORDS), self.rng.choice(DAYS)
        x = float(self.rng.randint(-50, 50))
        choices: list[tuple[str, Test]] = [
            (f"id BETWEEN {i} AND {i + 6}", lambda n, row: i <= n <= i + 6),
            (f"id = {i}", lambda n, row: n == i),
            (f"id IN ({i}, {i + 3}, {i + 9})", lambda n, row: n in (i, i + 3, i + 9)),
            (f"word TEXTSEARCH 'w{i}'", lambda n, row: n == i),
            (
                f"word TEXTSEARCH '{word}' AND id > {i}",
                lambda n, row: word in row[0] and n > i,
            ),
            (f"x IS NULL AND id < {i}", lambda n, row: row[2] is None and n < i),
            (f"x = {x} OR id = {i}", lambda n, row: row[2] == x or n == i),
            (
                f"day = '{day}' AND x > {x}",
                lambda n, row: row[1] == day and row[2] is not None and row[2] > x,
            ),
        ]
        return self.rng.choice(choices)


def schema_of(schema: pa.Schema) -> pa.Schema:
    """The columns that the rows of the simulation have."""
    return pa.schema([schema.field(name) for name in COLUMNS])


def as_batch(rows: Rows) -> pa.RecordBatch:
    columns = {
        "id": pa.array(list(rows), pa.int64()),
        "word": pa.array([word for word, _, _ in rows.values()], pa.string()),
        "day": pa.array([day for _, day, _ in rows.values()], pa.string()),
        "x": pa.array([x for _, _, x in rows.values()], pa.float64()),
    }
    return pa.RecordBatch.from_pydict(columns)
