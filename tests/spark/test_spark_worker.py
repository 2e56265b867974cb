"""What is done once per worker and after each task, without Spark."""

from __future__ import annotations

import gc
import socket
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from indextables.spark.tasks import worker


class Knot:
    """An object that only the cycle collector can free."""

    def __init__(self) -> None:
        self.self = self


@pytest.fixture(autouse=True)
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker, "_settled", False)
    monkeypatch.setattr(worker, "_tasks", 0)
    yield
    gc.unfreeze()


def test_what_a_task_leaves_open_is_frozen() -> None:
    with worker.settled_worker():
        before = gc.get_freeze_count()
        kept = [Knot() for _ in range(1000)]
    assert gc.get_freeze_count() - before > len(kept) // 2


def test_it_is_frozen_after_a_failure_too() -> None:
    kept: list[Any] = []

    def fails() -> None:
        with worker.settled_worker():
            kept.append(gc.get_freeze_count())
            kept.extend(Knot() for _ in range(1000))
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fails()
    assert gc.get_freeze_count() - kept[0] > 500


def test_frozen_garbage_is_found_after_some_tasks() -> None:
    with worker.settled_worker():
        found = weakref.ref(Knot())
    for _ in range(worker.TASKS_PER_SWEEP - 2):
        with worker.settled_worker():
            pass
    assert found() is not None
    with worker.settled_worker():
        pass
    assert found() is None


def test_connections_send_at_once_and_nothing_else_is_touched() -> None:
    option = (socket.IPPROTO_TCP, socket.TCP_NODELAY)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as other,
    ):
        assert one.getsockopt(*option) == other.getsockopt(*option) == 0
        left, right = socket.socketpair()
        with left, right:
            assert worker.send_at_once() >= 2
        assert one.getsockopt(*option)
        assert other.getsockopt(*option)
        assert not server.getsockopt(*option)
        one.sendall(b"still open")
        assert other.recv(10) == b"still open"
