"""What a split keeps for key maps (member ``keys.bin``): its keys, counted where that is known.

The keys are those of the split's filter. Columns that are not asked by equality (floats,
timestamps) are left out unless a setting wants them, and then the mapping in the member does not
name them either, so that a question about them stays undecided instead of being answered with
"absent".

How many documents hold a key is known where the index or a table of the split counted it: unique
values, coded values, words. A count is used only if it is of exactly the column's keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.mapping import DocMapping
from indextables.splits.format.keymap import write_split_keys
from indextables.splits.format.keysets import KeySet, merged, of_one_split
from indextables.types import schema_to_json


@dataclass(frozen=True, slots=True)
class Counted:
    """Ascending, distinct hashes; the documents of each; a row of each, where rows are known."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]
    rows: NDArray[np.uint32] | None = None


def counted_rows(hashes: NDArray[np.uint64], rows: NDArray[np.uint32]) -> Counted:
    """The hash of each row that has one."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    fresh = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    starts = np.flatnonzero(fresh)
    counts = np.diff(starts, append=len(ordered)).astype(np.int64)
    return Counted(ordered[starts], counts, rows[order[starts]])


def counted_terms(hashes: NDArray[np.uint64], counts: NDArray[np.int64]) -> Counted:
    """The hash of each distinct value, and in how many documents the value is."""
    order = np.argsort(hashes, kind="stable")
    return Counted(hashes[order], counts[order])


def asked_by_equality(dtype: pa.DataType) -> bool:
    """Does anybody look for one value of this type?"""
    return not (pa.types.is_floating(dtype) or pa.types.is_timestamp(dtype))


def key_set(parts: Mapping[str, NDArray[np.uint64]], counted: Mapping[str, Counted]) -> KeySet:
    """The keys of all columns as one set."""
    sets = []
    for column, hashes in parts.items():
        known = counted.get(column)
        if known is not None and np.array_equal(known.hashes, hashes):
            found = of_one_split(hashes, known.counts, known.rows)
        else:
            found = of_one_split(hashes)
        sets.append((found, 0, 1))
    return merged(sets)


def keys_member(
    parts: Mapping[str, NDArray[np.uint64]],
    counted: Mapping[str, Counted],
    mapping: DocMapping,
    schema: pa.Schema,
    all_types: bool,
) -> list[Any]:
    """The member, in parts; ``parts`` are the key hashes of each column."""
    chosen = {
        column: hashes
        for column, hashes in parts.items()
        if all_types or asked_by_equality(schema.field(column).type)
    }
    described = DocMapping(tuple(f for f in mapping.fields if f.name in chosen))
    made = write_split_keys(key_set(chosen, counted), described.to_json(), schema_to_json(schema))
    return list(made)
