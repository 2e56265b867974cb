"""From a filter to what an index can answer.

The filter is a conjunction; every conjunct over one plain column of an indexable kind adds to what
is known of that column, and the parts fold into one predicate for each column: ranges into the
narrower range, lists into their intersection, a list and a range into the values inside. Nothing
can be left over is ``Nothing``.

Understood: ``=`` and ``<=>`` (``Exact``, or ``IsNull``), IN (``In``, sorted, once each; of one
value ``Exact``), comparisons with open and closed ends and BETWEEN (``Range``), prefixes (the range
up to the next prefix), IS NULL, and OR of equalities and lists over one column. NOT, ``!=``,
functions, casts, columns against columns and nested fields are left to the residual, and so is IS
NOT NULL, which alone is no reason to open an index. The residual is always checked again on the
rows that were found, so a predicate here may keep too much, never too little.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from indextables.expr.predicate import (
    And,
    Column,
    ColumnTest,
    Compare,
    Constant,
    InSet,
    Like,
    NullTest,
    Op,
    Or,
    Predicate,
    StringMatch,
    TextMatch,
    Undecided,
    conjuncts,
    leaves,
)
from indextables.splits.lookup.colindex.values import Key, Kind, key_of, kind_of

LARGEST_SINGLE = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Exact:
    """The column equals one value."""

    key: Key


@dataclass(frozen=True, slots=True)
class In:
    """The column is one of some values, which are sorted and distinct."""

    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The column lies between two ends; ``None`` is no end. Never matches Null."""

    low: Key | None = None
    high: Key | None = None
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column is Null."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No row can match."""


IndexPredicate: TypeAlias = Exact | In | Range | IsNull | Nothing


@dataclass(frozen=True, slots=True)
class IndexableFilter:
    """What an index of ``column`` is asked."""

    column: str
    kind: Kind
    predicate: IndexPredicate

    @property
    def text(self) -> str:
        """The question in words, the same for equal questions; part of cache keys."""
        return f"{self.kind.name} {self.predicate!r}"


def extract_indexable(predicate: Predicate) -> list[IndexableFilter]:
    """What indexes could answer of a filter, one entry for each column, in order of first use."""
    found: dict[str, IndexableFilter] = {}
    for part in conjuncts(predicate):
        one = _indexable(part)
        if one is None:
            continue
        have = found.get(one.column)
        merged = one.predicate if have is None else intersect(have.predicate, one.predicate)
        found[one.column] = IndexableFilter(one.column, one.kind, merged)
    return list(found.values())


class FilterAnalyzer:
    """The seed's name for ``extract_indexable``."""

    extract_indexable = staticmethod(extract_indexable)


def _indexable(part: Predicate) -> IndexableFilter | None:
    column = _only_column(part)
    kind = None if column is None else kind_of(column.dtype)
    if column is None or kind is None:
        return None
    if pa.types.is_float32(column.dtype) and not all(map(_is_single, leaves(part))):
        return None
    try:
        found = _asked(part, kind)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if found is None else IndexableFilter(column.name, kind, found)


def _only_column(part: Predicate) -> Column | None:
    found = list(leaves(part))
    columns = {leaf.column for leaf in found if isinstance(leaf, ColumnTest)}
    if len(columns) != 1 or not all(isinstance(leaf, ColumnTest) for leaf in found):
        return None
    column = columns.pop()
    if len(column.path) > 1 or column.is_partition:
        return None
    return column


def _is_single(leaf: Any) -> bool:
    """Whether single precision holds the literals of a leaf exactly."""
    values = getattr(leaf, "values", None) or [getattr(leaf, "value", 0.0)]
    return all(v != v or abs(v) == math.inf or _as_single(v) == v for v in values)


def _as_single(value: float) -> float:
    """A number in single precision; one beyond it is no single at all."""
    return float(np.float32(value)) if abs(value) <= LARGEST_SINGLE else math.nan


def _asked(part: Predicate, kind: Kind) -> IndexPredicate | None:
    match part:
        case Compare():
            return _comparison(part.op, key_of(kind, part.value))
        case InSet():
            return None if part.negated else any_of([key_of(kind, v) for v in part.values])
        case NullTest():
            return IsNull() if part.is_null else None
        case StringMatch() | Like():
            prefix = "" if part.negated or kind is not Kind.TEXT else part.pattern.prefix
            return prefix_range(prefix.encode("utf-8", "surrogatepass")) if prefix else None
        case Or():
            return _union(part, kind)
        case And() | TextMatch() | Undecided() | Constant():
            return None
        case _:
            assert_never(part)


def _comparison(op: Op, key: Key) -> IndexPredicate | None:
    if op is Op.EQ:
        return Exact(key)
    if op in (Op.GT, Op.GE):
        return Range(low=key, low_open=op is Op.GT)
    if op in (Op.LT, Op.LE):
        return Range(high=key, high_open=op is Op.LT)
    return None


def prefix_range(prefix: bytes) -> Range:
    """All byte strings that begin with ``prefix``."""
    stem = prefix.rstrip(b"\xff")
    after = stem[:-1] + bytes([stem[-1] + 1]) if stem else None
    return Range(low=prefix, high=after, high_open=after is not None)


def answers_exactly(part: Predicate) -> bool:
    """Whether an index answers a conjunct without keeping too much."""
    return not isinstance(part, Like) and _indexable(part) is not None


def _union(part: Or, kind: Kind) -> IndexPredicate | None:
    keys: list[Key] = []
    for child in part.children:
        found = _asked(child, kind)
        if isinstance(found, Exact):
            keys.append(found.key)
        elif isinstance(found, In):
            keys.extend(found.keys)
        else:
            return None
    return any_of(keys)


def any_of(keys: list[Any]) -> IndexPredicate:
    """One of these values."""
    distinct = tuple(sorted(set(keys)))
    if len(distinct) == 1:
        return Exact(distinct[0])
    return In(distinct) if distinct else Nothing()


def intersect(a: IndexPredicate, b: IndexPredicate) -> IndexPredicate:
    """Both at once."""
    if isinstance(a, Nothing) or isinstance(b, Nothing):
        return Nothing()
    if isinstance(a, IsNull) or isinstance(b, IsNull):
        return a if a == b else Nothing()
    if isinstance(a, Range) and isinstance(b, Range):
        return _narrower(a, b)
    if isinstance(a, Range):
        a, b = b, a
    keys: Any = (a.key,) if isinstance(a, Exact) else getattr(a, "keys", ())
    if isinstance(b, Range):
        start = 0 if b.low is None else (bisect_right if b.low_open else bisect_left)(keys, b.low)
        stop = len(keys)
        if b.high is not None:
            stop = (bisect_left if b.high_open else bisect_right)(keys, b.high)
        return any_of(list(keys[start:stop]))
    others = {b.key} if isinstance(b, Exact) else set(getattr(b, "keys", ()))
    return any_of([k for k in keys if k in others])


def _narrower(a: Range, b: Range) -> IndexPredicate:
    lows: list[Any] = [(r.low, r.low_open) for r in (a, b) if r.low is not None]
    highs: list[Any] = [(r.high, not r.high_open) for r in (a, b) if r.high is not None]
    low, low_open = max(lows, default=(None, False))
    high, closed = min(highs, default=(None, True))
    if low is not None and high is not None:
        if low > high or (low == high and (low_open or not closed)):
            return Nothing()
        if low == high:
            return Exact(low)
    return Range(low, high, low_open, not closed)
