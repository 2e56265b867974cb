"""The actions of the log: typed, immutable, written exactly as the protocol says.

Every line of a version file is an object with one key, the kind of action; ``parse_action`` turns
it into one of the classes here. Newer writers may add kinds and fields: a reader goes past them,
and what we write carries them along (see ``spelled``). ``to_dict`` gives the body, ``envelope`` the
whole line. An optional that is absent or ``null`` reads as ``None``. A NULL partition value is
``None`` here and ``__HIVE_DEFAULT_PARTITION__`` in the file.

``commitInfo`` carries the commit id by which a writer recognises its own commit; ``txn`` the
progress of a streaming writer; ``defineIndex``, ``indexBlocks`` and ``dropIndex`` the column
indexes. A reader that ignores these three families loses speed or idempotence, never rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from indextables.errors import CorruptFileError
from indextables.log.actions import fields as f
from indextables.log.actions.fields import NULL_PARTITION, Field
from indextables.log.actions.index_actions import DefineIndex, DropIndex, IndexBlocks, IndexFile
from indextables.log.actions.keymap_actions import AddKeyMap, RemoveKeyMap
from indextables.log.actions.spelled import Spelled, UnknownActions
from indextables.log.actions.vector import DeletionVector, decode_vector

__all__ = [
    "ACTION_TYPES",
    "NULL_PARTITION",
    "Action",
    "AddFile",
    "AddKeyMap",
    "AddXRef",
    "CommitInfo",
    "DefineIndex",
    "DeletionVector",
    "DropIndex",
    "IndexBlocks",
    "IndexFile",
    "Metadata",
    "Protocol",
    "RemoveFile",
    "RemoveKeyMap",
    "RemoveXRef",
    "SkipFile",
    "Txn",
    "UnknownActions",
    "kind_of_line",
    "parse_action",
]


@dataclass(frozen=True, slots=True)
class Protocol(Spelled):
    """What a program must understand to read or write this table."""

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None

    KEY: ClassVar[str] = "protocol"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("min_reader_version", "minReaderVersion", f.natural, required=True),
        Field("min_writer_version", "minWriterVersion", f.natural, required=True),
        Field("reader_features", "readerFeatures", f.text_set, f.sorted_texts, write_null=True),
        Field("writer_features", "writerFeatures", f.text_set, f.sorted_texts, write_null=True),
    )


@dataclass(frozen=True, slots=True)
class Metadata(Spelled):
    """The table's identity, schema, partitioning and configuration."""

    id: str
    name: str | None = None
    description: str | None = None
    format_provider: str = "indextables"
    format_options: Mapping[str, str] = field(default_factory=dict)
    schema_string: str = ""
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_time: int | None = None

    KEY: ClassVar[str] = "metaData"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "id", f.name, required=True),
        Field("name", "name", f.text, write_null=True),
        Field("description", "description", f.text, write_null=True),
        Field("format", "format", f.json_map),
        Field("schema_string", "schemaString", f.name, required=True),
        Field("partition_columns", "partitionColumns", f.texts, list),
        Field("configuration", "configuration", f.scalar_map, dict),
        Field("created_time", "createdTime", f.integer, write_null=True),
    )

    @property
    def format(self) -> dict[str, Any]:
        """The nested object of the file: provider and options."""
        return {"provider": self.format_provider, "options": dict(self.format_options)}

    @classmethod
    def from_dict(cls, body: Any) -> Metadata:
        values = cls.decoded(body)
        spelled = values.pop("format", {})
        if spelled.get("provider") is not None:
            values["format_provider"] = f.text(spelled["provider"], "metaData.format.provider")
        if spelled.get("options") is not None:
            values["format_options"] = f.scalar_map(spelled["options"], "metaData.format.options")
        return cls(**values)


