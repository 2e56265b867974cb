"""Small tables for the tests of settings, on stores that count."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from store_doubles import RecordingStore

import indextables
from indextables.config import Config
from indextables.errors import StorageError
from indextables.log.actions import AddFile
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.storage.base import Capabilities, Store
from indextables.storage.memory import MemoryStore

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
_NAMES = itertools.count()
QUIET = {
    "storage.probe": False,
    "storage.fsync": False,
    "state.cache.enabled": False,
    "xref.autoIndex.enabled": False,
}


class Far(RecordingStore):
    """A store that counts its calls and looks like an object store."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner, hide_local_files=True)
        self.at_once: list[int] = []

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return Capabilities(remote=True, persistent=True, local_files=False)

    def read_many(self, paths: Sequence[str], parallelism: int = 8) -> list[bytes | StorageError]:
        self.at_once.append(parallelism)
        return super().read_many(paths, parallelism)

    def paths(self, op: str, part: str = "") -> list[str]:
        """The paths that an operation asked for."""
        return [call.path for call in self.calls if call.op == op and part in call.path]


def memory() -> MemoryStore:
    return MemoryStore(f"memory://settings-{os.getpid()}-{next(_NAMES)}")


def settings(**values: Any) -> Config:
    """``settings(state__format="json")`` is ``state.format = json``."""
    return Config({**QUIET, **{k.replace("__", "."): v for k, v in values.items()}})


def new_log(store: Store | None = None, **values: Any) -> TransactionLog:
    place = memory() if store is None else store
    return TransactionLog.create(place.uri, SCHEMA, store=place, config=settings(**values))


def cold(log: TransactionLog, **values: Any) -> TransactionLog:
    """The same table as another process would open it, perhaps with other settings."""
    log.cache.invalidate()
    given = {**log.config.raw(), **{k.replace("__", "."): v for k, v in values.items()}}
    return TransactionLog(log.path, log.store, Config(given))


def split(name: str, **more: Any) -> AddFile:
    given = {"size": 100, "modification_time": 1, "num_records": 5, **more}
    return AddFile(path=f"{name}.split", partition_values={}, **given)


def append(log: TransactionLog, *names: str) -> Any:
    adds = [split(name) for name in names]
    return log.commit(Transaction(None, "WRITE", actions=adds))


def remove(log: TransactionLog, *names: str) -> Any:
    snapshot = log.snapshot()
    places = [snapshot.index_of(f"{name}.split") for name in names]
    gone = [snapshot.file(place).removal(1) for place in places if place is not None]
    return log.commit(Transaction(None, "DELETE", actions=gone))


def files(store: Store, part: str = "") -> list[str]:
    return sorted(i.path for i in store.list("", recursive=True) if part in i.path)


def age(folder: Path, hours: float) -> None:
    """Let every file be that old."""
    moment = time.time() - hours * 3600
    for file in folder.rglob("*"):
        if file.is_file():
            os.utime(file, (moment, moment))


def options(**values: Any) -> dict[str, Any]:
    return settings(**values).raw()


def write(rows: Any, path: Path | str, **values: Any) -> Any:
    """Write rows (a mapping of columns) with settings."""
    keywords = {k: values.pop(k) for k in ("partition_by", "text", "mode") if k in values}
    return indextables.write(pa.table(rows), str(path), options=options(**values), **keywords)


def opened(path: Path | str, **values: Any) -> indextables.Table:
    return indextables.open(str(path), options=options(**values))
