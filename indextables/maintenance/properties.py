"""ALTER TABLE ... SET TBLPROPERTIES: protocol versions go to the protocol, the rest to metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from indextables.errors import MaintenanceError
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.maintenance.rows import LONG, STRING, Row, columns_of

_PROTOCOL = ("minreaderversion", "minwriterversion")


@dataclass(frozen=True)
class PropertiesResult(Row):
    """What was set."""

    table_path: str
    status: str
    version: int

    COLUMNS: ClassVar[pa.Schema] = columns_of(table_path=STRING, status=STRING, version=LONG)


@mutates("SET TBLPROPERTIES")
def set_properties(log: TransactionLog, properties: Mapping[str, str]) -> PropertiesResult:
    """Raise the protocol and set table properties; a protocol is never lowered."""
    wanted = {k.lower(): v for k, v in properties.items() if k.lower() in _PROTOCOL}
    others = {k: v for k, v in properties.items() if k.lower() not in _PROTOCOL}
    if wanted:
        versions = {k: _number(k, v) for k, v in wanted.items()}
        log.upgrade_protocol(versions.get("minreaderversion"), versions.get("minwriterversion"))
    if others:

        def actions(snapshot: Snapshot) -> list[object]:
            merged = {**snapshot.metadata.configuration, **others}
            return [replace(snapshot.metadata, configuration=merged)]

        log.commit(
            Transaction(
                log.snapshot(),
                "SET TBLPROPERTIES",
                parameters=others,
                actions=actions,  # type: ignore[arg-type]
            )
        )
    return PropertiesResult(log.path, "SUCCESS", log.snapshot().version)


def _number(key: str, value: str) -> int:
    if not str(value).isdigit():
        raise MaintenanceError(f"'{key}' must be a number, not {value!r}")
    return int(value)
