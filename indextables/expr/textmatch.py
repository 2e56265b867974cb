"""What a query AST means, row by row: the definition that every index has to agree with.

A field has *terms*. Tokenised text has its analyzer's tokens with their positions; exact text one,
the whole value; a JSON path the tokens of each scalar at it (``jsonpaths``), each scalar with
positions of its own. On those:

* ``Term``/``TermSet``: a term equal to the value. ``Wildcard``, ``Regex``, ``Fuzzy``: a term that
  fits as a whole; fuzzy distance counts insertions, deletions, replacements and swaps of
  neighbours, each one edit, no character edited twice; with ``prefix`` a beginning of the term;
  the first ``same`` characters stand unchanged.
* ``Phrase``: terms at positions ``p0, p1, ...``, each its own; moved to where the first would
  stand (``pi - i``) they differ by at most ``slop``. With ``prefix`` the last is a beginning.
* ``FullText``: the text's tokens, all (``and``) or some (``or``); for JSON also as a number.
* ``Range`` over text: a term between the ends by UTF-8 bytes; over JSON: a number, date or time at
  the path between them, or with text ends a string.

Numbers, bools, dates, timestamps, decimals and binary columns have a value: equality and order
are those of SQL (NaN greatest). An ip column has an address; ``Term`` may name a block. ``Exists``
is "not NULL"; for a JSON path a scalar at or below it. NULL has no terms. A field that the mapping
lacks has no matches; one that the mapping has and the batch lacks is an error.
"""

from __future__ import annotations

from datetime import UTC
from fractions import Fraction
from typing import Any, NamedTuple, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.errors import PlanningError, UnknownColumnError
from indextables.expr import ast, jsonpaths, leaves
from indextables.expr.analyzers import analyze, tokenize
from indextables.expr.arrays import one_array
from indextables.expr.casting import physical_values
from indextables.expr.edits import within_edits
from indextables.expr.ipaddr import address_range, addresses_between, in_range
from indextables.expr.like import LikePattern
from indextables.expr.literals import Kind, Scalar
from indextables.expr.predicate import Column, Op, conjunction
from indextables.mapping import DEFAULT_TOKEN_LENGTH, DocMapping, FieldMapping

Rows = NDArray[np.bool_]


def match_rows(query: ast.Query, batch: pa.RecordBatch | pa.Table, mapping: DocMapping) -> Rows:
    """Which rows the query matches."""
    return _Matcher(batch, mapping).match(query)


class _Terms(NamedTuple):
    """Terms of a field, flat: term ``k`` is ``words[codes[k]]``, of scalar ``owners[k]``.

    Scalar ``s`` is in row ``rows[s]``; ``owners`` ascend.
    """

    words: pa.Array
    codes: NDArray[np.int64]
    owners: NDArray[np.int64]
    positions: NDArray[np.int64]
    rows: NDArray[np.int64]

    def rows_with(self, wanted: Rows, count: int) -> Rows:
        """Rows with a wanted term; ``wanted`` is combined with ``words``."""
        found = np.zeros(count, bool)
        found[self.rows[self.owners[wanted[self.codes]]]] = True
        return found

    def same(self, word: str) -> Rows:
        return as_rows(pc.equal(self.words, word))


def as_rows(mask: pa.Array) -> Rows:
    """An Arrow mask without nulls as numpy."""
    made: Rows = mask.to_numpy(zero_copy_only=False).astype(bool)
    return made


