"""Column indexes, from a value to row numbers. Decides their format and when a read uses them."""

from indextables.columnindex.building import IndexRow, build_member, build_on_spark
from indextables.columnindex.index import ColumnIndex
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
from indextables.columnindex.predicates import FilterAnalyzer
from indextables.columnindex.summary import first_rows, summarize
from indextables.columnindex.using import (
    IndexAnswer,
    IndexRefs,
    count_rows,
    find_rows,
    forget_indexes,
)

__all__ = [
    "ColumnIndex",
    "FilterAnalyzer",
    "IndexAnswer",
    "IndexCoverage",
    "IndexInfo",
    "IndexRefs",
    "IndexRow",
    "build_member",
    "build_on_spark",
    "count_rows",
    "create_index",
    "define_index",
    "describe_indexes",
    "drop_index",
    "find_rows",
    "first_rows",
    "forget_indexes",
    "index_coverage",
    "index_lookup",
    "index_splits",
    "indexes",
    "merged_member",
    "prune_stale_indexes",
    "rebuild_index",
    "rows_table",
    "summarize",
]
