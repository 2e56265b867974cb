"""The bound predicate: what a filter means once it knows its table.

A predicate is three-valued, as in SQL: TRUE, FALSE or NULL for each row; a row matches when it is
TRUE. The tree is in negation normal form: NOT stands only at the leaves, as the opposite operator
or as ``negated=True``, so no later stage ever negates a verdict. ``And``/``Or`` are flat and have
at least two children.

Literals are physical and already of the column's type: integers for every integer type, days for
DATE, microseconds (UTC, or wall clock for TIMESTAMP_NTZ) for timestamps, the unscaled integer at
the column's scale for decimals, ``float`` for FLOAT and DOUBLE, ``bool``, ``str``, ``bytes``.
A NULL literal never reaches a leaf. NaN may: NaN = NaN, and NaN is greater than every number.
``-0.0`` equals ``0.0``.

``Undecided`` is a leaf that only Spark can decide (a cast, a function, a subquery). It is never
pruned by and always stays in the residual.

Code that looks at the kind of a node does so with ``match``, names every kind of one of the unions
below and ends with ``assert_never``. A kind that was forgotten then fails mypy and
``tests/expr/test_expr_visitors.py``, wherever it was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias, assert_never

import pyarrow as pa

from indextables.expr.ast import Query, query_fields
from indextables.expr.like import LikePattern, Wild

Literal: TypeAlias = bool | int | float | str | bytes


class Op(Enum):
    """A comparison operator."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def opposite(self) -> Op:
        """The operator that is TRUE exactly where this one is FALSE."""
        return _OPPOSITE[self]


_OPPOSITE = {
    Op.EQ: Op.NE,
    Op.NE: Op.EQ,
    Op.LT: Op.GE,
    Op.GE: Op.LT,
    Op.GT: Op.LE,
    Op.LE: Op.GT,
}


class Truth(Enum):
    """A constant outcome."""

    TRUE = "true"
    FALSE = "false"
    NULL = "null"


class Match(Enum):
    """Where in the value a text is looked for."""

    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class Column:
    """A resolved column or nested field; ``path[0]`` is the column, the rest struct fields.

    The path is that of the files; ``called`` is the user's, where the two may differ.
    """

    path: tuple[str, ...]
    dtype: pa.DataType
    is_partition: bool = False
    called: tuple[str, ...] = field(default=(), compare=False)

    @property
    def root(self) -> str:
        return self.path[0]

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def label(self) -> str:
        """The column as its user knows it."""
        return ".".join(self.called or self.path)

    def __repr__(self) -> str:
        return self.label


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE or NULL for every row."""

    truth: Truth

    def __repr__(self) -> str:
        return self.truth.name


@dataclass(frozen=True, slots=True)
class Compare:
    """``column op value``; NULL where the column is NULL."""

    column: Column
    op: Op
    value: Literal

    def __repr__(self) -> str:
        return f"{self.column!r} {self.op.value} {self.value!r}"


@dataclass(frozen=True, slots=True)
class InSet:
    """``column [NOT] IN values``; values are distinct, sorted, never NULL, never empty."""

    column: Column
    values: tuple[Any, ...]
    negated: bool = False

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.values[:8])) + (", ..." if len(self.values) > 8 else "")
        return f"{self.column!r} {'NOT IN' if self.negated else 'IN'} ({shown})"


@dataclass(frozen=True, slots=True)
class NullTest:
    """``column IS NULL`` or ``IS NOT NULL``; never NULL itself."""

    column: Column
    is_null: bool

    def __repr__(self) -> str:
        return f"{self.column!r} IS {'' if self.is_null else 'NOT '}NULL"


@dataclass(frozen=True, slots=True)
class StringMatch:
    """A text at the start, at the end or anywhere; it is never empty."""

    column: Column
    kind: Match
    text: str
    negated: bool = False

    @property
    def pattern(self) -> LikePattern:
        """The same test as LIKE."""
        before = () if self.kind is Match.PREFIX else (Wild.RUN,)
        return LikePattern(
            (*before, self.text, *(() if self.kind is Match.SUFFIX else (Wild.RUN,)))
        )

    def __repr__(self) -> str:
        word = f"NOT {self.kind.value}" if self.negated else self.kind.value
        return f"{self.column!r} {word} {self.text!r}"


@dataclass(frozen=True, slots=True)
class Like:
    """``column [NOT] LIKE pattern`` where no comparison and no ``StringMatch`` says the same."""

    column: Column
    pattern: LikePattern
    negated: bool = False

    def __repr__(self) -> str:
        return f"{self.column!r} {'NOT like' if self.negated else 'like'} {str(self.pattern)!r}"


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A full-text query over one or more fields; ``source`` is the user's text.

    ``verb`` is ``textsearch``, ``fieldmatch`` or ``indexquery``. A text query is never NULL:
    a row without a value in the field simply does not match.
    """

    query: Query
    fields: tuple[str, ...]
    source: str
    verb: str = "indexquery"
    negated: bool = False

    def __repr__(self) -> str:
        word = f"NOT {self.verb}" if self.negated else self.verb
        return f"{word}({', '.join(self.fields)}: {self.source!r})"


