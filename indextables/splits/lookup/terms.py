"""Leaves of the index: one question about one field, as a node.

Everything here is about a field that the index holds in full (``complete``), or says ``UNKNOWN``.
Patterns become regular expressions over the term dictionary, built from escaped literals only.
Values outside what a field can hold match nothing; values a filter of rows has to look at again
are inexact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.expr.analyzers import MAX_TERM_BYTES
from indextables.expr.ast import has_phrase
from indextables.expr.grams import needed
from indextables.expr.ipaddr import format_address
from indextables.expr.predicate import (
    ColumnTest,
    Like,
    Predicate,
    StringMatch,
    TextMatch,
    Undecided,
    leaves,
)
from indextables.splits.format.fields import column_number
from indextables.splits.format.info import IndexField, SplitInfo
from indextables.splits.lookup import keywords, pathtokens
from indextables.splits.lookup.asks import (
    Addresses,
    AnyWord,
    InOrder,
    Near,
    Pattern,
    Word,
    to_query,
)
from indextables.splits.lookup.nodes import (
    UNKNOWN,
    All,
    Hash,
    Index,
    Node,
    Nothing,
    Spans,
    complement,
    intersect,
)
from indextables.splits.lookup.zones import INT64, ZONE_ROWS, Zones, double_key, double_keys
from indextables.splits.read.workspace import LazyIndex, Part, parts_of

ANY_CHARACTER = "(?s:.)"
ANY_TEXT = ANY_CHARACTER + "*"
MANY_VALUES = 4096
_META = re.compile(r"([\\.+*?()|\[\]{}^$])")


def escape_regex(text: str) -> str:
    return _META.sub(r"\\\1", text)


def literal_start(pattern: str) -> str:
    """The plain text that a pattern built from escaped pieces starts with."""
    found = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif _META.match(pattern[at]):
            break
        found.append(pattern[at])
        at += 1
    return "".join(found)


Dictionary = Callable[[str, str], pa.Array]
"""``dictionary(field name, prefix)`` lists the terms of a field that start so."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of a column in an index field: after a prefix, perhaps with escapes."""

    name: str
    prefix: str
    escapes: bool = False
    is_escaped: bool = False

    def spell(self, word: str) -> str:
        """The term of a word."""
        return self.prefix + (keywords.escape_value(word) if self.escapes else word)

    def word(self, term: str) -> str:
        """The word of a term."""
        bare = term[len(self.prefix) :]
        return keywords.unescape_value(bare) if self.is_escaped else bare


def likely_parts(info: SplitInfo, predicate: Predicate, *, scored: bool = False) -> set[Part]:
    """The slices that a predicate reads if it opens the index; any others come when needed.

    Texts have a field each; whole values, nulls and zones of numbers share one.
    """
    found: set[Part] = set()
    for leaf in leaves(predicate):
        if isinstance(leaf, TextMatch):
            phrase = has_phrase(leaf.query)
            for column in leaf.fields:
                field = info.field(column)
                if field is not None and field.kind == "text":
                    found |= parts_of(field.name, phrase=phrase, scored=scored)
        elif isinstance(leaf, StringMatch | Like | Undecided) and (sought := needed(leaf)):
            field = info.field(sought[0])
            if field is not None and field.grams:
                found |= parts_of(field.gram_name)
        elif isinstance(leaf, ColumnTest):
            found |= parts_of(keywords.KEYS)
    return found


