"""Joining key maps into one: range of hashes after range of hashes, in bounded memory.

A map that would be larger than one file may be is written in shards, each by itself.

The hashes are cut into strides, so many that one stride of all sources together takes about
``STRIDE_BYTES``. Of each source a stride is one read, since its buckets lie side by side. Splits
keep their order: those of the first source come first.

How many bits of a hash are kept decides how often two keys fall together. 48 bits are enough for
any number of joins to come; a map that has grown so large that few joins can follow keeps
``SPARE_BITS`` more than it has keys, which makes one false answer in thousands of probes and saves
bytes on every key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.splits.format.keymap import (
    MOST_SHARD_BITS,
    WHOLE,
    KeyMap,
    KeyMapWriter,
    Kinds,
    ReadRange,
    Shard,
    bucket_bits_for,
)
from indextables.splits.format.keysets import KeySet, merged, retained

STRIDE_BYTES = 32 << 20
SPARE_BITS = 12
LARGE_KEYS = 1 << 31


@dataclass(frozen=True)
class Source:
    """A key map, how to read it, and what its splits are called."""

    map: KeyMap
    read: ReadRange
    paths: tuple[str, ...]
    keep: NDArray[np.bool_] | None = None
    """The splits that go into the joined map; ``None``: all."""
    others: tuple[tuple[KeyMap, ReadRange], ...] = ()
    """The further shards of the map, in their order, where ``map`` is the first of several."""

    @property
    def files(self) -> tuple[tuple[KeyMap, ReadRange], ...]:
        return ((self.map, self.read), *self.others)

    @property
    def size(self) -> int:
        return sum(found.size for found, _ in self.files)

    @property
    def keys(self) -> int:
        return sum(found.keys for found, _ in self.files)

    @cached_property
    def count(self) -> int:
        """How many splits go into the joined map."""
        return self.map.splits if self.keep is None else int(self.keep.sum())

    @property
    def kept(self) -> tuple[str, ...]:
        """The paths that go into the joined map."""
        if self.keep is None:
            return self.paths
        return tuple(path for path, keep in zip(self.paths, self.keep, strict=True) if keep)

    @property
    def kinds(self) -> Kinds:
        kinds = self.map.kinds
        return kinds if self.keep is None else kinds.chosen(self.keep)


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written: its size, and the end of it, which opens it."""

    size: int
    tail: bytes


def shards_for(sources: Sequence[Source], most_bytes: int) -> list[Shard]:
    """The shards of a joined map, so many that none is larger than ``most_bytes`` by much."""
    total = sum(source.size for source in sources)
    bits = min(MOST_SHARD_BITS, _bucket_bits(sources), (-(-total // most_bytes) - 1).bit_length())
    return [Shard(number, bits) for number in range(1 << bits)]


def join(
    sources: Sequence[Source], write: Callable[[Any], Any], shard: Shard = WHOLE, **header: Any
) -> Written:
    """Write the map of all sources, or one shard of it."""
    kinds = Kinds.joined([source.kinds for source in sources])
    paths = [path for source in sources for path in source.kept]
    bits = _bits(sources)
    writer = KeyMapWriter(
        write, bucket_bits=_bucket_bits(sources), splits=len(paths), bits=bits, shard=shard
    )
    for keys, first, end in _strides(sources, writer.bucket_bits, bits, shard):
        width = 1 << (bits - writer.bucket_bits)
        for bucket in range(first, end):
            writer.add(keys.part(bucket * width, (bucket + 1) * width))
    return Written(writer.finish(kinds, paths, **header), writer.tail)


def _bits(sources: Sequence[Source]) -> int:
    """The bits that all sources have, less what a large map has no use for."""
    keys = sum(source.keys for source in sources)
    least = min(source.map.bits for source in sources)
    return min(least, keys.bit_length() + SPARE_BITS) if keys >= LARGE_KEYS else least


def _bucket_bits(sources: Sequence[Source]) -> int:
    """Of the joined map, but never so few that a bucket would be in two shards of a source."""
    wanted = bucket_bits_for(sum(source.size for source in sources))
    cut = max(source.map.shard.bits for source in sources)
    return min(_bits(sources), max(wanted, cut))


def _strides(
    sources: Sequence[Source], bucket_bits: int, bits: int, shard: Shard
) -> Iterator[tuple[KeySet, int, int]]:
    """The keys of each stride of a shard, and the buckets they are for."""
    total = sum(source.size for source in sources)
    cut = max(shard.bits, *(source.map.shard.bits for source in sources))
    stride_bits = min(bucket_bits, max(cut, (total // STRIDE_BYTES).bit_length()))
    buckets = 1 << (bucket_bits - stride_bits)
    readers = [_Reader(source, stride_bits) for source in sources]
    cuts = [source.map.bits - bits for source in sources]
    first = shard.first(stride_bits)
    for stride in range(first, first + (1 << (stride_bits - shard.bits))):
        parts, base = [], 0
        for reader, source in zip(readers, sources, strict=True):
            parts.append((reader.keys(stride), base, source.count))
            base += source.count
        yield merged(parts, cuts), stride * buckets, (stride + 1) * buckets


class _Reader:
    """Strides of one source; the last bucket stays where several strides share it."""

    def __init__(self, source: Source, stride_bits: int) -> None:
        self._source = source
        self._bits = stride_bits
        self._held: tuple[tuple[int, int], KeySet] | None = None

    def keys(self, stride: int) -> KeySet:
        files = self._source.files
        map_, read = files[stride >> (self._bits - self._source.map.shard.bits)]
        more = map_.bucket_bits - self._bits
        if more >= 0:
            first, end = stride << more, (stride + 1) << more
        else:
            first, end = stride >> -more, (stride >> -more) + 1
        if self._held is None or self._held[0] != (first, end):
            raw = read(map_.edge(first), map_.edge(end))
            self._held = ((first, end), map_.decode(raw, first, end))
        width = 1 << (map_.bits - self._bits)
        keys = self._held[1].part(stride * width, (stride + 1) * width)
        keep = self._source.keep
        return keys if keep is None else retained(keys, map_.splits, keep)
