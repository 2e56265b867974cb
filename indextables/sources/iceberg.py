"""Iceberg tables: their columns, files and deletes at a snapshot.

A table is named by its folder, by a metadata file, or by its name in a catalog. Catalogs are asked
through the ``pyiceberg`` library (``pip install 'indextables[iceberg]'``), which knows all of them;
what they answer is where the newest metadata is. From there on files are read here: metadata,
manifests (``iceberg_files``), vectors and deletes, with our own storage and under declared roots.

In a folder the newest metadata is the file with the highest number. Two files with that number are
the marks of a catalog, in which one of them lost: then the folder does not say which is the table,
and it is refused.

Format versions 1 to 3 are read. Data and deletes are Parquet files and Puffin vectors; everything
else (ORC, Avro, encryption, types and versions to come) is refused by name.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.errors import (
    ConfigError,
    CorruptFileError,
    IndexTablesError,
    MissingLibraryError,
    ProtocolError,
    TableNotFoundError,
    VersionNotFoundError,
)
from indextables.log.vectors.codec import MOST_ROWS, read_vector
from indextables.lru import LRU
from indextables.sources.base import Bounds, EqualityDelete, SourceColumn, SourceFile
from indextables.sources.footer import FooterFacts
from indextables.sources.iceberg_files import (
    DeleteIndex,
    Entry,
    PositionDelete,
    by_key,
    indexed,
    live_entries,
)
from indextables.sources.iceberg_schema import (
    bound,
    columns_of,
    mapped_names,
    partition_value,
)
from indextables.sources.roots import Roots, split_options
from indextables.sources.rows import ParquetRows

NEWEST_FORMAT = 3
KEPT_BYTES = 128 << 20
_NUMBERED = re.compile(r"v?(\d+)(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?$")
_PATH = SourceColumn("file_path", pa.string(), "path", "file_path", field_id=2147483546)
_POS = SourceColumn("pos", pa.int64(), "pos", "pos", field_id=2147483545)
_positions: LRU[Any, dict[str, NDArray[np.uint64]]] = LRU(
    most_bytes=KEPT_BYTES, size_of=lambda held: sum(rows.nbytes for rows in held.values())
)
_equalities: LRU[Any, pa.Table] = LRU(most_bytes=KEPT_BYTES, size_of=lambda table: table.nbytes)


def open_iceberg(location: str, options: Mapping[str, Any] | None = None) -> IcebergTable:
    """The Iceberg table in a folder, of a metadata file, or (``catalog``) of a name."""
    catalog = split_options(options)[0].get("catalog")
    if catalog is not None:
        return IcebergTable(location, dict(options or {}), catalog)
    return IcebergTable(location, dict(options or {}))


@dataclass
class IcebergTable:
    """An Iceberg table at whatever snapshot is asked."""

    name: str
    options: Mapping[str, Any]
    catalog: Any = None
    format: str = "iceberg"

    @property
    def location(self) -> str:
        return self.name if self.catalog is not None else self._place()[0].location

    def _place(self) -> tuple[Roots, str]:
        """The roots of the table, and the address of its newest metadata."""
        if self.catalog is not None:
            return _from_catalog(self.name, self.catalog, self.options)
        if self.name.endswith((".metadata.json", ".metadata.json.gz")):
            folder, _, file = self.name.rpartition("/")
            parent, _, last = folder.rpartition("/")
            roots = Roots.of(
                parent if last == "metadata" and parent else folder or ".", self.options
            )
            inner = f"metadata/{file}" if last == "metadata" and parent else file
            return roots, f"{roots.location}/{inner}"
        roots = Roots.of(self.name, self.options)
        return roots, f"{roots.location}/{_newest(roots)}"

    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> IcebergSnapshot:
        """The newest snapshot, the one with an id, or the one at a time in milliseconds."""
        if version is not None and timestamp is not None:
            raise IndexTablesError("a version or a timestamp, not both", path=self.name)
        roots, address = self._place()
        try:
            return _snapshot(roots, read_metadata(roots, address), version, timestamp)
        except (CorruptFileError, ProtocolError, VersionNotFoundError) as error:
            error.path = error.path or roots.location
            raise


def _newest(roots: Roots) -> str:
    found: dict[int, list[str]] = {}
    for info in roots.store.list("metadata"):
        if match := _NUMBERED.match(info.path.rpartition("/")[2]):
            found.setdefault(int(match[1]), []).append(info.path)
    if not found:
        raise TableNotFoundError("there is no Iceberg metadata", path=roots.location)
    newest = found[max(found)]
    if len(newest) > 1:
        raise ConfigError(
            f"the folder holds {len(newest)} newest metadata files, such as {newest[0]}",
            hint="Name the metadata file, or the table in its catalog",
        )
    return newest[0]


def _from_catalog(name: str, catalog: Any, options: Mapping[str, Any]) -> tuple[Roots, str]:
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise MissingLibraryError.of("pyiceberg", "iceberg") from None
    named = {"name": catalog} if isinstance(catalog, str) else dict(catalog)
    try:
        table = load_catalog(named.pop("name", None), **named).load_table(name)
    except Exception as error:
        raise TableNotFoundError(
            f"the catalog does not give the table: {error}", path=name
        ) from error
    given = {**_storage_of(table.io.properties), **options}
    roots = Roots.of(table.metadata.location, given)
    folder = table.metadata_location.rpartition("/")[0]
    return Roots.of(table.metadata.location, {**given, "roots": [*roots.declared, folder]}), (
        table.metadata_location
    )


_CREDENTIALS = {
    "s3.access-key-id": "key",
    "s3.secret-access-key": "secret",
    "s3.session-token": "token",
    "s3.endpoint": "endpoint_url",
}


def _storage_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Credentials that a catalog hands out, as our storage takes them."""
    found = {
        ours: properties[theirs] for theirs, ours in _CREDENTIALS.items() if properties.get(theirs)
    }
    if found and properties.get("s3.region"):
        found["client_kwargs"] = {"region_name": properties["s3.region"]}
    return found


