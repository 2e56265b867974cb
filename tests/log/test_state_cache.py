"""The local copy of a state's columns: used when right, ignored when not, never in the way."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from log_helpers import memory_store
from state_helpers import add, after, content, replayed

from indextables.config import Config
from indextables.log.checkpoint import state as state_module
from indextables.log.checkpoint.state import load_state, read_state, write_state
from indextables.log.read.localcache import CachedColumns, LocalCache
from indextables.log.read.snapshot import Snapshot
from indextables.storage.base import Store


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setattr(state_module, "MIN_ENTRIES", 1)
    return Config({"state.cache.path": str(tmp_path / "cache")})


class Counting:
    """A store that counts how many manifests are read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.manifests = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read_many(self, paths: Any, parallelism: int = 8) -> Any:
        self.manifests += len(paths)
        return self._store.read_many(paths, parallelism)


@pytest.fixture
def table(rng: random.Random, config: Config) -> tuple[Counting, Snapshot]:
    store = Counting(memory_store())
    snapshot = replayed([add(rng, f"p{k}") for k in range(200)])
    write_state(store, snapshot, config=config)
    snapshot = after(snapshot, [add(rng, "new")], [*[a.removal(1) for a in snapshot.files()[3:6]]])
    write_state(store, snapshot, config=config)
    return store, snapshot


def opened(store: Any, version: int, config: Config) -> Snapshot:
    return load_state(store, read_state(store, version), config=config)


def copies(config: Config) -> list[Path]:
    return sorted(Path(config["state.cache.path"]).glob("*.columns"))


def test_the_second_open_reads_no_manifest(table: Any, config: Config) -> None:
    store, snapshot = table
    first = opened(store, 3, config)
    assert store.manifests == 2
    second = opened(store, 3, config)
    assert store.manifests == 2
    assert content(first) == content(second) == content(snapshot)
    assert second.sizes.tolist() == first.sizes.tolist()
    assert second.manifests == first.manifests
    assert (
        second.indices_of(["new", "p3", "p0"]).tolist()
        == first.indices_of(["new", "p3", "p0"]).tolist()
    )
    grown = after(second, [first.file(0).removal(1)])
    assert grown.num_files == second.num_files - 1
    written = write_state(store, grown, config=config)
    assert written.manifests_kept == 2


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "magic", "longer"])
def test_a_damaged_copy_is_replaced(
    table: Any, config: Config, rng: random.Random, damage: str
) -> None:
    store, snapshot = table
    opened(store, 3, config)
    (path,) = copies(config)
    good = path.read_bytes()
    for _ in range(40 if damage == "flip" else 1):
        body = bytearray(good)
        if damage == "flip":
            body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        elif damage == "cut":
            del body[rng.randrange(len(body)) :]
        elif damage == "empty":
            body.clear()
        elif damage == "magic":
            body[7] += 1
        else:
            body += b"x"
        path.write_bytes(body)
        before = store.manifests
        assert content(opened(store, 3, config)) == content(snapshot)
        if store.manifests == before:
            assert damage == "flip", "only padding may be damaged unnoticed"
        assert path.read_bytes() == good or damage == "flip"


def test_a_table_made_anew_is_another_table(table: Any, config: Config, rng: random.Random) -> None:
    store, _ = table
    opened(store, 3, config)
    store.delete([info.path for info in store.list("_transaction_log", recursive=True)])
    other = replayed([add(rng, "x")], [add(rng, "y")], [add(rng, "z")])
    write_state(store, other, config=config)
    assert sorted(content(opened(store, 3, config))) == ["x", "y", "z"]


def test_a_folder_that_cannot_be_written_does_no_harm(table: Any, tmp_path: Path) -> None:
    store, snapshot = table
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    config = Config({"state.cache.path": str(blocked / "cache")})
    assert content(opened(store, 3, config)) == content(snapshot)


def test_old_copies_make_room(table: Any, config: Config, rng: random.Random) -> None:
    store, snapshot = table
    opened(store, 1, config)
    opened(store, 3, config)
    assert len(copies(config)) == 2
    grown = after(snapshot, [add(rng, "more")])
    write_state(store, grown, config=config)
    opened(store, 4, config)
    assert len(copies(config)) == 2
    small = config.updated({"state.cache.maxSize": 1})
    grown = after(grown, [add(rng, "even more")])
    write_state(store, grown, config=config)
    opened(store, 5, small)
    assert [p.name.split("-")[1] for p in copies(config)] == ["5"]
    assert not [p for p in Path(config["state.cache.path"]).iterdir() if p.suffix == ".tmp"]


def test_the_cache_can_be_off_and_small_tables_need_none(table: Any, config: Config) -> None:
    store, _ = table
    opened(store, 3, config.updated({"state.cache.enabled": False}))
    assert copies(config) == []
    assert LocalCache.of(Config({"state.cache.enabled": False})) is None


def test_where_copies_live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = LocalCache.of(Config())
    assert cache is not None
    assert cache.folder == tmp_path / "indextables" / "state"
    shared = LocalCache.of(Config({"cache.directoryPath": "/c"}))
    assert shared is not None
    assert shared.folder == Path("/c/state")


def test_copies_of_rows_are_not_made(config: Config, rng: random.Random) -> None:
    cache = LocalCache.of(config)
    assert cache is not None
    snapshot = replayed([add(rng)])
    columns = CachedColumns(list(snapshot.segments), list(snapshot.live))
    assert not cache.save(cache.folder / "x.columns", columns)


def test_threads_may_open_at_once(table: Any, config: Config) -> None:
    store, snapshot = table
    expected = content(snapshot)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(5):
            if content(opened(store, 3, config)) != expected:
                wrong.append(1)
            for path in copies(config):
                path.unlink(missing_ok=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert os.path.isdir(config["state.cache.path"])
