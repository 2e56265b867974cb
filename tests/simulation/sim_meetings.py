"""Stories that bring a rule about on purpose, so that no run depends on luck to meet it.

A *meeting* stops one writer right before it makes its version, lets another one commit, and lets
the first go on: it then has to find out what happened. Each kind of conflict has a pair that
brings it about. The other two stories walk through the rules of retention and of the planner.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sim_coverage import planner_rules
from sim_faults import Fault
from sim_model import Test
from sim_process import DAYS, HOUR_MS, Process
from sim_store import version_of
from sim_stories import story

from indextables import maintenance
from indextables.columnindex.manage import new_index_id
from indextables.log.actions import Action, DefineIndex, DropIndex, RemoveKeyMap
from indextables.log.commit.transaction import ReadSet, Transaction
from indextables.log.read.snapshot import Snapshot
from indextables.storage.paths import temporary_name
from indextables.table.table import Table
from indextables.xref.builder import retired
from indextables.xref.keymaps.build import KeyMapBuilder

if TYPE_CHECKING:
    from sim_world import World

Step = Callable[[Process], Any]


At = Callable[[str, str], bool]


def commits(what: str, detail: str) -> bool:
    return what == "put_if_absent" and version_of(detail) is not None


def meet(world: World, first: Step, second: Step, at: At = commits) -> None:
    """The first is about to commit (or at another point) when the second goes to work."""
    one, two = world.process("one"), world.process("two")
    held = world.scheduler.add("one", lambda: one.step("meeting", lambda: first(one)))
    other = world.scheduler.add("two", lambda: two.step("meeting", lambda: second(two)))

    def stops(what: str, detail: str) -> Callable[[], bool] | None:
        return (lambda: other.is_done) if at(what, detail) else None

    held.hold_at = stops
    other.held = lambda: held.held is not None or held.is_done
    world.play()


def _append(process: Process) -> None:
    process.write(process.new_rows(2))


def _delete_some(process: Process) -> None:
    """One row of each split goes, by a deletion vector."""
    with process.means("DELETE", lambda before: {i: r for i, r in before.items() if i % 2}):
        maintenance.delete_rows(process.log, "id % 2 = 0")


def _delete_thirds(process: Process) -> None:
    with process.means("DELETE", lambda before: {i: r for i, r in before.items() if i % 6 != 3}):
        maintenance.delete_rows(process.log, "id % 6 = 3")


def _delete_low(process: Process) -> None:
    with process.means("DELETE", lambda before: {i: r for i, r in before.items() if i >= 1000}):
        maintenance.delete_rows(process.log, "id < 1000")


def _lost_rewrite(process: Process) -> None:
    """A deletion that writes its splits again, and has to throw them away."""
    config = process.world.config.updated({"deletionVector.maxShare": 0.0})
    with process.means("DELETE", lambda before: {i: r for i, r in before.items() if i % 2}):
        maintenance.delete_rows(process.log, "id % 2 = 0", config=config)


def _restore(process: Process) -> None:
    version = 1
    with process.means("RESTORE", lambda before: process.world.model.at(version)):
        maintenance.restore_to_version(process.log, version)


def _merge(process: Process) -> None:
    maintenance.merge_splits(process.log, max_source_splits=100)


def _configure(process: Process) -> None:
    maintenance.set_properties(process.log, {"owner": process.name})


def raw(make: Callable[[Snapshot], list[Action]]) -> Step:
    """A commit whose actions were fixed beforehand; our own verbs look again before they commit."""

    def commit(process: Process) -> None:
        snapshot = process.log.snapshot()
        process.log.commit(Transaction(snapshot, "RAW", actions=make(snapshot)))

    return commit


def _raised(snapshot: Snapshot) -> list[Action]:
    known = snapshot.protocol
    names = frozenset((*(known.writer_features or ()), "columnMapping"))
    readers = frozenset((*(known.reader_features or ()), "columnMapping"))
    return [replace(known, reader_features=readers, writer_features=names)]


def _defined(snapshot: Snapshot) -> list[Action]:
    return [DefineIndex(new_index_id(), "x", 1, "bbidx2")]


def _dropped(snapshot: Snapshot) -> list[Action]:
    return [DropIndex(snapshot.indexes.definitions["x"].id, "x", 1)]


def _retired(snapshot: Snapshot) -> list[Action]:
    return [retired(snapshot.xrefs[0], snapshot, 1)]


def _unmapped(snapshot: Snapshot) -> list[Action]:
    return [RemoveKeyMap(snapshot.keymaps[0].path, 1)]


def _partition_otherwise(process: Process) -> None:
    """No verb changes the partitioning of a table; another program may."""
    snapshot = process.log.snapshot()
    metadata = replace(snapshot.metadata, partition_columns=())
    process.log.commit(Transaction(snapshot, "REPARTITION", actions=[metadata]))


def _add_as_before(process: Process) -> None:
    snapshot = process.log.snapshot()
    known = next(iter(process.world.model.files(snapshot.version - 1)))
    old = process.log.snapshot(version=snapshot.version - 1).file(0)
    add = replace(old, path=f"{known}-again", added_at_version=None)
    process.log.commit(Transaction(snapshot, "RAW", actions=[add], reads=ReadSet.nothing()))


def _fill(world: World) -> None:
    world.plan.is_quiet = True
    world.actor("filler", "append", "append")
    world.play()


@story
def meetings(world: World) -> None:
    """One after another, every kind of conflict that two commits can have."""
    world.configure({"deletionVector.maxShare": 0.9, "xref.keymap.enabled": "true"})
    _fill(world)
    meet(world, _delete_thirds, _delete_some)  # both stand, joined
    _fill(world)
    meet(world, _merge, _delete_some)  # concurrent change
    meet(world, _delete_low, _append)  # concurrent add
    _fill(world)
    meet(world, _merge, lambda p: p.overwrite_all())  # concurrent delete
    meet(world, _restore, _configure)  # metadata changed
    meet(world, raw(_raised), raw(_raised))  # protocol changed
    world.plan.is_quiet = False


@story
def meetings_of_builders(world: World) -> None:
    """The same for what lies beside rows: cross-references, key maps, column indexes."""
    world.configure({"xref.keymap.enabled": "false"})
    _fill(world)
    meet(world, raw(_defined), raw(_defined))  # index taken
    meet(world, raw(_dropped), raw(_dropped))  # index gone
    world.actor("builder", "xref")
    world.play()
    meet(world, raw(_retired), raw(_retired))  # cross-reference gone
    world.configure({"xref.keymap.enabled": "true"})
    _fill(world)
    world.alone("maps", lambda: world.process("maps").step("maps", _maps(world)))
    meet(world, raw(_unmapped), raw(_unmapped))  # key map gone
    meet(world, _lost_rewrite, _append)  # files of a commit that lost
    world.actor("filler", "empty")
    world.play()
    meet(world, _add_as_before, _partition_otherwise)  # partitioning changed
    world.plan.is_quiet = False


def _maps(world: World) -> Callable[[], Any]:
    config = world.config.updated({"xref.keymap.enabled": "true"})
    return lambda: KeyMapBuilder(world.process("maps").log, config).update()


@story
def overtaken(world: World) -> None:
    """A writer stands still before its commit while others commit and truncate the log."""
    _fill(world)
    if world.rng.random() < 0.5:
        world.actor("filler", "truncate")
        world.play()
    meet(world, _append, lambda p: p.play(["append", "append", "truncate"]))
    meet(world, _delete_some, lambda p: p.play(["append", "truncate"]))
    world.plan.is_quiet = False
    world.actor("reader", "read", "travel")
    world.play()


@story
def states_meet(world: World) -> None:
    """A state is about to be written when a purge collects manifests."""
    world.configure({"checkpoint.interval": 0, "state.format": "avro", "state.retention.hours": 0})
    _fill(world)
    world.actor("keeper", "plain_checkpoint", "append", "append")
    world.play()

    def writes_state(what: str, detail: str) -> bool:
        return what == "put_if_absent" and "state-v" in detail

    meet(world, lambda p: p.plain_checkpoint(), lambda p: p.purge(), writes_state)
    world.actor("keeper", "truncate")
    world.play()
    world.plan.is_quiet = False
    world.actor("reader", "read", "append", "read")
    world.play()


@story
def shared_manifests(world: World) -> None:
    """States share manifests of which some entries are dead and some splits lost rows."""
    world.configure({"checkpoint.interval": 0, "state.format": "avro"})
    world.configure({"state.compaction.tombstoneThreshold": 0.99, "deletionVector.maxShare": 0.9})
    world.configure({"state.compaction.maxManifests": 20, "state.entriesPerManifest": 50})
    world.plan.is_quiet = True
    world.actor("first", "dozen", "plain_checkpoint", "overwrite", "delete_half")
    world.play()
    world.actor("first", "plain_checkpoint")
    world.play()
    world.plan.is_quiet = False
    world.actor("reader", "read", "travel")
    world.actor("writer", "append", "merge", "plain_checkpoint")
    world.play()


@story
def held_readers(world: World) -> None:
    """A reader holds a version whose old files are removed and purged at once."""
    world.plan.is_quiet = True
    world.actor("first", "append", "append", "wait")
    world.play()
    world.actor("reader", "read")
    world.play()
    world.actor("writer", "overwrite_all", "checkpoint")
    world.play()
    purger = world.process("purger")
    world.alone("purger", lambda: purger.step("purge", lambda: _purge(purger, 0)))
    world.plan.is_quiet = False
    world.actor("reader", "look_again", "travel", "look_again")
    world.actor("writer", "append", "restore")
    world.play()


@story
def long_history(world: World) -> None:
    """A log without checkpoints: every version can be read, and every purge knows."""
    world.configure({"checkpoint.enabled": False})
    world.actor("w0", "append", "overwrite_all", "wait", "append")
    world.play()
    purger = world.process("purger")
    world.actor("w0", "wait", "delete")
    world.actor("reader", "read", "travel", "travel", "look_again")
    world.scheduler.add("purger", lambda: purger.step("purge", lambda: _purge(purger, 7200)))
    world.play()


@story
def uploads(world: World) -> None:
    """A split is on its way, under a temporary name, when somebody purges."""
    world.plan.shows_uploads = world.plan.is_quiet = True
    meet(world, _append, lambda p: p.purge(), lambda what, _: what == "put_file")
    world.plan.is_quiet = False
    world.actor("w0", "append", "append")
    world.actor("purger", "purge", "purge")
    world.play()


@story
def retentions(world: World) -> None:
    """Files of every kind of age, and purges that must tell them apart."""
    world.plan.is_quiet = True
    world.configure({"checkpoint.interval": 1, "checkpointRetention.duration": 0})
    world.configure({"state.retention.hours": 0, "state.retention.versions": 1})
    for form in ("json", "avro"):
        world.configure({"state.format": form})
        world.actor(f"writer {form}", "append", "append", "delete", "overwrite_all")
        world.play()
    world.alone("strays", lambda: _strays(world))
    purger = world.process("purger")
    for hours in (0, 30, 3000):
        world.scheduler.now_ms += hours * HOUR_MS
        world.alone("purger", lambda: purger.step("purge", lambda: _purge(purger)))
    world.plan.is_quiet = False


def _strays(world: World) -> None:
    """Files that no version lists: one without a date, one of tomorrow, one half written."""
    gone = [p for p in world.store.born if p not in world.store.live and p.endswith(".split")]
    for path in sorted(gone)[::2]:
        world.store.born[path] = world.scheduler.now_ms + HOUR_MS  # copied back from somewhere
    ages = (0, world.scheduler.now_ms + 48 * HOUR_MS, world.scheduler.now_ms)
    for number, age in enumerate(ages):
        path = f"day={DAYS[0]}/part-{uuid.UUID(int=number)}.split"
        world.store.put(path, b"left over")
        world.store.born[path] = age
    world.store.put(temporary_name(), b"half of it")
    undated = [p for p, born in world.store.born.items() if born == 0]
    world.forgiven.update(undated)
    world.plan.fired[Fault.HALF_WRITTEN] += 1


def _purge(process: Process, log_hours: int = 24) -> None:
    maintenance.purge(process.log, older_than_hours=24, log_retention_hours=log_hours)


QUESTIONS: list[tuple[str, Test]] = [
    ("day = 'mon'", lambda i, r: r[1] == "mon"),
    ("1 = 0", lambda i, r: False),
    ("1 = 1", lambda i, r: True),
    ("x = 3.0", lambda i, r: r[2] == 3.0),
    ("x IS NULL", lambda i, r: r[2] is None),
    ("id IS NULL", lambda i, r: False),
    ("id IS NOT NULL", lambda i, r: True),
    ("id > 100000", lambda i, r: False),
    ("id < 100000", lambda i, r: True),
    ("id <> -1", lambda i, r: True),
    ("id <> 0", lambda i, r: i != 0),
    ("id <> 12", lambda i, r: i != 12),
    ("x < 1000", lambda i, r: r[2] is not None and r[2] < 1000),
    ("word < 'zz'", lambda i, r: r[0] < "zz"),
    ("id IN (0, 5)", lambda i, r: i in (0, 5)),
    ("id = 1", lambda i, r: i == 1),
    ("x > -1000", lambda i, r: r[2] is not None and r[2] > -1000),
    ("word > 'w'", lambda i, r: r[0] > "w"),
    ("word = 'w0 alpha'", lambda i, r: r[0] == "w0 alpha"),
    ("word TEXTSEARCH 'w3'", lambda i, r: i == 3),
    ("word TEXTSEARCH 'nowhere'", lambda i, r: False),
]


@story
def questions(world: World) -> None:
    """Every way in which the planner decides about a split, compared with all rows."""
    world.plan.is_quiet = True
    world.actor("w0", "dozen", "single", "nulls")
    world.play()
    world.configure({"dataSkippingStatsColumns": "id,word", "stats.truncation.maxLength": 4})
    world.actor("w1", "append", "long_words", "xref")
    world.play()
    world.alone("asker", lambda: world.process("asker").step("ask", lambda: _ask(world)))
    world.plan.is_quiet = False


def _ask(world: World) -> None:
    process = world.process("asker")
    table = Table(process.log, process.log.snapshot())
    rows = world.model.at(table.version)
    most = max(row[0] for row in rows.values() if "long" in row[0])
    cut: Test = lambda i, r: r[0] >= most  # noqa: E731
    for where, test in [*QUESTIONS, (f"word >= '{most}'", cut)]:
        world.compare(table, where, {i: r for i, r in rows.items() if test(i, r)})
        planner_rules(table.plan(where), world.rules)
