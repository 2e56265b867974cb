"""Protocol versions and features: refusal of newer ones, upgrade at first use."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_helpers import append, config, names, new_table, reopen, run, split

from indextables.errors import ConfigError, ProtocolError
from indextables.log.actions import AddXRef, Protocol, SkipFile
from indextables.log.actions.codec import encode_lines
from indextables.log.actions.protocol import (
    CROSS_REFERENCES,
    FEATURES,
    protocol_of,
    raised,
    supports,
    upgraded,
)
from indextables.log.log import TransactionLog
from indextables.log.read.versions import version_path

XREF = AddXRef("_xrefsplits/abcd/xref-1.split", "xref-1", ("a.split",), 1, 10)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_new_tables_of_every_version(version: int) -> None:
    log = new_table(version=version)
    assert reopen(log).snapshot().protocol == Protocol(version, version)


@pytest.mark.parametrize("version", [0, 5, -1])
def test_versions_that_do_not_exist(version: int) -> None:
    with pytest.raises(ConfigError, match="1 to 4"):
        new_table(version=version)


def put_protocol(log: TransactionLog, **fields: object) -> TransactionLog:
    """Give the table a protocol in a version 0 written by hand."""
    snapshot = log.snapshot()
    body = {**snapshot.protocol.to_dict(), **fields}
    lines = [{"protocol": body}, snapshot.metadata.envelope()]
    log.store.put(version_path(0), encode_lines(lines))
    return reopen(log)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"minReaderVersion": 5}, "version 5"),
        ({"minReaderVersion": 99}, "version 99"),
        ({"readerFeatures": ["timeMachines"]}, "timeMachines"),
    ],
)
def test_newer_readers_are_asked_for(fields: dict[str, object], named: str) -> None:
    log = put_protocol(new_table(), **fields)
    with pytest.raises(ProtocolError, match=named) as caught:
        log.snapshot()
    assert "Upgrade indextables" in str(caught.value)


@pytest.mark.parametrize(
    "fields", [{"minWriterVersion": 5}, {"writerFeatures": ["rowTracking", "avroState"]}]
)
def test_newer_writers_are_asked_for_but_reading_works(fields: dict[str, object]) -> None:
    log = put_protocol(new_table(), **fields)
    assert names(log) == []
    with pytest.raises(ProtocolError, match="write"):
        append(log, "a")


def test_the_protocol_is_checked_before_other_actions_are_read() -> None:
    log = new_table()
    lines = [{"add": {"path": 7}}, {"protocol": {"minReaderVersion": 6, "minWriterVersion": 6}}]
    log.store.put(version_path(1), encode_lines(lines))
    with pytest.raises(ProtocolError, match="version 6"):
        reopen(log).snapshot()


def test_the_check_can_be_switched_off() -> None:
    log = put_protocol(new_table(), minReaderVersion=7, minWriterVersion=7)
    free = TransactionLog(log.path, log.store, config(protocol__checkEnabled=False))
    append(free, "a")
    assert names(free) == ["a"]


def test_a_state_of_a_newer_protocol_is_refused() -> None:
    log = new_table()
    append(log, "a")
    body = {
        "formatVersion": 1,
        "stateVersion": 1,
        "createdAt": 1,
        "numFiles": 0,
        "totalBytes": 0,
        "protocolVersion": 5,
        "manifests": [],
        "tombstones": [],
        "schemaRegistry": {},
        "metadata": None,
    }
    path = "_transaction_log/state-v00000000000000000001/_manifest.json"
    log.store.put(path, json.dumps(body).encode())
    with pytest.raises(ProtocolError, match="version 5"):
        reopen(log).snapshot()


def test_features_of_the_descriptions_are_known() -> None:
    known = ["footerOffsets", "tantivy4java", "skippedFiles", "extendedMetadata", "avroState"]
    writers = [*known, "conditionalWrites", "checkpoints", "checkpoint", "optimizeWrite"]
    log = put_protocol(new_table(), readerFeatures=known, writerFeatures=writers)
    append(log, "a")
    assert names(log) == ["a"]


# -- upgrades -----------------------------------------------------------------------------------


def test_a_skip_raises_version_1_to_2() -> None:
    log = new_table(version=1)
    bare = split("a")
    from dataclasses import replace

    run(log, "WRITE", [replace(bare, has_footer_offsets=False, num_merge_ops=None)])
    assert log.snapshot().protocol == Protocol(1, 1)
    run(log, "MERGE", [SkipFile("a.split", 1, "broken", "merge")])
    assert reopen(log).snapshot().protocol == Protocol(2, 2)


def test_footer_offsets_raise_version_1_to_2() -> None:
    log = new_table(version=1)
    append(log, "a")
    assert reopen(log).snapshot().protocol == Protocol(2, 2)


@pytest.mark.parametrize(("version", "after"), [(1, 3), (2, 3), (3, 3), (4, 4)])
def test_cross_references_need_version_3_and_their_name(version: int, after: int) -> None:
    log = new_table(version=version)
    append(log, "a")
    log.add_xref(XREF)
    protocol = reopen(log).snapshot().protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (after, after)
    assert protocol.reader_features is not None
    assert CROSS_REFERENCES.name in protocol.reader_features
    assert ("avroState" in protocol.reader_features) == (after == 4)
    assert protocol.writer_features == protocol.reader_features
    before = log.snapshot().version
    log.add_xref(AddXRef("_xrefsplits/abcd/xref-2.split", "xref-2", ("a.split",), 1, 10))
    change = (log.changes(before, before + 1) or [])[0]
    assert not any(isinstance(action, Protocol) for action in change.actions)


def test_without_automatic_upgrades_the_commit_is_refused() -> None:
    log = new_table(version=1, protocol__autoUpgrade=False)
    with pytest.raises(ProtocolError, match="upgrade_protocol") as caught:
        append(log, "a")
    assert "footerOffsets" in str(caught.value)
    log.upgrade_protocol(2)
    append(log, "a")
    assert names(reopen(log)) == ["a"]


def test_upgrade_protocol() -> None:
    log = new_table(version=2)
    result = log.upgrade_protocol(3)
    assert result is not None
    assert reopen(log).snapshot().protocol == Protocol(3, 3)
    assert log.upgrade_protocol(2) is None
    assert log.upgrade_protocol() is not None
    assert reopen(log).snapshot().protocol == Protocol(4, 4)
    assert log.upgrade_protocol() is None
    with pytest.raises(ConfigError):
        log.upgrade_protocol(5)


def test_asking_for_an_avro_checkpoint_upgrades_an_older_table() -> None:
    log = new_table(version=3, state__format="avro")
    append(log, "a")
    done = log.checkpoint()
    assert done.format == "avro-state"
    assert reopen(log).snapshot().protocol == Protocol(4, 4)
    assert names(log) == ["a"]


PROTOCOLS = st.builds(
    Protocol,
    st.integers(1, 4),
    st.integers(1, 4),
    st.none() | st.frozensets(st.sampled_from([f.name for f in FEATURES])),
    st.none() | st.frozensets(st.sampled_from([f.name for f in FEATURES])),
)


@given(PROTOCOLS, st.sets(st.sampled_from(FEATURES)))
def test_an_upgrade_supports_what_was_asked_and_lowers_nothing(protocol, features) -> None:
    after = upgraded(protocol, features)
    assert all(supports(after, feature) for feature in features)
    assert after.min_reader_version >= protocol.min_reader_version
    assert after.min_writer_version >= protocol.min_writer_version
    assert (after.reader_features or set()) >= (protocol.reader_features or set())
    assert (after.writer_features or set()) >= (protocol.writer_features or set())
    assert upgraded(after, features) == after


def test_raising_without_names_keeps_the_lists_absent() -> None:
    assert raised(protocol_of(1), 4, 4) == Protocol(4, 4)
