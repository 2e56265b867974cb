"""Key maps at scale: what a probe costs over a thousand to a million splits, with real key counts.

    python bench/keymap_scale.py                       the figures of docs/scale.md
    python bench/keymap_scale.py --keys 38000          splits of fewer keys

A map over 100,000 splits of 2.4 million keys has a terabyte. Hashes are uniform, so a slice of the
hash space is a map in small: this makes all keys of all splits whose hashes fall into the slice,
as many as such splits have there, and writes the buckets of that slice with the code that writes
whole maps. Bytes of a bucket, bytes a pair and splits in vain are then measured; the sizes of the
whole map follow from them by multiplication. How many maps there are is simulated: commits of ten
splits or more, joined by the rule that builds follow. Nine keys in ten are unique
to their split (ids), the others are words of a Zipf distribution that many splits share.
"""

from __future__ import annotations

import argparse
import time
import uuid
from dataclasses import dataclass

import numpy as np
import zstandard

from indextables.config import Config
from indextables.splits.format.keymap import TAIL_BYTES, KeyMapWriter, bucket_bits_for
from indextables.splits.format.keysets import MOST_BITS, KeySet, merged
from indextables.xref.keymaps.build import OPENING_BYTES
from indextables.xref.keymaps.levels import Run, next_step
from indextables.xref.keymaps.merging import LARGE_KEYS, SPARE_BITS

SETTINGS = Config()
KEYS = 2_400_000
PAIRS = 2_000_000
WORDS = 500_000
UNIQUE = 0.9
FAN_OUT = SETTINGS["xref.keymap.fanOut"]
MOST_MAPS = SETTINGS["xref.keymap.maxMaps"]
MOST_BYTES = SETTINGS["xref.keymap.maxSize"]
PATHS = 20_000


@dataclass(frozen=True)
class Slice:
    """The buckets of a slice of one map, measured."""

    splits: int
    share: float
    pairs: int
    nbytes: int
    bucket_bits: int
    bits: int
    seconds: float
    in_vain: float

    @property
    def bytes_a_pair(self) -> float:
        return self.nbytes / self.pairs

    @property
    def bucket(self) -> float:
        return self.nbytes / max(1, round(self.share * (1 << self.bucket_bits)))


def keys_of_slice(rng: np.random.Generator, splits: int, keys: int, width: int, n: int) -> KeySet:
    """About ``n`` pairs of uniform hashes below ``width``, as all splits together have there."""
    unique = int(n * UNIQUE)
    hashes = rng.integers(0, width, unique, dtype=np.uint64)
    ids = rng.integers(0, splits, unique, dtype=np.uint32)
    order = np.argsort(hashes, kind="stable")
    ones = np.ones(unique, np.uint8)
    blocks = rng.integers(0, 245, unique).astype(np.int32)
    parts = [(KeySet(hashes[order], ones, np.arange(unique + 1), ids[order], blocks), 0, splits)]
    left = n - unique
    unknown = np.full(1, -1, np.int32)
    while left > 0:
        rank = int(WORDS ** rng.random()) + 1
        count = max(1, min(splits, left, int(splits * min(1.0, 400 / rank))))
        held = np.unique(rng.integers(0, splits, count, dtype=np.uint32))
        word = rng.integers(0, width, 1, dtype=np.uint64)
        offsets = np.array([0, len(held)])
        code = np.full(1, 210, np.uint8)
        parts.append((KeySet(word, code, offsets, held, unknown), 0, splits))
        left -= len(held)
    return merged(parts)


def measure(splits: int, keys: int, pairs: int = PAIRS, seed: int = 1) -> Slice:
    """Write the buckets of a slice and count what absent keys hit there."""
    rng = np.random.default_rng(seed)
    total = splits * keys
    bits = MOST_BITS if total < LARGE_KEYS else min(MOST_BITS, total.bit_length() + SPARE_BITS)
    bucket_bits = min(bits, bucket_bits_for(int(total * 4.5)))
    buckets = max(1, min(1 << bucket_bits, round(pairs / total * (1 << bucket_bits))))
    width = buckets << (bits - bucket_bits)
    share = width / (1 << bits)
    found = keys_of_slice(rng, splits, keys, width, round(total * share))
    parts: list[bytes] = []
    start = time.process_time()
    writer = KeyMapWriter(parts.append, bucket_bits=bucket_bits, splits=splits, bits=bits)
    step = 1 << (bits - bucket_bits)
    for bucket in range(buckets):
        writer.add(found.part(bucket * step, (bucket + 1) * step))
    seconds = time.process_time() - start
    nbytes = sum(map(len, parts)) - len(parts[0])
    asked = rng.integers(0, width, 200_000, dtype=np.uint64)
    places = np.searchsorted(found.hashes, asked)
    places[places == len(found)] = 0
    hit = found.hashes[places] == asked
    counts = np.diff(found.offsets)
    in_vain = float(counts[places[hit]].sum() / len(asked))
    return Slice(splits, share, writer.pairs, nbytes, bucket_bits, bits, seconds, in_vain)


