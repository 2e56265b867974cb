"""What makes our tasks cheap in a Spark worker process, which runs many of them.

Two costs of every Python task have nothing to do with its work. After a task the worker collects
garbage over all it ever imported or keeps open for the next task (a thousand open splits: 75 ms).
None of that is garbage, and frozen it costs nothing; whatever cycles are frozen with it are looked
for every so many tasks. And a worker writes its last bytes in small pieces, each of which the
kernel holds back until the JVM has acknowledged the one before, for up to 40 ms: without that delay
on its sockets a small task takes half the time.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import stat
from collections.abc import Iterator

TASKS_PER_SWEEP = 32
_settled = False
_tasks = 0


@contextlib.contextmanager
def settled_worker() -> Iterator[None]:
    """One task: nothing that was there before it, or stays open after it, is garbage."""
    settle_worker()
    try:
        yield
    finally:
        keep_open()


def settle_worker() -> None:
    """Freeze what is imported and send without delay; once per process."""
    global _settled
    if not _settled:
        gc.collect()
        gc.freeze()
        send_at_once()
        _settled = True


def keep_open() -> None:
    """Freeze what a task leaves for the next one; now and then look through all of it."""
    global _tasks
    _tasks += 1
    if _tasks % TASKS_PER_SWEEP == 0:
        gc.unfreeze()
        gc.collect()
    gc.freeze()


def send_at_once() -> int:
    """Turn the delay of small writes off for every TCP connection of this process; how many."""
    return sum(_sends_at_once(fd) for fd in _open_files())


def _open_files() -> list[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            return [int(name) for name in os.listdir(folder) if name.isdigit()]
    return []


def _sends_at_once(fd: int) -> bool:
    with contextlib.suppress(OSError):
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return False
        with socket.socket(fileno=os.dup(fd)) as connection:
            if connection.family not in (socket.AF_INET, socket.AF_INET6):
                return False
            connection.getpeername()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return True
    return False
