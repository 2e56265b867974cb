"""What a Spark worker process needs once, before its first task of ours.

Two costs of every Python task have nothing to do with its work. After a task the worker collects
garbage over all modules it ever imported: what is there when we start is not garbage, and frozen it
costs nothing. And a worker writes its last bytes in small pieces, each of which the kernel holds
back until the JVM has acknowledged the one before, for up to 40 ms: without that delay on its
sockets a small task takes half the time.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import stat

_settled = False


def settle_worker() -> None:
    """Freeze what is imported and send without delay; once per process."""
    global _settled
    if not _settled:
        gc.collect()
        gc.freeze()
        send_at_once()
        _settled = True


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
