"""Actions: exact JSON names, lenient reading, clear refusal of wrong types."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import CorruptFileError
from indextables.log.actions import (
    ACTION_TYPES,
    NULL_PARTITION,
    AddFile,
    AddXRef,
    CommitInfo,
    DefineIndex,
    DeletionVector,
    DropIndex,
    IndexBlocks,
    IndexFile,
    Metadata,
    Protocol,
    RemoveFile,
    RemoveXRef,
    SkipFile,
    Txn,
    UnknownActions,
    parse_action,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
COUNT = st.integers(0, (1 << 63) - 1)
NUMBER = st.integers(-(1 << 63), (1 << 63) - 1)
MAP = st.dictionaries(TEXT, TEXT, max_size=3)
PARTITIONS = st.dictionaries(
    TEXT, st.none() | TEXT.filter(lambda t: t != NULL_PARTITION), max_size=3
)
SET = st.frozensets(TEXT, max_size=3)


def opt(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


VECTOR = st.builds(DeletionVector, st.sampled_from("iup"), NAME, COUNT, COUNT, opt(COUNT))
INDEX_FILE = st.builds(IndexFile, NAME, NAME, COUNT, opt(COUNT), opt(COUNT), opt(COUNT), opt(COUNT))
ACTIONS = st.one_of(
    st.builds(Protocol, COUNT, COUNT, opt(SET), opt(SET)),
    st.builds(
        Metadata, NAME, opt(TEXT), opt(TEXT), NAME, MAP, NAME, st.tuples(NAME), MAP, opt(NUMBER)
    ),
    st.builds(
        AddFile,
        *(NAME, PARTITIONS, COUNT, NUMBER, st.booleans(), opt(TEXT), opt(MAP), opt(MAP), opt(MAP)),
        *(opt(COUNT), opt(COUNT), opt(COUNT), opt(COUNT), opt(COUNT), st.booleans()),
        *(opt(TEXT), opt(TEXT), opt(SET), opt(NUMBER), opt(NUMBER), opt(TEXT), opt(TEXT)),
        *(opt(NUMBER), opt(st.tuples(TEXT)), opt(NUMBER), opt(TEXT), opt(NUMBER), opt(NUMBER)),
        opt(VECTOR),
    ),
    st.builds(
        RemoveFile,
        *(NAME, opt(NUMBER), st.booleans(), opt(st.booleans()), opt(PARTITIONS), opt(COUNT)),
        opt(MAP),
        opt(VECTOR),
    ),
    st.builds(SkipFile, NAME, NUMBER, TEXT, TEXT, opt(PARTITIONS), opt(COUNT), opt(NUMBER), NUMBER),
    st.builds(
        AddXRef,
        *(NAME, NAME, st.tuples(NAME, NAME), COUNT, COUNT, NUMBER, COUNT, COUNT, NUMBER, NUMBER),
        *(NUMBER, opt(TEXT)),
    ),
    st.builds(RemoveXRef, NAME, TEXT, NUMBER, TEXT),
    st.builds(DefineIndex, NAME, NAME, NUMBER, TEXT),
    st.builds(IndexBlocks, NAME, NAME, TEXT, st.tuples(INDEX_FILE)),
    st.builds(DropIndex, NAME, NAME, NUMBER),
    st.builds(Txn, NAME, NUMBER, opt(NUMBER)),
    st.builds(CommitInfo, opt(TEXT), opt(NUMBER), opt(TEXT), MAP, MAP, opt(TEXT)),
)


@given(ACTIONS)
def test_every_action_survives_its_json(action: Any) -> None:
    assert parse_action(action.envelope()) == action


@given(ACTIONS)
def test_absent_and_null_optionals_read_the_same(action: Any) -> None:
    ((key, body),) = action.envelope().items()
    known = {f.json for f in ACTION_TYPES[key].FIELDS}
    spelled_out = {name: body.get(name) for name in known}
    assert parse_action({key: spelled_out}) == action


@given(ACTIONS, NAME)
def test_unknown_fields_are_carried_along(action: Any, name: str) -> None:
    ((key, body),) = action.envelope().items()
    more = {f"unknown {name}": [1, {}], **body}
    found = parse_action({key: more})
    assert dataclasses.replace(found, unknown=None) == action  # type: ignore[type-var]
    assert found is not None
    assert list(found.json_lines()) != list(action.json_lines())
    assert found.envelope() == {key: more}  # type: ignore[union-attr]


def test_json_names_are_those_of_the_protocol() -> None:
    spelled = {key: {f.json for f in kind.FIELDS} for key, kind in ACTION_TYPES.items()}
    assert spelled["protocol"] == {
        "minReaderVersion",
        "minWriterVersion",
        "readerFeatures",
        "writerFeatures",
    }
    assert spelled["metaData"] == {
        "id",
        "name",
        "description",
        "format",
        "schemaString",
        "partitionColumns",
        "configuration",
        "createdTime",
    }
    assert spelled["add"] == {
        "path",
        "partitionValues",
        "size",
        "modificationTime",
        "dataChange",
        "stats",
        "tags",
        "minValues",
        "maxValues",
        "numRecords",
        "footerStartOffset",
        "footerEndOffset",
        "hotcacheStartOffset",
        "hotcacheLength",
        "hasFooterOffsets",
        "timeRangeStart",
        "timeRangeEnd",
        "splitTags",
        "deleteOpstamp",
        "numMergeOps",
        "docMappingJson",
        "docMappingRef",
        "uncompressedSizeBytes",
        "companionSourceFiles",
        "companionDeltaVersion",
        "companionFastFieldMode",
        "addedAtVersion",
        "addedAtTimestamp",
        "deletionVector",
    }
    assert spelled["remove"] == {
        "path",
        "deletionTimestamp",
        "dataChange",
        "extendedFileMetadata",
        "partitionValues",
        "size",
        "tags",
        "deletionVector",
    }
    assert spelled["mergeskip"] == {
        "path",
        "skipTimestamp",
        "reason",
        "operation",
        "partitionValues",
        "size",
        "retryAfter",
        "skipCount",
    }
    assert spelled["addXRef"] == {
        "path",
        "xrefId",
        "sourceSplitPaths",
        "sourceSplitCount",
        "size",
        "totalTerms",
        "footerStartOffset",
        "footerEndOffset",
        "createdTime",
        "buildDurationMs",
        "maxSourceSplits",
        "docMappingJson",
    }
    assert spelled["removeXRef"] == {"path", "xrefId", "deletionTimestamp", "reason"}


def test_every_attribute_has_a_json_name() -> None:
    for kind in ACTION_TYPES.values():
        attributes = {f.name for f in dataclasses.fields(kind)}
        spelled = {f.attr for f in kind.FIELDS}
        if kind is Metadata:
            spelled = spelled - {"format"} | {"format_provider", "format_options"}
        assert spelled == attributes - {"unknown"}


def test_defaults_of_fields_that_older_writers_leave_out() -> None:
    skip = parse_action({"mergeskip": {"path": "a", "skipTimestamp": 1}})
    assert skip == SkipFile("a", 1, "", "", skip_count=1)
    xref = parse_action(
        {"addXRef": {"path": "x", "xrefId": "i", "sourceSplitPaths": ["a", "b"], "size": 1}}
    )
    assert isinstance(xref, AddXRef)
    assert xref.source_split_count == 2


def test_numbers_in_statistics_and_time_ranges_become_text() -> None:
    body = {"path": "a", "size": 1, "minValues": {"n": 1, "x": 0.5, "b": True, "z": None}}
    add = parse_action({"add": {**body, "timeRangeStart": 17}})
    assert isinstance(add, AddFile)
    assert add.min_values == {"n": "1", "x": "0.5", "b": "true"}
    assert add.time_range_start == "17"


def test_null_partition_values_are_none_here_and_the_hive_marker_in_files() -> None:
    for stored in (None, NULL_PARTITION):
        add = parse_action({"add": {"path": "a", "size": 1, "partitionValues": {"d": stored}}})
        assert isinstance(add, AddFile)
        assert add.partition_values == {"d": None}
        assert add.to_dict()["partitionValues"] == {"d": NULL_PARTITION}


def test_unknown_kinds_stay_text_and_null_is_none() -> None:
    assert parse_action({"futureAction": {"x": 1}}) == UnknownActions('{"futureAction":{"x":1}}')
    assert parse_action({"add": None}) is None
    assert parse_action({}) is None


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ({"add": {"path": "a", "size": "1"}}, "add.size"),
        ({"add": {"path": "a", "size": True}}, "add.size"),
        ({"add": {"path": "a", "size": -1}}, "add.size"),
        ({"add": {"path": "a", "size": 1 << 63}}, "add.size"),
        ({"add": {"path": "a", "size": 1.5}}, "add.size"),
        ({"add": {"path": "", "size": 1}}, "add.path"),
        ({"add": {"size": 1}}, "add.path is missing"),
        ({"add": {"path": "a", "size": 1, "partitionValues": []}}, "add.partitionValues"),
        ({"add": {"path": "a", "size": 1, "partitionValues": {"d": {}}}}, "partitionValues.d"),
        ({"add": {"path": "a", "size": 1, "dataChange": "yes"}}, "add.dataChange"),
        ({"add": {"path": "a", "size": 1, "splitTags": "x"}}, "add.splitTags"),
        ({"add": ["a"]}, "add"),
        ({"add": "a"}, "add"),
        ({"remove": {"path": 3}}, "remove.path"),
        ({"protocol": {"minReaderVersion": "1", "minWriterVersion": 1}}, "minReaderVersion"),
        ({"protocol": {"minReaderVersion": 1}}, "minWriterVersion is missing"),
        ({"metaData": {"id": "x"}}, "schemaString is missing"),
        ({"metaData": {"id": "x", "schemaString": "{}", "format": "p"}}, "metaData.format"),
        ({"txn": {"appId": "a", "version": "3"}}, "txn.version"),
        ({"indexBlocks": {"indexId": "i", "column": "c", "files": {}}}, "indexBlocks.files"),
        (["add"], "action"),
        ("add", "action"),
    ],
)
def test_wrong_types_are_refused_by_name(line: Any, named: str) -> None:
    with pytest.raises(CorruptFileError, match=named.replace(".", r"\.")):
        parse_action(line)
