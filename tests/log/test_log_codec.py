"""Bytes of log files: three forms, and a refusal that helps for everything else."""

from __future__ import annotations

import contextlib
import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import CorruptFileError, IndexTablesError, UnsafePathError
from indextables.log.actions import (
    AddFile,
    AddXRef,
    IndexBlocks,
    IndexFile,
    RemoveFile,
    UnknownActions,
)
from indextables.log.actions.codec import (
    decode_actions,
    decode_lines,
    decode_object,
    decompress,
    encode_actions,
    encode_lines,
)
from indextables.log.actions.tablepath import table_path

ROOT = "memory://t"
ADDS = [AddFile(f"ü{i}.split", {"d": None if i % 2 else "x"}, i, 1) for i in range(20)]


def decode(data: bytes) -> list[object]:
    return list(decode_actions(data, root=ROOT, path="_transaction_log/7.json", version=7))


@pytest.mark.parametrize("form", ["plain", "gzip", "prefixed", "two members"])
def test_all_forms_read_alike(form: str) -> None:
    plain = encode_actions(ADDS, compressed=False)
    half = plain.index(b"\n", len(plain) // 2) + 1
    data = {
        "plain": plain,
        "gzip": encode_actions(ADDS),
        "prefixed": b"\x01\x01" + gzip.compress(plain),
        "two members": gzip.compress(plain[:half]) + gzip.compress(plain[half:]),
    }[form]
    assert decode(data) == ADDS


def test_compression_is_on_by_default_and_bytes_do_not_depend_on_time() -> None:
    first = encode_actions(ADDS)
    assert first[:2] == b"\x1f\x8b"
    assert first == encode_actions(ADDS)


@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9)), min_size=1)
)
def test_lines_survive(lines: list[dict[str, object]]) -> None:
    for compressed in (True, False):
        data = encode_lines(lines, compressed=compressed)
        assert list(decode_lines(data, path="p")) == lines


def test_blank_lines_and_carriage_returns_are_fine() -> None:
    data = b'\n{"add":{"path":"a","size":1}}\r\n\n{"other":{}}\n'
    assert decode(data) == [AddFile("a", {}, 1, 0), UnknownActions('{"other":{}}')]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (gzip.compress(b""), "empty"),
        (gzip.compress(b"{}")[:-3], "cut"),
        (gzip.compress(b"{}" * 99)[:14], "cut"),
        (b"\x1f\x8b\x08 nonsense", "gzip"),
        (b'{"add":{"path":"a","size":1}', "not JSON"),
        (b'{"add":{"path":"a","size":1}}}', "not JSON"),
        (b'{"add":{"path":"a","path":"b","size":1}}', "'path' stands twice"),
        (b'{"add":{"path":"a","size":NaN}}', "NaN"),
        (b'{"add":{"path":"a","size":1e999}}', "too large"),
        (b'{"add":{"path":"a\xff","size":1}}', "UTF-8"),
        (b"[" * 100_000, "nested"),
        (b"[1]", "expected an object"),
        (b'{"add":{"path":"a","size":"1"}}', "add.size"),
    ],
)
def test_bad_bytes_name_file_version_and_remedy(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptFileError) as caught:
        decode(data)
    text = str(caught.value)
    assert reason in text
    assert "_transaction_log/7.json" in text
    assert caught.value.version == 7
    assert "Restore this file" in text


def test_the_line_is_named() -> None:
    with pytest.raises(CorruptFileError, match="line 3"):
        decode(b'{"a":{}}\n{"b":{}}\n{"add":{}}\n')


def test_one_object_files() -> None:
    assert decode_object(b'{"version":3}', path="h") == {"version": 3}
    with pytest.raises(CorruptFileError, match="not a JSON object"):
        decode_object(b"[3]", path="h")


def test_bit_flips_of_compressed_files_never_read_as_something_else(rng: random.Random) -> None:
    data = encode_actions(ADDS)
    for _ in range(400):
        at = rng.randrange(len(data))
        broken = bytearray(data)
        broken[at] ^= 1 << rng.randrange(8)
        try:
            found = decode(bytes(broken))
        except IndexTablesError:
            continue
        assert found == ADDS, f"flip at {at} changed the actions unnoticed"


def test_truncations_of_compressed_files_are_noticed() -> None:
    data = encode_actions(ADDS)
    for end in range(1, len(data)):
        with pytest.raises(CorruptFileError):
            decode(data[:end])


@given(st.binary(max_size=200))
def test_arbitrary_bytes_give_our_errors_only(data: bytes) -> None:
    for prefix in (b"", b"\x1f\x8b", b"\x01\x01\x1f\x8b"):
        with contextlib.suppress(IndexTablesError):
            decode(prefix + data)


def test_decompress_leaves_text_alone() -> None:
    assert decompress(b"{}") == b"{}"
    assert decompress(b"\x01\x01{}") == b"\x01\x01{}"


# -- paths --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "root", "relative"),
    [
        ("part-1.split", "s3://b/t", "part-1.split"),
        ("d=1/part-1.split", "s3://b/t", "d=1/part-1.split"),
        ("s3://b/t/d=1/p.split", "s3://b/t", "d=1/p.split"),
        ("s3a://b/t/p.split", "s3://b/t/", "p.split"),
        ("/data/t/p.split", "file:///data/t", "p.split"),
        ("file:/data/t/p.split", "file:///data/t", "p.split"),
        ("file:///data/t/p.split", "file:///data/t", "p.split"),
        ("memory://t/p.split", "memory://t", "p.split"),
    ],
)
def test_paths_inside_the_table_become_relative(path: str, root: str, relative: str) -> None:
    assert table_path(path, root) == relative


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("../other/p.split", "s3://b/t"),
        ("a/../../p.split", "s3://b/t"),
        ("./p.split", "s3://b/t"),
        ("a//p.split", "s3://b/t"),
        ("/etc/passwd", "file:///data/t"),
        ("/data/t2/p.split", "file:///data/t"),
        ("/data/t/../x", "file:///data/t"),
        ("/data/t", "file:///data/t"),
        ("s3://b/t2/p.split", "s3://b/t"),
        ("s3://c/t/p.split", "s3://b/t"),
        ("gs://b/t/p.split", "s3://b/t"),
        ("/b/t/p.split", "s3://b/t"),
        ("file:///b/t/p.split", "memory://b/t"),
        ("a\0b", "s3://b/t"),
    ],
)
def test_paths_that_leave_the_table_are_refused(path: str, root: str) -> None:
    with pytest.raises(UnsafePathError):
        table_path(path, root)


@pytest.mark.parametrize(
    "action",
    [
        AddFile("/etc/passwd", {}, 1, 0),
        RemoveFile("../x"),
        AddXRef("x", "i", ("../y",), 1, 1),
        AddXRef("/x", "i", (), 0, 1),
        IndexBlocks("i", "c", files=(IndexFile("ok", "../../x", 1),)),
        IndexBlocks("i", "c", files=(IndexFile("/s", "ok", 1),)),
    ],
)
def test_actions_that_leave_the_table_are_refused(action: object) -> None:
    data = encode_actions([action])  # type: ignore[list-item]
    with pytest.raises(UnsafePathError) as caught:
        decode(data)
    assert caught.value.version == 7


def test_absolute_paths_of_actions_become_relative() -> None:
    actions = [
        AddFile("memory://t/a", {}, 1, 0),
        AddXRef("memory://t/x", "i", ("memory://t/a",), 1, 1),
    ]
    add, xref = decode(encode_actions(actions))
    assert add == AddFile("a", {}, 1, 0)
    assert xref == AddXRef("x", "i", ("a",), 1, 1)