def read_metadata(roots: Roots, address: str) -> dict[str, Any]:
    """The metadata of a table, which is refused where it is newer than we are."""
    store, path = roots.locate(address)
    data = store.read(path)
    try:
        if data[:2] == b"\x1f\x8b":
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read()
        found = json.loads(data)
        version = found["format-version"]
    except (ValueError, LookupError, TypeError, OSError, EOFError, RecursionError) as error:
        raise CorruptFileError(
            f"the metadata of Iceberg does not parse: {error!r}", path=path
        ) from None
    if version not in range(1, NEWEST_FORMAT + 1):
        raise ProtocolError(
            f"the Iceberg table has format version {version}; {NEWEST_FORMAT} is the newest known",
            path=path,
        )
    return dict(found)


# -- a snapshot -----------------------------------------------------------------------------------


def _chosen(
    metadata: Mapping[str, Any], version: int | None, timestamp: int | None
) -> Mapping[str, Any] | None:
    if timestamp is not None:
        log = metadata.get("snapshot-log") or ()
        before = [e for e in log if e["timestamp-ms"] <= timestamp]
        if not before:
            raise VersionNotFoundError(
                f"the Iceberg table has no snapshot as old as {timestamp} ms"
            )
        version = max(before, key=lambda e: e["timestamp-ms"])["snapshot-id"]
    current = metadata.get("current-snapshot-id")
    if version is None:
        if current in (None, -1):
            return None
        version = current
    for snapshot in metadata.get("snapshots") or ():
        if snapshot["snapshot-id"] == version:
            return dict(snapshot)
    raise VersionNotFoundError(
        f"the Iceberg table has no snapshot {version}", hint="It may have been expired"
    )


def _schema(metadata: Mapping[str, Any], wanted: int | None) -> Mapping[str, Any]:
    schemas = metadata.get("schemas") or [metadata["schema"]]
    chosen = metadata.get("current-schema-id", 0) if wanted is None else wanted
    for schema in schemas:
        if schema.get("schema-id", 0) == chosen:
            return dict(schema)
    raise CorruptFileError(f"the Iceberg table has no schema {chosen}")


