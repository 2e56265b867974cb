"""A large state of which no manifest is read until files are asked for.

The manifests of a partitioned table hold its files sorted by partition, and the state says the
least and greatest value in each. A query for one partition then needs one manifest of many. So the
snapshot of a large state starts without files: a plan reads the manifests whose bounds overlap its
filter (``Snapshot.within``), anything else reads all of them. Versions after the state are kept as
they are and applied to whatever was read.

Bounds are used only where their order is beyond doubt: in manifests that this release wrote, which
their name says (``manifest-t...``). Other writers compared numbers as texts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import IndexTablesError
from indextables.expr.casting import cast_array, physical_values
from indextables.expr.predicate import And, Column, Compare, InSet, Op, Or, Predicate
from indextables.log.checkpoint.manifest import Bounds, ManifestInfo
from indextables.log.read.columns import Mask, Segment
from indextables.log.read.ledger import Ledger
from indextables.log.read.replay import Tail, append_rows, hide

if TYPE_CHECKING:
    from indextables.log.read.snapshot import Snapshot, VersionActions

LEAST_ENTRIES = 20_000
"""Smaller states are read whole: that costs less than deciding."""
TYPED = "manifest-t"
Columns = tuple[list[Segment], list["Mask | None"]]


@dataclass(frozen=True)
class UnreadState:
    """Where the files of a state are, and what later versions did to them."""

    read: Callable[[Sequence[ManifestInfo]], Columns]
    manifests: tuple[ManifestInfo, ...]
    ledger: Ledger
    changes: tuple[VersionActions, ...] = ()
    narrowed: dict[frozenset[int], Snapshot] = field(default_factory=dict, compare=False)

    def after(self, changes: Sequence[VersionActions]) -> UnreadState:
        """The same state with more versions on top."""
        return replace(self, changes=(*self.changes, *changes), narrowed={})

    def columns(self, manifests: Sequence[ManifestInfo]) -> Columns:
        """The files of some manifests and of the later versions."""
        segments, live = self.read(manifests)
        tail = Tail(self.ledger)
        for version, timestamp_ms, actions in self.changes:
            tail.apply(version, timestamp_ms, actions)
        hide(segments, live, list(tail.touched))
        append_rows(segments, live, list(tail.adds.values()))
        return segments, live


def can_wait(manifests: Sequence[ManifestInfo], partition_columns: Sequence[str]) -> bool:
    """Is there anything to gain from reading only some of the manifests?"""
    if len(manifests) < 2 or not partition_columns:
        return False
    if sum(max(0, info.num_entries) for info in manifests) < LEAST_ENTRIES:
        return False
    return any(is_typed(info) for info in manifests)


def is_typed(info: ManifestInfo) -> bool:
    """Are its bounds compared in the type of their column?"""
    return info.path.rpartition("/")[2].startswith(TYPED)


# -- which manifests a filter needs ----------------------------------------------------------------

_TESTS: dict[Op, Callable[[Any, Any, Any], bool]] = {
    Op.EQ: lambda low, high, v: bool(low <= v <= high),
    Op.LT: lambda low, high, v: bool(operator.lt(low, v)),
    Op.LE: lambda low, high, v: bool(operator.le(low, v)),
    Op.GT: lambda low, high, v: bool(operator.gt(high, v)),
    Op.GE: lambda low, high, v: bool(operator.ge(high, v)),
    Op.NE: lambda low, high, v: not low == high == v,
}


def needed(
    manifests: Sequence[ManifestInfo], bounds: Sequence[Bounds | None], predicate: Predicate
) -> frozenset[int]:
    """Numbers of the manifests that may hold a file with matching rows."""
    return frozenset(
        i
        for i, (info, known) in enumerate(zip(manifests, bounds, strict=True))
        if known is None or not is_typed(info) or _may_match(predicate, known)
    )


def _may_match(predicate: Predicate, bounds: Bounds) -> bool:
    if isinstance(predicate, And):
        return all(_may_match(child, bounds) for child in predicate.children)
    if isinstance(predicate, Or):
        return any(_may_match(child, bounds) for child in predicate.children)
    if not isinstance(predicate, Compare | InSet) or not predicate.column.is_partition:
        return True
    ends = _ends(predicate.column, bounds)
    if ends is None:
        return True
    if isinstance(predicate, Compare):
        return _TESTS[predicate.op](*ends, predicate.value)
    if predicate.negated:
        return True
    return any(_TESTS[Op.EQ](*ends, value) for value in predicate.values)


def _ends(column: Column, bounds: Bounds) -> tuple[Any, Any] | None:
    """The bounds as values of the column; ``None`` where they say nothing."""
    low, high = bounds.get(column.root, (None, None))
    if low is None or high is None or pa.types.is_floating(column.dtype):
        return None
    try:
        texts = pa.array([low, high], pa.string())
        cast = texts if pa.types.is_string(column.dtype) else _cast(texts, column.dtype)
        first, last = physical_values(cast)
    except (IndexTablesError, pa.ArrowInvalid, ValueError):
        return None
    return None if first is None or last is None or first > last else (first, last)


def _cast(texts: Any, dtype: pa.DataType) -> Any:
    return cast_array(texts, dtype, UTC, False)
