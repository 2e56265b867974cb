"""Reading manifests: Avro files of file entries become packed segments.

Reading decodes some tens of megabytes of blocks at a time into places (no copies, no objects),
packs the columns, and lets the block go. Paths are checked as they come in: a log that names a
file outside its table is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from indextables.errors import CorruptFileError, UnsafePathError
from indextables.log.avro_file import BlockGroup, Container, entry_program
from indextables.log.avro_schema import Program
from indextables.log.columns import Segment
from indextables.log.packed import (
    PackedInts,
    PackedMap,
    PackedSegment,
    PackedText,
    render,
    sorted_hashes,
)
from indextables.log.tablepath import table_path
from indextables.native._avro import MISSING, EntryColumns, decode_entries
from indextables.storage.base import safe_path


def read_entries(data: bytes, root: str) -> list[Segment]:
    """The entries of one manifest of the table at ``root`` (the uri of its store)."""
    container = Container.scan(data)
    program = entry_program(container.schema_text)
    return [_segment(program, group, root) for group in container.groups()]


def _segment(program: Program, group: BlockGroup, root: str) -> PackedSegment:
    raw = decode_entries(program, group.data, group.ends, group.counts)
    return segment_of_columns(program.columns, raw, root)


def segment_of_columns(
    columns: dict[str, list[str]], raw: EntryColumns, root: str
) -> PackedSegment:
    """Pack decoded entries; an empty ``root`` means that paths were checked before."""
    path = columns["text"].index("path")
    starts, lengths = raw.text_starts[path], raw.text_lengths[path]
    texts = {
        name: PackedText.pack(raw.data, raw.text_starts[k], raw.text_lengths[k])
        for k, name in enumerate(columns["text"])
    }
    if raw.rows and (texts["path"] is None or texts["path"].valid is not None):
        raise CorruptFileError("a file entry has no path")
    if texts["path"] is not None and root:
        fixed = _checked_paths(texts["path"], root)
        if fixed is not None:
            raw_paths, starts, lengths = _places(fixed)
            texts["path"] = PackedText.pack(raw_paths, starts, lengths)
            hashes = sorted_hashes(raw_paths, starts, lengths)
            return _assembled(columns, raw, texts, hashes)
    return _assembled(columns, raw, texts, sorted_hashes(raw.data, starts, lengths))


def _assembled(
    columns: dict[str, list[str]], raw: EntryColumns, texts: dict[str, Any], hashes: Any
) -> PackedSegment:
    ints = {name: PackedInts.pack(raw.ints[k], MISSING) for k, name in enumerate(columns["int"])}
    if raw.rows and (ints["size"] is None or ints["size"].valid is not None):
        raise CorruptFileError("a file entry has no size")
    lists = {
        name: PackedText.pack_raw(raw.data, raw.list_starts[k], raw.list_lengths[k])
        for k, name in enumerate(columns["list"])
    }
    maps = {name: _packed_map(raw, k) for k, name in enumerate(columns["map"])}
    return PackedSegment(
        raw.rows,
        {name: column for name, column in ints.items() if column is not None},
        {name: column for name, column in texts.items() if column is not None},
        maps,
        {name: column for name, column in lists.items() if column is not None},
        hashes,
    )


def _packed_map(raw: EntryColumns, field: int) -> PackedMap:
    present = PackedInts.pack(raw.map_present[field].astype(np.int64), 0)
    columns: dict[str, PackedText] = {}
    for key, starts, lengths in raw.map_columns(field):
        column = PackedText.pack(raw.data, starts, lengths)
        if column is not None:
            columns[key] = column
    return PackedMap(present, columns)


def _checked_paths(paths: PackedText, root: str) -> list[str] | None:
    """``None`` when every path is safe as it stands, else all of them made relative."""
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
