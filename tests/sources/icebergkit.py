"""An Iceberg table written by hand, with a model of its rows.

It writes what ``pyiceberg`` cannot: position deletes, equality deletes (in a partition and for all
of them), deletion vectors, files without field ids, and columns and partitions that change.
The model deletes rows of Python lists and knows nothing of sequence numbers.
"""

from __future__ import annotations

import io
import json
import struct
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from indextables.log.vectors.codec import framed, vector_bytes

Row = dict[int, Any]
ARROW = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
}
WIDER = {"int": "long", "float": "double"}
NESTED = "nested"
DATA, POSITIONS, EQUALITY = range(3)
_COUNTS = {
    "added_files_count": 504,
    "existing_files_count": 505,
    "deleted_files_count": 506,
    "added_rows_count": 512,
    "existing_rows_count": 513,
    "deleted_rows_count": 514,
}


@dataclass
class Column:
    id: int
    name: str
    kind: str


@dataclass
class Spec:
    """A partition by the values of one column, or of none."""

    id: int
    source: int | None = None
    field_id: int = 0
    transform: str = "identity"


@dataclass
class DataFile:
    path: str
    spec: Spec
    part: Any
    rows: list[Row]
    sequence: int
    entry: dict[str, Any]
    gone: set[int] = field(default_factory=set)

    @property
    def live(self) -> list[Row]:
        return [row for i, row in enumerate(self.rows) if i not in self.gone]


