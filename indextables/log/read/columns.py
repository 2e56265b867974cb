"""Columns of file entries: the one table that names them, text columns, and segments.

A snapshot is a list of *segments*, runs of file entries that never change. A segment gives each
field of its entries as a column; the snapshot hides dead entries behind a mask and joins segments
when a whole column is asked for. There are two kinds with one interface: ``PackedSegment`` (from
Avro manifests, a few dozen bytes an entry) and ``RowSegment`` here (typed actions of the newest
versions).

In integer columns ``UNKNOWN`` (-1) stands for an absent value; no field can hold a negative
number that means anything. Maps (partition values, minimum, maximum, tags) are one text column
per key. ``present`` distinguishes an absent map from an empty one.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.log.actions import NULL_PARTITION, AddFile
from indextables.log.read.facts import Facts
from indextables.native._hash import xxh64

UNKNOWN = -1
UNKNOWN_FIELDS = "unknownFields"

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EntryField:
    """One field of a file entry: attribute of ``AddFile``, name in files, kind of column."""

    attr: str
    name: str
    kind: str


# fmt: off
ENTRY_FIELDS: tuple[EntryField, ...] = (
    EntryField("path", "path", "text"),
    EntryField("partition_values", "partitionValues", "map"),
    EntryField("size", "size", "int"),
    EntryField("modification_time", "modificationTime", "int"),
    EntryField("data_change", "dataChange", "bool"),
    EntryField("stats", "stats", "text"),
    EntryField("min_values", "minValues", "map"),
    EntryField("max_values", "maxValues", "map"),
    EntryField("num_records", "numRecords", "int"),
    EntryField("footer_start_offset", "footerStartOffset", "int"),
    EntryField("footer_end_offset", "footerEndOffset", "int"),
    EntryField("hotcache_start_offset", "hotcacheStartOffset", "int"),
    EntryField("hotcache_length", "hotcacheLength", "int"),
    EntryField("has_footer_offsets", "hasFooterOffsets", "bool"),
    EntryField("time_range_start", "timeRangeStart", "text"),
    EntryField("time_range_end", "timeRangeEnd", "text"),
    EntryField("tags", "tags", "map"),
    EntryField("split_tags", "splitTags", "list"),
    EntryField("delete_opstamp", "deleteOpstamp", "int"),
    EntryField("num_merge_ops", "numMergeOps", "int"),
    EntryField("doc_mapping_json", "docMappingJson", "text"),
    EntryField("doc_mapping_ref", "docMappingRef", "text"),
    EntryField("uncompressed_size_bytes", "uncompressedSizeBytes", "int"),
    EntryField("added_at_version", "addedAtVersion", "int"),
    EntryField("added_at_timestamp", "addedAtTimestamp", "int"),
    EntryField("companion_source_files", "companionSourceFiles", "list"),
    EntryField("companion_delta_version", "companionDeltaVersion", "int"),
    EntryField("companion_fast_field_mode", "companionFastFieldMode", "text"),
    EntryField("deletion_vector", "deletionVector", "vector"),
    EntryField("unknown", UNKNOWN_FIELDS, "text"),
)
# fmt: on
FIELD_BY_NAME = {field.name: field for field in ENTRY_FIELDS}
MAP_FIELDS = tuple(field.name for field in ENTRY_FIELDS if field.kind == "map")

FEW_TEXTS = 4096


@dataclass(frozen=True, slots=True)
class StringColumn:
    """UTF-8 texts in one buffer: value i is ``data[offsets[i]:offsets[i + 1]]`` if ``valid[i]``."""

    data: Bytes
    offsets: Int64s
    valid: Bytes

    def __len__(self) -> int:
        return len(self.valid)

    def __getitem__(self, i: int) -> str | None:
        if not self.valid[i]:
            return None
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes().decode()

    def to_list(self) -> list[str | None]:
        found: list[str | None] = self.to_arrow().to_pylist()
        return found

    def to_arrow(self) -> Any:
        """The same texts as a ``pyarrow.LargeStringArray``; the texts are not copied."""
        bits = None
        if not self.valid.all():
            bits = pa.py_buffer(np.packbits(self.valid.astype(np.bool_), bitorder="little"))
        return pa.LargeStringArray.from_buffers(
            len(self), pa.py_buffer(self.offsets), pa.py_buffer(self.data), bits
        )

    @classmethod
    def from_arrow(cls, array: Any) -> StringColumn:
        array = array.cast(pa.large_string())
        n = len(array)
        _, offset_buffer, data_buffer = array.buffers()
        offsets = np.zeros(1, np.int64)
        if n:
            offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + n + 1]
        data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.zeros(0, np.uint8)
        valid = np.asarray(array.is_valid()).astype(np.uint8) if n else np.zeros(0, np.uint8)
        return cls(data, offsets, valid)

    @classmethod
    def from_texts(cls, texts: Sequence[str | None]) -> StringColumn:
        """A few are encoded without Arrow, which loads pandas for its first Python objects."""
        if len(texts) <= FEW_TEXTS:
            return cls.from_bytes([None if text is None else text.encode() for text in texts])
        return cls.from_arrow(pa.array(texts, pa.large_string()))

    @classmethod
    def from_bytes(cls, values: Sequence[bytes | None]) -> StringColumn:
        """Bytes that need not be UTF-8, in the same form."""
        lengths = [0 if value is None else len(value) for value in values]
        offsets = np.cumsum([0, *lengths], dtype=np.int64)
        data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
        return cls(data, offsets, np.array([v is not None for v in values], np.uint8))

    @classmethod
    def nulls(cls, n: int) -> StringColumn:
        return cls(np.zeros(0, np.uint8), np.zeros(n + 1, np.int64), np.zeros(n, np.uint8))

    @classmethod
    def concat(cls, columns: Sequence[StringColumn]) -> StringColumn:
        if len(columns) == 1:
            return columns[0]
        bounds = [(int(c.offsets[0]), int(c.offsets[-1])) for c in columns]
        data = [c.data[lo:hi] for c, (lo, hi) in zip(columns, bounds, strict=True)]
        shift = 0
        offsets = [np.zeros(1, np.int64)]
        for column, (lo, hi) in zip(columns, bounds, strict=True):
            offsets.append(column.offsets[1:] + (shift - lo))
            shift += hi - lo
        valid = [c.valid for c in columns]
        return cls(np.concatenate(data), np.concatenate(offsets), np.concatenate(valid))

    def take(self, rows: npt.NDArray[Any]) -> StringColumn:
        as_bytes = self.to_arrow().view(pa.large_binary()).take(pa.array(rows))
        return StringColumn.from_arrow(as_bytes.view(pa.large_string()))


class Segment(ABC):
    """A run of file entries that never change."""

    def __init__(self, n: int, manifest: str | None = None) -> None:
        self.n = n
        self.manifest = manifest
        self.facts = Facts()

    def __len__(self) -> int:
        return self.n

    @abstractmethod
    def ints(self, name: str) -> Int64s:
        """An integer (or boolean) field; ``UNKNOWN`` where absent."""

    @abstractmethod
    def texts(self, name: str) -> StringColumn | None:
        """A text field; ``None`` when no entry has it."""

    def distinct(self, name: str) -> list[str]:
        """The texts that occur in a text field, in order of first appearance."""
        column = self.texts(name)
        if column is None:
            return []
        found: list[str] = column.to_arrow().drop_null().unique().to_pylist()
        return found

    @abstractmethod
    def map_keys(self, name: str) -> Sequence[str]:
        """The keys that occur in a map field."""

    @abstractmethod
    def map_texts(self, name: str, key: str) -> StringColumn | None:
        """One key of a map field; ``None`` when no entry has it."""

    @abstractmethod
    def map_present(self, name: str) -> Bytes:
        """Which entries have this map, if only an empty one."""

    @abstractmethod
    def raw_lists(self, name: str) -> StringColumn | None:
        """A list field in its Avro form; ``None`` when no entry has it."""

    def map_codes(self, name: str, key: str) -> tuple[npt.NDArray[np.int32], list[str | None]]:
        """One key of a map field, dictionary-coded; every code has its text."""
        column = self.map_texts(name, key)
        if column is None:
            return np.zeros(self.n, np.int32), [None]
        coded = column.to_arrow().dictionary_encode(null_encoding="encode")
        return np.asarray(coded.indices), coded.dictionary.to_pylist()

    @abstractmethod
    def counts(self, kind: str, column: str) -> Int64s | None:
        """``stats.<kind>.<column>`` of each entry, ``UNKNOWN`` where it does not say."""

    @abstractmethod
    def path(self, row: int) -> str: ...

    @abstractmethod
    def add(self, row: int) -> AddFile: ...

    @abstractmethod
    def find(self, paths: Sequence[str], hashes: npt.NDArray[np.uint64] | None = None) -> Int64s:
        """The row of each path, -1 where it is not here; ``hashes`` as ``hash_paths`` gives."""

    @abstractmethod
    def path_hashes(self) -> npt.NDArray[np.uint64]:
        """XXH64 of each path."""

    def sorted_hashes(self) -> npt.NDArray[np.uint64]:
        """``path_hashes`` in ascending order."""
        return np.sort(self.path_hashes())

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory held by the entries."""


