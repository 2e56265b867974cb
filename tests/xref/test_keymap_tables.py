"""Key maps of tables: built by commits, joined by levels, never changing an answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from store_doubles import RecordingStore

import indextables
from indextables.config import Config
from indextables.errors import UnsafePathError
from indextables.log.actions import ACTION_TYPES, RemoveKeyMap, types
from indextables.log.actions.codec import actions_of
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.maintenance import checkpoint, delete_rows, merge_splits, purge
from indextables.maintenance.describe_log import describe_log
from indextables.maintenance.merge_plan import SMALLEST_TARGET
from indextables.planner import Planner
from indextables.splits.format import keymap
from indextables.splits.format.keymap import KeyMap
from indextables.splits.format.keysets import BLOCK_ROWS
from indextables.splits.read.source import SplitSource
from indextables.storage.base import Capabilities
from indextables.storage.local import LocalStore
from indextables.storage.memory import MemoryStore, clear_memory
from indextables.xref.keymaps import build as building
from indextables.xref.keymaps.build import KeyMapBuilder
from indextables.xref.keymaps.catalog import OPEN, Catalog, grouped, places_of
from indextables.xref.keymaps.frequency import document_frequency
from indextables.xref.keymaps.levels import Run, level_of, next_step
from indextables.xref.keymaps.router import KeyMapRouter
from indextables.xref.router import RouteResult

ON = {
    "xref.keymap.enabled": True,
    "xref.keymap.fanOut": 4,
    "xref.autoIndex.enabled": False,
    "xref.query.minSplitsForXRef": 1,
}
ANY_RETENTION = {"purge.retentionCheckEnabled": False}
WORDS = ["red", "green", "blue", "black", "white"]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    OPEN.clear()
    building._keyless.clear()
    yield
    OPEN.clear()
    building._keyless.clear()


def rows(first: int, count: int, rng: random.Random) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": [f"id-{i}" for i in ids],
            "n": [i % 17 for i in ids],
            "kind": [rng.choice("abc") for _ in ids],
            "txt": [f"{rng.choice(WORDS)} w{i % 97}" for i in ids],
            "f": [i / 4 for i in ids],
        }
    )


def append(path: str, first: int, count: int, rng: random.Random, **more: Any) -> None:
    options = {f"spark.indextables.{k}": str(v) for k, v in {**ON, **more}.items()}
    data = rows(first, count, rng)
    indextables.write(data, path, text=["txt"], rows_per_split=10, options=options)


def log_of(path: str) -> TransactionLog:
    return TransactionLog.open(path, config=Config(ON))


def maps_of(log: TransactionLog) -> list[KeyMap]:
    catalog = Catalog(log.store, 1 << 30)
    return [catalog.open(action) for action in log.snapshot().keymaps]


def covered(log: TransactionLog) -> list[str]:
    return sorted(path for found in maps_of(log) for path in found.paths)


def paths(log: TransactionLog) -> list[str]:
    return sorted(log.snapshot().paths.to_pylist())


def routed(log: TransactionLog, where: str) -> RouteResult:
    """The router's answer over all splits, whatever their statistics say."""
    snapshot = log.snapshot()
    predicate = Planner(snapshot, config=Config(ON)).bind(where)
    router = KeyMapRouter(log.store, Config(ON))
    return router.route(snapshot, np.arange(snapshot.num_files), predicate)


def kept(log: TransactionLog, where: str) -> int:
    return int(routed(log, where).keep.sum())


def test_a_table_written_without_the_setting_has_no_key_maps(
    tmp_path: Path, rng: random.Random
) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 100, rng, **{"xref.keymap.enabled": False})
    assert log_of(path).snapshot().keymaps == ()
    assert not (tmp_path / "t" / "_keymap").exists()


def test_a_commit_covers_its_splits_and_a_needle_is_found_in_one(
    tmp_path: Path, rng: random.Random
) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 200, rng)
    log = log_of(path)
    assert covered(log) == paths(log)
    assert len(log.snapshot().keymaps) == 1
    assert kept(log, "id = 'id-137'") == 1
    assert kept(log, "id = 'nobody'") == 0
    assert kept(log, "id IN ('id-3', 'id-190')") == 2
    assert kept(log, "id = 'id-3' AND id = 'id-190'") == 0
    assert kept(log, "id = 'id-3' OR n > 3") == 20