@dataclass(frozen=True, slots=True)
class AddFile(Spelled):
    """A split becomes part of the table."""

    path: str
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    size: int = 0
    modification_time: int = 0
    data_change: bool = True
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    min_values: Mapping[str, str] | None = None
    max_values: Mapping[str, str] | None = None
    num_records: int | None = None
    footer_start_offset: int | None = None
    footer_end_offset: int | None = None
    hotcache_start_offset: int | None = None
    hotcache_length: int | None = None
    has_footer_offsets: bool = False
    time_range_start: str | None = None
    time_range_end: str | None = None
    split_tags: frozenset[str] | None = None
    delete_opstamp: int | None = None
    num_merge_ops: int | None = None
    doc_mapping_json: str | None = None
    doc_mapping_ref: str | None = None
    uncompressed_size_bytes: int | None = None
    companion_source_files: tuple[str, ...] | None = None
    companion_delta_version: int | None = None
    companion_fast_field_mode: str | None = None
    added_at_version: int | None = None
    added_at_timestamp: int | None = None
    deletion_vector: DeletionVector | None = None

    KEY: ClassVar[str] = "add"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "path", f.name, required=True),
        Field("partition_values", "partitionValues", f.partition_map, f.partition_texts),
        Field("size", "size", f.natural, required=True),
        Field("modification_time", "modificationTime", f.integer),
        Field("data_change", "dataChange", f.boolean),
        Field("stats", "stats", f.text),
        Field("tags", "tags", f.scalar_map, dict),
        Field("min_values", "minValues", f.bound_map, dict),
        Field("max_values", "maxValues", f.bound_map, dict),
        Field("num_records", "numRecords", f.natural),
        Field("footer_start_offset", "footerStartOffset", f.natural),
        Field("footer_end_offset", "footerEndOffset", f.natural),
        Field("hotcache_start_offset", "hotcacheStartOffset", f.natural),
        Field("hotcache_length", "hotcacheLength", f.natural),
        Field("has_footer_offsets", "hasFooterOffsets", f.boolean),
        Field("time_range_start", "timeRangeStart", f.loose_text),
        Field("time_range_end", "timeRangeEnd", f.loose_text),
        Field("split_tags", "splitTags", f.text_set, f.sorted_texts),
        Field("delete_opstamp", "deleteOpstamp", f.integer),
        Field("num_merge_ops", "numMergeOps", f.integer),
        Field("doc_mapping_json", "docMappingJson", f.text),
        Field("doc_mapping_ref", "docMappingRef", f.text),
        Field("uncompressed_size_bytes", "uncompressedSizeBytes", f.integer),
        Field("companion_source_files", "companionSourceFiles", f.texts, list),
        Field("companion_delta_version", "companionDeltaVersion", f.integer),
        Field("companion_fast_field_mode", "companionFastFieldMode", f.text),
        Field("added_at_version", "addedAtVersion", f.integer),
        Field("added_at_timestamp", "addedAtTimestamp", f.integer),
        Field("deletion_vector", "deletionVector", decode_vector, DeletionVector.to_dict),
    )

    @property
    def num_deleted(self) -> int:
        """How many of its rows are gone."""
        return 0 if self.deletion_vector is None else self.deletion_vector.cardinality

    @property
    def num_live(self) -> int | None:
        """How many rows it has left, ``None`` when the log does not say how many it had."""
        return None if self.num_records is None else self.num_records - self.num_deleted

    @property
    def narrows(self) -> bool:
        """In a version: is the split in the table already, and only loses rows?"""
        return self.deletion_vector is not None and self.added_at_version is not None

    def removal(
        self, deletion_timestamp: int, *, data_change: bool = True, tags: Mapping[str, str] = {}
    ) -> RemoveFile:
        """The action that takes this split out of the table."""
        return RemoveFile(
            path=self.path,
            deletion_timestamp=deletion_timestamp,
            data_change=data_change,
            partition_values=self.partition_values,
            size=self.size,
            tags=dict(tags) or None,
            deletion_vector=self.deletion_vector,
        )

    def stamped(self, version: int, timestamp_ms: int) -> AddFile:
        """The same split, knowing which commit brought it."""
        return replace(self, added_at_version=version, added_at_timestamp=timestamp_ms)


@dataclass(frozen=True, slots=True)
class RemoveFile(Spelled):
    """A split leaves the table; its file stays until it is purged."""

    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVector | None = None
    """The vector that the split had when its removal was decided."""

    KEY: ClassVar[str] = "remove"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "path", f.name, required=True),
        Field("deletion_timestamp", "deletionTimestamp", f.integer),
        Field("data_change", "dataChange", f.boolean),
        Field("extended_file_metadata", "extendedFileMetadata", f.boolean),
        Field("partition_values", "partitionValues", f.partition_map, f.partition_texts),
        Field("size", "size", f.natural),
        Field("tags", "tags", f.scalar_map, dict),
        Field("deletion_vector", "deletionVector", decode_vector, DeletionVector.to_dict),
    )


@dataclass(frozen=True, slots=True)
class SkipFile(Spelled):
    """A split that an operation could not handle; it stays live and is left alone for a while."""

    path: str
    skip_timestamp: int
    reason: str = ""
    operation: str = ""
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    retry_after: int | None = None
    skip_count: int = 1

    KEY: ClassVar[str] = "mergeskip"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "path", f.name, required=True),
        Field("skip_timestamp", "skipTimestamp", f.integer, required=True),
        Field("reason", "reason", f.text),
        Field("operation", "operation", f.text),
        Field("partition_values", "partitionValues", f.partition_map, f.partition_texts),
        Field("size", "size", f.natural),
        Field("retry_after", "retryAfter", f.integer),
        Field("skip_count", "skipCount", f.integer),
    )


