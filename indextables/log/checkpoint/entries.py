"""Reading manifests: Avro files of file entries become packed segments.

Blocks are decompressed and decoded one at a time, straight into packed columns and without
objects; some tens of megabytes of them make one segment. Paths are checked as they come in: a log
that names a file outside its table is refused.

Fields that a newer writer added are skipped by the decoder; where a schema has any, they are read
once more as objects and kept as JSON, so that a state written from these entries does not lose
them. That is slow, and only such manifests pay for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from indextables.errors import CorruptFileError, UnsafePathError
from indextables.log.actions.spelled import json_object
from indextables.log.actions.tablepath import table_path
from indextables.log.checkpoint.avro_file import BlockGroup, Container, entry_program
from indextables.log.checkpoint.avro_schema import Program, strange_fields
from indextables.log.read.columns import UNKNOWN_FIELDS, Segment, StringColumn, hash_paths
from indextables.log.read.packed import (
    PackedInts,
    PackedMap,
    PackedSegment,
    PackedText,
    render,
)
from indextables.native._avro import MISSING, EntryColumns, decode_entries
from indextables.native._avro_objects import decode_objects
from indextables.native._textpack import pack_texts
from indextables.native._textunpack import sort_hashes
from indextables.storage.base import safe_path


def read_entries(data: bytes, root: str) -> list[Segment]:
    """The entries of one manifest of the table at ``root`` (the uri of its store)."""
    container = Container.scan(data)
    program = entry_program(container.schema_text)
    return [_segment(program, group, root) for group in container.groups()]


def _segment(program: Program, group: BlockGroup, root: str) -> PackedSegment:
    raw = decode_entries(program, group.blocks(), group.counts, group.sizes)
    segment = segment_of_columns(program.columns, raw, root)
    strange = strange_fields(program)
    if strange:
        _keep_strange(segment, program, group, strange)
    return segment


# -- unknown fields -----------------------------------------------------------------------------


def _keep_strange(
    segment: PackedSegment, program: Program, group: BlockGroup, strange: list[str]
) -> None:
    """Put fields of a newer writer into the column of unknown fields, as JSON."""
    entries = (
        entry
        for block, count in zip(group.blocks(), group.counts, strict=True)
        for entry in decode_objects(program, block, count)
    )
    texts = [_as_json(entry, strange) for entry in entries]
    if any(text is not None for text in texts):
        column = StringColumn.from_texts(texts)
        segment.text_columns = {
            **segment.text_columns,
            UNKNOWN_FIELDS: PackedText(
                segment.n,
                np.packbits(column.valid, bitorder="little"),
                data=column.data,
                offsets=column.offsets.view(np.uint64),
            ),
        }


def _as_json(entry: dict[str, Any], strange: list[str]) -> str | None:
    earlier = entry.get(UNKNOWN_FIELDS)
    found = json_object(earlier) if isinstance(earlier, str) else {}
    given = {name: entry.get(name) for name in strange}
    found |= {name: value for name, value in given.items() if value is not None and _fits(value)}
    return _dumped(found) if found else None


def _fits(value: Any) -> bool:
    """Can JSON hold it? A number that is not one cannot be written."""
    try:
        _dumped(value)
    except (ValueError, TypeError):
        return False
    return True


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> str:
    """Bytes, as a text of as many characters."""
    return bytes(value).decode("latin-1")


def segment_of_columns(
    columns: dict[str, list[str]], raw: EntryColumns, root: str
) -> PackedSegment:
    """Pack decoded entries; an empty ``root`` means that paths were checked before."""
    n = raw.rows
    texts = {name: PackedText.of(n, raw.texts(k)) for k, name in enumerate(columns["text"])}
    lists = {name: PackedText.of(n, raw.lists(k)) for k, name in enumerate(columns["list"])}
    ints = {name: PackedInts.pack(raw.ints[k], MISSING) for k, name in enumerate(columns["int"])}
    size = ints["size"]
    if n and (size is None or size.valid is not None):
        raise CorruptFileError("a file entry has no size")
    hashes = raw.path_hashes
    fixed = _checked_paths(texts["path"], root) if root else None
    if fixed is not None:
        texts["path"] = PackedText.of(n, pack_texts(*_places(fixed)))
        hashes = hash_paths(fixed)
    return PackedSegment(
        n,
        {name: column for name, column in ints.items() if column is not None},
        {name: column for name, column in texts.items() if column is not None},
        {name: _packed_map(raw, k) for k, name in enumerate(columns["map"])},
        {name: column for name, column in lists.items() if column is not None},
        sort_hashes(hashes),
    )


def _packed_map(raw: EntryColumns, field: int) -> PackedMap:
    present = PackedInts.pack(raw.map_present(field).astype(np.int64), 0)
    columns: dict[str, PackedText] = {}
    for number, key in enumerate(raw.map_keys(field)):
        column = PackedText.of(raw.rows, raw.map_texts(field, number))
        if column is not None:
            columns[key] = column
    return PackedMap(present, columns)


def _checked_paths(paths: PackedText | None, root: str) -> list[str] | None:
    """``None`` when every path is safe as it stands, else all of them made relative."""
    if paths is None:
        return None
    if paths.skeletons is not None:
        samples = [render(s, [1] * len(paths.slots)).decode() for s in paths.skeletons]
    else:
        samples = [text or "" for text in paths.to_column().to_list()]
    if all(_is_safe(sample) for sample in samples):
        return None
    return [table_path(text or "", root) for text in paths.to_column().to_list()]


def _is_safe(path: str) -> bool:
    try:
        safe_path(path)
    except UnsafePathError:
        return False
    return True


def _places(texts: Sequence[str]) -> tuple[bytes, Any, Any]:
    """Texts as one buffer with starts and lengths."""
    encoded = [text.encode() for text in texts]
    lengths = np.array([len(e) for e in encoded], np.uint32)
    starts = np.zeros(len(encoded), np.uint32)
    starts[1:] = np.cumsum(lengths[:-1], dtype=np.uint32)
    return b"".join(encoded), starts, lengths
