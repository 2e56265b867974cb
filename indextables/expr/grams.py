"""Substrings: what a pattern says about the three-letter pieces of a text that fits it.

A column with a substring index has, for each row, the distinct runs of three characters of its
text, letters folded one by one (``folded``). A text that holds ``disk full`` holds ``dis``,
``isk``, ``sk `` and so on; the rows that hold all of them are few, and are then read and tested.
So a pattern only has to name literal texts that every match holds:

* LIKE and ``contains``: the literal segments of at least three characters;
* RLIKE: literals that no match can do without, an alternation as "any of";
* ILIKE and tests of ``lower(column)`` or ``upper(column)``: the same, if the literals are ASCII;
  folding other letters by one's own rules could lose a match.

A pattern that names none is not helped, and neither is a negated one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from indextables.expr.like import LikePattern
from indextables.expr.predicate import Like, StringMatch, Undecided

SIZE = 3
GRAMS = "grams3"
"""The name under which an index knows the analyzer."""


@dataclass(frozen=True, slots=True)
class Holds:
    """Texts that hold all of these literals, each of at least three characters."""

    literals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Texts that fit every part."""

    parts: tuple[Needed, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Texts that fit one of the parts."""

    parts: tuple[Needed, ...]


Needed: TypeAlias = Holds | AllOf | AnyOf


def folded(texts: Any) -> Any:
    """Texts as their pieces are taken: every character lower-cased alone."""
    return pc.utf8_lower(texts)


def grams(literal: str) -> list[str]:
    """The distinct pieces of a literal, in order."""
    text = folded(pa.scalar(literal)).as_py()
    return list(dict.fromkeys(text[i : i + SIZE] for i in range(len(text) - SIZE + 1)))


def needed(leaf: StringMatch | Like | Undecided) -> tuple[str, Needed] | None:
    """(column, what its text has to hold), or ``None`` where the test says nothing of use."""
    if leaf.negated:
        return None
    if isinstance(leaf, Undecided):
        return _of_expression(leaf.expression)
    if len(leaf.column.path) > 1:
        return None
    return _named(leaf.column.root, _of_like(leaf.pattern))


def _of_expression(node: Any) -> tuple[str, Needed] | None:
    """What a computed test needs: LIKE, RLIKE and the like over a column or its lower case."""
    if getattr(node, "op", None) not in ("like", "rlike", "contains", "startswith", "endswith"):
        return None
    child, ascii_only = node.args[0], False
    while child.op in ("lower", "upper"):
        child, ascii_only = child.args[0], True
    column = child.column if child.op == "column" else None
    if column is None or len(column.path) > 1 or not pa.types.is_string(column.dtype):
        return None
    if node.op == "rlike":
        found = _of_regex(node.value)
    elif node.op == "like":
        found = _of_like(node.value)
    else:
        found = _of_literals([node.value])
    if found is None or (ascii_only and not all(map(str.isascii, _literals(found)))):
        return None
    return _named(column.root, found)


def _named(column: str, found: Needed | None) -> tuple[str, Needed] | None:
    return None if found is None else (column, found)


def _literals(node: Needed) -> Iterator[str]:
    if isinstance(node, Holds):
        yield from node.literals
    else:
        for part in node.parts:
            yield from _literals(part)


def _of_like(pattern: LikePattern) -> Needed | None:
    return _of_literals([part for part in pattern.segments if isinstance(part, str)])


def _of_literals(texts: Iterable[str]) -> Needed | None:
    long = tuple(dict.fromkeys(text for text in texts if len(text) >= SIZE))
    return Holds(long) if long else None


# -- regular expressions --------------------------------------------------------------------------


def _of_regex(pattern: str) -> Needed | None:
    """Literals that no match of a Java regular expression can do without.

    It is read by Python's parser, which means the same for all that the package takes of Java's
    dialect (``javaregex``); what Python cannot read says nothing.
    """
    import re._parser as parser  # type: ignore[import-not-found]

    try:
        parsed = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return None
    if parsed.state.flags & re.IGNORECASE:
        found = _sequence(list(parsed), parser)
        return found if found is None or all(map(str.isascii, _literals(found))) else None
    return _sequence(list(parsed), parser)


def _sequence(items: list[Any], parser: Any) -> Needed | None:
    parts: list[Needed] = []
    runs: list[str] = [""]
    for op, value in _flat(items, parser):
        if op is parser.LITERAL:
            runs[-1] += chr(value)
            continue
        runs.append("")
        more = _required(op, value, parser)
        if more is not None:
            parts.append(more)
    literals = _of_literals(runs)
    parts += [literals] if literals is not None else []
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _flat(items: list[Any], parser: Any) -> Iterator[tuple[Any, Any]]:
    """The items, groups without a meaning of their own opened."""
    for op, value in items:
        if op is parser.SUBPATTERN and not value[1] and not value[2]:
            yield from _flat(list(value[3]), parser)
        else:
            yield op, value


def _required(op: Any, value: Any, parser: Any) -> Needed | None:
    if op in (parser.MAX_REPEAT, parser.MIN_REPEAT) and value[0] >= 1:
        return _sequence(list(value[2]), parser)
    if op is parser.BRANCH:
        parts = [_sequence(list(branch), parser) for branch in value[1]]
        found = tuple(part for part in parts if part is not None)
        return AnyOf(found) if len(found) == len(parts) else None
    return None
