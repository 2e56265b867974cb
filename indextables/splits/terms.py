"""Leaves of the index: one question about one field, as a node.

Everything here is about a field that the index holds in full (``complete``), or says ``UNKNOWN``.
Patterns become regular expressions over the term dictionary, built from escaped literals only.
Values outside what a field can hold match nothing; values a filter of rows has to look at again
are inexact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.expr.analyzers import MAX_TERM_BYTES
from indextables.expr.ipaddr import format_address
from indextables.splits import keywords, pathtokens
from indextables.splits.info import IndexField, SplitInfo
from indextables.splits.nodes import (
    UNKNOWN,
    All,
    Index,
    Node,
    Nothing,
    complement,
    intersect,
    unite,
)
from indextables.splits.workspace import FAST, parts_of

ANY_CHARACTER = "(?s:.)"
ANY_TEXT = ANY_CHARACTER + "*"
MANY_RANGES = 16
_META = re.compile(r"([\\.+*?()|\[\]{}^$])")
_INT64 = (-(2**63), 2**63 - 1)


def escape_regex(text: str) -> str:
    return _META.sub(r"\\\1", text)


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


class Terms:
    """Builds leaves for one open index."""

    def __init__(self, info: SplitInfo, schema: Any) -> None:
        from tantivy import FieldType, Query

        self._info = info
        self._schema = schema
        self._query = Query
        self._types = FieldType

    def field(self, column: str) -> IndexField | None:
        """How a column is searched; ``None`` if the split does not have it."""
        return self._info.field(column)

    def dtype(self, field: IndexField) -> pa.DataType:
        return self._info.schema.field(field.column).type

    # -- inverted fields --------------------------------------------------------------------------

    def vocabulary(self, field: IndexField, path: str = "") -> Vocabulary:
        """Where the words of a column (or of a JSON path) are in the index."""
        if field.kind == "term":
            return Vocabulary(keywords.KEYS, keywords.value_prefix(field), True, field.escaped)
        if field.kind == "paths":
            return Vocabulary(field.name, pathtokens.term_prefix(path))
        return Vocabulary(field.name, "")

    def term(self, where: Vocabulary, word: str, *, scored: bool = False) -> Node:
        text = where.spell(word)
        if len(text.encode()) > MAX_TERM_BYTES:
            return Nothing()
        option = "freq" if scored else "basic"
        query = self._query.term_query(self._schema, where.name, text, option)
        return Index(query, frozenset(parts_of(where.name, scored=scored)))

    def any_term(self, where: Vocabulary, words: Iterable[str]) -> Node:
        texts = {where.spell(word) for word in words}
        short = sorted(t for t in texts if len(t.encode()) <= MAX_TERM_BYTES)
        if not short:
            return Nothing()
        query = self._query.term_set_query(self._schema, where.name, short)
        return Index(query, frozenset(parts_of(where.name)))

    def regex(self, where: Vocabulary, pattern: str) -> Node:
        """Words that match a pattern built here; one too large for the automaton is unknown."""
        try:
            whole = escape_regex(where.prefix) + pattern
            query = self._query.regex_query(self._schema, where.name, whole)
        except ValueError:
            return UNKNOWN
        return Index(query, frozenset(parts_of(where.name)))

    def phrase(self, where: Vocabulary, words: Sequence[str], *, scored: bool) -> Node:
        texts = [where.spell(word) for word in words]
        query = self._query.phrase_query(self._schema, where.name, texts, 0)
        return Index(query, frozenset(parts_of(where.name, phrase=True, scored=scored)))

    def fuzzy(self, where: Vocabulary, word: str, distance: int, prefix: bool) -> Node:
        query = self._query.fuzzy_term_query(self._schema, where.name, word, distance, True, prefix)
        return Index(query, frozenset(parts_of(where.name)))

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

    # -- columnar fields --------------------------------------------------------------------------

    def integers(
        self, field: IndexField, low: int | None, high: int | None, *, closed: tuple[bool, bool]
    ) -> Node:
        """A range of 64-bit integers; ``closed`` says whether each end belongs to it."""
        first = _INT64[0] if low is None else low + (not closed[0])
        last = _INT64[1] if high is None else high - (not closed[1])
        first, last = max(first, _INT64[0]), min(last, _INT64[1])
        if first > last:
            return Nothing()
        return self._range(field, self._types.Integer, first, last)

    def doubles(self, field: IndexField, low: Any, high: Any, *, closed: tuple[bool, bool]) -> Node:
        """A range of doubles; NaN is above infinity, as in the index."""
        low, high = (None if v is None else one_zero_one_nan(v) for v in (low, high))
        if low is None and high is None:
            return self.is_not_null(field)
        include = (closed[0] or low is None, closed[1] or high is None)
        query = self._query.range_query(
            self._schema, field.name, self._types.Float, low, high, *include
        )
        return Index(query, frozenset([FAST]))

    def addresses(self, field: IndexField, low: int, high: int) -> Node:
        if low > high:
            return Nothing()
        return self._range(field, self._types.IpAddr, _as_ipv6(low), _as_ipv6(high))

    def _range(self, field: IndexField, kind: Any, low: Any, high: Any) -> Node:
        query = self._query.range_query(self._schema, field.name, kind, low, high, True, True)
        return Index(query, frozenset([FAST]))

    def any_integer(self, field: IndexField, values: Sequence[int]) -> Node:
        """One of several integers; many of them are narrowed to their range and verified."""
        if len(values) > MANY_RANGES:
            node = self.integers(field, min(values), max(values), closed=(True, True))
            return _verified(node)
        return unite(self.integers(field, v, v, closed=(True, True)) for v in values)

    def any_double(self, field: IndexField, values: Sequence[float]) -> Node:
        if len(values) > MANY_RANGES:
            return UNKNOWN
        return unite(self.doubles(field, v, v, closed=(True, True)) for v in values)


def one_zero_one_nan(value: float) -> float:
    """The double as the index holds it."""
    return float(value) + 0.0 if value == value else float("nan")


def _verified(node: Node) -> Node:
    return Index(node.query, node.needs, exact=False) if isinstance(node, Index) else node


def _as_ipv6(number: int) -> str:
    text = format_address(number)
    return text if ":" in text else f"::ffff:{text}"
