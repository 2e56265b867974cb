"""The maintenance verbs as methods of a table; each is a thin call of the function that does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indextables.log.log import TransactionLog
    from indextables.log.read.snapshot import Snapshot


class Verbs:
    """What can be done to a table besides reading it."""

    log: TransactionLog
    snapshot: Snapshot

    # -- cross-references -----------------------------------------------------------------------

    def build_xref(
        self,
        where: Any = None,
        force: bool = False,
        dry_run: bool = False,
        filter_type: str | None = None,
    ) -> list[Any]:
        """Build or update the cross-references; returns one row per cross-reference."""
        from indextables.maintenance.scope import split_scope
        from indextables.xref import build

        return build(
            self.log,
            scope=split_scope(self.log.snapshot(), where),
            partition="" if where is None else str(where),
            force=force,
            dry_run=dry_run,
            filter_type=filter_type,
        )

    def xrefs(self) -> list[Any]:
        """The active cross-references."""
        return list(self.snapshot.xrefs)

    def xref_coverage(self) -> Any:
        """How many splits the cross-references cover."""
        from indextables.xref import coverage

        return coverage(self.snapshot)

    # -- column indexes -------------------------------------------------------------------------

    def define_index(self, column: str) -> Any:
        """Index this column in all splits written from now on."""
        from indextables import columnindex

        return columnindex.define_index(self.log, column)

    def index_splits(
        self,
        columns: Sequence[str] | None = None,
        where: Any = None,
        force: bool = False,
        dry_run: bool = False,
        spark: Any = None,
    ) -> list[Any]:
        """Build the defined indexes for splits that lack them, in Spark tasks where given."""
        from indextables import columnindex
        from indextables.maintenance.scope import split_scope

        scope = split_scope(self.log.snapshot(), where)
        return columnindex.index_splits(
            self.log,
            columns=columns,
            scope=scope,
            force=force,
            dry_run=dry_run,
            run=columnindex.build_on_spark(spark),
        )

    index_blocks = index_splits

    def create_index(self, column: str, spark: Any = None) -> list[Any]:
        """Define the index and build it for all splits."""
        from indextables import columnindex

        run = columnindex.build_on_spark(spark)
        return columnindex.create_index(self.log, column, run=run)

    def reindex(self, spark: Any = None) -> list[Any]:
        """Build every defined index where it is missing."""
        return self.index_splits(spark=spark)

    def rebuild_index(self, column: str, spark: Any = None) -> list[Any]:
        """Build the index of a column anew for all splits."""
        from indextables import columnindex

        run = columnindex.build_on_spark(spark)
        return columnindex.rebuild_index(self.log, column, run=run)

    def drop_index(self, column: str) -> Any:
        """Forget the index of a column and delete its sidecar files."""
        from indextables import columnindex

        return columnindex.drop_index(self.log, column)

    def indexes(self) -> list[Any]:
        """The defined column indexes."""
        from indextables import columnindex

        return columnindex.indexes(self.snapshot)

    def index_coverage(self, column: str | None = None) -> Any:
        """How many splits carry each index."""
        from indextables import columnindex

        return columnindex.index_coverage(self.log, column)

    def index_lookup(
        self, column: str, *, eq: Any = None, isin: Any = None, between: Any = None
    ) -> Any:
        """Row numbers by split, from the index of a column alone."""
        from indextables import columnindex

        return columnindex.index_lookup(self.log, column, eq=eq, isin=isin, between=between)

    def prune_stale_indexes(self) -> int:
        """Forget index files whose splits are gone; returns how many."""
        from indextables import columnindex

        return columnindex.prune_stale_indexes(self.log)

    # -- maintenance ----------------------------------------------------------------------------

    def merge(self, **options: Any) -> Any:
        """Merge small splits; see ``maintenance.merge_splits``."""
        from indextables import maintenance

        return maintenance.merge_splits(self.log, **options)

    def purge(self, **options: Any) -> Any:
        """Delete files no retained version needs; see ``maintenance.purge``."""
        from indextables import maintenance

        return maintenance.purge(self.log, **options)

    def checkpoint(self) -> Any:
        """Write a checkpoint of the newest version."""
        from indextables import maintenance

        return maintenance.checkpoint(self.log)

    def drop_partitions(self, where: Any) -> Any:
        """Remove the splits of the partitions that match."""
        from indextables import maintenance

        return maintenance.drop_partitions(self.log, where)

    def delete(self, where: Any, **options: Any) -> Any:
        """Delete the rows that match, by rewriting the splits that hold them.

        A condition that says nothing (``None``, ``""``, ``[]``) is an error; see ``truncate``.
        """
        from indextables import maintenance

        return maintenance.delete_rows(self.log, where, **options)

    def truncate(self, dry_run: bool = False) -> Any:
        """Delete all rows; the table, its schema and its older versions stay."""
        from indextables import maintenance

        return maintenance.truncate_table(self.log, dry_run=dry_run)

    def restore(self, version: int) -> Any:
        """Make the table what it was at a version, as a new version."""
        from indextables import maintenance

        return maintenance.restore_to_version(self.log, version)

    def truncate_time_travel(self, dry_run: bool = False) -> Any:
        """Forget old versions of the log; the newest stays."""
        from indextables import maintenance

        return maintenance.truncate_time_travel(self.log, dry_run=dry_run)

    def stats_coverage(self) -> Any:
        """Which columns have statistics, in how many splits."""
        from indextables import maintenance

        return maintenance.stats_coverage(self.log)

    def doctor(self, **options: Any) -> Any:
        """Look for damage; each finding names the command that mends it."""
        from indextables import maintenance

        return maintenance.doctor(self.log, **options)