def _snapshot(
    roots: Roots, metadata: Mapping[str, Any], version: int | None, timestamp: int | None
) -> IcebergSnapshot:
    try:
        chosen = _chosen(metadata, version, timestamp)
        asked = version is not None or timestamp is not None
        schema = _schema(metadata, chosen.get("schema-id") if asked and chosen else None)
        names = mapped_names(metadata.get("properties") or {})
        columns = columns_of(schema, names)
        specs = _specs(metadata)
        reading = _Reading(roots, columns, specs, _uuids(schema))
        format_version = int(metadata["format-version"])
        entries = list(live_entries(roots, chosen, format_version)) if chosen else []
    except (LookupError, TypeError) as error:
        raise CorruptFileError(f"the metadata of Iceberg lacks {error!r}") from None
    unpartitioned = frozenset(i for i, fields in specs.items() if not fields)
    data, deletes = indexed(entries, unpartitioned)
    files = [reading.file(entry, deletes) for entry in data]
    default = specs.get(metadata.get("default-spec-id", 0), ())
    return IcebergSnapshot(
        roots,
        int(chosen["snapshot-id"]) if chosen else 0,
        chosen.get("timestamp-ms") if chosen else None,
        tuple(columns),
        tuple(c for c, transform in reading.identities(default) if transform),
        tuple(sorted(files, key=lambda file: file.path)),
        str(metadata.get("table-uuid", "")),
        tuple(columns_of(_everything(metadata), names)),
    )


