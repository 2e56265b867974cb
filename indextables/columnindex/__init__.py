"""Column indexes: from a value to row numbers, chosen by what they save."""

from indextables.columnindex.access import (
    IndexAnswer,
    IndexRefs,
    count_rows,
    find_rows,
    forget_indexes,
)
from indextables.columnindex.index import ColumnIndex
from indextables.columnindex.manage import (
    IndexCoverage,
    IndexInfo,
    IndexRow,
    build_member,
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
from indextables.columnindex.predicates import FilterAnalyzer

__all__ = [
    "ColumnIndex",
    "FilterAnalyzer",
    "IndexAnswer",
    "IndexCoverage",
    "IndexInfo",
    "IndexRefs",
    "IndexRow",
    "build_member",
    "count_rows",
    "create_index",
    "define_index",
    "describe_indexes",
    "drop_index",
    "find_rows",
    "forget_indexes",
    "index_coverage",
    "index_lookup",
    "index_splits",
    "indexes",
    "prune_stale_indexes",
    "rebuild_index",
    "rows_table",
]
