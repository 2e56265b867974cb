"""Predicates as people read them, and which stage can use which leaf.

Physical literals are printed as what they stand for: days as a date, microseconds as a moment,
unscaled integers at their column's scale.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any, assert_never

import pyarrow as pa

from indextables.expr.predicate import (
    And,
    Column,
    ColumnTest,
    Compare,
    Constant,
    InSet,
    Leaf,
    Like,
    Match,
    NullTest,
    Or,
    Predicate,
    StringMatch,
    TextMatch,
    Undecided,
)
from indextables.mapping import DocMapping
from indextables.planner.stages.ranges import ranges_of
from indextables.printable import on_one_line
from indextables.xref.evaluate import may_prune

MOST_VALUES = 6
_WORDS = {
    Match.PREFIX: "STARTS WITH",
    Match.SUFFIX: "ENDS WITH",
    Match.CONTAINS: "CONTAINS",
}
_EPOCH = datetime.datetime(1970, 1, 1)


def literal_text(value: Any, dtype: pa.DataType) -> str:
    """A physical literal in the column's own terms."""
    t = pa.types
    try:
        if t.is_date(dtype):
            return (_EPOCH + datetime.timedelta(days=value)).date().isoformat()
        if t.is_timestamp(dtype):
            moment = (_EPOCH + datetime.timedelta(microseconds=value)).isoformat(sep=" ")
            return moment if dtype.tz is None else f"{moment}Z"
    except OverflowError:
        return str(value)
    if t.is_decimal(dtype):
        return format(Decimal(value).scaleb(-dtype.scale), "f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"X'{value.hex().upper()}'" if isinstance(value, bytes) else str(value)


def leaf_text(leaf: Leaf) -> str:
    """One leaf as SQL-like text, on one line whatever its values hold."""
    return on_one_line(_leaf_text(leaf))


def _leaf_text(leaf: Leaf) -> str:
    match leaf:
        case Compare():
            value = literal_text(leaf.value, leaf.column.dtype)
            return f"{leaf.column.label} {leaf.op.value} {value}"
        case InSet():
            shown = [literal_text(v, leaf.column.dtype) for v in leaf.values[:MOST_VALUES]]
            more = len(leaf.values) - len(shown)
            listed = ", ".join(shown) + (f", {more:,} more" if more else "")
            return f"{leaf.column.label} {'NOT IN' if leaf.negated else 'IN'} ({listed})"
        case StringMatch():
            word = f"NOT {_WORDS[leaf.kind]}" if leaf.negated else _WORDS[leaf.kind]
            return f"{leaf.column.label} {word} {literal_text(leaf.text, leaf.column.dtype)}"
        case Like():
            word = "NOT LIKE" if leaf.negated else "LIKE"
            return (
                f"{leaf.column.label} {word} {literal_text(str(leaf.pattern), leaf.column.dtype)}"
            )
        case NullTest() | TextMatch() | Undecided() | Constant():
            return repr(leaf)
        case _:
            assert_never(leaf)


def predicate_text(predicate: Predicate) -> str:
    """A predicate on one line."""
    if isinstance(predicate, And | Or):
        word = " AND " if isinstance(predicate, And) else " OR "
        return "(" + word.join(predicate_text(child) for child in predicate.children) + ")"
    return leaf_text(predicate)


def usable_stages(leaf: Leaf, mapping: DocMapping | None = None) -> tuple[str, ...]:
    """The stages that can use a leaf, in order."""
    match leaf:
        case Compare() | InSet() | NullTest() | StringMatch() | Like():
            return _column_stages(leaf, mapping)
        case TextMatch():
            return ("search",) if leaf.negated else ("xref", "search")
        case Undecided():
            return ("residual",)
        case Constant():
            return ("constant",)
        case _:
            assert_never(leaf)


def _column_stages(leaf: ColumnTest, mapping: DocMapping | None) -> tuple[str, ...]:
    if leaf.column.is_partition:
        return ("partition",)
    has_bounds = isinstance(leaf, NullTest) or ranges_of(leaf) is not None
    stages = ["min/max"] if has_bounds else []
    if may_prune(leaf) and _is_probed(leaf.column, mapping):
        stages.append("xref")
    return (*stages, "search")


def _is_probed(column: Column, mapping: DocMapping | None) -> bool:
    if len(column.path) > 1 or mapping is None:
        return len(column.path) == 1
    found = mapping.get(column.root)
    return found is not None and found.indexed and not found.is_tokenized


def size_text(size: int) -> str:
    """Bytes with a unit."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":
            return (
                f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
            )
        amount /= 1000
    raise AssertionError


def time_text(seconds: float) -> str:
    """Milliseconds, as precise as they are worth."""
    return f"{seconds * 1000:.3f} ms" if seconds < 0.01 else f"{seconds * 1000:.1f} ms"
