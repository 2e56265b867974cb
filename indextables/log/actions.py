"""The actions of the log: typed, immutable, spelled exactly as the protocol spells them.

Every line of a version file is an object with one key, the kind of action; ``parse_action`` turns
it into one of the classes here, or into ``None`` when the kind is unknown (newer writers may add
kinds; readers ignore them). ``to_dict`` gives the body, ``envelope`` the whole line. An optional
that is absent or ``null`` reads as ``None``. A NULL partition value is ``None`` here and
``__HIVE_DEFAULT_PARTITION__`` in the file.

``commitInfo`` carries the commit id by which a writer recognises its own commit; ``txn`` the
progress of a streaming writer; ``defineIndex``, ``indexBlocks`` and ``dropIndex`` the column
indexes. A reader that ignores these three families loses speed or idempotence, never rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

from indextables.log import fields as f
from indextables.log.fields import NULL_PARTITION, Field, FieldTable, encode_fields

__all__ = [
    "ACTION_TYPES",
    "NULL_PARTITION",
    "Action",
    "AddFile",
    "AddXRef",
    "CommitInfo",
    "DefineIndex",
    "DropIndex",
    "IndexBlocks",
    "IndexFile",
    "Metadata",
    "Protocol",
    "RemoveFile",
    "RemoveXRef",
    "SkipFile",
    "Txn",
    "parse_action",
]


_TABLES: dict[type[Any], FieldTable] = {}


class _Spelled:
    """What has a table of JSON fields."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[Field, ...]]
    KEY: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """The body in the protocol's JSON names."""
        return encode_fields(self.FIELDS, self)

    @classmethod
    def from_dict(cls, body: Any) -> Self:
        """The action a body spells; wrong types are ``CorruptFileError``."""
        return cls(**cls.decoded(body))

    @classmethod
    def decoded(cls, body: Any) -> dict[str, Any]:
        """The constructor arguments a body spells."""
        table = _TABLES.get(cls)
        if table is None:
            table = _TABLES[cls] = FieldTable(cls.KEY, cls.FIELDS)
        return table.decode(body)

    def envelope(self) -> dict[str, Any]:
        """The whole line: the kind and the body."""
        return {self.KEY: self.to_dict()}


@dataclass(frozen=True, slots=True)
class Protocol(_Spelled):
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
class Metadata(_Spelled):
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
class AddFile(_Spelled):
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
    )

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
        )

    def stamped(self, version: int, timestamp_ms: int) -> AddFile:
        """The same split, knowing which commit brought it."""
        return replace(self, added_at_version=version, added_at_timestamp=timestamp_ms)


@dataclass(frozen=True, slots=True)
class RemoveFile(_Spelled):
    """A split leaves the table; its file stays until it is purged."""

    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    tags: Mapping[str, str] | None = None

    KEY: ClassVar[str] = "remove"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "path", f.name, required=True),
        Field("deletion_timestamp", "deletionTimestamp", f.integer),
        Field("data_change", "dataChange", f.boolean),
        Field("extended_file_metadata", "extendedFileMetadata", f.boolean),
        Field("partition_values", "partitionValues", f.partition_map, f.partition_texts),
        Field("size", "size", f.natural),
        Field("tags", "tags", f.scalar_map, dict),
    )


@dataclass(frozen=True, slots=True)
class SkipFile(_Spelled):
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
class AddXRef(_Spelled):
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
class RemoveXRef(_Spelled):
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
class DefineIndex(_Spelled):
    """A column gets an index; splits written from now on carry it."""

    id: str
    column: str
    created_time: int = 0
    format: str = "bbidx2"

    KEY: ClassVar[str] = "defineIndex"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "id", f.name, required=True),
        Field("column", "column", f.name, required=True),
        Field("created_time", "createdTime", f.integer),
        Field("format", "format", f.text),
    )


@dataclass(frozen=True, slots=True)
class IndexFile(_Spelled):
    """The index of one column over one split, in a file of its own."""

    split: str
    path: str
    size: int
    cardinality: int | None = None
    rows: int | None = None
    nulls: int | None = None
    footer_offset: int | None = None

    KEY: ClassVar[str] = "indexBlocks.files"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("split", "split", f.name, required=True),
        Field("path", "path", f.name, required=True),
        Field("size", "size", f.natural, required=True),
        Field("cardinality", "cardinality", f.natural),
        Field("rows", "rows", f.natural),
        Field("nulls", "nulls", f.natural),
        Field("footer_offset", "footerOffset", f.natural),
    )


def _index_files(value: Any, where: str) -> tuple[IndexFile, ...]:
    if not isinstance(value, list):
        f.wrong_type(where, "an array of objects", value)
    return tuple(IndexFile.from_dict(item) for item in value)


def _index_file_dicts(value: tuple[IndexFile, ...]) -> list[dict[str, Any]]:
    return [item.to_dict() for item in value]


@dataclass(frozen=True, slots=True)
class IndexBlocks(_Spelled):
    """Index files of one column for splits that were written without them."""

    index_id: str
    column: str
    format: str = "BBIDX002"
    files: tuple[IndexFile, ...] = ()

    KEY: ClassVar[str] = "indexBlocks"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index_id", "indexId", f.name, required=True),
        Field("column", "column", f.name, required=True),
        Field("format", "format", f.text),
        Field("files", "files", _index_files, _index_file_dicts),
    )


@dataclass(frozen=True, slots=True)
class DropIndex(_Spelled):
    """A column's index is no longer to be used."""

    id: str
    column: str
    deletion_timestamp: int = 0

    KEY: ClassVar[str] = "dropIndex"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "id", f.name, required=True),
        Field("column", "column", f.name, required=True),
        Field("deletion_timestamp", "deletionTimestamp", f.integer),
    )


@dataclass(frozen=True, slots=True)
class Txn(_Spelled):
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
class CommitInfo(_Spelled):
    """Who committed what, when; the first line of every version after 0 that we write."""

    commit_id: str | None = None
    timestamp: int | None = None
    operation: str | None = None
    operation_parameters: Mapping[str, Any] = field(default_factory=dict)
    operation_metrics: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None

    KEY: ClassVar[str] = "commitInfo"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("commit_id", "commitId", f.text),
        Field("timestamp", "timestamp", f.integer),
        Field("operation", "operation", f.text),
        Field("operation_parameters", "operationParameters", f.json_map, dict),
        Field("operation_metrics", "operationMetrics", f.json_map, dict),
        Field("engine", "engine", f.text),
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
    | Txn
    | CommitInfo
)

ACTION_TYPES: Mapping[str, type[Action]] = {
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
        Txn,
        CommitInfo,
    )
}


def parse_action(line: Any) -> Action | None:
    """The action of one line, or ``None`` when its kind is unknown or its body is ``null``."""
    if not isinstance(line, dict):
        f.wrong_type("action", "an object", line)
    for key, body in line.items():
        kind = ACTION_TYPES.get(key)
        if kind is not None and body is not None:
            return kind.from_dict(body)
    return None
