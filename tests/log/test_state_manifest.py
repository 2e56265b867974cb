"""State manifests as other writers write them; layouts; bounds."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from log_helpers import memory_store
from state_helpers import SCHEMA, add, content, metadata, replayed

from indextables.config import Config
from indextables.errors import CorruptFileError, ProtocolError, UnsafePathError
from indextables.log.actions import AddFile, Protocol, RemoveFile
from indextables.log.actions.schema_registry import reference_of
from indextables.log.checkpoint.avro_file import ContainerWriter, read_records
from indextables.log.checkpoint.avro_schema import FILE_ENTRY, STATE_MANIFEST
from indextables.log.checkpoint.bounds import column_bounds, trusted_bounds
from indextables.log.checkpoint.compaction import choose_layout
from indextables.log.checkpoint.manifest import resolve
from indextables.log.checkpoint.state import decode_state, load_state, read_state, write_state
from indextables.log.read.ledger import Ledger
from indextables.log.read.snapshot import Snapshot

CONFIG = Config({"state.cache.enabled": False})
LONG = {"name": "n", "type": "long"}
STATE = "state-v00000000000000000007"


def record(**changes: Any) -> dict[str, Any]:
    base = {
        "formatVersion": 1, "stateVersion": 7, "createdAt": 5, "numFiles": 1, "totalBytes": 9,
        "protocolVersion": 4, "manifests": [], "tombstones": [], "schemaRegistry": {},
        "metadata": None,
    }  # fmt: skip
    return {**base, **changes}


def info(path: str, **changes: Any) -> dict[str, Any]:
    base = {"path": path, "numEntries": 1, "minAddedAtVersion": 0, "maxAddedAtVersion": 0}
    return {**base, **changes}


def as_json(**changes: Any) -> bytes:
    return json.dumps(record(**changes)).encode()


def as_avro(**changes: Any) -> bytes:
    """As a writer that knows neither extras nor counts of live entries."""
    out = io.BytesIO()
    fields = [f for f in STATE_MANIFEST["fields"] if f["name"] != "extras"]
    schema = {**STATE_MANIFEST, "fields": fields}
    fastavro.writer(out, fastavro.parse_schema(schema), [record(**changes)], codec="zstandard")
    return out.getvalue()


def entries(*paths: str) -> bytes:
    rows = [
        {
            "path": path, "partitionValues": {}, "size": 9, "modificationTime": 1,
            "dataChange": True, "hasFooterOffsets": False, "addedAtVersion": 0,
            "addedAtTimestamp": 1,
        }
        for path in paths
    ]  # fmt: skip
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(FILE_ENTRY), rows, codec="deflate")
    return out.getvalue()


def test_manifest_paths_resolve() -> None:
    assert resolve("manifests/m.avro", STATE) == "manifests/m.avro"
    assert (
        resolve("state-v00000000000000000001/m.avro", STATE) == "state-v00000000000000000001/m.avro"
    )
    assert resolve("m.avro", STATE) == f"{STATE}/m.avro"
    for path in ("manifests/../../x", "/etc/x", "../x", "manifests//x"):
        with pytest.raises(UnsafePathError):
            resolve(path, STATE)


@pytest.mark.parametrize("form", [as_json, as_avro])
def test_three_path_forms_load_and_are_reused(form: Any) -> None:
    store = memory_store()
    log = "_transaction_log"
    store.put(f"{log}/manifests/a.avro", entries("a"))
    store.put(f"{log}/state-v00000000000000000003/b.avro", entries("b"))
    store.put(f"{log}/{STATE}/c.avro", entries("c", "gone"))
    listed = [
        info("manifests/a.avro"),
        info("state-v00000000000000000003/b.avro"),
        info("c.avro", numEntries=2),
    ]
    name = "_manifest.json" if form is as_json else "_manifest.avro"
    data = form(manifests=listed, tombstones=["gone", "never there"], numFiles=3)
    store.put(f"{log}/{STATE}/{name}", data)
    ledger = Ledger(Protocol(4, 4), metadata(()))
    snapshot = load_state(store, read_state(store, 7), config=CONFIG, ledger=ledger)
    assert sorted(content(snapshot)) == ["a", "b", "c"]
    assert snapshot.manifest_of.tolist() == [0, 1, 2]
    grown = snapshot.with_versions([(8, 1, [AddFile("d", size=1)])])
    relaxed = Config({"state.cache.enabled": False, "state.compaction.tombstoneThreshold": 0.9})
    assert write_state(store, grown, config=relaxed).manifests_kept == 3
    paths = [m.path for m in read_state(store, 8).manifests]
    assert paths[1:3] == ["state-v00000000000000000003/b.avro", f"{STATE}/c.avro"]
    assert sorted(content(load_state(store, read_state(store, 8), config=CONFIG))) == list("abcd")


@pytest.mark.parametrize("spelled", ["wrapped", "bare", "object", "empty", "null"])
def test_metadata_forms(spelled: str) -> None:
    body = metadata().to_dict()
    values: dict[str, Any] = {
        "wrapped": json.dumps({"metaData": body}),
        "bare": json.dumps(body),
        "object": {"metaData": body},
        "empty": "",
        "null": None,
    }
    state = decode_state(as_json(metadata=values[spelled]), STATE)
    assert state.metadata == (None if spelled in ("empty", "null") else metadata())


def test_registry_keys_in_both_spellings() -> None:
    registry = {"aaa": "[]", "docMappingSchema.bbb": "[1]"}
    assert decode_state(as_avro(schemaRegistry=registry), STATE).schema_registry == {
        "aaa": "[]",
        "bbb": "[1]",
    }


def test_entries_with_the_same_path_count_once() -> None:
    store = memory_store()
    store.put("_transaction_log/manifests/a.avro", entries("a", "b", "a"))
    store.put("_transaction_log/manifests/b.avro", entries("c", "b"))
    listed = [info("manifests/a.avro", numEntries=3), info("manifests/b.avro", numEntries=2)]
    store.put(f"_transaction_log/{STATE}/_manifest.json", as_json(manifests=listed))
    ledger = Ledger(Protocol(4, 4), metadata(()))
    snapshot = load_state(store, read_state(store, 7), config=CONFIG, ledger=ledger)
    assert [f.path for f in snapshot.files()] == ["a", "c", "b"]
    assert snapshot.index_of("a") == 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"manifests": None}, "manifests"),
        ({"manifests": [3]}, "manifests"),
        ({"manifests": [{"path": 3}]}, "path"),
        ({"stateVersion": "x"}, "stateVersion"),
        ({"tombstones": [1]}, "tombstones"),
        ({"metadata": "{"}, "metadata"),
        ({"metadata": "[]"}, "expected an object"),
        ({"extras": "{"}, "extra"),
        ({"extras": "3"}, "extra"),
        ({"schemaRegistry": [1]}, "schemaRegistry"),
        ({"stateVersion": 8}, "says it is version 8"),
    ],
)
def test_damaged_states_name_file_version_and_remedy(changes: Any, reason: str) -> None:
    store = memory_store()
    store.put(f"_transaction_log/{STATE}/_manifest.json", as_json(**changes))
    with pytest.raises(CorruptFileError, match=reason) as caught:
        read_state(store, 7)
    assert caught.value.path == f"_transaction_log/{STATE}/_manifest.json"
    assert caught.value.version == 7
    assert "checkpoint" in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"Obj\x01", b"\x1f\x8b123", as_avro()[:-7], b"null", b"[]"])
def test_states_that_are_not_states(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_state(data, STATE)


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(ProtocolError, match="format 2"):
        decode_state(as_json(formatVersion=2), STATE)


def test_a_manifest_that_lost_entries_is_refused() -> None:
    store = memory_store()
    store.put("_transaction_log/manifests/a.avro", entries("a"))
    listed = [info("manifests/a.avro", numEntries=2)]
    store.put(f"_transaction_log/{STATE}/_manifest.json", as_json(manifests=listed))
    with pytest.raises(CorruptFileError, match="1 entries, the state expects 2") as caught:
        load_state(store, read_state(store, 7), config=CONFIG)
    assert caught.value.path == "_transaction_log/manifests/a.avro"


# -- layouts ------------------------------------------------------------------------------------


def loaded_base(store: Any, rng: Any, count: int = 100, manifests: int = 4) -> Any:
    config = Config({"state.cache.enabled": False, "state.entriesPerManifest": count // manifests})
    write_state(store, replayed([add(rng, f"p{k}") for k in range(count)]), config=config)
    return load_state(store, read_state(store, 1), config=CONFIG)


def layout_after(snapshot: Any, actions: Any, force: bool = False, **settings: Any) -> Any:
    config = Config({"state.cache.enabled": False, **settings})
    grown = snapshot.with_versions([(2, 1, actions)])
    return choose_layout(grown, config, force=force)


def test_triggers_of_compaction(rng: Any) -> None:
    base = loaded_base(memory_store(), rng)
    paths = [base.path(i) for i in range(100)]
    few = [RemoveFile(p) for p in paths[:5]]
    assert layout_after(base, few).kind == "incremental"
    assert layout_after(base, few, force=True).kind == "full"
    many = [RemoveFile(p) for p in paths[:12]]
    selective = layout_after(base, many)
    assert selective.kind == "selective"
    assert len(selective.kept) == 3
    everywhere = [RemoveFile(p) for p in paths[::3]]
    assert layout_after(base, everywhere).kind == "full"
    assert layout_after(base, [RemoveFile(p) for p in paths]).kind == "full"
    crowded = layout_after(base, few, **{"state.compaction.maxManifests": 4})
    assert crowded.kind in ("selective", "full")
    large = layout_after(base, few, **{"state.compaction.largeRemoveThreshold": 4})
    assert large.kind == "full"
    again = layout_after(base, [AddFile(paths[0], size=1)])
    assert again.kind == "incremental"
    assert len(again.kept) == 3


# -- document mappings --------------------------------------------------------------------------


def test_many_references_are_made_canonical() -> None:
    """Eight spellings of one mapping under eight references become one."""
    spellings = [
        json.dumps([{"name": "id", "type": "i64", "fast": True}], indent=k) for k in range(8)
    ]
    facts = metadata(**{f"docMappingSchema.ref{k}": t for k, t in enumerate(spellings)})
    adds = [AddFile(f"p{k}", size=1, doc_mapping_ref=f"ref{k % 8}") for k in range(30)]
    adds.append(AddFile("lost", size=1, doc_mapping_ref="text is lost"))
    snapshot = Snapshot.from_replay([(0, 1, [Protocol(4, 4), facts]), (1, 1, adds)])
    store = memory_store()
    write_state(store, snapshot, config=CONFIG)
    loaded = load_state(store, read_state(store, 1), config=CONFIG)
    refs = {file.doc_mapping_ref for file in loaded.files()}
    assert refs == {reference_of(spellings[0]), "text is lost"}
    assert all(loaded.doc_mapping(k).names == ["id"] for k in range(30))
    grown = snapshot.with_versions([(2, 1, [AddFile("new", size=1, doc_mapping_ref="ref3")])])
    assert write_state(store, grown, config=CONFIG).kind == "incremental"
    again = load_state(store, read_state(store, 2), config=CONFIG)
    assert all(again.doc_mapping(k).names == ["id"] for k in (0, again.index_of("new")))


def test_inline_mappings_move_to_the_registry() -> None:
    text = '[{"name":"id","type":"i64"}]'
    adds = [AddFile(f"p{k}", size=1, doc_mapping_json=text) for k in range(5)]
    adds.append(AddFile("plain", size=1))
    snapshot = replayed(list(adds))
    store = memory_store()
    write_state(store, snapshot, config=CONFIG)
    state = read_state(store, 1)
    assert state.schema_registry == {reference_of(text): text}
    loaded = load_state(store, state, config=CONFIG)
    assert [file.doc_mapping_ref for file in loaded.files()] == [reference_of(text)] * 5 + [None]
    assert all(file.doc_mapping_json is None for file in loaded.files())
    grown = snapshot.with_versions([(2, 1, [AddFile("q", size=1)])])
    assert grown.doc_mapping(0).names == ["id"]


# -- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "numeric", "expected"),
    [
        (["9", "10", None], True, ("9", "10")),
        (["9", "10"], False, None),
        (["10", "20"], False, ("10", "20")),
        (["b", "a", None], False, ("a", "b")),
        (["b", "10"], False, ("10", "b")),
        (["x"], True, None),
        ([None], False, (None, None)),
        (["-1.5", "2", "1e1"], True, ("-1.5", "1e1")),
        (["NaN", "1"], True, None),
    ],
)
def test_bounds_of_values(values: Any, numeric: bool, expected: Any) -> None:
    assert column_bounds(values, numeric) == expected


def test_bounds_in_doubt_are_not_trusted() -> None:
    bounds = {"day": ("9", "10"), "hour": ("9", "10"), "name": ("a", "b"), "id": (None, None)}
    assert trusted_bounds(bounds, SCHEMA) == {
        "hour": ("9", "10"),
        "name": ("a", "b"),
        "id": (None, None),
    }
    assert trusted_bounds(None, pa.schema([])) is None


@pytest.mark.parametrize("codec", ["zstd", "snappy", "deflate", "none"])
def test_no_bit_of_an_own_manifest_can_change_unnoticed(codec: str) -> None:
    config = Config({"state.compression": codec})
    writer = ContainerWriter({"type": "record", "name": "r", "fields": [LONG]}, config)
    writer.add_block(3, b"\x02\x04\x06")
    good = writer.finish()
    if codec != "snappy":  # which fastavro reads only with another library
        assert [row["n"] for row in fastavro.reader(io.BytesIO(good))] == [1, 2, 3]
    assert read_records(good) == [{"n": 1}, {"n": 2}, {"n": 3}]
    for bit in range(8 * len(good)):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        with contextlib.suppress(CorruptFileError):
            assert read_records(bytes(bad)) == read_records(good), f"bit {bit} changed the values"
