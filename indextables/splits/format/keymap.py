"""A key map: which splits hold a key, in buckets by hash; one format for one split or a million.

    "ITXKMAP1" | buckets | directory | paths | header | footer

A bucket holds the keys whose hashes share their upper ``bucketBits`` bits; ``pyx/filters/_keymap``
describes its bytes and gives each a checksum of its own. The directory is the length of each
bucket, u32. ``paths`` are the covered splits in the order of their numbers, one a line, zstd. The
header is JSON: version, hash, bits of a hash, ``bucketBits``, numbers of splits, keys and pairs,
the mappings of the splits and which split has which (runs of equal numbers). The footer is

    u64 start of the directory | u64 of the paths | u64 of the header
    u32 CRC-32C of directory, of paths, of header | u32 buckets | "KMAPEND1"

A map that would be too large for one file is cut by hash into shards: shard i of 2^k holds the
buckets whose upper k bits are i, and says so (``shard``, ``shardBits``; its version is 2, which a
reader that knows no shards refuses). A question reads the one shard its key is in, so what has to
be opened does not grow with the map. Only shard 0 names the paths.

Everything but the buckets is at the end, so that one read of the tail opens a small map. To probe
a key reads one bucket. A split keeps its own keys in the same form, as a map of one split without
a path (member ``keys.bin``); maps of many splits are made of those, and of each other.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray
from zstandard import ZstdError

from indextables.errors import CorruptFileError
from indextables.expr.keys import HASH_KIND
from indextables.native import xxh64
from indextables.native._crc32c import crc32c
from indextables.native._keymap import decode_bucket, encode_bucket, probe_bucket
from indextables.splits.format.keysets import EMPTY, MOST_BITS, KeySet

MAGIC = b"ITXKMAP1"
END = b"KMAPEND1"
VERSION = 1
SHARDED = 2
TAIL_BYTES = 256 << 10
BUCKET_BYTES = 32 << 10
LARGE_BYTES = 1 << 30
MOST_BUCKET_BITS = 32
MOST_SHARD_BITS = 16
LISTED_LEAST = 1024
PATHS_RATIO = 64
_FOOTER = struct.Struct("<QQQIIII8s")

ReadRange = Callable[[int, int], Any]


def digest_of(paths: Iterable[str]) -> str:
    """By which the log knows that a file covers the splits it was committed for."""
    return f"{xxh64(chr(10).join(paths).encode()):016x}"


def most_listed(splits: int) -> int:
    """In more splits than this a key is everywhere: naming a quarter of them saves too little."""
    return max(LISTED_LEAST, splits // 4)


def bucket_bits_for(nbytes: int) -> int:
    """How many upper bits choose a bucket, so that buckets have about ``BUCKET_BYTES``.

    Those of large maps are twice as large: their directories are what a driver has to hold.
    """
    target = BUCKET_BYTES if nbytes < LARGE_BYTES else 2 * BUCKET_BYTES
    return min(MOST_BUCKET_BITS, (nbytes // target).bit_length())


@dataclass(frozen=True, slots=True)
class Kinds:
    """The mappings and schemas of the covered splits, and which split has which."""

    texts: tuple[tuple[str, str], ...]
    runs: tuple[tuple[int, int], ...]

    @classmethod
    def joined(cls, several: Sequence[Kinds]) -> Kinds:
        texts: dict[tuple[str, str], int] = {}
        runs: list[tuple[int, int]] = []
        for kinds in several:
            for number, count in kinds.runs:
                at = texts.setdefault(kinds.texts[number], len(texts))
                if runs and runs[-1][0] == at:
                    runs[-1] = (at, runs[-1][1] + count)
                else:
                    runs.append((at, count))
        return cls(tuple(texts), tuple(runs))

    def chosen(self, keep: NDArray[np.bool_]) -> Kinds:
        """Those of some of the splits."""
        runs = [(int(n), 1) for n in self.numbers()[keep]]
        return Kinds.joined([Kinds(self.texts, tuple(runs))])

    def numbers(self) -> NDArray[np.int32]:
        """The number of each split's mapping."""
        which = np.array([number for number, _ in self.runs], np.int32)
        return np.repeat(which, [count for _, count in self.runs])


