"""The files of an Iceberg snapshot: which data files are live, and which deletes each has.

A snapshot names manifests, and manifests name files with their sequence number: the age of the
change that brought a file. Deletes go by that age:

- a *deletion vector* names one data file, and holds all its deleted positions; position deletes of
  that file are not looked at any more;
- a *position delete* acts on data files of its partition (or on the one that it names) that are not
  newer than itself: a commit may delete rows that it wrote;
- an *equality delete* acts on data files of its partition that are **older** than itself; one
  without a partition acts on those of every partition.

The manifests are read here and not through ``pyiceberg``: its reader leaves out where in a file a
vector lies and which file it is for.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from indextables.errors import CorruptFileError, ProtocolError
from indextables.lru import LRU
from indextables.sources.base import Deletes, EqualityDelete
from indextables.sources.roots import Roots
from indextables.storage import pool
from indextables.storage.machine import refuse_to_judge

DATA, POSITIONS, EQUALITY = range(3)
_DELETED = 2
_ADDED = 1
_INHERITED = ("partition_spec_id", "sequence_number")
_ENTRY_BYTES = 3000
_KEPT_BYTES = 256 << 20
Partition = tuple[int, tuple[Any, ...]]


class Entry(NamedTuple):
    """A file of a manifest that is live."""

    content: int
    sequence: int
    partition: Partition
    values: Mapping[int, Any]
    """Values of the partition, by the id of the partition's field."""
    file: Mapping[str, Any]

    @property
    def path(self) -> str:
        return str(self.file["file_path"])


_kept: LRU[Any, list[Entry]] = LRU(
    most_bytes=_KEPT_BYTES, size_of=lambda entries: _ENTRY_BYTES * (1 + len(entries))
)


class PositionDelete(NamedTuple):
    """A file, or a part of one, that names deleted positions."""

    path: str
    size: int
    data_path: str
    """The data file as the delete names it."""
    start: int | None
    """Where a deletion vector begins; ``None`` for a file of positions."""
    length: int
    rows: int


def read_avro(roots: Roots, address: str) -> tuple[list[Any], Mapping[str, Any], Mapping[str, Any]]:
    """The records of an Avro file, its schema, and its notes."""
    import fastavro

    store, path = roots.locate(address)
    data = store.read(path)
    try:
        reader = fastavro.reader(io.BytesIO(data))
        notes = dict(reader.metadata)
        return list(reader), json.loads(notes.get("avro.schema", "{}")), notes
    except Exception as error:
        refuse_to_judge(error, path=path)
        raise CorruptFileError(
            f"a manifest of Iceberg does not parse: {error}", path=path
        ) from error


def live_entries(roots: Roots, snapshot: Mapping[str, Any], version: int) -> Iterator[Entry]:
    """The live data and delete files of a snapshot."""
    manifests = _manifests(roots, snapshot)
    count = pool.workers(roots.store)
    for found in pool.in_order(lambda m: _kept_entries(roots, m, version), manifests, count):
        yield from found


