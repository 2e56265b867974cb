"""Open tables of this process: logs stay open, so their snapshots stay warm."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from indextables.companion.reading import read_snapshot
from indextables.config import Config
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.lru import LRU
from indextables.mapping import DocMapping
from indextables.spark.driver.request import Access
from indextables.storage.base import Store, open_store, resolve_options
from indextables.storage.diskcache import cached
from indextables.table.table import mapping_of
from indextables.xref.routing import router_of

MOST_OPEN = 64


@dataclass(frozen=True)
class OpenTable:
    """A table at one version, as the planner takes it."""

    snapshot: Snapshot
    config: Config
    path: str
    storage_options: dict[str, Any] = field(default_factory=dict)
    store: Any = None

    @property
    def version(self) -> int:
        return self.snapshot.version

    @property
    def schema(self) -> pa.Schema:
        return self.snapshot.schema

    @property
    def mapping(self) -> DocMapping:
        """How each column is indexed."""
        return mapping_of(self.snapshot)

    @cached_property
    def xref_router(self) -> Any:
        return router_of(self.store, self.snapshot, self.config)


class Tables:
    """The logs in use, the least recently used closed first."""

    def __init__(self) -> None:
        self._logs: LRU[tuple[Any, ...], TransactionLog] = LRU(MOST_OPEN)

    def log(self, access: Access) -> TransactionLog:
        """The log of a table; ``TableNotFoundError`` when there is none."""
        options, config = access.storage_options, access.config
        return self._logs.load(
            access.key,
            lambda: TransactionLog.open(access.path, storage_options=options, config=config),
        )

    def forget(self, access: Access) -> None:
        """Close the logs of a table, with whatever settings they were opened."""
        self._logs.remove_if(lambda key, log: key[0] == access.path)

    def exists(self, access: Access) -> bool:
        """Is there a table?"""
        return TransactionLog.exists(
            access.path, storage_options=access.storage_options, config=access.config
        )

    def table(self, access: Access, version: int | None = None, timestamp: Any = None) -> OpenTable:
        """The table at a version or moment; the settings decide where neither is given."""
        log = self.log(access)
        if version is None and timestamp is None:
            version = log.config["read.version"]
            timestamp = log.config["read.timestamp"]
        snapshot = read_snapshot(log, version, timestamp)
        return OpenTable(snapshot, log.config, access.path, dict(access.storage_options), log.store)


SHARED = Tables()


def worker_store(access: Access) -> Store:
    """The store of a table in a task, behind the disk cache where that helps."""
    config = access.config
    given = {"spark.indextables." + k: v for k, v in config.raw().items()}
    options = resolve_options(access.path, access.storage_options, given)
    return cached(open_store(access.path, options), config)
