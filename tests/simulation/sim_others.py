"""Stories with somebody else in them: streams, neighbours on the machine, other programs."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from sim_faults import Fault
from sim_machine import work_folder
from sim_model import Meaning, Rows, adds
from sim_process import Process, as_batch, schema_of
from sim_store import BrokenPromiseError
from sim_stories import makes_version, story

from indextables.config import Config
from indextables.log.actions import CommitInfo, Protocol, SkipFile
from indextables.log.actions.codec import encode_actions
from indextables.log.checkpoint.state import encode_state, read_state, write_state
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import VersionActions
from indextables.log.read.versions import LOG_DIR, state_dir, version_path
from indextables.spark.driver import streaming
from indextables.spark.driver.writing import Written
from indextables.storage import workfolders
from indextables.storage.base import Store
from indextables.storage.wrapped import Call
from indextables.table.execute import read_task
from indextables.table.order import WriteOrder

if TYPE_CHECKING:
    from sim_world import World

HINT = f"{LOG_DIR}/_last_checkpoint"

# -- streams ---------------------------------------------------------------------------------------


@dataclass
class SimOrder(WriteOrder):
    """An order whose driver and tasks are processes of the simulation."""

    process: Any = None

    def _log(self) -> TransactionLog:
        log: TransactionLog = self.process.log
        return log

    def store(self) -> Store:
        store: Store = self.process.store
        return store


class Sink(Process):
    """A streaming query: batches with numbers, each tried until it is done, over many lives."""

    def begin(self, query: str, count: int) -> None:
        self.query = query
        self.batches: list[tuple[Rows, Meaning]] = []
        for number in range(count):
            rows = self.new_rows(2)
            label = f"batch {number} of {query}"
            self.batches.append((rows, Meaning("append", adds(rows), label)))

    def drain(self) -> None:
        """Spark's loop: a batch that is not known to be done is run again, with its number."""
        for number in range(len(self.batches)):
            for _ in range(6):
                if self.step("batch", lambda n=number: self.one(n)):
                    break
            else:
                return
            if self.rng.random() < 0.3:
                self.step("batch again", lambda n=number: self.one(n))

    def one(self, number: int) -> None:
        rows, meaning = self.batches[number]
        self.meaning = meaning
        base = self.log.writable_snapshot()
        order = SimOrder(
            self.world.path, schema_of(base.schema), config=self.world.config, process=self
        ).decide_on(base)
        adds_ = order.write([as_batch(rows)], store=self.store)
        streaming.StreamWriter(order).commit([Written(adds_, self.query)], number)
        if len(self.world.landed(meaning)) != 1:
            text = f"{meaning.label} was said to be written, it is {meaning.landed}"
            raise BrokenPromiseError("the sink writes once", text)


@story
def sinks(world: World) -> None:
    """Two queries write batches and die on the way; then one starts anew with a new checkpoint."""
    for _ in range(2):
        world.plan.arm(Fault.LOST_REPLY, makes_version)
    world.plan.arm(Fault.CRASH_AFTER, makes_version)
    for name in ("q0", "q1"):
        sink = world.processes[name] = Sink(world, name)
        sink.begin(f"query-{name}", 2)
        world.scheduler.add(name, sink.drain)
    world.actor("keeper", "merge", "checkpoint")
    world.play()
    again = world.processes["q2"] = Sink(world, "q2")
    again.begin("query-after-reset", 2)
    world.scheduler.add("q2", again.drain)
    world.play()


