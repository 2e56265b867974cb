"""Questions that tables of codes answer: asked of the few values, looked up for all rows.

A comparison, pattern or null test on one coded column is evaluated over its distinct values; the
outcome for every row is one look-up. AND and OR of such tests are AND and OR of masks. This is
exact, needs no index and costs the same whatever the share of rows that match.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.buffers import flags_of
from indextables.expr.evaluate import evaluate
from indextables.expr.predicate import (
    And,
    ColumnTest,
    Constant,
    Or,
    Predicate,
    Truth,
    conjunction,
    conjuncts,
    leaves,
    referenced_columns,
)
from indextables.splits.lookup.codes import Codes

Mask = NDArray[np.bool_]
FEW_RUNS = 12


def is_coded(predicate: Predicate, reader: Any) -> bool:
    """Is every leaf a test of one coded column?"""
    return all(
        isinstance(leaf, Constant)
        or (
            isinstance(leaf, ColumnTest)
            and len(leaf.column.path) == 1
            and reader.has_codes(leaf.column.root, leaf.column.dtype)
        )
        for leaf in leaves(predicate)
    )


def split_coded(predicate: Predicate, reader: Any) -> tuple[Predicate, Predicate]:
    """(conjunction of the coded conjuncts, of the others)."""
    coded: list[Predicate] = []
    others: list[Predicate] = []
    for part in conjuncts(predicate):
        (coded if is_coded(part, reader) else others).append(part)
    return conjunction(coded), conjunction(others)


def coded_mask(predicate: Predicate, reader: Any) -> Mask:
    """For each row whether a coded predicate is TRUE."""
    reader.load_codes(referenced_columns(predicate))
    return _mask(predicate, reader)


def _mask(predicate: Predicate, reader: Any) -> Mask:
    if isinstance(predicate, And | Or):
        join = np.logical_and if isinstance(predicate, And) else np.logical_or
        found = _mask(predicate.children[0], reader)
        for child in predicate.children[1:]:
            found = join(found, _mask(child, reader))
        return found
    if isinstance(predicate, Constant):
        return np.full(reader.num_rows, predicate.truth is Truth.TRUE)
    assert isinstance(predicate, ColumnTest)
    column = predicate.column.root
    codes: Codes = reader.codes(column)
    held = pa.concat_arrays([pa.nulls(1, codes.values.type), codes.values])
    batch = pa.record_batch({column: held})
    return look_up(flags_of(evaluate(predicate, batch)), codes.codes)


def look_up(truth: Mask, codes: NDArray[Any]) -> Mask:
    """The truth of each code: comparisons of whole vectors where runs of TRUE are few."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], truth, [False]]))).tolist()
    runs = list(zip(edges[::2], edges[1::2], strict=True))
    if len(runs) > FEW_RUNS:
        return truth.take(codes)
    found: Mask = np.zeros(len(codes), np.bool_)
    for first, stop in runs:
        inside = codes >= codes.dtype.type(first)
        if stop < len(truth):
            inside &= codes < codes.dtype.type(stop)
        found |= inside
    return found


def coded_rows(predicate: Predicate, reader: Any) -> NDArray[np.uint32]:
    """The rows where a coded predicate is TRUE."""
    return np.flatnonzero(coded_mask(predicate, reader)).astype(np.uint32)
