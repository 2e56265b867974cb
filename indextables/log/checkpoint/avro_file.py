"""Avro object container files: blocks out of their codecs.

The container is scanned once (every length and sync marker checked), then blocks are decompressed
one after the other, each when the one before it has been read: its memory is used again while it
is near. What a block may grow to is bounded, so that a few crafted bytes cannot claim
all memory. A codec's own complaint becomes ``CorruptFileError``.

Avro itself checks nothing but sync markers. The containers written here carry the CRC-32C of all
their other bytes as their first metadata entry, ``indextables.crc32c``: other readers pass over it,
this one refuses a file with as much as one bit changed. Files without the entry are read as well.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import pyarrow as pa

from indextables.config import Config
from indextables.errors import CorruptFileError
from indextables.log.checkpoint.avro_schema import Program, compile_entries, compile_schema
from indextables.log.read.columns import Int64s, zigzag
from indextables.native._avro_objects import decode_objects, scan_container
from indextables.native._crc32c import crc32c
from indextables.storage.machine import refuse_to_judge

LARGEST_BLOCK = 256 << 20
_GROUP_BYTES = 32 << 20
Data = bytes | memoryview


class Block(NamedTuple):
    """A block that can be decompressed, and how long it says it is then."""

    size: int
    load: Callable[[], Data]


Decompress = Callable[[memoryview], Block]


@dataclass(frozen=True, slots=True)
class BlockGroup:
    """Some blocks, and how many values each holds."""

    held: list[Block]
    counts: list[int]

    @property
    def sizes(self) -> list[int]:
        return [block.size for block in self.held]

    def blocks(self) -> Iterator[Data]:
        """The decompressed blocks, made one at a time."""
        return (block.load() for block in self.held)


@dataclass(frozen=True, slots=True)
class Container:
    """A container file that has been scanned."""

    schema_text: bytes
    codec: str
    view: memoryview
    counts: Int64s
    starts: Int64s
    sizes: Int64s

    @classmethod
    def scan(cls, data: bytes | memoryview) -> Container:
        view = memoryview(data)
        _verify(view)
        metadata, counts, starts, sizes = scan_container(view)
        schema = metadata.get("avro.schema")
        if schema is None:
            raise CorruptFileError("the Avro file has no schema")
        codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
        return cls(schema, codec or "null", view, counts, starts, sizes)

    def groups(self) -> Iterator[BlockGroup]:
        """All blocks, some tens of megabytes at a time."""
        decompress = _codec(self.codec)
        held: list[Block] = []
        counts: list[int] = []
        size = 0
        for count, start, length in zip(
            self.counts.tolist(), self.starts.tolist(), self.sizes.tolist(), strict=True
        ):
            held.append(decompress(self.view[start : start + length]))
            counts.append(count)
            size += held[-1].size
            if size >= _GROUP_BYTES:
                yield BlockGroup(held, counts)
                held, counts, size = [], [], 0
        if held:
            yield BlockGroup(held, counts)


@lru_cache(maxsize=64)
def entry_program(schema_text: bytes) -> Program:
    """Writers repeat their schema in every manifest: compile it once."""
    return compile_entries(schema_text)


def read_records(data: bytes) -> list[Any]:
    """All values of a small container as Python objects."""
    container = Container.scan(data)
    try:
        schema = json.loads(container.schema_text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"the Avro schema is not JSON: {error}") from None
    program = compile_schema(schema)
    found: list[Any] = []
    for group in container.groups():
        for block, count in zip(group.blocks(), group.counts, strict=True):
            found += decode_objects(program, block, count)
    return found


# -- writing ------------------------------------------------------------------------------------

_CODEC_NAMES = {"zstd": "zstandard", "snappy": "snappy", "deflate": "deflate", "none": "null"}


class ContainerWriter:
    """A container file in memory; the codec and its level come from the configuration."""

    def __init__(self, schema: Any, config: Config) -> None:
        self._codec = _CODEC_NAMES[config["state.compression"]]
        self._compress = _compressor(self._codec, config["state.compressionLevel"])
        self._sync = os.urandom(16)
        text = json.dumps(schema, separators=(",", ":")).encode()
        self._parts = [_header(text, self._codec.encode(), self._sync)]

    def add_block(self, count: int, data: bytes) -> None:
        """One block of ``count`` values."""
        packed = self._compress(data)
        self._parts += [zigzag(count), zigzag(len(packed)), packed, self._sync]

    def finish(self) -> bytes:
        rest = b"".join(self._parts)
        return _SEAL + b"%08x" % crc32c(rest, crc32c(_SEAL)) + rest


_ENTRIES = 3
_SEAL_KEY = b"indextables.crc32c"
_SEAL = b"Obj\x01" + zigzag(_ENTRIES) + zigzag(len(_SEAL_KEY)) + _SEAL_KEY + zigzag(8)


def _header(schema: bytes, codec: bytes, sync: bytes) -> bytes:
    """What follows the digits of the checksum: the other entries and the sync marker."""
    entries = ((b"avro.schema", schema), (b"avro.codec", codec))
    spelled = b"".join(
        zigzag(len(key)) + key + zigzag(len(value)) + value for key, value in entries
    )
    return spelled + zigzag(0) + sync


def _verify(view: memoryview) -> None:
    """Compare the checksum of a container that has one."""
    start = len(_SEAL)
    if view[:start] != _SEAL:
        return
    if view[start : start + 8] != b"%08x" % crc32c(view[start + 8 :], crc32c(_SEAL)):
        raise CorruptFileError("the checksum of the Avro file does not match", offset=start)


def _compressor(codec: str, level: int) -> Callable[[bytes], bytes]:
    if codec == "zstandard":
        import zstandard

        compress: Callable[[bytes], bytes] = zstandard.ZstdCompressor(level=level).compress
        return compress
    if codec == "deflate":
        return lambda data: zlib.compress(data, wbits=-15)
    if codec == "snappy":
        return _snappy
    return lambda data: data


def _snappy(data: bytes) -> bytes:
    packed: bytes = pa.Codec("snappy").compress(data, asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


# -- codecs -------------------------------------------------------------------------------------


def _codec(name: str) -> Decompress:
    if name == "null":
        return _loaded
    if name == "deflate":
        return lambda block: _loaded(_inflate(block))
    if name == "snappy":
        return lambda block: _loaded(_unsnappy(block))
    if name == "zstandard":
        return _unzstd()
    raise CorruptFileError(f"unknown Avro codec '{name[:40]}'")


def _loaded(data: Data) -> Block:
    return Block(len(data), lambda: data)


def _inflate(block: memoryview) -> bytes:
    stream = zlib.decompressobj(-15)
    try:
        found = stream.decompress(block, LARGEST_BLOCK)
    except zlib.error as error:
        raise CorruptFileError(f"a deflate block is damaged: {error}") from None
    if not stream.eof:
        raise CorruptFileError("a deflate block is incomplete or too large")
    return found


def _unzstd() -> Decompress:
    """Frames that say their size go through Arrow, whose memory pool has warm pages."""
    import zstandard

    context = zstandard.ZstdDecompressor(max_window_size=LARGEST_BLOCK)
    codec = pa.Codec("zstd")

    def whole(block: memoryview, size: int) -> memoryview:
        with _zstd_errors():
            found = codec.decompress(pa.py_buffer(block), decompressed_size=size)
        return memoryview(found).cast("B")

    def decompress(block: memoryview) -> Block:
        with _zstd_errors():
            size = zstandard.frame_content_size(block)
            if 0 < size <= LARGEST_BLOCK:
                return Block(size, partial(whole, block, size))
            with context.stream_reader(block) as stream:
                found: bytes = stream.read(LARGEST_BLOCK)
                more = stream.read(1)
        if more or size > LARGEST_BLOCK:
            raise CorruptFileError("a zstandard block is too large")
        return _loaded(found)

    return decompress


@contextmanager
def _zstd_errors() -> Iterator[None]:
    import zstandard

    try:
        yield
    except (zstandard.ZstdError, OSError, pa.ArrowException, MemoryError) as error:
        refuse_to_judge(error)
        raise CorruptFileError(f"a zstandard block is damaged: {error}") from None


def _unsnappy(block: memoryview) -> memoryview:
    if len(block) < 5:
        raise CorruptFileError("a snappy block is too short")
    size = _snappy_size(block)
    try:
        found = pa.Codec("snappy").decompress(pa.py_buffer(block[:-4]), decompressed_size=size)
    except (OSError, pa.ArrowException) as error:
        refuse_to_judge(error)
        raise CorruptFileError(f"a snappy block is damaged: {error}") from None
    if zlib.crc32(found) != int.from_bytes(block[-4:], "big"):
        raise CorruptFileError("the checksum of a snappy block does not match")
    return memoryview(found).cast("B")


def _snappy_size(block: memoryview) -> int:
    """The length that a snappy block says it decompresses to."""
    value = shift = 0
    for byte in block[:5]:
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    if value > LARGEST_BLOCK:
        raise CorruptFileError("a snappy block is too large")
    return value
