"""How one field of an action is written in JSON, and what it may hold.

Reading is lenient where the protocol is: a field that is absent or ``null`` takes its default,
an unknown field is kept as text (in actions) or ignored, statistics written as numbers become
text. Everything else is checked: a value of the wrong type is ``CorruptFileError`` that names the
field, what was expected and what was found. Writing leaves absent optionals out, except where the
protocol's own tables spell them as ``null``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from indextables.errors import CorruptFileError, is_text

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_INT64 = 1 << 63
_STRING = "a string of whole characters"

Decode = Callable[[Any, str], Any]
Encode = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute of an action: its JSON name, its codec, whether it must be there."""

    attr: str
    json: str
    decode: Decode
    encode: Encode | None = None
    required: bool = False
    write_null: bool = False


def wrong_type(where: str, expected: str, found: Any) -> NoReturn:
    """Refuse a value; long values are shown cut."""
    shown = json.dumps(found, default=str)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    raise CorruptFileError(f"{where}: expected {expected}, found {shown}")


def text(value: Any, where: str) -> str:
    """A string that can be written again; JSON can spell halves of surrogate pairs, UTF-8 not."""
    if not is_text(value):
        wrong_type(where, _STRING, value)
    return str(value)


def name(value: Any, where: str) -> str:
    """A string that must say something: a path, an id."""
    if not isinstance(value, str) or not value:
        wrong_type(where, "a non-empty string", value)
    return value


def integer(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT64 <= value < _INT64:
        wrong_type(where, "a 64-bit integer", value)
    return value


def natural(value: Any, where: str) -> int:
    """An integer that counts something."""
    if integer(value, where) < 0:
        wrong_type(where, "an integer that is not negative", value)
    return int(value)


def boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        wrong_type(where, "true or false", value)
    return value


def texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        wrong_type(where, "an array of strings", value)
    return tuple(value)


def text_set(value: Any, where: str) -> frozenset[str]:
    return frozenset(texts(value, where))


def sorted_texts(value: Any) -> list[str]:
    return sorted(value)


def text_map(value: Any, where: str) -> dict[str, str]:
    """A map of strings; entries that are ``null`` are absent."""
    if not isinstance(value, dict):
        wrong_type(where, "an object of strings", value)
    return {k: text(v, f"{where}.{k}") for k, v in value.items() if v is not None}


def scalar_map(value: Any, where: str) -> dict[str, str]:
    """A map of strings whose writer may have left numbers and booleans unquoted."""
    if not isinstance(value, dict):
        wrong_type(where, "an object of strings", value)
    return {k: _scalar_text(v, f"{where}.{k}") for k, v in value.items() if v is not None}


def bound_map(value: Any, where: str) -> dict[str, str]:
    """Statistics by column; a text cut through a surrogate pair is no bound."""
    if not isinstance(value, dict):
        wrong_type(where, "an object of strings", value)
    kept = {k: v for k, v in value.items() if is_text(k) and (is_text(v) or type(v) is not str)}
    return scalar_map(kept, where)


def loose_text(value: Any, where: str) -> str:
    """A string that older writers wrote as a number (time ranges)."""
    return _scalar_text(value, where)


def _scalar_text(value: Any, where: str) -> str:
    if is_text(value):
        return str(value)
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    wrong_type(where, _STRING, value)


def partition_map(value: Any, where: str) -> dict[str, str | None]:
    """Partition values: ``null`` and the Hive marker both mean NULL."""
    if not isinstance(value, dict):
        wrong_type(where, "an object of strings", value)
    return {
        k: None if v is None or v == NULL_PARTITION else _scalar_text(v, f"{where}.{k}")
        for k, v in value.items()
    }


def partition_texts(value: Mapping[str, str | None]) -> dict[str, str]:
    """Partition values as stored: NULL is the Hive marker."""
    return {k: NULL_PARTITION if v is None else v for k, v in value.items()}


def json_map(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        wrong_type(where, "an object", value)
    return value


class FieldTable:
    """The fields of one kind of object, by JSON name, ready for decoding."""

    def __init__(
        self, where: str, fields: tuple[Field, ...], *, keep_unknown: bool = False
    ) -> None:
        self._where = where
        self._keep_unknown = keep_unknown
        self._by_name = {f.json: (f.attr, f.decode, f"{where}.{f.json}") for f in fields}
        self._required = tuple((f.attr, f"{where}.{f.json}") for f in fields if f.required)

    def decode(self, body: Any) -> dict[str, Any]:
        """The constructor arguments that a JSON object spells."""
        if not isinstance(body, dict):
            wrong_type(self._where, "an object", body)
        values: dict[str, Any] = {}
        by_name = self._by_name
        for key, raw in body.items():
            known = by_name.get(key)
            if known is not None and raw is not None:
                attr, decode, full_name = known
                values[attr] = decode(raw, full_name)
        for attr, full_name in self._required:
            if attr not in values:
                raise CorruptFileError(f"{full_name} is missing")
        if self._keep_unknown and not body.keys() <= by_name.keys():
            others = {k: v for k, v in body.items() if k not in by_name and v is not None}
            values["unknown"] = json.dumps(others, ensure_ascii=False) if others else None
        return values


def decode_fields(fields: tuple[Field, ...], body: Any, where: str) -> dict[str, Any]:
    """The constructor arguments that a JSON object spells, for objects that come one by one."""
    return FieldTable(where, fields).decode(body)


def encode_fields(fields: tuple[Field, ...], action: Any) -> dict[str, Any]:
    """The JSON object of an action."""
    body: dict[str, Any] = {}
    for field in fields:
        value = getattr(action, field.attr)
        if value is not None:
            body[field.json] = field.encode(value) if field.encode else value
        elif field.write_null:
            body[field.json] = None
    return body
