"""Splits grouped into tasks: small, picklable, about equally heavy.

``spark.indextables.read.splitsPerTask`` is a number or ``auto``: one split per task while the
splits are at most twice the parallelism, else as many as make four tasks per core, at most
``read.maxSplitsPerTask``. Within that number splits are dealt out by size, the largest first, each
to the lightest task. All splits of a task share their residual predicate.

With a limit every task stops at it; splits in which every row matches come first.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from indextables.config import Config
from indextables.errors import ConfigError
from indextables.expr.predicate import Predicate
from indextables.log.read.view import SnapshotView

if TYPE_CHECKING:
    from indextables.expr.similarity import Ranking
    from indextables.splits.lookup.colindex.opening import IndexRefs
    from indextables.splits.read.source import SplitRef


WHOLE_BYTES = 4 << 20
"""Splits that take no more together are not worth a second trip to each."""


@dataclass(frozen=True, slots=True)
class SplitTask:
    """A group of splits, the predicate left to check in them, and where they live."""

    splits: tuple[SplitRef, ...]
    predicate: Predicate
    columns: tuple[str, ...] | None = None
    limit: int | None = None
    table_path: str = ""
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    indexes: IndexRefs | None = None
    """Column indexes of these splits, as far as the log knows them."""
    row_blocks: Mapping[str, int] = field(default_factory=dict)
    """Splits whose only row that can match is in a known block of rows (``keysets.BLOCK_ROWS``)."""
    ranking: Ranking | None = None
    """What relevance is computed from, where it is asked for."""
    whole: bool = False
    """The plan has so little to read that a small split is fetched in one go."""

    @property
    def size(self) -> int:
        return sum(int(split.size) for split in self.splits)


def splits_per_task(config: Config, splits: int, parallelism: int) -> int:
    """How many splits one task takes at most."""
    asked = str(config["read.splitsPerTask"]).strip().lower()
    if asked != "auto":
        if not asked.isdigit() or int(asked) < 1:
            raise ConfigError(
                f"spark.indextables.read.splitsPerTask = '{asked}' is neither auto nor a number"
            )
        return int(asked)
    if splits <= 2 * parallelism:
        return 1
    return min(-(-splits // (4 * parallelism)), int(config["read.maxSplitsPerTask"]))


@cache
def default_parallelism() -> int:
    """Cores of this machine, for plans outside Spark."""
    return os.cpu_count() or 1


def deal_out(sizes: Sequence[int] | npt.NDArray[Any], per_task: int) -> list[list[int]]:
    """Positions of ``sizes`` in groups of at most ``per_task`` and about equal total size."""
    count = -(-len(sizes) // per_task)
    if per_task == 1 or count <= 1:
        return (
            [[i] for i in range(len(sizes))] if per_task == 1 else [list(range(len(sizes)))][:count]
        )
    groups: list[list[int]] = [[] for _ in range(count)]
    lightest = [(0, k) for k in range(count)]
    for i in np.argsort(-np.asarray(sizes, np.int64), kind="stable").tolist():
        weight, k = heapq.heappop(lightest)
        groups[k].append(i)
        if len(groups[k]) < per_task:
            heapq.heappush(lightest, (weight + int(sizes[i]), k))
    return [sorted(group) for group in groups if group]


def split_refs(snapshot: SnapshotView, indices: Sequence[int]) -> list[SplitRef]:
    """References to some splits of a snapshot."""
    from indextables.splits.read.source import SplitRef

    paths = snapshot.paths
    sizes, rows = snapshot.sizes, snapshot.num_records
    starts, ends = snapshot.footer_starts, snapshot.footer_ends
    values = [(c, *snapshot.partition_codes(c)) for c in snapshot.stored_partition_columns]
    mappings = mapping_texts(snapshot, indices)
    vectors = snapshot.vectors(indices)
    origins = getattr(snapshot, "origins", {})
    return [
        SplitRef(
            path=(path := paths[i].as_py()),
            size=int(sizes[i]),
            footer_start=int(starts[i]),
            footer_end=int(ends[i]),
            num_records=int(rows[i]),
            partition_values={c: texts[codes[i]] for c, codes, texts in values},
            doc_mapping=mapping,
            vector=vector,
            origin=origins.get(path),
        )
        for i, mapping, vector in zip(indices, mappings, vectors, strict=True)
    ]


def index_refs(snapshot: SnapshotView, splits: Sequence[SplitRef]) -> IndexRefs | None:
    """The column indexes of some splits; ``None`` where the table has none."""
    from indextables.splits.lookup.colindex.opening import IndexRefs

    return IndexRefs.of(snapshot, [split.path for split in splits])


def mapping_texts(snapshot: SnapshotView, indices: Sequence[int]) -> list[str | None]:
    """The document mapping of each split as text, equal texts being one object."""
    inline, refs = snapshot.text_column("docMappingJson"), snapshot.text_column("docMappingRef")
    registry = snapshot.mapping_registry if refs.valid.any() else {}
    shared: dict[str | None, str | None] = {}
    found = []
    for i in indices:
        text, ref = inline[i], refs[i]
        if text is None and ref is not None:
            text = registry.get(ref)
        found.append(shared.setdefault(text, text))
    return found
