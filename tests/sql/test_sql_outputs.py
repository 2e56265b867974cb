"""What each command returns, spelled out: names, types and order are promises to its callers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables

INDEX_ROW = (
    "table_path string, column string, action string, split_path string, index_path string, "
    "cardinality int64, rows int64, size_bytes int64, build_duration_ms int64"
)
MOMENT = "timestamp[us, tz=UTC]"
LOG_ROW = f"""
    version int64, log_file_path string, action_type string, path string, partition_values string,
    size int64, data_change bool, tags string, modification_time {MOMENT}, stats string,
    min_values string, max_values string, num_records int64, footer_start_offset int64,
    footer_end_offset int64, hotcache_start_offset int64, hotcache_length int64,
    has_footer_offsets bool, time_range_start string, time_range_end string, split_tags string,
    delete_opstamp int64, num_merge_ops int32, doc_mapping_json string, doc_mapping_ref string,
    uncompressed_size_bytes int64, deletion_timestamp {MOMENT}, extended_file_metadata bool,
    skip_timestamp {MOMENT}, skip_reason string, skip_operation string,
    skip_retry_after {MOMENT}, skip_count int32, protocol_min_reader_version int32,
    protocol_min_writer_version int32, protocol_reader_features string,
    protocol_writer_features string, metadata_id string, metadata_name string,
    metadata_description string, metadata_format_provider string, metadata_format_options string,
    metadata_schema_string string, metadata_partition_columns string,
    metadata_configuration string, metadata_created_time {MOMENT}, is_checkpoint bool,
    source_count int64, partition string
