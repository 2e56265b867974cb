"""Snapshots: replay in order, columns that agree with the files, states that lose nothing."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_helpers import memory_store
from state_helpers import SCHEMA, add, after, content, first_version, metadata, replayed

from indextables.config import Config
from indextables.errors import CorruptFileError, IndexTablesError
from indextables.log.actions import (
    Action,
    AddFile,
    AddXRef,
    DefineIndex,
    DropIndex,
    IndexBlocks,
    IndexFile,
    RemoveFile,
    RemoveXRef,
    SkipFile,
    Txn,
)
from indextables.log.checkpoint.encode import pack_adds
from indextables.log.checkpoint.state import load_state, read_state, write_state
from indextables.log.read import replay
from indextables.log.read.columns import RowSegment
from indextables.log.read.facts import Fact
from indextables.log.read.packed import PackedSegment
from indextables.log.read.snapshot import Snapshot, VersionActions

NO_CACHE = Config({"state.cache.enabled": False})


def stored(snapshot: Snapshot, **options: Any) -> Snapshot:
    """The snapshot after a trip through a state."""
    store = memory_store()
    write_state(store, snapshot, config=NO_CACHE, **options)
    return load_state(store, read_state(store, snapshot.version), config=NO_CACHE)


# -- replay -------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=6), max_size=8))
def test_replay_equals_a_dict(versions: list[list[tuple[bool, int]]]) -> None:
    model: dict[str, int] = {}
    snapshot = replayed()
    batches: list[list[Action]] = []
    for number, steps in enumerate(versions):
        batch: list[Action] = []
        for is_add, k in steps:
            path = f"f{k}"
            model.pop(path, None)
            if is_add:
                batch.append(AddFile(path, size=number))
                model[path] = number
            else:
                batch.append(RemoveFile(path))
        batches.append(batch)
        snapshot = after(snapshot, batch)
        assert {p: f.size for p, f in content(snapshot).items()} == model
    at_once = replayed(*batches)
    assert {p: f.size for p, f in content(at_once).items()} == model
    for path in (f"f{k}" for k in range(13)):
        index = snapshot.index_of(path)
        assert (index is None) == (path not in model)
        assert index is None or snapshot.path(index) == path


def test_a_snapshot_never_changes(rng: random.Random) -> None:
    old = replayed([add(rng, "a"), add(rng, "b")])
    before = content(old)
    new = after(old, [RemoveFile("a"), AddFile("b", size=1), AddFile("c", size=2)])
    assert content(old) == before
    assert sorted(content(new)) == ["b", "c"]
    assert [f.path for f in new.files()] == ["b", "c"]
    assert new.files()[-1].path == "c"
    assert [f.path for f in new.files()[:1]] == ["b"]
    with pytest.raises(IndexError):
        new.file(2)


def test_many_small_versions_leave_few_segments(rng: random.Random) -> None:
    snapshot = replayed()
    for k in range(300):
        snapshot = after(snapshot, [AddFile(f"f{k}", size=1)])
    assert snapshot.num_files == 300
    assert len(snapshot.segments) < 12


def test_large_versions_are_packed(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "PACK_FROM", 50)
    adds: list[Action] = [add(rng) for _ in range(60)]
    snapshot = replayed(adds)
    assert isinstance(snapshot.segments[0], PackedSegment)
    expected = {a.path: a.stamped(1, 2000) for a in adds if isinstance(a, AddFile)}
    assert content(snapshot) == expected
    assert isinstance(after(snapshot, [add(rng)]).segments[-1], RowSegment)


def test_files_know_when_they_came() -> None:
    snapshot = replayed([AddFile("a", size=1)], [AddFile("b", size=1, added_at_version=7)])
    assert [f.added_at_version for f in snapshot.files()] == [1, 2]
    assert [f.added_at_timestamp for f in snapshot.files()] == [2000, 2001]


def test_a_log_without_metadata_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="metadata"):
        Snapshot.from_replay([VersionActions(1, 0, [AddFile("a", size=1)])])


def test_refresh_asks_the_source() -> None:
    snapshot = replayed()
    with pytest.raises(IndexTablesError, match="does not know its log"):
        snapshot.refresh()

    class Source:
        def snapshot(self) -> Snapshot:
            return newer

    newer = after(snapshot, [AddFile("a", size=1)])
    assert snapshot.with_source(Source()).refresh() is newer


# -- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["rows", "packed", "mixed"])
def test_columns_agree_with_the_files(rng: random.Random, form: str) -> None:
    adds = [add(rng) for _ in range(40)]
    segments = [RowSegment(adds)] if form == "rows" else pack_adds(adds)
    if form == "mixed":
        segments = [RowSegment(adds[:13]), *pack_adds(adds[13:])]
    masks = [np.array([rng.random() < 0.8 for _ in range(s.n)]) for s in segments]
    base = replayed()
    snapshot = Snapshot(1, 0, base.ledger, segments, masks)
    files = list(snapshot.files())
    kept = [
        a
        for s, m in zip(segments, masks, strict=True)
        for a, k in zip(_adds(s), m, strict=True)
        if k
    ]
    assert files == kept
    assert snapshot.paths.to_pylist() == [f.path for f in files]
    assert snapshot.sizes.tolist() == [f.size for f in files]
    assert snapshot.num_bytes == sum(f.size for f in files)
    assert snapshot.num_records.tolist() == [_known(f.num_records) for f in files]
    assert snapshot.footer_starts.tolist() == [_known(f.footer_start_offset) for f in files]
    for which, attr in (("min", "min_values"), ("max", "max_values")):
        for name in ("id", "name", "nothing"):
            expected = [(getattr(f, attr) or {}).get(name) for f in files]
            column = snapshot.stat_column(which, name)
            assert (column.to_list() if column else [None] * len(files)) == expected
    codes, values = snapshot.partition_codes("day")
    assert [values[c] for c in codes] == [f.partition_values["day"] for f in files]
    assert len(set(values)) == len(values)
    assert snapshot.indices_of([f.path for f in files]).tolist() == list(range(len(files)))
    table = snapshot.to_arrow()
    assert table["path"].to_pylist() == [f.path for f in files]
    assert table["numRecords"].to_pylist() == [f.num_records for f in files]
    mins = [None if m is None else dict(m) for m in table["minValues"].to_pylist()]
    assert mins == [f.min_values for f in files]


def _adds(segment: Any) -> list[AddFile]:
    return [segment.add(row) for row in range(segment.n)]


def _known(value: int | None) -> int:
    return -1 if value is None else value


def test_counts_and_stat_columns(rng: random.Random) -> None:
    stats = '{"numRecords":5,"nullCount":{"id":3},"nanCount":{"id":1}}'
    adds = [AddFile("a", size=1, stats=stats, min_values={"id": "1"}), AddFile("b", size=1)]
    for segments in ([RowSegment(adds)], pack_adds(adds)):
        snapshot = Snapshot(1, 0, replayed().ledger, segments)
        counts = snapshot.stats_counts("nullCount", "id")
        assert counts is not None
        assert counts.tolist() == [3, -1]
        assert snapshot.stats_counts("nullCount", "name") is None
        assert snapshot.stat_columns == {"id"}
        assert snapshot.num_rows is None


def test_derived_columns_are_computed_once_per_segment(rng: random.Random) -> None:
    calls = []
    fact: Fact[str, Any] = Fact()

    def build(segment: Any) -> Any:
        calls.append(segment.n)
        return segment.ints("size")

    snapshot = Snapshot(1, 0, replayed().ledger, pack_adds([add(rng) for _ in range(30)]))
    assert snapshot.derive(fact, "k", build).tolist() == snapshot.sizes.tolist()
    grown = after(snapshot, [add(rng)])
    assert grown.derive(fact, "k", build).tolist() == grown.sizes.tolist()
    assert grown.derive(fact, "k", build) is grown.derive(fact, "k", build)
    assert calls == [30, 1]


def test_columns_of_an_empty_table() -> None:
    snapshot = replayed()
    assert snapshot.num_files == 0
    assert snapshot.num_rows == 0
    assert snapshot.sizes.tolist() == []
    assert snapshot.paths.to_pylist() == []
    assert snapshot.partition_codes("day")[1] == []
    assert snapshot.stat_column("min", "id") is None
    assert snapshot.to_arrow().num_rows == 0
    assert snapshot.schema == SCHEMA
    assert snapshot.table_mapping is None
    assert stored(snapshot).num_files == 0


def test_document_mappings() -> None:
    old = '[{"name":"id","type":"i64"}]'
    new = '{"field_mappings":[{"name":"text","type":"text","tokenizer":"raw"}]}'
    facts = [first_version().actions[0], metadata(**{"docMappingSchema.abc": old})]
    adds = [
        AddFile("a", size=1, doc_mapping_ref="abc"),
        AddFile("b", size=1, doc_mapping_json=new),
        AddFile("c", size=1),
    ]
    snapshot = Snapshot.from_replay([VersionActions(0, 0, facts), VersionActions(1, 0, adds)])
    for form in (snapshot, stored(snapshot)):
        assert form.doc_mapping(0).names == ["id"]
        assert form.doc_mapping(1).names == ["text"]
        assert form.doc_mapping(2) is None
        assert form.doc_mapping("abc").names == ["id"]
        assert form.doc_mapping("nobody") is None
        assert sorted(form.table_mapping.names) == ["id", "text"]


# -- states -------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("compression", ["zstd", "snappy", "deflate", "none"])
def test_a_state_loses_nothing(rng: random.Random, compression: str, as_json: bool) -> None:
    extras: list[Action] = [
        AddXRef("_x/xref-1.split", "1", ("a",), 1, 10),
        AddXRef("_x/xref-2.split", "2", ("a",), 1, 10),
        RemoveXRef("_x/xref-2.split", "2", 5),
        DefineIndex("3f", "id", 1),
        IndexBlocks("3f", "id", files=(IndexFile("a", "_colindex/a.idx", 3, rows=9),)),
        SkipFile("a", 5, "broken", "merge", retry_after=9),
        Txn("stream", 4, 1),
    ]
    snapshot = replayed([add(rng, f"p{k}") for k in range(50)], extras, [RemoveFile("p3")])
    config = Config({"state.cache.enabled": False, "state.compression": compression})
    store = memory_store()
    written = write_state(store, snapshot, config=config, as_json=as_json)
    state = read_state(store, snapshot.version)
    loaded = load_state(store, state, config=config)
    assert content(loaded) == content(snapshot)
    assert loaded.ledger == snapshot.ledger
    assert loaded.xrefs[0].xref_id == "1"
    assert list(loaded.ledger.removed_xrefs) == ["_x/xref-2.split"]
    assert loaded.indexes.files["id", "a"].size == 3
    assert loaded.txns == {"stream": 4}
    assert loaded.skips["a"].retry_after == 9
    assert (state.num_files, state.total_bytes) == (49, snapshot.num_bytes)
    assert (written.num_files, written.total_bytes) == (49, snapshot.num_bytes)


def test_index_definitions_end(rng: random.Random) -> None:
    file = IndexFile("a", "_colindex/a.idx", 3)
    snapshot = replayed(
        [DefineIndex("1", "id"), IndexBlocks("1", "id", files=(file,))],
        [IndexBlocks("other", "id", files=(IndexFile("b", "x", 1),))],
    )
    assert list(snapshot.indexes.files) == [("id", "a")]
    assert after(snapshot, [DefineIndex("2", "id")]).indexes.files == {}
    assert after(snapshot, [DropIndex("other", "id")]).indexes == snapshot.indexes
    dropped = after(snapshot, [DropIndex("1", "id")])
    assert (dropped.indexes.definitions, dropped.indexes.files) == ({}, {})
    mirrored = metadata(**{"indextables.columnIndex.name": '{"id":"9","format":"bbidx2"}'})
    assert after(snapshot, [mirrored]).indexes.definitions["name"].id == "9"


def test_a_skip_ends_with_its_split() -> None:
    snapshot = replayed([AddFile("a", size=1), SkipFile("a", 1), SkipFile("b", 1)])
    assert set(snapshot.skips) == {"a", "b"}
    assert set(after(snapshot, [RemoveFile("a")]).skips) == {"b"}
    assert set(after(snapshot, [AddFile("b", size=1)]).skips) == {"a"}


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.booleans(), st.integers(0, 25)), max_size=8),
            st.sampled_from(["none", "state", "reload", "force"]),
        ),
        max_size=8,
    ),
    st.integers(1, 4),
)
def test_states_keep_exactly_the_live_files(steps: Any, max_manifests: int) -> None:
    """Appends, removes, re-adds, states, compactions and re-opens against a dict."""
    config = Config(
        {
            "state.cache.enabled": False,
            "state.compaction.maxManifests": max_manifests,
            "state.entriesPerManifest": 5,
            "state.compaction.tombstoneThreshold": 0.3,
        }
    )
    store = memory_store()
    snapshot = replayed()
    model: dict[str, int] = {}
    for number, (changes, what) in enumerate(steps):
        batch: list[Action] = []
        for is_add, k in changes:
            model.pop(f"f{k}", None)
            if is_add:
                model[f"f{k}"] = number
                batch.append(AddFile(f"f{k}", {"day": str(k % 3), "hour": "1"}, number))
            else:
                batch.append(RemoveFile(f"f{k}"))
        snapshot = after(snapshot, batch)
        if what != "none":
            write_state(store, snapshot, config=config, force_compaction=what == "force")
            state = read_state(store, snapshot.version)
            loaded = load_state(store, state, config=config)
            assert {p: f.size for p, f in content(loaded).items()} == model
            total = sum(info.num_entries for info in state.manifests)
            assert total - len(state.tombstones) == len(model) == state.num_files
            assert state.total_bytes == sum(model.values())
            snapshot = loaded if what == "reload" else snapshot
        assert {p: f.size for p, f in content(snapshot).items()} == model


def test_incremental_states_share_manifests(rng: random.Random) -> None:
    store = memory_store()
    snapshot = replayed([add(rng) for _ in range(100)])
    assert write_state(store, snapshot, config=NO_CACHE).kind == "full"
    snapshot = after(snapshot, [add(rng, "new"), RemoveFile(snapshot.path(0))])
    written = write_state(store, snapshot, config=NO_CACHE)
    assert (written.kind, written.manifests_kept, written.manifests_written) == (
        "incremental",
        1,
        1,
    )
    assert written.tombstones == 1
    state = read_state(store, snapshot.version)
    assert [info.num_entries for info in state.manifests] == [100, 1]
    assert [info.live_entry_count for info in state.manifests] == [99, 1]
    assert state.manifests[0].path == read_state(store, 1).manifests[0].path
    assert content(load_state(store, state, config=NO_CACHE)) == content(snapshot)
    again = after(snapshot, [add(rng, "newer")])
    assert write_state(store, again, config=NO_CACHE).manifests_kept == 2


def test_a_state_that_is_there_already_is_fine(rng: random.Random) -> None:
    store = memory_store()
    snapshot = replayed([add(rng)])
    assert not write_state(store, snapshot, config=NO_CACHE).already_there
    assert write_state(store, replayed([add(rng)]), config=NO_CACHE).already_there


def test_a_base_manifest_that_is_gone_is_not_referred_to(rng: random.Random) -> None:
    store = memory_store()
    snapshot = stored_in(store, replayed([add(rng, f"p{k}") for k in range(20)]))
    store.delete([f"_transaction_log/{snapshot.manifests[0].path}"])
    grown = after(snapshot, [add(rng, "new")])
    assert write_state(store, grown, config=NO_CACHE).kind == "full"
    loaded = load_state(store, read_state(store, grown.version), config=NO_CACHE)
    assert content(loaded) == content(grown)


def stored_in(store: Any, snapshot: Snapshot) -> Snapshot:
    write_state(store, snapshot, config=NO_CACHE)
    return load_state(store, read_state(store, snapshot.version), config=NO_CACHE)


def test_full_compaction_sorts_by_partition(rng: random.Random) -> None:
    store = memory_store()
    config = Config({"state.cache.enabled": False, "state.entriesPerManifest": 25})
    adds: list[Action] = [
        AddFile(f"p{k}", {"day": "2024-01-01", "hour": str(k * 7 % 24)}, 1) for k in range(96)
    ]
    write_state(store, replayed(adds), config=config)
    state = read_state(store, 1)
    hours = [info.partition_bounds["hour"] for info in state.manifests]
    numbers = [(int(low), int(high)) for low, high in hours]
    assert numbers[0][0] == 0
    assert numbers[-1][1] == 23
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(numbers))
