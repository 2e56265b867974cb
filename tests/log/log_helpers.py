"""Small tables and the actions that change them, for the tests of the log."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.log.actions import Action, AddFile
from indextables.log.commit.transaction import CommitResult, ReadSet, Transaction
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.versions import version_path
from indextables.storage.base import Store, open_store
from indextables.storage.wrapped import WrappedStore

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("day", pa.string())])
MAPPING = json.dumps(
    [
        {"fast": True, "indexed": True, "name": "id", "stored": True, "type": "i64"},
        {
            "fast": True,
            "indexed": True,
            "name": "text",
            "stored": True,
            "tokenizer": "raw",
            "type": "text",
        },
    ]
)
QUICK = {
    "transaction.retry.baseDelayMs": 1,
    "transaction.retry.maxDelayMs": 5,
    "transaction.commit.deadlineSeconds": 2.0,
    "storage.probe": False,
    "state.cache.enabled": False,
}
_NAMES = itertools.count()
_STORES: list[Store] = []


def config(**values: Any) -> Config:
    """Settings for tests; ``checkpoint_interval=3`` is spelled with underscores for dots."""
    return Config({**QUICK, **{k.replace("__", "."): v for k, v in values.items()}})


def memory_store() -> Store:
    """An empty store; it is emptied again when the test ends."""
    store = open_store(f"memory://log-tests-{next(_NAMES)}")
    _STORES.append(store)
    return store


def forget(store: Store) -> None:
    store.delete([info.path for info in store.list("", recursive=True)])


def forget_stores() -> None:
    while _STORES:
        forget(_STORES.pop())


def new_table(
    store: Store | None = None, *, partitioned: bool = False, version: int = 4, **values: Any
) -> TransactionLog:
    store = store or memory_store()
    return TransactionLog.create(
        store.uri,
        SCHEMA,
        partition_columns=["day"] if partitioned else [],
        protocol_version=version,
        store=store,
        config=config(**values),
    )


def reopen(log: TransactionLog, *, store: Store | None = None) -> TransactionLog:
    """The same table as another process would open it."""
    cache.SHARED.invalidate()
    return TransactionLog.open(log.path, store=store or log.store, config=log.config)


def split(
    name: str, day: str | None = None, *, rows: int = 5, partitioned: bool = False
) -> AddFile:
    values = {"day": day} if day is not None or partitioned else {}
    return AddFile(
        path=f"{name}.split",
        partition_values=values,
        size=100 + rows,
        modification_time=1_700_000_000_000,
        min_values={"id": "1", "text": "a"},
        max_values={"id": str(rows), "text": "zz"},
        num_records=rows,
        footer_start_offset=10,
        footer_end_offset=100,
        has_footer_offsets=True,
        num_merge_ops=0,
        doc_mapping_json=MAPPING,
    )


def append(log: TransactionLog, *names: str, day: str | None = None) -> CommitResult:
    return run(log, "WRITE", [split(name, day) for name in names])


def run(
    log: TransactionLog,
    operation: str,
    actions: Any,
    *,
    base: Any = None,
    reads: ReadSet | None = None,
) -> CommitResult:
    return log.commit(
        Transaction(base, operation, actions=actions, reads=reads or ReadSet.nothing())
    )


def remove(log: TransactionLog, *names: str, base: Any = None) -> CommitResult:
    snapshot = base or log.snapshot()
    actions: list[Action] = []
    for name in names:
        number = snapshot.index_of(f"{name}.split")
        assert number is not None, f"{name} is not live"
        actions.append(snapshot.file(number).removal(1_700_000_000_001))
    return run(log, "DELETE", actions, base=base)


def names(log: TransactionLog, version: int | None = None) -> list[str]:
    """Names of the live splits, sorted."""
    paths = log.snapshot(version=version).paths.to_pylist()
    return sorted(path.removesuffix(".split") for path in paths)


class Interrupted(WrappedStore):
    """Runs something just before a version file is created, once."""

    def __init__(self, inner: Any, version: int, action: Callable[[], object]) -> None:
        super().__init__(inner)
        self.when = version_path(version)
        self.action: Callable[[], object] | None = action

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path == self.when and self.action is not None:
            action, self.action = self.action, None
            action()
        super().put_if_absent(path, data)


def race(log: TransactionLog, transaction: Transaction, rival: Callable[[], object]) -> Any:
    """Commit while ``rival`` takes the version we are about to write."""
    version = log.snapshot().version + 1
    store = Interrupted(log.store, version, rival)
    return TransactionLog(log.path, store, log.config).commit(transaction)
