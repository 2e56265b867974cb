"""What newer writers put into a log: it survives what we write, and costs little to read."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import fastavro
import pytest
from log_helpers import append, config, names, new_table, remove, reopen, run, split

from indextables.errors import CorruptFileError
from indextables.log.actions import AddFile, RemoveFile, UnknownActions, codec
from indextables.log.actions.codec import (
    CODEC_PREFIX,
    GZIP_MAGIC,
    decode_actions,
    encode_lines,
    most_text,
)
from indextables.log.checkpoint.avro_file import read_records
from indextables.log.checkpoint.avro_schema import FILE_ENTRY
from indextables.log.checkpoint.encode import pack_adds
from indextables.log.checkpoint.state import read_state
from indextables.log.log import TransactionLog
from indextables.log.read.columns import RowSegment
from indextables.log.read.versions import checkpoint_path, version_path

MORE = {"rowIdBase": 7, "vector": {"path": "x", "bits": [1, 2]}}


def rewrite(log: TransactionLog, version: int, change: Any) -> TransactionLog:
    """Let a newer writer have written a version: its lines go through ``change``."""
    path = version_path(version)
    lines = list(codec.decode_lines(log.store.read(path), path=path))
    log.store.put(path, encode_lines(change(lines)))
    return reopen(log)


def newer(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Unknown fields in every action, and actions of unknown kinds."""
    grown = [{key: {**body, **MORE} for key, body in line.items()} for line in lines]
    return [{"clustering": {"by": ["id"]}}, *grown, {"heartbeat": {"at": 1}}]


def unknown_in(log: TransactionLog) -> tuple[list[str], list[dict[str, Any]]]:
    """Lines of unknown kinds, and the bodies of the live adds as they would be written."""
    snapshot = log.snapshot()
    lines = list(UnknownActions(snapshot.ledger.unknown).json_lines())
    return lines, [add.to_dict() for add in snapshot.files()]


@pytest.mark.parametrize("form", ["avro", "json"])
def test_unknown_actions_and_fields_survive_checkpoints(form: str) -> None:
    log = new_table(checkpoint__enabled=False, state__format=form)
    append(log, "a")
    log = rewrite(log, 0, newer)
    log = rewrite(log, 1, newer)
    append(log, "b")
    before = unknown_in(log)
    assert len(before[0]) == 2
    assert {k: before[1][0][k] for k in MORE} == MORE
    log.checkpoint(compact=True)
    log.store.delete([version_path(1), version_path(2)])
    log = reopen(log)
    assert unknown_in(log) == before
    assert json.loads(log.snapshot().protocol.unknown or "") == MORE
    assert json.loads(log.snapshot().metadata.unknown or "") == MORE
    append(log, "c")
    log.checkpoint(compact=True)
    log.store.delete([version_path(3), checkpoint_path(2)])
    assert unknown_in(reopen(log))[0] == before[0]
    assert unknown_in(reopen(log))[1][:2] == before[1]


def test_unknown_fields_of_side_actions_survive_a_state() -> None:
    log = new_table(checkpoint__enabled=False)
    append(log, "a")
    bodies = {
        "mergeskip": {"path": "a.split", "skipTimestamp": 1},
        "txn": {"appId": "x", "version": 3},
        "addXRef": {"path": "x", "xrefId": "i", "sourceSplitPaths": ["a.split"], "size": 1},
        "removeXRef": {"path": "y", "xrefId": "j", "deletionTimestamp": 1},
        "defineIndex": {"id": "1", "column": "id"},
    }
    lines = [{key: {**body, **MORE}} for key, body in bodies.items()]
    log.store.put(version_path(2), encode_lines(lines))
    reopen(log).checkpoint()
    log.store.delete([version_path(1), version_path(2)])
    found = [a.envelope() for a in reopen(log).snapshot().ledger.extra_actions()]  # type: ignore[union-attr]
    for line in found:
        ((_, body),) = line.items()
        assert {k: body[k] for k in MORE} == MORE
    assert {key for line in found for key in line} == bodies.keys()