class Follower(Process):
    """A streaming reader that keeps its offset, as Spark does, beside what it has read."""

    offset: dict[str, Any] | None = None
    got: dict[int, int]

    def open(self, most_files: int) -> None:
        self.got = {}
        self.most_files = most_files

    def follow(self, rounds: int) -> None:
        for _ in range(rounds):
            self.step("follow", self.one)

    def one(self) -> None:
        options = {"maxFilesPerTrigger": str(self.most_files)}
        output = SimpleNamespace(fieldNames=lambda: ["id"])
        access = SimpleNamespace(path=self.world.path, config=self.world.config, process=self)
        reader = streaming.StreamReader(access, output, options)  # type: ignore[arg-type]
        start = self.offset or reader.initialOffset()
        end = reader.latestOffset(start)
        read: list[int] = []
        for part in reader.partitions(start, end):
            if part.task is not None:
                schema = self.log.snapshot().schema
                for batch in read_task(self.store, part.task, schema, self.world.config):
                    read += batch.column("id").to_pylist()
        for i in read:
            self.got[i] = self.got.get(i, 0) + 1
        self.offset = end


@story
def followers(world: World) -> None:
    """Streaming readers follow a table that grows and is merged under them."""
    world.actor("first", "append", "checkpoint")
    world.play()
    shared = SimpleNamespace(log=lambda access: access.process.log)
    with mock.patch.object(streaming, "SHARED", shared):
        reader = world.processes["reader"] = Follower(world, "reader")
        reader.open(world.rng.choice([0, 1, 2]))
        world.scheduler.add("reader", lambda: reader.follow(5))
        world.actor("w0", "append", "append", "merge")
        world.actor("w1", "append", "checkpoint", "append")
        world.play()
        world.plan.is_quiet = True
        world.alone("reader", lambda: reader.follow(40))
        world.plan.is_quiet = False
    wrong = {i: n for i, n in reader.got.items() if n != 1}
    missing = sorted(set(world.model.newest()) - set(reader.got))
    if wrong or missing:
        raise BrokenPromiseError(
            "a stream shows each row once", f"not once {wrong}, never {missing}"
        )


# -- neighbours ------------------------------------------------------------------------------------


@story
def neighbours(world: World) -> None:
    """Another process on the machine clears away work folders while splits are built."""
    folder = tempfile.mkdtemp(prefix="simulation-work-", dir=work_folder())
    settings = {"indexWriter.tempDirectoryPath": folder, "merge.tempDirectoryPath": folder}
    world.configure(settings)
    try:
        world.actor("w0", "append", "append", "merge")
        world.actor("w1", "append", "update", "append")
        world.scheduler.add("neighbour", lambda: _sweep(world, folder))
        world.play()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(world: World, folder: str) -> None:
    for _ in range(8):
        world.scheduler.point("sweep")
        workfolders.sweep(folder)


@story
def short_of_everything(world: World) -> None:
    """Descriptors and space run out: work fails, and no file is judged for it."""
    world.plan.looks_remote = True
    world.actor("first", "append", "append", "append")
    world.play()

    def split(_: str, call: Call) -> bool:
        return call.path.endswith(".split") and call.op.startswith("read")

    for _ in range(4):
        world.plan.arm(Fault.NO_DESCRIPTORS, split)
    world.plan.arm(Fault.NO_SPACE, lambda _, call: call.op == "put_file")
    doer = world.rng.choice(["doctor", "merge", "xref", "delete"])
    world.actor("one", doer, "append", "doctor")
    world.actor("two", "merge", "doctor", "purge")
    world.play()
    for version in range(1, world.store.newest + 1):
        noted = [a.path for a in world.store.actions(version) if isinstance(a, SkipFile)]
        if noted and not world.plan.has_torn:
            raise BrokenPromiseError(
                "the machine is no verdict", f"{noted[0]} is noted as unreadable"
            )


# -- other programs --------------------------------------------------------------------------------


@story
def newer_release(world: World) -> None:
    """A newer release takes the table in the middle of our work: from then on we keep off."""
    world.actor("w0", "append", "append", "delete")
    world.actor("w1", "append", "merge")
    world.scheduler.add("newer", lambda: _take(world))
    world.play()
    for name in ("w0", "w1"):
        steps = ["purge", "checkpoint", "truncate", "append", "merge", "xref", "delete", "read"]
        world.rng.shuffle(steps)
        world.actor(name, "wait", *steps[:5], "read")
    world.play()


