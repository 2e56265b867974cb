"""``split.json``: what a reader must know about a split before it touches any other member.

It holds the schema, the row count, the document mapping, a checksum for every member (and for each
slice of an index file, so that slices can be fetched alone), how each column is indexed, how many
nulls and NaNs it has, the bounds of integers, and what the filter was built from. Its own checksum
is in the footer.

A split of a companion holds no rows: they are in files of another table, which the member
``sources.json`` lists. It has version 2, so that a release that does not know of it refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import Any

import pyarrow as pa

from indextables.errors import CorruptFileError, ProtocolError, SchemaMismatchError
from indextables.mapping import DocMapping
from indextables.types import schema_from_json, schema_to_json

FORMAT = "indextables-split"
VERSION = 1
WITHOUT_ROWS = 2
"""The version of splits whose rows are elsewhere."""
KINDS = frozenset(("text", "term", "paths", "i64", "f64", "ip", "hash", "none"))
MOST_ROWS = (1 << 32) - 1
NO_INFO = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    SchemaMismatchError,
)


@dataclass(frozen=True, slots=True)
class IndexField:
    """How one column is searched.

    ``kind``: ``text`` (tokens), ``term`` (whole values), ``paths`` (JSON tokens), ``i64``, ``f64``
    (numbers), ``ip`` (columnar addresses), ``hash`` (a table of value hashes, to be verified) or
    ``none``. Numbers of few values are ``keyed`` (terms, as exact strings are), other integers may
    be ``hashed`` (a table of value hashes); bounds of zones narrow ranges of all the others.
    ``name`` is the field's name inside the index. ``complete`` is false where some value could not
    be indexed (longer than a term may be), so that only a scan is exact. ``escaped`` exact values
    are spelt with escapes in the index; ``codes`` says that there is a table of codes; ``gaps``
    that tokens were dropped inside JSON texts; ``terms`` counts distinct terms; ``grams`` says that
    the index also holds the pieces of its texts (``expr/grams.py``).
    """

    column: str
    kind: str
    name: str = ""
    tokenizer: str = ""
    token_length: int = 0
    record: str = "basic"
    complete: bool = True
    keyed: bool = False
    hashed: bool = False
    escaped: bool = False
    codes: bool = False
    gaps: bool = False
    terms: int = 0
    grams: bool = False

    @property
    def gram_name(self) -> str:
        """The field of the index that holds the pieces of its texts."""
        return f"{self.name}g"


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of an index file that is fetched and checked alone."""

    start: int
    end: int
    crc: int


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One index file: its member, its size, the tail every opener reads, and field slices.

    Of the file of postings, ``tokens`` says how many a field has; older writers did not.
    """

    member: str
    size: int
    tail: Slice
    slices: Mapping[str, Slice]
    tokens: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SplitInfo:
    """The contents of ``split.json``."""

    schema: pa.Schema
    num_rows: int
    mapping: DocMapping
    checksums: Mapping[str, int]
    fields: Mapping[str, IndexField]
    null_counts: Mapping[str, int]
    nan_counts: Mapping[str, int] = field(default_factory=dict)
    integers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    index_files: Mapping[str, IndexFile] = field(default_factory=dict)
    index_meta: str = ""
    xref: Mapping[str, Any] = field(default_factory=dict)
    has_rows: bool = True

    def field(self, column: str) -> IndexField | None:
        """How a column is searched, found without case."""
        found = self.fields.get(column)
        if found is not None:
            return found
        lowered = column.lower()
        return next((f for n, f in self.fields.items() if n.lower() == lowered), None)

    def to_json(self) -> bytes:
        body = {
            "format": FORMAT,
            "version": VERSION if self.has_rows else WITHOUT_ROWS,
            "num_rows": self.num_rows,
            "schema": json.loads(schema_to_json(self.schema)),
            "mapping": json.loads(self.mapping.to_json()),
            "checksums": dict(self.checksums),
            "null_counts": dict(self.null_counts),
            "nan_counts": dict(self.nan_counts),
            "integers": {c: list(bounds) for c, bounds in self.integers.items()},
            "xref": dict(self.xref),
            "index": {
                "meta": self.index_meta,
                "fields": [_sparse(f) for f in self.fields.values()],
                "files": {name: _file(f) for name, f in self.index_files.items()},
            },
        }
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, raw: bytes, path: str) -> SplitInfo:
        try:
            body = json.loads(raw)
            _refuse_unknown(body, path)
            return cls._from_body(body)
        except NO_INFO as error:
            raise CorruptFileError(f"split.json does not parse ({error})", path=path) from error

    @classmethod
    def _from_body(cls, body: dict[str, Any]) -> SplitInfo:
        index = body["index"]
        return cls(
            schema=_schema(json.dumps(body["schema"])),
            num_rows=_count(body["num_rows"]),
            mapping=_mapping(json.dumps(body["mapping"])),
            checksums=dict(body["checksums"]),
            fields={f["column"]: IndexField(**f) for f in index["fields"]},
            null_counts=body["null_counts"],
            nan_counts=body["nan_counts"],
            integers={c: (low, high) for c, (low, high) in body["integers"].items()},
            index_files={name: _index_file(f) for name, f in index["files"].items()},
            index_meta=index["meta"],
            xref=body["xref"],
            has_rows=body["version"] != WITHOUT_ROWS,
        )


def _refuse_unknown(body: dict[str, Any], path: str) -> None:
    """Refuse what a newer writer made: damage is one thing, a format not understood another."""
    found = f"format {body['format']} version {body['version']}"
    if body["format"] == FORMAT and body["version"] <= WITHOUT_ROWS:
        found = _unknown_index(body["index"]["fields"])
    if found:
        raise ProtocolError(
            f"the split has {found}, which this release does not know",
            path=path,
            hint="Upgrade indextables to read it (pip install -U indextables)",
        )


def _unknown_index(entries: list[dict[str, Any]]) -> str:
    known = {f.name for f in fields(IndexField)}
    for entry in entries:
        if entry["kind"] not in KINDS:
            return f"an index of kind '{entry['kind']}' of column '{entry['column']}'"
        if more := sorted(entry.keys() - known):
            return f"an index of column '{entry['column']}' with {', '.join(more)}"
    return ""


@lru_cache(64)
def _schema(text: str) -> pa.Schema:
    """The splits of a table share their schema, and most of them their mapping."""
    return schema_from_json(text)


@lru_cache(64)
def _mapping(text: str) -> DocMapping:
    return DocMapping.from_json(text)


def _sparse(item: IndexField) -> dict[str, Any]:
    """Only what differs from the defaults."""
    default = IndexField("", "")
    body = asdict(item)
    return {k: v for k, v in body.items() if k in ("column", "kind") or v != getattr(default, k)}


def _file(item: IndexFile) -> dict[str, Any]:
    body = asdict(item)
    return body if item.tokens else {k: v for k, v in body.items() if k != "tokens"}


def _count(value: Any) -> int:
    """A number of rows: row numbers have 32 bits."""
    if type(value) is not int or not 0 < value <= MOST_ROWS:
        raise ValueError(f"{value!r} is no number of rows")
    return value


def _index_file(body: dict[str, Any]) -> IndexFile:
    slices = {name: Slice(**s) for name, s in body["slices"].items()}
    tokens = {name: int(count) for name, count in body.get("tokens", {}).items()}
    made = IndexFile(body["member"], body["size"], Slice(**body["tail"]), slices, tokens)
    for part in (made.tail, *slices.values()):
        if not 0 <= part.start <= part.end <= made.size:
            raise ValueError(f"a slice lies outside the index file '{made.member}'")
    return made
