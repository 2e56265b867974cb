"""A table at one version: immutable, columnar, safe to share between threads.

A snapshot is built from a checkpoint's segments and the actions of later versions. Replay is in
order and the latest action per path wins: a remove hides the entry, an add hides an earlier entry
of the same path and comes last. Entries are hidden by masks; the segments themselves are shared
by every snapshot that grew out of them, so ``with_versions`` costs what the new versions hold and
nothing for the million entries below.

The columns themselves are those of ``FileColumns``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from typing import Protocol as Interface

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.errors import CorruptFileError, IndexTablesError
from indextables.expr.predicate import Predicate
from indextables.lazy import lazily
from indextables.log.actions import (
    Action,
    AddFile,
    AddKeyMap,
    AddXRef,
    Metadata,
    Protocol,
    SkipFile,
)
from indextables.log.checkpoint.bounds import trusted_bounds
from indextables.log.checkpoint.manifest import Bounds, ManifestInfo
from indextables.log.read.columns import (
    UNKNOWN,
    Mask,
    Segment,
)
from indextables.log.read.facts import Fact
from indextables.log.read.filecolumns import FileColumns
from indextables.log.read.ledger import ColumnIndexes, Ledger
from indextables.log.read.replay import Tail, append_rows, hide
from indextables.log.read.unread import UnreadState, needed
from indextables.log.read.view import FileList
from indextables.mapping import DocMapping
from indextables.naming import RETIRED_NAMES, stored_columns, stored_schema
from indextables.types import schema_from_json

MAPPINGS: Fact[str, DocMapping] = Fact()
TABLE_MAPPING = "indextables.docMapping"


class VersionActions(NamedTuple):
    """The actions of one version, in order."""

    version: int
    timestamp_ms: int
    actions: Sequence[Action]


class SnapshotSource(Interface):
    """What gives the newest snapshot: the log."""

    def snapshot(self) -> Snapshot: ...


class Snapshot(FileColumns):
    """All files and facts of a table at one version."""

    def __init__(
        self,
        version: int,
        timestamp_ms: int,
        ledger: Ledger,
        segments: Sequence[Segment] = (),
        live: Sequence[Mask | None] | None = None,
        *,
        manifests: Sequence[ManifestInfo] = (),
        source: SnapshotSource | None = None,
        unread: UnreadState | None = None,
    ) -> None:
        if ledger.metadata is None or ledger.protocol is None:
            missing = "metadata" if ledger.metadata is None else "protocol"
            raise CorruptFileError(f"no version up to {version} holds the table's {missing}")
        self.version = version
        self.timestamp_ms = timestamp_ms
        self.ledger = ledger
        load = None if unread is None else lambda: unread.columns(unread.manifests)
        super().__init__(segments, live, load)
        self.unread = unread
        self.manifests_read = -1
        """How many manifests were read; -1 is all of them."""
        self.manifests = tuple(manifests)
        self.source = source
        self.metadata: Metadata = ledger.metadata
        self.protocol: Protocol = ledger.protocol
        self.disputed: frozenset[str] = frozenset()
        """Files that no state holds, because another program made one of their version."""
        self._grown_from: Snapshot | None = None
        self.origins: Mapping[str, Any] = {}
        """Of a companion over its source: where the rows of each split are, by path."""
        self.lag: Any = None
        """Of a companion over its source: how far the index is behind."""

    # -- building -------------------------------------------------------------------------------

    @classmethod
    def from_replay(
        cls, versions: Iterable[VersionActions], *, source: SnapshotSource | None = None
    ) -> Snapshot:
        """The snapshot after these versions, which start at the table's first."""
        return _replay(None, versions, source)

    def with_versions(self, versions: Iterable[VersionActions]) -> Snapshot:
        """The snapshot after these later versions; shares everything that did not change."""
        return _replay(self._grown_from or self, versions, self.source)

    def with_only(self, files: Iterable[AddFile]) -> Snapshot:
        """The same table as if it held just these files, for questions about them."""
        facts: list[Action] = [self.protocol, self.metadata, *files]
        return Snapshot.from_replay([VersionActions(self.version, self.timestamp_ms, facts)])

    def rebase(
        self,
        ledger: Ledger,
        segments: Sequence[Segment],
        live: Sequence[Mask | None],
        manifests: Sequence[ManifestInfo],
    ) -> None:
        """Let later snapshots grow from these segments, which hold the same files.

        Called when this snapshot was written as a state: the next state then refers to its
        manifests instead of writing the same files again. This snapshot itself does not change.
        """
        self._grown_from = Snapshot(
            self.version, self.timestamp_ms, ledger, segments, live, manifests=manifests
        )

    def with_source(self, source: SnapshotSource | None) -> Snapshot:
        """The same snapshot, which knows whom to ask for a newer one."""
        unread = self.unread if self.is_unread else None
        same = Snapshot(
            self.version,
            self.timestamp_ms,
            self.ledger,
            () if unread else self.segments,
            None if unread else self.live,
            manifests=self.manifests,
            source=source,
            unread=unread,
        )
        same._grown_from = self._grown_from
        same.disputed = self.disputed
        return same

    def within(self, predicate: Predicate) -> Snapshot:
        """The same table with the files that a filter on partition columns can need.

        Of a snapshot whose files are not read yet, only those manifests are read.
        """
        state = self.unread
        if not self.is_unread or state is None:
            return self
        chosen = needed(self.manifests, self.manifest_partition_bounds, predicate)
        if len(chosen) == len(self.manifests):
            return self
        if chosen not in state.narrowed:
            read = [info for i, info in enumerate(self.manifests) if i in chosen]
            columns = state.columns(read)
            same = Snapshot(
                self.version,
                self.timestamp_ms,
                self.ledger,
                *columns,
                manifests=self.manifests,
                source=self.source,
            )
            same.manifests_read = len(chosen)
            state.narrowed[chosen] = same
        return state.narrowed[chosen]

    def refresh(self) -> Snapshot:
        """The newest snapshot of the same table; reads only what is new."""
        if self.source is None:
            raise IndexTablesError(
                "this snapshot does not know its log",
                version=self.version,
                hint="Take snapshots from TransactionLog.snapshot()",
            )
        return self.source.snapshot()

    # -- facts ----------------------------------------------------------------------------------

    @lazily
    def schema(self) -> pa.Schema:
        return schema_from_json(self.metadata.schema_string)

    @lazily
    def stored_schema(self) -> pa.Schema:
        """The schema in the names of files; see ``indextables.naming``."""
        return stored_schema(self.schema)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.metadata.partition_columns

    @property
    def stored_partition_columns(self) -> tuple[str, ...]:
        """The partition columns as the log's partition values name them."""
        return tuple(stored_columns(self.schema, self.partition_columns))

    @property
    def xrefs(self) -> tuple[AddXRef, ...]:
        return tuple(self.ledger.xrefs.values())

    @property
    def keymaps(self) -> tuple[AddKeyMap, ...]:
        return tuple(self.ledger.keymaps.values())

    @property
    def mapping_registry(self) -> Mapping[str, str]:
        """Document mappings as text, by the names that files refer to them with."""
        return self.ledger.registry

    @property
    def indexes(self) -> ColumnIndexes:
        return self.ledger.indexes

    @property
    def skips(self) -> Mapping[str, SkipFile]:
        return self.ledger.skips

    @property
    def txns(self) -> Mapping[str, int]:
        return {app: txn.version for app, txn in self.ledger.txns.items()}

    @property
    def num_bytes(self) -> int:
        return int(self.sizes.sum())

    @property
    def num_rows(self) -> int | None:
        """Rows of the table, ``None`` when some file does not say."""
        counts = self.live_records
        return None if (counts == UNKNOWN).any() else int(counts.sum())

    def doc_mapping(self, which: int | str) -> DocMapping | None:
        """The document mapping of a file (by number) or of a schema reference."""
        if isinstance(which, str):
            return self._mapping_of(self.mapping_registry.get(which))
        segment, row = self._locate(which)
        add = segment.add(row)
        if add.doc_mapping_json is not None:
            return self._mapping_of(add.doc_mapping_json)
        return None if add.doc_mapping_ref is None else self.doc_mapping(add.doc_mapping_ref)

    @lazily
    def table_mapping(self) -> DocMapping | None:
        """All fields of all live splits' mappings; of two definitions the later file's wins.

        Columns that no split has are mapped as the table's configuration says. Fields have their
        names in files; those of dropped columns are left out.
        """
        found = [m for m in map(self._mapping_of, self._mapping_texts()) if m is not None]
        begun = self._mapping_of(self.metadata.configuration.get(TABLE_MAPPING))
        fields = {f.name: f for mapping in found for f in mapping.fields}
        for one in (
            begun.fields if begun and (fields or self.is_unread or not self.num_files) else ()
        ):
            fields.setdefault(one.name, one)
        if RETIRED_NAMES in self.metadata.configuration:
            live = {name.lower() for name in self.stored_schema.names}
            fields = {name: f for name, f in fields.items() if name.lower() in live}
        return DocMapping(tuple(fields.values())) if fields else None

    def is_indexed_as(self, stored: str) -> bool:
        """Does a live split fix how a column is indexed?"""
        found = map(self._mapping_of, self._mapping_texts())
        return any(m is not None and m.get(stored) is not None for m in found)

    def _mapping_texts(self) -> list[str]:
        known = self.mapping_registry
        if self.is_unread:
            return list(known.values())
        refs = [known[ref] for ref in self.distinct("docMappingRef") if ref in known]
        return list(dict.fromkeys([*refs, *self.distinct("docMappingJson")]))

    def _mapping_of(self, text: str | None) -> DocMapping | None:
        if text is None:
            return None
        return MAPPINGS.of(self, text, lambda: DocMapping.from_json(text))

    # -- files ----------------------------------------------------------------------------------

    def files(self) -> Sequence[AddFile]:
        """The live files; each is built when asked for."""
        return FileList(self, range(self.num_files))

    def to_arrow(self) -> pa.Table:
        """The live files as a table in the log's names; maps and lists are Arrow maps and lists."""
        from indextables.log.read.arrow import entries_to_arrow

        return entries_to_arrow(self)

    @lazily
    def manifest_of(self) -> npt.NDArray[np.int32] | None:
        """For each file the number of its manifest, -1 for files of later versions."""
        if not self.manifests:
            return None
        number = {manifest.path: k for k, manifest in enumerate(self.manifests)}
        return self._join_arrays(
            [
                np.full(s.n, -1 if s.manifest is None else number.get(s.manifest, -1), np.int32)
                for s in self.segments
            ]
        )

    @property
    def manifest_partition_bounds(self) -> list[Bounds | None]:
        """Bounds of each manifest's partition values, where their order is beyond doubt."""
        return [trusted_bounds(m.partition_bounds, self.stored_schema) for m in self.manifests]

    def __repr__(self) -> str:
        return f"Snapshot(version={self.version}, num_files={self.num_files})"


