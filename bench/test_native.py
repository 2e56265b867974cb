"""Kernels against the reference C library that pyxorfilter carries (called through its cffi layer).

Its wheel has no array probe, so the set-up compiles one: a loop over the library's own filter
structure with the lookup inlined, and the same loop over one filter after another for the
comparison with ``FilterSet``.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from measure import race, timed
from numpy.typing import NDArray

from indextables.native import BinaryFuse8, FilterSet, crc32c, hash_terms

FILTERS = 10_000
MEDIAN_KEYS = 30_000
SIGMA = 0.7

Report = Callable[..., Any]

LOOPS_CDEF = """
void probe_many(const uint64_t* keys, size_t n, uint64_t seed, uint32_t length, uint32_t mask,
                uint32_t count_length, const uint8_t* slots, uint8_t* out);
typedef struct { uint64_t seed; const uint8_t* slots; uint32_t length, count_length; } one;
void probe_each(uint64_t key, const one* filters, size_t n, uint8_t* out);
"""
LOOPS = """
#include <stdint.h>
#include <stddef.h>
typedef struct { uint64_t seed; const uint8_t* slots; uint32_t length, count_length; } one;
static inline int probe(uint64_t key, uint64_t seed, uint32_t length, uint32_t mask,
                        uint32_t count_length, const uint8_t* slots) {
    uint64_t h = key + seed;
    h ^= h >> 33; h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33; h *= 0xc4ceb9fe1a85ec53ULL;
    h ^= h >> 33;
    uint32_t a = (uint32_t)(((__uint128_t)h * count_length) >> 64);
    uint32_t b = (a + length) ^ ((uint32_t)(h >> 18) & mask);
    uint32_t c = (a + 2 * length) ^ ((uint32_t)h & mask);
    return (uint8_t)(h ^ (h >> 32)) == (slots[a] ^ slots[b] ^ slots[c]);
}
void probe_many(const uint64_t* keys, size_t n, uint64_t seed, uint32_t length, uint32_t mask,
                uint32_t count_length, const uint8_t* slots, uint8_t* out) {
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)probe(keys[i], seed, length, mask, count_length, slots);
}
void probe_each(uint64_t key, const one* filters, size_t n, uint8_t* out) {
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)probe(key, filters[i].seed, filters[i].length, filters[i].length - 1,
                                filters[i].count_length, filters[i].slots);
}
"""


def random_keys(state: int, count: int) -> NDArray[np.uint64]:
    return np.random.default_rng(state).integers(0, 2**64, count, np.uint64)


@pytest.fixture(scope="module")
def reference() -> Any:
    """The compiled module of pyxorfilter (its Python face needs an old xxhash)."""
    return pytest.importorskip("pyxorfilter._xorfilter")


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Loops in C, compiled with the flags of the kernels."""
    cffi = pytest.importorskip("cffi")
    folder = tmp_path_factory.mktemp("loops")
    ffi = cffi.FFI()
    ffi.cdef(LOOPS_CDEF)
    ffi.set_source("fuse_loops", LOOPS, extra_compile_args=["-O3"])
    built = Path(ffi.compile(tmpdir=str(folder)))
    sys.path.insert(0, str(built.parent))
    try:
        return importlib.import_module("fuse_loops")
    finally:
        sys.path.remove(str(built.parent))


def build_by_reference(reference: Any, keys: NDArray[np.uint64]) -> Any:
    """A filter of the C library; freed with its Python handle."""
    lib, ffi = reference.lib, reference.ffi
    made = ffi.gc(ffi.new("binary_fuse8_t*"), lib.binary_fuse8_free)
    assert lib.binary_fuse8_allocate(len(keys), made)
    assert lib.binary_fuse8_populate(ffi.cast("uint64_t*", keys.ctypes.data), len(keys), made)
    return made


