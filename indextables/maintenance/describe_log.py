"""DESCRIBE TRANSACTION LOG: the log's actions as rows, and the cross-references' own view.

Without INCLUDE ALL the newest checkpoint's content is shown (protocol, metadata, live splits and
cross-references) and then the versions after it; with it, every version file that is there, the
newest first. ``source_count`` is how many splits a cross-reference covers, also where it goes;
``partition`` reads ``day=mon/hour=7``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from indextables.log.actions import (
    AddFile,
    AddKeyMap,
    AddXRef,
    Metadata,
    Protocol,
    RemoveFile,
    RemoveKeyMap,
    RemoveXRef,
    SkipFile,
)
from indextables.log.log import TransactionLog
from indextables.log.read.loader import read_versions
from indextables.log.read.moments import moment_of
from indextables.log.read.versions import LOG_DIR, list_log, list_states, state_dir, version_path
from indextables.maintenance.rows import columns_of
from indextables.splits.format.partition_values import partition_folder
from indextables.xref import coverage

LOG_COLUMNS = columns_of("""
    version: int, log_file_path: str, action_type: str, path: str, partition_values: str, size:
    int, data_change: bool, tags: str, modification_time: moment, stats: str, min_values: str,
    max_values: str, num_records: int, footer_start_offset: int, footer_end_offset: int,
    hotcache_start_offset: int, hotcache_length: int, has_footer_offsets: bool,
    time_range_start: str, time_range_end: str, split_tags: str, delete_opstamp: int,
    num_merge_ops: Int32, doc_mapping_json: str, doc_mapping_ref: str, uncompressed_size_bytes:
    int, deletion_timestamp: moment, extended_file_metadata: bool, skip_timestamp: moment,
    skip_reason: str, skip_operation: str, skip_retry_after: moment, skip_count: Int32,
    protocol_min_reader_version: Int32, protocol_min_writer_version: Int32,
    protocol_reader_features: str, protocol_writer_features: str, metadata_id: str,
    metadata_name: str, metadata_description: str, metadata_format_provider: str,
    metadata_format_options: str, metadata_schema_string: str, metadata_partition_columns: str,
    metadata_configuration: str, metadata_created_time: moment, is_checkpoint: bool,
    source_count: int, partition: str
""")
XREF_SUMMARY_COLUMNS = columns_of("""
    xref_path: str, source_count: int, total_terms: int, size_bytes: int, created_time: moment,
    status: str
""")


def describe_log(
    log: TransactionLog, *, include_all: bool = False, limit: int | None = None
) -> pa.Table:
    """The log's actions, in order."""
    rows: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for version, place, is_checkpoint, action in _actions(log, include_all):
        body = _described(action)
        if body is None:
            continue
        head = {"version": version, "log_file_path": place, "is_checkpoint": is_checkpoint}
        if isinstance(action, AddXRef):
            counts[action.path] = action.source_split_count
        rows.append({**head, **body, "source_count": counts.get(body.get("path", ""))})
    if include_all:
        rows.sort(key=lambda row: -row["version"])
    rows = rows if limit is None else rows[:limit]
    return pa.Table.from_pylist(rows, schema=LOG_COLUMNS)


def _actions(log: TransactionLog, include_all: bool) -> Iterator[tuple[int, str, bool, Any]]:
    listing = list_log(log.store)
    base = -1
    if not include_all:
        base = max([*list_states(log.store), *listing.checkpoints], default=-1)
        if base >= 0:
            snapshot = log.snapshot(version=base)
            place = state_dir(base) if base not in listing.checkpoints else LOG_DIR
            facts = [snapshot.protocol, snapshot.metadata, *snapshot.files(), *snapshot.xrefs]
            yield from ((base, place, True, action) for action in facts)
    versions = [v for v in sorted(listing.versions) if v > base]
    for change in read_versions(log.store, log.config, versions, listing):
        for action in change.actions:
            yield change.version, version_path(change.version), False, action


def _described(action: Any) -> dict[str, Any] | None:
    """The columns an action fills; ``None`` for kinds the view does not show."""
    if isinstance(action, AddFile):
        return _add(action)
    if isinstance(action, RemoveFile):
        return {
            "action_type": "remove",
            "path": action.path,
            "partition_values": _json(action.partition_values),
            "partition": _partition(action.partition_values),
            "size": action.size,
            "data_change": action.data_change,
            "tags": _json(action.tags),
            "deletion_timestamp": _moment(action.deletion_timestamp),
            "extended_file_metadata": action.extended_file_metadata,
        }
    if isinstance(action, SkipFile):
        return _skip(action)
    if isinstance(action, Protocol):
        return _protocol(action)
    if isinstance(action, Metadata):
        return _metadata(action)
    if isinstance(action, AddXRef | RemoveXRef):
        return _xref(action)
    if isinstance(action, AddKeyMap):
        return {"action_type": "addKeyMap", "path": action.path, "size": action.size}
    if isinstance(action, RemoveKeyMap):
        gone = _moment(action.deletion_timestamp)
        return {"action_type": "removeKeyMap", "path": action.path, "deletion_timestamp": gone}
    return None


