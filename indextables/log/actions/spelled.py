"""What every action has in common: a table of JSON fields, and a place for what is not in it.

A newer writer may add fields to an action and kinds of actions to the log. Where they change what
a table means, its protocol says so and we refuse it; all others are harmless to a reader but must
not be lost by a writer. So unknown fields are kept as JSON text beside the known
ones and written back with them, and lines of unknown kinds are kept as they stood. Text is cheap:
a parsed object of a few bytes takes hundreds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from indextables.log.actions.fields import Field, FieldTable, encode_fields

_TABLES: dict[type[Any], FieldTable] = {}
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Spelled:
    """What has a table of JSON fields; ``unknown`` are further fields, as one JSON object."""

    unknown: str | None = field(default=None, kw_only=True)

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    KEY: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """The body in the protocol's JSON names."""
        body = encode_fields(self.FIELDS, self)
        return body if self.unknown is None else {**json_object(self.unknown), **body}

    @classmethod
    def from_dict(cls, body: Any) -> Self:
        """The action a body spells; wrong types are ``CorruptFileError``."""
        return cls(**cls.decoded(body))

    @classmethod
    def decoded(cls, body: Any) -> dict[str, Any]:
        """The constructor arguments a body spells."""
        table = _TABLES.get(cls)
        if table is None:
            table = _TABLES[cls] = FieldTable(cls.KEY, cls.FIELDS, keep_unknown=True)
        return table.decode(body)

    def envelope(self) -> dict[str, Any]:
        """The whole line: the kind and the body."""
        return {self.KEY: self.to_dict()}

    def json_lines(self) -> Iterator[str]:
        """The lines of a log file that spell this action."""
        yield _ENCODER.encode(self.envelope())


def json_object(text: str) -> dict[str, Any]:
    """What the text spells; in a manifest of another writer it may be anything."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class UnknownActions:
    """Lines of unknown kinds, in order, one after another in one text."""

    text: str

    KEY: ClassVar[str] = "unknown"

    @classmethod
    def of(cls, lines: Iterable[Any]) -> UnknownActions:
        return cls("\n".join(_ENCODER.encode(line) for line in lines))

    def json_lines(self) -> Iterator[str]:
        start = 0
        while start < len(self.text):
            end = self.text.find("\n", start)
            end = len(self.text) if end < 0 else end
            yield self.text[start:end]
            start = end + 1

    def after(self, earlier: str) -> str:
        """The lines of ``earlier`` followed by these; of equal lines the last stays.

        It is unknown which line replaces which, but the same line twice says nothing new, and
        a writer that repeats itself in every version must not make the log grow without end.
        """
        if not earlier:
            return self.text
        lines = [*UnknownActions(earlier).json_lines(), *self.json_lines()]
        return "\n".join(reversed(dict.fromkeys(reversed(lines))))
