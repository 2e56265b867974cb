"""Checkpoints, the hint, and what happens when either is damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from log_helpers import append, config, names, new_table, remove, reopen, run, split
from store_doubles import RecordingStore, WrappedStore

from indextables.errors import CorruptFileError, TransientStorageError
from indextables.log.actions import Protocol
from indextables.log.actions.codec import decode_lines, encode_lines
from indextables.log.log import TransactionLog
from indextables.log.read.hint import LastCheckpoint, read_hint, write_hint
from indextables.log.read.versions import (
    HINT_PATH,
    LOG_DIR,
    checkpoint_path,
    list_log,
    state_dir,
    version_path,
)

FORMATS = ["avro", "json", "parts"]


def table(form: str, **values: Any) -> TransactionLog:
    """A table that checkpoints in the given format."""
    if form == "parts":
        return new_table(version=3, state__format="json", checkpoint__actionsPerPart=3, **values)
    return new_table(state__format=form, **values)


def checkpoint_file(log: TransactionLog, version: int) -> str:
    state = f"{state_dir(version)}/_manifest.avro"
    return state if log.store.exists(state) else checkpoint_path(version)


def filled(form: str, **values: Any) -> TransactionLog:
    """Ten versions, a checkpoint at 4 and at 8."""
    log = table(form, checkpoint__interval=4, **values)
    for i in range(10):
        assert append(log, f"s{i}").checkpoint_error is None
    return log


EVERYTHING = [f"s{i}" for i in range(10)]


@pytest.mark.parametrize("form", FORMATS)
def test_checkpoints_come_every_interval_and_replace_the_versions(form: str) -> None:
    log = filled(form)
    listing = list_log(log.store)
    assert sorted({*listing.states, *listing.checkpoints}) == [4, 8]
    hint = read_hint(log.store)
    assert hint is not None
    assert hint.version == 8
    assert hint.format == {"avro": "avro-state", "json": "json", "parts": "json-multipart"}[form]
    assert hint.num_files == 8
    log.store.delete([version_path(v) for v in range(1, 9)])
    again = reopen(log)
    assert names(again) == EVERYTHING
    assert again.snapshot().version == 10
    assert again.snapshot().num_rows == 50


@pytest.mark.parametrize("form", FORMATS)
def test_opening_reads_nothing_below_the_checkpoint(form: str) -> None:
    log = filled(form)
    store = RecordingStore(log.store)
    assert names(reopen(log, store=store)) == EVERYTHING
    read = {p for c in store.calls if c.op == "read_many" for p in c.detail}
    read |= {c.path for c in store.calls if c.op == "read"}
    assert {version_path(9), version_path(10)} <= read
    assert not {version_path(v) for v in range(1, 9)} & read


def test_parts_are_listed_by_a_manifest() -> None:
    log = filled("parts")
    (manifest,) = decode_lines(log.store.read(checkpoint_path(8)), path="p")
    assert manifest["version"] == 8
    assert manifest["format"] == "json"
    hint = read_hint(log.store)
    assert hint is not None
    assert (hint.parts, hint.checkpoint_id) == (len(manifest["parts"]), manifest["checkpointId"])
    first = list(decode_lines(log.store.read(f"{LOG_DIR}/{manifest['parts'][0]}"), path="p"))
    assert [next(iter(line)) for line in first[:2]] == ["protocol", "metaData"]
    assert all(
        n.startswith(f"{8:020d}.checkpoint.{manifest['checkpointId']}.") for n in manifest["parts"]
    )


def test_below_version_3_a_checkpoint_is_one_file_however_large() -> None:
    log = new_table(version=2, state__format="json", checkpoint__actionsPerPart=3)
    append(log, *EVERYTHING)
    assert log.checkpoint().parts == 0
    assert names(reopen(log)) == EVERYTHING


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_the_protocol_chooses_the_format(version: int) -> None:
    log = new_table(version=version)
    append(log, "a")
    assert log.checkpoint().format == ("avro-state" if version == 4 else "json")
    assert names(reopen(log)) == ["a"]


@pytest.mark.parametrize("form", FORMATS)
def test_a_checkpoint_of_the_same_version_twice_is_one(form: str) -> None:
    log = table(form)
    append(log, *EVERYTHING)
    assert log.checkpoint().created
    second = log.checkpoint()
    assert not second.created
    assert second.version == 1
    parts = list_log(log.store).parts
    assert len({part.checkpoint_id for part in parts}) <= 1
    assert names(reopen(log)) == EVERYTHING


@pytest.mark.parametrize(("setting", "value"), [("enabled", False), ("interval", 0)])
def test_checkpoints_can_be_switched_off(setting: str, value: Any) -> None:
    log = new_table(**{"checkpoint__interval": 1, f"checkpoint__{setting}": value})
    append(log, "a")
    assert read_hint(log.store) is None


def test_a_checkpoint_that_fails_does_not_fail_the_commit() -> None:
    log = new_table(checkpoint__interval=1)

    class NoStates(WrappedStore):
        def put(self, path: str, data: bytes) -> None:
            raise TransientStorageError("no", path=path)

    result = append(TransactionLog(log.path, NoStates(log.store), log.config), "a")
    assert result.version == 1
    assert isinstance(result.checkpoint_error, TransientStorageError)
    assert names(reopen(log)) == ["a"]


def test_the_older_form_of_a_json_checkpoint_is_read() -> None:
    """One object with all adds in a list."""
    log = filled("json")
    lines = list(decode_lines(log.store.read(checkpoint_path(8)), path="p"))
    whole: dict[str, Any] = {"add": []}
    for line in lines:
        if "add" in line:
            whole["add"].append(line["add"])
        elif "protocol" in line or "metaData" in line:
            whole.update(line)
    log.store.put(checkpoint_path(8), b"\x01\x01" + encode_lines([whole]))
    log.store.delete([version_path(v) for v in range(1, 8)])
    assert names(reopen(log)) == EVERYTHING


# -- the hint -----------------------------------------------------------------------------------


def test_the_hint_is_written_only_forwards() -> None:
    log = new_table()
    assert write_hint(log.store, LastCheckpoint(5))
    assert not write_hint(log.store, LastCheckpoint(5))
    assert not write_hint(log.store, LastCheckpoint(4))
    assert write_hint(
        log.store, LastCheckpoint(6, 1, 2, 3, 4, None, None, "avro-state", "state-v6")
    )
    assert json.loads(log.store.read(HINT_PATH)) == {
        "version": 6,
        "size": 1,
        "sizeInBytes": 2,
        "numFiles": 3,
        "createdTime": 4,
        "parts": None,
        "checkpointId": None,
        "format": "avro-state",
        "stateDir": "state-v6",
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\xff",
        b"{",
        b"[]",
        b"{}",
        b'{"version":"8"}',
        b'{"version":-1}',
        b'{"version":99,"format":"avro-state"}',
        b'{"version":3}',
        b'{"version":5}',
    ],
)
@pytest.mark.parametrize("form", FORMATS)
def test_a_broken_hint_means_listing(form: str, data: bytes) -> None:
    log = filled(form)
    log.store.put(HINT_PATH, data)
    again = reopen(log)
    assert names(again) == EVERYTHING
    assert again.snapshot().version == 10
    append(again, "more")
    assert again.snapshot().version == 11


@pytest.mark.parametrize("form", FORMATS)
def test_a_missing_hint_means_listing(form: str) -> None:
    log = filled(form)
    log.store.delete([HINT_PATH])
    assert names(reopen(log)) == EVERYTHING


def test_a_hint_that_lags_does_not_hide_newer_states() -> None:
    """States without version files, as some writers leave them."""
    log = new_table(checkpoint__interval=1)
    for i in range(4):
        append(log, f"s{i}")
    log.store.delete([version_path(v) for v in range(1, 5)])
    log.store.put(HINT_PATH, b'{"version":2,"format":"avro-state"}')
    again = reopen(log)
    assert again.snapshot().version == 4
    assert names(again) == ["s0", "s1", "s2", "s3"]


# -- damage -------------------------------------------------------------------------------------


def damage(data: bytes, how: str) -> bytes:
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1 :]
    return {
        "empty": b"",
        "cut": data[:middle],
        "flipped": flipped,
        "other": b'{"hello":1}',
        "array": b"[1,2]",
    }[how]


DAMAGES = ["empty", "cut", "flipped", "other", "array"]


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("form", FORMATS)
def test_a_broken_checkpoint_falls_back(form: str, how: str) -> None:
    log = filled(form)
    path = checkpoint_file(log, 8)
    log.store.put(path, damage(log.store.read(path), how))
    again = reopen(log)
    assert names(again) == EVERYTHING
    assert again.snapshot().version == 10
    log.store.put(checkpoint_file(log, 4), b"nonsense")
    again = reopen(log)
    assert names(again) == EVERYTHING


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("form", FORMATS)
def test_a_broken_checkpoint_that_nothing_replaces_is_an_error(form: str, how: str) -> None:
    log = filled(form)
    log.store.delete([version_path(v) for v in range(1, 8)])
    path = checkpoint_file(log, 8)
    log.store.put(path, damage(log.store.read(path), how))
    with pytest.raises(CorruptFileError) as caught:
        reopen(log).snapshot()
    assert caught.value.version == 8
    assert caught.value.hint


def test_a_missing_part_or_manifest_falls_back() -> None:
    log = filled("parts")
    part = next(p for p in list_log(log.store).parts if p.version == 8)
    log.store.delete([part.info.path])
    assert names(reopen(log)) == EVERYTHING
    log = filled("avro")
    shared = [i.path for i in log.store.list(f"{LOG_DIR}/manifests")]
    log.store.delete(shared)
    assert names(reopen(log)) == EVERYTHING


def test_a_manifest_may_list_only_its_own_parts() -> None:
    log = filled("parts")
    (manifest,) = decode_lines(log.store.read(checkpoint_path(8)), path="p")
    for names_listed in (["../x.json"], [f"{4:020d}.checkpoint.a.00001.json"], [], "x"):
        bad = {**manifest, "parts": names_listed}
        log.store.put(checkpoint_path(8), encode_lines([bad]))
        assert names(reopen(log)) == EVERYTHING


def test_an_empty_state_folder_is_nothing() -> None:
    log = filled("avro")
    log.store.put(f"{state_dir(9)}/leftover.tmp", b"x")
    assert names(reopen(log)) == EVERYTHING


@pytest.mark.parametrize("how", DAMAGES)
def test_a_broken_version_file_is_an_error_that_names_it(how: str) -> None:
    log = filled("avro")
    path = version_path(10)
    log.store.put(path, damage(log.store.read(path), how))
    if how == "other":
        assert names(reopen(log)) == EVERYTHING[:-1]
        return
    with pytest.raises(CorruptFileError) as caught:
        reopen(log).snapshot()
    assert (caught.value.path, caught.value.version) == (path, 10)
    assert "Restore" in str(caught.value)
    assert names(reopen(log), version=9) == EVERYTHING[:-1]


@pytest.mark.parametrize("version", [2, 6])
def test_a_broken_version_below_the_checkpoint_does_not_matter(version: int) -> None:
    log = filled("avro")
    log.store.put(version_path(version), b"nonsense")
    assert names(reopen(log)) == EVERYTHING


@pytest.mark.parametrize(
    "lines",
    [
        [{"protocol": {"minReaderVersion": 4, "minWriterVersion": 4}}],
        [{"metaData": {"id": "x", "schemaString": "{}"}}],
        [],
        [
            {"protocol": {"minReaderVersion": 4, "minWriterVersion": 4}},
            {"metaData": {"id": "x", "schemaString": "{}"}},
            {"add": {"path": "a", "size": 1}},
        ],
        [{"protocol": {"minReaderVersion": 4, "minWriterVersion": 4}}] * 2,
    ],
    ids=["no metadata", "no protocol", "neither", "an add", "twice"],
)
def test_version_0_must_hold_exactly_protocol_and_metadata(lines: list[Any]) -> None:
    log = new_table()
    log.store.put(version_path(0), encode_lines([*lines, {"unknown": {}}]))
    with pytest.raises(CorruptFileError, match="exactly protocol and metaData") as caught:
        reopen(log).snapshot()
    assert caught.value.version == 0


def test_without_version_0_a_checkpoint_is_enough() -> None:
    for form in FORMATS:
        log = filled(form)
        log.store.delete([version_path(0)])
        assert names(reopen(log)) == EVERYTHING
    log = new_table(checkpoint__enabled=False)
    append(log, "a")
    log.store.delete([version_path(0)])
    with pytest.raises(CorruptFileError, match="version 0 is missing"):
        reopen(log).snapshot()


def test_state_without_metadata_finds_it_below() -> None:
    """As older writers leave it: metadata only in version 0 or in an earlier state."""
    log = new_table()
    append(log, "a")
    described = log.snapshot().metadata
    body: dict[str, Any] = {
        "formatVersion": 1,
        "stateVersion": 3,
        "createdAt": 1,
        "numFiles": 0,
        "totalBytes": 0,
        "protocolVersion": 4,
        "manifests": [],
        "tombstones": [],
        "schemaRegistry": {},
        "metadata": None,
    }
    log.store.put(f"{state_dir(3)}/_manifest.json", json.dumps(body).encode())
    assert reopen(log).snapshot().metadata == described
    assert log.snapshot().protocol == Protocol(4, 4)
    other = {**described.to_dict(), "description": "from a state"}
    for wrapped in (json.dumps({"metaData": other}), json.dumps(other)):
        middle = {**body, "stateVersion": 2, "metadata": wrapped}
        log.store.put(f"{state_dir(2)}/_manifest.json", json.dumps(middle).encode())
        assert reopen(log).snapshot().metadata.description == "from a state"
    log.store.delete([f"{state_dir(2)}/_manifest.json", version_path(0), version_path(1)])
    with pytest.raises(CorruptFileError, match="metadata"):
        reopen(log).snapshot()


def test_a_gap_ends_the_table_unless_a_checkpoint_lies_behind_it() -> None:
    log = new_table(checkpoint__enabled=False)
    for i in range(6):
        append(log, f"s{i}")
    log.store.delete([version_path(3)])
    assert reopen(log).snapshot().version == 2
    log = filled("avro")
    log.store.delete([version_path(6)])
    assert reopen(log).snapshot().version == 10


def test_other_names_in_the_log_are_ignored() -> None:
    log = filled("avro")
    for name in (
        "1.json",
        "00000000000000000011.json.bak",
        "0000000000000000001a.json",
        "99999999999999999999.json",
        ".00000000000000000011.json.crc",
        "x00000000000000000011.json",
        "state-v11/_manifest.avro",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠١١.json",
    ):
        log.store.put(f"{LOG_DIR}/{name}", b"nonsense")
    assert names(reopen(log)) == EVERYTHING
    assert append(log, "next").version == 11


def test_files_cleaned_away_while_reading_mean_reading_again() -> None:
    log = filled("avro", transaction__cache__enabled=False)
    rival = TransactionLog(log.path, log.store, config(checkpoint__interval=1))

    class Slow(WrappedStore):
        def read_many(self, paths: Any, parallelism: int = 8) -> Any:
            if version_path(9) in paths and self.inner.exists(version_path(9)):
                append(rival, "late")
                self.inner.delete([version_path(9), version_path(10)])
            return super().read_many(paths, parallelism)

    assert names(reopen(log, store=Slow(log.store))) == ["late", *EVERYTHING]


def test_overwrites_removes_and_merges_through_checkpoints() -> None:
    for form in FORMATS:
        log = table(form, checkpoint__interval=2)
        append(log, "a", "b")
        remove(log, "a")
        run(log, "MERGE", [split("b").removal(1), split("m")])
        append(log, "a")
        run(log, "OVERWRITE", lambda s: [*(f.removal(1) for f in s.files()), split("o")])
        append(log, "z")
        assert names(reopen(log)) == ["o", "z"]
        assert [names(log, v) for v in range(1, 7)] == [
            ["a", "b"],
            ["b"],
            ["m"],
            ["a", "m"],
            ["o"],
            ["o", "z"],
        ]
