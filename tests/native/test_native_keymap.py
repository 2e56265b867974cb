"""Buckets of a key map: equal to the twin's bytes, every answer right, damage refused."""

from __future__ import annotations

import random
import struct
from typing import Any

import keymap_twin as twin
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import CorruptFileError
from indextables.native import crc32c
from indextables.native._keymap import decode_bucket, encode_bucket, probe_bucket


@st.composite
def buckets(draw: Any) -> tuple[list[twin.Key], int, int, int]:
    """(keys, bits, splits, most) with every class of key in reach."""
    bits = draw(st.integers(0, 48))
    splits = draw(st.sampled_from([1, 2, 3, 8, 9, 300, 70_000]))
    most = draw(st.integers(1, 40))
    remainders = draw(st.sets(st.integers(0, (1 << bits) - 1), max_size=40))
    keys: list[twin.Key] = []
    for remainder in sorted(remainders):
        code = draw(st.sampled_from([0, 1, 1, 1, 7, 255]))
        some = st.integers(0, splits - 1)
        ids = sorted(draw(st.sets(some, max_size=min(splits, 50))))
        block = draw(st.integers(-1, 3000)) if code == 1 and len(ids) == 1 else -1
        keys.append((remainder, code, ids, block))
    return keys, bits, splits, most


def arrays(keys: list[twin.Key]) -> tuple[Any, ...]:
    lengths = [0, *(len(k[2]) for k in keys)]
    return (
        np.array([k[0] for k in keys], np.uint64),
        np.array([k[1] for k in keys], np.uint8),
        np.cumsum(lengths, dtype=np.int64),
        np.array([i for k in keys for i in k[2]], np.uint32),
        np.array([k[3] for k in keys], np.int32),
    )


def encoded(keys: list[twin.Key], bits: int, splits: int, most: int) -> bytes:
    return bytes(encode_bucket(*arrays(keys), bits, splits, most))


@given(buckets())
def test_bytes_are_the_twins(bucket: tuple[list[twin.Key], int, int, int]) -> None:
    assert encoded(*bucket) == twin.encode(*bucket)


@given(buckets())
def test_decoding_gives_back_what_was_encoded(
    bucket: tuple[list[twin.Key], int, int, int],
) -> None:
    keys, bits, splits, most = bucket
    remainders, codes, offsets, ids, blocks = decode_bucket(encoded(*bucket), bits, splits)
    found = [
        (int(r), int(c), ids[offsets[i] : offsets[i + 1]].tolist(), int(b))
        for i, (r, c, b) in enumerate(zip(remainders, codes, blocks, strict=True))
    ]
    assert found == [(r, c, [] if len(i) > most else i, b) for r, c, i, b in keys]


@given(buckets(), st.data())
def test_probes_answer_as_a_search_through_the_keys(
    bucket: tuple[list[twin.Key], int, int, int], data: st.DataObject
) -> None:
    keys, bits, splits, most = bucket
    raw = encoded(*bucket)
    asked = [k[0] for k in keys]
    asked += data.draw(st.lists(st.integers(0, (1 << bits) - 1), max_size=20))
    for remainder in asked:
        found = probe_bucket(raw, remainder, bits, splits)
        plain = None
        if found is not None:
            plain = (found[0], None if found[1] is None else found[1].tolist(), found[2])
        expected = twin.probe(keys, remainder, most)
        if expected is not None and not expected[1]:
            expected = (expected[0], None, expected[2])
        assert plain == expected


def many(rng: random.Random, bits: int = 30, splits: int = 500) -> list[twin.Key]:
    keys: list[twin.Key] = []
    for remainder in sorted({rng.getrandbits(bits) for _ in range(3000)}):
        count = rng.choice([1, 1, 1, 1, 2, 5, 90, 300])
        code = rng.choice([1, 1, 9]) if count == 1 else 9
        block = rng.randrange(200) if code == 1 else -1
        keys.append((remainder, code, sorted(rng.sample(range(splits), count)), block))
    return keys


def test_a_large_bucket_answers_every_key(rng: random.Random) -> None:
    keys = many(rng)
    raw = encoded(keys, 30, 500, 200)
    assert raw == twin.encode(keys, 30, 500, 200)
    for remainder, code, ids, block in keys:
        found = probe_bucket(raw, remainder, 30, 500)
        assert found is not None
        assert found[0] == code
        assert (found[1] is None) == (len(ids) > 200)
        assert found[1] is None or found[1].tolist() == ids
        assert found[2] == block


def test_a_changed_byte_is_refused(rng: random.Random) -> None:
    keys = many(rng)[:300]
    raw = encoded(keys, 30, 500, 200)
    for at in range(len(raw)):
        damaged = bytearray(raw)
        damaged[at] ^= 1 << rng.randrange(8)
        with pytest.raises(CorruptFileError):
            probe_bucket(damaged, keys[0][0], 30, 500)


def test_a_cut_bucket_is_refused(rng: random.Random) -> None:
    raw = encoded(many(rng)[:40], 30, 500, 200)
    for size in range(len(raw)):
        with pytest.raises(CorruptFileError):
            decode_bucket(raw[:size], 30, 500)


def test_nonsense_with_a_fitting_checksum_stays_inside(rng: random.Random) -> None:
    """No read leaves the bucket, whatever its numbers say; run under AddressSanitizer too."""
    keys = many(rng)[:60]
    raw = encoded(keys, 30, 500, 200)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(raw[:-4])
        for _ in range(rng.choice([1, 1, 3])):
            at = rng.randrange(24) if rng.random() < 0.3 else rng.randrange(len(damaged))
            damaged[at] = rng.randrange(256)
        damaged += struct.pack("<I", crc32c(damaged))
        bits, splits = rng.choice([(30, 500), (30, 500), (12, 500), (48, 3)])
        try:
            decode_bucket(damaged, bits, splits)
            probe_bucket(damaged, rng.getrandbits(bits), bits, splits)
        except CorruptFileError:
            refused += 1
    assert refused > 1000


@pytest.mark.parametrize(
    "keys",
    [
        [(5, 1, [0], 0), (5, 1, [0], 0)],
        [(6, 1, [0], 0), (5, 1, [0], 0)],
        [(1 << 8, 1, [0], 0)],
        [(5, 2, [4], -1)],
        [(5, 2, [1, 0], -1)],
        [(5, 2, [1, 1], -1)],
    ],
)
def test_what_is_out_of_order_is_not_written(keys: list[twin.Key]) -> None:
    with pytest.raises(ValueError, match="ascending"):
        encoded(keys, 8, 4, 4)


def test_arrays_of_different_lengths_are_not_written() -> None:
    remainders, codes, offsets, ids, blocks = arrays([(5, 1, [0], 0), (6, 1, [0], 0)])
    with pytest.raises(ValueError, match="one code"):
        encode_bucket(remainders, codes[:1], offsets, ids, blocks, 8, 4, 4)
    with pytest.raises(ValueError, match="offsets"):
        encode_bucket(remainders, codes, offsets, ids[:1], blocks, 8, 4, 4)
    bent = np.array([0, 3, 2], np.int64)
    with pytest.raises(ValueError, match="fall"):
        encode_bucket(remainders, codes, bent, ids, blocks, 8, 4, 4)
