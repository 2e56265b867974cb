"""Lists of rows and blocks of words: kernels against their twins, and damaged bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import words_twin as twin
from test_native_fuzz import mutate

from indextables.errors import CorruptFileError
from indextables.native._postings import (
    check_lists,
    decode_positions,
    decode_rows,
    rows_in_both,
    rows_in_order,
)
from indextables.native._words import pack_block, term_numbers, unpack_block

SIZES = (1, 2, 127, 128, 129, 256, 300, 1000)
FUZZ = 4000


def random_rows(rng: random.Random, size: int) -> list[int]:
    dense = rng.random() < 0.4
    top = size * rng.choice([1, 2]) if dense else rng.choice([size + 50, 10**6, 2**31 - 2])
    return sorted(rng.sample(range(top), size))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("record", [0, 1, 2])
def test_rows_are_decoded(rng: random.Random, size: int, record: int) -> None:
    rows = random_rows(rng, size)
    counts = [rng.choice([1, 1, 2, 300]) for _ in rows]
    raw = twin.rows_list(rows, counts, record)
    found = decode_rows(raw, size, record, rows[-1] + 1)
    assert found.dtype == np.uint32
    assert found.tolist() == rows
    with pytest.raises(CorruptFileError, match=r"ascend|more rows"):
        decode_rows(raw, size, record, rows[-1])
    with pytest.raises(CorruptFileError):
        decode_rows(raw + b"\x81", size, record, rows[-1] + 1)


@pytest.mark.parametrize("size", SIZES)
def test_positions_are_decoded(rng: random.Random, size: int) -> None:
    rows = random_rows(rng, size)
    positions = [sorted(rng.sample(range(500), rng.choice([1, 1, 2, 5]))) for _ in rows]
    raw = twin.rows_list(rows, [len(p) for p in positions], 2)
    places = twin.position_list(positions)
    found, starts, flat = decode_positions(raw, places, size, rows[-1] + 1)
    assert found.tolist() == rows
    assert [flat[a:b].tolist() for a, b in pairwise(starts)] == positions


def test_all_lists_of_a_field_are_checked(rng: random.Random) -> None:
    lists, places, rows = [], [], []
    for size in (1, 2, 200, 130, 5):
        found = sorted(rng.sample(range(1000), size))
        positions = [sorted(rng.sample(range(90), rng.choice([1, 3]))) for _ in found]
        rows.append(size)
        lists.append(twin.rows_list(found, [len(p) for p in positions], 2))
        places.append(twin.position_list(positions))
    ends = ends_of(lists, np.uint64), ends_of(places, np.uint64)
    often = np.array(rows, np.uint32)

    def check(postings: bytes, positions: bytes) -> None:
        check_lists(postings, ends[0], often, 2, 1000, positions, ends[1])

    check(b"".join(lists), b"".join(places))
    with pytest.raises(CorruptFileError):
        check_lists(b"".join(lists), ends[0], often, 1, 1000)
    assert harmless(lambda bad: check(bad, b"".join(places)), b"".join(lists), rng) > 0
    assert harmless(lambda bad: check(b"".join(lists), bad), b"".join(places), rng) > 0


def test_rows_in_both(rng: random.Random) -> None:
    for _ in range(200):
        top = rng.choice([5, 50, 5000])
        one, other = (
            sorted(rng.sample(range(top), rng.randrange(top // rng.choice([1, 4]) + 1)))
            for _ in range(2)
        )
        found = rows_in_both(np.array(one, np.uint32), np.array(other, np.uint32))
        assert found.tolist() == sorted(set(one) & set(other))


def test_rows_in_order(rng: random.Random) -> None:
    for _ in range(50):
        texts = [[rng.choice("abc") for _ in range(rng.randrange(12))] for _ in range(40)]
        asked = [rng.choice("abc") for _ in range(rng.choice([1, 2, 2, 3]))]
        expected = [
            i
            for i, words in enumerate(texts)
            if any(words[k : k + len(asked)] == asked for k in range(len(words)))
        ]
        assert rows_in_order([placed(texts, word) for word in asked]).tolist() == expected


def placed(texts: list[list[str]], word: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found = [[k for k, w in enumerate(words) if w == word] for words in texts]
    rows = [i for i, places in enumerate(found) if places]
    starts = np.cumsum([0, *(len(found[i]) for i in rows)]).astype(np.int64)
    flat = [place for i in rows for place in found[i]]
    return np.array(rows, np.uint32), starts, np.array(flat, np.uint32)


# -- blocks --------------------------------------------------------------------------------------


def random_block(rng: random.Random, *, positions: bool) -> tuple[list[bytes], list[int], list]:
    count = rng.choice([1, 2, 40, 256])
    terms: set[bytes] = set()
    while len(terms) < count:
        terms.add(bytes(rng.choice(b"ab\xff\x00z") for _ in range(rng.randrange(1, 12))))
    sizes = [1, 3, 30, 5000] if rng.random() < 0.5 else [2]
    lists = [rng.randbytes(rng.choice(sizes)) for _ in range(count)]
    places = [rng.randbytes(rng.choice([0, 1, *sizes])) for _ in range(count)]
    rows = [rng.choice([1, 2, 200, 10**6]) for _ in range(count)]
    return sorted(terms), rows, [lists, places if positions else None]


def packed(terms: list[bytes], rows: list[int], lists: list) -> bytes:
    postings, places = lists
    return pack_block(
        b"".join(terms),
        ends_of(terms, np.int64),
        0,
        len(terms),
        np.array(rows, np.uint32),
        ends_of(postings, np.uint64),
        b"".join(postings),
        None if places is None else ends_of(places, np.uint64),
        None if places is None else b"".join(places),
    )


def ends_of(parts: list[bytes], dtype: type) -> np.ndarray:
    return np.cumsum([0, *map(len, parts)]).astype(dtype)


@pytest.mark.parametrize("positions", [False, True])
def test_a_block_is_written_as_described_and_read_back(rng: random.Random, positions: bool) -> None:
    for _ in range(40):
        terms, rows, lists = random_block(rng, positions=positions)
        raw = packed(terms, rows, lists)
        assert raw == twin.block(terms, rows, *lists)
        texts, ends, found, list_ends, firsts, sums, *places = unpack_block(
            raw, len(terms), positions, 1 << 20
        )
        spelled = [texts[a:b] for a, b in pairwise(ends)]
        assert spelled == terms
        assert found.tolist() == rows
        assert list_ends.tolist() == ends_of(lists[0], np.uint64).tolist()
        assert firsts[0] == 0
        assert firsts[-1] == len(terms)
        assert len(sums) == len(firsts) - 1
        assert (places[0] is None) is not positions


def test_terms_that_are_too_long_are_refused(rng: random.Random) -> None:
    terms, rows, lists = [b"x" * 50, b"x" * 60], [1, 1], [[b"a", b"b"], None]
    raw = packed(terms, rows, lists)
    assert unpack_block(raw, 2, False, 110)[0] == b"".join(terms)
    with pytest.raises(CorruptFileError, match="too long"):
        unpack_block(raw, 2, False, 109)


# -- damage --------------------------------------------------------------------------------------


def harmless(call: Callable[[bytes], object], raw: bytes, rng: random.Random) -> int:
    """Feed damaged bytes; how many were refused. Anything but an answer or a refusal raises."""
    refused = 0
    for _ in range(FUZZ):
        try:
            call(mutate(raw, rng.random))
        except CorruptFileError:
            refused += 1
    return refused


@pytest.mark.parametrize("size", [3, 127, 300])
@pytest.mark.parametrize("record", [0, 1, 2])
def test_damaged_lists_are_refused_or_ascend(rng: random.Random, size: int, record: int) -> None:
    rows = sorted(rng.sample(range(5000), size))
    raw = twin.rows_list(rows, [rng.randrange(1, 9) for _ in rows], record)

    def decode(bad: bytes) -> None:
        found = decode_rows(bad, size, record, 5000).astype(np.int64)
        assert len(found) == size
        assert (np.diff(found) > 0).all()
        assert found[-1] < 5000

    assert harmless(decode, raw, rng) > 0


def test_damaged_positions_are_refused_or_fit(rng: random.Random) -> None:
    rows = list(range(300))
    positions = [[1, 5, 9] for _ in rows]
    raw, places = twin.rows_list(rows, [3] * 300, 2), twin.position_list(positions)

    def decode(bad: bytes) -> None:
        _, starts, flat = decode_positions(raw, bad, 300, 300)
        assert starts[-1] == len(flat) == 900

    assert harmless(decode, places, rng) > 0
    assert harmless(lambda bad: decode_positions(bad, places, 300, 300), raw, rng) > 0


@pytest.mark.parametrize("positions", [False, True])
def test_damaged_blocks_are_refused_or_fit(rng: random.Random, positions: bool) -> None:
    terms, rows, lists = random_block(rng, positions=positions)
    raw = packed(terms, rows, lists)

    def unpack(bad: bytes) -> None:
        texts, ends, *_ = unpack_block(bad, len(terms), positions, 1 << 16)
        assert ends[-1] == len(texts) <= 1 << 16

    assert harmless(unpack, raw, rng) > 0


def test_damaged_dictionaries_are_refused_or_ascend(rng: random.Random) -> None:
    raw = dictionary([1] * 600, [3] * 600, [2] * 600)
    found, lists, places = term_numbers(raw)
    assert found.tolist() == [1] * 600
    assert lists.tolist() == list(range(0, 1801, 3))
    assert places.tolist() == list(range(0, 1201, 2))

    def read(bad: bytes) -> None:
        _, ends, more = term_numbers(bad)
        assert (np.diff(ends.astype(np.int64)) >= 0).all()
        assert len(ends) == len(more)

    assert harmless(read, raw, rng) > 0


def dictionary(rows: list[int], lists: list[int], places: list[int]) -> bytes:
    """The end of tantivy's dictionary of a field: groups of 256 terms, packed."""
    metas, body = b"", b""
    list_start = place_start = 0
    for start in range(0, len(rows), 256):
        often = rows[start : start + 256]
        ends = np.cumsum(lists[start : start + 256]), np.cumsum(places[start : start + 256])
        widths = [max(often[1:], default=0).bit_length(), *(int(e[-1]).bit_length() for e in ends)]
        metas += struct.pack("<QIQI", len(body), often[0], list_start, lists[start])
        metas += struct.pack("<QIBBB", place_start, places[start], *widths)
        bits, at = 0, 0
        for i in range(len(often)):
            numbers = [(int(ends[0][i]), widths[1]), (int(ends[1][i]), widths[2])]
            if i + 1 < len(often):
                numbers.append((often[i + 1], widths[0]))
            for value, width in numbers:
                bits |= value << at
                at += width
        body += bits.to_bytes((at + 7) // 8, "little")
        list_start += int(ends[0][-1])
        place_start += int(ends[1][-1])
    table = struct.pack("<QQ", len(metas), len(rows)) + metas + body
    return b"FST." + table + struct.pack("<QII", len(table), 1, 1)
