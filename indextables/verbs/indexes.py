"""Verbs for cross-references and column indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from indextables.verbs.base import Target, Verb, hidden, parameter, verb

if TYPE_CHECKING:
    from indextables.columnindex.building import BuildRunner, IndexRow
    from indextables.xref.builder import XRefBuildResult  # noqa: F401


@verb
class IndexCrossReferences(Verb["list[XRefBuildResult]"]):
    """Build or update the cross-references; one row each."""

    SQL = (
        "INDEX CROSSREFERENCES FOR {table} [WHERE {where:predicate}] "
        "[FILTER TYPE {filter_type:fuse8|fuse16}] [{force:FORCE REBUILD}] "
        "[MAX XREF BUILDS {max_builds:int}] [{dry_run:DRY RUN}]"
    )
    CLI, METHOD = "xref build", "build_xref"
    COLUMNS = "maintenance.crossref:XREF_COLUMNS"
    DOES = "maintenance.crossref:index_cross_references"
    MUTATES = True

    where: Any = parameter(default=None, doc="Predicate on partition columns.")
    force: bool = parameter(default=False, doc="Rebuild also what is up to date.")
    dry_run: bool = parameter(default=False, doc="Only say what would be done.")
    filter_type: str | None = parameter(default=None, doc="How exact the filters are.")
    max_builds: int | None = parameter(default=None, doc="At most this many cross-references.")
    spark: Any = hidden(default=None)


@verb
class CreateIndex(Verb["list[IndexRow]"]):
    """Define a column index and build it for all splits."""

    SQL = "CREATE INDEX [{-:name}] ON {table:path} {column:names}"
    CLI, METHOD = "index create", "create_index"
    COLUMNS = "maintenance.crossref:INDEX_COLUMNS"
    MUTATES = True

    column: str | Sequence[str] = parameter(doc="The column, or several.")
    spark: Any = hidden(default=None)

    def apply(self, on: Target) -> list[IndexRow]:
        from indextables import columnindex

        run = _runner(on, self.spark)
        made = [columnindex.create_index(on.log, c, run=run) for c in _several(self.column)]
        return [row for rows in made for row in rows]


@verb
class DropIndex(Verb["list[IndexRow]"]):
    """Forget the index of a column and delete its sidecar files."""

    SQL = "DROP INDEX [IF EXISTS] [{-:name}] ON {table:path} {column:names}"
    CLI, METHOD = "index drop", "drop_index"
    COLUMNS = "maintenance.crossref:INDEX_COLUMNS"
    MUTATES = True

    column: str | Sequence[str] = parameter(doc="The column, or several.")

    def apply(self, on: Target) -> list[IndexRow]:
        from indextables import columnindex

        return [columnindex.drop_index(on.log, column) for column in _several(self.column)]


@verb
class Reindex(Verb["list[IndexRow]"]):
    """Build every defined index where it is missing, or those of some columns."""

    SQL = "REINDEX {table:path} [ON [DATA] {columns:names}]"
    CLI, METHOD = "index reindex", "reindex"
    COLUMNS = "maintenance.crossref:INDEX_COLUMNS"
    MUTATES = True

    columns: Sequence[str] | None = parameter(default=None, doc="Only the indexes of these.")
    spark: Any = hidden(default=None)

    def apply(self, on: Target) -> list[IndexRow]:
        return IndexSplits(self.columns, spark=self.spark).apply(on)


@verb
class IndexSplits(Verb["list[IndexRow]"]):
    """Build the defined indexes for splits that lack them."""

    SQL = (
        "INDEX SPLITS FOR {table} [{columns:names}] [WHERE {where:predicate}] "
        "[{force:FORCE REBUILD}] [{dry_run:DRY RUN}]"
    )
    CLI, METHOD = "index build", "index_splits"
    COLUMNS = "maintenance.crossref:INDEX_COLUMNS"
    MUTATES = True

    columns: Sequence[str] | None = parameter(default=None, doc="Only the indexes of these.")
    where: Any = parameter(default=None, doc="Predicate on partition columns.")
    force: bool = parameter(default=False, doc="Rebuild also what is up to date.")
    dry_run: bool = parameter(default=False, doc="Only say what would be done.")
    spark: Any = hidden(default=None)

    def apply(self, on: Target) -> list[IndexRow]:
        from indextables import columnindex
        from indextables.maintenance.scope import split_scope

        return columnindex.index_splits(
            on.log,
            columns=self.columns,
            scope=split_scope(on.log.snapshot(), self.where),
            force=self.force,
            dry_run=self.dry_run,
            run=_runner(on, self.spark),
        )


@verb
class DescribeIndexes(Verb["list[IndexRow]"]):
    """The defined indexes, split by split, and those that are missing."""

    SQL = "DESCRIBE INDEXTABLES INDEXES {table}"
    CLI, METHOD = "index list", "describe_indexes"
    COLUMNS = "maintenance.crossref:INDEX_COLUMNS"

    def apply(self, on: Target) -> list[IndexRow]:
        from indextables import columnindex

        return columnindex.index_splits(on.log, dry_run=True)


def _several(column: str | Sequence[str]) -> Sequence[str]:
    return (column,) if isinstance(column, str) else column


def _runner(on: Target, spark: Any) -> BuildRunner | None:
    from indextables import columnindex

    return columnindex.build_on_spark(on.spark if spark is None else spark)