def test_a_column_without_keys_stays_undecided(tmp_path: Path, rng: random.Random) -> None:
    """Floats are left out: the answer must be "perhaps", not "absent"."""
    path = str(tmp_path / "t")
    append(path, 0, 50, rng)
    log = log_of(path)
    result = routed(log, "f = 2.25")
    assert result.keep.all()
    assert result.report.unevaluated


def test_appending_reads_the_new_splits_and_no_other(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 300, rng)
    old = set(paths(log_of(path)))
    opened: list[str] = []
    plain = SplitSource.fetch

    def fetch(self: SplitSource, name: str) -> Any:
        opened.append(self.path)
        return plain(self, name)

    monkeypatch.setattr(SplitSource, "fetch", fetch)
    append(path, 300, 20, rng)
    assert len(opened) == 2
    assert not old.intersection(opened)
    assert covered(log_of(path)) == paths(log_of(path))


def test_levels_keep_the_number_of_maps_small(tmp_path: Path, rng: random.Random) -> None:
    path = str(tmp_path / "t")
    for i in range(21):
        append(path, 10 * i, 10, rng)
    log = log_of(path)
    assert covered(log) == paths(log)
    sizes = sorted(found.splits for found in maps_of(log))
    assert sum(sizes) == 21
    assert len(sizes) <= 2 * 3 + 1
    assert kept(log, "id = 'id-77'") == 1


def test_levels() -> None:
    assert [level_of(n, 4) for n in (1, 3, 4, 15, 16, 64)] == [0, 0, 1, 1, 2, 3]
    runs = [Run(f"r{i}", 10, 1, 1) for i in range(4)]
    assert next_step(runs[:3], 4, 1000) is None
    step = next_step(runs, 4, 1000)
    assert step is not None
    assert len(step.sources) == 4


def test_beyond_the_most_maps_the_smallest_are_joined() -> None:
    runs = [Run(f"r{i}", 10**i, 4**i, 4**i) for i in range(6)]
    assert next_step(runs, 4, 6) is None
    step = next_step(runs, 4, 4)
    assert step is not None
    assert [run.path for run in step.sources] == ["r0", "r1"]
    alike = [Run(f"a{i}", 10 + i, 4**i, 4**i) for i in range(6)]
    step = next_step(alike, 4, 5)
    assert step is not None
    assert len(step.sources) == 6


def test_growth_writes_every_key_a_few_times() -> None:
    """Few maps at any time, and not by joining them all again and again."""
    runs: list[Run] = []
    written, splits = 0, 20_000
    for number in range(splits // 10):
        runs.append(Run(f"{number}", 10, 10, 10))
        while (step := next_step(runs, 8, 6)) is not None:
            total = sum(run.splits for run in step.sources)
            runs = [run for run in runs if run not in step.sources]
            runs.append(Run(f"{number} joined", total, total, total))
            written += total
        assert len(runs) <= 6
    assert written <= 8 * splits


def test_a_map_of_which_little_lives_is_rewritten() -> None:
    runs = [Run(f"r{i}", 10**i, 4**i, 4**i) for i in range(6)]
    stale = Run("s", 10, 9, 4)
    step = next_step([*runs, stale], 4, 1000)
    assert step is not None
    assert step.sources == (stale,)


def test_a_missing_or_damaged_map_covers_nothing_and_is_made_anew(
    tmp_path: Path, rng: random.Random
) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 100, rng)
    append(path, 100, 100, rng)
    log = log_of(path)
    first, second = (tmp_path / "t" / a.path for a in log.snapshot().keymaps)
    first.unlink()
    raw = bytearray(second.read_bytes())
    raw[-60] ^= 4
    second.write_bytes(raw)
    OPEN.clear()
    assert kept(log, "id = 'id-137'") > 1
    assert indextables.open(path).to_arrow(where="id = 'id-137'").num_rows == 1
    done = KeyMapBuilder(log, Config(ON)).update()
    assert [built.action for built in done] == ["retired", "retired", "created"]
    assert covered(log) == paths(log)
    assert kept(log, "id = 'id-137'") == 1


