"""Joining key maps into one: range of hashes after range of hashes, in bounded memory.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.splits.format.keymap import KeyMap, KeyMapWriter, Kinds, ReadRange, bucket_bits_for
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


def join(sources: Sequence[Source], write: Callable[[Any], Any], **header: Any) -> int:
    """Write the map of all sources; the size of the file."""
    kinds = Kinds.joined([source.kinds for source in sources])
    paths = [path for source in sources for path in source.kept]
    bits = _bits(sources)
    writer = KeyMapWriter(
        write,
        bucket_bits=min(bits, bucket_bits_for(sum(source.map.size for source in sources))),
        splits=len(paths),
        bits=bits,
    )
    for keys, first, end in _strides(sources, writer.bucket_bits, bits):
        width = 1 << (bits - writer.bucket_bits)
        for bucket in range(first, end):
            writer.add(keys.part(bucket * width, (bucket + 1) * width))
    return writer.finish(kinds, paths, **header)


def _bits(sources: Sequence[Source]) -> int:
    """The bits that all sources have, less what a large map has no use for."""
    keys = sum(source.map.keys for source in sources)
    least = min(source.map.bits for source in sources)
    return min(least, keys.bit_length() + SPARE_BITS) if keys >= LARGE_KEYS else least


def _strides(
    sources: Sequence[Source], bucket_bits: int, bits: int
) -> Iterator[tuple[KeySet, int, int]]:
    """The keys of each stride, and the buckets they are for."""
    total = sum(source.map.size for source in sources)
    stride_bits = min(bucket_bits, (total // STRIDE_BYTES).bit_length())
    buckets = 1 << (bucket_bits - stride_bits)
    readers = [_Reader(source, stride_bits) for source in sources]
    cuts = [source.map.bits - bits for source in sources]
    for stride in range(1 << stride_bits):
        parts, base = [], 0
        for reader, source in zip(readers, sources, strict=True):
            number = len(source.kept)
            parts.append((reader.keys(stride), base, number))
            base += number
        yield merged(parts, cuts), stride * buckets, (stride + 1) * buckets


class _Reader:
    """Strides of one source; the last bucket stays where several strides share it."""

    def __init__(self, source: Source, stride_bits: int) -> None:
        self._source = source
        self._bits = stride_bits
        self._held: tuple[tuple[int, int], KeySet] | None = None

    def keys(self, stride: int) -> KeySet:
        map_, more = self._source.map, self._source.map.bucket_bits - self._bits
        if more >= 0:
            first, end = stride << more, (stride + 1) << more
        else:
            first, end = stride >> -more, (stride >> -more) + 1
        if self._held is None or self._held[0] != (first, end):
            low, high = int(map_.edges[first]), int(map_.edges[end])
            raw = self._source.read(low, high)
            self._held = ((first, end), map_.decode(raw, first, end))
        width = 1 << (map_.bits - self._bits)
        keys = self._held[1].part(stride * width, (stride + 1) * width)
        keep = self._source.keep
        return keys if keep is None else retained(keys, map_.splits, keep)
