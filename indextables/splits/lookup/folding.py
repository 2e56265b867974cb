"""Deciding what is the same in every row: partition columns and columns a split does not have."""

from __future__ import annotations

import pyarrow as pa

from indextables.expr.evaluate import evaluate
from indextables.expr.predicate import (
    FALSE,
    NULL,
    TRUE,
    ColumnTest,
    Leaf,
    Predicate,
    with_leaves,
)
from indextables.splits.read.columns import Shaper


def fold(predicate: Predicate, shaper: Shaper) -> Predicate:
    """The predicate with such leaves replaced by what they are."""
    return with_leaves(predicate, lambda leaf: _folded(leaf, shaper))


def _folded(leaf: Leaf, shaper: Shaper) -> Predicate:
    if not isinstance(leaf, ColumnTest):
        return leaf
    field = shaper.field(leaf.column.root)
    if shaper.stored_name(field.name) is not None:
        return leaf
    one = pa.RecordBatch.from_arrays([shaper.constant(field, 1)], schema=pa.schema([field]))
    truth = evaluate(leaf, one)[0].as_py()
    return NULL if truth is None else TRUE if truth else FALSE
