"""Avro in plain Python: the oracle of the compiled decoder, written from the specification."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pyarrow as pa
import zstandard


class Walker:
    """Reads values of any schema from bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.named: dict[str, Any] = {}

    def take(self, n: int) -> bytes:
        if n < 0 or self.at + n > len(self.data):
            raise EOFError
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return (value >> 1) ^ -(value & 1)
            shift += 7

    def text(self) -> str:
        return self.take(self.number()).decode()

    def blocks(self) -> Any:
        while count := self.number():
            if count < 0:
                self.number()
            yield from range(abs(count))

    def value(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return self.value(schema[self.number()])
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.value(kind)
        if isinstance(schema, dict) and "name" in schema:
            self.named[schema["name"]] = schema
        if kind == "record":
            return {f["name"]: self.value(f["type"]) for f in schema["fields"]}
        if kind == "array":
            return [self.value(schema["items"]) for _ in self.blocks()]
        if kind == "map":
            return {self.text(): self.value(schema["values"]) for _ in self.blocks()}
        if kind == "enum":
            return schema["symbols"][self.number()]
        if kind == "fixed":
            return self.take(schema["size"])
        return self.primitive(kind)

    def primitive(self, kind: str) -> Any:
        if kind == "null":
            return None
        if kind == "boolean":
            return self.take(1) == b"\x01"
        if kind in ("int", "long"):
            return self.number()
        if kind == "string":
            return self.text()
        if kind == "bytes":
            return self.take(self.number())
        if kind == "float":
            return struct.unpack("<f", self.take(4))[0]
        if kind == "double":
            return struct.unpack("<d", self.take(8))[0]
        return self.value(self.named[kind])


def read_container(data: bytes) -> list[Any]:
    """All values of an object container file."""
    walker = Walker(data)
    assert walker.take(4) == b"Obj\x01"
    metadata = {walker.text(): walker.take(walker.number()) for _ in walker.blocks()}
    sync = walker.take(16)
    schema = json.loads(metadata["avro.schema"])
    codec = metadata.get("avro.codec", b"null").decode()
    found = []
    while walker.at < len(data):
        count = walker.number()
        block = Walker(unpacked(walker.take(walker.number()), codec))
        assert walker.take(16) == sync
        block.named = walker.named
        found += [block.value(schema) for _ in range(count)]
    return found


def unpacked(block: bytes, codec: str) -> bytes:
    if codec == "deflate":
        return zlib.decompress(block, -15)
    if codec == "zstandard":
        return zstandard.ZstdDecompressor().decompressobj().decompress(block)
    if codec == "snappy":
        size = Walker(block)
        length = shift = 0
        while (byte := size.take(1)[0]) >= 128:
            length |= (byte & 127) << shift
            shift += 7
        length |= byte << shift
        return pa.Codec("snappy").decompress(block[:-4], length, asbytes=True)
    return block