class Terms:
    """Builds leaves for one open index."""

    def __init__(
        self,
        info: SplitInfo,
        index: LazyIndex,
        dictionary: Dictionary,
        zones: Callable[[], Mapping[int, Zones]],
    ) -> None:
        """``zones`` gives the bounds of numbers, by column number."""
        self._info = info
        self._index = index
        self._dictionary = dictionary
        self._all_zones = zones

    def field(self, column: str) -> IndexField | None:
        """How a column is searched; ``None`` if the split does not have it."""
        return self._info.field(column)

    def dtype(self, field: IndexField) -> pa.DataType:
        return self._info.schema.field(field.column).type

    # -- inverted fields --------------------------------------------------------------------------

    def vocabulary(self, field: IndexField, path: str = "") -> Vocabulary:
        """Where the words of a column (or of a JSON path) are in the index."""
        if field.keyed:
            return Vocabulary(keywords.KEYS, keywords.value_prefix(field))
        if field.kind == "term":
            return Vocabulary(keywords.KEYS, keywords.value_prefix(field), True, field.escaped)
        if field.kind == "paths":
            return Vocabulary(field.name, pathtokens.term_prefix(path))
        return Vocabulary(field.name, "")

    def term(self, where: Vocabulary, word: str, *, scored: bool = False) -> Node:
        text = where.spell(word)
        if len(text.encode()) > MAX_TERM_BYTES:
            return Nothing()
        return Index(Word(where.name, text, scored))

    def any_term(self, where: Vocabulary, words: Iterable[str]) -> Node:
        texts = {where.spell(word) for word in words}
        short = sorted(t for t in texts if len(t.encode()) <= MAX_TERM_BYTES)
        if not short:
            return Nothing()
        return Index(AnyWord(where.name, tuple(short)))

    def regex(self, where: Vocabulary, pattern: str) -> Node:
        """Words that match a pattern built here; one too large for the automaton is unknown."""
        ask = Pattern(where.name, escape_regex(where.prefix) + pattern)
        try:
            to_query(ask, self._index.schema)
        except ValueError:
            return UNKNOWN
        return Index(ask)

    def phrase(self, where: Vocabulary, words: Sequence[str], *, scored: bool) -> Node:
        return Index(InOrder(where.name, tuple(where.spell(word) for word in words), scored))

    def fuzzy(self, where: Vocabulary, word: str, distance: int, prefix: bool) -> Node:
        return Index(Near(where.name, word, distance, prefix))

    def pieces(self, field: IndexField, pieces: Sequence[str]) -> Node:
        """Rows whose text has all of these three-letter pieces."""
        where = Vocabulary(field.gram_name, "")
        return intersect(self.term(where, piece) for piece in pieces)

    def marker(self, field: IndexField, path: str) -> Node:
        """Rows with a scalar at exactly this path."""
        return self.term(Vocabulary(field.name, ""), pathtokens.marker(path))

    # -- nulls ------------------------------------------------------------------------------------

    def is_null(self, field: IndexField) -> Node:
        nulls = self._info.null_counts.get(field.column)
        if nulls == 0:
            return Nothing()
        if nulls == self._info.num_rows:
            return All()
        return self.term(Vocabulary(keywords.KEYS, ""), keywords.null_mark(field))

    def is_not_null(self, field: IndexField) -> Node:
        return complement(self.is_null(field))

    def other_than(self, node: Node, field: IndexField) -> Node:
        """Rows with a value in the column that are not in the node."""
        return intersect([complement(node), self.is_not_null(field)])

    # -- numbers ----------------------------------------------------------------------------------

    def integers(
        self, field: IndexField, low: int | None, high: int | None, *, closed: tuple[bool, bool]
    ) -> Node:
        """A range of 64-bit integers; ``closed`` says whether each end belongs to it."""
        first = INT64[0] if low is None else low + (not closed[0])
        last = INT64[1] if high is None else high - (not closed[1])
        first, last = max(first, INT64[0]), min(last, INT64[1])
        if first > last:
            return Nothing()
        if field.keyed and field.terms <= MANY_VALUES:
            return self._values_between(field, first, last)
        return self._spans(self._zones(field).between(first, last))

    def doubles(self, field: IndexField, low: Any, high: Any, *, closed: tuple[bool, bool]) -> Node:
        """A range of doubles; NaN is above infinity."""
        if low is None and high is None:
            return self.is_not_null(field)
        first = INT64[0] if low is None else double_key(low) + (not closed[0])
        last = INT64[1] if high is None else double_key(high) - (not closed[1])
        return self._spans(self._zones(field).between(first, last))

    def any_integer(self, field: IndexField, values: Sequence[int]) -> Node:
        """One of several integers."""
        held = [v for v in values if INT64[0] <= v <= INT64[1]]
        if not held:
            return Nothing()
        if field.keyed:
            return self._any_number(field, map(str, held))
        if field.hashed:
            return Hash(field.column, tuple(map(str, held)))
        return self._spans(self._zones(field).holding(np.array(held, np.int64)))

    def any_double(self, field: IndexField, values: Sequence[float]) -> Node:
        return self._spans(self._zones(field).holding(double_keys(np.array(values, np.float64))))

    def _values_between(self, field: IndexField, first: int, last: int) -> Node:
        """Values of a keyed column, read off the dictionary."""
        where = self.vocabulary(field)
        listed = pc.utf8_slice_codeunits(
            self._dictionary(where.name, where.prefix), len(where.prefix)
        )
        numbers = listed.cast(pa.int64()).to_numpy(zero_copy_only=False)
        inside = (numbers >= first) & (numbers <= last)
        if inside.all():
            return self.is_not_null(field)
        return self._any_number(field, listed.filter(pa.array(inside)).to_pylist())

    def _any_number(self, field: IndexField, numbers: Iterable[str]) -> Node:
        prefix = keywords.value_prefix(field)
        terms = tuple(prefix + number for number in numbers)
        return Index(AnyWord(keywords.KEYS, terms, flat=True)) if terms else Nothing()

    def _zones(self, field: IndexField) -> Zones:
        return self._all_zones()[column_number(field)]

    def _spans(self, zones: NDArray[np.int64]) -> Node:
        total = -(-self._info.num_rows // ZONE_ROWS)
        if len(zones) == 0:
            return Nothing()
        if len(zones) == total:
            return UNKNOWN
        return Spans(tuple(zones.tolist()))

    # -- addresses --------------------------------------------------------------------------------

    def addresses(self, field: IndexField, low: int, high: int) -> Node:
        if low > high:
            return Nothing()
        return Index(Addresses(field.name, _as_ipv6(low), _as_ipv6(high)))


def _as_ipv6(number: int) -> str:
    text = format_address(number)
    return text if ":" in text else f"::ffff:{text}"
