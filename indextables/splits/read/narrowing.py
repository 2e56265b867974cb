"""Long lists of values, cut down to those that one split may hold.

``column IN (...)`` with very many values comes from joins and look-ups. A split has a filter over
the keys of its columns; whatever the filter rules out is in no row of the split, so it need not be
looked for there. What is left is the values of the split and about one in 256 of the others.

The keys of a list are spelled and hashed once for all splits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.expr.keys import HASH_KIND, canonical_text
from indextables.expr.predicate import FALSE, InSet, Leaf, Predicate, leaves, with_leaves
from indextables.lru import LRU
from indextables.mapping import FieldMapping
from indextables.native import hash_terms
from indextables.splits.read.reader import SplitReader

MANY = 64
_hashes: LRU[Any, tuple[InSet, NDArray[np.uint64]]] = LRU(8)


def narrowed_lists(predicate: Predicate, reader: SplitReader) -> Predicate:
    """The predicate with long lists cut down to what the split may hold."""
    if reader.is_foreign or not any(map(_is_long, leaves(predicate))):
        return predicate
    return with_leaves(predicate, lambda leaf: _narrowed(leaf, reader))


def _is_long(leaf: Leaf) -> bool:
    return isinstance(leaf, InSet) and not leaf.negated and len(leaf.values) >= MANY


def _narrowed(leaf: Leaf, reader: SplitReader) -> Predicate:
    if not isinstance(leaf, InSet) or not _is_long(leaf) or not _is_keyed(leaf, reader):
        return leaf
    keys = reader.key_filter
    if keys is None:
        return leaf
    held = np.flatnonzero(keys.contains_many(_hashes_of(leaf)))
    if len(held) == len(leaf.values):
        return leaf
    if len(held) == 0:
        return FALSE
    return replace(leaf, values=tuple(leaf.values[i] for i in held.tolist()))


def _is_keyed(leaf: InSet, reader: SplitReader) -> bool:
    """Is every value of the column in the split's filter, spelled as it is here?"""
    column, xref = leaf.column, reader.info.xref
    field = reader.info.field(column.root)
    if len(column.path) > 1 or field is None or xref.get("hash") != HASH_KIND:
        return False
    listed = next((f for f in xref.get("fields", ()) if f.get("name") == field.column), None)
    if listed is None or reader.info.schema.field(field.column).type != column.dtype:
        return False
    mapping = FieldMapping.from_dict(listed)
    t = pa.types
    if t.is_string(column.dtype):
        return mapping.is_exact_text and field.complete
    return mapping.type in ("i64", "datetime") and not t.is_decimal(column.dtype)


def _hashes_of(leaf: InSet) -> NDArray[np.uint64]:
    """The hashes of a list, remembered by the list itself: to compare two would cost as much."""
    kept = _hashes.get((id(leaf.values), leaf.column.name))
    if kept is not None and kept[0].values is leaf.values:
        return kept[1]
    texts = [canonical_text(leaf.column.dtype, value) for value in leaf.values]
    made: NDArray[np.uint64] = hash_terms(leaf.column.root, texts, HASH_KIND)
    _hashes.put((id(leaf.values), leaf.column.name), (leaf, made))
    return made
