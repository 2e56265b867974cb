"""The verbs: everything that can be done to a table besides reading and writing rows.

Each is one class (``verbs.base`` says what it holds); SQL, ``Table`` and the command line are
derived from the classes in ``REGISTRY``.
"""

from __future__ import annotations

from indextables.verbs.base import REGISTRY, Target, Verb, as_table, invoke, method
from indextables.verbs.caches import (
    DescribeDiskCache,
    FlushDiskCache,
    FlushSearcherCache,
    InvalidateCache,
    Prewarm,
)
from indextables.verbs.indexes import (
    CreateIndex,
    DescribeIndexes,
    DropIndex,
    IndexCrossReferences,
    IndexSplits,
    Reindex,
)
from indextables.verbs.logs import (
    Checkpoint,
    Compact,
    RepairLog,
    SetProperties,
    TruncateTimeTravel,
    UnsetProperties,
)
from indextables.verbs.looking import (
    DescribeComponentSizes,
    DescribeEnvironment,
    DescribeLog,
    DescribeState,
    DescribeStatsCoverage,
    DescribeStorageStats,
    DescribeXRefs,
    Doctor,
)
from indextables.verbs.splits import (
    Delete,
    DropPartitions,
    MergeSplits,
    Purge,
    Restore,
    Truncate,
)

__all__ = [
    "REGISTRY",
    "Checkpoint",
    "Compact",
    "CreateIndex",
    "Delete",
    "DescribeComponentSizes",
    "DescribeDiskCache",
    "DescribeEnvironment",
    "DescribeIndexes",
    "DescribeLog",
    "DescribeState",
    "DescribeStatsCoverage",
    "DescribeStorageStats",
    "DescribeXRefs",
    "Doctor",
    "DropIndex",
    "DropPartitions",
    "FlushDiskCache",
    "FlushSearcherCache",
    "IndexCrossReferences",
    "IndexSplits",
    "InvalidateCache",
    "MergeSplits",
    "Prewarm",
    "Purge",
    "Reindex",
    "RepairLog",
    "Restore",
    "SetProperties",
    "Target",
    "Truncate",
    "TruncateTimeTravel",
    "UnsetProperties",
    "Verb",
    "as_table",
    "invoke",
    "method",
]
