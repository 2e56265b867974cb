"""Bundles: both forms, with and without trailer, whole and by their footer alone."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import native_twins as twin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import CorruptFileError
from indextables.native import Bundle, BundleWriter, crc32c, write_bundle
from indextables.native._crc32c import crc32c_by_tables

MAGIC = bytes.fromhex("aebe121801000000")


def golden_bundles() -> list[Any]:
    path = Path(__file__).parents[1] / "data" / "native" / "bundles.json"
    return [
        pytest.param(v, id=Path(v["file"]).stem) for v in json.loads(path.read_text())["bundles"]
    ]


@pytest.mark.parametrize("vector", golden_bundles())
def test_golden_bundles(vector: dict[str, Any], native_dir: Path) -> None:
    raw = (native_dir / vector["file"]).read_bytes()
    bundle = Bundle.parse(raw)
    table = vector["bundle_metadata"]["files"]
    assert bundle.files == {name: (at["start"], at["end"]) for name, at in table.items()}
    assert bundle.footer_range == (vector["footer_start"], vector["footer_end"])
    assert bundle.form == ("split" if "bundle_magic_le_hex" in vector else "xref")
    assert len(bundle.hotcache) == vector["hotcache_len"]
    for name, (start, end) in bundle.files.items():
        assert bundle.member(name) == raw[start:end]
    by_footer = Bundle.parse_footer(raw[vector["footer_start"] :], len(raw))
    assert by_footer.files == bundle.files
    assert by_footer.footer_range == bundle.footer_range
    assert by_footer.hotcache == bundle.hotcache


@pytest.mark.parametrize("vector", golden_bundles())
def test_golden_bundles_written_again(vector: dict[str, Any], native_dir: Path) -> None:
    """XRef bundles come out byte for byte; in a data split only the order of names is free."""
    raw = (native_dir / vector["file"]).read_bytes()
    bundle = Bundle.parse(raw)
    names = sorted(bundle.files, key=bundle.files.__getitem__)
    members = [(name, bundle.member(name)) for name in names]
    again = write_bundle(members, bundle.hotcache, bundle.form)  # type: ignore[arg-type]
    assert Bundle.parse(again).files == bundle.files
    assert len(again) == len(raw)
    if bundle.form == "xref":
        assert again == raw


NAMES = st.text(st.characters(codec="utf-8"), max_size=12)


@given(
    members=st.dictionaries(NAMES, st.binary(max_size=40), max_size=6),
    hotcache=st.binary(max_size=30),
    form=st.sampled_from(["split", "xref"]),
    trailer=st.booleans(),
)
def test_what_is_written_is_read(
    members: dict[str, bytes], hotcache: bytes, form: Literal["split", "xref"], trailer: bool
) -> None:
    raw = write_bundle(members, hotcache, form, trailer)
    bundle = Bundle.parse(raw)
    assert {name: bytes(bundle.member(name)) for name in bundle.files} == members
    assert (bundle.form, bundle.hotcache, bundle.size) == (form, hotcache, len(raw))
    table, start, hot = twin.parse_bundle(raw)
    assert table == {name: {"start": s, "end": e} for name, (s, e) in bundle.files.items()}
    assert (bundle.footer_range, hot) == ((start, len(raw)), hotcache)
    assert Bundle.parse_footer(raw[start:], len(raw)).files == bundle.files
    assert raw.startswith(MAGIC, start) == (form == "split")


def test_streaming_gives_the_same_bytes_and_the_footer() -> None:
    members = {"a": b"first", "b": b"", "c": b"third"}
    out = io.BytesIO()
    writer = BundleWriter(out, "split")
    assert writer.add("a", [b"fi", b"", b"rst"]) == (0, 5)
    assert writer.add("b", memoryview(b"")) == (5, 5)
    assert writer.add("c", iter([b"third"])) == (5, 10)
    footer = writer.finish(b"hot")
    assert out.getvalue() == write_bundle(members, b"hot")
    assert footer == (10, len(out.getvalue())) == Bundle.parse(out.getvalue()).footer_range


def test_json_of_other_writers() -> None:
    """White space, escapes, unknown keys and any order of keys are accepted."""
    metadata = (
        b'{"version" : {"a":[1,-2.5e3,null,{"x":"}]"}],"b":{}}, "files" : {\n "a\\u00e9\\n" : '
        b'{"end":2 , "size":[[]], "start":\t1} } , "more":true}\n'
    )
    raw = b"xyz" + metadata + struct.pack("<II", len(metadata), 0)
    bundle = Bundle.parse(raw)
    assert bundle.files == {"aé\n": (1, 2)}
    assert bundle.member("aé\n") == b"y"


def framed(metadata: bytes, data: bytes = b"0123456789", hotcache: bytes = b"") -> bytes:
    lengths = struct.pack("<I", len(metadata)), struct.pack("<I", len(hotcache))
    return data + metadata + lengths[0] + hotcache + lengths[1]


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (b"", "neither the bundle magic"),
        (b"[]", "neither the bundle magic"),
        (b"{", "ends inside a value"),
        (b"{}", "names no files"),
        (b'{"files":[]}', "not the JSON of a bundle"),
        (b'{"files":{}}x', "goes on after its end"),
        (b'{"files":{"a":{"start":0}}}', "leaves out"),
        (b'{"files":{"a":{"start":-1,"end":2}}}', "no number"),
        (b'{"files":{"a":{"start":0,"end":1.5}}}', "not the JSON of a bundle"),
        (b'{"files":{"a":{"start":0,"end":11}}}', "lies outside"),
        (b'{"files":{"a":{"start":3,"end":2}}}', "lies outside"),
        (b'{"files":{"a":{"start":0,"end":99999999999999999999}}}', "impossible offset"),
        (b'{"files":{"a":{"start":0,"end":1},"a":{"start":0,"end":1}}}', "one name"),
        (b'{"files":{"\xff":{"start":0,"end":1}}}', "malformed string"),
        (b'{"files":{"\\ud800":{"start":0,"end":1}}}', "malformed string"),
        (b'{"files":{"\\q":{"start":0,"end":1}}}', "malformed string"),
        (b'{"files":{"a', "ends inside a string"),
        (b'{"x":' + b"[" * 100_000, "nested too deeply"),
        (b'{"x":?}', "not JSON"),
        (b"\xae\xbe\x12\x18\x02\x00\x00\x00{}", "unknown bundle version"),
    ],
)
def test_malformed_metadata(metadata: bytes, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        Bundle.parse(framed(metadata))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "too short"),
        (bytes(7), "too short"),
        (struct.pack("<I", 9), "reaches before"),
        (struct.pack("<II", 1, 0), "reaches before"),
        (framed(b'{"files":{}}')[:-1], "reaches before|too short|neither"),
    ],
)
def test_malformed_frames(raw: bytes, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        Bundle.parse(raw)


@pytest.mark.parametrize(("start", "reason"), [(11, "contradicts"), (1 << 40, "outside")])
def test_a_trailer_that_lies(start: int, reason: str) -> None:
    raw = framed(b'{"files":{}}') + struct.pack("<QI4s", start, 1, b"QWFT")
    with pytest.raises(CorruptFileError, match=reason):
        Bundle.parse(raw)


def test_what_a_footer_alone_cannot_give() -> None:
    raw = write_bundle({"a": b"data"}, b"hot")
    bundle = Bundle.parse_footer(raw[4:], len(raw))
    with pytest.raises(CorruptFileError, match="were not read"):
        bundle.member("a")
    with pytest.raises(CorruptFileError, match="no file 'b'"):
        bundle.member("b")
    with pytest.raises(CorruptFileError, match="longer than the file"):
        Bundle.parse_footer(raw, len(raw) - 1)
    with pytest.raises(CorruptFileError, match="reaches before"):
        Bundle.parse_footer(raw[10:], len(raw))


def test_what_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="unknown bundle form"):
        write_bundle({}, form="zip")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two files"):
        write_bundle([("a", b""), ("a", b"")])


def test_crc32c_vectors() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"") == 0


@given(data=st.binary(max_size=200), cut=st.integers(0, 200))
def test_crc32c_agrees_with_the_twin(data: bytes, cut: int) -> None:
    expected = twin.crc32c(data)
    assert crc32c(data) == crc32c_by_tables(data) == expected
    assert crc32c(data[cut:], crc32c(data[:cut])) == expected
    assert crc32c_by_tables(data[cut:], crc32c_by_tables(data[:cut])) == expected


def test_vectors_are_complete(vectors: Callable[[str], Any]) -> None:
    assert len(vectors("bundles")["bundles"]) == 13