@pytest.mark.parametrize("count", [10_000, 100_000, 1_000_000])
def test_build(count: int, reference: Any, report: Report, benchmark: Any) -> None:
    keys = random_keys(1, count)
    ours, peer = race(
        lambda: BinaryFuse8.build(keys),
        lambda: build_by_reference(reference, keys),
        rounds=max(12, 3_000_000 // count),
    )
    goal = 0.9 if count >= 100_000 else None
    report(f"build {count:,} keys", ours * 1e3, peer * 1e3, "reference C", "ms", goal)
    benchmark.pedantic(BinaryFuse8.build, (keys,), rounds=5)


def probe_loop(loops: Any, reference: Any, made: Any, keys: Any, out: Any) -> Callable[[], None]:
    """The C lookup over the C library's own filter, for a whole array."""
    ffi = loops.ffi
    raw = int(reference.ffi.cast("uintptr_t", made.Fingerprints))
    arguments = (
        ffi.cast("uint64_t*", keys.ctypes.data),
        len(keys),
        made.Seed,
        made.SegmentLength,
        made.SegmentLengthMask,
        made.SegmentCountLength,
        ffi.cast("uint8_t*", raw),
        ffi.cast("uint8_t*", out.ctypes.data),
    )
    return lambda: loops.lib.probe_many(*arguments)


@pytest.mark.parametrize("count", [100_000, 1_000_000])
def test_contains_many(
    count: int, reference: Any, loops: Any, report: Report, benchmark: Any
) -> None:
    keys, probes = random_keys(1, count), random_keys(2, count)
    built = BinaryFuse8.build(keys)
    made = build_by_reference(reference, keys)
    out = np.empty(count, np.uint8)
    loop = probe_loop(loops, reference, made, probes, out)
    ours, peer = race(lambda: built.contains_many(probes), loop, rounds=40)
    one = reference.lib.binary_fuse8_contain
    assert [one(int(key), made) for key in probes[:2000]] == out[:2000].astype(bool).tolist()
    goal = 1.1 if count >= 1_000_000 else None
    report(f"contains_many {count:,} keys", ours * 1e3, peer * 1e3, "reference C", "ms", goal)
    benchmark.pedantic(built.contains_many, (probes,), rounds=5)


def mixed_filters(round_segments: bool) -> list[BinaryFuse8]:
    source = np.random.default_rng(7)
    sizes = np.exp(source.normal(np.log(MEDIAN_KEYS), SIGMA, FILTERS)).astype(int)
    keys = random_keys(3, int(sizes.max()) + FILTERS)
    return [
        BinaryFuse8.build(keys[i : i + int(size)], round_segments=round_segments)
        for i, size in enumerate(sizes)
    ]


def median_time(work: Callable[[int], Any], keys: list[int]) -> float:
    """The median wall time over the keys, the best of three passes, in microseconds."""
    passes = []
    for _ in range(3):
        times = []
        for key in keys:
            start = time.perf_counter_ns()
            work(key)
            times.append(time.perf_counter_ns() - start)
        passes.append(float(np.median(times)) / 1e3)
    return min(passes)


@pytest.mark.parametrize("round_segments", [False, True], ids=["exact", "rounded"])
def test_one_term_against_many_filters(
    round_segments: bool, loops: Any, report: Report, benchmark: Any
) -> None:
    filters = mixed_filters(round_segments)
    held = FilterSet(filters)
    ffi = loops.ffi
    table = ffi.new("one[]", FILTERS)
    slots = [item.slots for item in filters]
    for i, item in enumerate(filters):
        table[i].seed = item.seed
        table[i].slots = ffi.cast("uint8_t*", slots[i].ctypes.data)
        table[i].length = item.segment_length
        table[i].count_length = item.segment_count_length
    out = np.empty(FILTERS, np.uint8)
    target = ffi.cast("uint8_t*", out.ctypes.data)
    keys = [int(key) for key in random_keys(9, 200)]
    for key in keys[:50]:
        loops.lib.probe_each(key, table, FILTERS, target)
        assert (held.probe(key) == out.astype(bool)).all()
    ours = median_time(held.probe, keys)
    peer = median_time(lambda key: loops.lib.probe_each(key, table, FILTERS, target), keys)
    shape = f"{'rounded' if round_segments else 'exact'}, {len(held.groups)} groups"
    name = f"one term, {FILTERS:,} filters ({shape})"
    report(name, ours, peer, "one by one in C", "us", 0.1)
    report(f"{name} against 50 us", ours, 50, "the goal", "us", 1.0)
    benchmark.pedantic(held.probe, (keys[0],), rounds=50)


@pytest.mark.parametrize("kind", ["fxhash64", "xxh64"])
def test_hash_terms(kind: str, report: Report, benchmark: Any) -> None:
    xxhash = pytest.importorskip("xxhash")
    texts = [f"term{i}" for i in range(200_000)]
    array = pa.array(texts)
    ours = timed(lambda: hash_terms("title", array, kind), 10)
    peer = timed(lambda: [xxhash.xxh64_intdigest(b"title:" + t.encode()) for t in texts], 3)
    nanoseconds = 1e9 / len(texts)
    report(f"hash_terms {kind}", ours * nanoseconds, peer * nanoseconds, "xxhash, joined", "ns/key")
    benchmark.pedantic(hash_terms, ("title", array, kind), rounds=5)


def test_crc32c(report: Report, benchmark: Any) -> None:
    peer = pytest.importorskip("google_crc32c")
    data = np.random.default_rng(1).bytes(1 << 24)
    ours, other = race(lambda: crc32c(data), lambda: peer.value(data), rounds=5)
    report("crc32c of 16 MiB", ours * 1e3, other * 1e3, "google_crc32c", "ms")
    benchmark.pedantic(crc32c, (data,), rounds=5)
