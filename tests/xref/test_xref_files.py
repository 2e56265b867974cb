"""Cross-reference files: paths, bytes, true footers, golden bundles, an independent reader."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import CorruptFileError
from indextables.mapping import DocMapping
from indextables.native import BinaryFuse8, BinaryFuse16, Bundle, hash_term, read_fxrf
from indextables.storage.foldername import hash_directory, java_hash
from indextables.types import schema_to_json
from indextables.xref.file import SourceFilter, read_xref, write_xref
from indextables.xref.layout import xref_path

SCHEMA = pa.schema([("host", pa.string()), ("n", pa.int64())])
MAPPING = DocMapping.for_schema(SCHEMA).to_json()


def source(path: str, hosts: list[str], kind: type = BinaryFuse8) -> SourceFilter:
    keys = np.array([hash_term("host", h, "xxh64") for h in hosts], np.uint64)
    built = kind.build(keys)
    text = schema_to_json(SCHEMA)
    return SourceFilter(path, len(hosts), 10, 20, built, len(keys), MAPPING, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("xref-abc123.split", java_hash("xref-abc123.split")),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_java_hash(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_smallest_hash_has_a_folder() -> None:
    assert hash_directory("polygenelubricants") == _letters(2**31)


def _letters(number: int) -> str:
    out = ""
    for _ in range(4):
        number, digit = divmod(number, 26)
        out = chr(97 + digit) + out
    return out


@given(st.text(max_size=30))
def test_folders_are_four_letters(text: str) -> None:
    folder = hash_directory(text)
    assert len(folder) == 4
    assert folder.isascii()
    assert folder.islower()


def test_path_is_derived_from_the_file_name() -> None:
    path = xref_path("0123456789abcdef")
    folder, name = path.split("/")[1:]
    assert path.startswith("_xrefsplits/")
    assert folder == hash_directory(name)


@pytest.mark.parametrize(("kind", "cls"), [("fuse8", BinaryFuse8), ("fuse16", BinaryFuse16)])
def test_written_files_follow_the_specification(kind: str, cls: type) -> None:
    sources = [source(f"d=1/s{i}.split", [f"h{i}", f"g{i}"], cls) for i in range(5)]
    written = write_xref("id", "table", sources, filter_type=kind)
    found = independent_read(written.data)
    assert found["header"]["footer_start_offset"] == written.footer_start
    assert found["header"]["footer_end_offset"] == written.footer_end == len(written.data)
    assert found["footer_start"] == written.footer_start
    assert found["header"]["num_splits"] == 5
    assert found["header"]["total_terms"] == 10
    assert found["filter_type"] == (1 if kind == "fuse8" else 2)
    assert [s["uri"] for s in found["splits"]] == [s.path for s in sources]
    assert found["header"]["filter_type"] == ("BinaryFuse8" if kind == "fuse8" else "BinaryFuse16")


def independent_read(data: bytes) -> dict[str, object]:
    """Written from the layout alone: trailer, offsets, then the three members."""
    (hotcache,) = struct.unpack("<I", data[-4:])
    (length,) = struct.unpack("<I", data[-8 - hotcache : -4 - hotcache])
    start = len(data) - 8 - hotcache - length
    raw = data[start : start + length]
    offsets = json.loads(raw[raw.index(b"{") :])["files"]
    members = {n: data[o["start"] : o["end"]] for n, o in offsets.items()}
    filters = members["fuse_filters.bin"]
    assert filters[:4] == b"FXRF"
    _, count, kind = struct.unpack("<III", filters[4:16])
    header = json.loads(members["xref_header.json"])
    splits = json.loads(members["split_metadata.json"])["splits"]
    assert count == len(splits)
    return {"header": header, "splits": splits, "filter_type": kind, "footer_start": start}


def test_round_trip_and_probe() -> None:
    sources = [source(f"s{i}.split", [f"h{i}"]) for i in range(20)]
    loaded = read_xref(write_xref("id", "t", sources).data, "x")
    assert loaded.paths == tuple(s.path for s in sources)
    for i in range(20):
        found = loaded.filters.probe(hash_term("host", f"h{i}", loaded.hash_kind))
        assert found[i]
        assert found.sum() <= 3


def test_golden_bundles_are_read(data_dir: Path) -> None:
    files = sorted((data_dir / "native").rglob("xref_*.split"))
    assert files
    for file in files:
        bundle = Bundle.parse(file.read_bytes())
        assert set(bundle.files) == {"fuse_filters.bin", "split_metadata.json", "xref_header.json"}
        header = json.loads(bytes(bundle.member("xref_header.json")))
        assert len(read_fxrf(bundle.member("fuse_filters.bin"))) == header["num_splits"]


@given(st.data())
def test_a_flipped_bit_is_refused(data: st.DataObject) -> None:
    whole = write_xref("id", "t", [source("s.split", ["a", "b"])]).data
    place = data.draw(st.integers(0, len(whole) - 1))
    broken = bytearray(whole)
    broken[place] ^= data.draw(st.integers(1, 255))
    try:
        loaded = read_xref(bytes(broken), "x")
    except CorruptFileError:
        return
    intact = read_xref(whole, "x")
    assert loaded.paths == intact.paths
    assert loaded.mappings == intact.mappings
    for name in ("a", "b", "c", "d"):
        key = hash_term("host", name, "xxh64")
        assert loaded.filters.probe(key).tolist() == intact.filters.probe(key).tolist()
