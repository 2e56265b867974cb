"""Work folders: swept when their owner is dead, never while it lives, wherever it lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from indextables.storage import workfolders
from indextables.storage.workfolders import ABANDONED_S, LOCK, PREFIX, UNLOCKED

HOLDER = """
import sys
from indextables.storage.workfolders import new_folder
folder = new_folder("split", sys.argv[1])
open(folder + "/data", "w").close()
print(folder, flush=True)
sys.stdin.read()
"""
WRITER = """
import sys, pyarrow as pa
import indextables
from indextables.storage.local import LocalStore
def stopped(self, path, local_path):
    print("here", flush=True)
    sys.stdin.read()
LocalStore.put_file = stopped
indextables.write(pa.table({"id": list(range(50))}), sys.argv[1],
                  options={"spark.indextables.indexWriter.tempDirectoryPath": sys.argv[2]})
"""


@contextmanager
def child(script: str, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that has said one line and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_live_process_keeps_its_folder_and_a_killed_one_loses_it(tmp_path: Path) -> None:
    with child(HOLDER, str(tmp_path)) as (process, folder):
        age(Path(folder).parent, 10 * ABANDONED_S)
        assert workfolders.sweep(str(tmp_path)) == []
        assert (Path(folder) / "data").exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (Path(folder) / "data").exists()
        assert workfolders.sweep(str(tmp_path)) == [str(Path(folder).parent)]
    assert list(tmp_path.iterdir()) == []


def test_a_live_process_of_another_pid_namespace_keeps_its_folder(tmp_path: Path) -> None:
    """There its id is 1, or one that nobody has here: no id may decide."""
    inside = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let us make a PID namespace")
    process = subprocess.Popen(
        [*inside, sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert workfolders.sweep(str(tmp_path)) == []
        assert (folder / "data").exists()
    finally:
        process.communicate("")


def test_a_killed_writer_leaves_a_folder_that_the_next_one_sweeps(tmp_path: Path) -> None:
    import pyarrow as pa

    import indextables

    scratch, path = tmp_path / "scratch", str(tmp_path / "table")
    scratch.mkdir()
    with child(WRITER, path, str(scratch)) as (process, told):
        assert told == "here"
        process.send_signal(signal.SIGKILL)
        process.wait()
    (left,) = scratch.iterdir()
    assert list(left.glob("split-*/*"))
    options = {"spark.indextables.indexWriter.tempDirectoryPath": str(scratch)}
    indextables.write(pa.table({"id": [1]}), path, options=options)
    assert list(scratch.iterdir()) == []
    assert indextables.open(path).count() == 1


def test_the_last_folder_takes_the_base_with_it(tmp_path: Path) -> None:
    first, second = (workfolders.new_folder("a", str(tmp_path)) for _ in range(2))
    assert os.path.dirname(first) == os.path.dirname(second)
    workfolders.release(first)
    assert not os.path.exists(first)
    assert os.path.isdir(second)
    workfolders.release(second)
    assert list(tmp_path.iterdir()) == []


def test_only_folders_that_were_given_out_are_released(tmp_path: Path) -> None:
    other = tmp_path / f"{PREFIX}other" / "split-1"
    other.mkdir(parents=True)
    workfolders.release(str(other))
    workfolders.release(str(tmp_path))
    assert other.exists()


@pytest.mark.parametrize(
    ("names", "seconds", "swept"),
    [
        ((), 0, False),
        (("draft",), 0, False),
        ((), ABANDONED_S + 60, True),
        (("draft",), ABANDONED_S + 60, True),
        ((UNLOCKED,), 9 * ABANDONED_S, False),
        ((LOCK,), 0, True),
    ],
)
def test_folders_without_an_owner(
    tmp_path: Path, names: tuple[str, ...], seconds: float, swept: bool
) -> None:
    base = tmp_path / f"{PREFIX}x"
    base.mkdir()
    for name in names:
        (base / name).touch()
    age(base, seconds)
    assert workfolders.sweep(str(tmp_path)) == ([str(base)] if swept else [])
    assert base.exists() != swept


def test_other_names_and_links_are_left_alone(tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / LOCK).touch()
    (tmp_path / f"{PREFIX}link").symlink_to(treasure)
    (tmp_path / f"{PREFIX}file").touch()
    assert workfolders.sweep(str(tmp_path)) == []
    assert (treasure / LOCK).exists()


def test_a_forked_child_neither_removes_nor_keeps_the_folder(tmp_path: Path) -> None:
    folder = workfolders.new_folder("a", str(tmp_path))
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        workfolders.release(folder)
        workfolders._at_exit()
        os.write(write, b"x")
        time.sleep(60)
        os._exit(0)
    try:
        assert os.read(read, 1) == b"x"
        assert os.path.isdir(folder)
        assert workfolders.sweep(str(tmp_path)) == []
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert os.path.isdir(folder)
    workfolders.release(folder)


def test_a_child_that_lives_on_does_not_hold_its_parents_lock(tmp_path: Path) -> None:
    script = HOLDER.replace(
        "print(folder", "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint(folder"
    )
    with child(script, str(tmp_path)) as (process, folder):
        children = subprocess.run(
            ["ps", "--ppid", str(process.pid), "-o", "pid="], capture_output=True, text=True
        ).stdout.split()
        try:
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert workfolders.sweep(str(tmp_path)) == [str(Path(folder).parent)]
        finally:
            for pid in children:
                os.kill(int(pid), signal.SIGKILL)


def test_threads_share_a_base(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(50):
            folder = workfolders.new_folder("t", str(tmp_path))
            assert os.path.isdir(folder)
            workfolders.release(folder)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(tmp_path.iterdir()) == []