class _Matcher:
    """One batch, with the terms of its fields computed once."""

    def __init__(self, batch: pa.RecordBatch | pa.Table, mapping: DocMapping) -> None:
        self._batch = batch
        self._mapping = mapping
        self._count = batch.num_rows
        self._names = {name.lower(): name for name in batch.schema.names}
        self._terms: dict[str, _Terms] = {}
        self._leaves: dict[str, list[jsonpaths.Leaf]] = {}

    def match(self, query: ast.Query) -> Rows:
        if isinstance(query, ast.MatchAll | ast.MatchNone):
            return np.full(self._count, isinstance(query, ast.MatchAll))
        if isinstance(query, ast.Boost):
            return self.match(query.query)
        if isinstance(query, ast.Bool):
            return self._bool(query)
        mapping = self._mapping.get(query.field)
        path = ""
        if mapping is None:
            column, path = jsonpaths.split_field(query.field)
            mapping = self._mapping.get(column)
        if mapping is None:
            return np.zeros(self._count, bool)
        if mapping.name.lower() not in self._names:
            raise UnknownColumnError.of(mapping.name, self._batch.schema.names)
        return self._field(query, mapping, path)

    def _bool(self, query: ast.Bool) -> Rows:
        result = np.ones(self._count, bool)
        for part in query.must:
            result &= self.match(part)
        for part in query.must_not:
            result &= ~self.match(part)
        if query.required_should:
            votes = np.zeros(self._count, np.int64)
            for part in query.should:
                votes += self.match(part)
            result &= votes >= query.required_should
        return result

    def _field(self, query: ast.FieldQuery, mapping: FieldMapping, path: str) -> Rows:
        values = self._values(mapping)
        if isinstance(query, ast.Exists):
            return self._exists(values, mapping, path)
        if mapping.type == "json":
            return self._json(query, mapping, path)
        if mapping.type == "ip":
            return _address(query, values)
        if mapping.type == "text":
            return self._words(query, self._text_terms(mapping), mapping)
        if pa.types.is_null(values.type):
            return np.zeros(self._count, bool)
        return _typed(query, values)

    def _values(self, mapping: FieldMapping) -> pa.Array:
        return one_array(self._batch.column(self._names[mapping.name.lower()]))

    # -- terms ------------------------------------------------------------------------------------

    def _text_terms(self, mapping: FieldMapping) -> _Terms:
        if mapping.name not in self._terms:
            values = self._values(mapping).cast(pa.string())
            rows = np.arange(self._count)
            tokenizer = mapping.tokenizer or "default"
            if tokenizer == "raw":
                self._terms[mapping.name] = _whole_terms(values, rows)
            else:
                self._terms[mapping.name] = _cut(values, rows, tokenizer, mapping.token_length)
        return self._terms[mapping.name]

    def _json_leaves(self, mapping: FieldMapping) -> list[jsonpaths.Leaf]:
        if mapping.name not in self._leaves:
            values = self._values(mapping)
            is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
            self._leaves[mapping.name] = jsonpaths.flatten(values, is_text=is_text)
        return self._leaves[mapping.name]

    def _words(self, query: ast.WordQuery, terms: _Terms, mapping: FieldMapping) -> Rows:
        """A question about terms that are words."""
        if isinstance(query, ast.Phrase):
            return self._phrase(query, terms)
        if isinstance(query, ast.FullText):
            return self._full_text(query, terms, mapping)
        return terms.rows_with(_wanted(query, terms.words), self._count)

    def _full_text(self, query: ast.FullText, terms: _Terms, mapping: FieldMapping) -> Rows:
        if mapping.type == "json":
            alternatives = jsonpaths.alternatives(query.text)
        elif mapping.is_exact_text:
            alternatives = [(query.text,)]
        else:
            tokenizer = mapping.tokenizer or "default"
            alternatives = [tuple(analyze(tokenizer, query.text, mapping.token_length))]
        found = np.zeros(self._count, bool)
        for tokens in filter(None, alternatives):
            masks = [terms.rows_with(terms.same(t), self._count) for t in tokens]
            joined = np.logical_or if query.operator == "or" else np.logical_and
            found |= joined.reduce(masks)
        return found

    def _phrase(self, query: ast.Phrase, terms: _Terms) -> Rows:
        found = np.zeros(self._count, bool)
        if not query.terms:
            return found
        wanted = [terms.same(t) for t in query.terms]
        if query.prefix:
            wanted[-1] = as_rows(pc.starts_with(terms.words, query.terms[-1]))
        hits = [w[terms.codes] for w in wanted]
        owners = [set(terms.owners[h].tolist()) for h in hits]
        for owner in set.intersection(*owners):
            start, end = np.searchsorted(terms.owners, [owner, owner + 1])
            places = [terms.positions[start:end][h[start:end]].tolist() for h in hits]
            if fits_phrase(places, query.slop):
                found[terms.rows[owner]] = True
        return found

    # -- JSON -------------------------------------------------------------------------------------

    def _exists(self, values: pa.Array, mapping: FieldMapping, path: str) -> Rows:
        if not path:
            valid: Rows = values.is_valid().to_numpy(zero_copy_only=False)
            return valid
        if mapping.type != "json":
            raise PlanningError(f"Exists has no meaning for '{path}' in '{mapping.name}'")
        found = np.zeros(self._count, bool)
        for leaf in self._json_leaves(mapping):
            if leaf.path == path or leaf.path.startswith(path + "."):
                found[leaf.rows] = True
        return found

    def _json(self, query: ast.WordQuery, mapping: FieldMapping, path: str) -> Rows:
        found = np.zeros(self._count, bool)
        for leaf in self._json_leaves(mapping):
            if leaf.path != path:
                continue
            if isinstance(query, ast.Range):
                found[leaf.rows[_json_range(query, leaf.values)]] = True
            else:
                found |= self._words(query, _leaf_terms(leaf), mapping)
        return found