def test_unknown_fields_survive_packing() -> None:
    adds = [AddFile("a", {}, 1, unknown='{"x":1}'), AddFile("b", {}, 1)]
    (packed,) = pack_adds(adds)
    assert [packed.add(0).unknown, packed.add(1).unknown] == ['{"x":1}', None]
    assert RowSegment(adds).add(0).to_dict()["x"] == 1


def test_an_upgrade_keeps_the_unknown_fields_of_the_protocol() -> None:
    log = rewrite(new_table(version=2), 0, newer)
    log.upgrade_protocol(4)
    assert json.loads(reopen(log).snapshot().protocol.unknown or "") == MORE


def test_a_line_that_is_repeated_in_every_version_is_kept_once() -> None:
    log = new_table()
    for version in range(1, 5):
        lines = [{"heartbeat": {"from": "x"}}, {"leader": {"term": version}}]
        log.store.put(version_path(version), encode_lines(lines))
    kept = list(UnknownActions(reopen(log).snapshot().ledger.unknown).json_lines())
    assert len(kept) == 5
    assert kept[-2:] == ['{"heartbeat":{"from":"x"}}', '{"leader":{"term":4}}']


# -- one action a line --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        {"add": {"path": "a", "size": 1}, "remove": {"path": "b"}},
        {"add": {"path": "a", "size": 1}, "future": {}},
        {"future": {}, "remove": {"path": "b"}},
    ],
)
def test_two_actions_in_a_line_are_refused(line: dict[str, Any]) -> None:
    log = new_table()
    data = b"\n" + encode_lines([{"txn": {"appId": "x", "version": 1}}, line], compressed=False)
    log.store.put(version_path(1), data)
    with pytest.raises(CorruptFileError, match="line 3: 2 actions in one line") as caught:
        reopen(log).snapshot()
    assert caught.value.path == version_path(1)
    assert caught.value.version == 1


def test_null_bodies_are_no_actions() -> None:
    data = encode_lines([{"add": {"path": "a", "size": 1}, "remove": None, "metaData": None}])
    (add,) = decode_actions(data, root="memory://t", path="p")
    assert isinstance(add, AddFile)


# -- how much memory a file may take ------------------------------------------------------------


def peak_of(data: bytes) -> tuple[int, Any]:
    """Most bytes held while the file is decoded, and its actions or the refusal."""
    tracemalloc.start()
    try:
        try:
            found: Any = decode_actions(data, root="memory://t", path="p")
        except CorruptFileError as error:
            found = error
        return tracemalloc.get_traced_memory()[1], found
    finally:
        tracemalloc.stop()


