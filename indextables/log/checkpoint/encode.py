"""Writing manifests: the live files of some segments become Avro files of file entries.

Files are encoded from columns, row by row, without building objects. When everything is
rewritten, they are sorted by partition values first (numbers as numbers), so that each manifest
covers few partitions. Otherwise segments are taken a manifest's worth at a time, so that memory
stays bounded by one manifest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.config import Config
from indextables.log.actions import NULL_PARTITION, AddFile
from indextables.log.actions.mappings import MappingColumns
from indextables.log.checkpoint.avro_file import ContainerWriter, entry_program
from indextables.log.checkpoint.avro_schema import FILE_ENTRY
from indextables.log.checkpoint.bounds import bounds_of_values, number_of
from indextables.log.checkpoint.entries import segment_of_columns
from indextables.log.checkpoint.manifest import Bounds
from indextables.log.read.columns import (
    FIELD_BY_NAME,
    UNKNOWN,
    Int64s,
    RowSegment,
    Segment,
    StringColumn,
)
from indextables.log.read.filecolumns import FileColumns
from indextables.native._avro import decode_entries
from indextables.native._avro_write import EntryEncoder

Source: TypeAlias = tuple[str, Any, list[tuple[str | None, Any]]]
ENTRIES_PER_BLOCK = 1024  # some hundred kilobytes, which stay near while they are taken apart
PACKED_ROWS = 16384
_SCHEMA_TEXT = json.dumps(FILE_ENTRY).encode()


@dataclass(frozen=True, slots=True)
class EncodedManifest:
    """One manifest, ready to be stored."""

    data: bytes
    num_entries: int
    min_version: int
    max_version: int
    bounds: Bounds | None


class ManifestEncoder:
    """Encodes files of one table; ``partitions`` are its partition columns.

    ``renamed`` are references of document mappings that change; ``registry`` gathers the mappings
    that stood inline in entries and are now referred to.
    """

    def __init__(
        self,
        schema: pa.Schema,
        partitions: Sequence[str],
        config: Config,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self.registry: dict[str, str] = {}
        self._renamed = renamed or {}
        self._schema = schema
        self._partitions = tuple(partitions)
        self._config = config
        self._size = max(1, config["state.entriesPerManifest"])

    def encode(self, loose: FileColumns, *, sort: bool) -> Iterator[EncodedManifest]:
        """The live files of ``loose`` as manifests of at most ``entriesPerManifest`` entries."""
        if not loose.num_files:
            return
        if sort and self._partitions:
            yield from self._encode(loose, _partition_order(loose, self._partitions))
            return
        for batch in _batches(loose, self._size):
            yield from self._encode(batch, np.arange(batch.num_files))

    def _encode(self, loose: FileColumns, order: Int64s) -> Iterator[EncodedManifest]:
        mappings = MappingColumns(loose, self._renamed)
        self.registry.update(mappings.registry)
        encoder = EntryEncoder(_sources(loose, mappings.columns), loose.num_files)
        versions = np.maximum(loose.int_column("addedAtVersion"), 0)
        for first in range(0, len(order), self._size):
            rows = order[first : first + self._size]
            writer = ContainerWriter(FILE_ENTRY, self._config)
            for start in range(0, len(rows), ENTRIES_PER_BLOCK):
                block = rows[start : start + ENTRIES_PER_BLOCK]
                writer.add_block(len(block), encoder.encode(block))
            yield EncodedManifest(
                writer.finish(),
                len(rows),
                int(versions[rows].min()),
                int(versions[rows].max()),
                self._bounds(loose, rows),
            )

    def _bounds(self, loose: FileColumns, rows: Int64s) -> Bounds | None:
        if not self._partitions:
            return None
        values = {}
        for column in self._partitions:
            codes, texts = loose.partition_codes(column)
            values[column] = [texts[code] for code in np.unique(codes[rows])]
        return bounds_of_values(values, self._schema)


def _batches(loose: FileColumns, size: int) -> Iterator[FileColumns]:
    """Neighbouring segments, together about one manifest's worth of files."""
    first = held = 0
    for k, count in enumerate(loose.live_counts):
        if held and held + count > size:
            yield _part(loose, first, k)
            first, held = k, 0
        held += count
    if held:
        yield _part(loose, first, len(loose.segments))


