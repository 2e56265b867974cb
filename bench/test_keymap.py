"""Key maps: building, bytes a pair, bytes and requests of a probe, splits in vain.

The peers are budgets, and for the bytes a probe reads the 8-bit filters of the same splits, all of
which a cross-reference has to load. Nine keys in ten are unique to their split.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keymap_scale
import numpy as np
import pytest
from measure import timed

from indextables.native import BinaryFuse8
from indextables.splits.format.keymap import KeyMap, open_keymap, write_split_keys
from indextables.splits.format.keysets import merged, of_one_split
from indextables.xref.keymaps.merging import Source, join

SPLITS = 32
KEYS = 240_000

Report = Callable[..., Any]


class World:
    """The keys of some splits, and the map over them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        words = np.unique(rng.integers(0, 1 << 63, KEYS // 5).astype(np.uint64))
        self.hashes = []
        self.sources = []
        for number in range(SPLITS):
            ids = np.unique(
                rng.integers(0, 1 << 63, KEYS * 9 // 10).astype(np.uint64) << np.uint64(1)
            )
            some = np.sort(rng.choice(words, KEYS // 10, replace=False))
            self.hashes.append(np.unique(np.concatenate([ids, some])))
            rows = np.arange(len(ids)) % 1_000_000
            own = of_one_split(ids, np.ones(len(ids), np.int64), rows)
            shared = of_one_split(some, np.full(len(some), 3))
            keys = merged([(own, 0, 1), (shared, 0, 1)])
            data = b"".join(bytes(part) for part in write_split_keys(keys, "{}", "{}"))
            self.sources.append(source(data, f"part-{number:032x}.split"))
        self.data = self.joined()
        self.map = opened(self.data)

    def joined(self) -> bytes:
        out = bytearray()
        join(self.sources, out.extend)
        return bytes(out)


def opened(data: bytes) -> KeyMap:
    return open_keymap(lambda a, b: data[a:b], len(data), "map")


def source(data: bytes, path: str) -> Source:
    return Source(opened(data), lambda a, b: data[a:b], (path,))


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def test_joining(world: World, report: Report) -> None:
    seconds = timed(world.joined, 1)
    rate = world.map.pairs / seconds
    report("join key maps", rate, 2e6, "budget", unit="pairs/s", goal=1)


def test_bytes_a_pair(world: World, report: Report) -> None:
    assert world.map.pairs == sum(map(len, world.hashes))
    report("bytes a pair", len(world.data) / world.map.pairs, 5.0, "budget", unit="B", goal=1)


def test_a_probe_reads_a_bucket_where_filters_are_read_whole(world: World, report: Report) -> None:
    filters = sum(len(BinaryFuse8.build(h).to_postcard()) for h in world.hashes)
    bucket = int(np.diff(world.map.edges).mean())
    report("bytes read for one term", bucket, filters, "Binary Fuse 8", unit="B", goal=0.05)


def test_splits_in_vain(world: World, report: Report) -> None:
    rng = np.random.default_rng(6)
    found = 0
    asked = 20_000
    for key in (rng.integers(0, 1 << 63, asked).astype(np.uint64) << np.uint64(1)).tolist():
        a, b = world.map.range_of(world.map.bucket_of(key))
        said = world.map.probe(world.data[a:b], key)
        found += 0 if said is None else SPLITS if said[1] is None else len(said[1])
    report("splits in vain", found / asked, SPLITS / 256, "Binary Fuse 8", unit="splits", goal=0.1)


def test_probing(world: World, report: Report) -> None:
    key = int(world.hashes[0][17])
    a, b = world.map.range_of(world.map.bucket_of(key))
    raw = world.data[a:b]
    assert world.map.probe(raw, key) is not None
    report("probe a bucket", timed(lambda: world.map.probe(raw, key), 200), 50e-6, "budget", goal=1)


def test_the_slice_of_a_large_map(report: Report) -> None:
    pairs = SPLITS * KEYS // 10
    found = keymap_scale.measure(10_000, KEYS, pairs)
    assert found.in_vain < 0.05
    report("bytes a pair, 10,000 splits", found.bytes_a_pair, 5.5, "budget", unit="B", goal=1)
