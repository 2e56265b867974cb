"""How each column is indexed: the document mapping of a split.

A string column is *exact* by default (one term, the whole value, tokenizer ``raw``); listed as
``text`` it is cut into tokens. "Tokenised" means ``type == "text"`` with a tokenizer other than
``raw``. Structs, arrays and maps are indexed as JSON; ``ip`` columns as 128-bit addresses.
Partition columns are never in a mapping: their values live in the log.

The JSON form is the one found in real tables: an array of field objects, or an object with
``field_mappings``; both are read, the array is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from indextables.errors import ConfigError, CorruptFileError, UnknownColumnError

STEMMERS = {
    "ar_stem": "Arabic", "da_stem": "Danish", "de_stem": "German", "el_stem": "Greek",
    "en_stem": "English", "es_stem": "Spanish", "fi_stem": "Finnish", "fr_stem": "French",
    "hu_stem": "Hungarian", "it_stem": "Italian", "nl_stem": "Dutch", "no_stem": "Norwegian",
    "pt_stem": "Portuguese", "ro_stem": "Romanian", "ru_stem": "Russian", "sv_stem": "Swedish",
    "ta_stem": "Tamil", "tr_stem": "Turkish",
}  # fmt: skip
"""Analyzers that cut words to their stems, and the language of each."""
FOLDING = "folding"
TOKENIZERS = ("default", "raw", "whitespace", FOLDING, *STEMMERS)
RECORDS = ("basic", "freq", "position")
DEFAULT_TOKEN_LENGTH = 255


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """How one column is indexed."""

    name: str
    type: str
    tokenizer: str | None = None
    indexed: bool = True
    fast: bool = True
    stored: bool = True
    record: str = "position"
    token_length: int = DEFAULT_TOKEN_LENGTH
    substring: bool = False
    """Is there an index of the parts of its words too?"""

    @property
    def is_tokenized(self) -> bool:
        return self.type == "text" and self.tokenizer != "raw"

    @property
    def is_exact_text(self) -> bool:
        return self.type == "text" and self.tokenizer == "raw"

    def to_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "fast": self.fast,
            "indexed": self.indexed,
            "name": self.name,
            "stored": self.stored,
            "type": self.type,
        }
        if self.tokenizer is not None:
            body["tokenizer"] = self.tokenizer
        if self.type == "text" and self.record != "position":
            body["record"] = self.record
        if self.is_tokenized and self.token_length != DEFAULT_TOKEN_LENGTH:
            body["tokenLength"] = self.token_length
        if self.substring:
            body["substring"] = True
        return dict(sorted(body.items()))

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> FieldMapping:
        kind = {"object": "json", "ip_addr": "ip", "date": "datetime"}.get(
            body["type"], body["type"]
        )
        tokenizer = body.get("tokenizer")
        if kind == "text" and tokenizer is None:
            tokenizer = "default"
        return cls(
            name=body["name"],
            type=kind,
            tokenizer=tokenizer,
            indexed=bool(body.get("indexed", True)),
            fast=bool(body.get("fast", False)),
            stored=bool(body.get("stored", True)),
            record=str(body.get("record", "position")),
            token_length=int(body.get("tokenLength", DEFAULT_TOKEN_LENGTH)),
            substring=bool(body.get("substring", False)),
        )


@dataclass(frozen=True, slots=True)
class IndexingOptions:
    """What the user said about indexing; names are matched without case."""

    text: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    ip: tuple[str, ...] = ()
    tokenizers: Mapping[str, str] = field(default_factory=dict)
    fast: tuple[str, ...] = ()
    nonfast: tuple[str, ...] = ()
    unindexed: tuple[str, ...] = ()
    records: Mapping[str, str] = field(default_factory=dict)
    token_lengths: Mapping[str, int] = field(default_factory=dict)
    substring: tuple[str, ...] = ()

    def named_columns(self) -> Iterator[str]:
        yield from (*self.text, *self.json, *self.ip, *self.fast, *self.nonfast, *self.unindexed)
        yield from (*self.tokenizers, *self.records, *self.token_lengths, *self.substring)


@dataclass(frozen=True)
class DocMapping:
    """All field mappings of a split or of a table, found by case-insensitive name."""

    fields: tuple[FieldMapping, ...]

    def __post_init__(self) -> None:
        by_name = {f.name.lower(): f for f in self.fields}
        object.__setattr__(self, "_by_name", by_name)

    def get(self, name: str) -> FieldMapping | None:
        by_name: dict[str, FieldMapping] = self.__dict__["_by_name"]
        return by_name.get(name.lower())

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.fields]

    def to_json(self) -> str:
        return json.dumps([f.to_dict() for f in self.fields], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> DocMapping:
        """Read either form; objects without fields (always-null structs) are dropped."""
        try:
            body = json.loads(text)
            if isinstance(body, dict):
                body = body.get("field_mappings") or body.get("fields") or []
            kept = [i for i in body if i.get("type") != "object" or i.get("field_mappings")]
            return cls(tuple(FieldMapping.from_dict(i) for i in kept))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CorruptFileError(
                f"a document mapping is malformed: {error}",
                hint="Run DOCTOR on the table, or restore an older version",
            ) from error

    @classmethod
    def for_schema(
        cls,
        schema: pa.Schema,
        partition_columns: Iterable[str] = (),
        options: IndexingOptions | None = None,
    ) -> DocMapping:
        """The mapping of new splits of this schema; unknown column names are an error."""
        opts = options or IndexingOptions()
        partitions = {p.lower() for p in partition_columns}
        columns = {n.lower(): n for n in schema.names}
        for name in opts.named_columns():
            if name.split(".")[0].lower() not in columns:
                raise UnknownColumnError.of(name, schema.names)
        return cls(tuple(_map_field(f, opts) for f in schema if f.name.lower() not in partitions))


def _map_field(column: pa.Field, opts: IndexingOptions) -> FieldMapping:
    name = column.name.lower()
    mapping = FieldMapping(name=column.name, type=_index_type(column.type))
    if mapping.type == "text":
        mapping = _map_string(mapping, opts)
    elif _listed(name, opts.text) or _listed(name, opts.ip):
        raise ConfigError(f"column '{column.name}' is not a string and cannot be text or ip")
    elif _listed(name, opts.substring):
        raise ConfigError(f"column '{column.name}' is not a string and has no substrings")
    elif _listed(name, opts.json) and mapping.type != "json":
        raise ConfigError(f"column '{column.name}' cannot be indexed as json")
    if _listed(name, opts.fast):
        mapping = replace(mapping, fast=True)
    if _listed(name, opts.nonfast):
        mapping = replace(mapping, fast=False)
    if _listed(name, opts.unindexed):
        mapping = replace(mapping, indexed=False)
    return mapping


def _map_string(mapping: FieldMapping, opts: IndexingOptions) -> FieldMapping:
    name = mapping.name.lower()
    asked = [k for k in ("text", "json", "ip") if _listed(name, getattr(opts, k))]
    if len(asked) > 1:
        raise ConfigError(f"column '{mapping.name}' is listed as {' and '.join(asked)}")
    if _listed(name, opts.substring) and asked not in ([], ["text"]):
        raise ConfigError(f"column '{mapping.name}' cannot be {asked[0]} and substring")
    if asked == ["ip"]:
        return replace(mapping, type="ip", tokenizer=None)
    if asked == ["json"]:
        return replace(mapping, type="json", tokenizer=None)
    tokenizer = _lookup(name, opts.tokenizers)
    if tokenizer is not None and tokenizer not in TOKENIZERS:
        raise ConfigError(
            f"unknown tokenizer '{tokenizer}' for column '{mapping.name}'",
            hint=f"Use one of {', '.join(TOKENIZERS)}",
        )
    tokenizer = tokenizer or ("default" if asked else "raw")
    record = _lookup(name, opts.records) or ("basic" if tokenizer == "raw" else "position")
    if record not in RECORDS:
        raise ConfigError(f"unknown record option '{record}' for column '{mapping.name}'")
    length = _lookup(name, opts.token_lengths) or DEFAULT_TOKEN_LENGTH
    return replace(
        mapping,
        substring=_listed(name, opts.substring),
        tokenizer=tokenizer,
        fast=tokenizer == "raw",
        record=record,
        token_length=int(length),
    )


def _index_type(dtype: pa.DataType) -> str:
    t = pa.types
    if t.is_string(dtype):
        return "text"
    if t.is_integer(dtype):
        return "i64"
    if t.is_floating(dtype):
        return "f64"
    if t.is_boolean(dtype):
        return "bool"
    if t.is_date(dtype) or t.is_timestamp(dtype):
        return "datetime"
    if t.is_decimal(dtype):
        return "decimal"
    if t.is_binary(dtype):
        return "bytes"
    if t.is_null(dtype):
        return "null"
    return "json"


def _listed(name: str, names: Iterable[str]) -> bool:
    return any(name == n.lower() for n in names)


def _lookup(name: str, table: Mapping[str, Any]) -> Any:
    return next((v for k, v in table.items() if k.lower() == name), None)
