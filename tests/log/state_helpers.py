"""Snapshots and actions for the tests of states."""

from __future__ import annotations

import json
import random
import uuid
from typing import Any

import pyarrow as pa

from indextables.log.actions import Action, AddFile, Metadata, Protocol
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.types import schema_to_json

SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("day", pa.string()), ("hour", pa.int32())]
)


def metadata(partitions: tuple[str, ...] = ("day", "hour"), **configuration: str) -> Metadata:
    return Metadata(
        id="11111111-2222-3333-4444-555555555555",
        schema_string=schema_to_json(SCHEMA),
        partition_columns=partitions,
        configuration=configuration,
        created_time=1,
    )


def first_version(partitions: tuple[str, ...] = ("day", "hour")) -> VersionActions:
    return VersionActions(0, 1000, [Protocol(4, 4), metadata(partitions)])


def add(rng: random.Random, path: str | None = None, **more: Any) -> AddFile:
    """A file entry with most fields filled."""
    low = rng.randrange(10**6)
    rows = rng.randrange(1000)
    day = rng.choice(["2024-01-01", "2024-01-02", None])
    stats = {"numRecords": rows, "nullCount": {"id": rng.randrange(5)}, "nanCount": {}}
    values: dict[str, Any] = {
        "path": path or f"day={day}/part-{uuid.UUID(int=rng.getrandbits(128))}.split",
        "partition_values": {"day": day, "hour": str(rng.randrange(24))},
        "size": rng.randrange(1, 10**9),
        "modification_time": rng.randrange(10**12),
        "data_change": rng.random() < 0.5,
        "stats": rng.choice([None, json.dumps(stats)]),
        "min_values": rng.choice([None, {}, {"id": str(low), "name": "a" * rng.randrange(4)}]),
        "max_values": rng.choice([None, {"id": str(low + 5)}]),
        "num_records": rng.choice([None, rows]),
        "footer_start_offset": rng.choice([None, 5]),
        "has_footer_offsets": rng.random() < 0.5,
        "time_range_start": rng.choice([None, "2024-01-01T00:00:00Z"]),
        "tags": rng.choice([None, {"k": "v"}]),
        "split_tags": rng.choice([None, frozenset(), frozenset(("a", "é"))]),
        "num_merge_ops": rng.choice([None, 0, 3]),
        "doc_mapping_ref": rng.choice([None, "z7TwwZ-tDWGD-uX5"]),
        "companion_source_files": rng.choice([None, (), ("x.parquet", "a.parquet")]),
        "hotcache_length": rng.choice([None, 9]),
    }
    return AddFile(**{**values, **more})


def replayed(*batches: list[Action], partitions: tuple[str, ...] = ("day", "hour")) -> Snapshot:
    """The snapshot after version 0 and these versions."""
    versions = [VersionActions(v + 1, 2000 + v, batch) for v, batch in enumerate(batches)]
    return Snapshot.from_replay([first_version(partitions), *versions])


def after(snapshot: Snapshot, *batches: list[Action]) -> Snapshot:
    start = snapshot.version + 1
    return snapshot.with_versions(
        [VersionActions(start + k, 3000 + k, batch) for k, batch in enumerate(batches)]
    )


def content(snapshot: Snapshot) -> dict[str, AddFile]:
    """Files by path; each path must be there once."""
    files = list(snapshot.files())
    found = {file.path: file for file in files}
    assert len(found) == len(files) == snapshot.num_files
    return found
