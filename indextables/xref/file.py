"""One cross-reference file: a bundle of filters, of what they cover, and of a header.

Members: ``fuse_filters.bin`` (one filter per source split, in order), ``split_metadata.json`` (the
source splits, same order), ``xref_header.json``, and ``checksums.json`` (CRC-32C of the others, in
hex): a flipped bit in a filter would otherwise lose rows. The header names the footer's true place,
which depends on the header's own length; the two are settled by repetition before anything is
written.

Splits may be indexed in different ways over a table's life, so the header also holds every
document mapping with its column types, and each split the number of its own. A question about a
column is put to a split's filter only in terms of that split's mapping. Columns whose pairs of
neighbouring words are keys too are listed beside the mapping (``neighbours``).

Files of other programs have the first three members alone. They are read as they are.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from indextables.errors import CorruptFileError, IndexTablesError
from indextables.mapping import DocMapping
from indextables.native import (
    BinaryFuse8,
    BinaryFuse16,
    Bundle,
    BundleWriter,
    FilterSet,
    crc32c,
    read_fxrf,
    write_fxrf,
)
from indextables.types import schema_from_json, schema_to_json

FILTERS = "fuse_filters.bin"
METADATA = "split_metadata.json"
HEADER = "xref_header.json"
CHECKSUMS = "checksums.json"
FORMAT_VERSION = 3
TYPE_NAMES = {"fuse8": "BinaryFuse8", "fuse16": "BinaryFuse16"}
_MOST_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """The filter of one split, ready to be put into a cross-reference."""

    path: str
    num_docs: int
    footer_start: int
    footer_end: int
    filter: BinaryFuse8 | BinaryFuse16
    num_keys: int
    mapping: str
    schema: str
    neighbours: tuple[str, ...] = ()
    """Columns whose pairs of neighbouring words are keys too."""

    @property
    def kind(self) -> tuple[str, str, tuple[str, ...]]:
        return self.mapping, self.schema, self.neighbours


@dataclass(frozen=True, slots=True)
class WrittenXRef:
    """The bytes of a cross-reference and what the log says about it."""

    data: bytes
    footer_start: int
    footer_end: int
    total_terms: int


def write_xref(
    xref_id: str,
    table_id: str,
    sources: Sequence[SourceFilter],
    *,
    filter_type: str = "fuse8",
    hash_kind: str = "xxh64",
    compression: int = 0,
    created_at: int | None = None,
) -> WrittenXRef:
    """The file of a cross-reference over these splits."""
    filters = write_fxrf(
        [s.filter for s in sources],
        version=FORMAT_VERSION,
        hash_kind=hash_kind,
        compression=compression,
        num_keys=[s.num_keys for s in sources],
        filter_type=filter_type,
    )
    kinds = list(dict.fromkeys(s.kind for s in sources))
    metadata = _metadata(sources, kinds)
    header: dict[str, Any] = {
        "magic": "FXRF",
        "format_version": FORMAT_VERSION,
        "xref_id": xref_id,
        "index_uid": table_id,
        "num_splits": len(sources),
        "total_terms": sum(s.num_keys for s in sources),
        "filter_type": TYPE_NAMES[filter_type],
        "created_at": int(time.time()) if created_at is None else created_at,
        "footer_start_offset": 0,
        "footer_end_offset": 0,
        "hash": hash_kind,
        "fields": _fields(kinds),
        "mappings": [_described(*kind) for kind in kinds],
    }
    start, end = _settle_footer(header, filters, metadata)
    data = io.BytesIO()
    _write(data, header, filters, metadata)
    return WrittenXRef(data.getvalue(), start, end, header["total_terms"])


def _described(mapping: str, schema: str, neighbours: tuple[str, ...]) -> dict[str, Any]:
    known: dict[str, Any] = {"mapping": mapping, "schema": schema}
    return {**known, "neighbours": list(neighbours)} if neighbours else known


def _metadata(
    sources: Sequence[SourceFilter], kinds: list[tuple[str, str, tuple[str, ...]]]
) -> bytes:
    numbers = {kind: i for i, kind in enumerate(kinds)}
    splits = [
        {
            "split_idx": i,
            "uri": s.path,
            "split_id": s.path.rpartition("/")[2].removesuffix(".split"),
            "footer_start": s.footer_start,
            "footer_end": s.footer_end,
            "num_docs": s.num_docs,
            "num_terms": s.num_keys,
            "filter_size_bytes": s.filter.nbytes,
            "mapping": numbers[s.kind],
        }
        for i, s in enumerate(sources)
    ]
    return json.dumps({"splits": splits}, indent=2, ensure_ascii=False).encode()


def _fields(kinds: list[tuple[str, str, tuple[str, ...]]]) -> list[dict[str, Any]]:
    found = {f.name: f for m, *_ in kinds for f in DocMapping.from_json(m).fields if f.indexed}
    return [
        {"name": f.name, "field_type": f.type, "tokenizer": f.tokenizer, "indexed": True}
        for f in found.values()
    ]


class _Discard:
    """A file that only counts."""

    def write(self, data: Any) -> int:
        return len(memoryview(data).cast("B")) if len(data) else 0


def _settle_footer(header: dict[str, Any], filters: bytes, metadata: bytes) -> tuple[int, int]:
    for _ in range(_MOST_ROUNDS):
        place = _write(_Discard(), header, filters, metadata)
        if place == (header["footer_start_offset"], header["footer_end_offset"]):
            return place
        header["footer_start_offset"], header["footer_end_offset"] = place
    raise AssertionError("the footer's place does not settle")


def _write(file: Any, header: dict[str, Any], filters: bytes, metadata: bytes) -> tuple[int, int]:
    raw = json.dumps(header, indent=2, ensure_ascii=False).encode()
    members = {FILTERS: filters, METADATA: metadata, HEADER: raw}
    sums = {name: f"{crc32c(data):08x}" for name, data in members.items()}
    writer = BundleWriter(file, "xref")
    for name, data in members.items():
        writer.add(name, data)
    writer.add(CHECKSUMS, json.dumps(sums).encode())
    return writer.finish()


class Kind(NamedTuple):
    """How splits are indexed, and of which columns neighbouring words are keys."""

    mapping: DocMapping
    schema: pa.Schema
    neighbours: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LoadedXRef:
    """A cross-reference in memory, ready to be probed."""

    path: str
    paths: tuple[str, ...]
    filters: FilterSet
    mapping_of: np.ndarray[Any, np.dtype[np.int32]]
    mappings: tuple[Kind, ...]
    hash_kind: str
    total_terms: int
    footers: np.ndarray[Any, np.dtype[np.int64]]
    """Where the footer of each split starts and ends."""

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all splits have the first mapping."""
        return not self.mapping_of.any()

    @property
    def nbytes(self) -> int:
        return self.filters.nbytes + sum(map(len, self.paths)) + 64 * len(self.paths)


