"""The disk cache: always the right bytes, few fetches, a kept budget, and no read it can fail."""

from __future__ import annotations

import builtins
import errno
import os
import pickle
import random
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_doubles import FaultKind, FaultyStore, RandomFaults, RecordingStore

from indextables.config import Config
from indextables.errors import CorruptFileError, ObjectNotFoundError, TransientStorageError
from indextables.storage import Store, diskcache, open_store
from indextables.storage.base import Capabilities
from indextables.storage.diskcache import CacheSettings, CachingStore, DiskCache
from indextables.storage.memory import clear_memory

BLOCK = 4096
DATA = random.Random(7).randbytes(50_000)
FILE = "p=1/part-0.split"


@pytest.fixture
def inner() -> Iterator[Store]:
    name = f"cache-{uuid.uuid4().hex}"
    store = open_store(f"memory://{name}")
    store.put(FILE, DATA)
    yield store
    clear_memory(name)


def make_cache(
    tmp_path: Path, max_bytes: int = 10 << 20, block: int = BLOCK, **tuning: Any
) -> DiskCache:
    tuning = {"min_free_bytes": 0} | tuning
    return DiskCache(CacheSettings(str(tmp_path / "cache"), max_bytes, block), **tuning)


def test_a_short_range_does_not_cost_a_block(inner: Store, tmp_path: Path) -> None:
    cache = make_cache(tmp_path, block=64 << 10)
    store = RecordingStore(inner)
    store.put(FILE, DATA * 4)
    caching = CachingStore(store, cache)
    caching.remember_size(FILE, 200_000)
    fine = diskcache.FINE_BLOCK
    assert caching.read_range(FILE, 20_000, 20_010) == DATA[20_000:20_010]
    assert store.calls[-1].detail == ((fine, 2 * fine),)
    store.clear()
    assert caching.read_range(FILE, fine, fine + 9) == DATA[fine : fine + 9]
    assert store.calls == []
    assert caching.read_range(FILE, 65_536, 131_072) == (DATA * 4)[65_536:131_072]
    assert store.calls[-1].detail == ((65_536, 131_072),)
    store.clear()
    assert caching.read_range(FILE, 70_000, 70_100) == (DATA * 4)[70_000:70_100]
    assert store.calls == [], "a large block serves short ranges too"
    assert cache.has(caching._key(FILE), 200_000) is False
    caching.put(FILE, b"new")
    assert block_files(cache) == []


def block_files(cache: DiskCache) -> list[Path]:
    return sorted(path for path in Path(cache.settings.path).rglob("*") if path.is_file())


ranges_of_the_file = st.lists(
    st.tuples(st.integers(0, 50_000), st.integers(0, 9000)).map(
        lambda pair: (pair[0], min(50_000, pair[0] + pair[1]))
    ),
    max_size=6,
)


@given(
    batches=st.lists(ranges_of_the_file, min_size=1, max_size=5),
    sized=st.booleans(),
    block=st.sampled_from([BLOCK, 3 * BLOCK]),
)
def test_any_ranges_read_as_from_the_store(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[tuple[int, int]]],
    sized: bool,
    block: int,
) -> None:
    """With blocks of one size, and with short ranges cut into smaller ones."""
    store = open_store("memory://cache-property")
    store.put(FILE, DATA)
    folder = tmp_path_factory.mktemp("property")
    cache = make_cache(folder, block=block)
    cache._fine = BLOCK
    caching = CachingStore(store, cache)
    if sized:
        caching.remember_size(FILE, len(DATA))
    for ranges in batches:
        for _ in range(2):
            assert caching.read_ranges(FILE, ranges) == [DATA[a:b] for a, b in ranges]
    shutil.rmtree(folder)


def test_a_second_read_asks_the_store_nothing(inner: Store, tmp_path: Path) -> None:
    recording = RecordingStore(inner)
    caching = CachingStore(recording, make_cache(tmp_path))
    for _ in range(3):
        assert caching.read_range(FILE, 100, 9000) == DATA[100:9000]
        assert caching.read_ranges(FILE, [(0, 50), (8000, 9000)]) == [DATA[:50], DATA[8000:9000]]
    assert recording.ops() == ["read_ranges"]
    again = CachingStore(recording, make_cache(tmp_path))
    assert again.read_range(FILE, 4000, 8192) == DATA[4000:8192]
    assert recording.ops() == ["read_ranges"]
    assert caching.cache.stats.hits > 0
    assert again.cache.stats.as_dict()["misses"] == 0


