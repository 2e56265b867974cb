"""Stores against the plain client on the same loopback server, in the same run."""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from servers.launch import Backend, start_ministack

from indextables.storage import Store, commit_slot, open_store
from indextables.storage.diskcache import CacheSettings, CachingStore, DiskCache

OBJECT_BYTES = 16 << 20
RANGES = 256


@pytest.fixture(scope="module")
def backend(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backend]:
    chosen = os.environ.get("INDEXTABLES_SERVERS_DIR")
    programs = Path(chosen) if chosen else Path(pytestconfig.cache.mkdir("servers"))
    running = start_ministack(programs, tmp_path_factory.mktemp("ministack"))
    yield running.backend
    running.server.stop()


@pytest.fixture(scope="module")
def store(backend: Backend) -> Store:
    opened = open_store(backend.fresh(), backend.options)
    opened.put("big.split", random.Random(1).randbytes(OBJECT_BYTES))
    return opened


@pytest.fixture(scope="module")
def plain(store: Any) -> tuple[Any, str]:
    """The file system of the client library with its defaults, and the root in its spelling."""
    import s3fs

    options = {k: v for k, v in store._options.items() if not k.startswith("spark.")}
    return s3fs.S3FileSystem(**options), store.uri.partition("://")[2]


def best(call: Callable[[], object], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def median(call: Callable[[int], object], rounds: int) -> float:
    times = []
    for number in range(rounds):
        start = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def test_scattered_ranges(store: Store, plain: tuple[Any, str], report: Any) -> None:
    fs, root = plain
    rng = random.Random(2)
    starts = sorted(rng.randrange(OBJECT_BYTES - 4096) for _ in range(RANGES))
    ranges = [(start, start + 4096) for start in starts]
    path = f"{root}/big.split"
    paths, firsts, lasts = [path] * RANGES, [a for a, _ in ranges], [b for _, b in ranges]
    expected = fs.cat_ranges(paths, firsts, lasts)
    assert store.read_ranges("big.split", ranges) == expected
    ours = best(lambda: store.read_ranges("big.split", ranges))
    peer = best(lambda: fs.cat_ranges(paths, firsts, lasts))
    report(f"{RANGES} ranges of 4 KB", ours, peer, "s3fs.cat_ranges")


def test_small_object_read(store: Store, plain: tuple[Any, str], report: Any) -> None:
    fs, root = plain
    store.put("small", b"x" * 1000)
    ours = median(lambda _: store.read("small"), 60)
    peer = median(lambda _: fs.cat_file(f"{root}/small"), 60)
    report("read 1 KB", ours, peer, "s3fs.cat_file")


def test_commit(store: Store, plain: tuple[Any, str], tmp_path: Path, report: Any) -> None:
    fs, root = plain
    entry = b"x" * 1000

    def commit(where: Store, number: int) -> None:
        commit_slot(where, f"_log/{number:020d}.json", entry, is_mine=lambda found: False)

    ours = median(lambda number: commit(store, number), 60)
    peer = median(lambda n: fs.pipe_file(f"{root}/_plain/{n:020d}", entry, mode="create"), 60)
    report("commit of 1 KB on S3", ours, peer, "s3fs.pipe_file")
    local = open_store(str(tmp_path / "table"))
    local_ours = median(lambda number: commit(local, number), 60)

    def unsafe(number: int) -> None:
        with open(tmp_path / f"{number:020d}.json", "xb") as file:
            file.write(entry)
            os.fsync(file.fileno())

    report("commit of 1 KB on local disk", local_ours, median(unsafe, 60), "open-x+fsync")


def test_cache_hit(store: Store, tmp_path: Path, report: Any) -> None:
    cache = DiskCache(CacheSettings(str(tmp_path), 1 << 30))
    caching = CachingStore(store, cache)
    caching.stat("big.split")
    caching.read_range("big.split", 0, OBJECT_BYTES)
    rng = random.Random(3)
    for size in (4 << 10, 64 << 10):
        starts = [rng.randrange(OBJECT_BYTES - size) for _ in range(100)]
        hit = median(
            lambda n, s=starts, z=size: caching.read_range("big.split", s[n], s[n] + z), 100
        )
        get = median(lambda n, s=starts, z=size: store.read_range("big.split", s[n], s[n] + z), 100)
        report(f"cached range of {size >> 10} KB", hit, get, "loopback-GET")
    assert cache.stats.misses == OBJECT_BYTES // (256 << 10)
