"""Tables of other writers, and our tables in the eyes of another reader."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from independent_reader import read_table
from log_helpers import MAPPING, SCHEMA, config, run, split

from indextables.log.actions import AddXRef, SkipFile
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.storage.base import open_store

# name: version, files, rows, columns, partition columns
EXPECTED: dict[str, tuple[int, int, int, list[str], tuple[str, ...]]] = {
    "01_single_write": (1, 2, 3, ["id", "text", "score"], ()),
    "02_five_appends": (5, 10, 50, ["id", "text", "score"], ()),
    "03_with_removes": (4, 1, 1, ["id", "text"], ()),
    "04_partitioned": (1, 3, 5, ["id", "date", "text", "score"], ("date",)),
    "06_schema_dedup": (12, 24, 60, ["id", "title", "body", "rating"], ()),
    "07_two_writes_no_checkpoint": (2, 4, 6, ["id", "text"], ()),
    "09_partitioned_multi_append": (5, 10, 10, ["id", "date", "text"], ("date",)),
    "11_mixed_operations": (4, 2, 2, ["id", "text"], ()),
    "14_after_merge": (5, 1, 40, ["id", "text", "score"], ()),
}


@pytest.fixture(params=sorted(EXPECTED))
def foreign(request: pytest.FixtureRequest, interop_dir: Path) -> Path:
    folder = interop_dir / request.param
    if not folder.is_dir():
        pytest.skip(f"{request.param} is not on this machine")
    return folder


@pytest.mark.interop
def test_foreign_tables_open_exactly(foreign: Path) -> None:
    version, files, rows, columns, partitions = EXPECTED[foreign.name]
    snapshot = TransactionLog.open(str(foreign)).snapshot()
    assert snapshot.version == version
    assert (snapshot.num_files, snapshot.num_rows) == (files, rows)
    assert snapshot.schema.names == columns
    assert snapshot.partition_columns == partitions
    expected = read_table(foreign)
    assert expected.version == version
    assert expected.num_rows == rows
    same_table(snapshot, expected)
    for add in snapshot.files():
        assert (foreign / add.path).stat().st_size == add.size
        for column, value in add.partition_values.items():
            assert f"{column}={value}/" in add.path


def same_table(snapshot: Any, expected: Any) -> None:
    """Every field of every file, the schema, and the mappings."""
    found = {add.path: add for add in snapshot.files()}
    assert sorted(found) == sorted(expected.adds)
    for path, add in found.items():
        entry = expected.adds[path]
        body = add.to_dict()
        for key, value in entry.items():
            if key in ("addedAtVersion", "addedAtTimestamp", "docMappingJson", "docMappingRef"):
                continue
            assert body.get(key) == value, (path, key)
    assert snapshot.metadata.to_dict() == expected.metadata
    assert snapshot.num_bytes == sum(entry["size"] for entry in expected.adds.values())
    for number in range(snapshot.num_files):
        mapping = snapshot.doc_mapping(number)
        entry = expected.adds[snapshot.file(number).path]
        text = expected.doc_mapping(entry, expected.registry)
        assert (mapping is None) == (text is None)
        if text is not None:
            assert mapping.names == [field["name"] for field in json.loads(text)]


@pytest.mark.interop
def test_every_state_of_a_foreign_table_is_a_version(foreign: Path) -> None:
    log = TransactionLog.open(str(foreign))
    states = sorted(int(p.name[7:]) for p in (foreign / "_transaction_log").glob("state-v*"))
    for version in states:
        assert log.snapshot(version=version).version == version
    assert log.snapshot(version=0).num_files == 0
    entries = log.history()
    assert [e.version for e in entries] == [*reversed(states), 0]
    times = [e.timestamp for e in entries]
    assert times == sorted(times, reverse=True)
    assert log.snapshot(timestamp=times[0]).version == states[-1]
    assert log.snapshot(timestamp=times[-1]).version == 0


@pytest.mark.interop
def test_writing_to_a_foreign_table(foreign: Path, tmp_path: Path) -> None:
    """Our versions follow the newest state, and both readers see them."""
    folder = tmp_path / foreign.name
    shutil.copytree(foreign, folder)
    log = TransactionLog.open(str(folder), config=config(checkpoint__interval=0))
    before = log.snapshot()
    values = dict.fromkeys(before.partition_columns, "2030-01-01")
    added = split("ours/added", rows=7)
    object.__setattr__(added, "partition_values", values)
    result = run(log, "WRITE", [added, before.file(0).removal(1)], base=before)
    assert result.version == before.version + 1
    cache.SHARED.invalidate()
    for checkpointed in (False, True):
        if checkpointed:
            log.checkpoint()
            cache.SHARED.invalidate()
        snapshot = TransactionLog.open(str(folder)).snapshot()
        expected = read_table(folder)
        assert expected.version == snapshot.version == result.version
        assert (expected.checkpoint == "avro-state") or not checkpointed
        assert snapshot.num_files == before.num_files
        assert sorted(expected.adds) == sorted(snapshot.paths.to_pylist())
        assert expected.num_rows == snapshot.num_rows


# -- our tables, read by another reader ---------------------------------------------------------


def write_ours(folder: Path, version: int, form: str, **values: Any) -> TransactionLog:
    settings = config(state__format=form, checkpoint__interval=4, **values)
    log = TransactionLog.create(
        str(folder),
        SCHEMA,
        partition_columns=["day"],
        protocol_version=version,
        configuration={"k": "v"},
        name="ours",
        config=settings,
    )
    for i in range(10):
        day = None if i == 3 else str(i % 3)
        run(log, "WRITE", [split(f"day={day}/s{i}", day, rows=i, partitioned=True)])
    snapshot = log.snapshot()
    first = snapshot.index_of("day=0/s0.split")
    assert first is not None
    merged = split("day=0/m", "0", rows=0)
    run(log, "MERGE SPLITS", [snapshot.file(first).removal(1, data_change=False), merged])
    if version >= 2:
        run(log, "MERGE SPLITS", [SkipFile("day=1/s1.split", 5, "broken", "merge")])
    if version >= 3:
        log.add_xref(AddXRef("_xrefsplits/abcd/x.split", "x", ("day=0/m.split",), 1, 9))
    return log


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize(
    ("version", "form"),
    [(1, "json"), (2, "json"), (3, "json"), (3, "parts"), (4, "avro"), (4, "json")],
)
def test_our_tables_of_every_version(
    tmp_path: Path, version: int, form: str, compressed: bool
) -> None:
    values: dict[str, Any] = {"transaction__compression__enabled": compressed}
    if form == "parts":
        values["checkpoint__actionsPerPart"] = 3
    log = write_ours(tmp_path / "t", version, "json" if form == "parts" else form, **values)
    cache.SHARED.invalidate()
    snapshot = log.snapshot()
    expected = read_table(tmp_path / "t")
    assert expected.checkpoint == {"parts": "json-multipart", "avro": "avro-state"}.get(form, form)
    same_table(snapshot, expected)
    assert expected.version == snapshot.version
    assert expected.num_rows == snapshot.num_rows == 45
    assert expected.columns == SCHEMA.names
    assert expected.metadata["configuration"]["k"] == "v"
    wanted = max(version, 2)
    assert expected.protocol["minReaderVersion"] == wanted
    assert expected.protocol["minWriterVersion"] == wanted
    assert set(expected.xrefs) == {x.path for x in snapshot.xrefs}
    if version >= 2:
        assert set(snapshot.skips) == {"day=1/s1.split"}
    for entry in expected.adds.values():
        assert expected.doc_mapping(entry, expected.registry) == MAPPING
        assert ("docMappingRef" in entry and entry["docMappingRef"] is not None) == (version >= 3)
    null = next(a for a in expected.adds.values() if "day=None" in a["path"])
    assert null["partitionValues"] == {"day": "__HIVE_DEFAULT_PARTITION__"}


# -- tables of older writers, by hand -----------------------------------------------------------


def put_lines(folder: Path, name: str, lines: list[dict[str, Any]], prefix: bytes = b"") -> None:
    log = folder / "_transaction_log"
    log.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (log / name).write_bytes(prefix + gzip.compress(text))


def first_lines() -> list[dict[str, Any]]:
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    return [
        {
            "protocol": {
                "minReaderVersion": 1,
                "minWriterVersion": 2,
                "readerFeatures": None,
                "writerFeatures": None,
            }
        },
        {
            "metaData": {
                "id": "t1",
                "name": None,
                "description": None,
                "format": {"provider": "indextables", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": [field]}),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 1696000000000,
            }
        },
    ]


def foreign_add(path: str, rows: int = 1) -> dict[str, Any]:
    nothing = dict.fromkeys(
        ["stats", "tags", "hotcacheStartOffset", "timeRangeStart", "splitTags", "deleteOpstamp"]
    )
    core = {"path": path, "partitionValues": {}, "size": 9, "modificationTime": 1}
    return {"add": {**nothing, **core, "dataChange": True, "numRecords": rows, "future": [1]}}


def test_a_json_table_with_absolute_paths_and_two_byte_prefix(tmp_path: Path) -> None:
    prefix = b"\x01\x01"
    put_lines(tmp_path, f"{0:020d}.json", first_lines(), prefix)
    put_lines(
        tmp_path,
        f"{1:020d}.json",
        [foreign_add(f"file:{tmp_path}/a.split"), foreign_add(f"{tmp_path}/b.split", 2)],
        prefix,
    )
    removal = {
        "path": f"file://{tmp_path}/a.split",
        "deletionTimestamp": 1,
        "dataChange": True,
        "extendedFileMetadata": None,
        "partitionValues": None,
        "size": None,
    }
    skip = {"path": "b.split", "skipTimestamp": 3, "reason": "r", "operation": "merge"}
    put_lines(tmp_path, f"{2:020d}.json", [{"remove": removal}, {"mergeskip": skip}], prefix)
    snapshot = TransactionLog.open(str(tmp_path)).snapshot()
    assert snapshot.paths.to_pylist() == ["b.split"]
    assert snapshot.num_rows == 2
    assert snapshot.skips["b.split"].skip_count == 1
    assert (snapshot.protocol.min_reader_version, snapshot.protocol.min_writer_version) == (1, 2)


@pytest.mark.parametrize("parts", [False, True])
def test_a_json_checkpoint_of_another_writer(tmp_path: Path, parts: bool) -> None:
    prefix = b"\x01\x01"
    put_lines(tmp_path, f"{0:020d}.json", first_lines(), prefix)
    adds = [foreign_add(f"p{i}.split", i) for i in range(5)]
    if parts:
        named = [f"{7:020d}.checkpoint.0a1b2c.{i:05d}.json" for i in (0, 1)]
        put_lines(tmp_path, named[0], [*first_lines(), *adds[:3]], prefix)
        put_lines(tmp_path, named[1], adds[3:], prefix)
        manifest = {
            "version": 7,
            "checkpointId": "0a1b2c",
            "parts": named,
            "createdTime": 1,
            "format": "json",
        }
        put_lines(tmp_path, f"{7:020d}.checkpoint.json", [manifest], prefix)
    else:
        put_lines(tmp_path, f"{7:020d}.checkpoint.json", [*first_lines(), *adds], prefix)
    put_lines(tmp_path, f"{8:020d}.json", [foreign_add("late.split", 10)], prefix)
    hint = {"version": 7, "size": 7, "sizeInBytes": 1, "numFiles": 5, "createdTime": 1}
    (tmp_path / "_transaction_log" / "_last_checkpoint").write_text(json.dumps(hint))
    log = TransactionLog.open(str(tmp_path), config=config())
    snapshot = log.snapshot()
    assert (snapshot.version, snapshot.num_files, snapshot.num_rows) == (8, 6, 20)
    assert read_table(tmp_path).num_rows == 20
    assert run(log, "WRITE", [split("ours")]).version == 9


def test_a_table_of_the_third_generation(tmp_path: Path) -> None:
    """Version files in plain gzip, a state after every commit, inline mappings, bare metadata."""
    store = open_store(str(tmp_path))
    heads = first_lines()
    put_lines(tmp_path, f"{0:020d}.json", heads)
    for version in (1, 2, 3):
        add = foreign_add(f"p{version}.split")
        add["add"] = {k: v for k, v in add["add"].items() if v is not None}
        add["add"]["docMappingJson"] = MAPPING
        put_lines(tmp_path, f"{version:020d}.json", [add])
    gone = {"remove": {"path": "p1.split", "deletionTimestamp": 1, "dataChange": True}}
    put_lines(tmp_path, f"{2:020d}.json", [gone])
    state = {
        "formatVersion": 1,
        "stateVersion": 2,
        "createdAt": 5,
        "numFiles": 0,
        "totalBytes": 0,
        "protocolVersion": 4,
        "manifests": [],
        "tombstones": [],
        "schemaRegistry": {"docMappingSchema.abc": MAPPING},
        "metadata": json.dumps(heads[1]["metaData"]),
    }
    store.put(f"_transaction_log/state-v{2:020d}/_manifest.json", json.dumps(state).encode())
    snapshot = TransactionLog.open(str(tmp_path)).snapshot()
    assert snapshot.version == 3
    assert snapshot.paths.to_pylist() == ["p3.split"]
    assert snapshot.doc_mapping("abc") is not None
    assert snapshot.doc_mapping(0) is not None
    assert snapshot.protocol.min_reader_version == 4
