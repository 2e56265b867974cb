"""A predicate as an index query, for those who can only look up exact terms.

Exactly answerable leaves become ``Term`` and ``TermSet``; a text search is its own query. Every
other leaf becomes a node that a filter of terms cannot decide (a range, a wildcard, ``Exists``), or
stands under ``must_not``, which never excludes anything. So an OR with an undecidable leg stays
undecidable, and an AND goes on with its other legs.

``exact`` says that the query selects exactly the predicate's rows, wherever each node is
answered as it is written.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from indextables.expr import ast
from indextables.expr.predicate import (
    And,
    Column,
    Compare,
    Constant,
    InSet,
    Match,
    NullTest,
    Op,
    Or,
    Predicate,
    StringMatch,
    TextMatch,
    Truth,
    Undecided,
)
from indextables.mapping import DocMapping, FieldMapping

LONGEST_TERM = 65_530
_EXACT_TYPES = ("i64", "f64", "bool", "datetime", "decimal", "bytes")


@dataclass(frozen=True, slots=True)
class QueryPart:
    """A query and whether it says all that the predicate says."""

    query: ast.Query
    exact: bool


def to_query(
    predicate: Predicate, schema: pa.Schema | None = None, mapping: DocMapping | None = None
) -> QueryPart:
    """The query of a predicate for splits indexed as ``mapping`` says, or by default."""
    if mapping is None and schema is not None:
        mapping = DocMapping.for_schema(schema)
    return _convert(predicate, mapping)


def _convert(predicate: Predicate, mapping: DocMapping | None) -> QueryPart:
    if isinstance(predicate, And):
        parts = [_convert(child, mapping) for child in predicate.children]
        query = ast.Bool(must=tuple(p.query for p in parts))
        return QueryPart(query, all(p.exact for p in parts))
    if isinstance(predicate, Or):
        parts = [_convert(child, mapping) for child in predicate.children]
        query = ast.Bool(should=tuple(p.query for p in parts), minimum_should_match=1)
        return QueryPart(query, all(p.exact for p in parts))
    if isinstance(predicate, Constant):
        matches_all = predicate.truth is Truth.TRUE
        return QueryPart(ast.MatchAll() if matches_all else ast.MatchNone(), True)
    if isinstance(predicate, TextMatch):
        return _signed(predicate.query, predicate.negated)
    if isinstance(predicate, Undecided):
        return QueryPart(
            ast.Exists(predicate.references[0] if predicate.references else "*"), False
        )
    return _column_leaf(predicate, mapping)


def _signed(query: ast.Query, negated: bool) -> QueryPart:
    return QueryPart(ast.Bool(must_not=(query,)) if negated else query, True)


def _column_leaf(
    leaf: Compare | InSet | NullTest | StringMatch, mapping: DocMapping | None
) -> QueryPart:
    name = leaf.column.name
    if leaf.column.is_partition:
        return QueryPart(ast.Exists(name), False)
    if isinstance(leaf, NullTest):
        return QueryPart(_null_query(name, leaf.is_null), _has_exact_terms(leaf.column, mapping))
    if isinstance(leaf, StringMatch):
        return _pattern(leaf, _has_exact_terms(leaf.column, mapping))
    if not _has_exact_terms(leaf.column, mapping):
        return QueryPart(ast.Exists(name), False)
    if isinstance(leaf, InSet):
        if not all(map(_is_indexable, leaf.values)):
            return QueryPart(ast.Exists(name), False)
        return _valued(name, ast.TermSet(name, leaf.values), leaf.negated)
    return _comparison(leaf)


def _comparison(leaf: Compare) -> QueryPart:
    name, value = leaf.column.name, leaf.value
    if not _is_indexable(value):
        return QueryPart(ast.Exists(name), False)
    if leaf.op in (Op.EQ, Op.NE):
        return _valued(name, ast.Term(name, value), leaf.op is Op.NE)
    if leaf.op in (Op.LT, Op.LE):
        return QueryPart(ast.Range(name, upper=value, include_upper=leaf.op is Op.LE), True)
    return QueryPart(ast.Range(name, lower=value, include_lower=leaf.op is Op.GE), True)


def _valued(name: str, query: ast.Query, negated: bool) -> QueryPart:
    """A negated test still needs a value: NULL is not TRUE."""
    if not negated:
        return QueryPart(query, True)
    return QueryPart(ast.Bool(must=(ast.Exists(name),), must_not=(query,)), True)


def _null_query(name: str, is_null: bool) -> ast.Query:
    exists = ast.Exists(name)
    return ast.Bool(must_not=(exists,)) if is_null else exists


def _pattern(leaf: StringMatch, exact: bool) -> QueryPart:
    name = leaf.column.name
    if leaf.kind is Match.LIKE:
        text = _wildcard_of_like(leaf.pattern, leaf.escape)
    else:
        before = "*" if leaf.kind is not Match.PREFIX else ""
        after = "*" if leaf.kind is not Match.SUFFIX else ""
        text = before + _quoted(leaf.pattern) + after
    part = _valued(name, ast.Wildcard(name, text), leaf.negated)
    return QueryPart(part.query, exact)


def _quoted(text: str) -> str:
    return "".join("\\" + c if c in "*?\\" else c for c in text)


def _wildcard_of_like(pattern: str, escape: str) -> str:
    out: list[str] = []
    chars = iter(pattern)
    for char in chars:
        if escape and char == escape:
            out.append(_quoted(next(chars, escape)))
        else:
            out.append({"%": "*", "_": "?"}.get(char) or _quoted(char))
    return "".join(out)


def _has_exact_terms(column: Column, mapping: DocMapping | None) -> bool:
    """Does the index hold this column's whole values, one term each?"""
    if mapping is None or len(column.path) > 1:
        return False
    found: FieldMapping | None = mapping.get(column.root)
    if found is None or not found.indexed:
        return False
    return found.type in _EXACT_TYPES or found.is_exact_text


def _is_indexable(value: object) -> bool:
    """Terms above the index's limit are not in it."""
    if isinstance(value, str):
        return len(value.encode(errors="surrogatepass")) <= LONGEST_TERM
    return not isinstance(value, bytes) or len(value) <= LONGEST_TERM