def _cut(values: pa.Array, rows: NDArray[np.int64], tokenizer: str, limit: int) -> _Terms:
    found = tokenize(values, tokenizer, limit)
    coded = found.texts.dictionary_encode()
    owners = np.repeat(np.arange(len(values)), np.diff(found.offsets))
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    positions = np.asarray(found.positions, np.int64)
    return _Terms(coded.dictionary, codes, owners, positions, rows)


def _whole_terms(values: pa.Array, rows: NDArray[np.int64]) -> _Terms:
    """Each value as one term."""
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    coded = values.drop_null().dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    owners = np.flatnonzero(valid)
    return _Terms(coded.dictionary, codes, owners, np.zeros_like(owners), rows)


def _leaf_terms(leaf: jsonpaths.Leaf) -> _Terms:
    dtype = leaf.values.type
    if jsonpaths.is_analysed(dtype):
        texts = jsonpaths.scalar_texts(leaf.values)
        return _cut(texts, leaf.rows, "default", DEFAULT_TOKEN_LENGTH)
    if pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype):
        return _whole_terms(pa.nulls(len(leaf.values), pa.string()), leaf.rows)
    return _whole_terms(jsonpaths.scalar_texts(leaf.values), leaf.rows)


# -- single questions -----------------------------------------------------------------------------


def _wanted(query: ast.OneTermQuery, words: pa.Array) -> Rows:
    """Which terms the query wants."""
    match query:
        case ast.Term():
            return as_rows(pc.equal(words, jsonpaths.token(query.value)))
        case ast.TermSet():
            tokens = pa.array([jsonpaths.token(v) for v in query.values], pa.string())
            return as_rows(pc.is_in(words, value_set=tokens))
        case ast.Wildcard():
            regex = LikePattern.wildcards(query.pattern).regex
            return as_rows(pc.match_substring_regex(words, regex))
        case ast.Regex():
            return as_rows(pc.match_substring_regex(words, f"^(?:{query.pattern})$"))
        case ast.Fuzzy(_, value, distance, prefix, same):
            near = (within_edits(value, w, distance, prefix, same) for w in words.to_pylist())
            return np.fromiter(near, bool, len(words))
        case ast.Range():
            inside = (_between(w.encode(), query) for w in words.to_pylist())
            return np.fromiter(inside, bool, len(words))
        case _:
            assert_never(query)


def _between(value: Any, query: ast.Range) -> bool:
    low, high = (b.encode() if isinstance(b, str) else b for b in (query.lower, query.upper))
    if low is not None and (value < low or (value == low and not query.include_lower)):
        return False
    return high is None or value < high or (value == high and query.include_upper)


def fits_phrase(places: list[list[int]], slop: int) -> bool:
    """Whether one place for each word, no place twice, fits with at most ``slop`` moves.

    Each place is moved back by the word's number in the phrase; the moved places may then differ
    by at most ``slop``.
    """
    moved = [[(p - i, p) for p in found] for i, found in enumerate(places)]
    for start in sorted({m for found in moved for m, _ in found}):
        near = [[p for m, p in found if start <= m <= start + slop] for found in moved]
        if all(near) and _all_apart(near):
            return True
    return False


def _all_apart(choices: list[list[int]]) -> bool:
    """Whether each word can have a place of its own."""
    taken: dict[int, int] = {}

    def settle(word: int, tried: set[int]) -> bool:
        for place in choices[word]:
            if place not in tried:
                tried.add(place)
                if place not in taken or settle(taken[place], tried):
                    taken[place] = word
                    return True
        return False

    return all(settle(word, set()) for word in range(len(choices)))


