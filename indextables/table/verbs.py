"""The verbs as methods of a table, each with the signature and result of its class (``verbs``).

What is written out here is no verb of its own: questions about indexes, and short forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from indextables.verbs import (
    Target,
    caches,
    columns,
    companions,
    indexes,
    invoke,
    logs,
    looking,
    method,
    splits,
)

if TYPE_CHECKING:
    from indextables.columnindex import IndexCoverage, IndexInfo
    from indextables.columnindex.building import IndexRow
    from indextables.log.actions import AddXRef, DefineIndex
    from indextables.log.log import TransactionLog
    from indextables.log.read.snapshot import Snapshot
    from indextables.maintenance.rows import ChangeResult
    from indextables.splits.lookup.colindex.postings import Rows
    from indextables.xref import Coverage
    from indextables.xref.searching import XRefSearchResult


class Verbs:
    """What can be done to a table besides reading it."""

    log: TransactionLog
    snapshot: Snapshot

    merge = method(splits.MergeSplits)
    purge = method(splits.Purge)
    drop_partitions = method(splits.DropPartitions)
    delete = method(splits.Delete)
    update = method(splits.Update)
    reorg = method(splits.Reorg)
    erase = method(splits.Erase)
    truncate = method(splits.Truncate)
    restore = method(splits.Restore)

    checkpoint = method(logs.Checkpoint)
    compact = method(logs.Compact)
    truncate_time_travel = method(logs.TruncateTimeTravel)
    repair_log = method(logs.RepairLog)
    set_properties = method(logs.SetProperties)
    unset_properties = method(logs.UnsetProperties)

    add_column = method(columns.AddColumn)
    rename_column = method(columns.RenameColumn)
    drop_column = method(columns.DropColumn)
    alter_column_type = method(columns.AlterColumnType)

    build_xref = method(indexes.IndexCrossReferences)
    create_index = method(indexes.CreateIndex)
    reindex = method(indexes.Reindex)
    index_splits = method(indexes.IndexSplits)
    index_blocks = index_splits
    describe_indexes = method(indexes.DescribeIndexes)

    describe_history = method(looking.DescribeHistory)
    show_partitions = method(looking.ShowPartitions)
    analyze_table = method(looking.AnalyzeTable)
    describe_state = method(looking.DescribeState)
    describe_log = method(looking.DescribeLog)
    describe_xrefs = method(looking.DescribeXRefs)
    component_sizes = method(looking.DescribeComponentSizes)
    stats_coverage = method(looking.DescribeStatsCoverage)
    environment = method(looking.DescribeEnvironment)
    storage_stats = method(looking.DescribeStorageStats)
    doctor = method(looking.Doctor)

    build_companion = method(companions.BuildCompanion)
    sync = method(companions.SyncCompanion)
    describe_companion = method(companions.DescribeCompanion)

    disk_cache = method(caches.DescribeDiskCache)
    invalidate_cache = method(caches.InvalidateCache)
    flush_disk_cache = method(caches.FlushDiskCache)
    flush_searcher_cache = method(caches.FlushSearcherCache)
    prewarm = method(caches.Prewarm)

    # -- rows from elsewhere ---------------------------------------------------------------------

    def upsert(
        self,
        data: Any,
        on: str | Sequence[str],
        *,
        update: Mapping[str, Any] | bool | None = None,
        insert: Any = True,
        delete: Any = None,
    ) -> ChangeResult:
        """Bring data into the table: rows with equal keys change, the others are added.

        ``on`` are the key columns. ``update`` gives expressions for columns (default: all columns
        of the data; ``False``: rows stay as they are), ``delete`` is a condition under which a
        matched row goes, ``insert`` whether rows without a match are added, or a condition.
        Expressions see the table's row by its plain names and the data's as ``source.x``.
        """
        from indextables.table.upsert import upsert_rows

        given = {"update": update, "insert": insert, "delete": delete}
        return upsert_rows(self.log, data, on, **given)

    # -- short forms ----------------------------------------------------------------------------

    def drop_index(self, column: str) -> IndexRow:
        """Forget the index of a column and delete its sidecar files."""
        return invoke(indexes.DropIndex(column), Target.of(self.log))[0]

    def rebuild_index(self, column: str, spark: Any = None) -> list[IndexRow]:
        """Rebuild the index of a column for all splits."""
        return self.index_splits(columns=[column], force=True, spark=spark)

    def define_index(self, column: str) -> DefineIndex:
        """Index this column in all splits written from now on."""
        from indextables import columnindex

        return columnindex.define_index(self.log, column)

    def prune_stale_indexes(self) -> int:
        """Forget index files whose splits are gone; returns how many."""
        from indextables import columnindex

        return columnindex.prune_stale_indexes(self.log)

    # -- questions ------------------------------------------------------------------------------

    def xrefs(self) -> list[AddXRef]:
        """The active cross-references."""
        return list(self.snapshot.xrefs)

    def xref_search(self, query: Any, limit: int | None = None) -> XRefSearchResult:
        """The splits that may hold matching rows, by the cross-references alone.

        ``query`` is a filter in any form. A split that is ``undecided`` is listed because no
        filter could tell.
        """
        from indextables.planner import Planner
        from indextables.xref.router import XRefQueryRouter
        from indextables.xref.searching import search_xrefs

        predicate = Planner(self).bind(query)
        router = XRefQueryRouter(self.log.store, self.log.config)
        return search_xrefs(router, self.snapshot, predicate, limit)

    def xref_coverage(self) -> Coverage:
        """How many splits the cross-references cover."""
        from indextables.xref import coverage

        return coverage(self.snapshot)

    def indexes(self) -> list[IndexInfo]:
        """The defined column indexes."""
        from indextables import columnindex

        return columnindex.indexes(self.snapshot)

    def index_coverage(self, column: str | None = None) -> IndexCoverage | list[IndexCoverage]:
        """How many splits carry each index."""
        from indextables import columnindex

        return columnindex.index_coverage(self.log, column)

    def index_lookup(
        self, column: str, *, eq: Any = None, isin: Any = None, between: Any = None
    ) -> dict[str, Rows]:
        """Row numbers by split, from the index of a column alone."""
        from indextables import columnindex

        return columnindex.index_lookup(self.log, column, eq=eq, isin=isin, between=between)