def test_missing_blocks_are_fetched_together(inner: Store, tmp_path: Path) -> None:
    recording = RecordingStore(inner)
    caching = CachingStore(recording, make_cache(tmp_path))
    caching.read_range(FILE, 4096, 8192)
    caching.read_range(FILE, 0, 16_384)
    assert recording.calls[1].detail == ((0, 4096), (8192, 12_288), (12_288, 16_384))


def test_a_known_size_keeps_the_tail_whole(inner: Store, tmp_path: Path) -> None:
    recording = RecordingStore(inner)
    caching = CachingStore(recording, make_cache(tmp_path))
    caching.stat(FILE)
    caching.read_range(FILE, 49_200, 49_300)
    assert caching.read_range(FILE, 49_500, 50_000) == DATA[49_500:]
    assert recording.count("read_ranges") == 1


def test_an_unknown_size_refetches_only_when_more_is_needed(inner: Store, tmp_path: Path) -> None:
    recording = RecordingStore(inner)
    caching = CachingStore(recording, make_cache(tmp_path))
    caching.read_range(FILE, 0, 100)
    caching.read_range(FILE, 50, 90)
    assert recording.count("read_ranges") == 1
    assert caching.read_range(FILE, 50, 200) == DATA[50:200]
    assert recording.count("read_ranges") == 2
    assert caching.read_range(FILE, 0, 200) == DATA[:200]
    assert recording.count("read_ranges") == 2


def test_other_files_are_not_cached(inner: Store, tmp_path: Path) -> None:
    inner.put("_log/1.json", b"one")
    caching = CachingStore(inner, make_cache(tmp_path))
    assert caching.read_range("_log/1.json", 0, 3) == b"one"
    inner.put("_log/1.json", b"two")
    assert caching.read_range("_log/1.json", 0, 3) == b"two"
    assert block_files(caching.cache) == []


def test_writes_through_the_store_forget_old_blocks(inner: Store, tmp_path: Path) -> None:
    caching = CachingStore(inner, make_cache(tmp_path))
    caching.put("a.idx", b"old" * 10)
    assert caching.read_range("a.idx", 0, 3) == b"old"
    caching.put("a.idx", b"new" * 10)
    assert caching.read_range("a.idx", 0, 3) == b"new"
    caching.delete(["a.idx"])
    with pytest.raises(ObjectNotFoundError):
        caching.read_range("a.idx", 0, 3)


