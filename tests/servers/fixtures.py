"""Session fixtures: each server is started once, on first use, and killed at the end.

Every fixture gives a ``Backend``: a tuple ``(uri, options)`` for ``open_store``. A test asks for
``backend.fresh()`` to get a table uri of its own. Tests that use one carry the mark ``server``,
which ``pytest_collection_modifyitems`` adds by itself.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servers import install, launch
from servers.launch import Backend, Running
from servers.processes import ServerDiedError

FIXTURES = frozenset(("s3_ministack", "s3_seaweed", "azure_azurite", "gcs_server", "gcs_careless"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.server)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install the server programs in the background while tests that need none are running."""
    if session.config.option.collectonly:
        return
    if any(item.get_closest_marker("server") for item in session.items):
        folder = _programs(session.config)
        for name in ("ministack", "azurite-blob"):
            threading.Thread(target=_prefetch, args=(folder, name), daemon=True).start()


def _prefetch(folder: Path, name: str) -> None:
    with contextlib.suppress(BaseException):
        install.program(folder, name)


def _programs(config: pytest.Config) -> Path:
    chosen = os.environ.get("INDEXTABLES_SERVERS_DIR")
    return Path(chosen) if chosen else Path(config.cache.mkdir("servers"))


@pytest.fixture(scope="session")
def server_programs(pytestconfig: pytest.Config) -> Path:
    """The cached folder of installed server programs."""
    return _programs(pytestconfig)


def _started(start: Callable[[], Running], tries: int = 3) -> Running:
    """Start again when another process took a port between the choice and the start."""
    for _ in range(tries - 1):
        with contextlib.suppress(ServerDiedError):
            return start()
    return start()


def _running(start: Callable[[], Running]) -> Iterator[Backend]:
    running = _started(start)
    try:
        yield running.backend
    finally:
        running.server.stop()


@pytest.fixture(scope="session")
def s3_ministack(
    server_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backend]:
    """An S3 server in pure Python: many writers, quick."""
    work = tmp_path_factory.mktemp("ministack")
    yield from _running(lambda: launch.start_ministack(server_programs, work))


@pytest.fixture(scope="session")
def s3_seaweed(
    server_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backend]:
    """An S3 server with a real store on disk; keep to eight writers, its locks are slow."""
    work = tmp_path_factory.mktemp("seaweed")
    yield from _running(lambda: launch.start_seaweed(server_programs, work))


@pytest.fixture(scope="session")
def azure_azurite(
    server_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backend]:
    """Azure Blob Storage as its vendor emulates it."""
    work = tmp_path_factory.mktemp("azurite")
    yield from _running(lambda: launch.start_azurite(server_programs, work))


@pytest.fixture(scope="session")
def gcs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """Our conditional GCS server."""
    yield from _running(lambda: launch.start_gcs(tmp_path_factory.mktemp("gcs")))


@pytest.fixture(scope="session")
def gcs_careless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """A GCS server that ignores conditions, as some emulators do."""
    work = tmp_path_factory.mktemp("gcs-careless")
    yield from _running(lambda: launch.start_gcs(work, ignore_conditions=True))


@pytest.fixture(scope="session")
def s3_counting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """Our S3 server that counts requests; it needs nothing installed."""
    yield from _running(lambda: launch.start_counting(tmp_path_factory.mktemp("counting")))