class RowSegment(Segment):
    """Entries as typed actions: the newest versions of a table, or all of a small one."""

    def __init__(self, adds: Iterable[AddFile]) -> None:
        self._adds = tuple(adds)
        self._rows = {add.path: row for row, add in enumerate(self._adds)}
        super().__init__(len(self._adds))

    @property
    def adds(self) -> tuple[AddFile, ...]:
        return self._adds

    def _values(self, name: str) -> list[Any]:
        attr = FIELD_BY_NAME[name].attr
        return [getattr(add, attr) for add in self._adds]

    def ints(self, name: str) -> Int64s:
        return np.array([UNKNOWN if v is None else int(v) for v in self._values(name)], np.int64)

    def texts(self, name: str) -> StringColumn | None:
        values = self._values(name)
        if FIELD_BY_NAME[name].kind == "vector":
            values = [None if v is None else v.text for v in values]
        return StringColumn.from_texts(values) if any(v is not None for v in values) else None

    def map_keys(self, name: str) -> Sequence[str]:
        keys: dict[str, None] = {}
        for value in self._values(name):
            keys.update(dict.fromkeys(value or ()))
        return list(keys)

    def map_texts(self, name: str, key: str) -> StringColumn | None:
        values = [None if m is None else m.get(key) for m in self._values(name)]
        return StringColumn.from_texts(values) if any(v is not None for v in values) else None

    def map_present(self, name: str) -> Bytes:
        return np.array([value is not None for value in self._values(name)], np.uint8)

    def raw_lists(self, name: str) -> StringColumn | None:
        values = self._values(name)
        if all(value is None for value in values):
            return None
        return StringColumn.from_bytes([None if v is None else _raw_list(v) for v in values])

    def counts(self, kind: str, column: str) -> Int64s | None:
        found = [count_in_stats(add.stats, kind, column) for add in self._adds]
        return np.array(found, np.int64) if any(c != UNKNOWN for c in found) else None

    def path(self, row: int) -> str:
        return self._adds[row].path

    def add(self, row: int) -> AddFile:
        return self._adds[row]

    def find(self, paths: Sequence[str], hashes: npt.NDArray[np.uint64] | None = None) -> Int64s:
        return np.array([self._rows.get(path, -1) for path in paths], np.int64)

    def path_hashes(self) -> npt.NDArray[np.uint64]:
        return hash_paths([add.path for add in self._adds])

    @property
    def nbytes(self) -> int:
        return 1500 * self.n


