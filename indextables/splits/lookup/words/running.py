"""Answering asks from the lists of words, without opening tantivy.

All terms of an ask are looked up together. Lists are sorted row numbers; conjunctions start with
the shortest, disjunctions of many rows go through a mask. What needs more than lists (ranking,
edits, addresses, patterns that were not resolved before) is for tantivy: ``can_answer`` says so
before anything is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.native._postings import rows_in_both, rows_in_order
from indextables.splits.lookup.asks import (
    Addresses,
    AnyWord,
    Ask,
    AtLeast,
    Boosted,
    Helped,
    InOrder,
    InZones,
    Joined,
    Leaf,
    Near,
    Others,
    Pattern,
    Word,
    leaves_of,
)
from indextables.splits.lookup.words.reading import Placed, Rows, Wanted, Words
from indextables.splits.lookup.zones import rows_of

SPARSE = 32
"""Fewer rows than one in so many are sorted, more are marked."""


class WordSearch:
    """Answers asks about one split."""

    def __init__(self, words: Words, num_rows: int) -> None:
        self._words = words
        self._num_rows = num_rows

    def has(self, name: str) -> bool:
        """Are the words of a field here?"""
        return name in self._words.fields

    def terms(self, name: str, prefix: str) -> pa.Array:
        """The terms of a field that start with a prefix."""
        return self._words.terms(name, prefix)

    def can_answer(self, ask: Ask) -> bool:
        """Do lists of words answer it?"""
        match ask:
            case Joined() | AtLeast():
                return all(map(self.can_answer, ask.parts))
            case Others():
                return self.can_answer(ask.part)
            case Helped() | Boosted():
                return False
            case Word() | AnyWord() | InOrder() | Pattern() | Near() | Addresses() | InZones():
                return self._has_lists(ask)
            case _:
                assert_never(ask)

    def _has_lists(self, leaf: Leaf) -> bool:
        match leaf:
            case Word():
                return not leaf.scored and self.has(leaf.name)
            case AnyWord():
                return self.has(leaf.name)
            case InOrder():
                known = not leaf.scored and self.has(leaf.name)
                return known and self._words.fields[leaf.name].has_positions
            case InZones():
                return True
            case Pattern() | Near() | Addresses():
                return False
            case _:
                assert_never(leaf)

    def count(self, ask: Ask) -> int:
        """How many rows an ask has; that of a single word is known without its rows."""
        if isinstance(ask, Others):
            return self._num_rows - self.count(ask.part)
        if isinstance(ask, Word):
            return sum(self._words.frequencies([_wanted(ask.name, ask.text)]).values())
        if isinstance(ask, AnyWord) and len(ask.texts) == 1:
            return self.count(Word(ask.name, ask.texts[0]))
        return len(self.rows(ask))

    def rows(self, ask: Ask) -> Rows:
        """The rows of an ask, ascending."""
        wanted: list[Wanted] = []
        placed: list[Wanted] = []
        for leaf in leaves_of(ask):
            match leaf:
                case Word():
                    wanted.append(_wanted(leaf.name, leaf.text))
                case AnyWord():
                    wanted += [_wanted(leaf.name, text) for text in leaf.texts]
                case InOrder():
                    placed += [_wanted(leaf.name, text) for text in leaf.texts]
                case InZones():
                    pass
                case Pattern() | Near() | Addresses():
                    raise AssertionError(f"lists of words cannot answer {leaf}")
                case _:
                    assert_never(leaf)
        lists = self._words.lists(wanted) if wanted else {}
        places = self._words.places(placed) if placed else {}
        return _Answer(lists, places, self._num_rows).rows(ask)


def _wanted(name: str, text: str) -> Wanted:
    return name, text.encode()


class _Answer:
    """One ask, with the lists of all its terms at hand."""

    def __init__(
        self, lists: dict[Wanted, Rows], places: dict[Wanted, Placed], num_rows: int
    ) -> None:
        self._lists = lists
        self._places = places
        self._num_rows = num_rows

    def rows(self, ask: Ask) -> Rows:
        match ask:
            case Word():
                return self._list(ask.name, ask.text)
            case AnyWord():
                return self._any([self._list(ask.name, text) for text in ask.texts])
            case InOrder():
                return self._in_order(ask)
            case InZones():
                return rows_of(np.array(ask.zones, np.int64), self._num_rows)
            case Joined():
                parts = ask.parts
                return self._all(parts) if ask.occur == "Must" else self._any(self._each(parts))
            case AtLeast():
                return self._at_least(self._each(ask.parts), ask.least)
            case Others():
                return np.flatnonzero(~self._mask([self.rows(ask.part)])).astype(np.uint32)
            case Pattern() | Near() | Addresses() | Helped() | Boosted():
                raise AssertionError(f"lists of words cannot answer {ask}")
            case _:
                assert_never(ask)

    def _list(self, name: str, text: str) -> Rows:
        return self._lists.get(_wanted(name, text), np.empty(0, np.uint32))

    def _in_order(self, ask: InOrder) -> Rows:
        found = [self._places.get(_wanted(ask.name, text)) for text in ask.texts]
        terms = [(p.rows, p.starts, p.positions) for p in found if p is not None]
        return rows_in_order(terms) if len(terms) == len(found) else np.empty(0, np.uint32)

    def _each(self, parts: Sequence[Ask]) -> list[Rows]:
        return [self.rows(part) for part in parts]

    def _all(self, parts: Sequence[Ask]) -> Rows:
        """Shortest list first; what must not be there is taken away last."""
        lists = sorted((self.rows(p) for p in parts if not isinstance(p, Others)), key=len)
        without = [self.rows(p.part) for p in parts if isinstance(p, Others)]
        if not lists:
            return np.flatnonzero(~self._mask(without)).astype(np.uint32)
        found = lists[0]
        for other in lists[1:]:
            found = rows_in_both(found, other)
        for other in without:
            found = found[~np.isin(found, other, assume_unique=True)] if len(found) else found
        return found

    def _any(self, lists: Sequence[Rows]) -> Rows:
        if len(lists) == 1:
            return lists[0]
        if SPARSE * sum(map(len, lists)) < self._num_rows:
            return np.unique(np.concatenate([np.empty(0, np.uint32), *lists]))
        return np.flatnonzero(self._mask(lists)).astype(np.uint32)

    def _mask(self, lists: Sequence[Rows]) -> NDArray[np.bool_]:
        mask = np.zeros(self._num_rows, np.bool_)
        for rows in lists:
            mask[rows] = True
        return mask

    def _at_least(self, lists: Sequence[Rows], least: int) -> Rows:
        often = np.zeros(self._num_rows, np.int32)
        for rows in lists:
            often[rows] += 1
        return np.flatnonzero(often >= least).astype(np.uint32)
