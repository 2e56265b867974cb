"""Manifests: Avro files of file entries, from bytes to segments and back."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from indextables.config import Config
from indextables.errors import CorruptFileError
from indextables.log.actions import AddFile
from indextables.log.avro_schema import FILE_ENTRY
from indextables.log.columns import RowSegment, Segment

_BLOCK_BYTES = 16 << 20
_CODECS = {"zstd": "zstandard", "snappy": "snappy", "deflate": "deflate", "none": "null"}


def read_entries(data: bytes, where: str) -> list[Segment]:
    """The entries of one manifest."""
    import fastavro

    try:
        rows = list(fastavro.reader(io.BytesIO(data)))
    except Exception as error:
        raise CorruptFileError(f"unreadable manifest: {error}", path=where) from error
    return [RowSegment([AddFile.from_dict(row) for row in rows])]


def write_entries(adds: Iterable[AddFile], config: Config) -> bytes:
    """One manifest of these entries."""
    out = io.BytesIO()
    avro_writer(out, FILE_ENTRY, (_record(add) for add in adds), config)
    return out.getvalue()


def avro_writer(out: Any, schema: Any, records: Iterable[Any], config: Config) -> None:
    """An Avro file with the configured codec and blocks of many entries."""
    import fastavro

    codec = _CODECS[config["state.compression"]]
    level = config["state.compressionLevel"] if codec == "zstandard" else None
    fastavro.writer(
        out,
        fastavro.parse_schema(schema),
        records,
        codec=codec,
        codec_compression_level=level,
        sync_interval=_BLOCK_BYTES,
    )


def _record(add: AddFile) -> dict[str, Any]:
    record = add.to_dict()
    record.setdefault("addedAtVersion", 0)
    record.setdefault("addedAtTimestamp", add.modification_time)
    return record
