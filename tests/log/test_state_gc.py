"""Collection of states and manifests: what is needed or young stays."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
from log_helpers import memory_store
from state_helpers import add, after, content, replayed

from indextables.config import Config
from indextables.log.checkpoint.state import load_state, read_state, write_state
from indextables.log.read.snapshot import Snapshot
from indextables.log.read.versions import list_states
from indextables.log.retention import gc
from indextables.storage.base import Store, open_store

CONFIG = Config({"state.cache.enabled": False})
HOUR = 3_600_000
LATER = int(time.time() * 1000) + 400 * HOUR


def grow(store: Store, rng: random.Random, steps: int, force_last: bool = False) -> Snapshot:
    """A table with a state per version; the last may be a full compaction."""
    snapshot = replayed([add(rng, f"base{k}") for k in range(30)])
    write_state(store, snapshot, config=CONFIG)
    for k in range(steps):
        snapshot = after(snapshot, [add(rng, f"p{k}")])
        force = force_last and k == steps - 1
        write_state(store, snapshot, config=CONFIG, force_compaction=force)
    return snapshot


def manifests(store: Store) -> set[str]:
    return {info.path for info in store.list("_transaction_log/manifests")}


def test_expired_states_and_their_manifests_go(rng: random.Random) -> None:
    store = memory_store()
    snapshot = grow(store, rng, 5, force_last=True)
    report = gc.collect(store, CONFIG, now_ms=LATER)
    assert report.states == [1, 2, 3, 4]
    kept = [info for v in (5, 6) for info in read_state(store, v).manifests]
    assert manifests(store) == {f"_transaction_log/{info.path}" for info in kept}
    for version in (5, 6):
        load_state(store, read_state(store, version), config=CONFIG)
    assert content(load_state(store, read_state(store, 6), config=CONFIG)) == content(snapshot)
    assert gc.collect(store, CONFIG, now_ms=LATER).states == []


def test_young_things_stay(rng: random.Random) -> None:
    store = memory_store()
    grow(store, rng, 4)
    store.put("_transaction_log/manifests/orphan.avro", b"x")
    now = int(time.time() * 1000)
    assert gc.collect(store, CONFIG, now_ms=now).manifests == []
    assert list_states(store) == [1, 2, 3, 4, 5]
    report = gc.collect(store, CONFIG, now_ms=now + 2 * HOUR)
    assert report.states == []
    assert report.manifests == ["_transaction_log/manifests/orphan.avro"]
    assert "_transaction_log/manifests/orphan.avro" not in manifests(store)


def test_protected_states_stay(rng: random.Random) -> None:
    store = memory_store()
    grow(store, rng, 4)
    assert gc.collect(store, CONFIG, protect=(2,), now_ms=LATER).states == [1, 3]
    load_state(store, read_state(store, 2), config=CONFIG)


def test_a_dry_run_deletes_nothing(rng: random.Random) -> None:
    store = memory_store()
    grow(store, rng, 4, force_last=True)
    store.put("_transaction_log/manifests/orphan.avro", b"x")
    before = [info.path for info in store.list("_transaction_log", recursive=True)]
    report = gc.collect(store, CONFIG, now_ms=LATER, dry_run=True)
    assert report.states == [1, 2, 3]
    assert report.manifests == ["_transaction_log/manifests/orphan.avro"]
    assert [info.path for info in store.list("_transaction_log", recursive=True)] == before


@pytest.mark.parametrize("damage", ["newest", "older", "manifest"])
def test_doubt_stops_the_collection(rng: random.Random, damage: str) -> None:
    store = memory_store()
    grow(store, rng, 4)
    store.put("_transaction_log/manifests/orphan.avro", b"x")
    states = list_states(store)
    if damage == "manifest":
        last = read_state(store, states[-1]).manifests[-1]
        store.delete([f"_transaction_log/{last.path}"])
    else:
        version = states[-1] if damage == "newest" else states[-2]
        store.put(f"_transaction_log/state-v{version:020d}/_manifest.avro", b"damaged")
    report = gc.collect(store, CONFIG, now_ms=LATER)
    assert report.manifests == []
    assert report.states == ([1, 2, 3] if damage == "older" else [])


def test_legacy_manifests_in_state_folders(rng: random.Random, tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    grow(store, rng, 3)
    old = read_state(store, 1).manifests[0]
    data = store.read(f"_transaction_log/{old.path}")
    folder = f"_transaction_log/state-v{1:020d}"
    store.put(f"{folder}/manifest-needless.avro", data)
    report = gc.collect(store, CONFIG, now_ms=LATER)
    assert report.states == [1, 2]
    assert f"{folder}/manifest-needless.avro" in report.manifests
    assert list_states(store) == [3, 4]
    assert gc.collect(store, CONFIG, now_ms=LATER).states == []


def test_a_state_written_meanwhile_is_honoured(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer refers to an old manifest after the collector has looked."""
    store = memory_store()
    base = grow(store, rng, 1)
    write_state(store, after(base, [add(rng, "x")]), config=CONFIG, force_compaction=True)
    write_state(
        store, after(base, [add(rng, "x")], [add(rng, "y")]), config=CONFIG, force_compaction=True
    )
    original = gc.orphaned_manifests
    late = after(base, [add(rng, "x")], [add(rng, "y")], [add(rng, "z")])

    def looked_then_written(*arguments: Any) -> list[str]:
        found = original(*arguments)
        write_state(store, late, config=CONFIG)
        return found

    monkeypatch.setattr(gc, "orphaned_manifests", looked_then_written)
    report = gc.collect(store, CONFIG, now_ms=LATER)
    assert content(load_state(store, read_state(store, late.version), config=CONFIG)) == content(
        late
    )
    assert not set(report.manifests) & {
        f"_transaction_log/{info.path}" for info in read_state(store, late.version).manifests
    }


def test_failures_are_reported(rng: random.Random) -> None:
    from indextables.errors import StorageError

    store = memory_store()
    grow(store, rng, 4)

    class Stubborn:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def delete(self, paths: Any) -> None:
            raise StorageError("no")

    report = gc.collect(Stubborn(), CONFIG, now_ms=LATER)  # type: ignore[arg-type]
    assert set(report.failed) >= {f"_transaction_log/state-v{1:020d}/_manifest.avro"}
