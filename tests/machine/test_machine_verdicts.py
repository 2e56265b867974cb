"""Whoever draws conclusions about data from errors draws none from the condition of the machine."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from store_doubles import READS, RecordingStore, ShortStore

import indextables
from indextables import maintenance
from indextables.config import Config
from indextables.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    CorruptFileError,
    IndexTablesError,
    MachineError,
    MaintenanceError,
    SchemaMismatchError,
    TransientStorageError,
)
from indextables.log.log import TransactionLog
from indextables.log.read.cache import SHARED
from indextables.maintenance.prewarm import prewarm
from indextables.maintenance.purging import needed_files
from indextables.splits.lookup import codes as codes_module
from indextables.splits.lookup.codes import CodeBuilder, parse_codes
from indextables.splits.lookup.colindex.metrics import ERROR, FALLBACK, METRICS
from indextables.splits.lookup.colindex.opening import forget_indexes
from indextables.splits.read.reader import forget_readers
from indextables.splits.read.workspace import run as run_tantivy
from indextables.splits.rows.layout import parse_directory
from indextables.splits.write.split_writer import SplitWriter
from indextables.storage.base import Store, open_store
from indextables.storage.blockfiles import BlockFolder
from indextables.storage.classify import Verdict, classify
from indextables.storage.commit import commit_slot
from indextables.storage.machine import explained, machine_error, refuse_to_judge
from indextables.xref import build

OPTIONS = {
    "spark.indextables.storage.fsync": "false",
    "spark.indextables.checkpoint.enabled": "false",
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.xref.query.minSplitsForXRef": 1,
}
NUMBERS = [
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EINTR,
    errno.ETIMEDOUT,
]
Error = Callable[[], BaseException]
CONDITIONS: dict[str, Error] = {
    **{errno.errorcode[n]: (lambda n=n: OSError(n, os.strerror(n))) for n in NUMBERS},
    "MemoryError": MemoryError,
    "ArrowMemoryError": lambda: pa.lib.ArrowMemoryError("malloc of size 64 failed"),
    "TimeoutError": TimeoutError,
    "future": FutureTimeoutError,
    "tantivy": lambda: ValueError("IO Error: Too many open files (os error 24)"),
    "thread": lambda: RuntimeError("can't start new thread"),
}
FROM_STORES: dict[str, Error] = {
    "machine": lambda: MachineError("this process has no file descriptor left"),
    "memory": MemoryError,
    "raw": lambda: OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
    "full": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    for k in range(4):
        data = pa.table({"id": [k, k + 10], "m": ["big fox", "small dog"]})
        indextables.write(data, str(path), text=["m"], options=OPTIONS)
    return path


def short_log(path: Path, error: Error, **options: Any) -> TransactionLog:
    """The table's log on a store whose reads of splits fail."""
    forget_readers()
    forget_indexes()
    SHARED.invalidate()
    store = ShortStore(open_store(str(path)), error, **options)
    return TransactionLog.open(str(path), config=Config.of(OPTIONS), store=store)


def facts(path: Path) -> tuple[Any, ...]:
    """Everything a verdict could have changed."""
    SHARED.invalidate()
    snapshot = indextables.open(str(path), options=OPTIONS).snapshot
    files = sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())
    return snapshot.version, dict(snapshot.skips), len(snapshot.xrefs), files


# -- the list ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_are_recognised_through_a_chain(name: str) -> None:
    bare = CONDITIONS[name]()
    wrapped = IndexTablesError("the index refused a query")
    wrapped.__cause__ = bare
    for error in (bare, wrapped):
        found = machine_error(error, path="p")
        assert found is not None
        assert found.hint
        with pytest.raises(MachineError):
            refuse_to_judge(error)
        with pytest.raises(MachineError), explained():
            raise error


