"""What a leaf asks of a column, as ranges of values.

``=`` is a point, ``<`` a half-line, ``IN`` several points, ``LIKE 'p%'`` the strings that start
with ``p``. The opposite of each (``!=``, ``NOT IN``, ``NOT LIKE``) is the same ranges *avoided*.
With a split's values in an interval, two relations decide:

                 the interval misses the ranges      the interval lies in the ranges
    asked for    CANNOT_MATCH                        MUST_MATCH
    avoided      MUST_MATCH                          CANNOT_MATCH

For a LIKE with more behind its prefix the ranges cover too much: lying inside proves nothing.
NULL is in no range and in no complement; ``NOT IN`` with a NULL in its list was made a constant
when it was bound. NaN is the largest value and a point like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np

from indextables.expr.predicate import Compare, InSet, Like, Match, Op, StringMatch, ValueTest
from indextables.native import _prune
from indextables.planner.stages.stats import (
    BoundsColumn,
    TextBounds,
    kind_of,
    literal_key,
)
from indextables.planner.stages.strings import (
    AFTER,
    BEFORE,
    KEY_MAX,
    KEY_MIN,
    Cut,
    cut,
    cut_key,
    point_ranges,
    prefix_range,
)
from indextables.planner.stages.verdict import (
    CANNOT_MATCH,
    MAY_MATCH,
    MUST_MATCH,
    Int64s,
    Selection,
    Verdicts,
)

_OPPOSITE = {CANNOT_MATCH: MUST_MATCH, MAY_MATCH: MAY_MATCH, MUST_MATCH: CANNOT_MATCH}


@dataclass(frozen=True)
class Ranges:
    """Ranges of keys, or for strings of ``cuts``: low, high, low, high, ..."""

    starts: Int64s
    ends: Int64s
    cuts: tuple[Cut | None, ...] = ()
    on_disjoint: int = CANNOT_MATCH
    on_inside: int = MUST_MATCH

    def avoided(self) -> Ranges:
        """The same ranges for the opposite test; what proved nothing still proves nothing."""
        disjoint, inside = _OPPOSITE[self.on_disjoint], _OPPOSITE[self.on_inside]
        return replace(self, on_disjoint=disjoint, on_inside=inside)

    def covering(self) -> Ranges:
        """The same ranges when they hold more than the test asks for."""
        return replace(self, on_inside=MAY_MATCH)

    def verdicts(self, column: BoundsColumn, selection: Selection | None) -> Verdicts:
        """One verdict for each selected interval of the column."""
        if isinstance(column, TextBounds):
            return _prune.relate_texts(
                column.lows,
                column.highs,
                column.facts,
                selection,
                self._text(column.common),
                self.on_disjoint,
                self.on_inside,
            )
        exact = column.exact
        starts, ends = (self.starts, self.ends) if exact else self._hull(column.common)
        return _prune.relate_ranges(
            column.lows,
            column.highs,
            column.facts,
            selection,
            starts,
            ends,
            self.on_disjoint if exact or self.on_disjoint == CANNOT_MATCH else MAY_MATCH,
            self.on_inside if exact else MAY_MATCH,
        )

    def _text(self, common: bytes) -> _prune.TextRanges:
        """The ranges with keys for columns whose strings share a beginning."""
        placed = self.__dict__.setdefault("placed", {})
        if common not in placed:
            ends = [None if c is None else (*c, cut_key(c, common)) for c in self.cuts]
            placed[common] = _prune.TextRanges(ends)
        found: _prune.TextRanges = placed[common]
        return found

    def _hull(self, common: bytes) -> tuple[Int64s, Int64s]:
        """Ranges of keys that hold the ranges of strings."""
        lows = [KEY_MIN if c is None else cut_key(c, common) for c in self.cuts[::2]]
        highs = [KEY_MAX if c is None else cut_key(c, common) for c in self.cuts[1::2]]
        return _merged(np.array(lows, np.int64), np.array(highs, np.int64))


def ranges_of(leaf: ValueTest) -> Ranges | None:
    """The leaf's ranges, or ``None`` when no order of values helps with it."""
    kind = kind_of(leaf.column.dtype)
    if kind is None:
        return None
    try:
        found = _asked_for(leaf, kind)
    except UnicodeEncodeError:
        return None
    return found.avoided() if found is not None and is_avoided(leaf) else found


