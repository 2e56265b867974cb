"""The query AST as nodes: text questions about one split.

Each AST node gives rows that contain all its matches; exactness follows ``nodes``. What tantivy
cannot say exactly (phrases without positions or with moves, ranges of text, ranges inside JSON,
patterns over columns that are not in the index) is narrowed as far as possible and left to
``expr.textmatch`` over the rows. A field the split does not have has no matches.

With ``scored`` the query keeps what only ranks: optional clauses, boosts, frequencies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import PlanningError
from indextables.expr import ast, jsonpaths
from indextables.expr.analyzers import analyze
from indextables.expr.edits import within_edits
from indextables.expr.ipaddr import address_range, addresses_between
from indextables.expr.keys import canonical_text
from indextables.expr.like import LikePattern
from indextables.splits.format.info import IndexField
from indextables.splits.lookup import pathtokens
from indextables.splits.lookup.asks import AtLeast, Boosted, Helped
from indextables.splits.lookup.nodes import (
    UNKNOWN,
    All,
    Hash,
    Index,
    Node,
    Nothing,
    complement,
    inexact,
    intersect,
    unite,
)
from indextables.splits.lookup.terms import (
    ANY_CHARACTER,
    ANY_TEXT,
    Terms,
    Vocabulary,
    escape_regex,
    literal_start,
)

MANY_EXPANSIONS = 256
MANY_TERMS = 50_000


class QueryCompiler:
    """Translates queries for one open index."""

    def __init__(
        self,
        terms: Terms,
        dictionary: Callable[[str, str], pa.Array],
        lists: Callable[[str], bool] = lambda name: False,
        *,
        scored: bool = False,
    ) -> None:
        """``dictionary(field name, prefix)`` lists the terms of a field that start so.

        ``lists(field name)`` says whether that is cheaper than a pattern run by the index.
        """
        self._terms = terms
        self._dictionary = dictionary
        self._lists = lists
        self._scored = scored

    def compile(self, query: ast.Query) -> Node:
        if isinstance(query, ast.MatchAll):
            return All()
        if isinstance(query, ast.MatchNone):
            return Nothing()
        if isinstance(query, ast.Bool):
            return self._bool(query)
        return self._boost(query) if isinstance(query, ast.Boost) else self._asked(query)

    def _asked(self, query: ast.FieldQuery) -> Node:
        column, path = jsonpaths.split_field(query.field)
        field = self._terms.field(query.field) or self._terms.field(column)
        if field is None:
            return Nothing()
        if field.kind == "none":
            return UNKNOWN
        if field.kind == "paths":
            return self._paths(query, field, path)
        return self._plain(query, field)

    # -- combinations -----------------------------------------------------------------------------

    def _bool(self, query: ast.Bool) -> Node:
        must = [self.compile(q) for q in query.must]
        must_not = [complement(self.compile(q)) for q in query.must_not]
        should = [self.compile(q) for q in query.should]
        required = query.required_should
        if required > len(should):
            return Nothing()
        parts = must + must_not
        if required == 1:
            parts.append(unite(should))
        elif required == len(should):
            parts += should
        elif required:
            parts.append(self._at_least(should, required))
        node = intersect(parts)
        if self._scored and required == 0 and should and isinstance(node, Index | All):
            return self._with_optional(node, should)
        return node

    def _at_least(self, should: list[Node], required: int) -> Node:
        certain = sum(isinstance(n, All) for n in should)
        found = [n for n in should if isinstance(n, Index)]
        exact = all(n.exact for n in should)
        if certain + len(found) + sum(isinstance(n, Nothing) for n in should) != len(should):
            return UNKNOWN
        if certain >= required:
            return All(exact)
        if certain + len(found) < required:
            return Nothing()
        return Index(AtLeast(tuple(n.ask for n in found), required - certain), exact)

    def _with_optional(self, node: Index | All, should: list[Node]) -> Node:
        """The same rows, ranked higher where optional clauses match."""
        extra = tuple(n.ask for n in should if isinstance(n, Index))
        return Index(Helped(node.ask if isinstance(node, Index) else None, extra), node.exact)

    def _boost(self, query: ast.Boost) -> Node:
        node = self.compile(query.query)
        if self._scored and isinstance(node, Index):
            return Index(Boosted(node.ask, query.factor), node.exact)
        return node

    # -- plain columns ----------------------------------------------------------------------------

    def _plain(self, query: ast.FieldQuery, field: IndexField) -> Node:
        if isinstance(query, ast.Exists):
            return self._terms.is_not_null(field)
        if field.kind in ("text", "term"):
            return self._text(query, field)
        if field.kind == "hash":
            return self._hash(query, field)
        match query:
            case ast.Term():
                return self._value(field, query.value)
            case ast.TermSet():
                return unite(self._value(field, v) for v in query.values)
            case ast.Range():
                return self._range(query, field)
            case ast.FullText() | ast.Phrase() | ast.Wildcard() | ast.Regex() | ast.Fuzzy():
                return UNKNOWN
            case _:
                assert_never(query)

    def _value(self, field: IndexField, value: Any) -> Node:
        if field.kind == "ip":
            return self._terms.addresses(field, *address_range(str(value)))
        if isinstance(value, str | bytes):
            return UNKNOWN
        if field.kind == "f64":
            return self._terms.any_double(field, [value])
        if isinstance(value, float):
            return UNKNOWN
        return self._terms.any_integer(field, [int(value)])

    def _range(self, query: ast.Range, field: IndexField) -> Node:
        closed = (query.include_lower, query.include_upper)
        bounds = (query.lower, query.upper)
        if field.kind == "ip":
            return self._address_range(query, field)
        if any(isinstance(b, str | bytes) for b in bounds):
            return UNKNOWN
        if field.kind == "f64":
            return self._terms.doubles(field, *bounds, closed=closed)
        if any(isinstance(b, float) for b in bounds):
            return UNKNOWN
        low, high = (None if b is None else int(b) for b in bounds)
        if low is None and high is None:
            return self._terms.is_not_null(field)
        return self._terms.integers(field, low, high, closed=closed)

    def _address_range(self, query: ast.Range, field: IndexField) -> Node:
        ends = addresses_between(query)
        return UNKNOWN if ends is None else self._terms.addresses(field, *ends)

    def _hash(self, query: ast.WordQuery, field: IndexField) -> Node:
        dtype, values = self._terms.dtype(field), _whole_values(query)
        if values is None or not all(_fits(dtype, v) for v in values):
            return UNKNOWN
        return Hash(field.column, tuple(canonical_text(dtype, v) for v in values))

    # -- words ------------------------------------------------------------------------------------

    def _text(self, query: ast.WordQuery, field: IndexField) -> Node:
        where = self._terms.vocabulary(field)
        if isinstance(query, ast.FullText):
            return self._full_text(query, field, where)
        if not field.complete:
            node = self._words(query, field, where)
            return node if isinstance(query, ast.Term) and isinstance(node, Index) else UNKNOWN
        return self._words(query, field, where)

    def _full_text(self, query: ast.FullText, field: IndexField, where: Vocabulary) -> Node:
        if field.kind == "term":
            return self._text(ast.Term(query.field, query.text), field)
        tokens = analyze(field.tokenizer, query.text, field.token_length)
        return self._tokens(where, tokens, query.operator)

    def _words(self, query: ast.TermQuery, field: IndexField, where: Vocabulary) -> Node:
        """A question about the words of a column or of a JSON path."""
        match query:
            case ast.Term():
                return self._one(where, query.value)
            case ast.TermSet():
                return self._terms.any_term(where, (jsonpaths.token(v) for v in query.values))
            case ast.Phrase():
                return self._phrase(field, where, query.terms, query.slop, query.prefix)
            case ast.Wildcard():
                parsed = LikePattern.wildcards(query.pattern)
                regex = parsed.spelled(escape_regex, ANY_TEXT, ANY_CHARACTER)
                return self.pattern(where, regex)
            case ast.Regex():
                pattern = query.pattern
                return self._listed(where, lambda words: _matches(words, pattern))
            case ast.Fuzzy():
                return self._fuzzy(query, field, where)
            case ast.Range():
                return UNKNOWN if field.kind == "paths" else self.text_range(query, field)
            case _:
                assert_never(query)

    def _one(self, where: Vocabulary, value: Any) -> Node:
        return self._terms.term(where, jsonpaths.token(value), scored=self._scored)

    def _tokens(self, where: Vocabulary, tokens: Sequence[str], operator: str) -> Node:
        if not tokens:
            return Nothing()
        nodes = [self._one(where, token) for token in dict.fromkeys(tokens)]
        return unite(nodes) if operator == "or" else intersect(nodes)

    def _phrase(
        self,
        field: IndexField,
        where: Vocabulary,
        words: tuple[str, ...],
        slop: int,
        prefix: bool,
    ) -> Node:
        if not words:
            return Nothing()
        *head, last = words
        if prefix:
            return self._phrase_prefix(field, where, head, last, slop)
        if not head:
            return self._one(where, last)
        if field.kind == "term":
            return Nothing()
        if field.record != "position" or slop > 0 or field.gaps:
            return inexact(self._tokens(where, words, "and"))
        return self._terms.phrase(where, words, scored=self._scored)

    def _phrase_prefix(
        self, field: IndexField, where: Vocabulary, head: list[str], last: str, slop: int
    ) -> Node:
        starts = self.pattern(where, escape_regex(last) + ANY_TEXT)
        if not head:
            return starts
        if field.kind == "term":
            return Nothing()
        expanded = self._dictionary(where.name, where.prefix + last).to_pylist()
        if len(expanded) > MANY_EXPANSIONS:
            return inexact(intersect([self._tokens(where, head, "and"), starts]))
        words = (where.word(term) for term in expanded)
        return unite(self._phrase(field, where, (*head, w), slop, False) for w in words)

    def _fuzzy(self, query: ast.Fuzzy, field: IndexField, where: Vocabulary) -> Node:
        if field.kind == "text" and not query.same:
            return self._terms.fuzzy(where, query.value, query.distance, query.prefix)
        if field.terms > MANY_TERMS:
            return UNKNOWN
        return self._listed(where, lambda words: _near(words, query))

    def pattern(self, where: Vocabulary, regex: str) -> Node:
        """Words that fit a pattern built from escaped pieces."""
        if where.is_escaped:
            return self._listed(where, lambda words: _matches(words, regex))
        if self._lists(where.name):
            return self._fitting(where, regex)
        return self._terms.regex(where, regex)

    def _fitting(self, where: Vocabulary, regex: str) -> Node:
        """The same, over words that are listed here; a pattern too large to be run is unknown."""
        try:
            return self._listed(where, lambda words: _matches(words, regex), literal_start(regex))
        except PlanningError:
            return UNKNOWN

    def text_range(self, query: ast.Range, field: IndexField) -> Node:
        """Words between two ends by their bytes, read off the dictionary."""
        ends = (query.lower, query.upper)
        if field.terms > MANY_TERMS or not all(b is None or isinstance(b, str) for b in ends):
            return UNKNOWN
        return self._listed(self._terms.vocabulary(field), lambda words: _between(words, query))

    def _listed(self, where: Vocabulary, keep: Callable[[pa.Array], Any], start: str = "") -> Node:
        """Words that a test over the dictionary keeps; all of them start with ``start``."""
        listed = self._dictionary(where.name, where.prefix + start)
        words = listed
        if where.is_escaped:
            words = pa.array([where.word(t) for t in listed.to_pylist()], pa.string())
        elif where.prefix:
            words = pc.utf8_slice_codeunits(listed, len(where.prefix))
        return self._terms.any_term(where, words.filter(keep(words)).to_pylist())

    # -- JSON -------------------------------------------------------------------------------------

    def _paths(self, query: ast.FieldQuery, field: IndexField, path: str) -> Node:
        if isinstance(query, ast.Exists) and not path:
            return self._terms.is_not_null(field)
        if not field.complete:
            return UNKNOWN
        where = self._terms.vocabulary(field, path)
        if isinstance(query, ast.Exists):
            return self._path_exists(field, path)
        if isinstance(query, ast.FullText):
            return self._json_text(query, where)
        node = self._words(query, field, where)
        return inexact(self._path_exists(field, path)) if node == UNKNOWN else node

    def _json_text(self, query: ast.FullText, where: Vocabulary) -> Node:
        """Several tokens may lie in scalars of different types, which do not count together."""
        nodes = []
        for tokens in jsonpaths.alternatives(query.text):
            node = self._tokens(where, tokens, query.operator)
            nodes.append(inexact(node) if len(set(tokens)) > 1 else node)
        return unite(nodes)

    def _path_exists(self, field: IndexField, path: str) -> Node:
        whole = Vocabulary(field.name, "")
        below = self.pattern(whole, escape_regex(pathtokens.marker(path) + ".") + ANY_TEXT)
        return unite([self._terms.marker(field, path), below])


def _whole_values(query: ast.WordQuery) -> tuple[Any, ...] | None:
    """The values, one of which a column that is not cut into words has to have."""
    match query:
        case ast.Term():
            return (query.value,)
        case ast.TermSet():
            return query.values
        case ast.FullText():
            return (query.text,)
        case ast.Phrase():
            return query.terms if len(query.terms) == 1 and not query.prefix else None
        case ast.Range() | ast.Wildcard() | ast.Regex() | ast.Fuzzy():
            return None
        case _:
            assert_never(query)


def _fits(dtype: pa.DataType, value: Any) -> bool:
    if pa.types.is_string(dtype):
        return isinstance(value, str)
    return isinstance(value, bytes) if pa.types.is_binary(dtype) else type(value) is int


def _matches(words: pa.Array, pattern: str) -> pa.Array:
    """Which words fit a regular expression, by the engine that also scans rows."""
    try:
        return pc.match_substring_regex(words, f"^(?:{pattern})$")
    except pa.ArrowInvalid as error:
        raise PlanningError(f"the regular expression '{pattern}' is malformed") from error


def _near(words: pa.Array, query: ast.Fuzzy) -> pa.Array:
    how = (query.distance, query.prefix, query.same)
    return pa.array([within_edits(query.value, w, *how) for w in words.to_pylist()], pa.bool_())


def _between(words: pa.Array, query: ast.Range) -> pa.Array:
    keep = pa.array(np.ones(len(words), np.bool_))
    if query.lower is not None:
        compare = pc.greater_equal if query.include_lower else pc.greater
        keep = pc.and_(keep, compare(words, str(query.lower)))
    if query.upper is not None:
        compare = pc.less_equal if query.include_upper else pc.less
        keep = pc.and_(keep, compare(words, str(query.upper)))
    return keep