def test_a_damaged_bucket_is_noticed_when_it_is_read(tmp_path: Path, rng: random.Random) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 100, rng)
    log = log_of(path)
    file = tmp_path / "t" / log.snapshot().keymaps[0].path
    raw = bytearray(file.read_bytes())
    raw[40] ^= 1
    file.write_bytes(raw)
    OPEN.clear()
    result = routed(log, "id = 'id-37'")
    assert result.keep.all()
    assert result.report.covered == 0
    assert "checksum" in result.report.detail


def test_splits_without_keys_stay_uncovered_and_are_opened_once(
    tmp_path: Path, rng: random.Random
) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 50, rng, **{"xref.keymap.enabled": False})
    old = paths(log_of(path))
    append(path, 50, 50, rng)
    log = log_of(path)
    assert covered(log) == sorted(set(paths(log)) - set(old))
    assert kept(log, "id = 'id-77'") == 1 + len(old)
    assert building._keyless.get(log.table_id) == set(old)


def test_merge_gives_new_maps_and_drops_the_dead(tmp_path: Path, rng: random.Random) -> None:
    path = str(tmp_path / "t")
    for i in range(6):
        append(path, 20 * i, 20, rng)
    log = log_of(path)
    merge_splits(log, target_size=1 << 30, config=Config(ON))
    assert log.snapshot().num_files == 1
    assert covered(log) == paths(log)
    assert kept(log, "id = 'id-77'") == 1
    assert kept(log, "id = 'nobody'") == 0


def test_purge_deletes_retired_maps_and_keeps_live_ones(tmp_path: Path, rng: random.Random) -> None:
    path = str(tmp_path / "t")
    for i in range(9):
        append(path, 10 * i, 10, rng)
    log = log_of(path)
    folder = tmp_path / "t" / "_keymap"
    live = {action.path for action in log.snapshot().keymaps}
    on_disk = {str(p.relative_to(tmp_path / "t")) for p in folder.rglob("*.kmap")}
    assert live < on_disk
    config = Config({**ON, **ANY_RETENTION})
    log.cleanup(retention_ms=-1)
    purge(log, older_than_hours=0, log_retention_hours=0, config=config)
    on_disk = {str(p.relative_to(tmp_path / "t")) for p in folder.rglob("*.kmap")}
    assert live == on_disk
    assert kept(log, "id = 'id-77'") == 1


def test_checkpoints_carry_key_maps(tmp_path: Path, rng: random.Random) -> None:
    path = str(tmp_path / "t")
    for i in range(3):
        append(path, 10 * i, 10, rng)
    before = log_of(path).snapshot().keymaps
    checkpoint(log_of(path))
    log = TransactionLog.open(path)
    log.invalidate_cache()
    assert log.snapshot().keymaps == before
    assert len(before) == 3


def question(rng: random.Random, top: int) -> str:
    def leaf() -> str:
        return rng.choice(
            [
                f"id = 'id-{rng.randrange(top + 30)}'",
                f"n = {rng.randrange(20)}",
                f"kind = '{rng.choice('abcd')}'",
                f"txt indexquery '{rng.choice(WORDS)}'",
                f"txt indexquery 'w{rng.randrange(110)} AND {rng.choice(WORDS)}'",
                f"id IN ('id-{rng.randrange(top)}', 'id-{rng.randrange(top)}', 'x')",
                f"n > {rng.randrange(17)}",
                f"f = {rng.randrange(top)}",
                f"NOT (id = 'id-{rng.randrange(top)}')",
            ]
        )

    parts = [leaf() for _ in range(rng.randrange(1, 4))]
    return f" {rng.choice(['AND', 'OR'])} ".join(f"({part})" for part in parts)


def same_answers(path: str, rng: random.Random, top: int) -> None:
    """Ask with and without key maps."""
    on = indextables.open(path, options=_options(ON))
    off = indextables.open(path, options=_options({"xref.query.enabled": False}))
    for _ in range(12):
        where = question(rng, top)
        with_maps = sorted(on.to_arrow(columns=["id"], where=where)["id"].to_pylist())
        without = sorted(off.to_arrow(columns=["id"], where=where)["id"].to_pylist())
        assert with_maps == without, where


def _options(settings: dict[str, Any]) -> dict[str, str]:
    return {f"spark.indextables.{key}": str(value) for key, value in settings.items()}


def damage(folder: Path, rng: random.Random) -> None:
    files = sorted(folder.rglob("*.kmap"))
    if not files:
        return
    file = rng.choice(files)
    raw = bytearray(file.read_bytes())
    raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    file.write_bytes(raw)
    OPEN.clear()