def _everything(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """All columns that the table ever had: an equality delete may name one that was dropped."""
    found: dict[int, Any] = {}
    for schema in metadata.get("schemas") or [metadata["schema"]]:
        for node in schema["fields"]:
            found[node["id"]] = node
    for node in _schema(metadata, None)["fields"]:
        found[node["id"]] = node
    return {"fields": list(found.values())}


def _specs(metadata: Mapping[str, Any]) -> dict[int, tuple[tuple[int, int, str], ...]]:
    """By id the fields of each partition spec: their id, their column's id, and the transform."""
    specs = metadata.get("partition-specs")
    if specs is None:
        specs = [{"spec-id": 0, "fields": metadata.get("partition-spec") or ()}]
    found = {}
    for spec in specs:
        fields = [
            (int(f.get("field-id", 1000 + i)), int(_source(f)), str(f["transform"]))
            for i, f in enumerate(spec["fields"])
        ]
        found[int(spec["spec-id"])] = tuple(fields)
    return found


def _source(node: Mapping[str, Any]) -> int:
    """The column of a partition's field; one of several columns has no value of its own."""
    if "source-id" in node:
        return int(node["source-id"])
    several = node.get("source-ids") or (-1,)
    return int(several[0]) if len(several) == 1 else -1


def _uuids(schema: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(str(f["id"]) for f in schema["fields"] if f["type"] == "uuid")


@dataclass
class _Reading:
    """Makes source files of entries."""

    roots: Roots
    columns: list[SourceColumn]
    specs: Mapping[int, tuple[tuple[int, int, str], ...]]
    uuids: frozenset[str]

    def identities(self, fields: Any) -> Iterator[tuple[str, bool]]:
        known = {column.identity for column in self.columns}
        for _, source, transform in fields:
            yield str(source), transform == "identity" and str(source) in known

    def file(self, entry: Entry, deletes: DeleteIndex) -> SourceFile:
        file = entry.file
        self.roots.locate(entry.path)
        return SourceFile(
            self.roots.resolve(entry.path),
            int(file["file_size_in_bytes"]),
            int(file["record_count"]),
            str(entry.sequence),
            self._partition(entry),
            self._bounds(file),
            deletes.of(entry, self.roots),
        )

    def _partition(self, entry: Entry) -> dict[str, Any]:
        if entry.partition[0] not in self.specs:
            raise CorruptFileError(f"the table has no partition spec {entry.partition[0]}")
        by_id = {column.identity: column for column in self.columns}
        return {
            str(source): partition_value(entry.values[field], by_id[str(source)].type)
            for field, source, transform in self.specs[entry.partition[0]]
            if transform == "identity" and str(source) in by_id and field in entry.values
        }

    def _bounds(self, file: Mapping[str, Any]) -> dict[str, Bounds]:
        lows, highs = by_key(file.get("lower_bounds")), by_key(file.get("upper_bounds"))
        nulls = by_key(file.get("null_value_counts"))
        found = {}
        for column in self.columns:
            key, is_uuid = int(column.identity), column.identity in self.uuids
            if pa.types.is_nested(column.type) or not (key in lows or key in highs or key in nulls):
                continue
            low = bound(lows.get(key), column.type, is_uuid)
            high = bound(highs.get(key), column.type, is_uuid)
            found[column.identity] = Bounds(low, high, nulls.get(key))
        return found


@dataclass
class IcebergSnapshot:
    """An Iceberg table at one snapshot."""

    roots: Roots
    version: int
    timestamp: int | None
    columns: tuple[SourceColumn, ...]
    partition_columns: tuple[str, ...]
    _files: tuple[SourceFile, ...]
    table_id: str = ""
    _ever: tuple[SourceColumn, ...] = ()
    format: str = "iceberg"

    @property
    def location(self) -> str:
        return self.roots.location

    def files(self) -> Iterator[SourceFile]:
        return iter(self._files)

    def deleted_positions(self, file: SourceFile) -> NDArray[np.uint64] | None:
        if not file.deletes.positions:
            return None
        parts = [self._rows_of(delete, file) for delete in file.deletes.positions]
        rows = np.unique(np.concatenate(parts))
        if len(rows) and file.rows is not None and int(rows[-1]) >= file.rows:
            raise CorruptFileError(f"a delete names row {rows[-1]} of {file.rows}", path=file.path)
        return rows

    def _rows_of(self, delete: PositionDelete, file: SourceFile) -> NDArray[np.uint64]:
        key = (self.roots.location, delete.path, delete.size, delete.start)
        if delete.start is not None:
            held = _positions.load(key, lambda: {"": self._vector(delete, file)})
            return held[""]
        held = _positions.load(key, lambda: self._position_file(delete))
        return held.get(delete.data_path, np.zeros(0, np.uint64))

    def _vector(self, delete: PositionDelete, file: SourceFile) -> NDArray[np.uint64]:
        store, path = self.roots.locate(delete.path)
        start = delete.start or 0
        (data,) = store.read_ranges(path, [(start, start + delete.length)])
        try:
            rows = read_vector(bytes(data), most=max(file.rows or MOST_ROWS, delete.rows))
        except CorruptFileError as error:
            error.path = error.path or path
            raise
        if len(rows) != delete.rows:
            raise CorruptFileError(
                f"a deletion vector holds {len(rows)} rows, not {delete.rows}", path=path
            )
        return rows

    def _position_file(self, delete: PositionDelete) -> dict[str, NDArray[np.uint64]]:
        store, path = self.roots.locate(delete.path)
        rows = ParquetRows(store, path, delete.size, [_PATH, _POS], trust_size=False)
        found: dict[str, list[Any]] = {}
        for batch in rows.scan():
            if batch.column("path").null_count or batch.column("pos").null_count:
                raise CorruptFileError("a position delete holds NULL", path=path)
            numbers = batch.column("pos").to_numpy()
            for name in pc.unique(batch.column("path")).to_pylist():
                mine = pc.equal(batch.column("path"), name).to_numpy(zero_copy_only=False)
                found.setdefault(name, []).append(numbers[mine])
        return {
            name: np.unique(np.concatenate(parts)).astype(np.uint64)
            for name, parts in found.items()
        }

    def equality_rows(self, delete: EqualityDelete) -> pa.Table:
        key = (self.roots.location, delete)
        return _equalities.load(key, lambda: self._equality_file(delete))

    def _equality_file(self, delete: EqualityDelete) -> pa.Table:
        known = {column.identity: column for column in (*self._ever, *self.columns)}
        missing = [c for c in delete.columns if c not in known]
        if missing:
            raise CorruptFileError(
                f"an equality delete compares the unknown field {missing[0]}", path=delete.path
            )
        store, path = self.roots.locate(delete.path)
        columns = [known[c] for c in delete.columns]
        rows = ParquetRows(store, path, delete.size, columns, trust_size=False)
        return pa.Table.from_batches(rows.scan(), rows.schema)

    def rows(self, file: SourceFile, facts: FooterFacts | None = None) -> ParquetRows:
        store, path = self.roots.locate(file.path)
        compared = {c for delete in file.deletes.equality for c in delete.columns}
        shown = {column.identity for column in self.columns}
        return ParquetRows(
            store,
            path,
            file.size,
            self.columns,
            partition=file.partition,
            facts=facts,
            hidden=[c for c in self._ever if c.identity in compared - shown],
            trust_size=False,
        )
