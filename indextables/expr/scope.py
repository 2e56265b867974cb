"""What names mean in a table: columns, struct fields, collations, the session's zone.

Names are matched without regard to case unless the session says otherwise; two matches are an
error, none is an error that suggests near names. Fields of one struct may differ by case alone, and
the exact one counts. A path goes on into structs; into arrays and maps it has no single value, so
the filter stays undecided.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

import pyarrow as pa

from indextables.errors import AmbiguousColumnError, UnknownColumnError
from indextables.expr.predicate import Column
from indextables.mapping import DocMapping
from indextables.naming import stored_name

_KEPT: dict[tuple[int, bool], tuple[pa.Schema, dict[str, list[int]]]] = {}
_MOST_KEPT = 64


def _places(schema: pa.Schema, case_sensitive: bool) -> dict[str, list[int]]:
    """Where each name stands in a schema; kept for schemas seen lately."""
    key = (id(schema), case_sensitive)
    kept = _KEPT.get(key)
    if kept is not None and kept[0] is schema:
        return kept[1]
    places: dict[str, list[int]] = {}
    for place, name in enumerate(schema.names):
        places.setdefault(name if case_sensitive else name.lower(), []).append(place)
    if len(_KEPT) >= _MOST_KEPT:
        _KEPT.clear()
    _KEPT[key] = (schema, places)
    return places


class NotAColumnError(Exception):
    """The path leads through an array or a map; never leaves this package."""


@dataclass(frozen=True)
class Scope:
    """A schema to resolve names against, and the session's settings."""

    schema: pa.Schema
    partition_columns: frozenset[str] = frozenset()
    mapping: DocMapping | None = None
    tz: tzinfo = UTC
    zone_name: str = "UTC"
    case_sensitive: bool = False
    max_unqualified_fields: int = 10
    _by_name: dict[str, list[int]] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", _places(self.schema, self.case_sensitive))

    def _key(self, name: str) -> str:
        return name if self.case_sensitive else name.lower()

    def fields_of(self, path: tuple[str, ...]) -> list[pa.Field]:
        """The fields that a path goes through."""
        places = self._by_name.get(self._key(path[0]), ())
        columns = [self.schema.field(place) for place in places]
        fields = [self._only(columns, path[:1], self.schema.names)]
        for depth in range(1, len(path)):
            inner = self._children(fields[-1], path[: depth + 1])
            same = [f for f in inner if f.name == path[depth]]
            same = same or [f for f in inner if self._key(f.name) == self._key(path[depth])]
            names = [".".join([*(g.name for g in fields), f.name]) for f in inner]
            fields.append(self._only(same, path[: depth + 1], names))
        return fields

    def _children(self, parent: pa.Field, path: tuple[str, ...]) -> list[pa.Field]:
        if pa.types.is_struct(parent.type):
            return list(parent.type.fields)
        if pa.types.is_nested(parent.type):
            raise NotAColumnError(".".join(path))
        raise UnknownColumnError(
            f"unknown column '{'.'.join(path)}'",
            hint=f"'{parent.name}' has no fields inside; its type is {parent.type}",
        )

    @staticmethod
    def _only(found: list[pa.Field], path: tuple[str, ...], known: Iterable[str]) -> pa.Field:
        name = ".".join(path)
        if not found:
            raise UnknownColumnError.of(name, known)
        if len(found) > 1:
            raise AmbiguousColumnError(
                f"column '{name}' is ambiguous: {', '.join(f.name for f in found)}",
                hint="Set spark.sql.caseSensitive and use the exact name",
            )
        return found[0]

    def column(self, path: tuple[str, ...]) -> Column:
        """The resolved column, under its name in files."""
        fields = self.fields_of(path)
        spelled = tuple(f.name for f in fields)
        partition = len(spelled) == 1 and spelled[0].lower() in self.partition_columns
        stored = tuple(map(stored_name, fields))
        return Column(stored, fields[-1].type, partition, spelled)

    def is_collated(self, column: Column) -> bool:
        """Whether the column's text compares by anything but its bytes."""
        if not pa.types.is_string(column.dtype):
            return False
        fields = self.fields_of(column.called)
        return any(has_collation(f) for f in (fields[-1], fields[0]))


def has_collation(column: pa.Field) -> bool:
    """Whether text in the column compares by anything but its bytes."""
    text = (column.metadata or {}).get(b"spark")
    named = json.loads(text).get("__COLLATIONS", {}) if text else {}
    return any(not str(name).upper().endswith("UTF8_BINARY") for name in named.values())