def in_shards(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Buckets of a few keys, and files of a few buckets."""
    monkeypatch.setattr("indextables.splits.format.keymap.BUCKET_BYTES", 128)
    return {**ON, "xref.keymap.maxSize": 700}


FAR = Capabilities(remote=True, persistent=True, local_files=False)


@pytest.mark.parametrize("sharded", [False, True], ids=["whole, near", "shards, far"])
def test_answers_are_the_same_after_anything(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, sharded: bool
) -> None:
    """Appends, deletes, merges, purges and damage in any order change no answer.

    Once with maps in shards and a store that counts as remote, where rows are read by their blocks.
    """
    if sharded:
        monkeypatch.setattr(LocalStore, "capabilities", FAR)
        monkeypatch.setattr("indextables.storage.local.LocalStore.local_path", lambda *_: None)
        monkeypatch.setitem(ON, "cache.disk.enabled", False)
        monkeypatch.setitem(
            ON, "xref.keymap.maxSize", in_shards(monkeypatch)["xref.keymap.maxSize"]
        )
    path = str(tmp_path / "t")
    top = 60
    append(path, 0, top, rng)
    assert sharded == (len(log_of(path).snapshot().keymaps) > 1)
    assert kept(log_of(path), "id = 'id-7'") == 1
    steps = ["append", "append", "old", "delete", "merge", "purge", "damage"]
    for step in rng.sample(steps, len(steps)):
        log = log_of(path)
        if step in ("append", "old"):
            append(path, top, 30, rng, **{"xref.keymap.enabled": step == "append"})
            top += 30
        elif step == "delete":
            delete_rows(log, f"n = {rng.randrange(17)}")
        elif step == "merge":
            merge_splits(log, target_size=SMALLEST_TARGET, config=Config(ON))
        elif step == "purge":
            purge(
                log, older_than_hours=0, config=Config({**ON, "purge.retentionCheckEnabled": False})
            )
        else:
            damage(tmp_path / "t" / "_keymap", rng)
        same_answers(path, rng, top)


def test_a_large_map_is_cut_into_shards_and_a_needle_reads_one(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indextables.splits.format.keymap.TAIL_BYTES", 512)
    monkeypatch.setattr("indextables.splits.format.keymap.LARGE_BYTES", 1 << 40)
    on = in_shards(monkeypatch)
    clear_memory("shards")
    path = "memory://shards"
    for i in range(9):
        append(path, 20 * i, 20, rng, **on)
    log = log_of(path)
    groups, stray = grouped(log.snapshot().keymaps)
    assert not stray
    assert sum(group.first.splits for group in groups) == 18
    assert max(len(group.actions) for group in groups) >= 4
    assert all(action.size <= 4 * 700 for group in groups for action in group.actions)
    OPEN.clear()
    store = RecordingStore(log.store)
    router = KeyMapRouter(store, Config(ON))
    snapshot = log.snapshot()
    for number in (3, 77, 178):
        predicate = Planner(snapshot, config=Config(ON)).bind(f"id = 'id-{number}'")
        found = router.route(snapshot, np.arange(snapshot.num_files), predicate)
        assert found.keep.sum() == 1
    asked = {call.path for call in store.calls}
    assert len(asked) < len(snapshot.keymaps)
    clear_memory("shards")


def test_a_map_without_one_of_its_shards_covers_nothing_and_is_made_anew(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = in_shards(monkeypatch)
    path = str(tmp_path / "t")
    append(path, 0, 60, rng, **on)
    log = log_of(path)
    last = log.snapshot().keymaps[-1]
    assert last.shard > 0
    log.commit(Transaction(log.snapshot(), "TEST", actions=[RemoveKeyMap(last.path, 1)]))
    assert kept(log, "id = 'id-7'") == 6
    append(path, 60, 10, rng, **on)
    log = log_of(path)
    assert kept(log, "id = 'id-7'") == 1
    assert grouped(log.snapshot().keymaps)[1] == []


def test_places_follow_the_snapshot(tmp_path: Path, rng: random.Random) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 50, rng)
    log = log_of(path)
    (found,) = maps_of(log)
    snapshot = log.snapshot()
    names = snapshot.paths.to_pylist()
    assert [names[i] for i in places_of(snapshot, found)] == list(found.paths)


def test_document_frequencies_are_counted_over_all_splits(
    tmp_path: Path, rng: random.Random
) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 60, rng)
    append(path, 60, 70, rng)
    log = log_of(path)
    table = indextables.open(path).to_arrow()

    def counted(field: str, term: str) -> Any:
        found = document_frequency(log.store, log.snapshot(), field, term)
        assert found.covered == found.total == 13
        assert found.exact
        return found.documents

    for word in [*WORDS, "w3", "w96", "nothing"]:
        held = sum(word in text.split() for text in table["txt"].to_pylist())
        assert counted("txt", word) == held
    assert counted("id", "id-77") == 1
    assert counted("kind", "a") == table["kind"].to_pylist().count("a")
    assert counted("n", "3") == table["n"].to_pylist().count(3)


def test_a_frequency_says_when_it_is_not_exact(tmp_path: Path, rng: random.Random) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 50, rng)
    append(path, 50, 20, rng, **{"xref.keymap.enabled": False})
    log = log_of(path)
    found = document_frequency(log.store, log.snapshot(), "id", "id-7")
    assert (found.documents, found.exact, found.covered, found.total) == (1, False, 5, 7)


class Far(MemoryStore):
    capabilities = Capabilities(remote=True, persistent=False, local_files=False)


@pytest.mark.parametrize("small", [True, False])
def test_a_needle_costs_one_request_a_map(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    """One to open it, one for all its buckets; a small map comes whole with the first.

    What was asked a moment ago is not asked again.
    """
    path = "memory://keymap-requests"
    try:
        for i in range(3):
            append(path, 100 * i, 100, rng)
        store = RecordingStore(Far(path))
        snapshot = log_of(path).snapshot()
        assert len(snapshot.keymaps) == 3
        if not small:
            size = min(action.size for action in snapshot.keymaps)
            monkeypatch.setattr(keymap, "TAIL_BYTES", size - 100)
        OPEN.clear()
        router = KeyMapRouter(store, Config(ON))
        everything = np.arange(snapshot.num_files)
        costs = (3, 0, 0, 0) if small else (6, 0, 3, 0)
        for number, requests in zip((137, 137, 141, 137), costs, strict=True):
            predicate = Planner(snapshot, config=Config(ON)).bind(f"id = 'id-{number}'")
            before = len(store.calls)
            result = router.route(snapshot, everything, predicate)
            assert result.keep.sum() == 1
            assert len(store.calls) - before == requests
    finally:
        clear_memory("keymap-requests")


class Dear:
    """The same snapshot with many large key maps that are not open."""

    def __init__(self, snapshot: Any) -> None:
        self._snapshot = snapshot
        one = snapshot.keymaps[0]
        self.keymaps = tuple(replace(one, path=f"{i}", size=1 << 30) for i in range(40))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._snapshot, name)


def test_the_cost_decides_on_an_object_store(rng: random.Random) -> None:
    path = "memory://keymap-cost"
    try:
        append(path, 0, 200, rng)
        snapshot = log_of(path).snapshot()
        settings = {k: v for k, v in ON.items() if k != "xref.query.minSplitsForXRef"}
        router = KeyMapRouter(Far(path), Config(settings))
        bind = Planner(snapshot, config=Config(ON)).bind
        needle = bind("id = 'id-137'")
        assert router.too_dear(snapshot, np.arange(20), needle) is None
        assert router.too_dear(Dear(snapshot), np.arange(20), needle) is not None
        assert router.too_dear(snapshot, np.arange(20), bind("n > 3")) == "no term to ask for"
        local = KeyMapRouter(MemoryStore(path), Config(settings))
        assert local.too_dear(snapshot, np.arange(20), needle) is not None
    finally:
        clear_memory("keymap-cost")


def test_releases_that_do_not_know_key_maps_keep_them(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older release reads the table, and its checkpoints lose nothing."""
    path = str(tmp_path / "t")
    for i in range(5):
        append(path, 10 * i, 10, rng)
    expected = log_of(path).snapshot().keymaps
    with monkeypatch.context() as older:
        known = {k: v for k, v in ACTION_TYPES.items() if "KeyMap" not in k}
        older.setattr(types, "ACTION_TYPES", known)
        log = TransactionLog.open(path)
        log.invalidate_cache()
        assert log.snapshot().keymaps == ()
        assert log.snapshot().num_files == 5
        checkpoint(log)
    log = log_of(path)
    log.invalidate_cache()
    assert set(log.snapshot().keymaps) == set(expected)


def test_a_key_map_outside_the_table_is_refused(tmp_path: Path) -> None:
    line = {"addKeyMap": {"path": "../x.kmap", "size": 1, "splits": 1, "digest": "0"}}
    with pytest.raises(UnsafePathError):
        actions_of([line], root=str(tmp_path), path="v", version=1)


def test_the_row_block_of_a_needle_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    ids = [f"id-{i}" for i in range(2 * 3 * BLOCK_ROWS)]
    options = _options(ON)
    indextables.write(pa.table({"id": ids}), path, rows_per_split=3 * BLOCK_ROWS, options=options)
    log = log_of(path)
    names = log.snapshot().paths.to_pylist()
    told = 0
    for row in range(0, len(ids), 1013):
        blocks = routed(log, f"id = 'id-{row}'").report.row_blocks
        for place, block in blocks.items():
            rows = indextables.open(path).to_arrow(columns=["id"])["id"].to_pylist()
            assert names[place]
            assert block == (rows.index(f"id-{row}") % (3 * BLOCK_ROWS)) // BLOCK_ROWS
            told += 1
    assert told > 10
    assert routed(log, "id = 'nobody'").report.row_blocks == {}
    assert routed(log, "id = 'id-3' OR id = 'id-9'").report.row_blocks == {}


def test_a_column_added_later_is_undecided_in_older_splits(
    tmp_path: Path, rng: random.Random
) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 30, rng)
    more = rows(30, 30, rng).append_column("extra", pa.array([f"e{i}" for i in range(30)]))
    indextables.write(more, path, rows_per_split=10, merge_schema=True, options=_options(ON))
    log = log_of(path)
    KeyMapBuilder(log, Config({**ON, "xref.keymap.fanOut": 2})).update()
    (found,) = maps_of(log)
    assert len(found.kinds.texts) == 2
    assert kept(log, "id = 'id-7'") == 1
    assert kept(log, "extra = 'e7'") == 3 + 1
    assert kept(log, "extra = 'nothing'") == 3


