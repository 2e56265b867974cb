"""The local store: crashes, odd file systems, durability, and its temporaries."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from indextables.errors import (
    AmbiguousWriteError,
    CommitFailedError,
    ConfigError,
    MachineError,
    ObjectExistsError,
    StorageError,
    UnsupportedStoreError,
)
from indextables.storage import commit_slot, open_store


def failing_with(code: int):
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK])
def test_a_file_system_without_hard_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    store = open_store(str(tmp_path))
    monkeypatch.setattr(os, "link", failing_with(code))
    with pytest.raises(UnsupportedStoreError, match="no hard links"):
        store.put_if_absent("a", b"1")
    with pytest.raises(UnsupportedStoreError):
        store.probe_conditional_create()
    with pytest.raises(CommitFailedError, match="hard links"):
        commit_slot(store, "a", b"1", is_mine=lambda found: found == b"1")
    assert os.listdir(tmp_path) == []


def test_a_link_whose_reply_was_lost_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path))
    real = os.link

    def applied_but_denied(source: str, target: str) -> None:
        real(source, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", applied_but_denied)
    store.put_if_absent("a", b"1")
    assert store.read("a") == b"1"


def test_an_io_error_at_the_link_is_ambiguous_and_others_are_definite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path))
    monkeypatch.setattr(os, "link", failing_with(errno.EIO))
    with pytest.raises(AmbiguousWriteError):
        store.put_if_absent("a", b"1")
    monkeypatch.setattr(os, "link", failing_with(errno.EACCES))
    with pytest.raises(StorageError) as raised:
        store.put_if_absent("a", b"1")
    assert type(raised.value) is StorageError


def test_a_full_disk_is_definite_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path))
    store.put("a", b"old")
    monkeypatch.setattr(os, "fsync", failing_with(errno.ENOSPC))
    for call in (lambda: store.put("a", b"new"), lambda: store.put_if_absent("b", b"new")):
        with pytest.raises(MachineError, match=f"no space left in {tmp_path}"):
            call()
    assert store.read("a") == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_fsync_can_be_switched_off_for_data_but_not_for_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    quick = open_store(str(tmp_path), {"spark.indextables.storage.fsync": "false"})
    quick.put("data/a.split", b"1")
    assert synced == []
    quick.put_if_absent("log/0", b"1")
    assert len(synced) == 2
    synced.clear()
    open_store(str(tmp_path)).put("data/b.split", b"1")
    assert len(synced) == 2
    with pytest.raises(ConfigError, match="fsync"):
        open_store(str(tmp_path), {"spark.indextables.storage.fsync": "maybe"})


WRITER = """
import os, sys
from indextables.storage import open_store
store = open_store(sys.argv[1])
print("started", flush=True)
number = 0
while True:
    store.put_if_absent(f"log/{number:06d}", b"x" * 100_000 + b"end")
    store.put("hint", str(number).encode() * 5000 + b"end")
    number += 1
"""


def test_a_killed_writer_leaves_whole_objects_only(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"started\n"
        deadline = time.monotonic() + 20
        while not (tmp_path / "log" / "000010").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        writer.send_signal(signal.SIGKILL)
    store = open_store(str(tmp_path))
    listed = list(store.list(recursive=True))
    assert len(listed) >= 10
    for info in listed:
        assert store.read(info.path).endswith(b"end")
        assert not info.path.endswith(".tmp")
    assert store.read(f"log/{len(list(store.list('log'))) - 1:06d}").endswith(b"end")


def create_many(root: str, writer: int, rounds: int) -> list[int]:
    store, won = open_store(root), []
    for number in range(rounds):
        try:
            store.put_if_absent(f"race/{number}", str(writer).encode())
            won.append(number)
        except ObjectExistsError:
            continue
    return won


def test_processes_that_race_win_each_slot_once(tmp_path: Path) -> None:
    rounds, writers = 60, 4
    context = multiprocessing.get_context("forkserver")
    with context.Pool(writers) as pool:
        won = pool.starmap(create_many, [(str(tmp_path), n, rounds) for n in range(writers)])
    assert sorted(number for numbers in won for number in numbers) == list(range(rounds))
    store = open_store(str(tmp_path))
    for writer, numbers in enumerate(won):
        assert all(store.read(f"race/{number}") == str(writer).encode() for number in numbers)


def test_writing_below_a_file_is_a_definite_error(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("a", b"1")
    with pytest.raises(StorageError) as raised:
        store.put("a/b", b"2")
    assert type(raised.value) is StorageError
    assert store.read("a") == b"1"


def test_the_table_folder_is_made_on_the_first_write(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "deep" / "er" / "table"))
    assert list(store.list(recursive=True)) == []
    assert store.list_dirs() == []
    assert not store.exists("x")
    assert not (tmp_path / "deep").exists()
    store.put_if_absent("_log/0", b"1")
    assert [info.path for info in store.list(recursive=True)] == ["_log/0"]


def test_a_directory_without_a_file_is_no_folder(tmp_path: Path) -> None:
    """An interrupted deletion leaves one; on an object store there would be nothing."""
    store = open_store(str(tmp_path))
    store.put("log/full/deep/x", b"1")
    (tmp_path / "log" / "empty" / "deep").mkdir(parents=True)
    assert store.list_dirs("log") == ["log/full"]
    assert store.list_folder("log").folders == ["log/full"]


# -- Hadoop's checksums ---------------------------------------------------------------------------


def checksum_of(root: Path, path: str) -> Path:
    """A checksum as Hadoop leaves it beside a file it wrote."""
    file = root / path
    crc = file.parent / f".{file.name}.crc"
    crc.write_bytes(b"crc\0 of other bytes")
    return crc


@pytest.mark.parametrize("name", ["file", "a/b/_last_checkpoint"])
def test_a_file_that_is_replaced_or_deleted_loses_its_checksum(tmp_path: Path, name: str) -> None:
    store = open_store(str(tmp_path))
    source = tmp_path / "source"
    source.write_bytes(b"x")
    changes: list[Callable[[], None]] = [
        lambda: store.put(name, b"2"),
        lambda: store.put_file(name, str(source)),
        lambda: store.delete([name]),
    ]
    for change in changes:
        store.put(name, b"1")
        crc = checksum_of(tmp_path, name)
        change()
        assert not crc.exists()


def test_the_checksum_is_gone_before_the_new_bytes_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path))
    store.put("file", b"1")
    crc = checksum_of(tmp_path, "file")
    seen = []
    plain = os.replace

    def replace(source: str, target: str) -> None:
        seen.append(crc.exists())
        plain(source, target)

    monkeypatch.setattr(os, "replace", replace)
    store.put("file", b"2")
    assert seen == [False]


def test_a_create_takes_away_the_checksum_of_a_file_that_is_gone(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put_if_absent("file", b"1")
    crc = checksum_of(tmp_path, "file")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("file", b"2")
    assert crc.exists(), "the file is still the one the checksum was made of"
    (tmp_path / "file").unlink()
    store.put_if_absent("file", b"2")
    assert not crc.exists()


def test_names_too_long_for_a_checksum_are_written_and_deleted(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    name = "n" * 252
    store.put(name, b"1")
    store.put_if_absent(name[:-1], b"1")
    store.delete([name, name[:-1]])
    assert not store.exists(name)
