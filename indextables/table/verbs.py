"""The verbs as methods of a table, each with the signature and result of its class (``verbs``).

What is written out here is no verb of its own: questions about indexes, and short forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from indextables import verbs as v

if TYPE_CHECKING:
    from indextables.columnindex import IndexCoverage, IndexInfo
    from indextables.columnindex.building import IndexRow
    from indextables.log.actions import AddXRef, DefineIndex
    from indextables.log.log import TransactionLog
    from indextables.log.read.snapshot import Snapshot
    from indextables.splits.lookup.colindex.postings import Rows
    from indextables.xref import Coverage


class Verbs:
    """What can be done to a table besides reading it."""

    log: TransactionLog
    snapshot: Snapshot

    merge = v.method(v.MergeSplits)
    purge = v.method(v.Purge)
    drop_partitions = v.method(v.DropPartitions)
    delete = v.method(v.Delete)
    truncate = v.method(v.Truncate)
    restore = v.method(v.Restore)

    checkpoint = v.method(v.Checkpoint)
    compact = v.method(v.Compact)
    truncate_time_travel = v.method(v.TruncateTimeTravel)
    repair_log = v.method(v.RepairLog)
    set_properties = v.method(v.SetProperties)
    unset_properties = v.method(v.UnsetProperties)

    build_xref = v.method(v.IndexCrossReferences)
    create_index = v.method(v.CreateIndex)
    reindex = v.method(v.Reindex)
    index_splits = v.method(v.IndexSplits)
    index_blocks = index_splits
    describe_indexes = v.method(v.DescribeIndexes)

    describe_state = v.method(v.DescribeState)
    describe_log = v.method(v.DescribeLog)
    describe_xrefs = v.method(v.DescribeXRefs)
    component_sizes = v.method(v.DescribeComponentSizes)
    stats_coverage = v.method(v.DescribeStatsCoverage)
    environment = v.method(v.DescribeEnvironment)
    storage_stats = v.method(v.DescribeStorageStats)
    doctor = v.method(v.Doctor)

    disk_cache = v.method(v.DescribeDiskCache)
    invalidate_cache = v.method(v.InvalidateCache)
    flush_disk_cache = v.method(v.FlushDiskCache)
    flush_searcher_cache = v.method(v.FlushSearcherCache)
    prewarm = v.method(v.Prewarm)

    # -- short forms ----------------------------------------------------------------------------

    def drop_index(self, column: str) -> IndexRow:
        """Forget the index of a column and delete its sidecar files."""
        return v.invoke(v.DropIndex(column), v.Target.of(self.log))[0]

    def rebuild_index(self, column: str, spark: Any = None) -> list[IndexRow]:
        """Build the index of a column anew for all splits."""
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