@dataclass(frozen=True, slots=True)
class Shard:
    """The keys whose hashes begin with ``bits`` bits that spell ``number``."""

    number: int = 0
    bits: int = 0

    def holds(self, key: int) -> bool:
        """Is a 64-bit key hash in it?"""
        return key >> (64 - self.bits) == self.number

    def first(self, upper_bits: int) -> int:
        """The first number of ``upper_bits`` bits that is in it."""
        return self.number << (upper_bits - self.bits)


WHOLE = Shard()


class KeyMapWriter:
    """Writes a key map bucket after bucket."""

    def __init__(
        self,
        write: Callable[[Any], Any],
        *,
        bucket_bits: int,
        splits: int,
        bits: int = MOST_BITS,
        shard: Shard = WHOLE,
    ) -> None:
        self._write = write
        self._lengths: list[int] = []
        self.bits, self.bucket_bits, self.splits = bits, bucket_bits, splits
        self.shard = shard
        self.keys = self.pairs = 0
        self.tail = b""
        """What follows the buckets, once it is finished."""
        self._at = len(MAGIC)
        write(MAGIC)

    def add(self, keys: KeySet) -> None:
        """The keys of the next bucket."""
        left = self.bits - self.bucket_bits
        rest = keys.hashes & np.uint64((1 << left) - 1)
        most = most_listed(self.splits)
        raw = encode_bucket(
            rest, keys.codes, keys.offsets, keys.ids, keys.blocks, left, self.splits, most
        )
        self._lengths.append(len(raw))
        self.keys += len(keys)
        self.pairs += keys.pairs
        self._at += len(raw)
        self._write(raw)

    def finish(self, kinds: Kinds, paths: Sequence[str], **more: Any) -> int:
        """Write the rest; the size of the file."""
        directory = np.array(self._lengths, "<u4").tobytes()
        named = paths if self.shard.number == 0 else ()
        packed = zstandard.ZstdCompressor(level=3).compress("\n".join(named).encode())
        shard = {"shard": self.shard.number, "shardBits": self.shard.bits}
        sharded = shard | {"digest": digest_of(paths)} if self.shard.bits else {}
        body = {
            "version": SHARDED if sharded else VERSION,
            "hash": HASH_KIND,
            "bits": self.bits,
            "bucketBits": self.bucket_bits,
            "splits": self.splits,
            "keys": self.keys,
            "pairs": self.pairs,
            "mappings": [{"mapping": m, "schema": s} for m, s in kinds.texts],
            "mappingOf": [list(run) for run in kinds.runs],
            **sharded,
            **more,
        }
        header = json.dumps(body, separators=(",", ":")).encode()
        starts = [self._at, self._at + len(directory), self._at + len(directory) + len(packed)]
        sums = [crc32c(directory), crc32c(packed), crc32c(header)]
        footer = _FOOTER.pack(*starts, *sums, len(self._lengths), END)
        self.tail = b"".join((directory, packed, header, footer))
        self._write(self.tail)
        return self._at + len(self.tail)


def write_split_keys(keys: KeySet, mapping: str, schema: str) -> list[bytes]:
    """The member of one split, in parts."""
    parts: list[bytes] = []
    bits = bucket_bits_for(4 * len(keys))
    writer = KeyMapWriter(parts.append, bucket_bits=bits, splits=1)
    width = 1 << (MOST_BITS - bits)
    for bucket in range(1 << bits):
        writer.add(keys.part(bucket * width, (bucket + 1) * width))
    writer.finish(Kinds(((mapping, schema),), ((0, 1),)), [])
    return parts


