"""What an actor does to the table, one step at a time, and what each step may say.

A step ends in success, in a conflict with another writer, in an error that follows from a fault
injected into it, or in the death of its process. Anything else fails the run. What a step claims
("committed as version 7", "nothing was committed") is compared with the history.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from store_doubles import CrashError
from torture_model import Intent, Row, Rows, Test
from torture_turns import ActorStore

from indextables import columnindex, maintenance
from indextables.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    IndexTablesError,
    MaintenanceError,
    VersionNotFoundError,
)
from indextables.log.log import TransactionLog
from indextables.table.order import WriteOrder
from indextables.table.table import Table

if TYPE_CHECKING:
    from torture_world import World

DAYS = ("mon", "tue", "wed")
WORDS = ("alpha", "beta", "gamma", "delta")

FIRST = "first version"
"""A table's first commit may not be able to tell whether a truncated log has left it behind."""

WEIGHTS = {
    "append": 6,
    "read": 5,
    "overwrite": 1,
    "delete": 3,
    "drop": 1,
    "restore": 1,
    "merge": 3,
    "xref": 2,
    "index": 2,
    "checkpoint": 1,
    "truncate": 1,
    "purge": 1,
    "travel": 2,
    "look_again": 2,
}


class Actor:
    """One process after another under one name, each with its own view of the store."""

    def __init__(self, world: World, name: str, rng: random.Random) -> None:
        self.world = world
        self.name = name
        self.rng = rng
        self.life = 0
        self.seen = 0
        self.held: Table | None = None
        self._start()

    def _start(self) -> None:
        self.life += 1
        self.store: ActorStore = self.world.store_for(self.name, self.life)
        self.log = TransactionLog(self.world.path, self.store, self.world.config)
        self.held = None

    def run(self, steps: int) -> None:
        for _ in range(steps):
            name = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            self.step(name)

    def step(self, name: str) -> None:
        """One step, with the rule about errors."""
        self.world.note(f"{self.name} {name}")
        faults = len(self.store.injected)
        try:
            getattr(self, name)()
        except CrashError:
            self.world.note(f"{self.name} died in {name}")
            self._start()
        except CommitConflictError as error:
            self.world.note(f"{self.name} conflict in {name}: {error.message}")
        except IndexTablesError as error:
            unsure = isinstance(error, CommitStateUnknownError) and FIRST in error.message
            if len(self.store.injected) == faults and not unsure:
                raise AssertionError(f"{name} failed without a fault: {error}") from error
            self.world.note(f"{self.name} failed in {name}: {error.message}")

    # -- writing ----------------------------------------------------------------------------------

    def append(self) -> None:
        self._write(self._new_rows(self.rng.randint(1, 8)), None)

    def overwrite(self) -> None:
        """Replace one partition."""
        day = self.rng.choice(DAYS)
        rows = {i: (word, day, x) for i, (word, _, x) in self._new_rows(3).items()}
        self._write(rows, day)

    def _new_rows(self, count: int) -> Rows:
        rows: Rows = {}
        for i in self.world.new_ids(count):
            word = f"w{i} {self.rng.choice(WORDS)}"
            x = None if self.rng.random() < 0.2 else float(self.rng.randint(-50, 50))
            rows[i] = (word, self.rng.choice(DAYS), x)
        return rows

    def _write(self, rows: Rows, day: str | None) -> None:
        commit_id = f"{self.name}-{self.life}-{min(rows)}"
        replaces: Test | None = None if day is None else lambda i, row: row[1] == day
        self.world.model.intents[commit_id] = Intent(rows, replaces)
        order, adds = self._prepared(rows, day, commit_id)
        may_have_landed = False
        for attempt in range(3):
            try:
                done = order.commit(adds, log=self.log)
                assert self.world.model.versions_of(commit_id) == [done.version]
                return
            except CommitStateUnknownError as error:
                self.world.note(f"{self.name} does not know whether {commit_id} landed")
                may_have_landed = True
                if FIRST in error.message:
                    return
            except IndexTablesError as error:
                landed = self.world.model.versions_of(commit_id)
                assert may_have_landed or not landed, f"{commit_id} landed as {landed} after all"
                is_conflict = isinstance(error, CommitConflictError)
                if is_conflict or attempt == 2 or self.rng.random() < 0.5:
                    raise

    def _prepared(
        self, rows: Rows, day: str | None, commit_id: str
    ) -> tuple[WriteOrder, tuple[Any, ...]]:
        base = self.log.snapshot()
        order = WriteOrder(
            self.world.path,
            base.schema,
            mode="append" if day is None else "overwrite",
            config=self.world.config.updated({"write.rowsPerSplit": self.rng.choice([2, 5, 1000])}),
            replaces=None if day is None else f"day = '{day}'",
            job_id=commit_id,
        ).decide_on(base)
        return order, order.write([as_batch(rows, base.schema)], store=self.log.store)

    def delete(self) -> None:
        where, test = self._predicate()
        self.world.model.predicates[where] = test
        result = maintenance.delete_rows(self.log, where)
        if result.status == "success":
            info = self._info(result.version)
            assert (info.operation, info.operation_parameters["where"]) == ("DELETE", where)

    def drop(self) -> None:
        day = self.rng.choice(DAYS)
        where = f"day = '{day}'"
        self.world.model.predicates[where] = lambda i, row: row[1] == day
        maintenance.drop_partitions(self.log, where)

    def restore(self) -> None:
        version = self.rng.randint(max(0, self.seen - 8), self.seen)
        try:
            result = maintenance.restore_to_version(self.log, version)
        except (VersionNotFoundError, MaintenanceError) as error:
            self.world.note(f"{self.name} could not restore {version}: {error.message}")
            return
        if result.status == "success":
            assert self._info(result.version).operation == "RESTORE"

    def _info(self, version: int) -> Any:
        self.world.model.at(version)
        return self.world.model.infos[version]

    # -- looking after ----------------------------------------------------------------------------

    def merge(self) -> None:
        sources = self.rng.choice([2, 4, 100])
        maintenance.merge_splits(self.log, max_source_splits=sources)

    def xref(self) -> None:
        Table(self.log, self.log.snapshot()).build_xref(force=self.rng.random() < 0.3)

    def index(self) -> None:
        column = self.rng.choice(["id", "word", "x"])
        verb = self.rng.choice(
            [columnindex.create_index, columnindex.rebuild_index, columnindex.drop_index]
        )
        try:
            verb(self.log, column)
        except MaintenanceError as error:
            self.world.note(f"{self.name} {verb.__name__} {column}: {error.message}")
        if self.rng.random() < 0.3:
            columnindex.prune_stale_indexes(self.log)

    def checkpoint(self) -> None:
        maintenance.checkpoint(self.log, compact=self.rng.random() < 0.5)

    def truncate(self) -> None:
        maintenance.truncate_time_travel(self.log)

    def purge(self) -> None:
        """Nothing is old enough, so nothing of the table may go."""
        result = maintenance.purge(self.log, log_retention_hours=self.rng.choice([0, 24]))
        assert result.metrics.orphaned_files_deleted == 0

    # -- reading ----------------------------------------------------------------------------------

    def read(self) -> None:
        """The newest version must be as new as the history, and hold what the model holds."""
        known = self.world.history.newest
        table = Table(self.log, self.log.snapshot())
        assert table.version >= known, f"a fresh snapshot is {table.version}, not {known}"
        assert table.version >= self.seen, f"went back from {self.seen} to {table.version}"
        self.seen = table.version
        self._check(table)
        self.held = table

    def look_again(self) -> None:
        """A table opened earlier still answers as it did."""
        if self.held is not None:
            self._check(self.held)

    def travel(self) -> None:
        version = self.rng.randint(max(0, self.seen - 10), self.seen)
        try:
            snapshot = self.log.snapshot(version=version)
        except VersionNotFoundError:
            return
        assert snapshot.version == version
        self._check(Table(self.log, snapshot))

    def _check(self, table: Table) -> None:
        want = self.world.model.at(table.version)
        where, test = self._predicate()
        expected = {i: r for i, r in want.items() if test(i, r)}
        compare(table, where, expected, self.world.steps)
        if self.rng.random() < 0.4:
            compare(table, None, want, self.world.steps)
        if self.rng.random() < 0.4:
            assert table.count(where) == len(expected), (where, table.version)

    def _predicate(self) -> tuple[str, Test]:
        i = self.rng.randint(0, self.world.next_id)
        word = self.rng.choice(WORDS)
        day = self.rng.choice(DAYS)
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
            (f"day = '{day}' AND x > {x}", lambda n, row: row[1] == day and _over(row, x)),
        ]
        return self.rng.choice(choices)


def _over(row: Row, x: float) -> bool:
    return row[2] is not None and row[2] > x


def as_batch(rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    columns = {
        "id": list(rows),
        "word": [word for word, _, _ in rows.values()],
        "day": [day for _, day, _ in rows.values()],
        "x": [x for _, _, x in rows.values()],
    }
    return pa.RecordBatch.from_pydict({n: columns[n] for n in schema.names}, schema=schema)


def compare(table: Table, where: str | None, want: Rows, steps: list[str]) -> None:
    """The rows of the table are these, each once."""
    found = table.to_arrow(where).to_pylist()
    got = {r["id"]: (r["word"], r["day"], r["x"]) for r in found}
    if got != want or len(found) != len(got):
        missing = sorted(set(want) - set(got))
        extra = sorted(set(got) - set(want))
        raise AssertionError(
            f"version {table.version} where {where}: missing {missing}, too many {extra}, "
            f"{len(found)} rows for {len(got)} ids; last steps: {steps[-12:]}"
        )
