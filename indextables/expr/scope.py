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

    def field_of(self, path: tuple[str, ...]) -> tuple[tuple[str, ...], pa.Field]:
        """The path in the table's own spelling, and the field it ends at."""
        places = self._by_name.get(self._key(path[0]), ())
        columns = [self.schema.field(place) for place in places]
        found = self._only(columns, path[:1], self.schema.names)
        spelled = [found.name]
        for depth in range(1, len(path)):
            inner = self._children(found, path[: depth + 1])
            same = [f for f in inner if f.name == path[depth]]
            same = same or [f for f in inner if self._key(f.name) == self._key(path[depth])]
            names = [".".join([*spelled, f.name]) for f in inner]
            found = self._only(same, path[: depth + 1], names)
            spelled.append(found.name)
        return tuple(spelled), found

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
        """The resolved column."""
        spelled, found = self.field_of(path)
        partition = len(spelled) == 1 and spelled[0].lower() in self.partition_columns
        return Column(spelled, found.type, partition)

    def is_collated(self, column: Column) -> bool:
        """Whether the column's text compares by anything but its bytes."""
        if not pa.types.is_string(column.dtype):
            return False
        _, found = self.field_of(column.path)
        root = self.schema.field(column.root)
        return any(has_collation(f) for f in (found, root))


def has_collation(column: pa.Field) -> bool:
    """Whether text in the column compares by anything but its bytes."""
    text = (column.metadata or {}).get(b"spark")
    named = json.loads(text).get("__COLLATIONS", {}) if text else {}
    return any(not str(name).upper().endswith("UTF8_BINARY") for name in named.values())