@dataclass(frozen=True)
class KeyMap:
    """What is known of a key map without its buckets."""

    path: str
    size: int
    bits: int
    bucket_bits: int
    splits: int
    keys: int
    pairs: int
    kinds: Kinds
    packed: bytes
    """The paths as they are stored; a million of them are unpacked only to be looked up."""
    digest: str
    edges: NDArray[np.int64]
    shard: Shard = WHOLE
    whole: bytes = b""
    """All bytes of a map so small that the read of its end brought them."""

    @property
    def nbytes(self) -> int:
        kinds = sum(len(m) + len(s) for m, s in self.kinds.texts) + 200 * len(self.kinds.runs)
        return int(self.edges.nbytes) + len(self.packed) + len(self.whole) + kinds + 1024

    @property
    def paths(self) -> tuple[str, ...]:
        """The covered splits in the order of their numbers."""
        text = _unpacked(self.packed)
        return tuple(text.decode().split("\n")) if text else ()

    def some_paths(self, most: int) -> Iterator[list[str]]:
        """The paths, some at a time."""
        text = _unpacked(self.packed)
        start = 0
        while start < len(text):
            end, count = start, 0
            while count < most and end < len(text):
                found = text.find(b"\n", end)
                end = len(text) if found < 0 else found + 1
                count += 1
            yield text[start:end].decode().removesuffix("\n").split("\n")
            start = end

    def bucket_of(self, key: int) -> int:
        """The bucket of a 64-bit key hash."""
        return key >> (64 - self.bucket_bits)

    def edge(self, bucket: int) -> int:
        """Where a bucket begins."""
        return int(self.edges[bucket - self.shard.first(self.bucket_bits)])

    def range_of(self, bucket: int) -> tuple[int, int]:
        return self.edge(bucket), self.edge(bucket + 1)

    def probe(self, raw: Any, key: int) -> tuple[int, NDArray[np.uint32] | None, int] | None:
        """What the bucket ``raw`` says of a 64-bit key hash; see ``probe_bucket``."""
        left = self.bits - self.bucket_bits
        rest = (key >> (64 - self.bits)) & ((1 << left) - 1)
        try:
            return probe_bucket(raw, rest, left, self.splits)
        except CorruptFileError as error:
            raise self._corrupt(error.reason) from error

    def decode(self, raw: Any, first: int, end: int) -> KeySet:
        """The keys of the buckets ``first`` to ``end``, whose bytes are ``raw``."""
        left = self.bits - self.bucket_bits
        start = self.edge(first)
        view = memoryview(raw)
        found = []
        for bucket in range(first, end):
            low, high = self.range_of(bucket)
            try:
                keys = KeySet(*decode_bucket(view[low - start : high - start], left, self.splits))
            except CorruptFileError as error:
                raise self._corrupt(error.reason) from error
            upper = np.uint64(bucket << left)
            found.append(KeySet(keys.hashes | upper, *_rest(keys)))
        return _chained(found)

    def _corrupt(self, reason: str) -> CorruptFileError:
        return CorruptFileError(reason, path=self.path)


def _rest(keys: KeySet) -> tuple[Any, ...]:
    return keys.codes, keys.offsets, keys.ids, keys.blocks


def _chained(parts: Sequence[KeySet]) -> KeySet:
    """Sets of ascending ranges, one after another."""
    if len(parts) < 2:
        return parts[0] if parts else EMPTY
    offsets = [np.zeros(1, np.int64)]
    for part in parts:
        offsets.append(part.offsets[1:] + offsets[-1][-1])
    return KeySet(
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.codes for part in parts]),
        np.concatenate(offsets),
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.blocks for part in parts]),
    )


