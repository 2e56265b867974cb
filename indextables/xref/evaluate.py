"""What filters can say about a question: absent, perhaps, or nothing.

A filter of a split answers for one key: certainly absent, or perhaps present. From that, bottom up:

* ``NOT_PRESENT``: no row of the split can match. Only this prunes.
* ``POSSIBLY_PRESENT``: the keys asked for may be there.
* ``EXISTS``: the filter cannot decide (a range, a pattern, a NULL test, a negation, a cast, a
  column it was not built with, a value that cannot be written exactly as in the index).

A conjunction is absent when one part is; a disjunction when all parts are, so one undecidable part
keeps it. ``should`` beside ``must`` is optional and never prunes unless a number is demanded.
Negations never prune. ``unevaluated`` reports that some part, at any depth, was not decided.

A phrase is absent where one of its words is. Where the filters hold pairs of neighbouring words, it
is also absent where two of its neighbours are neighbours nowhere (no ``slop``, no prefix).

A question is worded once for a mapping: its columns resolved, its values written as keys and
hashed. The wording then runs over the filters of every cross-reference with that mapping. All
splits of one are judged at once: a verdict is an array, a key is one probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.expr import ast
from indextables.expr.analyzers import analyze
from indextables.expr.keys import (
    key_field,
    key_for_term,
    keys_for_equality,
    neighbour_hashes,
)
from indextables.expr.normalize import included
from indextables.expr.predicate import (
    And,
    Column,
    Compare,
    Constant,
    InSet,
    Like,
    NullTest,
    Or,
    Predicate,
    StringMatch,
    TextMatch,
    Truth,
    Undecided,
)
from indextables.mapping import DocMapping, FieldMapping
from indextables.native import FilterSet, hash_term

NOT_PRESENT = 0
POSSIBLY_PRESENT = 1
EXISTS = 2

Verdicts = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same verdict for every split."""

    verdict: int


@dataclass(frozen=True, slots=True)
class Probe:
    """Do the splits hold every one, or any, of these keys?"""

    hashes: NDArray[np.uint64]
    every: bool