@pytest.mark.parametrize(
    "error",
    [
        CorruptFileError("a wrong checksum"),
        FileNotFoundError(errno.ENOENT, "gone"),
        PermissionError(errno.EACCES, "refused"),
        OSError(errno.EIO, "medium error"),
        ValueError("os error"),
    ],
    ids=repr,
)
def test_other_errors_are_judged(error: Exception) -> None:
    assert machine_error(error) is None
    refuse_to_judge(error)
    with pytest.raises(type(error)), explained():
        raise error


def test_a_machine_error_is_no_storage_error_and_survives_a_pickle() -> None:
    import pickle

    made = machine_error(OSError(errno.ENOSPC, "full"), path="p", folder="/w", setting="s.x")
    again = pickle.loads(pickle.dumps(made))
    assert str(again) == str(made)
    for word in ("/w", "s.x", "path: p", "ITX-2200"):
        assert word in str(made)


def test_object_stores_tell_the_machine_from_the_network() -> None:
    for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT):
        assert classify(OSError(number, "x")) is Verdict.MACHINE
    assert classify(MemoryError()) is Verdict.MACHINE
    for error in (TimeoutError(), OSError(errno.ECONNRESET, "x"), OSError(errno.ETIMEDOUT, "x")):
        assert classify(error) is Verdict.TRANSIENT


# -- the places ----------------------------------------------------------------------------------

PLACES: dict[str, Callable[[TransactionLog], Any]] = {
    "doctor": maintenance.doctor,
    "merge": maintenance.merge_splits,
    "xref": build,
    "delete": lambda log: maintenance.delete_rows(log, "m indexquery 'fox'"),
    "prewarm": prewarm,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FROM_STORES)
def test_no_verdict_on_splits(table: Path, place: str, name: str) -> None:
    before = facts(table)
    log = short_log(table, FROM_STORES[name])
    with pytest.raises(MachineError) as raised:
        PLACES[place](log)
    assert raised.value.hint or name == "machine"
    assert log.store.failed  # type: ignore[attr-defined]
    assert facts(table) == before


@pytest.mark.parametrize("place", ["merge", "xref"])
def test_a_store_that_does_not_answer_is_no_verdict(table: Path, place: str) -> None:
    before = facts(table)
    with pytest.raises(TransientStorageError):
        PLACES[place](short_log(table, lambda: TransientStorageError("503")))
    assert facts(table) == before


def test_the_doctor_goes_on_past_a_split_the_store_did_not_give(table: Path) -> None:
    found = maintenance.doctor(short_log(table, lambda: TransientStorageError("503")))
    assert {(f.severity, f.check) for f in found} == {("warning", "not checked")}
    assert len(found) == 4


