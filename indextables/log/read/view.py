"""What planning and routing ask of a snapshot.

``Snapshot`` is one; tests and benchmarks plan over others, which have no log behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.log.actions import AddFile, AddKeyMap, AddXRef, DeletionVector
from indextables.log.checkpoint.manifest import Bounds
from indextables.log.read.columns import Int64s, StringColumn
from indextables.log.read.facts import Fact, Facts
from indextables.log.read.ledger import ColumnIndexes
from indextables.mapping import DocMapping

K = TypeVar("K")


class StatSource(Protocol):
    """Where statistics of some splits come from: a segment of the log."""

    @property
    def n(self) -> int: ...
    def ints(self, name: str) -> Int64s: ...
    def texts(self, name: str) -> StringColumn | None: ...
    def map_texts(self, name: str, key: str) -> StringColumn | None: ...
    def counts(self, kind: str, column: str) -> Int64s | None: ...


class SnapshotView(Protocol):
    """The files of a table at one version as columns, and what the log knows besides."""

    @property
    def version(self) -> int: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def schema(self) -> pa.Schema: ...
    @property
    def stored_schema(self) -> pa.Schema: ...
    @property
    def partition_columns(self) -> tuple[str, ...]: ...
    @property
    def stored_partition_columns(self) -> tuple[str, ...]: ...
    @property
    def table_mapping(self) -> DocMapping | None: ...
    @property
    def mapping_registry(self) -> Mapping[str, str]: ...
    @property
    def xrefs(self) -> Sequence[AddXRef]: ...
    @property
    def keymaps(self) -> Sequence[AddKeyMap]: ...
    @property
    def indexes(self) -> ColumnIndexes: ...
    @property
    def num_files(self) -> int: ...
    @property
    def paths(self) -> Any: ...
    @property
    def sizes(self) -> Int64s: ...
    @property
    def num_records(self) -> Int64s: ...
    @property
    def live_records(self) -> Int64s: ...
    @property
    def footer_starts(self) -> Int64s: ...
    @property
    def footer_ends(self) -> Int64s: ...
    @property
    def manifest_of(self) -> npt.NDArray[np.int32] | None: ...
    @property
    def manifest_partition_bounds(self) -> Sequence[Bounds | None]: ...
    def file(self, i: int) -> AddFile: ...
    def index_of(self, path: str) -> int | None: ...
    def indices_of(self, paths: Sequence[str]) -> Int64s: ...
    def partition_codes(self, column: str) -> tuple[npt.NDArray[np.int32], list[str | None]]: ...
    def stat_column(self, which: str, column: str) -> StringColumn | None: ...
    def vectors(self, numbers: Sequence[int]) -> list[DeletionVector | None]: ...
    def text_column(self, name: str) -> StringColumn: ...
    def derive(
        self,
        fact: Fact[K, npt.NDArray[Any]],
        key: K,
        build: Callable[[StatSource], npt.NDArray[Any]],
    ) -> npt.NDArray[Any]: ...


class FileList(Sequence[AddFile]):
    """Some live files of a snapshot as typed actions, each built when asked for."""

    def __init__(self, snapshot: SnapshotView, numbers: range | Int64s) -> None:
        self._snapshot = snapshot
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, i: int) -> AddFile: ...
    @overload
    def __getitem__(self, i: slice) -> FileList: ...
    def __getitem__(self, i: int | slice) -> AddFile | FileList:
        if isinstance(i, slice):
            return FileList(self._snapshot, self._numbers[i])
        return self._snapshot.file(int(self._numbers[i]))

    def __iter__(self) -> Iterator[AddFile]:
        return (self._snapshot.file(int(i)) for i in self._numbers)

    def __repr__(self) -> str:
        snapshot = self._snapshot
        return f"FileList({len(self)} of {snapshot.num_files} files of version {snapshot.version})"
