"""Key maps: what is written is read back, joined maps equal one map of all, damage is refused."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from indextables.errors import CorruptFileError
from indextables.splits.format import keymap
from indextables.splits.format.keymap import KeyMap, open_keymap, write_split_keys
from indextables.splits.format.keysets import (
    BLOCK_ROWS,
    frequencies,
    frequency_codes,
    of_one_split,
)
from indextables.xref.keymaps import merging
from indextables.xref.keymaps.merging import Source, join

Truth = dict[int, dict[int, int]]
"""48-bit hash -> split -> documents."""


def opened(data: bytes, path: str = "map") -> KeyMap:
    return open_keymap(lambda a, b: data[a:b], len(data), path)


def source(data: bytes, *paths: str) -> Source:
    found = opened(data)
    return Source(found, lambda a, b: data[a:b], paths or found.paths)


def split_keys(hashes: dict[int, list[int]]) -> bytes:
    """The member of a split whose keys (64-bit) are in these rows."""
    ordered = sorted(hashes)
    counts = np.array([len(hashes[h]) for h in ordered], np.int64)
    rows = np.array([hashes[h][0] for h in ordered], np.int64)
    keys = of_one_split(np.array(ordered, np.uint64), counts, rows)
    return b"".join(bytes(p) for p in write_split_keys(keys, "{}", "{}"))


def random_splits(rng: random.Random, number: int) -> list[dict[int, list[int]]]:
    common = [rng.getrandbits(64) for _ in range(30)]
    splits = []
    for _ in range(number):
        keys = {rng.getrandbits(64): [rng.randrange(100_000)] for _ in range(rng.randrange(400))}
        for key in rng.sample(common, rng.randrange(30)):
            keys[key] = sorted(rng.sample(range(100_000), rng.randrange(1, 400)))
        splits.append(keys)
    return splits


def truth_of(splits: list[dict[int, list[int]]]) -> Truth:
    truth: Truth = defaultdict(dict)
    for number, keys in enumerate(splits):
        for key, rows in keys.items():
            truth[key >> 16][number] = truth[key >> 16].get(number, 0) + len(rows)
    return truth


def answer(data: bytes, key: int) -> tuple[int, list[int] | None, int] | None:
    found = opened(data)
    a, b = found.range_of(found.bucket_of(key))
    said = found.probe(data[a:b], key)
    if said is None:
        return None
    return said[0], None if said[1] is None else said[1].tolist(), said[2]


def joined(sources: list[Source]) -> bytes:
    out = bytearray()
    size = join(sources, out.extend).size
    assert size == len(out)
    return bytes(out)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many buckets and strides out of few keys."""
    monkeypatch.setattr(keymap, "BUCKET_BYTES", 256)
    monkeypatch.setattr(merging, "STRIDE_BYTES", 2048)


def test_frequencies_are_exact_while_they_are_small_and_close_later() -> None:
    counts = np.array([*range(1000), 10**4, 10**6, 10**9])
    found = frequencies(frequency_codes(counts))
    assert found[:201].tolist() == list(range(201))
    assert np.all(np.abs(found - counts) <= 0.18 * counts)