@dataclass(frozen=True, slots=True)
class AddXRef(Spelled):
    """A cross-reference over some splits becomes usable."""

    path: str
    xref_id: str
    source_split_paths: tuple[str, ...]
    source_split_count: int
    size: int
    total_terms: int = 0
    footer_start_offset: int = 0
    footer_end_offset: int = 0
    created_time: int = 0
    build_duration_ms: int = 0
    max_source_splits: int = 0
    doc_mapping_json: str | None = None

    KEY: ClassVar[str] = "addXRef"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "path", f.name, required=True),
        Field("xref_id", "xrefId", f.name, required=True),
        Field("source_split_paths", "sourceSplitPaths", f.texts, list, required=True),
        Field("source_split_count", "sourceSplitCount", f.natural),
        Field("size", "size", f.natural, required=True),
        Field("total_terms", "totalTerms", f.integer),
        Field("footer_start_offset", "footerStartOffset", f.natural),
        Field("footer_end_offset", "footerEndOffset", f.natural),
        Field("created_time", "createdTime", f.integer),
        Field("build_duration_ms", "buildDurationMs", f.integer),
        Field("max_source_splits", "maxSourceSplits", f.integer),
        Field("doc_mapping_json", "docMappingJson", f.text),
    )

    @classmethod
    def from_dict(cls, body: Any) -> AddXRef:
        values = cls.decoded(body)
        values.setdefault("source_split_count", len(values["source_split_paths"]))
        return cls(**values)


@dataclass(frozen=True, slots=True)
class RemoveXRef(Spelled):
    """A cross-reference is no longer to be used."""

    path: str
    xref_id: str
    deletion_timestamp: int
    reason: str = "explicit"

    KEY: ClassVar[str] = "removeXRef"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "path", f.name, required=True),
        Field("xref_id", "xrefId", f.text, required=True),
        Field("deletion_timestamp", "deletionTimestamp", f.integer, required=True),
        Field("reason", "reason", f.text),
    )


@dataclass(frozen=True, slots=True)
class Txn(Spelled):
    """How far an application came; a second commit of the same step is recognised by it."""

    app_id: str
    version: int
    last_updated: int | None = None

    KEY: ClassVar[str] = "txn"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("app_id", "appId", f.name, required=True),
        Field("version", "version", f.integer, required=True),
        Field("last_updated", "lastUpdated", f.integer),
    )


@dataclass(frozen=True, slots=True)
class CommitInfo(Spelled):
    """Who committed what, when; the first line of every version after 0 that we write."""

    commit_id: str | None = None
    timestamp: int | None = None
    operation: str | None = None
    operation_parameters: Mapping[str, Any] = field(default_factory=dict)
    operation_metrics: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    state_checksum: str | None = None
    """Of all files that are live after this commit; see ``log.read.checksum``."""

    KEY: ClassVar[str] = "commitInfo"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("commit_id", "commitId", f.text),
        Field("timestamp", "timestamp", f.integer),
        Field("operation", "operation", f.text),
        Field("operation_parameters", "operationParameters", f.json_map, dict),
        Field("operation_metrics", "operationMetrics", f.json_map, dict),
        Field("engine", "engine", f.text),
        Field("state_checksum", "stateChecksum", f.text),
    )


Action: TypeAlias = (
    Protocol
    | Metadata
    | AddFile
    | RemoveFile
    | SkipFile
    | AddXRef
    | RemoveXRef
    | DefineIndex
    | IndexBlocks
    | DropIndex
    | AddKeyMap
    | RemoveKeyMap
    | Txn
    | CommitInfo
    | UnknownActions
)

ACTION_TYPES: Mapping[str, type[Spelled]] = {
    kind.KEY: kind
    for kind in (
        Protocol,
        Metadata,
        AddFile,
        RemoveFile,
        SkipFile,
        AddXRef,
        RemoveXRef,
        DefineIndex,
        IndexBlocks,
        DropIndex,
        AddKeyMap,
        RemoveKeyMap,
        Txn,
        CommitInfo,
    )
}


def kind_of_line(line: Any) -> str | None:
    """The kind of action a line holds, ``None`` when every body in it is ``null``.

    A line is one action. Of two, a reader that looks for the first would lose the other.
    """
    if not isinstance(line, dict):
        f.wrong_type("action", "an object", line)
    kinds = [key for key, body in line.items() if body is not None]
    if len(kinds) > 1:
        raise CorruptFileError(f"{len(kinds)} actions in one line: {', '.join(kinds[:4])}")
    return kinds[0] if kinds else None


def parse_action(line: Any) -> Action | None:
    """The action of one line, or ``None`` when its body is ``null``."""
    key = kind_of_line(line)
    if key is None:
        return None
    kind = ACTION_TYPES.get(key)
    if kind is None:
        return UnknownActions.of([line])
    found: Action = kind.from_dict(line[key])  # type: ignore[assignment]
    return found
