"""Binary Fuse filters: the reference's bytes, no false negatives, no key set that fails."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import native_twins as twin
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_keys import recipe_keys, splitmix_keys

from indextables.errors import CorruptFileError
from indextables.native import BinaryFuse8, BinaryFuse16
from indextables.native._fuse import BinaryFuse, index_functions
from indextables.native._fuse_build import seed_of, shape_of

CLASSES: dict[int, type[BinaryFuse]] = {8: BinaryFuse8, 16: BinaryFuse16}
PATIENCE = 256


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# -- known answers ------------------------------------------------------------------------------


def test_seeds(vectors: Callable[[str], Any]) -> None:
    expected = [int(seed) for seed in vectors("seeds")["seeds_dec"]]
    assert [seed_of(i) for i in range(len(expected))] == expected


def test_index_functions(vectors: Callable[[str], Any]) -> None:
    for v in vectors("index_functions")["vectors"]:
        key, seed = int(v["key"]), int(v["seed"])
        h, slots, fp16 = index_functions(key, seed, v["segment_length"], v["segment_count_length"])
        assert h == int(v["hash"])
        assert slots == (v["h0"], v["h1"], v["h2"])
        assert (fp16 & 255, fp16) == (v["fp8"], v["fp16"])


def test_geometry(vectors: Callable[[str], Any]) -> None:
    rows = vectors("geometry")["rows"]
    assert [list(shape_of(n)) for n, *_ in rows] == [row[1:4] for row in rows]
    assert len(rows) == 2112


def golden_filters() -> list[Any]:
    path = Path(__file__).parents[1] / "data" / "native" / "filters.json"
    return [pytest.param(v, id=v["name"]) for v in json.loads(path.read_text())["filters"]]


@pytest.mark.parametrize("vector", golden_filters())
def test_golden_filters(vector: dict[str, Any], native_dir: Path) -> None:
    """Same seed, shape and bytes as the reference.

    It counts repeated keys when it chooses a shape and may need more seeds for them; for such a
    vector ours is the filter of the distinct keys, and equals the reference once told its choice.
    """
    cls = CLASSES[16 if vector["type"] == "BinaryFuse16" else 8]
    keys = recipe_keys(vector["keys"])
    assert sha256(keys.astype("<u8").tobytes()) == vector["keys_le_u64_sha256"]
    built = cls.build(keys)
    if "_dup_" in vector["name"]:
        assert built.to_postcard() == cls.build(np.unique(keys)).to_postcard()
        built = cls.build(keys, sized_for=vector["n"], first_seed=vector["seed_index"])
    assert built.seed == seed_of(vector["seed_index"]) == int(vector["seed_hex"], 16)
    assert built.segment_length == vector["segment_length"]
    assert built.segment_count_length == vector["segment_count_length"]
    assert built.num_keys == len(np.unique(keys))
    packed = built.to_postcard()
    assert sha256(packed) == vector["postcard_sha256"]
    name = "fingerprints_sha256" if cls is BinaryFuse8 else "fingerprints_le_u16_sha256"
    assert sha256(built.slots.astype(f"<u{built.width}").tobytes()) == vector[name]
    if "file" in vector:
        assert (native_dir / vector["file"]).read_bytes() == packed
    again = cls.from_postcard(packed)
    assert again.to_postcard() == packed
    assert again.contains_many(keys).all()


def test_probes(vectors: Callable[[str], Any]) -> None:
    golden = vectors("probes")
    probes = recipe_keys(golden["probe_keys"])
    assert len(golden["answers"]) == 7
    for answer in golden["answers"]:
        bits, keys = re.fullmatch(r"bf(8|16)_sm42_n(\d+)", answer["filter"]).groups()  # type: ignore[union-attr]
        built = CLASSES[int(bits)].build(splitmix_keys(42, int(keys)))
        assert np.flatnonzero(built.contains_many(probes)).tolist() == answer["positive_indices"]


# -- twins --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 16])
@settings(max_examples=200)
@given(
    keys=st.lists(st.integers(0, 2**64 - 1), max_size=200),
    probes=st.lists(st.integers(0, 2**64 - 1), max_size=20),
)
def test_built_as_the_twin_builds(bits: int, keys: list[int], probes: list[int]) -> None:
    expected = twin.build(keys, bits)
    built = CLASSES[bits].build(np.array(keys, np.uint64))
    assert built.to_postcard() == twin.postcard(expected, bits)
    assert built.num_keys == len(set(keys))
    wanted = keys + probes
    answers = [twin.contains(expected, bits, key) for key in wanted]
    assert built.contains_many(np.array(wanted, np.uint64)).tolist() == answers
    assert [built.contains(key) for key in wanted] == answers
    assert [key in built for key in wanted] == answers


# -- construction -------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 16])
def test_every_small_number_of_keys(bits: int, seed: int) -> None:
    keys = splitmix_keys(seed, 4096)
    for n in range(4097):
        built = CLASSES[bits].build(keys[:n])
        assert built.num_keys == n
        assert built.contains_many(keys[:n]).all()


def test_ten_million_keys_without_a_false_negative() -> None:
    keys = splitmix_keys(42, 10_000_000)
    built = BinaryFuse8.build(keys)
    assert built.contains_many(keys).all()
    assert built.num_keys == 10_000_000
    assert built.nbytes * 8 / len(keys) < 9.1


@pytest.mark.parametrize("round_segments", [False, True])
def test_false_positives_of_8_bits(round_segments: bool) -> None:
    built = BinaryFuse8.build(splitmix_keys(1, 50_000), round_segments=round_segments)
    rate = built.contains_many(splitmix_keys(2, 10_000_000)).mean()
    assert rate == pytest.approx(1 / 256, rel=0.05)


def test_false_positives_of_16_bits() -> None:
    built = BinaryFuse16.build(splitmix_keys(1, 10_000))
    block = 10_000_000
    hits = 0
    for start in range(40):
        probes = np.arange(start * block, (start + 1) * block, dtype=np.uint64)
        hits += int(built.contains_many(probes).sum())
    assert hits / (40 * block) == pytest.approx(1 / 65536, rel=0.05)


@pytest.mark.parametrize(("base", "extra"), [(10, 1), (55, 62), (1000, 100), (5000, 5000)])
def test_repeated_keys_change_nothing(base: int, extra: int) -> None:
    keys = splitmix_keys(12711, base)
    expected = BinaryFuse8.build(keys).to_postcard()
    first = np.concatenate([keys, np.repeat(keys[:1], extra)])
    assert BinaryFuse8.build(first).to_postcard() == expected
    assert BinaryFuse8.build(np.repeat(keys, 3)).to_postcard() == expected
    many = np.concatenate([keys, keys[: min(extra, base)]])
    np.random.default_rng(1).shuffle(many)
    assert BinaryFuse8.build(many).to_postcard() == expected


def colliding_pairs(seeds: int) -> np.ndarray[Any, Any]:
    """Keys of which, for each of the first seeds, two fall on the same three slots."""
    source = np.random.default_rng(3)
    keys = []
    for seed in (seed_of(i) for i in range(seeds)):
        h = int(source.integers(0, 1 << 63))
        keys += [(twin.unmix64(x) - seed) & twin.M64 for x in (h, h ^ (1 << 36))]
    return np.array(keys, np.uint64)


def test_keys_chosen_against_every_seed_of_the_reference() -> None:
    keys = colliding_pairs(PATIENCE)
    assert len(np.unique(keys)) == 2 * PATIENCE
    built = BinaryFuse8.build(keys)
    assert built.contains_many(keys).all()
    length, count_length, _ = shape_of(2 * PATIENCE)
    assert built.segment_length == length
    assert built.segment_count_length == count_length + length
    assert built.to_postcard() == BinaryFuse8.build(keys[::-1]).to_postcard()


def test_keys_that_pile_up_on_one_slot() -> None:
    """More keys on a slot than its counter can hold must not look like fewer."""
    seed = seed_of(0)
    base = 0x123456 << 40
    keys = np.array([(twin.unmix64(base | i) - seed) & twin.M64 for i in range(1025)], np.uint64)
    built = BinaryFuse8.build(keys)
    assert built.seed != seed
    assert built.contains_many(keys).all()


def test_a_size_that_nearly_fills_its_last_segment() -> None:
    """Rounded shapes give up on such a shape after a few seeds and take one segment more."""
    keys = splitmix_keys(1, 11_521)
    assert BinaryFuse8.build(keys).seed == seed_of(193)
    eager = BinaryFuse8.build(keys, round_segments=True)
    assert eager.segment_count_length == shape_of(11_521)[1] + eager.segment_length
    assert eager.contains_many(keys).all()


def test_rounded_shapes_are_few_and_little_larger() -> None:
    exact = {shape_of(n) for n in range(20_000, 37_000)}
    rounded = {shape_of(n, True) for n in range(20_000, 37_000)}
    assert len(rounded) < len(exact) * 2 / 3
    for n in range(1, 40_000, 37):
        length, count_length, slots = shape_of(n)
        wide = shape_of(n, True)
        assert wide[0] == length
        assert count_length <= wide[1] <= count_length * 1.08 + length
        assert wide[2] == wide[1] + 2 * length
        assert slots == count_length + 2 * length


def test_threads_build_and_probe_alike() -> None:
    sets = [splitmix_keys(state, 3000 + 97 * state) for state in range(12)]
    expected = [BinaryFuse8.build(keys).to_postcard() for keys in sets]
    shared = BinaryFuse8.build(sets[0])
    with ThreadPoolExecutor(4) as pool:
        assert [f.to_postcard() for f in pool.map(BinaryFuse8.build, sets)] == expected
        assert all(a.all() for a in pool.map(shared.contains_many, [sets[0]] * 32))


# -- objects and bytes --------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [BinaryFuse8, BinaryFuse16])
def test_a_new_filter_is_that_of_no_keys(cls: type[BinaryFuse]) -> None:
    assert cls().to_postcard() == cls.build([]).to_postcard()
    assert cls().num_keys is None
    assert cls.build([]).num_keys == 0


@pytest.mark.parametrize("cls", [BinaryFuse8, BinaryFuse16])
def test_filters_can_be_pickled(cls: type[BinaryFuse]) -> None:
    built = cls.build(splitmix_keys(5, 1000))
    again = pickle.loads(pickle.dumps(built))
    assert type(again) is cls
    assert again.num_keys == 1000
    assert again.to_postcard() == built.to_postcard()


def test_slots_lie_in_the_buffer_and_pin_it() -> None:
    buffer = bytearray(BinaryFuse8.build(splitmix_keys(5, 1000)).to_postcard())
    read = BinaryFuse8.from_postcard(buffer, num_keys=1000)
    assert read.num_keys == 1000
    assert np.shares_memory(read.slots, np.frombuffer(buffer, np.uint8))
    assert not read.slots.flags.writeable
    with pytest.raises(BufferError):
        buffer.clear()


def test_keys_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="one-dimensional"):
        BinaryFuse8.build(np.zeros((2, 2), np.uint64))
    with pytest.raises(OverflowError):
        BinaryFuse8().contains(-1)


def postcard_of(*numbers: int, slots: bytes) -> bytes:
    return b"".join(map(twin.varint, numbers)) + slots


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "unexpected end of data"),
        (postcard_of(1, 4, 3, 4, slots=b""), "unexpected end of data"),
        (postcard_of(1, 3, 2, 3, 9, slots=bytes(9)), "not a power of two"),
        (postcard_of(1, 0, 0, 4, 4, slots=bytes(4)), "not a power of two"),
        (postcard_of(1, 4, 4, 4, 12, slots=bytes(12)), "segment mask"),
        (postcard_of(1, 4, 3, 0, 8, slots=bytes(8)), "whole number"),
        (postcard_of(1, 4, 3, 6, 14, slots=bytes(14)), "whole number"),
        (postcard_of(1, 4, 3, 4, 13, slots=bytes(13)), "number of slots"),
        (postcard_of(1, 4, 3, 4, 12, slots=bytes(11)), "slots of the filter"),
        (postcard_of(1, 4, 3, 4, 12, slots=bytes(13)), "slots of the filter"),
        (postcard_of(1, 4, 3, 2**32, 2**32 + 8, slots=bytes(8)), "beyond 32 bits"),
        (postcard_of(1, 4, 3, 2**32 - 4, 2**32 + 4, slots=bytes(8)), "number of slots"),
        (postcard_of(1, 2**31, 2**31 - 1, 2**31, 3 << 31, slots=b""), "not a power of two"),
    ],
)
@pytest.mark.parametrize("cls", [BinaryFuse8, BinaryFuse16])
def test_malformed_filters(cls: type[BinaryFuse], raw: bytes, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        cls.from_postcard(raw)


def test_a_16_bit_slot_beyond_16_bits() -> None:
    raw = postcard_of(1, 4, 3, 4, 12, slots=bytes(11) + b"\x80\x80\x04")
    with pytest.raises(CorruptFileError, match="beyond 16 bits"):
        BinaryFuse16.from_postcard(raw)