def path_bytes() -> float:
    """Compressed bytes of a path in a map."""
    names = "\n".join(
        f"day=2026-01-{i % 28 + 1:02d}/part-{uuid.uuid4()}.split" for i in range(PATHS)
    )
    return len(zstandard.ZstdCompressor(level=3).compress(names.encode())) / PATHS


@dataclass
class Growth:
    """The maps of a table that grew by commits, by the rule that builds follow."""

    most: int
    last: list[int]
    rewritten: float


def grown(splits: int, commits: int = 20_000) -> Growth:
    """Commit after commit until there are so many splits; joins as ``levels`` wants them."""
    each = max(10, splits // commits)
    runs: list[Run] = []
    most, written = 0, 0
    for number in range(splits // each):
        runs.append(Run(f"{number}", each, each, each))
        while (step := next_step(runs, FAN_OUT, MOST_MAPS)) is not None:
            total = sum(run.splits for run in step.sources)
            runs = [run for run in runs if run not in step.sources]
            runs.append(Run(f"{number} joined", total, total, total))
            written += total
        most = max(most, len(runs))
    return Growth(most, sorted((run.splits for run in runs), reverse=True), written / splits)


def requests(sizes: list[float], tails: list[float]) -> tuple[int, int]:
    """Requests and depth of a needle in a process that has opened only the log."""
    count, depth = 2, 2
    for size, tail in zip(sizes, tails, strict=True):
        sharded = size > MOST_BYTES
        opened = size > TAIL_BYTES and tail <= OPENING_BYTES
        trips = 1 if size <= TAIL_BYTES or opened else 2
        count += trips + int(sharded)
        depth = max(depth, 2 + trips + int(sharded))
    return count, depth


def describe(splits: int, keys: int) -> None:
    growth = grown(splits)
    one = measure(growth.last[0], keys)
    paths, pair = path_bytes(), one.bytes_a_pair
    sizes = [pair * keys * n for n in growth.last]
    shards = [max(1, 1 << (-(-int(size) // MOST_BYTES) - 1).bit_length()) for size in sizes]
    buckets = [max(1, size / shard / one.bucket) for size, shard in zip(sizes, shards, strict=True)]
    tails = [4 * n + paths * held for n, held in zip(buckets, growth.last, strict=True)]
    held = sum(8 * n + (paths + 8) * s for n, s in zip(buckets, growth.last, strict=True))
    count, depth = requests(sizes, tails)
    print(
        f"-- {splits:,} splits of {keys:,} keys: {splits * keys * pair / 1e9:,.0f} GB of key maps"
    )
    print(f"   measured: {pair:.2f} bytes a pair, {one.bucket / 1024:.0f} KB a bucket,")
    print(f"   {one.in_vain:.5f} splits in vain for an absent key in each map")
    print(f"   simulated: {len(growth.last)} maps of {growth.last} splits, {max(shards)} files the")
    print(f"   largest; at most {growth.most} maps, every key written {growth.rewritten:.1f} times")
    print(f"   needle: {count} requests, depth {depth}, cold, with two for its split;")
    print(
        f"   {(sum(tails) + len(sizes) * one.bucket) / 1e6:,.1f} MB read, {held / 1e6:,.0f} MB held"
    )
    print(f"   warm: {len(sizes) + 2} requests, depth 3", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--splits", type=int, nargs="*", default=[1000, 10_000, 100_000, 1_000_000])
    asked = parser.parse_args()
    for splits in asked.splits:
        describe(splits, asked.keys)


if __name__ == "__main__":
    main()