@dataclass(frozen=True, slots=True)
class Conjunction:
    """The least verdict: absent before possible before undecided."""

    parts: tuple[Wording, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Absent where fewer parts than needed are possible."""

    parts: tuple[Wording, ...]
    needed: int = 1


Wording: TypeAlias = Fixed | Probe | Conjunction | Disjunction


def judge(wording: Wording, filters: FilterSet, mask: NDArray[np.bool_] | None = None) -> Verdicts:
    """One verdict for each filter; those outside the mask may say anything."""
    if isinstance(wording, Probe):
        hashes = wording.hashes
        if len(hashes) == 1:
            found = filters.probe(int(hashes[0]), mask)
        elif wording.every:
            found = filters.probe_all(hashes, mask)
        else:
            found = filters.probe_any(hashes, mask)
        return found.view(np.uint8)
    if isinstance(wording, Fixed):
        return np.full(len(filters), wording.verdict, np.uint8)
    parts = [judge(part, filters, mask) for part in wording.parts]
    if isinstance(wording, Conjunction):
        return reduce(np.minimum, parts)
    possible = np.sum([p != NOT_PRESENT for p in parts], axis=0)
    undecided = np.all([p == EXISTS for p in parts], axis=0)
    verdicts = np.where(undecided, EXISTS, POSSIBLY_PRESENT).astype(np.uint8)
    verdicts[possible < wording.needed] = NOT_PRESENT
    return verdicts


def may_prune(
    predicate: Predicate, is_telling: Callable[[Column], bool] = lambda column: True
) -> bool:
    """Could any filter say ``NOT_PRESENT``? What ``Question.predicate`` leaves undecided cannot.

    ``is_telling`` says of which columns it is worth asking for a value.
    """
    match predicate:
        case Compare() | InSet():
            asked = included(predicate) is not None and not predicate.column.is_partition
            return asked and is_telling(predicate.column)
        case TextMatch():
            return not predicate.negated
        case And():
            return any(may_prune(child, is_telling) for child in predicate.children)
        case Or():
            return all(may_prune(child, is_telling) for child in predicate.children)
        case Constant():
            return predicate.truth is not Truth.TRUE
        case NullTest() | StringMatch() | Like() | Undecided():
            return False
        case _:
            assert_never(predicate)


@dataclass
class Question:
    """Words predicates and queries for the splits of one mapping."""

    mapping: DocMapping
    schema: pa.Schema
    hash_kind: str
    neighbours: frozenset[str] = frozenset()
    """Columns of which neighbouring words are keys too."""
    unevaluated: bool = False
    columns: dict[str, None] = field(default_factory=dict)

    def undecided(self) -> Wording:
        self.unevaluated = True
        return Fixed(EXISTS)

    def probe(self, name: str, keys: list[str], *, every: bool) -> Wording:
        """Do the splits hold every one, or any, of these keys of a field?"""
        self.columns[name.split(".")[0]] = None
        hashes = np.array([hash_term(name, key, self.hash_kind) for key in keys], np.uint64)
        return Probe(hashes, every)

    # -- predicates -----------------------------------------------------------------------------

    def predicate(self, predicate: Predicate) -> Wording:
        """The wording of a bound predicate."""
        match predicate:
            case And():
                return Conjunction(tuple(self.predicate(p) for p in predicate.children))
            case Or():
                return Disjunction(tuple(self.predicate(p) for p in predicate.children))
            case Constant():
                true = predicate.truth is Truth.TRUE
                return Fixed(POSSIBLY_PRESENT if true else NOT_PRESENT)
            case Compare() | InSet():
                values = included(predicate)
                return self.undecided() if values is None else self._equal(predicate.column, values)
            case TextMatch():
                return self.undecided() if predicate.negated else self.query(predicate.query)
            case NullTest() | StringMatch() | Like() | Undecided():
                return self.undecided()
            case _:
                assert_never(predicate)

    def _equal(self, column: Column, values: tuple[Any, ...]) -> Wording:
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
        return Disjunction(tuple(self.probe(mapping.name, k, every=True) for k in keys if k))

    def _type_of(self, name: str) -> pa.DataType | None:
        index = self.schema.get_field_index(name)
        return self.schema.field(index).type if index >= 0 else None

    # -- queries --------------------------------------------------------------------------------

    def query(self, query: ast.Query) -> Wording:
        """The wording of a query AST."""
        match query:
            case ast.Term():
                return self.terms(query.field, [query.value], every=True)
            case ast.TermSet():
                return self.terms(query.field, query.values, every=False)
            case ast.FullText():
                return self.full_text(query)
            case ast.Phrase():
                return self.phrase(query)
            case ast.Bool():
                return self.boolean(query)
            case ast.Boost():
                return self.query(query.query)
            case ast.MatchAll():
                return Fixed(POSSIBLY_PRESENT)
            case ast.MatchNone():
                return Fixed(NOT_PRESENT)
            case ast.Range() | ast.Wildcard() | ast.Regex() | ast.Fuzzy() | ast.Exists():
                return self.undecided()
            case _:
                assert_never(query)

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

    def terms(self, name: str, values: Iterable[Any], *, every: bool) -> Wording:
        known = self._field(name)
        if known is None:
            return self.undecided()
        mapping, dtype, path = known
        keys = [key_for_term(mapping, dtype, value, path) for value in values]
        if not keys or any(k is None for k in keys):
            return self.undecided()
        return self.probe(key_field(mapping.name, path), [k for k in keys if k], every=every)

    def full_text(self, query: ast.FullText) -> Wording:
        known = self._field(query.field)
        if known is None or known[0].type != "text":
            return self.undecided()
        mapping = known[0]
        tokens = analyze(mapping.tokenizer or "default", query.text, mapping.token_length)
        return self.terms(query.field, dict.fromkeys(tokens), every=query.operator == "and")

    def phrase(self, query: ast.Phrase) -> Wording:
        terms = query.terms[:-1] if query.prefix else query.terms
        if query.prefix:
            self.unevaluated = True
        words = self.terms(query.field, dict.fromkeys(terms), every=True)
        if not isinstance(words, Probe) or query.slop or len(terms) < 2:
            return words
        pairs = self._pairs(query.field, terms)
        return words if pairs is None else Conjunction((words, pairs))

    def _pairs(self, name: str, terms: Sequence[str]) -> Wording | None:
        """Do the splits hold each two neighbours of a phrase as neighbours?"""
        mapping = self.mapping.get(name)
        if mapping is None or mapping.name not in self.neighbours:
            return None
        words = [hash_term(mapping.name, term, self.hash_kind) for term in terms]
        hashes = np.array(words, np.uint64)
        return Probe(neighbour_hashes(hashes[:-1], hashes[1:]), every=True)

    def boolean(self, query: ast.Bool) -> Wording:
        parts = [self.query(q) for q in query.must]
        needed = query.required_should
        if query.should and needed > 0:
            parts.append(Disjunction(tuple(self.query(q) for q in query.should), needed))
        if query.must_not or (query.should and needed == 0):
            self.unevaluated = True
        return Conjunction(tuple(parts)) if parts else Fixed(POSSIBLY_PRESENT)
