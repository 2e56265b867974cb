"""What an index is asked, before it is decided who answers.

An ask names terms of index fields and how they are combined. Two engines can answer it: ``words``
reads the lists of the terms straight from the split, which needs a few kilobytes and opens nothing;
tantivy can do everything, ranking included, but has to be opened first. ``to_query`` makes
tantivy's query, ``parts`` says which slices of its files that query reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never

from indextables.splits.lookup import keywords
from indextables.splits.read.workspace import FAST, Part, parts_of


@dataclass(frozen=True, slots=True)
class Word:
    """Rows with a term; ``scored`` keeps how often, to rank by it."""

    name: str
    text: str
    scored: bool = False


@dataclass(frozen=True, slots=True)
class AnyWord:
    """Rows with one of some terms; ``flat`` ones add nothing to a score."""

    name: str
    texts: tuple[str, ...]
    flat: bool = False


@dataclass(frozen=True, slots=True)
class InOrder:
    """Rows in which terms follow each other."""

    name: str
    texts: tuple[str, ...]
    scored: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """Rows with a term that a regular expression fits."""

    name: str
    regex: str


@dataclass(frozen=True, slots=True)
class Near:
    """Rows with a term a few edits away, or with one that starts so."""

    name: str
    text: str
    distance: int
    prefix: bool


@dataclass(frozen=True, slots=True)
class Addresses:
    """Rows with an address between two, both included."""

    name: str
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class InZones:
    """Rows of some zones."""

    zones: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Rows that all parts have (``Must``), or one of them (``Should``)."""

    occur: Literal["Must", "Should"]
    parts: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Rows that so many of the parts have."""

    parts: tuple[Ask, ...]
    least: int


@dataclass(frozen=True, slots=True)
class Others:
    """All rows that the part does not have."""

    part: Ask


@dataclass(frozen=True, slots=True)
class Helped:
    """The rows of ``base`` (``None``: all), ranked higher where the optional parts match."""

    base: Ask | None
    optional: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Boosted:
    """The same rows, ranked higher by a factor."""

    part: Ask
    factor: float


Leaf: TypeAlias = Word | AnyWord | InOrder | Pattern | Near | Addresses | InZones
Ask: TypeAlias = Leaf | Joined | AtLeast | Others | Helped | Boosted


def leaves_of(ask: Ask) -> Iterator[Leaf]:
    """The asks about single fields inside an ask."""
    match ask:
        case Joined() | AtLeast():
            for part in ask.parts:
                yield from leaves_of(part)
        case Others() | Boosted():
            yield from leaves_of(ask.part)
        case Helped():
            for part in (*ask.optional, *(() if ask.base is None else (ask.base,))):
                yield from leaves_of(part)
        case Word() | AnyWord() | InOrder() | Pattern() | Near() | Addresses() | InZones():
            yield ask
        case _:
            assert_never(ask)


def parts(ask: Ask) -> frozenset[Part]:
    """The slices of tantivy's files that the ask reads."""
    return frozenset().union(*map(_leaf_parts, leaves_of(ask)))


def _leaf_parts(leaf: Leaf) -> set[Part]:
    match leaf:
        case Word():
            return parts_of(leaf.name, scored=leaf.scored)
        case InOrder():
            return parts_of(leaf.name, phrase=True, scored=leaf.scored)
        case AnyWord() | Pattern() | Near():
            return parts_of(leaf.name)
        case InZones():
            return parts_of(keywords.KEYS)
        case Addresses():
            return {FAST}
        case _:
            assert_never(leaf)


def to_query(ask: Ask, schema: Any) -> Any:
    """The ask as a query of tantivy."""
    from tantivy import Occur, Query

    def made(part: Ask) -> Any:
        return to_query(part, schema)

    match ask:
        case Joined():
            how = getattr(Occur, ask.occur)
            return Query.boolean_query([(how, made(part)) for part in ask.parts])
        case AtLeast():
            clauses = [(Occur.Should, made(part)) for part in ask.parts]
            return Query.boolean_query(clauses, ask.least)
        case Others():
            # negations alone match nothing there
            clauses = [(Occur.Must, Query.all_query()), (Occur.MustNot, made(ask.part))]
            return Query.boolean_query(clauses)
        case Helped():
            base = Query.all_query() if ask.base is None else made(ask.base)
            optional = [(Occur.Should, made(part)) for part in ask.optional]
            return Query.boolean_query([(Occur.Must, base), *optional])
        case Boosted():
            return Query.boost_query(made(ask.part), ask.factor)
        case Word() | AnyWord() | InOrder() | Pattern() | Near() | Addresses() | InZones():
            return _leaf_query(ask, schema)
        case _:
            assert_never(ask)


def _leaf_query(leaf: Leaf, schema: Any) -> Any:
    from tantivy import FieldType, Query

    match leaf:
        case Word():
            option = "freq" if leaf.scored else "basic"
            return Query.term_query(schema, leaf.name, leaf.text, option)
        case AnyWord():
            query = Query.term_set_query(schema, leaf.name, list(leaf.texts))
            return Query.const_score_query(query, 0.0) if leaf.flat else query
        case InOrder():
            return Query.phrase_query(schema, leaf.name, list(leaf.texts), 0)
        case Pattern():
            return Query.regex_query(schema, leaf.name, leaf.regex)
        case Near():
            edits = (leaf.distance, True, leaf.prefix)
            return Query.fuzzy_term_query(schema, leaf.name, leaf.text, *edits)
        case Addresses():
            ends = (FieldType.IpAddr, leaf.low, leaf.high, True, True)
            return Query.range_query(schema, leaf.name, *ends)
        case InZones():
            marks = [keywords.zone_mark(zone) for zone in leaf.zones]
            query = Query.term_set_query(schema, keywords.KEYS, marks)
            return Query.const_score_query(query, 0.0)
        case _:
            assert_never(leaf)