def _later(
    base: Snapshot,
    unread: UnreadState,
    versions: list[VersionActions],
    source: SnapshotSource | None,
) -> Snapshot:
    """Versions on top of a state whose files are not read; they stay so."""
    ledger = base.ledger
    for change in versions:
        ledger = ledger.applied(change.actions)
    return Snapshot(
        versions[-1].version if versions else base.version,
        versions[-1].timestamp_ms if versions else base.timestamp_ms,
        ledger,
        manifests=base.manifests,
        source=source,
        unread=unread.after(versions),
    )


def _replay(
    base: Snapshot | None, versions: Iterable[VersionActions], source: SnapshotSource | None
) -> Snapshot:
    if base is not None and base.is_unread and base.unread is not None:
        return _later(base, base.unread, list(versions), source)
    tail = Tail(Ledger() if base is None else base.ledger)
    version = -1 if base is None else base.version
    timestamp_ms = 0 if base is None else base.timestamp_ms
    for version, timestamp_ms, actions in versions:
        tail.apply(version, timestamp_ms, actions)
    segments = [] if base is None else list(base.segments)
    live = [] if base is None else list(base.live)
    hide(segments, live, list(tail.touched))
    append_rows(segments, live, list(tail.adds.values()))
    manifests = () if base is None else base.manifests
    grown = Snapshot(
        version, timestamp_ms, tail.ledger, segments, live, manifests=manifests, source=source
    )
    grown.disputed = frozenset() if base is None else base.disputed
    return grown
