"""ALTER TABLE ... SET TBLPROPERTIES: one commit that changes the table's configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from indextables.log.actions import Action
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot


@mutates("SET TBLPROPERTIES")
def set_properties(log: TransactionLog, properties: Mapping[str, str]) -> None:
    """Set some properties; the others stay."""

    def changes(snapshot: Snapshot) -> Iterator[Action]:
        configuration = {**snapshot.metadata.configuration, **properties}
        yield replace(snapshot.metadata, configuration=configuration)

    parameters = {"properties": dict(properties)}
    log.commit(
        Transaction(log.snapshot(), "set properties", parameters=parameters, actions=changes)
    )