def is_avoided(leaf: ValueTest) -> bool:
    """Does the leaf ask for what lies outside its ranges?"""
    return leaf.op is Op.NE if isinstance(leaf, Compare) else leaf.negated


def _asked_for(leaf: ValueTest, kind: str) -> Ranges | None:
    match leaf:
        case Compare():
            if kind == "text":
                return _between(_text_half_line(leaf.op, str(leaf.value)))
            return _key_half_line(leaf.op, literal_key(kind, leaf.value))
        case InSet():
            if kind == "text":
                return _between(point_ranges(sorted(leaf.values, key=str.encode)))
            return _point_keys(kind, leaf.values)
        case StringMatch():
            sought = leaf.text if leaf.kind is Match.PREFIX and kind == "text" else ""
            return _between(prefix_range(sought)) if sought else None
        case Like():
            sought = leaf.pattern.prefix if kind == "text" else ""
            return _between(prefix_range(sought)).covering() if sought else None
        case _:
            assert_never(leaf)


# -- keys ---------------------------------------------------------------------------------------


def _key_half_line(op: Op, key: int | None) -> Ranges | None:
    if key is None:
        return None
    low, high = _half_line(op, key)
    if low is None or high is None:
        return Ranges(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return Ranges(np.array([low], np.int64), np.array([high], np.int64))


def _half_line(op: Op, key: int) -> tuple[int | None, int | None]:
    """Both ends inclusive; ``None`` when nothing lies there."""
    if op in (Op.EQ, Op.NE):
        return key, key
    if op is Op.LT:
        return KEY_MIN, key - 1 if key > KEY_MIN else None
    if op is Op.LE:
        return KEY_MIN, key
    if op is Op.GT:
        return key + 1 if key < KEY_MAX else None, KEY_MAX
    return key, KEY_MAX


def _point_keys(kind: str, values: tuple[Any, ...]) -> Ranges | None:
    points = _keys_of(kind, values)
    if points is None:
        return None
    gaps = np.flatnonzero(points[1:] != points[:-1] + 1)
    starts = points[np.concatenate(([0], gaps + 1))]
    ends = points[np.concatenate((gaps, [len(points) - 1]))]
    return Ranges(starts, ends)


def _keys_of(kind: str, values: tuple[Any, ...]) -> Int64s | None:
    """The distinct keys of literals, ascending; ``None`` if one of them has none."""
    if kind in ("double", "single"):
        return np.unique(np.array([literal_key(kind, v) for v in values], np.int64))
    if literal_key(kind, min(values)) is None or literal_key(kind, max(values)) is None:
        return None
    return np.unique(np.array(values, np.int64))


# -- strings ------------------------------------------------------------------------------------


_NO_KEYS = np.zeros(0, np.int64)


def _between(ends: list[Cut | None]) -> Ranges:
    return Ranges(_NO_KEYS, _NO_KEYS, tuple(ends))


def _merged(starts: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
    """Join neighbours that share a key: strings that differ behind their eighth byte."""
    if len(starts) < 2:
        return starts, ends
    gaps = np.flatnonzero(starts[1:] > ends[:-1])
    first = np.concatenate(([0], gaps + 1))
    last = np.concatenate((gaps, [len(ends) - 1]))
    return starts[first], ends[last]


def _text_half_line(op: Op, value: str) -> list[Cut | None]:
    if op is Op.LT:
        return [None, cut(value, BEFORE)]
    if op is Op.LE:
        return [None, cut(value, AFTER)]
    if op is Op.GT:
        return [cut(value, AFTER), None]
    if op is Op.GE:
        return [cut(value, BEFORE), None]
    return [cut(value, BEFORE), cut(value, AFTER)]