@dataclass(frozen=True, slots=True)
class Undecided:
    """A part only a full engine can decide; ``expression`` is kept for that engine."""

    text: str
    references: tuple[str, ...] = ()
    negated: bool = False
    expression: Any = None

    def __repr__(self) -> str:
        return f"{'NOT ' if self.negated else ''}<{self.text}>"


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of two or more predicates, none of them an ``And``."""

    children: tuple[Predicate, ...]

    def __repr__(self) -> str:
        return "(" + " AND ".join(map(repr, self.children)) + ")"


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of two or more predicates, none of them an ``Or``."""

    children: tuple[Predicate, ...]

    def __repr__(self) -> str:
        return "(" + " OR ".join(map(repr, self.children)) + ")"


ValueTest: TypeAlias = Compare | InSet | StringMatch | Like
"""Tests of one column that are NULL where it is NULL."""
ColumnTest: TypeAlias = ValueTest | NullTest
Leaf: TypeAlias = ColumnTest | TextMatch | Undecided | Constant
Predicate: TypeAlias = And | Or | Leaf

TRUE = Constant(Truth.TRUE)
FALSE = Constant(Truth.FALSE)
NULL = Constant(Truth.NULL)


def conjunction(parts: list[Predicate]) -> Predicate:
    """AND of the parts, flattened; TRUE parts vanish, one FALSE part decides."""
    return _joined(parts, And, TRUE, FALSE)


def disjunction(parts: list[Predicate]) -> Predicate:
    """OR of the parts, flattened; FALSE parts vanish, one TRUE part decides."""
    return _joined(parts, Or, FALSE, TRUE)


def _joined(
    parts: list[Predicate], kind: type[And | Or], neutral: Constant, decisive: Constant
) -> Predicate:
    flat: list[Predicate] = []
    for part in parts:
        flat.extend(part.children if isinstance(part, kind) else (part,))
    kept = [p for p in dict.fromkeys(flat) if p != neutral]
    if decisive in kept:
        return decisive
    if len(kept) < 2:
        return kept[0] if kept else neutral
    return kind(tuple(kept))


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The parts of a top-level AND; TRUE has none."""
    if isinstance(predicate, And):
        return predicate.children
    return () if predicate == TRUE else (predicate,)


def leaves(predicate: Predicate) -> Iterator[Leaf]:
    """Every leaf, left to right."""
    if isinstance(predicate, And | Or):
        for child in predicate.children:
            yield from leaves(child)
    else:
        yield predicate


def with_leaves(predicate: Predicate, change: Callable[[Leaf], Predicate]) -> Predicate:
    """The predicate with its leaves, left to right, replaced and what follows simplified."""
    if isinstance(predicate, And):
        return conjunction([with_leaves(child, change) for child in predicate.children])
    if isinstance(predicate, Or):
        return disjunction([with_leaves(child, change) for child in predicate.children])
    return change(predicate)


def referenced_columns(predicate: Predicate) -> list[str]:
    """Root columns the predicate reads, in order of first use."""
    named = (name for leaf in leaves(predicate) for name in _named(leaf))
    return list(dict.fromkeys(named))


def _named(leaf: Leaf) -> Iterator[str]:
    match leaf:
        case Compare() | InSet() | StringMatch() | Like() | NullTest():
            yield leaf.column.root
        case TextMatch():
            yield from (name.split(".")[0] for name in (*leaf.fields, *query_fields(leaf.query)))
        case Undecided():
            yield from (name.split(".")[0] for name in leaf.references)
        case Constant():
            pass
        case _:
            assert_never(leaf)
