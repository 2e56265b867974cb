"""Is it worth asking which splits hold a value, when they are few?

A handful of splits is opened side by side, in the time of one trip. To ask a key map or a
cross-reference first takes a trip too, so it pays only if splits are likely to be dropped. A column
of few values (a level, a status) has all of them in every split, and its statistics show it: the
splits have the same least and greatest value. A column of many values, in whatever order, has other
bounds in each split.

This decides about costs alone: a column that is wrongly taken for telling costs a trip, one that
is wrongly taken for common costs opening splits that do not match.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indextables.config import Config
from indextables.expr.predicate import Column, Predicate
from indextables.log.read.view import SnapshotView
from indextables.storage.base import Store
from indextables.storage.pool import workers
from indextables.xref.evaluate import may_prune

SURE_CHARACTERS = 24
"""Longer bounds may have been cut, and then say nothing about what they share."""


def is_worth_asking(
    store: Store,
    config: Config,
    snapshot: SnapshotView,
    candidates: NDArray[np.int64],
    predicate: Predicate,
) -> bool:
    """Could asking drop a split, and is that likely?"""
    if not 1 < len(candidates) <= workers(store, config["read.remoteParallelism"]):
        return may_prune(predicate)
    files = [snapshot.file(int(number)) for number in candidates]

    def is_telling(column: Column) -> bool:
        if len(column.path) > 1:
            return True
        name = column.root
        bounds = {((f.min_values or {}).get(name), (f.max_values or {}).get(name)) for f in files}
        if len(bounds) > 1:
            return True
        ends = next(iter(bounds), (None, None))
        return any(end is None or len(end) > SURE_CHARACTERS for end in ends)

    return may_prune(predicate, is_telling)