def test_damage_is_judged_still(table: Path) -> None:
    log = short_log(table, lambda: CorruptFileError("a wrong checksum"))
    found = maintenance.doctor(log)
    assert [f.check for f in found if f.severity == "error"] == ["split contents"] * 4
    assert maintenance.merge_splits(log).metrics.status == "error"
    assert facts(table)[1], "a split that is damaged is noted"
    assert build(log) == []


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_a_merge_does_not_blame_a_split_for_the_work_folder(
    table: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    before = facts(table)
    monkeypatch.setattr(SplitWriter, "_append", fail)
    with pytest.raises((OSError, MachineError)):
        maintenance.merge_splits(indextables.open(str(table), options=OPTIONS).log)
    assert facts(table) == before


def test_rows_that_do_not_fit_are_the_splits_own_fault(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise SchemaMismatchError("column 'id' may not be null")

    monkeypatch.setattr(SplitWriter, "_append", fail)
    log = indextables.open(str(table), options=OPTIONS).log
    assert maintenance.merge_splits(log).metrics.status == "error"
    assert facts(table)[1]


@pytest.mark.parametrize("name", FROM_STORES)
def test_no_verdict_on_the_log(table: Path, name: str) -> None:
    indextables.open(str(table), options=OPTIONS).checkpoint()
    error = FROM_STORES[name]
    log = short_log(table, lambda: IndexTablesError("unused"), suffix=".never")
    log.store = ShortStore(log.store, lambda: _as_machine(error()), suffix="")
    SHARED.invalidate()
    for verb in (maintenance.doctor, needed_files):
        with pytest.raises(MachineError):
            verb(log)


def _as_machine(error: BaseException) -> BaseException:
    """What a local store makes of it."""
    return machine_error(error) or error


def test_a_purge_does_not_call_a_checkpoint_unreadable(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = indextables.open(str(table), options=OPTIONS).log

    def short(self: Any, version: int | None = None, **_: Any) -> Any:
        raise MachineError("there is not enough memory")

    real = TransactionLog.snapshot

    def only_old(self: Any, version: int | None = None, **options: Any) -> Any:
        return real(self) if version is None else short(self, version)

    monkeypatch.setattr(TransactionLog, "snapshot", only_old)
    with pytest.raises(MachineError):
        needed_files(log)

    def broken(self: Any, version: int | None = None, **options: Any) -> Any:
        if version is None:
            return real(self)
        raise CorruptFileError("a checkpoint")

    monkeypatch.setattr(TransactionLog, "snapshot", broken)
    with pytest.raises(MaintenanceError, match="nothing is purged"):
        needed_files(log)


# -- column indexes and cross-references ----------------------------------------------------------


@pytest.mark.parametrize("name", FROM_STORES)
def test_indexes_are_not_broken_by_the_machine(table: Path, name: str) -> None:
    indextables.open(str(table), options=OPTIONS).create_index("id")
    before = facts(table)
    log = short_log(table, FROM_STORES[name], suffix=".idx")
    opened = indextables.Table(log, log.snapshot())
    METRICS.reset()
    assert opened.count("id = 2") == 1, "rows are found without the index"
    assert log.store.failed  # type: ignore[attr-defined]
    assert METRICS.lookups[("id", ERROR)] == 0
    assert METRICS.lookups[("id", FALLBACK)] > 0
    for verb in (opened.reindex, opened.merge):
        with pytest.raises(MachineError):
            verb()
    assert facts(table) == before


@pytest.mark.parametrize("name", FROM_STORES)
def test_a_cross_reference_that_cannot_be_read_keeps_every_split(table: Path, name: str) -> None:
    indextables.open(str(table), options=OPTIONS).build_xref()
    opened = indextables.open(str(table), options=OPTIONS)
    xref = opened.xrefs()[0].path
    log = short_log(table, FROM_STORES[name], suffix=xref)
    opened = indextables.Table(log, log.snapshot())
    assert opened.count("m indexquery 'fox'") == 4


# -- a commit ------------------------------------------------------------------------------------


class _AfterWrite(RecordingStore):
    """The create is applied; everything that is asked afterwards fails."""

    def __init__(self, inner: Store, error: Error, applied: bool) -> None:
        super().__init__(inner)
        self._error = error
        self._applied = applied

    def put_if_absent(self, path: str, data: bytes) -> None:
        if self._applied:
            self.inner.put_if_absent(path, data)
        else:
            raise self._error()

    def read(self, path: str) -> bytes:
        raise self._error()


@pytest.mark.parametrize("error", [MachineError("no descriptor"), MemoryError()], ids=repr)
def test_a_commit_that_may_have_landed_is_never_called_failed(
    tmp_path: Path, error: BaseException
) -> None:
    """The caller would delete the files of a version that readers see."""

    def overtaken() -> bool:
        raise error

    ticks = iter(range(1000))
    store = _AfterWrite(open_store(str(tmp_path)), lambda: error, applied=True)
    with pytest.raises(CommitStateUnknownError):
        commit_slot(
            store,
            "a",
            b"x",
            is_mine=lambda found: found == b"x",
            overtaken=overtaken,
            clock=lambda: next(ticks),
            sleep=lambda _: None,
        )
    refused = _AfterWrite(open_store(str(tmp_path)), lambda: error, applied=False)
    with pytest.raises(CommitFailedError, match="not written"):
        commit_slot(refused, "b", b"x", is_mine=lambda found: found == b"x")


class _Refusing(RecordingStore):
    """No room for the version file of the next commit."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise MachineError("there is no space left")


@pytest.mark.parametrize("verb", [maintenance.merge_splits, build])
def test_a_commit_without_room_leaves_no_files(table: Path, verb: Any) -> None:
    before = facts(table)
    log = short_log(table, MemoryError, suffix=".never")
    log.store = _Refusing(log.store)
    with pytest.raises(CommitFailedError, match="no space left"):
        verb(log)
    assert facts(table) == before


def test_a_later_group_that_fails_takes_the_earlier_ones_files_along(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from indextables.maintenance import rewrite as rewriting

    before = facts(table)
    log = short_log(table, MemoryError, suffix=".never")
    done: list[Any] = []

    def run(tasks: Any) -> Any:
        for task in tasks:
            done.append(rewriting.rewrite(task))
            yield done[-1]
        raise MachineError("there is no space left")

    with pytest.raises(MachineError):
        maintenance.merge_splits(log, run=run)
    assert [r.add is not None for r in done] == [True]
    assert facts(table) == before


@pytest.mark.parametrize("name", CONDITIONS)
def test_reads_in_threads_tell_what_the_machine_lacks(name: str) -> None:
    from indextables.table.execute import in_order

    def fail(number: int) -> int:
        if number:
            raise CONDITIONS[name]()
        return number

    for items in ([1], [0, 1], range(20)):
        with pytest.raises(MachineError):
            list(in_order(fail, items))
    assert list(in_order(lambda n: n, range(20))) == list(range(20))


# -- decoders, the index, the disk cache ----------------------------------------------------------


def test_decoders_do_not_call_a_lack_of_memory_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = CodeBuilder()
    builder.add(pa.array(["a", "b"]).dictionary_encode())
    raw = builder.finish()
    assert raw is not None

    def short(*_: Any, **__: Any) -> Any:
        raise pa.lib.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(codes_module.pa, "decompress", short)
    with pytest.raises(MachineError):
        parse_codes(raw, pa.string(), 2, "p")


def test_a_directory_is_not_damaged_by_a_lack_of_memory(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = indextables.open(str(table), options=OPTIONS)
    from indextables.splits.format import members
    from indextables.splits.read.reader import SplitReader

    add = next(iter(opened.snapshot.files()))
    raw = SplitReader.open(opened.store, add).member(members.ROWS_DIRECTORY)

    def short(*_: Any) -> Any:
        raise pa.lib.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(pa.ipc, "read_schema", short)
    with pytest.raises(MachineError):
        parse_directory(raw, "p")


@pytest.mark.parametrize("name", ["tantivy", "thread", "EMFILE", "MemoryError"])
def test_the_index_does_not_refuse_what_the_machine_refused(name: str) -> None:
    def fail() -> Any:
        raise CONDITIONS[name]()

    with pytest.raises(MachineError):
        run_tantivy(fail, "p")


def test_a_cache_folder_that_cannot_be_listed_is_not_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = BlockFolder(str(tmp_path), 10_000, min_free_bytes=0)
    folder.save("k", 0, b"x" * 4000)
    used = folder.usage().total_bytes
    assert used > 4000
    real = os.scandir

    def short(path: Any) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "scandir", short)
    folder.save("k", 1, b"x" * 900)
    monkeypatch.setattr(os, "scandir", real)
    assert folder.load("k", 1, 1) is not None
    for index in range(2, 4):
        folder.save("k", index, b"x" * 4000)
    assert folder.usage().total_bytes <= 10_000, "the budget is kept all the same"


def test_reads_are_all_of_them() -> None:
    assert {"read", "read_range", "read_ranges", "stat"} <= READS
