"""Verbs that change which splits, and so which rows, a table has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from indextables.verbs.base import Verb, hidden, parameter, verb

if TYPE_CHECKING:
    from indextables.config import Config
    from indextables.maintenance import rows  # noqa: F401
    from indextables.maintenance.rewrite import Runner


@verb
class MergeSplits(Verb["rows.MergeResult"]):
    """Merge small splits into larger ones."""

    SQL = (
        "MERGE SPLITS {table} [WHERE {where:predicate}] [TARGET SIZE {target_size:size}] "
        "[MAX DEST SPLITS {max_dest_splits:int}] "
        "[MAX SOURCE SPLITS PER MERGE {max_source_splits:int}] [{precommit:PRECOMMIT}]"
    )
    CLI = METHOD = "merge"
    DOES = "maintenance.merge:merge_splits"
    MUTATES = True

    where: Any = parameter(default=None, doc="Predicate on partition columns.")
    target_size: int | str | None = parameter(default=None, doc="Size of a merged split.")
    max_dest_splits: int | None = parameter(default=None, doc="At most this many merged splits.")
    max_source_splits: int | None = parameter(default=None, doc="At most this many into one.")
    precommit: bool = parameter(default=False, doc="Not supported.", shell=False)
    config: Config | None = hidden(default=None)
    run: Runner | None = hidden(default=None)
    spark: Any = hidden(default=None)


@verb
class Purge(Verb["rows.PurgeResult"]):
    """Delete files no readable version needs."""

    SQL = (
        "PURGE INDEXTABLE {table} [OLDER THAN {older_than_hours:hours}] "
        "[TRANSACTION LOG RETENTION {log_retention_hours:hours}] [{dry_run:DRY RUN}]"
    )
    CLI = METHOD = "purge"
    DOES = "maintenance.purging:purge"
    MUTATES = True

    older_than_hours: int | None = parameter(default=None, doc="Only files older than this.")
    log_retention_hours: int | None = parameter(default=None, doc="Keep versions this long.")
    dry_run: bool = parameter(default=False, doc="Only say what would be done.")
    config: Config | None = hidden(default=None)
    now_ms: int | None = hidden(default=None)


@verb
class DropPartitions(Verb["rows.DropResult"]):
    """Remove the partitions that match."""

    SQL = "DROP INDEXTABLES PARTITIONS FROM {table} WHERE {where:predicate}"
    CLI, METHOD = "drop-partitions", "drop_partitions"
    DOES = "maintenance.drop:drop_partitions"
    MUTATES = True
    NEEDS: ClassVar[Mapping[str, str]] = {"WHERE": "DROP PARTITIONS needs WHERE"}

    where: Any = parameter(doc="Predicate on partition columns.")


@verb
class Delete(Verb["rows.DeleteResult"]):
    """Delete the rows that match; the splits that hold them stay, by deletion vectors.

    A condition that says nothing (``None``, ``""``, ``[]``) is an error; see ``truncate``.
    """

    SQL = "DELETE FROM {table:path} WHERE {where:predicate} [{dry_run:DRY RUN}]"
    CLI = METHOD = "delete"
    DOES = "maintenance.delete:delete_rows"
    MUTATES = True
    NEEDS: ClassVar[Mapping[str, str]] = {
        "WHERE": "DELETE needs WHERE; all rows go with TRUNCATE TABLE or WHERE TRUE"
    }

    where: Any = parameter(doc="Which rows go.")
    dry_run: bool = parameter(default=False, doc="Only say what would be done.")
    config: Config | None = hidden(default=None)
    run: Runner | None = hidden(default=None)
    spark: Any = hidden(default=None)


@verb
class Update(Verb["rows.ChangeResult"]):
    """Give the rows that match new values, each a SQL expression over the row as it was.

    A condition that says nothing (``None``, ``""``, ``[]``) is an error; ``TRUE`` means all rows.
    """

    SQL = "UPDATE {table:path} SET {values:assignments} WHERE {where:predicate} [{dry_run:DRY RUN}]"
    CLI = METHOD = "update"
    DOES = "maintenance.update:update_rows"
    MUTATES = True
    NEEDS: ClassVar[Mapping[str, str]] = {"WHERE": "UPDATE needs WHERE; WHERE TRUE is every row"}

    where: Any = parameter(doc="Which rows change.")
    values: Mapping[str, Any] = parameter(doc="Columns and their new values, as SQL expressions.")
    dry_run: bool = parameter(default=False, doc="Only say what would be done.")
    config: Config | None = hidden(default=None)
    run: Runner | None = hidden(default=None)
    spark: Any = hidden(default=None)


@verb
class Reorg(Verb["rows.ReorgResult"]):
    """Write splits that have deleted rows again, without them; PURGE then deletes the old files."""

    SQL = "REORG TABLE {table} [WHERE {where:predicate}] APPLY {-:purge} [{dry_run:DRY RUN}]"
    CLI = METHOD = "reorg"
    DOES = "maintenance.reorg:reorg_splits"
    MUTATES = True

    where: Any = parameter(default=None, doc="Predicate on partition columns.")
    dry_run: bool = parameter(default=False, doc="Only say what would be done.")
    config: Config | None = hidden(default=None)
    run: Runner | None = hidden(default=None)
    spark: Any = hidden(default=None)


@verb
class Erase(Verb["rows.EraseResult"]):
    """Erase the rows that match for good: from splits, from older versions, from the history.

    Every version before ends, and the files that only they needed are deleted at once. The answer
    is a proof: no file that a version lists holds a matching row.
    """

    SQL = "ERASE FROM {table} WHERE {where:predicate} [{dry_run:DRY RUN}]"
    CLI = METHOD = "erase"
    DOES = "maintenance.erase:erase_rows"
    MUTATES = True
    NEEDS: ClassVar[Mapping[str, str]] = {"WHERE": "ERASE needs WHERE; it says whose rows go"}

    where: Any = parameter(doc="Which rows go.")
    dry_run: bool = parameter(default=False, doc="Only say what would be done.")
    config: Config | None = hidden(default=None)
    run: Runner | None = hidden(default=None)
    spark: Any = hidden(default=None)


@verb
class Truncate(Verb["rows.DeleteResult"]):
    """Delete all rows; the table, its schema and its older versions stay."""

    SQL = "TRUNCATE TABLE {table} [{dry_run:DRY RUN}]"
    CLI = METHOD = "truncate"
    DOES = "maintenance.delete:truncate_table"
    MUTATES = BY_NAME = True

    dry_run: bool = parameter(default=False, doc="Only say what would be done.")


@verb
class Restore(Verb["rows.RestoreResult"]):
    """Make the table what it was at a version or moment, as a new version."""

    SQL = (
        "RESTORE [INDEXTABLES] {table} TO "
        "(VERSION [AS OF] {version:int} | TIMESTAMP [AS OF] {timestamp:string})"
    )
    CLI = METHOD = "restore"
    DOES = "maintenance.restore:restore_to_version"
    MUTATES = True

    version: int | None = parameter(default=None, doc="The version.", argument=True)
    timestamp: Any = parameter(default=None, doc="The moment, instead of a version.")
