"""How many documents of a table hold a term, according to its key maps.

A count is exact while it is at most 200 in every map, every live split is covered once and no
split of a map is gone. Otherwise it is an estimate within a fifth or so of the covered splits, or
unknown where a column's keys are not counted. The term is given as it is keyed (``expr/keys.py``):
a token of a tokenised column, the canonical text of any other value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from indextables.expr.keys import HASH_KIND
from indextables.log.read.view import SnapshotView
from indextables.native import hash_term
from indextables.splits.format.keymap import KeyMap
from indextables.splits.format.keysets import EXACT, frequencies
from indextables.storage.base import Store
from indextables.storage.pool import in_order, workers
from indextables.xref.keymaps.catalog import Catalog, grouped, places_of
from indextables.xref.keymaps.router import ask


@dataclass(frozen=True, slots=True)
class Frequency:
    """Documents that hold a term; ``None`` where a map does not know."""

    documents: int | None
    exact: bool
    covered: int
    total: int


def document_frequency(
    store: Store, snapshot: SnapshotView, field: str, term: str, *, most_bytes: int = 1 << 30
) -> Frequency:
    """How many documents hold a term, as far as key maps cover the snapshot."""
    key = hash_term(field, term, HASH_KIND)
    catalog = Catalog(store, most_bytes)
    groups, stray = grouped(snapshot.keymaps)
    opened = catalog.open_all([group.first for group in groups])
    both = [(g, f) for g, f in zip(groups, opened, strict=True) if isinstance(f, KeyMap)]
    times = np.zeros(snapshot.num_files, np.int64)
    total: int | None = 0
    exact = len(both) == len(opened) and not stray
    said = in_order(lambda one: ask(catalog, one[0], [key])[key], both, workers(store))
    for (_, found), answer in zip(both, said, strict=True):
        places = places_of(snapshot, found)
        times[places[places >= 0]] += 1
        if answer is not None:
            code = answer[0]
            exact &= code <= EXACT and bool((places >= 0).all())
            known = int(frequencies(np.array([code], np.uint8))[0])
            total = None if total is None or known == 0 else total + known
    exact &= total is not None and bool((times == 1).all())
    return Frequency(total, exact, int((times > 0).sum()), snapshot.num_files)
