"""The query AST: what an index is asked, as data.

Nodes carry typed values: ``str`` for text and ip fields, ``int``, ``float``, ``bool``, ``bytes``
for the others (timestamps as microseconds, dates as days, decimals as unscaled integers). A field
is a column name or a JSON path (``user.name``). ``Term`` asks for one exact term; ``FullText``
carries raw text that the field's analyzer still has to cut. A ``Bool`` without ``must`` needs at
least ``minimum_should_match`` of its ``should`` (1 if there are any); beside ``must`` the
``should`` clauses are optional unless the number says otherwise. A ``Bool`` with only ``must_not``
matches everything else.

``to_json``/``from_json`` are stable: unknown node kinds are an error, never a match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from indextables.errors import PlanningError

Value: TypeAlias = bool | int | float | str | bytes


@dataclass(frozen=True, slots=True)
class MatchAll:
    """Every row."""


@dataclass(frozen=True, slots=True)
class MatchNone:
    """No row."""


@dataclass(frozen=True, slots=True)
class Term:
    """Rows whose field holds exactly this term."""

    field: str
    value: Value


@dataclass(frozen=True, slots=True)
class TermSet:
    """Rows whose field holds any of these terms."""

    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class FullText:
    """Text to be cut by the field's analyzer; ``operator`` joins the tokens (``and``/``or``)."""

    field: str
    text: str
    operator: str = "and"


@dataclass(frozen=True, slots=True)
class Phrase:
    """Tokens next to each other, at most ``slop`` moves apart; the last may be a prefix."""

    field: str
    terms: tuple[str, ...]
    slop: int = 0
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """``None`` is an open end."""

    field: str
    lower: Value | None = None
    upper: Value | None = None
    include_lower: bool = True
    include_upper: bool = True


@dataclass(frozen=True, slots=True)
class Wildcard:
    """``*`` any run, ``?`` one character, backslash escapes; matched against whole terms."""

    field: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression over whole terms."""

    field: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Fuzzy:
    """Terms within an edit distance of 1 or 2; with ``prefix`` a beginning of a term.

    The first ``same`` characters of the value stand unchanged in the term.
    """

    field: str
    value: str
    distance: int = 1
    prefix: bool = False
    same: int = 0


@dataclass(frozen=True, slots=True)
class Exists:
    """Rows with a value in the field."""

    field: str


@dataclass(frozen=True, slots=True)
class Boost:
    """The same rows, scores multiplied."""

    query: Query
    factor: float


@dataclass(frozen=True, slots=True)
class Bool:
    """Boolean combination; see the module's rules for ``should``."""

    must: tuple[Query, ...] = ()
    should: tuple[Query, ...] = ()
    must_not: tuple[Query, ...] = ()
    minimum_should_match: int | None = None

    @property
    def required_should(self) -> int:
        """How many ``should`` clauses a row has to satisfy."""
        if self.minimum_should_match is not None:
            return self.minimum_should_match
        return 1 if self.should and not self.must else 0


OneTermQuery: TypeAlias = Term | TermSet | Range | Wildcard | Regex | Fuzzy
TermQuery: TypeAlias = OneTermQuery | Phrase
WordQuery: TypeAlias = TermQuery | FullText
FieldQuery: TypeAlias = WordQuery | Exists
Query: TypeAlias = FieldQuery | Bool | Boost | MatchAll | MatchNone


def asked(query: Query, *, wanted: bool = False) -> list[FieldQuery]:
    """The questions about single fields that a query is made of; ``wanted``: no ``must_not``."""
    if isinstance(query, Bool):
        parts = (*query.must, *query.should, *(() if wanted else query.must_not))
        return [one for part in parts for one in asked(part, wanted=wanted)]
    if isinstance(query, Boost):
        return asked(query.query, wanted=wanted)
    return [] if isinstance(query, MatchAll | MatchNone) else [query]


def query_fields(query: Query) -> list[str]:
    """The fields a query asks about, in order of first use."""
    return list(dict.fromkeys(one.field for one in asked(query)))


def has_phrase(query: Query) -> bool:
    """Does a query ask for tokens next to each other?"""
    return any(isinstance(one, Phrase) for one in asked(query))


_NAMES: dict[type, str] = {
    cls: re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower() for cls in get_args(Query)
}
_KINDS: dict[str, Any] = {name: cls for cls, name in _NAMES.items()}


def to_json(query: Query) -> dict[str, Any]:
    """The query as plain JSON values."""
    body: dict[str, Any] = {"type": _NAMES[type(query)]}
    for name in type(query).__dataclass_fields__:
        body[name] = _plain(getattr(query, name))
    return body


def _plain(value: Any) -> Any:
    if type(value) in _NAMES:
        return to_json(value)
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"float": repr(value)}
    return value


def from_json(body: dict[str, Any]) -> Query:
    """The query of ``to_json``'s output."""
    cls = _KINDS.get(body.get("type", ""))
    if cls is None:
        raise PlanningError(f"unknown query node {body.get('type')!r}")
    known = cls.__dataclass_fields__
    query: Query = cls(**{k: _rich(v) for k, v in body.items() if k in known})
    return query


def _rich(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_rich(v) for v in value)
    if isinstance(value, dict):
        if "bytes" in value:
            return bytes.fromhex(value["bytes"])
        if "float" in value:
            return float(value["float"])
        return from_json(value)
    return value
