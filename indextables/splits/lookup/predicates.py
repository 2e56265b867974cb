"""Bound predicates as nodes: which rows of a split the index can find for a filter.

SQL comparisons are about whole values; the index knows terms. A leaf is exact where the two are
the same thing: numbers, dates and bools (columnar), exact strings (whole values are terms), nulls.
Elsewhere the index narrows: equality on tokenised text needs all tokens of the literal, equality on
an ip column the same address, equality inside a struct the tokens at that path, equality on a
nearly unique column its hash. Order comparisons of strings and what only an evaluator can decide
are unknown.

A column whose type in the split differs from the table's is used only if every value keeps its
physical number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, assert_never

import pyarrow as pa

from indextables.expr import ast, grams
from indextables.expr.analyzers import MAX_TERM_BYTES, analyze
from indextables.expr.ipaddr import parse_address
from indextables.expr.jsonpaths import alternatives
from indextables.expr.keys import canonical_text
from indextables.expr.normalize import included
from indextables.expr.predicate import (
    TRUE,
    And,
    Column,
    ColumnTest,
    Compare,
    Constant,
    InSet,
    Like,
    Match,
    NullTest,
    Op,
    Or,
    Predicate,
    StringMatch,
    TextMatch,
    Truth,
    Undecided,
    conjunction,
    conjuncts,
)
from indextables.splits.format.info import IndexField
from indextables.splits.lookup.nodes import (
    UNKNOWN,
    All,
    Hash,
    Node,
    Nothing,
    complement,
    inexact,
    intersect,
    unite,
)
from indextables.splits.lookup.queries import QueryCompiler
from indextables.splits.lookup.terms import ANY_CHARACTER, ANY_TEXT, Terms, escape_regex

MANY_TERMS = 100_000
_BOUNDS = (Op.LT, Op.LE, Op.GT, Op.GE)


@dataclass(frozen=True, slots=True)
class Found:
    """Rows to look at, and the part of the predicate that still has to be checked on them."""

    node: Node
    residual: Predicate


class PredicateCompiler:
    """Translates predicates for one open index."""

    def __init__(self, terms: Terms, queries: QueryCompiler) -> None:
        self._terms = terms
        self._queries = queries

    def compile(self, predicate: Predicate) -> Found:
        """Every conjunct narrows the rows; those that are not exact stay in the residual."""
        parts = self._conjuncts(c for p in conjuncts(predicate) for c in text_conjuncts(p))
        residual = conjunction([c for group, n in parts if not n.exact for c in group])
        node = intersect(n for _, n in parts)
        return Found(node, TRUE if isinstance(node, Nothing) else residual)

    def _conjuncts(self, children: Iterable[Predicate]) -> list[tuple[list[Predicate], Node]]:
        """A node for each conjunct; the bounds of one column are one range."""
        bounds: dict[Column, list[Predicate]] = {}
        groups: list[list[Predicate]] = []
        for child in children:
            if isinstance(child, Compare) and child.op in _BOUNDS:
                if child.column not in bounds:
                    groups.append(bounds.setdefault(child.column, []))
                bounds[child.column].append(child)
            else:
                groups.append([child])
        return [(group, self._group(group)) for group in groups]

    def _group(self, group: list[Predicate]) -> Node:
        if len(group) == 1:
            return self.node(group[0])
        ends = [leaf for leaf in group if isinstance(leaf, Compare)]
        field = self._terms.field(ends[0].column.root)
        if field is None or field.kind != "i64" or len(ends[0].column.path) > 1:
            return intersect(self.node(leaf) for leaf in group)
        if not _keeps_numbers(self._terms.dtype(field), ends[0].column.dtype):
            return UNKNOWN
        lows = [_integer(e.value) + (e.op is Op.GT) for e in ends if e.op in (Op.GT, Op.GE)]
        highs = [_integer(e.value) - (e.op is Op.LT) for e in ends if e.op in (Op.LT, Op.LE)]
        low, high = max(lows, default=None), min(highs, default=None)
        return self._terms.integers(field, low, high, closed=(True, True))

    def node(self, predicate: Predicate) -> Node:
        match predicate:
            case And():
                return intersect(n for _, n in self._conjuncts(predicate.children))
            case Or():
                return unite(self.node(c) for c in predicate.children)
            case Compare() | InSet() | NullTest() | StringMatch() | Like():
                return self._column(predicate)
            case TextMatch():
                found = self._queries.compile(predicate.query)
                return complement(found) if predicate.negated else found
            case Constant():
                return All() if predicate.truth is Truth.TRUE else Nothing()
            case Undecided():
                return self._pieces(predicate)
            case _:
                assert_never(predicate)

    def _column(self, leaf: ColumnTest) -> Node:
        field = self._terms.field(leaf.column.root)
        if field is None:
            return UNKNOWN
        if len(leaf.column.path) > 1:
            return self._nested(leaf, field)
        if isinstance(leaf, NullTest):
            return self._terms.is_null(field) if leaf.is_null else self._terms.is_not_null(field)
        if not _keeps_numbers(self._terms.dtype(field), leaf.column.dtype):
            return UNKNOWN
        match leaf:
            case Compare():
                return self._compare(leaf, field)
            case InSet():
                return self._one_of(leaf, field)
            case StringMatch() | Like():
                return self._pattern(leaf, field)
            case _:
                assert_never(leaf)

    # -- comparisons ------------------------------------------------------------------------------

    def _compare(self, leaf: Compare, field: IndexField) -> Node:
        if leaf.op is Op.EQ:
            return self._equal(field, (leaf.value,))
        if leaf.op is Op.NE:
            return self._terms.other_than(self._equal(field, (leaf.value,)), field)
        low, high = (leaf.value, None) if leaf.op in (Op.GT, Op.GE) else (None, leaf.value)
        closed = (leaf.op is not Op.GT, leaf.op is not Op.LT)
        if field.kind == "i64":
            ends = (None if v is None else _integer(v) for v in (low, high))
            return self._terms.integers(field, *ends, closed=closed)
        if field.kind == "f64":
            return self._terms.doubles(field, low, high, closed=closed)
        if field.kind == "term" and field.complete:
            bounds = ast.Range(field.column, low, high, *closed)
            return self._queries.text_range(bounds, field)
        return UNKNOWN

    def _one_of(self, leaf: InSet, field: IndexField) -> Node:
        node = self._equal(field, leaf.values)
        return self._terms.other_than(node, field) if leaf.negated else node

    def _equal(self, field: IndexField, values: tuple[Any, ...]) -> Node:
        if field.kind == "i64":
            return self._terms.any_integer(field, [int(v) for v in values])
        if field.kind == "f64":
            return self._terms.any_double(field, [float(v) for v in values])
        if field.kind == "term":
            return self._exact_text(field, values)
        if field.kind == "text":
            return unite(self._all_tokens(field, v) for v in values)
        if field.kind == "ip":
            return unite(self._same_address(field, v) for v in values)
        if field.kind == "hash":
            dtype = self._terms.dtype(field)
            return Hash(field.column, tuple(canonical_text(dtype, v) for v in values))
        return UNKNOWN

    def _exact_text(self, field: IndexField, values: tuple[Any, ...]) -> Node:
        where = self._terms.vocabulary(field)
        too_long = any(len(where.spell(v).encode()) > MAX_TERM_BYTES for v in values)
        if too_long and not field.complete:
            return UNKNOWN
        return self._terms.any_term(where, values)

    def _all_tokens(self, field: IndexField, value: str) -> Node:
        tokens = analyze(field.tokenizer, value, field.token_length)
        if not tokens:
            return UNKNOWN
        where = self._terms.vocabulary(field)
        return inexact(intersect(self._terms.term(where, t) for t in dict.fromkeys(tokens)))

    def _same_address(self, field: IndexField, value: str) -> Node:
        number = parse_address(value)
        if number is None:
            return UNKNOWN
        return inexact(self._terms.addresses(field, number, number))

    # -- patterns ---------------------------------------------------------------------------------

    def _pattern(self, leaf: StringMatch | Like, field: IndexField) -> Node:
        """``_`` is up to two characters here: the verifier counts them as LIKE does."""
        if field.kind != "term" or not field.complete:
            return self._pieces(leaf)
        if field.terms > MANY_TERMS and not (
            isinstance(leaf, StringMatch) and leaf.kind is Match.PREFIX
        ):
            return self._pieces(leaf)
        regex = leaf.pattern.spelled(escape_regex, ANY_TEXT, f"{ANY_CHARACTER}{{0,2}}")
        node = self._queries.pattern(self._terms.vocabulary(field), regex)
        if isinstance(leaf, Like):
            return UNKNOWN if leaf.negated else inexact(node)
        return self._terms.other_than(node, field) if leaf.negated else node

    def _pieces(self, leaf: StringMatch | Like | Undecided) -> Node:
        """Rows that hold all pieces of the literals that a pattern needs."""
        found = grams.needed(leaf)
        field = None if found is None else self._terms.field(found[0])
        if found is None or field is None or not field.grams:
            return UNKNOWN
        return inexact(self._held(found[1], field))

    def _held(self, needed: grams.Needed, field: IndexField) -> Node:
        if isinstance(needed, grams.Holds):
            pieces = dict.fromkeys(g for text in needed.literals for g in grams.grams(text))
            return self._terms.pieces(field, list(pieces))
        parts = [self._held(part, field) for part in needed.parts]
        return intersect(parts) if isinstance(needed, grams.AllOf) else unite(parts)

    # -- inside structs ---------------------------------------------------------------------------

    def _nested(self, leaf: ColumnTest, field: IndexField) -> Node:
        """A comparison that is TRUE needs a value at the path, and equality its tokens."""
        if field.kind != "paths" or not field.complete or _is_container(leaf.column):
            return UNKNOWN
        path = ".".join(leaf.column.path[1:])
        here = inexact(self._terms.marker(field, path))
        asked = included(leaf) if pa.types.is_string(leaf.column.dtype) else None
        match leaf:
            case NullTest():
                return UNKNOWN if leaf.is_null else here
            case Compare() | InSet() | StringMatch() | Like():
                if asked is None:
                    return here
                return intersect([here, unite(self._tokens_at(field, path, v) for v in asked)])
            case _:
                assert_never(leaf)

    def _tokens_at(self, field: IndexField, path: str, value: Any) -> Node:
        words = next(iter(alternatives(value)), ())
        where = self._terms.vocabulary(field, path)
        return inexact(intersect(self._terms.term(where, w) for w in dict.fromkeys(words)))


def text_conjuncts(predicate: Predicate) -> list[Predicate]:
    """A search for several things at once as a search for each: only inexact ones are verified."""
    if not isinstance(predicate, TextMatch) or predicate.negated:
        return [predicate]
    query = predicate.query
    if not isinstance(query, ast.Bool) or len(query.must) + len(query.must_not) < 2:
        return [predicate]
    parts: list[ast.Query] = [*query.must]
    parts += [ast.Bool(must_not=(part,)) for part in query.must_not]
    if query.required_should:
        parts.append(ast.Bool((), query.should, (), query.required_should))
    return [replace(predicate, query=p, fields=tuple(ast.query_fields(p))) for p in parts]


def _is_container(column: Column) -> bool:
    t = pa.types
    dtype = column.dtype
    return bool(t.is_nested(dtype) or t.is_map(dtype))


def _integer(value: Any) -> int:
    return int(value)


def _keeps_numbers(held: pa.DataType, asked: pa.DataType) -> bool:
    t = pa.types
    if held == asked:
        return True
    return bool(
        (t.is_integer(held) and t.is_integer(asked))
        or (t.is_floating(held) and t.is_floating(asked))
        or (t.is_string(held) and t.is_string(asked))
    )