def _manifests(roots: Roots, snapshot: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "manifest-list" not in snapshot:
        return [{"manifest_path": path} for path in snapshot.get("manifests") or ()]
    found, _, _ = read_avro(roots, snapshot["manifest-list"])
    return found


def _kept_entries(roots: Roots, manifest: Mapping[str, Any], version: int) -> list[Entry]:
    """The entries of a manifest, which never changes: it is read once."""
    told = tuple(manifest.get(name) for name in ("manifest_path", "manifest_length", *_INHERITED))
    key = (roots.location, tuple(sorted(roots.relocate.items())), told, version)
    return _kept.load(key, lambda: _manifest_entries(roots, manifest, version))


def _manifest_entries(roots: Roots, manifest: Mapping[str, Any], version: int) -> list[Entry]:
    try:
        address = manifest["manifest_path"]
        if manifest.get("key_metadata"):
            raise ProtocolError("the manifests of the Iceberg table are encrypted", path=address)
        records, schema, notes = read_avro(roots, address)
        spec = manifest.get("partition_spec_id")
        spec = int(notes.get("partition-spec-id", 0)) if spec is None else int(spec)
        names = _partition_names(schema)
        return [
            _entry(record, manifest, spec, names, version)
            for record in records
            if record["status"] != _DELETED
        ]
    except (LookupError, TypeError, ValueError) as error:
        raise CorruptFileError(
            f"a manifest of Iceberg lacks what it must have: {error!r}",
            path=str(manifest.get("manifest_path")),
        ) from None


def _entry(
    record: Mapping[str, Any],
    manifest: Mapping[str, Any],
    spec: int,
    names: Mapping[str, int],
    version: int,
) -> Entry:
    file = record["data_file"]
    sequence = record.get("sequence_number")
    if sequence is None:
        if version > 1 and record["status"] != _ADDED:
            raise ValueError("a file without a sequence number")
        sequence = manifest.get("sequence_number") or 0
    values = {names[name]: value for name, value in (file.get("partition") or {}).items()}
    key = spec, tuple(_comparable(values[i]) for i in sorted(values))
    found = Entry(int(file.get("content") or DATA), int(sequence), key, values, file)
    _require_readable(found)
    return found


def _comparable(value: Any) -> Any:
    """NaN is the same partition as NaN."""
    return "NaN" if value != value else value


def _require_readable(entry: Entry) -> None:
    kind = str(entry.file["file_format"]).lower()
    is_vector = entry.content == POSITIONS and kind == "puffin"
    if entry.content not in (DATA, POSITIONS, EQUALITY) or not (kind == "parquet" or is_vector):
        raise ProtocolError(f"the Iceberg table holds a file of the kind {kind}", path=entry.path)
    if entry.file.get("key_metadata"):
        raise ProtocolError("files of the Iceberg table are encrypted", path=entry.path)


def _partition_names(schema: Mapping[str, Any]) -> dict[str, int]:
    """The ids of a partition's fields by their names in Avro, which may be spelled differently."""
    for outer in schema.get("fields", ()):
        if outer["name"] == "data_file":
            for inner in outer["type"]["fields"]:
                if inner["name"] == "partition":
                    return {f["name"]: int(f["field-id"]) for f in inner["type"]["fields"]}
    raise ValueError("a manifest without a partition")


# -- deletes --------------------------------------------------------------------------------------


@dataclass
class DeleteIndex:
    """Finds the deletes of a data file."""

    unpartitioned: frozenset[int]
    """Ids of partition specs without fields."""
    vectors: dict[str, list[Entry]] = field(default_factory=dict)
    named: dict[str, list[Entry]] = field(default_factory=dict)
    positions: dict[Partition, list[Entry]] = field(default_factory=dict)
    equality: dict[Partition, list[Entry]] = field(default_factory=dict)
    everywhere: list[Entry] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        if entry.content == EQUALITY:
            if entry.partition[0] in self.unpartitioned:
                self.everywhere.append(entry)
            else:
                self.equality.setdefault(entry.partition, []).append(entry)
            return
        target = entry.file.get("referenced_data_file")
        if str(entry.file["file_format"]).lower() == "puffin":
            if not target:
                raise CorruptFileError("a deletion vector that is for no file", path=entry.path)
            self.vectors.setdefault(target, []).append(entry)
        elif target:
            self.named.setdefault(target, []).append(entry)
        else:
            self.positions.setdefault(entry.partition, []).append(entry)

    def of(self, data: Entry, roots: Roots) -> Deletes:
        """The deletes of a data file."""
        by_position = [e for e in self.vectors.get(data.path, ()) if e.sequence >= data.sequence]
        if len(by_position) > 1:
            raise CorruptFileError("a file has two deletion vectors", path=data.path)
        if not by_position:
            among = [*self.named.get(data.path, ()), *self.positions.get(data.partition, ())]
            by_position = [e for e in among if e.sequence >= data.sequence]
        candidates = [*self.everywhere, *self.equality.get(data.partition, ())]
        by_value = [e for e in candidates if e.sequence > data.sequence]
        if not by_position and not by_value:
            return Deletes()
        positions = tuple(_position(e, data.path, roots) for e in by_position)
        equality = tuple(_equality(e, roots) for e in by_value)
        vector = by_position and positions[0].start is not None
        count = positions[0].rows if vector else None if positions else 0
        return Deletes(_token([*by_position, *by_value]), positions, equality, count)


def _position(entry: Entry, data_path: str, roots: Roots) -> PositionDelete:
    file = entry.file
    start: int | None = None
    length = 0
    if str(file["file_format"]).lower() == "puffin":
        if file.get("content_offset") is None or file.get("content_size_in_bytes") is None:
            raise CorruptFileError("a deletion vector without a place", path=entry.path)
        start, length = int(file["content_offset"]), int(file["content_size_in_bytes"])
    address = _checked(roots, entry.path)
    return PositionDelete(
        address,
        int(file["file_size_in_bytes"]),
        data_path,
        start,
        length,
        int(file["record_count"]),
    )


def _equality(entry: Entry, roots: Roots) -> EqualityDelete:
    ids = entry.file.get("equality_ids")
    if not ids:
        raise CorruptFileError("an equality delete of no columns", path=entry.path)
    address = _checked(roots, entry.path)
    return EqualityDelete(
        address, int(entry.file["file_size_in_bytes"]), tuple(str(i) for i in ids)
    )


def _checked(roots: Roots, address: str) -> str:
    roots.locate(address)
    return roots.resolve(address)


def _token(entries: Sequence[Entry]) -> str:
    parts = sorted(f"{e.path}@{e.file.get('content_offset')}#{e.sequence}" for e in entries)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def indexed(
    entries: Iterable[Entry], unpartitioned: frozenset[int]
) -> tuple[list[Entry], DeleteIndex]:
    """The data files, and the deletes."""
    index, data = DeleteIndex(unpartitioned), []
    for entry in entries:
        if entry.content == DATA:
            data.append(entry)
        else:
            index.add(entry)
    return data, index


def by_key(pairs: Iterable[Mapping[str, Any]] | None) -> dict[int, Any]:
    """A map of Avro, which is a list of pairs."""
    if isinstance(pairs, Mapping):
        return {int(k): v for k, v in pairs.items()}
    return {int(pair["key"]): pair["value"] for pair in pairs or ()}
