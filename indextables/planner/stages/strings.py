"""Strings as ranges between cuts.

Strings are compared by their UTF-8 bytes, here and in every statistic. A *cut* is a place between
strings: just before a string, just after it, or at the end of everything that starts with it.
Every string test then is a set of ranges between two cuts:

    s = v        [before v, after v)            s >= v      [before v, ...)
    s < v        [..., before v)                s LIKE 'p%' [before p, end of p)

There is no "next string" to compute, so no code point to increment, no surrogate to skip and no
last character that cannot rise. A stored maximum that was cut is the prefix of the real one: its
upper end is the end of the prefix.

LIKE: a literal run before the first wildcard is a prefix; a pattern that is nothing else but a
prefix and ``%`` is exactly that prefix; one without wildcards is an equality.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from indextables.errors import PlanningError
from indextables.expr.predicate import Match
from indextables.native._textbounds import prefix_key

BEFORE, AFTER, END = 0, 1, 2
Cut: TypeAlias = tuple[bytes, int]
KEY_MIN, KEY_MAX = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Pattern:
    """A LIKE pattern taken apart.

    ``prefix`` is its literal beginning. ``rest`` is empty (an equality), ``%`` (exactly a prefix)
    or something that bounds cannot decide.
    """

    prefix: str
    rest: str


def cut(text: str, kind: int) -> Cut:
    """The place before, after or at the end of a string."""
    return text.encode(), kind


def cut_key(place: Cut, common: bytes = b"") -> int:
    """The key of a cut among strings that all start with ``common``."""
    data, kind = place
    if data.startswith(common):
        return prefix_key(data[len(common) :], kind == END)
    if common.startswith(data):
        return KEY_MAX if kind == END else KEY_MIN
    return KEY_MIN if data < common else KEY_MAX


def prefix_range(prefix: str) -> list[Cut | None]:
    """All strings that start with ``prefix``, which is not empty."""
    return [cut(prefix, BEFORE), cut(prefix, END)]


def point_ranges(values: Iterable[str]) -> list[Cut | None]:
    """Exactly these strings, which are ascending in byte order."""
    return [end for v in values for end in (cut(v, BEFORE), cut(v, AFTER))]


def parse_like(pattern: str, escape: str) -> Pattern:
    """Split a pattern at its first wildcard, honouring escapes as Spark does."""
    literal: list[str] = []
    i = 0
    while i < len(pattern):
        char = pattern[i]
        if escape and char == escape:
            i += 1
            if i == len(pattern):
                raise PlanningError(
                    f"LIKE pattern '{pattern}' ends with its escape character",
                    hint="Double the character, or choose another with ESCAPE",
                )
            literal.append(pattern[i])
        elif char in "%_":
            rest = pattern[i:]
            return Pattern("".join(literal), "%" if set(rest) == {"%"} else rest)
        else:
            literal.append(char)
        i += 1
    return Pattern("".join(literal), "")


def matches_everything(kind: Match, pattern: str, escape: str) -> bool:
    """Does every string match, so that the test only asks for a value?"""
    if kind is Match.LIKE:
        return parse_like(pattern, escape) == Pattern("", "%")
    return pattern == ""


def like_regex(pattern: str, escape: str) -> re.Pattern[str]:
    """The pattern as a regular expression over whole strings.

    What stands between two ``%`` has a fixed length, so its first place is the best: an atomic
    group keeps it and nothing is tried twice.
    """
    parts = [""]
    i = 0
    while i < len(pattern):
        char = pattern[i]
        if escape and char == escape and i + 1 < len(pattern):
            i += 1
            parts[-1] += re.escape(pattern[i])
        elif char == "%":
            parts.append("")
        else:
            parts[-1] += "." if char == "_" else re.escape(char)
        i += 1
    first, *middle, last = [*parts, ""] if len(parts) == 1 else parts
    sought = "".join(f"(?>.*?{part})" for part in middle if part)
    return re.compile(f"{first}{sought}{'.*' if len(parts) > 1 else ''}{last}", re.DOTALL)


def matches(kind: Match, pattern: str, escape: str, value: str) -> bool:
    """Does one known string match? (Partition values are known strings.)"""
    if kind is Match.PREFIX:
        return value.startswith(pattern)
    if kind is Match.SUFFIX:
        return value.endswith(pattern)
    if kind is Match.CONTAINS:
        return pattern in value
    return like_regex(pattern, escape).fullmatch(value) is not None