def open_keymap(
    read: ReadRange, size: int, path: str, tail_bytes: int = 0, known: bytes = b""
) -> KeyMap:
    """Open a map of ``size`` bytes; one read of its tail, a second where that is too short.

    No read if its end is ``known``.
    """
    short = size > TAIL_BYTES and tail_bytes
    start = size - len(known) if known else max(0, size - (tail_bytes if short else TAIL_BYTES))
    tail = known or bytes(read(start, size))
    if size < len(MAGIC) + _FOOTER.size or len(tail) != size - start:
        raise CorruptFileError("the key map is cut off", path=path)
    *starts, one, two, three, buckets, end = _FOOTER.unpack(tail[-_FOOTER.size :])
    edges = [*starts, size - _FOOTER.size]
    if end != END or sorted(edges) != edges or edges[0] < len(MAGIC):
        raise CorruptFileError("not the end of a key map", path=path)
    if edges[0] < start:
        tail = bytes(read(edges[0], start)) + tail
        start = edges[0]
    parts = [tail[a - start : b - start] for a, b in pairwise(edges)]
    if [crc32c(part) for part in parts] != [one, two, three]:
        raise CorruptFileError("the description of the key map does not fit its sum", path=path)
    found = _described(parts, buckets, edges[0], size, path)
    return replace(found, whole=tail) if start == 0 else found


def _described(parts: list[bytes], buckets: int, end: int, size: int, path: str) -> KeyMap:
    try:
        body = json.loads(parts[2])
        sharded = SHARDED if body.get("shardBits", 0) else VERSION
        if body["version"] != sharded or body["hash"] != HASH_KIND:
            raise ValueError("written by another release")
        kinds = Kinds(
            tuple((str(m["mapping"]), str(m["schema"])) for m in body["mappings"]),
            tuple((int(number), int(count)) for number, count in body["mappingOf"]),
        )
        found = KeyMap(
            path,
            size,
            int(body["bits"]),
            int(body["bucketBits"]),
            int(body["splits"]),
            int(body["keys"]),
            int(body["pairs"]),
            kinds,
            parts[1],
            str(body.get("digest") or f"{xxh64(_unpacked(parts[1])):016x}"),
            _edges(parts[0]),
            Shard(int(body.get("shard", 0)), int(body.get("shardBits", 0))),
        )
        named = _count(parts[1])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, ZstdError) as error:
        raise CorruptFileError(f"unreadable key map: {error}", path=path) from error
    _check(found, buckets, end, named)
    return found


def _check(found: KeyMap, buckets: int, end: int, named: int) -> None:
    kinds, shard = found.kinds, found.shard
    counts = (0, 1) if found.splits == 1 else (0 if shard.number else found.splits,)
    fits = (
        0 <= shard.bits <= min(MOST_SHARD_BITS, found.bucket_bits)
        and 0 <= shard.number < 1 << shard.bits
        and found.bucket_bits <= min(found.bits, MOST_BUCKET_BITS)
        and found.bits <= MOST_BITS
        and len(found.edges) == buckets + 1 == (1 << (found.bucket_bits - shard.bits)) + 1
        and found.edges[-1] == end
        and found.splits >= 1
        and named in counts
        and all(0 <= number < len(kinds.texts) and count > 0 for number, count in kinds.runs)
        and sum(count for _, count in kinds.runs) == found.splits
    )
    if not fits:
        raise CorruptFileError("the numbers of the key map do not fit", path=found.path)


def _edges(directory: bytes) -> NDArray[np.int64]:
    """Where buckets begin, and where the last one ends."""
    edges = np.empty(len(directory) // 4 + 1, np.int64)
    edges[0] = len(MAGIC)
    np.cumsum(np.frombuffer(directory, "<u4"), dtype=np.int64, out=edges[1:])
    edges[1:] += len(MAGIC)
    return edges


def _unpacked(packed: bytes) -> bytes:
    most = PATHS_RATIO * len(packed) + (1 << 16)
    if zstandard.frame_content_size(packed) > most:
        raise ValueError("too many paths for their bytes")
    return bytes(zstandard.ZstdDecompressor().decompress(packed, max_output_size=most))


def _count(packed: bytes) -> int:
    text = _unpacked(packed)
    text.decode()
    return text.count(b"\n") + 1 if text else 0