def _take(world: World) -> None:
    """Commit a protocol that this release may read and not write."""
    for _ in range(world.rng.randint(0, 40)):
        world.scheduler.point("newer release waits")
    version = world.store.newest + 1
    features = frozenset(("somethingNew",))
    protocol = Protocol(4, 4, writer_features=features, reader_features=frozenset())
    info = CommitInfo(commit_id="newer", timestamp=world.scheduler.now_ms, operation="NEWER")
    log = TransactionLog(world.path, world.store, world.config)
    before = log.snapshot().timestamp_ms
    info = replace(info, timestamp=max(world.scheduler.now_ms, before + 1))
    world.store.put_if_absent(version_path(version), encode_actions([info, protocol]))
    world.store.is_closed_to_us = True
    world.plan.fired[Fault.NEWER_PROTOCOL] += 1


@story
def two_programs(world: World) -> None:
    """Another program makes a version that we made too, in its own way; no row is lost."""
    world.configure({"checkpoint.enabled": False, "state.format": "avro"})
    world.plan.kinds = tuple(k for k in world.plan.kinds if k is not Fault.STALE_LIST)
    world.actor("w0", "append")
    world.play()
    world.alone("fork", lambda: _fork(world))
    world.actor("w0", "read", world.rng.choice(["append", "merge", "read"]), "read")
    world.actor("w1", "append", "read")
    world.play()
    world.plan.is_quiet = True
    world.actor("keeper", "checkpoint", "read")
    world.play()
    world.plan.is_quiet = False


def _fork(world: World) -> None:
    """Our version, and beside it a state of theirs that knows nothing of it."""
    world.plan.is_quiet = True
    ours = world.process("ours")
    base = ours.log.snapshot()
    ours.step("append")
    rows = ours.new_rows(2)
    order = WriteOrder(world.path, schema_of(base.schema), config=world.config).decide_on(base)
    theirs = order.write([as_batch(rows)], store=world.store)
    change = VersionActions(base.version + 1, base.timestamp_ms + 1, list(theirs))
    snapshot = base.with_versions([change])
    write_state(world.store, snapshot, config=world.config)
    state = replace(read_state(world.store, snapshot.version), extras=())
    path = f"{state_dir(snapshot.version)}/_manifest.avro"
    world.store.put(path, encode_state(state, None, Config(), False))
    world.model.forked(snapshot.version, rows, [add.path for add in theirs])
    world.plan.fired[Fault.FOREIGN_WRITER] += 1
    world.plan.is_quiet = False


@story
def hadoop_beside_us(world: World) -> None:
    """A program on Hadoop leaves checksums beside the files that we replace."""
    world.actor("w0", "append", "checkpoint")
    world.play()
    world.alone("hadoop", lambda: _sidecars(world))
    world.actor("w0", "append", "checkpoint", "append", "checkpoint")
    world.actor("keeper", "wait", "purge")
    world.play()
    stale = [path for path in _checksums(world) if not _fits(world, path)]
    if stale:
        raise BrokenPromiseError("sidecars fit their files", f"{stale[0]} is of an older file")


def _sidecars(world: World) -> None:
    """What Hadoop writes beside the hint; the content names the bytes it is of."""
    if world.store.exists(HINT) and world.store.local_path(HINT):
        folder, _, name = HINT.rpartition("/")
        with open(_crc(world, f"{folder}/.{name}.crc"), "wb") as file:
            file.write(world.store.read(HINT))


def _crc(world: World, path: str) -> str:
    found = world.store.inner.local_path(path)
    assert found is not None
    return found


def _checksums(world: World) -> list[str]:
    folder, _, name = HINT.rpartition("/")
    return [f"{folder}/.{name}.crc"] if world.store.local_path(HINT) else []


def _fits(world: World, path: str) -> bool:
    try:
        with open(_crc(world, path), "rb") as file:
            return file.read() == world.store.read(HINT)
    except FileNotFoundError:
        return True