def _address(query: ast.WordQuery, values: pa.Array) -> Rows:
    texts = values.cast(pa.string())
    match query:
        case ast.Term():
            return in_range(texts, *address_range(str(query.value)))
        case ast.TermSet():
            found = np.zeros(len(values), bool)
            for value in query.values:
                found |= in_range(texts, *address_range(str(value)))
            return found
        case ast.Range():
            return _addresses(query, texts)
        case ast.FullText() | ast.Phrase() | ast.Wildcard() | ast.Regex() | ast.Fuzzy():
            raise PlanningError(f"{type(query).__name__} has no meaning for addresses")
        case _:
            assert_never(query)


def _addresses(query: ast.Range, texts: pa.Array) -> Rows:
    ends = addresses_between(query)
    if ends is None:
        raise PlanningError(f"{query} does not name addresses")
    return in_range(texts, *ends) if ends[0] <= ends[1] else np.zeros(len(texts), bool)


def _typed(query: ast.WordQuery, values: pa.Array) -> Rows:
    """A question about a column of plain values."""
    match query:
        case ast.Term():
            return _holds(values, [(Op.EQ, query.value)])
        case ast.TermSet():
            masks = [_holds(values, [(Op.EQ, v)]) for v in query.values]
            return np.logical_or.reduce(masks) if masks else np.zeros(len(values), bool)
        case ast.Range():
            return _typed_range(query, values)
        case ast.FullText() | ast.Phrase() | ast.Wildcard() | ast.Regex() | ast.Fuzzy():
            raise PlanningError(f"{type(query).__name__} has no meaning for {values.type}")
        case _:
            assert_never(query)


def _typed_range(query: ast.Range, values: pa.Array) -> Rows:
    tests = []
    if query.lower is not None:
        tests.append((Op.GE if query.include_lower else Op.GT, query.lower))
    if query.upper is not None:
        tests.append((Op.LE if query.include_upper else Op.LT, query.upper))
    if not tests:
        valid: Rows = values.is_valid().to_numpy(zero_copy_only=False)
        return valid
    return _holds(values, tests)


def _holds(values: pa.Array, tests: list[tuple[Op, Any]]) -> Rows:
    from indextables.expr.evaluate import matching_rows

    column = Column(("v",), values.type)
    parts = [leaves.compare(column, op, _scalar(v, values.type), UTC) for op, v in tests]
    found = np.zeros(len(values), bool)
    found[matching_rows(conjunction(parts), pa.record_batch({"v": values}))] = True
    return found


def _scalar(value: Any, dtype: pa.DataType) -> Scalar:
    """A physical AST value as a literal beside its column."""
    t = pa.types
    if isinstance(value, bytes):
        return Scalar(Kind.BINARY, value)
    if t.is_boolean(dtype) or isinstance(value, bool):
        return Scalar(Kind.BOOLEAN, bool(value))
    if isinstance(value, float):
        return Scalar(Kind.DOUBLE, value)
    if isinstance(value, str):
        raise PlanningError(f"'{value}' is not a physical value of {dtype}")
    if t.is_date(dtype):
        return Scalar(Kind.DATE, value)
    if t.is_timestamp(dtype):
        return Scalar(Kind.TIMESTAMP if dtype.tz else Kind.NTZ, value)
    if t.is_decimal(dtype):
        return Scalar(Kind.DECIMAL, Fraction(value) / Fraction(10) ** dtype.scale)
    return Scalar(Kind.INTEGER, value)


def _json_range(query: ast.Range, values: pa.Array) -> Rows:
    """Scalars of one JSON leaf between two ends."""
    texts = any(isinstance(b, str) for b in (query.lower, query.upper))
    is_string = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    none = np.zeros(len(values), bool)
    if texts != is_string or pa.types.is_binary(values.type) or pa.types.is_boolean(values.type):
        return none
    if is_string:
        return np.array([_between(v.encode(), query) for v in values.to_pylist()], bool)
    if pa.types.is_decimal(values.type):
        numbers = pa.array([float(v) for v in physical_values(values)], pa.float64())
        return _typed_range(query, numbers)
    return _typed_range(query, values)
