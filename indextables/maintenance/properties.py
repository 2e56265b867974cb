"""ALTER TABLE ... SET and UNSET TBLPROPERTIES, however the table is named.

``minReaderVersion`` and ``minWriterVersion`` raise the protocol, everything else is configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from indextables.errors import MaintenanceError
from indextables.log.actions import Action
from indextables.log.actions.schema_registry import COLUMN_INDEX_PREFIX
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import TABLE_MAPPING, Snapshot
from indextables.maintenance.rows import Row
from indextables.naming import RETIRED_NAMES

PROTOCOL = ("minreaderversion", "minwriterversion")


@dataclass(frozen=True)
class PropertiesResult(Row):
    """What was set."""

    table_path: str
    status: str
    version: int


@mutates("SET TBLPROPERTIES")
def set_properties(log: TransactionLog, properties: Mapping[str, str]) -> PropertiesResult:
    """Raise the protocol and set table properties; a protocol is never lowered."""
    wanted = {k.lower(): _number(k, v) for k, v in properties.items() if k.lower() in PROTOCOL}
    _refuse(log, properties)
    others = {k: str(v) for k, v in properties.items() if k.lower() not in PROTOCOL}
    if wanted:
        log.upgrade_protocol(wanted.get("minreaderversion"), wanted.get("minwriterversion"))
    if others:
        _commit(log, "SET TBLPROPERTIES", others, lambda known: {**known, **others})
    return PropertiesResult(log.path, "SUCCESS", log.snapshot().version)


@mutates("UNSET TBLPROPERTIES")
def unset_properties(log: TransactionLog, names: Sequence[str]) -> PropertiesResult:
    """Forget table properties; one that is not set stays so, as with Spark."""
    _refuse(log, names)
    if raised := [name for name in names if name.lower() in PROTOCOL]:
        raise MaintenanceError(
            f"'{raised[0]}' cannot be unset",
            path=log.path,
            hint="A protocol is raised and never lowered; leave it out",
        )
    gone = set(names)

    def kept(known: Mapping[str, str]) -> dict[str, str]:
        return {key: value for key, value in known.items() if key not in gone}

    if gone & set(log.snapshot().metadata.configuration):
        _commit(log, "UNSET TBLPROPERTIES", {"names": ",".join(names)}, kept)
    return PropertiesResult(log.path, "SUCCESS", log.snapshot().version)


def _refuse(log: TransactionLog, names: Iterable[str]) -> None:
    """What we keep among the properties ourselves is changed by its own verbs only."""
    for name in names:
        if name in (TABLE_MAPPING, RETIRED_NAMES) or name.startswith(COLUMN_INDEX_PREFIX):
            raise MaintenanceError(
                f"'{name}' is kept by the table itself",
                path=log.path,
                hint="CREATE INDEX and DROP INDEX change indexes, ALTER TABLE changes columns",
            )


def _commit(
    log: TransactionLog,
    operation: str,
    parameters: Mapping[str, str],
    change: Callable[[Mapping[str, str]], Mapping[str, str]],
) -> None:
    """Change the configuration of the newest version, even if another writer just made it."""

    def actions(snapshot: Snapshot) -> list[Action]:
        metadata = snapshot.metadata
        return [replace(metadata, configuration=dict(change(metadata.configuration)))]

    transaction = Transaction(log.snapshot(), operation, parameters=parameters, actions=actions)
    log.commit(transaction)


def _number(key: str, value: str) -> int:
    if not str(value).isdigit():
        raise MaintenanceError(f"'{key}' must be a number, not {value!r}")
    return int(value)
