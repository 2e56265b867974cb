"""Packed texts come back exactly; counts out of JSON texts equal a JSON parser's."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indextables.errors import CorruptFileError
from indextables.log.read.columns import StringColumn, count_in_stats
from indextables.log.read.packed import PackedInts, PackedText, _counts_by_skeleton, render
from indextables.native._statcols import scan_counts
from indextables.native._textpack import pack_texts
from indextables.native._textunpack import sort_hashes, unpack_texts

NULL = 0xFFFFFFFF
_UUID = rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

awkward = st.sampled_from(
    ["", "0", "00", "000", "007", "9" * 18, "9" * 19, "1" + "0" * 30, "a1b2", "-0.05", "1e-05"]
)
uuids = st.uuids().map(str)
nearly_uuids = st.tuples(uuids, st.integers(0, 35), st.sampled_from("gG-/:`@ é0a")).map(
    lambda t: t[0][: t[1]] + t[2] + t[0][t[1] + 1 :]
)
pieces = st.one_of(st.text(max_size=6), awkward, uuids, nearly_uuids, st.integers(0).map(str))
texts = st.lists(pieces, max_size=4).map("".join)
columns = st.lists(st.none() | texts, max_size=40)


def places(values: list[str | None]) -> tuple[bytes, Any, Any]:
    encoded = [None if v is None else v.encode() for v in values]
    lengths = np.array([NULL if e is None else len(e) for e in encoded], np.uint32)
    starts = np.cumsum([0, *[len(e or b"") for e in encoded]][:-1]).astype(np.uint32)
    return b"".join(e or b"" for e in encoded), starts[: len(values)], lengths


def packed_column(values: list[str | None]) -> PackedText | None:
    return PackedText.of(len(values), pack_texts(*places(values)))


def split_in_python(text: bytes) -> tuple[bytes, list[int]]:
    """The skeleton and slots of a text, by the rule and not by the kernel."""
    skeleton, slots, at = b"", [], 0
    while at < len(text):
        found = re.compile(_UUID).match(text, at)
        number = re.compile(rb"0(?![0-9])|[1-9][0-9]{0,17}").match(text, at)
        if found:
            digits = found[0].replace(b"-", b"")
            skeleton, slots = (
                skeleton + b"\xfe",
                [*slots, int(digits[:16], 16), int(digits[16:], 16)],
            )
            at = found.end()
        elif number:
            skeleton, slots = skeleton + b"\xff", [*slots, int(number[0])]
            at = number.end()
        else:
            skeleton, at = skeleton + text[at : at + 1], at + 1
    return skeleton, slots


@given(columns)
@example(["1" * 400, "2" * 400])
def test_texts_come_back(values: list[str | None]) -> None:
    column = packed_column(values)
    if column is None:
        assert all(v is None for v in values)
        return
    assert column.to_column().to_list() == values
    assert [column.get(row) for row in range(len(values))] == values
    rows = np.array([row for row, v in enumerate(values) if v is not None][::-1])
    assert column.take(rows).to_column().to_list() == [values[row] for row in rows]


@given(st.lists(texts, min_size=1, max_size=20))
def test_skeletons_equal_the_rule(values: list[str]) -> None:
    packed = pack_texts(*places(list(values)))
    assert packed is not None
    _, skeletons, codes, slots, _, _ = packed
    if skeletons is None:
        return
    columns = [PackedInts(len(values), low, more) for low, more in slots]
    for row, value in enumerate(values):
        skeleton = skeletons[0 if codes is None else codes[row]]
        ours = [column.get(row) or 0 for column in columns]
        assert render(skeleton, ours) == value.encode()
        expected, expected_slots = split_in_python(value.encode())
        if skeleton == expected:
            assert ours[: len(expected_slots)] == expected_slots


def test_typical_columns_are_small() -> None:
    n = 5000
    values = [f"d={k % 7}/part-{k:08x}-0000-4000-8000-{k * 977:012x}.split" for k in range(n)]
    column = packed_column(list(values))
    assert column is not None
    assert column.skeletons == (b"d=\xff/part-\xfe.split",)
    assert column.nbytes <= 17 * n + 1000


def test_texts_without_a_common_form_stay_as_they_are(rng: Any) -> None:
    values = ["".join(rng.choices("abcdefghij", k=12)) for _ in range(3000)]
    column = packed_column(list(values))
    assert column is not None
    assert column.skeletons is None
    assert column.to_column().to_list() == values


@pytest.mark.parametrize(
    "bad", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"a\x80"]
)
@pytest.mark.parametrize("before", [b"", b"plain ascii text ", "é".encode()])
def test_texts_that_are_not_utf8_are_refused(bad: bytes, before: bytes) -> None:
    data = before + bad
    where = np.array([0], np.uint32), np.array([len(data)], np.uint32)
    with pytest.raises(UnicodeDecodeError):
        data.decode()
    with pytest.raises(CorruptFileError, match="UTF-8"):
        pack_texts(data, *where)
    raw = pack_texts(data, *where, is_raw=True)
    assert raw is not None
    assert raw[4].tobytes() == data


@given(st.binary(max_size=12))
def test_utf8_is_judged_as_python_judges_it(data: bytes) -> None:
    where = np.array([0], np.uint32), np.array([len(data)], np.uint32)
    try:
        data.decode()
    except UnicodeDecodeError:
        with pytest.raises(CorruptFileError):
            pack_texts(data, *where)
    else:
        packed = PackedText.of(1, pack_texts(data, *where))
        assert packed is not None
        assert packed.get_bytes(0) == data


@pytest.mark.parametrize("is_raw", [False, True])
def test_places_outside_the_buffer_are_refused(is_raw: bool) -> None:
    for start, length in ((0, 4), (3, 1), (NULL - 1, 2), (2, NULL - 1)):
        with pytest.raises(ValueError, match="outside"):
            pack_texts(b"abc", np.array([start], np.uint32), np.array([length], np.uint32), is_raw)


def test_damaged_codes_and_slots_are_refused() -> None:
    none = np.zeros((0, 1), np.uint64)
    one = np.ones(1, np.uint8)
    with pytest.raises(CorruptFileError):
        unpack_texts([b"a"], np.array([1], np.uint16), one, none)
    with pytest.raises(CorruptFileError):
        unpack_texts([b"\xff"], np.array([0], np.uint16), one, none)


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=200))
def test_hashes_sort_with_their_rows(values: list[int]) -> None:
    hashes = np.array(values, np.uint64)
    ordered, rows = sort_hashes(hashes)
    assert ordered.tolist() == sorted(values)
    assert rows.tolist() == np.argsort(hashes, kind="stable").tolist()


def test_texts_become_plain_in_the_middle(rng: Any) -> None:
    """What was packed before the skeletons became too many is spelled out again."""
    values: list[str | None] = [f"part-{k}-{uuid.UUID(int=k)}" for k in range(500)]
    values += [None, *("".join(rng.choices("abcdefghij", k=12)) for _ in range(3000)), None]
    column = packed_column(values)
    assert column is not None
    assert column.skeletons is None
    assert column.to_column().to_list() == values


@given(st.lists(st.integers(-(2**62), 2**62) | st.none(), min_size=1, max_size=30))
def test_integers_come_back(values: list[int | None]) -> None:
    missing = -(2**63)
    array = np.array([missing if v is None else v for v in values], np.int64)
    column = PackedInts.pack(array, missing)
    if column is None:
        assert all(v is None for v in values)
        return
    assert column.to_int64().tolist() == [-1 if v is None else v for v in values]
    assert [column.get(row) for row in range(len(values))] == values


# -- counts -------------------------------------------------------------------------------------

scalars = st.one_of(
    st.integers(-5, 2**70), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5),
    st.none(), st.booleans(),
)  # fmt: skip
keys = st.sampled_from(["nullCount", "nanCount", "id", "name", "é", 'q"', "\\", ""])
documents = st.recursive(
    scalars, lambda inner: st.dictionaries(keys, inner, max_size=4) | st.lists(inner, max_size=3)
)


def counts(values: list[str | None], kind: str, column: str) -> list[int]:
    texts_ = StringColumn.from_texts(values)
    return scan_counts(texts_.data, texts_.offsets, texts_.valid, kind, column).tolist()


@given(st.lists(st.none() | documents.map(json.dumps), max_size=6), keys, keys)
def test_counts_equal_a_json_parser(values: list[str | None], kind: str, column: str) -> None:
    """The scanner may say "unknown" where the parser knows (escapes, 19 digits), never lie."""
    for found, value in zip(counts(values, kind, column), values, strict=True):
        known = count_in_stats(value, kind, column)
        simple = value is not None and "\\" not in value and known < 10**18
        assert found == (known if simple else found)
        assert found in (known, -1)


@given(st.lists(st.none() | documents.map(json.dumps), max_size=6), keys, keys)
def test_counts_by_skeleton_equal_a_json_parser(
    values: list[str | None], kind: str, column: str
) -> None:
    packed = packed_column(values)
    if packed is None or packed.skeletons is None:
        return
    found = _counts_by_skeleton(packed, kind, column).tolist()
    for ours, value in zip(found, values, strict=True):
        assert ours in (count_in_stats(value, kind, column), -1)


def test_counts_of_what_we_write() -> None:
    values: list[str | None] = [
        json.dumps({"numRecords": k, "nullCount": {"id": k, "b": 0}, "nanCount": {"x": 3}})
        for k in range(2000)
    ]
    values[7] = None
    packed = packed_column(values)
    assert packed is not None
    assert packed.skeletons is not None
    expected = [-1 if v is None else k for k, v in enumerate(values)]
    assert _counts_by_skeleton(packed, "nullCount", "id").tolist() == expected
    assert counts(values, "nullCount", "id") == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "3", '{"nullCount":{"id":1}', '{"nullCount":{"id":1}} x', '{"nullCount":3}',
        '{"nullCount":{"id":01}}', '{"nullCount":{"id":1.0}}', '{"nullCount":{"id":-1}}',
        '{"nullCount":{"id":"1"}}', '{"nullCount":{"id":1e2}}', '{"nullCount":{"id":true}}',
        '{"nullCount":{"\\u0069d":1}}', '{"nullCount":{"id":1},"nullCount":{}}', "{" * 200,
    ],
)  # fmt: skip
def test_what_is_no_count_is_unknown(text: str) -> None:
    assert counts([text], "nullCount", "id") == [-1]
