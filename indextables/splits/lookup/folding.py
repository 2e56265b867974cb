"""Deciding what is the same in every row: partition columns and columns a split does not have."""

from __future__ import annotations

import pyarrow as pa

from indextables.expr.evaluate import evaluate
from indextables.expr.predicate import (
    FALSE,
    NULL,
    TRUE,
    And,
    Compare,
    InSet,
    NullTest,
    Or,
    Predicate,
    StringMatch,
    conjunction,
    disjunction,
)
from indextables.splits.read.columns import Shaper


def fold(predicate: Predicate, shaper: Shaper) -> Predicate:
    """The predicate with such leaves replaced by what they are."""
    if isinstance(predicate, And):
        return conjunction([fold(c, shaper) for c in predicate.children])
    if isinstance(predicate, Or):
        return disjunction([fold(c, shaper) for c in predicate.children])
    if isinstance(predicate, Compare | InSet | NullTest | StringMatch):
        field = shaper.field(predicate.column.root)
        if shaper.stored_name(field.name) is None:
            one = pa.RecordBatch.from_arrays([shaper.constant(field, 1)], schema=pa.schema([field]))
            truth = evaluate(predicate, one)[0].as_py()
            return NULL if truth is None else TRUE if truth else FALSE
    return predicate
