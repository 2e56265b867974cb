"""Reading files of the log, each within ``checkpoint.read.timeoutSeconds``.

A store that hangs must not hang a program that opens a table. The wait for one answer is bounded by
the client (``storage.timeoutSeconds``, once per try); this bounds all tries of one file together.
Files that are read side by side share a turn, so a list of them has as many turns as it takes. What
did not come in time is ``TransientStorageError``: it says nothing about the file, and no older
checkpoint is taken in its place.

Only remote stores are bounded. The read that was given up ends in a thread of its own, which keeps
nothing alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

from indextables.config import Config
from indextables.errors import StorageError, TransientStorageError
from indextables.storage.base import Store
from indextables.storage.machine import explained

T = TypeVar("T")
SETTING = "spark.indextables.checkpoint.read.timeoutSeconds"


def read_file(store: Store, path: str, config: Config) -> bytes:
    """The bytes of one file of the log."""
    return in_time(store, path, config, lambda: store.read(path))


def read_files(
    store: Store, paths: Sequence[str], parallelism: int, config: Config
) -> list[bytes | StorageError]:
    """Several files, ``parallelism`` at once: the bytes of each, or its error."""
    if not paths:
        return []
    turns = -(-len(paths) // max(1, parallelism))
    return in_time(store, paths[0], config, lambda: store.read_many(paths, parallelism), turns)


def in_time(store: Store, path: str, config: Config, read: Callable[[], T], turns: int = 1) -> T:
    """What ``read`` returns, if it does in time."""
    if not store.capabilities.remote:
        return read()
    seconds = config["checkpoint.read.timeoutSeconds"] * turns
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(read())
        except BaseException as error:
            answer.set_exception(error)

    with explained():
        threading.Thread(target=run, name="indextables-log", daemon=True).start()
    try:
        return answer.result(min(seconds, threading.TIMEOUT_MAX))
    except FutureTimeoutError:
        if answer.done():
            raise
        raise TransientStorageError(
            f"no answer from the store in {seconds} seconds",
            path=path,
            hint=f"Try again, or raise {SETTING}",
        ) from None