def test_a_split_answers_for_its_keys(rng: random.Random) -> None:
    (keys,) = random_splits(rng, 1)
    data = split_keys(keys)
    assert opened(data).bucket_bits > 0 or len(keys) < 64
    for key, rows in keys.items():
        code, splits, block = answer(data, key) or (0, [], 0)
        assert splits == [0]
        assert code == frequency_codes(np.array([len(rows)]))[0]
        assert block == (rows[0] // BLOCK_ROWS if len(rows) == 1 else -1)


def test_a_joined_map_names_exactly_the_splits_that_hold_a_key(rng: random.Random) -> None:
    splits = random_splits(rng, 23)
    data = joined([source(split_keys(keys), f"s{i}") for i, keys in enumerate(splits)])
    assert opened(data).paths == tuple(f"s{i}" for i in range(23))
    for key, held in truth_of(splits).items():
        found = answer(data, key << 16)
        assert found is not None
        assert found[1] == sorted(held)
        if sum(held.values()) <= 200:
            assert found[0] == sum(held.values())
    for _ in range(500):
        key = rng.getrandbits(64)
        assert (answer(data, key) is not None) == (key >> 16 in truth_of(splits))


def test_joining_joined_maps_gives_the_answers_of_joining_at_once(rng: random.Random) -> None:
    splits = random_splits(rng, 12)
    one_by_one = [source(split_keys(keys), f"s{i}") for i, keys in enumerate(splits)]
    halves = [source(joined(one_by_one[:5])), source(joined(one_by_one[5:]))]
    at_once, in_steps = joined(one_by_one), joined(halves)
    first, second = opened(at_once), opened(in_steps)
    assert first.paths == second.paths
    assert (first.keys, first.pairs) == (second.keys, second.pairs)
    for key, held in truth_of(splits).items():
        one, other = answer(at_once, key << 16), answer(in_steps, key << 16)
        assert one is not None
        assert other is not None
        assert one[1:] == other[1:]
        assert sum(held.values()) > 200 or one[0] == other[0]


def test_fewer_bits_name_more_splits_and_never_fewer(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = random_splits(rng, 9)
    monkeypatch.setattr(merging, "LARGE_KEYS", 1)
    monkeypatch.setattr(merging, "SPARE_BITS", 1)
    data = joined([source(split_keys(keys), f"s{i}") for i, keys in enumerate(splits)])
    assert opened(data).bits < 20
    more = 0
    for key, held in truth_of(splits).items():
        found = answer(data, key << 16)
        assert found is not None
        assert found[1] is not None
        assert set(found[1]) >= set(held)
        more += len(found[1]) > len(held)
    assert more


def test_a_key_in_too_many_splits_is_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keymap, "LISTED_LEAST", 3)
    key = 77 << 50
    parts = [source(split_keys({key: [1]}), f"s{i}") for i in range(8)]
    data = joined(parts)
    assert answer(data, key) == (8, None, -1)
    other = source(split_keys({key + (1 << 40): [1]}), "t")
    again = joined([source(data), other, other, *[source(split_keys({}), "e")] * 30])
    assert answer(again, key) == (8, list(range(8)), -1)
    assert answer(again, key + (1 << 40)) == (2, [8, 9], -1)


def test_an_empty_split_can_be_joined() -> None:
    data = joined([source(split_keys({}), "a"), source(split_keys({}), "b")])
    assert opened(data).keys == 0
    assert answer(data, 5) is None


def test_memory_of_a_join_is_a_stride(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads are no larger than a stride, and every byte of the buckets is read once."""
    reads: list[tuple[int, int]] = []
    data = split_keys({rng.getrandbits(64): [1] for _ in range(20_000)})

    def read(a: int, b: int) -> bytes:
        reads.append((a, b))
        return data[a:b]

    found = opened(data)
    join([Source(found, read, ("s",)), source(data, "t")], lambda part: None)
    assert len(reads) > 10
    assert max(b - a for a, b in reads) < 3 * 2048
    assert sorted(reads)[0][0] == found.edges[0]
    assert sum(b - a for a, b in reads) == found.edges[-1] - found.edges[0]


def test_every_damaged_byte_is_refused_or_belongs_to_another_bucket(rng: random.Random) -> None:
    splits = random_splits(rng, 4)
    data = joined([source(split_keys(keys), f"s{i}") for i, keys in enumerate(splits)])
    keys = list(truth_of(splits).items())
    for at in range(len(keymap.MAGIC), len(data), 7):
        damaged = bytearray(data)
        damaged[at] ^= 1 << rng.randrange(8)
        key, held = rng.choice(keys)
        try:
            found = answer(bytes(damaged), key << 16)
        except CorruptFileError:
            continue
        assert found is not None
        assert found[1] == sorted(held)


def test_a_cut_map_is_refused(rng: random.Random) -> None:
    data = split_keys(random_splits(rng, 1)[0])
    for size in [*range(60), *range(60, len(data), 11)]:
        with pytest.raises(CorruptFileError):
            opened(data[:size])


def test_a_tail_that_is_too_short_is_read_on(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keymap, "TAIL_BYTES", 64)
    data = split_keys(random_splits(rng, 1)[0])
    reads: list[Any] = []

    def read(a: int, b: int) -> bytes:
        reads.append((a, b))
        return data[a:b]

    assert open_keymap(read, len(data), "x").keys == opened(data).keys
    assert len(reads) == 2


def test_joining_some_splits_only_numbers_them_anew(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keymap, "LISTED_LEAST", 5)
    splits = random_splits(rng, 16)
    everywhere = 99 << 40
    for keys in splits:
        keys[everywhere] = [1]
    keep = np.arange(16) % 3 == rng.randrange(3)
    splits[int(np.flatnonzero(~keep)[0])][7 << 50] = [1]
    data = joined([source(split_keys(keys), f"s{i}") for i, keys in enumerate(splits)])
    assert answer(data, everywhere) == (16, None, -1)
    found = opened(data)
    some = joined([Source(found, lambda a, b: data[a:b], found.paths, keep)])
    chosen = [keys for keys, stays in zip(splits, keep, strict=True) if stays]
    assert opened(some).paths == tuple(f"s{i}" for i in np.flatnonzero(keep))
    before, truth = truth_of(splits), truth_of(chosen)
    for key, held in truth.items():
        said = answer(some, key << 16)
        assert said is not None
        was_everywhere = len(before[key]) > 5
        named = list(range(len(chosen))) if was_everywhere else sorted(held)
        assert said[1] == (None if len(named) > 5 else named)
    gone = [key for key in before if key not in truth and len(before[key]) <= 5]
    assert gone
    assert all(answer(some, key << 16) is None for key in gone)
