"""What is left to check in a split: the predicate minus what the log has proved.

For one split a leaf that must match is TRUE and a leaf that cannot match is FALSE (or NULL, which
selects no row either; the tree has no NOT above its leaves). AND and OR then simplify as usual:
``(date = 'a' AND x = 1) OR (date = 'b' AND x = 2)`` is ``x = 1`` in the splits of date ``a``.

Splits with the same verdicts at every leaf share a residual. A plan keeps at most ``MOST_GROUPS``
of them; the splits of rarer combinations share one, simplified by what holds for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from indextables.expr.predicate import FALSE, TRUE, Leaf, Predicate, with_leaves
from indextables.planner.stages.program import LeafNode, Program
from indextables.planner.stages.verdict import (
    CANNOT_MATCH,
    MAY_MATCH,
    MUST_MATCH,
    Selection,
    Verdicts,
)

MOST_GROUPS = 16
MOST_LEAVES = 32
SMALL_CODES = 1 << 16


@dataclass(frozen=True, slots=True)
class ResidualGroup:
    """Splits (positions in the plan) that share what is left to check."""

    predicate: Predicate
    positions: npt.NDArray[np.int64]


def simplified(predicate: Predicate, verdicts: Iterator[int]) -> Predicate:
    """The predicate with its leaves, left to right, replaced where they are decided."""

    def decided(leaf: Leaf) -> Predicate:
        verdict = next(verdicts)
        return FALSE if verdict == CANNOT_MATCH else TRUE if verdict == MUST_MATCH else leaf

    return with_leaves(predicate, decided)


def leaf_verdicts(program: Program, selection: Selection | None) -> list[Verdicts | None]:
    """Each leaf's verdicts over the selection; ``None`` where nothing is known."""
    leaves = [leaf for part in program.parts for leaf in part.leaf_nodes()]
    return [
        leaf.test(selection) if _is_worth_it(leaf, k) else None for k, leaf in enumerate(leaves)
    ]


def _is_worth_it(leaf: LeafNode, number: int) -> bool:
    return leaf.stage != 0 and number < MOST_LEAVES


def shared_residual(program: Program, selection: Selection | None) -> Predicate:
    """What is left to check in any of the selected splits."""
    if not program.parts:
        return TRUE
    uniform = [_uniform(v) for v in leaf_verdicts(program, selection)]
    return simplified(program.predicate, iter(uniform))


def _uniform(verdicts: Verdicts | None) -> int:
    if verdicts is None or not len(verdicts):
        return MAY_MATCH
    first = int(verdicts[0])
    return first if first == MAY_MATCH or bool((verdicts == first).all()) else MAY_MATCH


def residual_groups(program: Program, selection: Selection) -> list[ResidualGroup]:
    """The selected splits by residual, the most frequent first."""
    columns = leaf_verdicts(program, selection)
    known = [v for v in columns if v is not None]
    if not known or not len(selection):
        predicate = shared_residual(program, selection)
        return [ResidualGroup(predicate, np.arange(len(selection)))] if len(selection) else []
    codes = np.zeros(len(selection), np.uint64)
    for shift, verdicts in enumerate(known):
        codes |= verdicts.astype(np.uint64) << np.uint64(2 * shift)
    groups: dict[Predicate, list[npt.NDArray[np.int64]]] = {}
    for positions in _by_code(codes):
        uniform = [_uniform(None if v is None else v[positions]) for v in columns]
        predicate = simplified(program.predicate, iter(uniform))
        groups.setdefault(predicate, []).append(positions)
    return [ResidualGroup(p, np.sort(np.concatenate(found))) for p, found in groups.items()]


def _by_code(codes: npt.NDArray[np.uint64]) -> list[npt.NDArray[np.int64]]:
    """Positions by code, at most ``MOST_GROUPS`` lists; the last takes all rarer codes."""
    if bool((codes == codes[0]).all()):
        return [np.arange(len(codes))]
    inverse, counts = _numbered(codes)
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.minimum(np.arange(len(order)), MOST_GROUPS - 1)
    ranked = rank[inverse]
    return [np.flatnonzero(ranked == k) for k in range(min(len(order), MOST_GROUPS))]


def _numbered(codes: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The distinct codes numbered: the number of each element, and how often each occurs."""
    if int(codes.max()) >= SMALL_CODES:
        _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
        return inverse, counts
    found = np.bincount(codes.astype(np.int64))
    numbers = np.cumsum(found > 0) - 1
    return numbers[codes.astype(np.int64)], found[found > 0]
