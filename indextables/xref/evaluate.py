"""What filters can say about a question: absent, perhaps, or nothing.

A filter of a split answers for one key: certainly absent, or perhaps present. From that, bottom up:

* ``NOT_PRESENT``: no row of the split can match. Only this prunes.
* ``POSSIBLY_PRESENT``: the keys asked for may be there.
* ``EXISTS``: the filter cannot decide (a range, a pattern, a NULL test, a negation, a cast, a
  column it was not built with, a value that cannot be spelled exactly as the index spells it).

A conjunction is absent when one part is; a disjunction when all parts are, so one undecidable part
keeps it. ``should`` beside ``must`` is optional and never prunes unless a number is demanded.
Negations never prune. ``unevaluated`` reports that some part, at any depth, was not decided.

All splits of a cross-reference are judged at once: a verdict is an array, a key is one probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.expr import ast
from indextables.expr.analyzers import analyze
from indextables.expr.keys import key_field, key_for_term, keys_for_equality
from indextables.expr.predicate import (
    And,
    Column,
    Compare,
    Constant,
    InSet,
    Op,
    Or,
    Predicate,
    TextMatch,
    Truth,
)
from indextables.mapping import DocMapping, FieldMapping
from indextables.native import FilterSet, hash_term

NOT_PRESENT = 0
POSSIBLY_PRESENT = 1
EXISTS = 2

Verdicts = NDArray[np.uint8]


@dataclass
class Evaluation:
    """Judges one question for all splits of one mapping."""

    filters: FilterSet
    mapping: DocMapping
    schema: pa.Schema
    hash_kind: str
    mask: NDArray[np.bool_] | None = None
    unevaluated: bool = False
    columns: dict[str, None] = field(default_factory=dict)

    # -- verdicts -------------------------------------------------------------------------------

    def all(self, verdict: int) -> Verdicts:
        return np.full(len(self.filters), verdict, np.uint8)

    def undecided(self) -> Verdicts:
        self.unevaluated = True
        return self.all(EXISTS)

    def probe(self, name: str, keys: list[str], *, every: bool) -> Verdicts:
        """Do the splits hold every one, or any, of these keys of a field?"""
        self.columns[name.split(".")[0]] = None
        hashes = [hash_term(name, key, self.hash_kind) for key in keys]
        if len(hashes) == 1:
            found = self.filters.probe(hashes[0], self.mask)
        elif every:
            found = self.filters.probe_all(np.array(hashes, np.uint64), self.mask)
        else:
            found = self.filters.probe_any(np.array(hashes, np.uint64), self.mask)
        return found.view(np.uint8)

    def conjunction(self, parts: Iterable[Verdicts]) -> Verdicts:
        """The least verdict: absent before possible before undecided."""
        return reduce(np.minimum, parts)

    def disjunction(self, parts: Iterable[Verdicts], needed: int = 1) -> Verdicts:
        found = list(parts)
        possible = np.sum([p != NOT_PRESENT for p in found], axis=0)
        undecided = np.all([p == EXISTS for p in found], axis=0)
        return _verdict(possible < needed, undecided)

    # -- predicates -----------------------------------------------------------------------------

    def predicate(self, predicate: Predicate) -> Verdicts:
        """The verdicts of a bound predicate."""
        if isinstance(predicate, And):
            return self.conjunction(self.predicate(p) for p in predicate.children)
        if isinstance(predicate, Or):
            return self.disjunction(self.predicate(p) for p in predicate.children)
        if isinstance(predicate, Constant):
            true = predicate.truth is Truth.TRUE
            return self.all(POSSIBLY_PRESENT if true else NOT_PRESENT)
        if isinstance(predicate, TextMatch) and not predicate.negated:
            return self.query(predicate.query)
        if isinstance(predicate, Compare) and predicate.op is Op.EQ:
            return self._equal(predicate.column, [predicate.value])
        if isinstance(predicate, InSet) and not predicate.negated:
            return self._equal(predicate.column, list(predicate.values))
        return self.undecided()

    def _equal(self, column: Column, values: list[Any]) -> Verdicts:
        mapping = self.mapping.get(column.root)
        if column.is_partition or len(column.path) > 1 or mapping is None:
            return self.undecided()
        if self._type_of(column.root) != column.dtype:
            return self.undecided()
        keys = [keys_for_equality(mapping, column.dtype, value) for value in values]
        if any(k is None for k in keys):
            return self.undecided()
        if all(k is not None and len(k) == 1 for k in keys):
            return self.probe(mapping.name, [k[0] for k in keys if k], every=False)
        return self.disjunction(self.probe(mapping.name, k, every=True) for k in keys if k)

    def _type_of(self, name: str) -> pa.DataType | None:
        index = self.schema.get_field_index(name)
        return self.schema.field(index).type if index >= 0 else None

    # -- queries --------------------------------------------------------------------------------

    def query(self, query: ast.Query) -> Verdicts:
        """The verdicts of a query AST."""
        handler = _HANDLERS.get(type(query))
        return self.undecided() if handler is None else handler(self, query)

    def _field(self, name: str) -> tuple[FieldMapping, pa.DataType, str] | None:
        """The mapping, type and JSON path a query's field means in these splits."""
        root, _, path = name.partition(".")
        mapping = self.mapping.get(name)
        if mapping is not None:
            path = ""
        else:
            mapping = self.mapping.get(root)
        if mapping is None or not mapping.indexed or (path and mapping.type != "json"):
            return None
        dtype = self._type_of(mapping.name)
        return None if dtype is None else (mapping, dtype, path)

    def terms(self, name: str, values: Iterable[Any], *, every: bool) -> Verdicts:
        known = self._field(name)
        if known is None:
            return self.undecided()
        mapping, dtype, path = known
        keys = [key_for_term(mapping, dtype, value, path) for value in values]
        if not keys or any(k is None for k in keys):
            return self.undecided()
        return self.probe(key_field(mapping.name, path), [k for k in keys if k], every=every)

    def full_text(self, query: ast.FullText) -> Verdicts:
        known = self._field(query.field)
        if known is None or known[0].type != "text":
            return self.undecided()
        mapping = known[0]
        tokens = analyze(mapping.tokenizer or "default", query.text, mapping.token_length)
        return self.terms(query.field, dict.fromkeys(tokens), every=query.operator == "and")

    def phrase(self, query: ast.Phrase) -> Verdicts:
        terms = query.terms[:-1] if query.prefix else query.terms
        if query.prefix:
            self.unevaluated = True
        return self.terms(query.field, dict.fromkeys(terms), every=True)

    def boolean(self, query: ast.Bool) -> Verdicts:
        parts = [self.query(q) for q in query.must]
        needed = query.required_should
        if query.should and needed > 0:
            parts.append(self.disjunction([self.query(q) for q in query.should], needed))
        if query.must_not or (query.should and needed == 0):
            self.unevaluated = True
        return self.conjunction(parts) if parts else self.all(POSSIBLY_PRESENT)


def _verdict(absent: NDArray[np.bool_], undecided: NDArray[np.bool_]) -> Verdicts:
    found = np.where(undecided, EXISTS, POSSIBLY_PRESENT).astype(np.uint8)
    found[absent] = NOT_PRESENT
    return found


_HANDLERS: dict[type, Callable[[Evaluation, Any], Verdicts]] = {
    ast.Term: lambda e, q: e.terms(q.field, [q.value], every=True),
    ast.TermSet: lambda e, q: e.terms(q.field, q.values, every=False),
    ast.FullText: Evaluation.full_text,
    ast.Phrase: Evaluation.phrase,
    ast.Bool: Evaluation.boolean,
    ast.Boost: lambda e, q: e.query(q.query),
    ast.MatchAll: lambda e, q: e.all(POSSIBLY_PRESENT),
    ast.MatchNone: lambda e, q: e.all(NOT_PRESENT),
}
