"""The byte cursor: every kind of value, every way to run out of bytes."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from native_twins import varint

from indextables.errors import CorruptFileError
from indextables.native._cursor import read_all

FIXED = {
    "u8": "<B",
    "u16": "<H",
    "u32": "<I",
    "u64": "<Q",
    "i32": "<i",
    "i64": "<q",
    "f64": "<d",
    "u16_be": ">H",
    "u32_be": ">I",
    "u64_be": ">Q",
    "i64_be": ">q",
    "f64_be": ">d",
}


@pytest.mark.parametrize("kind", FIXED)
@given(data=st.binary(max_size=64))
def test_fixed_width_values_are_what_struct_reads(kind: str, data: bytes) -> None:
    form = FIXED[kind]
    size = struct.calcsize(form)
    whole = len(data) // size * size
    expected = [struct.unpack_from(form, data, at)[0] for at in range(0, whole, size)]
    assert repr(read_all(data[:whole], kind)) == repr(expected)


@pytest.mark.parametrize("kind", [kind for kind in FIXED if kind != "u8"])
def test_a_value_that_is_cut_off_names_its_offset(kind: str) -> None:
    size = struct.calcsize(FIXED[kind])
    with pytest.raises(CorruptFileError) as caught:
        read_all(bytes(2 * size - 1), kind, 1000)
    assert caught.value.offset == 1000 + size
    assert caught.value.reason == "unexpected end of data"


@pytest.mark.parametrize("kind", FIXED)
def test_values_equal_to_the_error_sentinels_are_no_errors(kind: str) -> None:
    form = FIXED[kind]
    sentinel: Any = -1.0 if "f64" in kind else -1 if "i" in kind[:1] else None
    raw = b"\xff" * struct.calcsize(form) if sentinel is None else struct.pack(form, sentinel)
    assert read_all(raw, kind) == [struct.unpack(form, raw)[0]]


@given(values=st.lists(st.integers(0, 2**64 - 1)))
def test_varints(values: list[int]) -> None:
    assert read_all(b"".join(map(varint, values)), "varint") == values


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_zigzag(values: list[int]) -> None:
    raw = b"".join(varint(v * 2 if v >= 0 else -v * 2 - 1) for v in values)
    assert read_all(raw, "zigzag") == values


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x80", "unexpected end of data"),
        (b"\xff" * 9, "unexpected end of data"),
        (b"\xff" * 9 + b"\x02", "variable-length integer does not fit in 64 bits"),
        (b"\x80" * 10 + b"\x00", "variable-length integer does not fit in 64 bits"),
    ],
)
def test_malformed_varints(raw: bytes, reason: str) -> None:
    with pytest.raises(CorruptFileError) as caught:
        read_all(b"\x05" + raw, "varint", 7)
    assert (caught.value.offset, caught.value.reason) == (8, reason)