def read_xref(data: bytes, path: str) -> LoadedXRef:
    """Parse a cross-reference; anything that does not fit together is ``CorruptFileError``."""
    bundle = Bundle.parse(data)
    header = _json(bundle, HEADER, path)
    _check_sums(bundle, header, path)
    splits = _json(bundle, METADATA, path).get("splits")
    container = read_fxrf(bundle.member(FILTERS))
    if not isinstance(splits, list) or len(splits) != len(container):
        raise CorruptFileError("filters and splits differ in number", path=path)
    try:
        kinds, numbers = _kinds(header, splits)
        paths = tuple(str(s["uri"]) for s in splits)
        ends = [(int(s.get("footer_start", 0)), int(s.get("footer_end", 0))) for s in splits]
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        IndexTablesError,
    ) as error:
        raise CorruptFileError(f"unreadable description: {error}", path=path) from error
    if len(numbers) and (numbers.max() >= len(kinds)):
        raise CorruptFileError("a split names a mapping that is not there", path=path)
    return LoadedXRef(
        path,
        paths,
        FilterSet(list(container)),
        numbers,
        kinds,
        container.hash_kind,
        int(header.get("total_terms", 0)),
        np.array(ends, np.int64).reshape(-1, 2),
    )


def _kinds(header: dict[str, Any], splits: list[Any]) -> tuple[tuple[Kind, ...], Any]:
    """How the splits are indexed, and the number of its mapping for each split (-1: unknown).

    A file of another program lists the fields once for all splits. Of those the text fields are
    asked: how numbers and times are spelled there is not beyond doubt.
    """
    if "mappings" in header:
        kinds = tuple(
            described_kind(m["mapping"], m["schema"], tuple(map(str, m.get("neighbours") or ())))
            for m in header["mappings"]
        )
        return kinds, np.array([s.get("mapping", -1) for s in splits], np.int32)
    texts = [f for f in header.get("fields") or [] if f.get("field_type") == "text"]
    fields = [
        {"name": str(f["name"]), "type": "text", "tokenizer": f.get("tokenizer") or "default"}
        for f in texts
        if f.get("indexed", True)
    ]
    if not fields:
        return (), np.full(len(splits), -1, np.int32)
    schema = pa.schema([(f["name"], pa.string()) for f in fields])
    known = [0 if s.get("num_terms") else -1 for s in splits]
    return (described_kind(json.dumps(fields), schema_to_json(schema)),), np.array(known, np.int32)


@lru_cache(maxsize=256)
def described_kind(mapping: str, schema: str, neighbours: tuple[str, ...] = ()) -> Kind:
    """One object for all files that repeat a description, so that questions are worded once."""
    return Kind(DocMapping.from_json(mapping), schema_from_json(schema), frozenset(neighbours))


def _check_sums(bundle: Bundle, header: dict[str, Any], path: str) -> None:
    """Files of ours have checksums, which have to be right; those of other programs have none."""
    if CHECKSUMS not in bundle.files and "mappings" not in header and "hash" not in header:
        return
    sums = _json(bundle, CHECKSUMS, path)
    for name in (FILTERS, METADATA, HEADER):
        if name not in bundle.files:
            raise CorruptFileError(f"member {name} is missing", path=path)
        if sums.get(name) != f"{crc32c(bundle.member(name)):08x}":
            raise CorruptFileError(f"member {name} does not match its checksum", path=path)


def _json(bundle: Bundle, name: str, path: str) -> dict[str, Any]:
    try:
        body = json.loads(bytes(bundle.member(name)))
    except (KeyError, ValueError, RecursionError) as error:
        raise CorruptFileError(f"member {name} is missing or unreadable", path=path) from error
    if not isinstance(body, dict):
        raise CorruptFileError(f"member {name} is not an object", path=path)
    return body


__all__ = ["LoadedXRef", "SourceFilter", "WrittenXRef", "read_xref", "schema_to_json", "write_xref"]