def _add(action: AddFile) -> dict[str, Any]:
    same = (
        "path", "size", "data_change", "stats", "num_records", "footer_start_offset",
        "footer_end_offset", "hotcache_start_offset", "hotcache_length", "has_footer_offsets",
        "delete_opstamp", "num_merge_ops", "doc_mapping_json", "doc_mapping_ref",
        "uncompressed_size_bytes",
    )  # fmt: skip
    found = {name: getattr(action, name) for name in same}
    return {
        **found,
        "action_type": "add",
        "partition_values": _json(action.partition_values),
        "partition": _partition(action.partition_values),
        "tags": _json(action.tags),
        "modification_time": _moment(action.modification_time),
        "min_values": _json(action.min_values),
        "max_values": _json(action.max_values),
        "time_range_start": _text(action.time_range_start),
        "time_range_end": _text(action.time_range_end),
        "split_tags": _json(action.split_tags),
    }


def _skip(action: SkipFile) -> dict[str, Any]:
    return {
        "action_type": "skip",
        "path": action.path,
        "partition_values": _json(action.partition_values),
        "size": action.size,
        "skip_timestamp": _moment(action.skip_timestamp),
        "skip_reason": action.reason,
        "skip_operation": action.operation,
        "skip_retry_after": _moment(action.retry_after),
        "skip_count": action.skip_count,
    }


def _protocol(action: Protocol) -> dict[str, Any]:
    return {
        "action_type": "protocol",
        "protocol_min_reader_version": action.min_reader_version,
        "protocol_min_writer_version": action.min_writer_version,
        "protocol_reader_features": _json(action.reader_features),
        "protocol_writer_features": _json(action.writer_features),
    }


def _metadata(action: Metadata) -> dict[str, Any]:
    return {
        "action_type": "metadata",
        "metadata_id": action.id,
        "metadata_name": action.name,
        "metadata_description": action.description,
        "metadata_format_provider": action.format_provider,
        "metadata_format_options": _json(action.format_options),
        "metadata_schema_string": action.schema_string,
        "metadata_partition_columns": _json(action.partition_columns),
        "metadata_configuration": _json(action.configuration),
        "metadata_created_time": _moment(action.created_time),
    }


def _xref(action: AddXRef | RemoveXRef) -> dict[str, Any]:
    if isinstance(action, RemoveXRef):
        return {
            "action_type": "removeXRef",
            "path": action.path,
            "tags": _json({"xrefId": action.xref_id, "reason": action.reason}),
            "deletion_timestamp": _moment(action.deletion_timestamp),
        }
    tags = {
        "xrefId": action.xref_id,
        "sourceSplitCount": action.source_split_count,
        "totalTerms": action.total_terms,
        "maxSourceSplits": action.max_source_splits,
    }
    return {
        "action_type": "addXRef",
        "path": action.path,
        "partition_values": _json(action.source_split_paths),
        "size": action.size,
        "tags": _json(tags),
        "modification_time": _moment(action.created_time),
        "num_records": action.source_split_count,
        "footer_start_offset": action.footer_start_offset,
        "footer_end_offset": action.footer_end_offset,
    }


def describe_xrefs(log: TransactionLog, *, limit: int | None = None) -> pa.Table:
    """Live and retired cross-references, the newest first, closed by the coverage summary."""
    snapshot = log.snapshot()
    added = {x.path: x for x in _every_xref(log)}
    rows = [_summary(x, "active") for x in snapshot.xrefs]
    for removal in log.list_removed_xrefs():
        known = added.get(removal.path)
        if known is not None:
            rows.append(_summary(known, "removed"))
        else:
            rows.append({"xref_path": removal.path, "status": "removed"})
    rows.sort(key=lambda row: -(row.get("created_time") or 0))
    rows = rows[:limit] if limit is not None else rows
    rows.append({"xref_path": str(coverage(snapshot)), "status": "summary"})
    return pa.Table.from_pylist(rows, schema=XREF_SUMMARY_COLUMNS)


def _every_xref(log: TransactionLog) -> Iterator[AddXRef]:
    listing = list_log(log.store)
    for change in read_versions(log.store, log.config, sorted(listing.versions), listing):
        yield from (a for a in change.actions if isinstance(a, AddXRef))


def _summary(xref: AddXRef, status: str) -> dict[str, Any]:
    return {
        "xref_path": xref.path,
        "source_count": xref.source_split_count,
        "total_terms": xref.total_terms,
        "size_bytes": xref.size,
        "created_time": _moment(xref.created_time),
        "status": status,
    }


def _json(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, frozenset | set):
        value = sorted(value)
    if hasattr(value, "items"):
        value = dict(value)
    return json.dumps(value, ensure_ascii=False)


def _partition(values: Any) -> str | None:
    """``day=mon/hour=7``, or nothing where the table has no partitions."""
    return partition_folder(dict(values), list(values)) if values else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _moment(ms: int | None) -> int | None:
    """Microseconds; none for a time that is not a date and cannot be shown."""
    return None if ms is None or moment_of(ms) is None else ms * 1000