class IcebergBook:
    """An Iceberg table in a folder, as a Hadoop catalog keeps it."""

    def __init__(self, folder: Path, rng: Random, version: int = 2, ids: bool = True) -> None:
        self.folder, self.rng, self.format, self.ids = folder, rng, version, ids
        (folder / "metadata").mkdir(parents=True)
        (folder / "data").mkdir()
        self.sequence = self.snapshot_id = self.number = self.next_id = self.field_ids = 0
        self.columns: list[Column] = []
        self.schemas: list[dict[str, Any]] = []
        for name, kind in (("part", "string"), ("n", "int"), ("text", "string")):
            self._new_column(name, kind)
        self.names: dict[int, list[str]] = {c.id: [c.name] for c in self.columns}
        self.specs = [
            Spec(0),
            Spec(1, self.columns[0].id, 1000),
            Spec(2, self.columns[1].id, 1001, "bucket[3]"),
        ]
        self.field_ids = 1000
        self.spec = rng.choice(self.specs)
        self.files: dict[str, DataFile] = {}
        self.deletes: list[tuple[int, Spec, dict[str, Any]]] = []
        self.snapshots: list[dict[str, Any]] = []
        self._new_schema()
        self._write_metadata()

    # -- metadata ---------------------------------------------------------------------------------

    def _new_column(self, name: str, kind: str) -> Column:
        self.next_id += 1
        column = Column(self.next_id, name, kind)
        self.next_id += 3
        self.columns.append(column)
        return column

    def _new_schema(self) -> None:
        fields = [
            {"id": c.id, "name": c.name, "required": False, "type": self._type(c)}
            for c in self.columns
        ]
        self.schemas.append({"type": "struct", "schema-id": len(self.schemas), "fields": fields})

    def _type(self, column: Column) -> Any:
        if column.kind != NESTED:
            return column.kind
        inner = [
            {"id": column.id + 2, "name": "x", "required": False, "type": "long"},
            {"id": column.id + 3, "name": "y", "required": False, "type": "string"},
        ]
        element = {"type": "struct", "fields": inner}
        return {
            "type": "list", "element-id": column.id + 1, "element": element,
            "element-required": False,
        }  # fmt: skip

    def change_schema(self) -> None:
        self._new_schema()
        self._write_metadata()

    def _write_metadata(self) -> None:
        self.number += 1
        mapping = [
            {"field-id": c.id, "names": self.names.get(c.id, [c.name]), "fields": self._inner(c)}
            for c in self.columns
        ]
        body = {
            "format-version": self.format,
            "table-uuid": str(uuid.UUID(int=7)),
            "last-partition-id": 1000,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "location": f"file://{self.folder}",
            "last-sequence-number": self.sequence,
            "last-updated-ms": self.number * 1000,
            "last-column-id": self.next_id,
            "schemas": self.schemas,
            "current-schema-id": len(self.schemas) - 1,
            "partition-specs": [
                {"spec-id": s.id, "fields": self._spec_fields(s)} for s in self.specs
            ],
            "default-spec-id": self.spec.id,
            "properties": {"schema.name-mapping.default": json.dumps(mapping)},
            "current-snapshot-id": self.snapshot_id or -1,
            "snapshots": self.snapshots,
            "snapshot-log": [
                {"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]}
                for s in self.snapshots
            ],
        }
        path = self.folder / "metadata" / f"v{self.number}.metadata.json"
        path.write_text(json.dumps(body))

    def _inner(self, column: Column) -> list[dict[str, Any]]:
        if column.kind != NESTED:
            return []
        fields = [
            {"field-id": column.id + 2, "names": ["x"]},
            {"field-id": column.id + 3, "names": ["y"]},
        ]
        return [{"field-id": column.id + 1, "names": ["element"], "fields": fields}]

    def _spec_fields(self, spec: Spec) -> list[dict[str, Any]]:
        if spec.source is None:
            return []
        return [
            {
                "field-id": spec.field_id,
                "source-id": spec.source,
                "name": "p x",
                "transform": spec.transform,
            }
        ]

    # -- manifests --------------------------------------------------------------------------------

    def _commit(self, pending: Sequence[tuple[int, Spec, dict[str, Any]]] = ()) -> None:
        """A snapshot of the files of now; ``pending`` deletes came with it."""
        self.deletes += [(self.sequence, spec, entry) for _, spec, entry in pending]
        groups: dict[tuple[int, int], list[tuple[int, dict[str, Any]]]] = {}
        for file in self.files.values():
            groups.setdefault((0, file.spec.id), []).append((file.sequence, file.entry))
        for sequence, spec, entry in self.deletes:
            groups.setdefault((1, spec.id), []).append((sequence, entry))
        manifests = [
            self._manifest(content, self.specs[spec], entries)
            for (content, spec), entries in groups.items()
        ]
        self.snapshot_id = self.rng.getrandbits(60) + 1
        path = self.folder / "metadata" / f"snap-{self.snapshot_id}.avro"
        path.write_bytes(avro(MANIFEST_LIST, manifests))
        self.snapshots.append(
            {
                "snapshot-id": self.snapshot_id,
                "sequence-number": self.sequence,
                "timestamp-ms": self.sequence * 1000,
                "manifest-list": f"file://{path}",
                "schema-id": len(self.schemas) - 1,
            }
        )
        self._write_metadata()

    def _manifest(
        self, content: int, spec: Spec, entries: Iterable[tuple[int, dict[str, Any]]]
    ) -> dict[str, Any]:
        records = []
        for sequence, entry in entries:
            inherits = sequence == self.sequence and self.rng.random() < 0.5
            records.append(
                {
                    "status": 1 if sequence == self.sequence else 0,
                    "snapshot_id": 1,
                    "sequence_number": None if inherits else sequence,
                    "data_file": entry,
                }
            )
        gone = {
            **records[0],
            "status": 2,
            "data_file": {**records[0]["data_file"], "file_path": "x"},
        }
        if self.rng.random() < 0.3:
            records.append(gone)
        kind = "string" if spec.transform == "identity" else "int"
        name = f"{uuid.UUID(int=self.rng.getrandbits(128))}-m0.avro"
        path = self.folder / "metadata" / name
        path.write_bytes(avro(manifest_schema(spec, kind), records))
        return {
            "manifest_path": f"file://{path}",
            "manifest_length": path.stat().st_size,
            "partition_spec_id": spec.id,
            "content": content,
            "sequence_number": self.sequence,
            "min_sequence_number": 0,
            "added_snapshot_id": 1,
            **dict.fromkeys(_COUNTS, len(records)),
        }

    # -- values -----------------------------------------------------------------------------------

    def random_value(self, kind: str) -> Any:
        rng = self.rng
        if rng.random() < 0.15:
            return None
        if kind == NESTED:
            return [
                rng.choice([None, {"x": rng.randrange(9), "y": rng.choice([None, "in"])}])
                for _ in range(rng.randrange(3))
            ]
        if kind in ("int", "long"):
            return rng.randrange(-9, 9)
        if kind in ("float", "double"):
            return rng.choice([0.5, -2.25, 1e10])
        if kind == "date":
            return date(2026, 1, 1) + timedelta(days=rng.randrange(5))
        return rng.choice(["a", "bb", "word " * rng.randrange(1, 8), "é"])

    def random_rows(self, count: int) -> list[Row]:
        return [{c.id: self.random_value(c.kind) for c in self.columns} for _ in range(count)]

    def rows(self) -> list[dict[str, Any]]:
        """What the table holds, under the names of now."""
        return [
            {c.name: row.get(c.id) for c in self.columns}
            for file in self.files.values()
            for row in file.live
        ]

    # -- files ------------------------------------------------------------------------------------

    def _field(self, column: Column) -> pa.Field:
        def note(i: int) -> dict[str, str] | None:
            return {"PARQUET:field_id": str(i)} if self.ids else None

        name = self.names.get(column.id, [column.name])[0] if not self.ids else column.name
        self.names.setdefault(column.id, [name])
        if column.kind != NESTED:
            return pa.field(name, ARROW[column.kind], metadata=note(column.id))
        inner = [
            pa.field("x", pa.int64(), metadata=note(column.id + 2)),
            pa.field("y", pa.string(), metadata=note(column.id + 3)),
        ]
        element = pa.field("element", pa.struct(inner), metadata=note(column.id + 1))
        return pa.field(name, pa.list_(element), metadata=note(column.id))

    def _store(self, prefix: str, table: pa.Table) -> tuple[str, int]:
        name = f"{prefix}-{uuid.UUID(int=self.rng.getrandbits(128))}.parquet"
        target = self.folder / "data" / name
        pq.write_table(table, target, write_page_index=self.rng.random() < 0.5)
        return f"file://{target}", target.stat().st_size

    def _write(self, rows: list[Row], part: Any) -> DataFile:
        schema = pa.schema([self._field(c) for c in self.columns])
        arrays = [
            pa.array([row.get(c.id) for row in rows], schema.field(i).type)
            for i, c in enumerate(self.columns)
        ]
        path, size = self._store("part", pa.Table.from_arrays(arrays, schema=schema))
        entry = self._entry(DATA, path, "PARQUET", len(rows), size, self.spec, part)
        entry.update(self._metrics(rows))
        return DataFile(path, self.spec, part, rows, self.sequence, entry)

    def _metrics(self, rows: list[Row]) -> dict[str, Any]:
        low, high, nulls = [], [], []
        for column in self.columns:
            values = [row[column.id] for row in rows if row.get(column.id) is not None]
            if column.kind == NESTED:
                continue
            nulls.append({"key": column.id, "value": len(rows) - len(values)})
            if values:
                low.append({"key": column.id, "value": single(min(values), column.kind, False)})
                high.append({"key": column.id, "value": single(max(values), column.kind, True)})
        return {"lower_bounds": low, "upper_bounds": high, "null_value_counts": nulls}

    def _entry(
        self, content: int, path: str, kind: str, rows: int, size: int, spec: Spec, part: Any,
        **more: Any,
    ) -> dict[str, Any]:  # fmt: skip
        return {
            "content": content,
            "file_path": path,
            "file_format": kind,
            "partition": {} if spec.source is None else {"p_x20x": part},
            "record_count": rows,
            "file_size_in_bytes": size,
            **more,
        }

    def _part(self, row: Row) -> Any:
        value = None if self.spec.source is None else row.get(self.spec.source)
        if self.spec.transform == "identity" or value is None:
            return value
        return value % 3

    def _add(self, rows: Iterable[Row]) -> list[DataFile]:
        groups: dict[Any, list[Row]] = {}
        for row in rows:
            groups.setdefault(self._part(row), []).append(row)
        made = [self._write(held, part) for part, held in groups.items()]
        self.files.update({file.path: file for file in made})
        return made

    def _begin(self) -> None:
        self.sequence += 1

    # -- what happens to a table ------------------------------------------------------------------

    def append(self, count: int) -> None:
        self._begin()
        self._add(self.random_rows(count))
        self._commit()

    def _scopes(self) -> dict[tuple[int, Any], list[DataFile]]:
        found: dict[tuple[int, Any], list[DataFile]] = {}
        for file in self.files.values():
            found.setdefault((file.spec.id, file.part), []).append(file)
        return found

    def _some_positions(self, file: DataFile) -> set[int]:
        left = [i for i in range(len(file.rows)) if i not in file.gone]
        return set(self.rng.sample(left, self.rng.randrange(1, len(left) + 1))) if left else set()

    def _position_delete(self, files: Sequence[DataFile]) -> list[tuple[int, Spec, dict[str, Any]]]:
        """Positions of some files of one partition in one file."""
        pairs = []
        for file in files:
            more = self._some_positions(file)
            file.gone |= more
            pairs += [(file.path, i) for i in more]
        pairs.sort()
        schema = pa.schema(
            [
                pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
                pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"}),
            ]
        )
        columns = [
            pa.array([p for p, _ in pairs], pa.string()),
            pa.array([i for _, i in pairs], pa.int64()),
        ]
        path, size = self._store("pos", pa.Table.from_arrays(columns, schema=schema))
        spec, part = files[0].spec, files[0].part
        more_about = {}
        if len(files) == 1 and self.rng.random() < 0.5:
            more_about["referenced_data_file"] = files[0].path
        entry = self._entry(POSITIONS, path, "PARQUET", len(pairs), size, spec, part, **more_about)
        return [(self.sequence, spec, entry)]

    def delete_positions(self) -> None:
        self._begin()
        files = self.rng.choice(list(self._scopes().values()))
        files = self.rng.sample(files, self.rng.randrange(1, len(files) + 1))
        if any(self._has_vector(f) for f in files):
            self._commit(self._vectors(files))
        else:
            self._commit(self._position_delete(files))

    def write_and_delete(self) -> None:
        """Rows that are written and deleted by position in the same commit."""
        self._begin()
        made = self._add(self.random_rows(6))
        self._commit(self._position_delete(made[:1]))

    def _has_vector(self, file: DataFile) -> bool:
        return any(
            e.get("content_offset") is not None and e["referenced_data_file"] == file.path
            for _, _, e in self.deletes
        )

    def _vectors(self, files: Sequence[DataFile]) -> list[tuple[int, Spec, dict[str, Any]]]:
        """Vectors with all deleted positions of some files, in one Puffin file."""
        out, places = bytearray(b"PFA1"), []
        for file in files:
            file.gone |= self._some_positions(file)
            data = framed(vector_bytes(np.array(sorted(self._by_position(file)), np.uint64)))
            places.append((len(out), len(data)))
            out += data
        name = f"{uuid.UUID(int=self.rng.getrandbits(128))}.puffin"
        (self.folder / "data" / name).write_bytes(bytes(out))
        paths = {file.path for file in files}
        self.deletes = [
            (s, spec, e)
            for s, spec, e in self.deletes
            if e.get("content_offset") is None or e["referenced_data_file"] not in paths
        ]
        return [
            (self.sequence, file.spec, self._entry(
                POSITIONS, f"file://{self.folder}/data/{name}", "PUFFIN",
                len(self._by_position(file)), len(out), file.spec, file.part,
                referenced_data_file=file.path, content_offset=at, content_size_in_bytes=size,
            ))
            for file, (at, size) in zip(files, places, strict=True)
        ]  # fmt: skip

    def _by_position(self, file: DataFile) -> set[int]:
        """A vector may name rows that are gone by value as well."""
        return file.gone

    def delete_by_vector(self) -> None:
        if self.format < 3:
            self.delete_positions()
            return
        self._begin()
        files = self.rng.choice(list(self._scopes().values()))
        self._commit(self._vectors(self.rng.sample(files, self.rng.randrange(1, len(files) + 1))))

    def _equality_delete(self) -> list[tuple[int, Spec, dict[str, Any]]]:
        rng = self.rng
        usable = [c for c in self.columns if c.kind != NESTED and c.kind not in ("float", "double")]
        columns = rng.sample(usable, rng.randrange(1, min(3, len(usable)) + 1))
        models = [row for file in self.files.values() for row in file.rows]
        chosen = rng.sample(models, min(len(models), rng.randrange(1, 4)))
        gone = [tuple(row.get(c.id) for c in columns) for row in chosen]
        spec, part = self.specs[0], None
        if rng.random() < 0.5:
            some = rng.choice(list(self.files.values()))
            spec, part = some.spec, some.part
        for file in self.files.values():
            if spec.source is None or (file.spec.id, file.part) == (spec.id, part):
                for i, row in enumerate(file.rows):
                    if (
                        file.sequence < self.sequence
                        and tuple(row.get(c.id) for c in columns) in gone
                    ):
                        file.gone.add(i)
        schema = pa.schema(
            [
                pa.field(c.name, ARROW[c.kind], metadata={"PARQUET:field_id": str(c.id)})
                for c in columns
            ]
        )
        arrays = [pa.array([row[i] for row in gone], f.type) for i, f in enumerate(schema)]
        path, size = self._store("eq", pa.Table.from_arrays(arrays, schema=schema))
        ids = [c.id for c in columns]
        entry = self._entry(
            EQUALITY, path, "PARQUET", len(gone), size, spec, part, equality_ids=ids
        )
        return [(self.sequence, spec, entry)]

    def delete_by_value(self) -> None:
        self._begin()
        self._commit(self._equality_delete())

    def upsert(self) -> None:
        """An equality delete, and rows of the same commit that it does not touch."""
        self._begin()
        pending = self._equality_delete()
        rows = [dict(row) for file in self.files.values() for row in file.rows][:4]
        self._add([{c.id: row.get(c.id) for c in self.columns} for row in rows])
        self._commit(pending)

    def compact(self) -> None:
        self._begin()
        chosen = self.rng.sample(list(self.files.values()), min(len(self.files), 3))
        for file in chosen:
            del self.files[file.path]
        rows = [row for file in chosen for row in file.live]
        if rows:
            self._add(rows)
        self._commit()

    def add_column(self) -> None:
        self._new_column(f"extra{self.next_id}", self.rng.choice([*ARROW, NESTED]))
        self.change_schema()

    def rename_column(self) -> None:
        column = self.rng.choice(self.columns)
        self.names.setdefault(column.id, [column.name])
        column.name = f"renamed{self.number}"
        self.change_schema()

    def replace_column(self) -> None:
        used = {spec.source for spec in self.specs}
        chosen = [c for c in self.columns if c.id not in used]
        if len(chosen) > 1 and self.ids:
            old = self.rng.choice(chosen)
            self.columns.remove(old)
            self._new_column(old.name, self.rng.choice(list(ARROW)))
            self.change_schema()

    def widen_column(self) -> None:
        used = {spec.source for spec in self.specs}
        for column in self.columns:
            if column.kind in WIDER and column.id not in used:
                column.kind = WIDER[column.kind]
                self.change_schema()
                return

    def change_partition(self) -> None:
        self.spec = self.rng.choice(self.specs)
        self._write_metadata()


def single(value: Any, kind: str, high: bool) -> bytes:
    """A bound in Iceberg's binary form, cut off as writers do it."""
    if kind == "string":
        cut = value[:16]
        return (cut + "\U0010ffff" if high and len(value) > 16 else cut).encode()
    if kind == "date":
        return struct.pack("<i", (value - date(1970, 1, 1)).days)
    formats = {"int": "<i", "long": "<q", "float": "<f", "double": "<d"}
    return struct.pack(formats[kind], value)


def avro(schema: dict[str, Any], records: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec="deflate", metadata={"format-version": "2"})
    return out.getvalue()


def _optional(name: str, dtype: Any, number: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", dtype], "default": None, "field-id": number}


def _pairs(name: str, value: str, number: int) -> dict[str, Any]:
    record = {
        "type": "record",
        "name": f"k{number}",
        "fields": [
            {"name": "key", "type": "int", "field-id": number + 1},
            {"name": "value", "type": value, "field-id": number + 2},
        ],
    }
    return _optional(name, {"type": "array", "items": record, "logicalType": "map"}, number)


def manifest_schema(spec: Spec, kind: str) -> dict[str, Any]:
    """The Avro schema of a manifest; the partition's field has the name that Avro allows."""
    fields = [] if spec.source is None else [_optional("p_x20x", kind, spec.field_id)]
    partition = {"type": "record", "name": "r102", "fields": fields}
    file = [
        {"name": "content", "type": "int", "field-id": 134},
        {"name": "file_path", "type": "string", "field-id": 100},
        {"name": "file_format", "type": "string", "field-id": 101},
        {"name": "partition", "type": partition, "field-id": 102},
        {"name": "record_count", "type": "long", "field-id": 103},
        {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
        _pairs("null_value_counts", "long", 110),
        _pairs("lower_bounds", "bytes", 125),
        _pairs("upper_bounds", "bytes", 128),
        _optional("equality_ids", {"type": "array", "items": "int", "element-id": 136}, 135),
        _optional("referenced_data_file", "string", 143),
        _optional("content_offset", "long", 144),
        _optional("content_size_in_bytes", "long", 145),
    ]
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            {"name": "status", "type": "int", "field-id": 0},
            _optional("snapshot_id", "long", 1),
            _optional("sequence_number", "long", 3),
            {
                "name": "data_file",
                "type": {"type": "record", "name": "r2", "fields": file},
                "field-id": 2,
            },
        ],
    }


MANIFEST_LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {"name": "content", "type": "int", "field-id": 517},
        {"name": "sequence_number", "type": "long", "field-id": 515},
        {"name": "min_sequence_number", "type": "long", "field-id": 516},
        {"name": "added_snapshot_id", "type": "long", "field-id": 503},
        *({"name": n, "type": "int", "field-id": i} for n, i in _COUNTS.items()),
    ],
}