def test_errors_are_passed_on_and_not_cached(inner: Store, tmp_path: Path) -> None:
    caching = CachingStore(inner, make_cache(tmp_path))
    for _ in range(2):
        with pytest.raises(ObjectNotFoundError):
            caching.read_range("missing.split", 0, 10)
        with pytest.raises(CorruptFileError):
            caching.read_range(FILE, 49_990, 50_010)
        with pytest.raises(CorruptFileError):
            caching.read_range(FILE, 5, 4)
    inner.put("missing.split", b"0123456789")
    assert caching.read_range("missing.split", 0, 10) == b"0123456789"


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "header": lambda raw: b"X" + raw[1:],
    "digest": lambda raw: raw[:10] + bytes([raw[10] ^ 1]) + raw[11:],
    "checksum": lambda raw: raw[:25] + bytes([raw[25] ^ 128]) + raw[26:],
    "data": lambda raw: raw[:-5] + bytes([raw[-5] ^ 4]) + raw[-4:],
    "short": lambda raw: raw[: len(raw) // 2],
    "long": lambda raw: raw + b"x",
    "empty": lambda raw: b"",
    "zeros": lambda raw: bytes(len(raw)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_block_is_fetched_again(
    inner: Store, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    caching = CachingStore(inner, make_cache(tmp_path))
    caching.read_range(FILE, 0, BLOCK)
    (block,) = block_files(caching.cache)
    block.write_bytes(damage(block.read_bytes()))
    assert caching.read_range(FILE, 10, 2000) == DATA[10:2000]
    assert caching.cache.stats.corrupt == 1
    assert caching.read_range(FILE, 0, 2000) == DATA[:2000]
    assert caching.cache.stats.corrupt == 1


def test_a_block_under_a_wrong_name_is_not_believed(inner: Store, tmp_path: Path) -> None:
    caching = CachingStore(inner, make_cache(tmp_path))
    caching.read_range(FILE, 0, BLOCK)
    (first,) = block_files(caching.cache)
    caching.read_range(FILE, BLOCK, 2 * BLOCK)
    second = next(path for path in block_files(caching.cache) if path != first)
    second.write_bytes(first.read_bytes())
    assert caching.read_range(FILE, BLOCK, 2 * BLOCK) == DATA[BLOCK : 2 * BLOCK]
    assert caching.cache.stats.corrupt == 1


def test_the_budget_is_kept_and_recent_blocks_stay(inner: Store, tmp_path: Path) -> None:
    budget = 20 * (BLOCK + 40)
    recording = RecordingStore(inner)
    caching = CachingStore(recording, make_cache(tmp_path, budget, touch_after_s=-1.0))
    for number in range(8):
        inner.put(f"{number}.split", DATA)
    favourite = "0.split"
    caching.read_range(favourite, 0, BLOCK)
    for number in range(1, 8):
        for start in range(0, 5 * BLOCK, BLOCK):
            caching.read_range(f"{number}.split", start, start + BLOCK)
            assert caching.cache.usage().total_bytes <= budget
        caching.read_range(favourite, 0, BLOCK)
    assert caching.cache.stats.evictions > 0
    recording.clear()
    assert caching.read_range(favourite, 0, BLOCK) == DATA[:BLOCK]
    assert recording.calls == []


def test_a_restart_counts_what_is_already_there(inner: Store, tmp_path: Path) -> None:
    budget = 12 * (BLOCK + 40)
    for number in range(6):
        inner.put(f"{number}.split", DATA)
        caching = CachingStore(inner, make_cache(tmp_path, budget))
        for start in range(0, 5 * BLOCK, BLOCK):
            caching.read_range(f"{number}.split", start, start + BLOCK)
        assert caching.cache.usage().total_bytes <= budget


def test_reads_that_would_flush_the_cache_go_around_it(inner: Store, tmp_path: Path) -> None:
    caching = CachingStore(inner, make_cache(tmp_path, 4 * BLOCK))
    assert caching.read_range(FILE, 0, 50_000) == DATA
    assert block_files(caching.cache) == []
    assert caching.cache.stats.bypassed == 1


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_refuses_writes_does_not_fail_reads(
    inner: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    now = [1000.0]
    caching = CachingStore(inner, make_cache(tmp_path, clock=lambda: now[0]))

    def refuse(*args: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        for start in (0, 5000, 0):
            assert caching.read_range(FILE, start, start + 5000) == DATA[start : start + 5000]
    assert block_files(caching.cache) == []
    assert caching.cache.stats.bypassed > 0
    caching.read_range(FILE, 0, 5000)
    assert block_files(caching.cache) == []
    now[0] += 31
    caching.read_range(FILE, 0, 5000)
    assert len(block_files(caching.cache)) == 2


def test_a_disk_that_refuses_reads_does_not_fail_reads(
    inner: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caching = CachingStore(inner, make_cache(tmp_path))
    caching.read_range(FILE, 0, 5000)
    honest = builtins.open

    def refuse(name: Any, *args: Any, **kwargs: Any) -> Any:
        if "blocks-1" in str(name):
            raise OSError(errno.EIO, "I/O error")
        return honest(name, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "open", refuse)
        assert caching.read_range(FILE, 0, 5000) == DATA[:5000]


def test_a_folder_that_cannot_be_made_does_not_fail_reads(inner: Store, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"a file is in the way")
    caching = CachingStore(inner, make_cache(tmp_path))
    assert caching.read_range(FILE, 0, 5000) == DATA[:5000]
    assert caching.cache.usage().blocks == 0
    assert caching.cache.flush().blocks == 0


def test_a_nearly_full_disk_is_left_alone(inner: Store, tmp_path: Path) -> None:
    caching = CachingStore(inner, make_cache(tmp_path, min_free_bytes=1 << 60))
    assert caching.read_range(FILE, 0, 5000) == DATA[:5000]
    assert block_files(caching.cache) == []


class SlowStore(RecordingStore):
    def __init__(self, inner: Store) -> None:
        super().__init__(inner, latency_s=0.05, sleep=time.sleep)


def run_threads(count: int, work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []
    barrier = threading.Barrier(count)

    def guarded(index: int) -> None:
        try:
            barrier.wait()
            work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_threads_that_need_one_block_cause_one_fetch(inner: Store, tmp_path: Path) -> None:
    slow = SlowStore(inner)
    caching = CachingStore(slow, make_cache(tmp_path))
    caching.remember_size(FILE, len(DATA))

    def read(index: int) -> None:
        assert caching.read_range(FILE, index * 10, 3000) == DATA[index * 10 : 3000]

    run_threads(8, read)
    assert slow.count("read_ranges") == 1


def test_waiting_threads_fetch_for_themselves_when_the_fetch_failed(
    inner: Store, tmp_path: Path
) -> None:
    once = threading.Event()

    class FailsOnce(SlowStore):
        def read_ranges(self, path: str, ranges: Any) -> list[bytes]:
            time.sleep(0.05)
            if not once.is_set():
                once.set()
                raise TransientStorageError("injected", path=path)
            return super().read_ranges(path, ranges)

    caching = CachingStore(FailsOnce(inner), make_cache(tmp_path))
    errors: list[BaseException] = []

    def read(index: int) -> None:
        try:
            assert caching.read_range(FILE, 0, 3000) == DATA[:3000]
        except TransientStorageError as error:
            errors.append(error)

    run_threads(6, read)
    assert len(errors) == 1


def test_threads_with_faults_and_evictions_read_right_bytes(
    inner: Store, tmp_path: Path, seed: int
) -> None:
    faults = RandomFaults(seed, 0.05, [FaultKind.FAIL_BEFORE])
    cache = make_cache(tmp_path, 30 * BLOCK, touch_after_s=0.0)
    caching = CachingStore(FaultyStore(inner, faults), cache)

    def read(index: int) -> None:
        rng = random.Random(seed + index)
        for _ in range(120):
            start = rng.randrange(49_000)
            end = min(50_000, start + rng.choice((10, 1000, 9000)))
            try:
                assert caching.read_range(FILE, start, end) == DATA[start:end]
            except TransientStorageError:
                continue

    run_threads(8, read)
    assert cache.usage().total_bytes <= 30 * BLOCK
    assert cache.stats.corrupt == 0
    assert not cache._flights


def test_flush_empties_and_reports(inner: Store, tmp_path: Path) -> None:
    caching = CachingStore(inner, make_cache(tmp_path))
    caching.read_range(FILE, 0, 3 * BLOCK)
    before = caching.cache.usage()
    assert (before.files, before.blocks) == (1, 3)
    assert caching.cache.flush() == before
    assert block_files(caching.cache) == []
    assert caching.read_range(FILE, 0, 100) == DATA[:100]


def test_stale_temporaries_are_swept(inner: Store, tmp_path: Path) -> None:
    caching = CachingStore(inner, make_cache(tmp_path))
    caching.read_range(FILE, 0, 100)
    left_over = block_files(caching.cache)[0].with_name(".dead.tmp")
    left_over.write_bytes(b"half")
    assert caching.cache.usage().blocks == 1
    assert left_over.exists()
    os.utime(left_over, (1, 1))
    caching.cache.usage()
    assert not left_over.exists()


class RemoteLooking(RecordingStore):
    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return Capabilities(remote=True, persistent=True, local_files=False)


def test_the_default_cache_follows_the_configuration(inner: Store, tmp_path: Path) -> None:
    remote = RemoteLooking(inner)
    on = Config({"cache.disk.path": str(tmp_path / "c"), "cache.disk.maxSize": "1M"})
    off = on.updated({"cache.disk.enabled": "false"})
    assert diskcache.cached(inner, on) is inner
    assert diskcache.cached(remote, off) is remote
    first = diskcache.cached(remote, on)
    assert isinstance(first, CachingStore)
    assert diskcache.cached(first, on) is first
    assert diskcache.default_cache(on) is first.cache
    assert first.cache.settings == CacheSettings(str(tmp_path / "c"), 1 << 20, 256 << 10)
    assert diskcache.flush(off).blocks == 0
    elsewhere = diskcache.default_cache(Config({"cache.directoryPath": str(tmp_path / "d")}))
    assert elsewhere is not None
    assert elsewhere.settings.path == str(tmp_path / "d" / "splits")


def test_a_pickled_caching_store_shares_the_folder(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "table"))
    store.put(FILE, DATA)
    caching = CachingStore(store, make_cache(tmp_path))
    caching.read_range(FILE, 0, 100)
    copy = pickle.loads(pickle.dumps(caching))
    assert isinstance(copy, CachingStore)
    assert copy.read_range(FILE, 0, 100) == DATA[:100]
    assert copy.cache.stats.misses == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_uses_the_cache_even_if_a_lock_was_held(
    inner: Store, tmp_path: Path
) -> None:
    caching = CachingStore(inner, make_cache(tmp_path))
    caching.read_range(FILE, 0, 100)
    with caching.cache._lock, caching.cache._folder._lock:
        child = os.fork()
        if child == 0:
            ok = caching.read_range(FILE, 0, 20_000) == DATA[:20_000]
            os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