def hash_paths(paths: Sequence[str]) -> npt.NDArray[np.uint64]:
    """XXH64 of each path, by which segments look files up."""
    return np.array([xxh64(path) for path in paths], np.uint64)


def count_in_stats(stats: str | None, kind: str, column: str) -> int:
    """``stats.<kind>.<column>`` of one entry; anything but a count is ``UNKNOWN``."""
    if not stats:
        return UNKNOWN
    try:
        body = json.loads(stats)
    except (ValueError, RecursionError):
        return UNKNOWN
    inner = body.get(kind) if isinstance(body, dict) else None
    value = inner.get(column) if isinstance(inner, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        return UNKNOWN
    return value


def partition_text(value: str | None) -> str | None:
    """A stored partition value: NULL is absent or the Hive marker."""
    return None if value == NULL_PARTITION else value


def _raw_list(items: Iterable[str]) -> bytes:
    """Strings as an Avro array; sets are sorted, so that equal sets are equal bytes."""
    texts = [i.encode() for i in (sorted(items) if isinstance(items, frozenset) else items)]
    body = b"".join(zigzag(len(text)) + text for text in texts)
    return zigzag(len(texts)) + body + b"\0" if texts else b"\0"


def zigzag(value: int) -> bytes:
    """A length or count as Avro writes it."""
    left = value << 1
    out = bytearray()
    while left >= 128:
        out.append((left & 127) | 128)
        left >>= 7
    out.append(left)
    return bytes(out)
