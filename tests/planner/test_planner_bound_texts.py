"""Statistics texts become keys exactly as the plain-Python twin reads them."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from planner import twin
from planner.tables import Texts

from indextables.errors import CorruptFileError
from indextables.native import _bounds, _textbounds

MIN, MAX = -(1 << 63), (1 << 63) - 1


def parse(kind: str, text: str, *, scale: int = 0, upper: bool = False, own: bool = False):
    column = Texts.of([text])
    out, known = np.full(1, 77, np.int64), np.zeros(1, np.uint8)
    trusted = np.array([own], np.uint8)
    buffers = column.data, column.offsets, column.valid
    _bounds.parse_keys(kind, *buffers, out, known, trusted, scale=scale, upper=upper)
    assert known[0] or out[0] == 77
    return int(out[0]) if known[0] else None


def parse_float(text: str, *, upper: bool = False, single: bool = False):
    column = Texts.of([text])
    out, known = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    buffers = column.data, column.offsets, column.valid
    _bounds.parse_double_keys(*buffers, out, known, upper=upper, single=single)
    return int(out[0]) if known[0] else None


noise = st.text("0123456789-+.eETZ: infNaty\x00é", max_size=30)


@given(st.one_of(st.integers(-(1 << 70), 1 << 70).map(str), noise))
@example(str(MIN))
@example(str(MAX))
@example(str(MAX + 1))
@example("-0")
@example("+7")
@example("")
@example("-")
def test_integers(text: str) -> None:
    assert parse("integer", text) == twin.exact_value(text, pa.int64(), False)


@given(
    st.one_of(st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: f"{d:f}"), noise),
    st.integers(0, 20),
    st.booleans(),
)
@example("9.5", 2, False)
@example("10.255", 2, True)
@example("-10.255", 2, False)
@example(".", 2, False)
@example("9223372036854775807.9", 0, True)
@example("-9223372036854775808.9", 0, False)
def test_decimals(text: str, scale: int, upper: bool) -> None:
    if len(text) < 400:
        assert parse("decimal", text, scale=scale, upper=upper) == twin.decimal_value(
            text, scale, upper
        )


@given(st.one_of(st.dates().map(str), noise, st.from_regex(r"\A\d{4}-\d{2}-\d{2}\Z")))
@example("2024-02-29")
@example("2023-02-29")
@example("1900-02-29")
@example("2000-02-29")
@example("0001-01-01")
@example("9999-12-31")
def test_dates(text: str) -> None:
    if text.isascii() and not text.startswith("0000"):
        assert parse("date", text) == twin.date_days(text)


moments = st.from_regex(
    r"\A(19|20)\d\d-[01]\d-[0-3]\d[T ][0-2]\d:[0-5]\d:[0-6]\d(\.\d{1,10})?(Z|[+-][01]\d:\d\d)?\Z"
)


@given(st.one_of(moments, noise), st.sampled_from(["instant", "wall_clock"]), st.booleans())
@example("2024-01-01T00:00:00.123Z", "instant", True)
@example("2024-01-01T00:00:00Z", "instant", True)
@example("2024-01-01 00:00:00.123456789", "wall_clock", True)
@example("1850-01-01T00:00:00+00:53", "instant", False)
def test_moments(text: str, kind: str, upper: bool) -> None:
    if text.isascii():
        expected = twin.moment(text, kind == "instant", upper)
        if expected is None or abs(twin_zone(text)) <= 18 * 3600 + 59 * 60:
            assert parse(kind, text, upper=upper) == expected


def twin_zone(text: str) -> int:
    return twin.zone_seconds(text[-6:]) if text[-6:-5] in ("+", "-") else 0


def test_plain_microseconds_need_a_trusted_writer() -> None:
    assert parse("instant", "1700000000123456") is None
    assert parse("instant", "1700000000123456", own=True) == 1700000000123456
    assert parse("wall_clock", "-1", own=True) == -1


@pytest.mark.parametrize("text", ["true", "false", "True", "1", "", "tru"])
def test_booleans(text: str) -> None:
    assert parse("boolean", text) == {"true": 1, "false": 0}.get(text)


def key(value: float) -> int:
    return MAX if math.isnan(value) else _bounds.double_key(value)


@given(st.one_of(st.floats(allow_nan=False).map(repr), noise), st.booleans())
@example("0.1", True)
@example("0.1", False)
@example("-0.0", False)
@example("1e400", True)
@example("Infinity", True)
@example("-inf", False)
@example("NaN", True)
@example("1.0E10", False)
@example("9007199254740993", True)
@example("0." + "0" * 330 + "5", True)
def test_doubles(text: str, upper: bool) -> None:
    expected = twin.float_bound(text, False, upper)
    assert parse_float(text, upper=upper) == (None if expected is None else key(expected))


@given(st.floats(width=32, allow_nan=False), st.booleans())
@example(0.10000000149011612, True)
def test_floats_cover_the_float_behind_either_spelling(value: float, upper: bool) -> None:
    for text in (repr(value), str(np.float32(value))):
        found = parse_float(text, upper=upper, single=True)
        assert found == key(value)


@given(st.floats(), st.floats())
def test_keys_sort_as_sql_sorts_doubles(a: float, b: float) -> None:
    rank = lambda v: (1, 0.0) if math.isnan(v) else (0, v)  # noqa: E731
    assert (key(a) < key(b)) == (rank(a) < rank(b))
    assert (key(a) == key(b)) == (rank(a) == rank(b))


def test_a_text_between_two_floats_is_moved_outwards() -> None:
    low = struct.unpack("f", struct.pack("I", 0x3F800000))[0]
    high = struct.unpack("f", struct.pack("I", 0x3F800001))[0]
    middle = repr((low + high) / 2)
    assert parse_float(middle, single=True) == key(low)
    assert parse_float(middle, single=True, upper=True) == key(high)


@given(st.text(max_size=20), st.text(max_size=20), st.booleans(), st.booleans())
def test_prefix_keys_never_contradict_byte_order(
    a: str, b: str, open_a: bool, open_b: bool
) -> None:
    def end(text: str, is_open: bool) -> bytes:
        return text.encode() + (b"\xff" * 30 if is_open else b"")

    first = _textbounds.prefix_key(a.encode(), open_a)
    second = _textbounds.prefix_key(b.encode(), open_b)
    if first < second:
        assert end(a, open_a) < end(b, open_b)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ('{"truncated":["s","t"]}', 1),
        ('{"truncated":[]}', 0),
        ('{"truncated": [ "t" , "u" ] }', 0),
        ('{"nullCount":{"truncated":3},"truncated":["s"]}', 1),
        ('{"nullCount":{"truncated":3}}', -1),
        ('{"truncated":["s"', 1),
        ('{"truncated":["t"', -1),
        ('{"truncated":["\\u0073"]}', -1),
        ('{"truncated":[1]}', -1),
        ('{"truncated":null}', -1),
        ("", -1),
        ("not json", -1),
    ],
)
def test_the_truncated_list(document: str, expected: int) -> None:
    column = Texts.of([document])
    assert (
        _textbounds.scan_truncated(column.data, column.offsets, column.valid, b"s")[0] == expected
    )


def test_loose_bounds_are_seen() -> None:
    column = Texts.of(
        ['{"tightBounds": false}', '{"tightBounds":true}', None, '{"tightBounds":fal']
    )
    found = _textbounds.scan_loose(column.data, column.offsets, column.valid)
    assert found.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("offsets", [[0, 99], [5, 3], [-1, 2], [0, MAX]])
def test_offsets_outside_the_buffer_are_refused(offsets: list[int]) -> None:
    data, out = np.zeros(4, np.uint8), np.zeros(1, np.int64)
    flags, at = np.ones(1, np.uint8), np.array(offsets, np.int64)
    with pytest.raises(CorruptFileError):
        _bounds.parse_keys("integer", data, at, flags, out, flags.copy(), flags)
    with pytest.raises(CorruptFileError):
        _bounds.parse_double_keys(data, at, flags, out, flags.copy())
    with pytest.raises(CorruptFileError):
        _textbounds.scan_truncated(data, at, flags, b"s")


def test_columns_of_different_length_are_refused() -> None:
    column, short = Texts.of(["1", "2"]), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="length"):
        _bounds.parse_double_keys(
            column.data, column.offsets, column.valid, short, column.valid.copy()
        )


def test_random_bytes_never_crash(rng: random.Random) -> None:
    for _ in range(300):
        raw = np.frombuffer(rng.randbytes(rng.randint(0, 60)), np.uint8)
        n = rng.randint(1, 4)
        cuts = sorted(rng.randint(0, len(raw)) for _ in range(n + 1))
        at, ones = np.array(cuts, np.int64), np.ones(n, np.uint8)
        out, known = np.zeros(n, np.int64), np.zeros(n, np.uint8)
        for kind in _bounds.KINDS:
            _bounds.parse_keys(kind, raw, at, ones, out, known, ones, scale=3)
        _bounds.parse_double_keys(raw, at, ones, out, known)
        _textbounds.text_ends(
            raw, at, ones, known, known, out, out.copy(), known.copy(), known.copy(), upper=True
        )
        _textbounds.scan_truncated(raw, at, ones, b"s")
