"""Logs of any size, the same table for us and for deltalake.

Every split has five columns with bounds (a long, a timestamp in microseconds, a double, a string,
an int), null counts, a size, footer offsets and a random UUID in its name.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.config import Config
from indextables.log.actions import Metadata, Protocol
from indextables.log.checkpoint.avro_file import ContainerWriter
from indextables.log.checkpoint.avro_schema import FILE_ENTRY
from indextables.log.checkpoint.encode import ENTRIES_PER_BLOCK
from indextables.log.checkpoint.manifest import ManifestInfo, StateManifest
from indextables.log.checkpoint.state import encode_state
from indextables.log.read.columns import FIELD_BY_NAME, StringColumn
from indextables.log.read.ledger import Ledger, ledger_to_json
from indextables.log.read.packed import PackedInts, PackedText
from indextables.log.read.versions import LOG_DIR, state_dir, version_path
from indextables.native._avro_write import EntryEncoder
from indextables.storage.base import open_store
from indextables.types import schema_to_json

PER_MANIFEST = 50_000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("score", pa.float64()),
        ("name", pa.string()),
        ("level", pa.int32()),
    ]
)
_STATS = (
    b'{"numRecords":\xff,"nullCount":{"id":0,"ts":0,"score":\xff,"name":0,"level":0},'
    b'"nanCount":{"score":0},"tightBounds":true}'
)


@dataclass
class Entries:
    """Columns of ``n`` file entries."""

    n: int
    ints: dict[str, Any]
    texts: dict[str, StringColumn]
    low: dict[str, StringColumn]
    high: dict[str, StringColumn]


def _spelled(n: int, skeleton: bytes, *slots: Any) -> StringColumn:
    columns = tuple(PackedInts(n, 0, slot.astype(np.uint64)) for slot in slots)
    return PackedText(n, None, (skeleton,), None, columns).to_column()


def make(n: int, seed: int = 7) -> Entries:
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 10**9, n)
    moments = 1_767_225_600_000_000 + np.cumsum(rng.integers(0, 10**6, n))
    rows = rng.integers(1, 10**6, n)
    users = np.sort(rng.integers(10**7, 10**8, (2, n)), axis=0)
    scores = rng.random(n)
    footers = rng.integers(10**6, 10**9, n)
    uuids = rng.integers(0, 1 << 63, (2, n), dtype=np.uint64)
    level = np.zeros(n)
    return Entries(
        n,
        {
            "size": footers + 5000,
            "modificationTime": moments // 1000,
            "dataChange": np.ones(n, np.int64),
            "numRecords": rows,
            "footerStartOffset": footers,
            "footerEndOffset": footers + 5000,
            "hasFooterOffsets": np.ones(n, np.int64),
            "numMergeOps": np.zeros(n, np.int64),
            "uncompressedSizeBytes": footers * 3,
            "addedAtVersion": np.arange(n) // 100,
            "addedAtTimestamp": moments // 1000,
        },
        {
            "path": _spelled(n, b"part-\xfe.split", *uuids),
            "stats": _spelled(n, _STATS, rows, rng.integers(0, 3, n)),
            "docMappingRef": _spelled(n, b"z7TwwZ-tDWGD-uX5"),
        },
        {
            "id": _spelled(n, b"\xff", ids),
            "ts": _spelled(n, b"\xff", moments),
            "score": StringColumn.from_arrow(pa.array(scores).cast(pa.large_string())),
            "name": _spelled(n, b"user_\xff_x", users[0]),
            "level": _spelled(n, b"\xff", level + 1),
        },
        {
            "id": _spelled(n, b"\xff", ids + 1000),
            "ts": _spelled(n, b"\xff", moments + 500_000),
            "score": StringColumn.from_arrow(pa.array(scores + 1).cast(pa.large_string())),
            "name": _spelled(n, b"user_\xff_x", users[1]),
            "level": _spelled(n, b"\xff", level + 5),
        },
    )


def encoder_of(entries: Entries) -> EntryEncoder:
    fields = []
    for field in FILE_ENTRY["fields"]:
        name, optional = field["name"], isinstance(field["type"], list)
        kind = FIELD_BY_NAME[name].kind
        if kind in ("int", "bool"):
            values = entries.ints.get(name, np.full(entries.n, -1, np.int64))
            spelled = "boolean" if kind == "bool" else "optional_long" if optional else "long"
            fields.append((spelled, np.ascontiguousarray(values, np.int64), []))
        elif kind == "map":
            columns = {"minValues": entries.low, "maxValues": entries.high}.get(name, {})
            present = np.full(entries.n, bool(columns), np.uint8)
            fields.append(("optional_map" if optional else "map", present, list(columns.items())))
        elif kind == "list":
            fields.append(("optional_raw", None, []))
        else:
            column = entries.texts.get(name)
            texts = [] if column is None else [(None, column)]
            fields.append(("optional_text" if optional else "text", None, texts))
    return EntryEncoder(fields, entries.n)


def manifest_bytes(encoder: EntryEncoder, rows: Any, config: Config | None = None) -> bytes:
    writer = ContainerWriter(FILE_ENTRY, config or Config())
    for first in range(0, len(rows), ENTRIES_PER_BLOCK):
        block = rows[first : first + ENTRIES_PER_BLOCK]
        writer.add_block(len(block), encoder.encode(block))
    return writer.finish()


def write_ours(folder: Path, entries: Entries) -> None:
    """A table with version 0 and one state at version 1."""
    store, config = open_store(str(folder)), Config()
    ledger = Ledger(Protocol(4, 4), Metadata("bench", schema_string=schema_to_json(SCHEMA)))
    lines = [json.dumps(action.envelope()) for action in ledger.to_actions()]
    store.put(version_path(0), "\n".join(lines).encode())
    encoder, infos = encoder_of(entries), []
    for first in range(0, entries.n, PER_MANIFEST):
        rows = np.arange(first, min(first + PER_MANIFEST, entries.n), dtype=np.int64)
        info = ManifestInfo(f"manifests/manifest-{first:016x}.avro", len(rows))
        store.put(f"{LOG_DIR}/{info.path}", manifest_bytes(encoder, rows, config))
        infos.append(info)
    state = StateManifest(
        state_version=1,
        created_at=int(time.time() * 1000),
        num_files=entries.n,
        total_bytes=int(entries.ints["size"].sum()),
        manifests=tuple(infos),
        metadata=ledger.metadata,
    )
    data = encode_state(state, ledger_to_json(ledger), config, as_json=False)
    store.put(f"{state_dir(1)}/_manifest.avro", data)


def write_delta(folder: Path, entries: Entries) -> None:
    """The same files as a Delta table: one commit, then a Parquet checkpoint."""
    from deltalake import DeltaTable

    log = folder / "_delta_log"
    log.mkdir(parents=True)
    metadata = {
        "id": "bench",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_to_json(SCHEMA),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    low = [entries.low[name].to_list() for name in SCHEMA.names]
    high = [entries.high[name].to_list() for name in SCHEMA.names]
    paths = entries.texts["path"].to_list()
    columns = [entries.ints[name].tolist() for name in ("size", "modificationTime", "numRecords")]
    with open(log / f"{0:020d}.json", "w") as file:
        file.write('{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n')
        file.write(json.dumps({"metaData": metadata}) + "\n")
        for k, path in enumerate(paths):
            size, modified, records = (column[k] for column in columns)
            stats = (
                f'{{"numRecords":{records},"minValues":{_bounds([c[k] for c in low])},'
                f'"maxValues":{_bounds([c[k] for c in high])},'
                '"nullCount":{"id":0,"ts":0,"score":0,"name":0,"level":0}}'
            )
            add = {
                "path": path,
                "partitionValues": {},
                "size": size,
                "modificationTime": modified,
                "dataChange": True,
                "stats": stats,
            }
            file.write(json.dumps({"add": add}) + "\n")
    DeltaTable(str(folder)).create_checkpoint()


def _bounds(values: list[Any]) -> str:
    ids, moment, score, name, level = values
    second, micros = divmod(int(moment), 10**6)
    spelled = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)) + f".{micros:06d}Z"
    return f'{{"id":{ids},"ts":"{spelled}","score":{score},"name":"{name}","level":{level}}}'
