"""Column indexes of a table: defined, built, merged, dropped, described.

What one index is and how a split is read by it belongs to ``splits``; the names of it that are part
of the API are here too.
"""

from indextables.columnindex.building import IndexRow, build_on_spark
from indextables.columnindex.manage import (
    IndexCoverage,
    IndexInfo,
    create_index,
    define_index,
    describe_indexes,
    drop_index,
    index_coverage,
    index_lookup,
    index_splits,
    indexes,
    prune_stale_indexes,
    rebuild_index,
    rows_table,
)
from indextables.columnindex.merging import merged_member
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.layout import VersionedBlockId
from indextables.splits.lookup.colindex.metrics import METRICS
from indextables.splits.lookup.colindex.opening import IndexRefs, forget_indexes
from indextables.splits.lookup.colindex.predicates import FilterAnalyzer
from indextables.splits.lookup.colindex.rowcache import RowIdCache
from indextables.splits.lookup.colindex.values import IndexedValue

__all__ = [
    "METRICS",
    "ColumnIndex",
    "FilterAnalyzer",
    "IndexCoverage",
    "IndexInfo",
    "IndexRefs",
    "IndexRow",
    "IndexedValue",
    "RowIdCache",
    "VersionedBlockId",
    "build_on_spark",
    "create_index",
    "define_index",
    "describe_indexes",
    "drop_index",
    "forget_indexes",
    "index_coverage",
    "index_lookup",
    "index_splits",
    "indexes",
    "merged_member",
    "prune_stale_indexes",
    "rebuild_index",
    "rows_table",
]
