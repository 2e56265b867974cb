"""What the user said about a write, from keywords and settings alike.

The indexing settings have two forms each, by column (``indexing.typemap.message = text``) and
by kind (``indexing.typemap.text = message,title``); both may be mixed. Keywords win.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.errors import ConfigError
from indextables.mapping import (
    DEFAULT_TOKEN_LENGTH,
    RECORDS,
    TOKENIZERS,
    DocMapping,
    IndexingOptions,
)

_KINDS = ("string", "text", "json", "ip", "substring")
_LENGTHS = {"tantivy_max": 65530, "default": 255, "legacy": 40, "min": 1}


def indexing_options(
    config: Config,
    *,
    text: Iterable[str] = (),
    json: Iterable[str] = (),
    ip: Iterable[str] = (),
    tokenizers: Mapping[str, str] | None = None,
    fast: Iterable[str] = (),
    substring: Iterable[str] = (),
) -> IndexingOptions:
    """The indexing options of one write."""
    kinds, parts = _without_substring(config.family("indexing.typemap."))
    for kind, names in (("text", text), ("json", json), ("ip", ip)):
        kinds.update(dict.fromkeys(_names(names), kind))
    for column, kind in kinds.items():
        if kind not in _KINDS:
            raise ConfigError(
                f"indexing.typemap.{column} = {kind!r} is not one of {', '.join(_KINDS)}"
            )
    return IndexingOptions(
        text=_of_kind(kinds, "text"),
        json=_of_kind(kinds, "json"),
        ip=_of_kind(kinds, "ip"),
        tokenizers={
            **_by_column(config.family("indexing.tokenizer."), TOKENIZERS),
            **(tokenizers or {}),
        },
        fast=(*config["indexing.fastfields"], *_names(fast)),
        nonfast=config["indexing.nonfastfields"],
        unindexed=config["indexing.storeonlyfields"],
        records=_records(config, kinds),
        token_lengths=_token_lengths(config, kinds),
        substring=tuple(dict.fromkeys((*parts, *_names(substring)))),
    )


def _without_substring(family: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Column to kind, and the columns with a substring index: it stands beside a kind or alone.

    ``typemap.m = text,substring`` is both, ``typemap.m = substring`` an exact string with it.
    """
    listed = {k: v for k, v in family.items() if k.lower() == "substring"}
    parts = [column for value in listed.values() for column in _split(value)]
    plain: dict[str, Any] = {}
    for key, value in family.items():
        words = [word.lower() for word in _split(value)]
        if key in listed:
            continue
        if key.lower() not in _KINDS and "substring" in words:
            parts.append(key)
            words = [word for word in words if word != "substring"]
            value = ",".join(words) or "string"
        plain[key] = value
    return _by_column(plain, _KINDS), parts


def _names(given: Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _by_column(family: Mapping[str, Any], kinds: tuple[str, ...]) -> dict[str, str]:
    """Column to kind, from either form."""
    found: dict[str, str] = {}
    for key, value in family.items():
        if key.lower() in kinds:
            found.update(dict.fromkeys(_split(value), key.lower()))
        else:
            found[key] = str(value).strip().lower()
    return found


def _split(value: Any) -> list[str]:
    return [part.strip() for part in str(value).split(",") if part.strip()]


def _of_kind(kinds: Mapping[str, str], kind: str) -> tuple[str, ...]:
    return tuple(column for column, k in kinds.items() if k == kind)


def _records(config: Config, kinds: Mapping[str, str]) -> dict[str, str]:
    records = _by_column(config.family("indexing.indexrecordoption."), RECORDS)
    if config.is_set("indexing.text.indexRecordOption"):
        default = config["indexing.text.indexRecordOption"]
        records = {**dict.fromkeys(_of_kind(kinds, "text"), default), **records}
    return records


def _token_lengths(config: Config, kinds: Mapping[str, str]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    if config.is_set("indexing.text.maxTokenLength"):
        default = token_length(config["indexing.text.maxTokenLength"])
        lengths = dict.fromkeys(_of_kind(kinds, "text"), default)
    for key, value in config.family("indexing.tokenlength.").items():
        if key.isdigit() or key.lower() in _LENGTHS:
            lengths.update(dict.fromkeys(_split(value), token_length(key)))
        else:
            lengths[key] = token_length(value)
    return lengths


def token_length(value: Any) -> int:
    """Bytes of a token limit: a number or one of its names."""
    text = str(value).strip().lower()
    length = _LENGTHS.get(text) or (int(text) if text.isdigit() else 0)
    if not 1 <= length <= 65530:
        raise ConfigError(
            f"token length {value!r} is not a number from 1 to 65530",
            hint=f"Names: {', '.join(_LENGTHS)}",
        )
    return length


def settings_of(
    mapping: DocMapping, schema: pa.Schema, partitions: Iterable[str]
) -> dict[str, str] | None:
    """The fewest settings that make new splits of this schema indexed as the mapping says.

    ``None`` where none do: a mapping may come from elsewhere.
    """
    plain = DocMapping.for_schema(schema, partitions)
    found: dict[str, list[str]] = {}
    single: dict[str, str] = {}
    for have in mapping.fields:
        usual = plain.get(have.name)
        if usual is None or have == usual:
            continue
        if have.type in ("json", "ip") and usual.type == "text":
            found.setdefault(f"indexing.typemap.{have.type}", []).append(have.name)
            continue
        if have.is_tokenized:
            found.setdefault("indexing.typemap.text", []).append(have.name)
            if have.tokenizer != "default":
                single[f"indexing.tokenizer.{have.name}"] = str(have.tokenizer)
            if have.record != "position":
                single[f"indexing.indexrecordoption.{have.name}"] = have.record
            if have.token_length != DEFAULT_TOKEN_LENGTH:
                single[f"indexing.tokenlength.{have.name}"] = str(have.token_length)
        if have.fast != (usual.fast and not have.is_tokenized):
            kind = "fastfields" if have.fast else "nonfastfields"
            found.setdefault(f"indexing.{kind}", []).append(have.name)
        if not have.indexed:
            found.setdefault("indexing.storeonlyfields", []).append(have.name)
    settings = {**{k: ",".join(v) for k, v in found.items()}, **single}
    made = DocMapping.for_schema(schema, partitions, indexing_options(Config(settings)))
    same = all(field == mapping.get(field.name) for field in made.fields)
    return settings if same else None
