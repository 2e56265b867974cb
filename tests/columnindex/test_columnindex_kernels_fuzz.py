"""The kernels of column indexes against their twins, on honest and on spoilt bytes."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import columnindex_twins as twins
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.errors import CorruptFileError
from indextables.native._colindex import IndexBlock
from indextables.native._colkeys import TextTable, merge_texts, union_rows
from indextables.splits.lookup.colindex import compact
from indextables.splits.lookup.colindex.postings import TextKeys, build_postings


def blocks(column: Any, block_bytes: int) -> list[tuple[bytes, bool, int, int]]:
    """Every block of the index of a column, unpacked, with what is needed to open it."""
    postings = build_postings(column)
    is_text = not isinstance(postings.keys, np.ndarray)
    rest = compact._rest(postings)
    found = []
    for a, b in pairwise(compact._cuts(postings, block_bytes).tolist()):
        first = 0 if is_text else int(postings.key_at(a))
        found.append((compact._block(postings, a, b, rest), is_text, first, len(column)))
    return found


def random_column(rng: random.Random) -> Any:
    count = rng.randrange(1, 300)
    distinct = rng.choice([1, 2, 5, 100, 10**12])
    codes = [rng.randrange(distinct) if rng.random() < 0.9 else 0 for _ in range(count)]
    shape = rng.randrange(3)
    if shape == 0:
        return pa.array([f"{c:x}" * (c % 3) for c in codes])
    if shape == 1:
        return pa.array([f"n\u00b0{c:012x}-{c % 4:x}" for c in codes])
    return pa.array([None if c % 7 == 6 else c - 3 for c in codes], pa.int64())


def check(told: tuple[bytes, bool, int, int]) -> None:
    """The kernel says what the twin says, or both refuse."""
    raw, is_text, first, split_rows = told
    try:
        expected = twins.read_block(*told)
    except twins.RefusedError:
        with pytest.raises(CorruptFileError):
            IndexBlock(raw, is_text, first, split_rows)
        return
    block = IndexBlock(raw, is_text, first, split_rows)
    assert [block.key(i) for i in range(block.size)] == expected.keys
    if is_text:
        laid, ends = block.texts()
        assert [laid[a:b] for a, b in pairwise(ends.tolist())] == expected.keys
    assert np.diff(block.starts()).tolist() == expected.counts
    assert block.is_rest == (expected.rows is None)
    asked = [*expected.keys[:20], b"\xffx" if is_text else 5, b"" if is_text else -(1 << 63)]
    if expected.keys == sorted(expected.keys):
        assert [(block.lower(k), block.upper(k)) for k in asked] == list(
            map(expected.bounds, asked)
        )
    for i, rows in enumerate(expected.rows or []):
        if twins.rows_are_good(rows, expected.counts[i], split_rows):
            assert block.rows(i, i + 1).tolist() == rows
        else:
            with pytest.raises(CorruptFileError):
                block.rows(i, i + 1)


def test_blocks_are_read_as_their_twins_read_them(rng: random.Random) -> None:
    for _ in range(60):
        for told in blocks(random_column(rng), rng.choice([40, 200, 1 << 15])):
            check(told)


def test_spoilt_blocks(rng: random.Random) -> None:
    for _ in range(40):
        for raw, *others in blocks(random_column(rng), rng.choice([40, 400])):
            bad = bytearray(raw)
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(min(len(bad), 40)) if rng.random() < 0.7 else len(bad) - 1
                bad[at] = rng.choice([0, 1, 255, bad[at] ^ 1 << rng.randrange(8)])
            check((bytes(bad), *others))  # type: ignore[arg-type]
            check((raw[: rng.randrange(len(raw))], *others))  # type: ignore[arg-type]
            check((raw + b"\0", *others))  # type: ignore[arg-type]


@settings(max_examples=80)
@given(
    pattern=st.binary(min_size=1, max_size=9),
    digits=st.lists(st.integers(0, 16**9 - 1), min_size=2, max_size=40, unique=True),
    asked=st.lists(st.binary(max_size=10), max_size=10),
)
def test_packed_digits(pattern: bytes, digits: list[int], asked: list[bytes]) -> None:
    """Keys of a pattern with digits where it has zeros, and texts between and beside them."""
    spelled = {
        bytes(c or ord(d) for c, d in zip(pattern, f"{n:09x}", strict=False)) for n in digits
    }
    keys = sorted(spelled)
    texts = TextKeys(b"".join(keys), np.arange(len(keys) + 1) * len(pattern))
    width, data = compact.hex_packed(texts) or (0, b"")
    assert twins.read_digits(data, len(keys), width) == keys
    head = compact.BLOCK_HEAD.pack(len(keys), len(keys), len(data), width, 0, 1, compact.HEX)
    raw = head + data + bytes(range(len(keys)))
    block = IndexBlock(raw, True, 0, len(keys))
    twin = twins.Block(keys, [], None)
    for key in [*keys, *asked, *(k[:-1] for k in keys), *(k + b"0" for k in keys)]:
        assert (block.lower(key), block.upper(key)) == twin.bounds(key)
        found = block.exact(key)
        assert (None if found is None else found.tolist()) == (
            [keys.index(key)] if key in spelled else None
        )


@pytest.mark.parametrize(
    "words",
    [
        ["a", "bc"],
        ["aG", "aH"],
        ["aA", "aB"],
        ["0\0", "1\0"],
        ["", ""],
        ["0" * 256, "1" * 256],
    ],
    ids=["lengths", "letters", "upper case", "zeros", "empty", "long"],
)
def test_what_is_not_packed(words: list[str]) -> None:
    laid = "".join(words).encode()
    ends = np.cumsum([0, *map(len, words)], dtype=np.int64)
    assert compact.hex_packed(TextKeys(laid, ends)) is None


def test_positions_outside_a_block() -> None:
    (raw, *others) = blocks(pa.array([1, 2, 2, *range(3, 30)]), 1000)[0]
    block = IndexBlock(raw, *others)
    for wrong in (
        lambda: block.key(29),
        lambda: block.rows_before(30),
        lambda: block.rows(0, 30),
    ):
        with pytest.raises(IndexError):
            wrong()
    with pytest.raises(TypeError):
        block.texts()
    assert block.exact(2).tolist() == [1, 2]
    assert block.exact(99) is None
    assert block.rows(0, 3).tolist() == [0, 1, 2, 3]
    assert block.size == 29


def table_of(words: list[bytes]) -> TextTable:
    ends = np.cumsum([0, *map(len, words)], dtype=np.int64)
    return TextTable(b"".join(words), ends)


WORDS = st.lists(st.binary(max_size=3), max_size=30).map(lambda w: sorted(set(w)))


@settings(max_examples=80)
@given(words=WORDS, asked=st.lists(st.binary(max_size=3), max_size=20))
def test_tables_of_text(words: list[bytes], asked: list[bytes]) -> None:
    table = table_of(words)
    assert len(table) == len(words)
    twin = twins.Block(words, [], None)
    assert [(table.lower(k), table.upper(k)) for k in asked] == list(map(twin.bounds, asked))
    there = sorted({words.index(k) for k in asked if k in words})
    assert table.positions(asked).tolist() == there


@settings(max_examples=80)
@given(st.lists(WORDS, min_size=1, max_size=6))
def test_merged_tables(lists: list[list[bytes]]) -> None:
    order, starts = merge_texts([table_of(words) for words in lists])
    assert (order.tolist(), starts.tolist()) == twins.merged(lists)


def test_tables_outside_their_buffer() -> None:
    for ends in ([], [-1, 2], [0, 4], [2, 1]):
        with pytest.raises(ValueError, match=r"ends|outside"):
            TextTable(b"abc", np.array(ends, np.int64))
    with pytest.raises(TypeError):
        table_of([b"a"]).lower("a")  # type: ignore[arg-type]


@pytest.mark.parametrize("split_rows", [64, 1000, 100_000])
def test_rows_of_many_values(split_rows: int, rng: random.Random) -> None:
    groups: list[list[int]] = [[] for _ in range(30)]
    for row in rng.sample(range(split_rows), min(split_rows, 300)):
        rng.choice(groups).append(row)
    offsets = np.cumsum([0, *map(len, groups)], dtype=np.int64)
    rows = np.array([r for g in groups for r in sorted(g)], np.uint32)
    for _ in range(20):
        at = np.array(sorted(rng.sample(range(30), rng.randrange(31))), np.int64)
        expected = sorted(r for i in at for r in groups[i])
        for plainly in (False, True):
            found = union_rows(rows, offsets, at, split_rows, plainly=plainly)
            assert found.tolist() == expected
    for wrong in ([30], [-1]):
        with pytest.raises(IndexError):
            union_rows(rows, offsets, np.array(wrong, np.int64), split_rows)
    with pytest.raises(IndexError):
        union_rows(rows, offsets, np.arange(30), int(rows.max()))