"""
CHECKPOINT_ROW = (
    "table_path string, status string, checkpoint_version int64, num_actions int64, "
    "num_files int64, protocol_version int64, is_multi_part bool"
)
COMPANION_ROW = (
    "table_path string, source_path string, status string, source_version int64, "
    "splits_created int32, splits_invalidated int32, parquet_files_indexed int32, "
    "parquet_bytes_downloaded int64, split_bytes_uploaded int64, duration_ms int64, message string"
)
OUTPUTS = {
    "MERGE SPLITS {}": """
        table_path string, metrics struct<status: string, merged_files: int64, merge_groups: int64,
        original_size_bytes: int64, merged_size_bytes: int64, message: string>,
        temp_directory_path string, heap_size_bytes int64""",
    "PURGE INDEXTABLE {} DRY RUN": """
        table_path string, metrics struct<status: string, orphaned_files_found: int64,
        orphaned_files_deleted: int64, size_mb_deleted: double, retention_hours: int64,
        tx_log_files_deleted: int64, expired_states_found: int64, expired_states_deleted: int64,
        dry_run: bool, duration_ms: int64, message: string>""",
    "DROP INDEXTABLES PARTITIONS FROM {} WHERE m = 9": """
        table_path string, status string, partitions_dropped int64, splits_removed int64,
        total_size_bytes int64, message string""",
    "CHECKPOINT INDEXTABLES {}": CHECKPOINT_ROW,
    "COMPACT INDEXTABLES {}": CHECKPOINT_ROW,
    "TRUNCATE INDEXTABLES TIME TRAVEL {} DRY RUN": """
        table_path string, status string, checkpoint_version int64, versions_deleted int64,
        checkpoints_deleted int64, files_preserved int64, message string""",
    "REPAIR INDEXFILES TRANSACTION LOG {log} AT LOCATION {new_log}": """
        source_path string, target_path string, source_version int64, total_splits int32,
        valid_splits int32, missing_splits int32, status string""",
    "INDEX CROSSREFERENCES FOR {}": """
        table_path string, partition string, action string, xref_path string,
        source_splits_count int32, total_terms int64, xref_size_bytes int64,
        build_duration_ms int64""",
    "DESCRIBE INDEXTABLES STATE {}": """
        table_path string, format string, version int64, num_files int64, num_manifests int32,
        num_tombstones int32, tombstone_ratio double, total_bytes int64, needs_compaction bool,
        status string""",
    "DESCRIBE INDEXTABLES TRANSACTION LOG {}": LOG_ROW,
    "DESCRIBE INDEXTABLES TRANSACTION LOG {} INCLUDE ALL LIMIT 3": LOG_ROW,
    "DESCRIBE INDEXTABLES TRANSACTION LOG {} XREFS": f"""
        xref_path string, source_count int64, total_terms int64, size_bytes int64,
        created_time {MOMENT}, status string""",
    "DESCRIBE INDEXTABLES COMPONENT SIZES {}": """
        split_path string, partition_values string, component_key string, size_bytes int64,
        component_type string, field_name string""",
    "DESCRIBE INDEXTABLES STATS COVERAGE {}": """
        table_path string, column string, type string, splits int64, splits_with_bounds int64,
        splits_with_null_counts int64, splits_with_nan_counts int64, bounds_percent double,
        can_have bool""",
    "DESCRIBE HISTORY {}": f"""
        version int64, timestamp {MOMENT}, operation string, operationParameters string,
        operationMetrics string, commitId string, splitsAdded int64, splitsRemoved int64""",
    "SHOW PARTITIONS {}": "partition string",
    "ANALYZE TABLE {} COMPUTE STATISTICS": """
        table_path string, version int64, splits int64, rows int64, size_bytes int64""",
    "DESCRIBE INDEXTABLES ENVIRONMENT": """
        host string, role string, property_type string, property_name string,
        property_value string""",
    "DESCRIBE INDEXTABLES DISK CACHE": """
        executor_id string, host string, enabled bool, total_bytes int64, max_bytes int64,
        usage_percent double, splits_cached int64, components_cached int64""",
    "DESCRIBE INDEXTABLES STORAGE STATS": """
        executor_id string, host string, bytes_fetched int64, requests int64""",
    "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE FOR {}": """
        table_path string, result string, cache_hits_before int64, cache_misses_before int64,
        hit_rate_before string""",
    "FLUSH INDEXTABLES DISK CACHE": """
        executor_id string, cache_type string, status string, bytes_freed int64,
        files_deleted int64, message string""",
    "FLUSH INDEXTABLES SEARCHER CACHE": """
        cache_type string, status string, cleared_entries int64, message string""",
    "PREWARM INDEXTABLES CACHE {}": """
        host string, assigned_host string, locality_hits int32, locality_misses int32,
        splits_prewarmed int32, segments string, fields string, duration_ms int64, status string,
        skipped_fields string, retries int32, failed_splits_by_host string, job_id string,
        async_mode bool""",
    "DELETE FROM {} WHERE id = 3": """
        table_path string, status string, rows_deleted int64, splits_rewritten int64,
        splits_removed int64, version int64, message string""",
    "TRUNCATE TABLE {}": """
        table_path string, status string, rows_deleted int64, splits_rewritten int64,
        splits_removed int64, version int64, message string""",
    "UPDATE {} SET id = id + 1 WHERE id = 3": """
        table_path string, status string, rows_updated int64, rows_deleted int64,
        rows_inserted int64, splits_touched int64, version int64, message string""",
    "REORG TABLE {} APPLY (PURGE)": """
        table_path string, status string, splits_rewritten int64, rows_purged int64,
        version int64, message string""",
    "RESTORE {} TO VERSION 1": """
        table_path string, status string, restored_version int64, version int64,
        splits_added int64, splits_removed int64, message string""",
    "DOCTOR {}": """
        table_path string, severity string, check string, path string, detail string,
        remedy string""",
    "ALTER TABLE {} SET TBLPROPERTIES ('minReaderVersion' = '3')": """
        table_path string, status string, version int64""",
    "ALTER TABLE {} UNSET TBLPROPERTIES ('owner')": """
        table_path string, status string, version int64""",
    "ALTER TABLE {} ADD COLUMN fresh int": """
        table_path string, status string, column string, type string, version int64""",
    "ALTER TABLE {} RENAME COLUMN fresh TO new": """
        table_path string, status string, column string, type string, version int64""",
    "ALTER TABLE {} ALTER COLUMN new TYPE bigint": """
        table_path string, status string, column string, type string, version int64""",
    "ALTER TABLE {} DROP COLUMN new": """
        table_path string, status string, column string, type string, version int64""",
    "CREATE INDEX ON {} (v)": INDEX_ROW,
    "REINDEX {}": INDEX_ROW,
    "INDEX SPLITS FOR {} DRY RUN": INDEX_ROW,
    "DESCRIBE INDEXTABLES INDEXES {}": INDEX_ROW,
    "DROP INDEX ON {} (id)": INDEX_ROW,
    "BUILD INDEXTABLES COMPANION FOR PARQUET {source} AT LOCATION {companion}": COMPANION_ROW,
    "SYNC INDEXTABLES COMPANION {companion}": COMPANION_ROW,
    "DESCRIBE INDEXTABLES COMPANION {companion}": """
        table_path string, source_path string, source_format string, source_version int64,
        synced_version int64, files int64, covered_files int64, uncovered_files int64,
        files_with_deletes int64, gone_files int64, splits int64, index_bytes int64,
        message string""",
    "ERASE FROM {} WHERE id = 99 DRY RUN": """
        table_path string, status string, rows_erased int64, splits_rewritten int64,
        versions_ended int64, files_deleted int64, version int64, message string""",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("outputs") / "it's a table")
    for i in range(3):
        data = pa.table(
            {"id": list(range(i * 4, i * 4 + 4)), "m": [9, 10, 11, 12], "v": [1, 2, 1, i]}
        )
        indextables.write(data, place, partition_by=["m"])
    indextables.open(place).create_index("id")
    source = Path(place).parent / "source"
    source.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), source / "a.parquet")
    indextables.index(str(source), str(source.parent / "companion"))
    return place


def quoted(path: str) -> str:
    return "'" + path.replace("'", "\\'") + "'"


def spelled(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


@pytest.mark.parametrize("command", OUTPUTS)
def test_names_types_and_order(path: str, tmp_path: Path, command: str) -> None:
    places = {
        "log": f"{path}/_transaction_log",
        "new_log": str(tmp_path / "new/_transaction_log"),
        "source": str(Path(path).parent / "source"),
        "companion": str(Path(path).parent / "companion"),
    }
    text = command.format(quoted(path), **{name: quoted(p) for name, p in places.items()})
    found = indextables.sql(None, text)
    assert spelled(found.schema) == " ".join(OUTPUTS[command].split())
    assert found.num_rows >= 1


def test_every_command_is_asked_here() -> None:
    from indextables.sql.parser import parse
    from indextables.verbs import REGISTRY

    places = {"log": "'a/_transaction_log'", "new_log": "'b/_transaction_log'"}
    places |= {"source": "'s'", "companion": "'c'"}
    asked = {type(parse(text.format("'p'", **places)).verb) for text in OUTPUTS}
    assert not set(REGISTRY) - asked


def test_the_log_view_has_49_columns() -> None:
    assert LOG_ROW.count(",") + 1 - LOG_ROW.count("[us,") == 49