def test_a_small_file_cannot_hold_a_large_text() -> None:
    line = b'{"future":{}}\n'
    data = gzip.compress(line * (100_000_000 // len(line)))
    assert len(data) < 400_000
    peak, refusal = peak_of(data)
    assert isinstance(refusal, CorruptFileError)
    assert f"larger than {most_text(len(data))} bytes" in str(refusal)
    assert peak < 2.5 * most_text(len(data))


def test_the_limit_counts_all_streams_of_a_file() -> None:
    stream = gzip.compress(b" " * (most_text(0) // 2) + b"\n")
    assert isinstance(peak_of(stream * 3)[1], CorruptFileError)


def test_unknown_actions_take_about_the_room_of_their_text() -> None:
    text = b"".join(b'{"u":%d}\n' % number for number in range(200_000))
    data = gzip.compress(text)
    peak, actions = peak_of(data)
    assert [type(a) for a in actions] == [UnknownActions]
    assert len(actions[0].text) == len(text) - 1
    assert peak < 6 * len(text)


def test_wide_tables_stay_far_below_the_limit() -> None:
    """Adds that differ in their paths alone, as like each other as adds can be."""
    stats = {f"column_{k}": "0" for k in range(400)}
    adds = [
        AddFile(f"{k:08d}.split", {}, k, min_values=stats, max_values=stats) for k in range(2000)
    ]
    data = codec.encode_actions(adds)
    assert len(decode_actions(data, root="memory://t", path="p")) == 2000
    text = len(codec.decompress(data))
    assert text > codec.TEXT_FLOOR
    assert text < 0.75 * codec.TEXT_RATIO * len(data)


# -- the form of JVM IndexTables 0.5 ------------------------------------------------------------


@pytest.mark.parametrize("form", ["avro", "json"])
def test_log_files_with_the_prefix_of_the_jvm(form: str) -> None:
    values: dict[str, Any] = {"transaction__compression__codecPrefix": True}
    log = new_table(state__format=form, **values)
    append(log, "a")
    log.checkpoint()
    files = [version_path(0), version_path(1)] + [checkpoint_path(1)] * (form == "json")
    for path in files:
        assert log.store.read(path)[:4] == CODEC_PREFIX + GZIP_MAGIC
    assert names(reopen(log)) == ["a"]


@pytest.mark.interop
def test_our_prefix_is_that_of_the_tables_of_jvm_0_5_3(interop_dir: Path) -> None:
    tables = interop_dir.with_name("interop-0.5.3")
    if not tables.is_dir():
        pytest.skip("the tables of release 0.5.3 are not on this machine")
    for name in ("appends", "merge", "partitioned", "single"):
        path = tables / name / version_path(0)
        data = path.read_bytes()
        assert data[:4] == CODEC_PREFIX + GZIP_MAGIC
        lines = list(codec.decode_lines(data, path=path.name))
        assert encode_lines(lines, prefixed=True)[:4] == data[:4]


def test_the_settings_choose_the_form() -> None:
    assert codec.encoding(config()) == {"compressed": True, "prefixed": False}
    log = new_table(transaction__compression__enabled=False)
    run(log, "WRITE", [split("a")])
    assert log.store.read(version_path(1))[:1] == b"{"


def test_a_state_holds_unknown_lines_as_they_stood() -> None:
    log = new_table(checkpoint__enabled=False)
    log.store.put(version_path(1), b'{"future": {"b":1,  "a":2}}\n{"add":{"path":"a","size":1}}\n')
    reopen(log).checkpoint()
    extras = read_state(log.store, 1).extras
    assert [a.text for a in extras if isinstance(a, UnknownActions)] == ['{"future":{"b":1,"a":2}}']
    assert not any(isinstance(a, RemoveFile) for a in extras)


def test_unknown_fields_of_avro_entries_survive_a_compaction() -> None:
    log = new_table(checkpoint__enabled=False)
    append(log, "a", "b")
    log.checkpoint()
    (info,) = read_state(log.store, 1).manifests
    path = f"_transaction_log/{info.path}"
    more = [
        {"name": "vector", "type": ["null", {"type": "array", "items": "long"}]},
        {"name": "blob", "type": ["null", "bytes"]},
        {"name": "ratio", "type": "double"},
    ]
    schema = {**FILE_ENTRY, "fields": [*more, *FILE_ENTRY["fields"]]}
    entries = read_records(log.store.read(path))
    entries[0] |= {"vector": [1, 2], "blob": b"\xff", "ratio": 0.5}
    entries[1] |= {"vector": None, "blob": None, "ratio": float("nan")}
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), entries)
    log.store.put(path, out.getvalue())
    expected = [{"vector": [1, 2], "blob": "\xff", "ratio": 0.5}, None]
    for _ in range(2):
        log = reopen(log)
        texts = [add.unknown for add in log.snapshot().files()]
        assert [None if t is None else json.loads(t) for t in texts] == expected
        append(log, "c")
        log.checkpoint(compact=True)
        remove(log, "c")
        log.checkpoint(compact=True)