def test_a_builder_that_loses_a_race_leaves_no_file(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    for i in range(3):
        append(path, 10 * i, 10, rng)
    low = Config({**ON, "xref.keymap.fanOut": 3})
    slow, quick = KeyMapBuilder(log_of(path), low), KeyMapBuilder(log_of(path), low)
    plain = slow._commit

    def late(add: Any, gone: Any) -> None:
        monkeypatch.setattr(slow, "_commit", plain)
        assert [built.action for built in quick.update()] == ["joined"]
        plain(add, gone)

    monkeypatch.setattr(slow, "_commit", late)
    assert slow.update() == []
    log = log_of(path)
    files = {str(p.relative_to(tmp_path / "t")) for p in (tmp_path / "t").rglob("*.kmap")}
    assert len(log.snapshot().keymaps) == 1
    assert len(files) == 4
    assert covered(log) == paths(log)


def test_dead_splits_leave_a_map_that_is_rewritten(tmp_path: Path, rng: random.Random) -> None:
    path = str(tmp_path / "t")
    append(path, 0, 100, rng)
    log = TransactionLog.open(path, config=Config({**ON, "deletionVector.maxShare": 0}))
    before = set(paths(log))
    delete_rows(log, " OR ".join(f"id = 'id-{10 * i}'" for i in range(6)))
    KeyMapBuilder(log_of(path), Config(ON)).update()
    log = log_of(path)
    assert len(before & set(paths(log))) == 4
    assert covered(log) == paths(log)
    table = indextables.open(path, options=_options(ON))
    for i in range(100):
        expected = 0 if i % 10 == 0 and i < 60 else 1
        assert kept(log, f"id = 'id-{i}'") == expected
        assert table.to_arrow(where=f"id = 'id-{i}'").num_rows == expected


def test_the_log_of_a_table_with_key_maps_can_be_described(
    tmp_path: Path, rng: random.Random
) -> None:
    path = str(tmp_path / "t")
    for i in range(4):
        append(path, 10 * i, 10, rng)
    kinds = describe_log(log_of(path), include_all=True)["action_type"].to_pylist()
    assert kinds.count("addKeyMap") == 5
    assert kinds.count("removeKeyMap") == 4
