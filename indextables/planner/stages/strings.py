"""Strings as ranges between cuts.

Strings are compared by their UTF-8 bytes, here and in every statistic. A *cut* is a place between
strings: just before a string, just after it, or at the end of everything that starts with it.
Every string test then is a set of ranges between two cuts:

    s = v        [before v, after v)            s >= v      [before v, ...)
    s < v        [..., before v)                s LIKE 'p%' [before p, end of p)

There is no "next string" to compute, so no code point to increment, no surrogate to skip and no
last character that cannot rise. A stored maximum that was cut is the prefix of the real one: its
upper end is the end of the prefix.

The literal text before the first wildcard of a LIKE is such a prefix; what follows is not ordered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from indextables.native._textbounds import prefix_key

BEFORE, AFTER, END = 0, 1, 2
Cut: TypeAlias = tuple[bytes, int]
KEY_MIN, KEY_MAX = -(1 << 63), (1 << 63) - 1


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
