"""Verbs that work on the log: checkpoints, old versions, repair, properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from indextables import maintenance
from indextables.verbs.base import Target, Verb, parameter, verb

if TYPE_CHECKING:
    from indextables.maintenance import properties, rows  # noqa: F401


@verb
class Checkpoint(Verb["rows.CheckpointResult"]):
    """Write a checkpoint of the newest version."""

    SQL = "CHECKPOINT INDEXTABLES {table}"
    CLI = METHOD = "checkpoint"
    DOES = "maintenance.logwork:checkpoint"
    MUTATES = True


@verb
class Compact(Verb["rows.CheckpointResult"]):
    """Write a checkpoint with its manifests rewritten."""

    SQL = "COMPACT INDEXTABLES {table}"
    CLI = METHOD = "compact"
    MUTATES = True

    def apply(self, on: Target) -> rows.CheckpointResult:
        return maintenance.checkpoint(on.log, compact=True)


@verb
class TruncateTimeTravel(Verb["rows.TruncateResult"]):
    """Forget old versions of the log; the newest stays."""

    SQL = "TRUNCATE INDEXTABLES TIME TRAVEL {table} [{dry_run:DRY RUN}]"
    CLI, METHOD = "truncate-time-travel", "truncate_time_travel"
    DOES = "maintenance.logwork:truncate_time_travel"
    MUTATES = True

    dry_run: bool = parameter(default=False, doc="Only say what would be done.")


@verb
class RepairLog(Verb["rows.RepairResult"]):
    """Write a fresh log elsewhere, of the splits that still exist; the table is only read."""

    SQL = "REPAIR INDEXFILES TRANSACTION LOG {table:log} AT LOCATION {location:place}"
    CLI, METHOD = "repair", "repair_log"
    MUTATES = True

    location: str = parameter(doc="The repaired log, a folder _transaction_log.")

    def gate(self, on: Target) -> None:
        """The log may be damaged: ``repair_log`` asks it when it could be read."""

    def apply(self, on: Target) -> rows.RepairResult:
        source = f"{on.path}/_transaction_log" if on.given else on.path or ""
        return maintenance.repair_log(
            source, self.location, storage_options=on.storage_options, config=on.config
        )


@verb
class SetProperties(Verb["properties.PropertiesResult"]):
    """Set table properties; ``minReaderVersion`` and ``minWriterVersion`` raise the protocol."""

    SQL = "ALTER TABLE {table} SET TBLPROPERTIES {properties:pairs}"
    CLI, METHOD = "properties set", "set_properties"
    DOES = "maintenance.properties:set_properties"
    MUTATES = BY_NAME = True

    properties: Mapping[str, str] = parameter(doc="Names and values.")


@verb
class UnsetProperties(Verb["properties.PropertiesResult"]):
    """Forget table properties; a protocol is never lowered."""

    SQL = "ALTER TABLE {table} UNSET TBLPROPERTIES [IF EXISTS] {names:names}"
    CLI, METHOD = "properties unset", "unset_properties"
    DOES = "maintenance.properties:unset_properties"
    MUTATES = BY_NAME = True

    names: Sequence[str] = parameter(doc="The properties that go.")