def _part(loose: FileColumns, first: int, last: int) -> FileColumns:
    return FileColumns(loose.segments[first:last], loose.live[first:last])


def _sources(
    loose: FileColumns, replaced: Mapping[str, StringColumn] | None = None
) -> list[Source]:
    """Every field of the schema as the encoder wants it; ``replaced`` are text fields."""
    found: list[Source] = []
    for field in FILE_ENTRY["fields"]:
        name, optional = field["name"], isinstance(field["type"], list)
        if replaced and name in replaced:
            found.append(("optional_text", None, [(None, replaced[name])]))
        else:
            found.append(_source(loose, name, optional))
    return found


def _source(loose: FileColumns, name: str, optional: bool) -> Source:
    kind = FIELD_BY_NAME[name].kind
    if kind == "bool":
        return "boolean", loose.int_column(name), []
    if kind == "int":
        values = loose.int_column(name)
        return ("optional_long", values, []) if optional else ("long", _whole(loose, name), [])
    if kind == "map":
        columns: list[tuple[str | None, Any]] = [
            (key, _map_column(loose, name, key)) for key in loose.map_keys(name)
        ]
        if not optional:
            return "map", None, columns
        return "optional_map", loose.map_present(name), columns
    if kind == "list":
        return "optional_raw", None, [(None, loose.raw_lists(name))]
    return ("optional_text" if optional else "text"), None, [(None, loose.text_column(name))]


def _whole(loose: FileColumns, name: str) -> Int64s:
    """A required number; one that was not recorded gets the nearest known value."""
    values = loose.int_column(name)
    if not (values == UNKNOWN).any():
        return values
    other = loose.modification_times if name == "addedAtTimestamp" else np.zeros_like(values)
    return np.where(values == UNKNOWN, np.maximum(other, 0), values)


def _map_column(loose: FileColumns, name: str, key: str) -> StringColumn:
    column = loose.map_column(name, key)
    if name != "partitionValues" or column.valid.all():
        return column
    return StringColumn.from_texts(
        [t if t is not None else NULL_PARTITION for t in column.to_list()]
    )


# -- partitions ---------------------------------------------------------------------------------


def _partition_order(loose: FileColumns, partitions: Sequence[str]) -> Int64s:
    """Files by partition values, first column first; equal ones stay in order."""
    ranks = [_ranks(loose, column) for column in reversed(partitions)]
    return np.lexsort(ranks).astype(np.int64)


def _ranks(loose: FileColumns, column: str) -> npt.NDArray[np.int64]:
    codes, texts = loose.partition_codes(column)
    ordered = sorted(range(len(texts)), key=lambda code: _sort_key(texts[code]))
    ranks = np.empty(len(texts), np.int64)
    ranks[ordered] = np.arange(len(texts))
    return ranks[codes]


def _sort_key(text: str | None) -> tuple[Any, ...]:
    """NULL first, then numbers by value, then other texts."""
    if text is None:
        return (0,)
    number = number_of(text)
    return (2, text) if number is None else (1, number, text)


def pack_adds(adds: Sequence[AddFile], root: str = "") -> list[Segment]:
    """Typed actions as packed segments: encoded and decoded in memory."""
    rows = RowSegment(adds)
    encoder = EntryEncoder(_sources(FileColumns([rows])), rows.n)
    program = entry_program(_SCHEMA_TEXT)
    segments: list[Segment] = []
    for first in range(0, rows.n, PACKED_ROWS):
        some = np.arange(first, min(first + PACKED_ROWS, rows.n), dtype=np.int64)
        raw = decode_entries(program, [encoder.encode(some)], [len(some)])
        segments.append(segment_of_columns(program.columns, raw, root))
    return segments
