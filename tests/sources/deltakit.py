"""A Delta table written by hand, with a model of its rows.

It writes what the ``deltalake`` library cannot: deletion vectors of every storage kind, column
mapping by name and id, renamed, dropped, re-added and widened columns, nested columns, checkpoints
of all kinds, and logs that were cleaned. ``rows()`` says what the table holds, from a model that
knows nothing of logs.
"""

from __future__ import annotations

import io
import json
import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from indextables.log.actions.vector import base85, vector_file
from indextables.log.vectors.codec import vector_bytes, vector_file_bytes

Row = dict[int, Any]
ARROW = {
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
WIDER = {"integer": "long", "float": "double"}
NESTED = "nested"
CHECKPOINTS = ("classic", "parts", "v2-json", "v2-parquet", "struct-stats")
_STRINGS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_ADD = [
    ("path", pa.string()),
    ("partitionValues", _STRINGS),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("stats", pa.string()),
    ("deletionVector", _VECTOR),
]
_META = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _STRINGS),
        ("createdTime", pa.int64()),
    ]
)
_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
_SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
)


@dataclass
class Column:
    """A column of the model; ``key`` is its own whatever it is called."""

    key: int
    name: str
    physical: str
    kind: str
    changed: bool = False


@dataclass
class DataFile:
    path: str
    add: dict[str, Any]
    rows: list[Row]
    gone: set[int] = field(default_factory=set)

    @property
    def live(self) -> list[Row]:
        return [row for i, row in enumerate(self.rows) if i not in self.gone]


class DeltaBook:
    """A Delta table in a folder."""

    def __init__(
        self, folder: Path, rng: Random, mode: str = "none", partition: bool = True
    ) -> None:
        self.folder, self.rng, self.mode = folder, rng, mode
        self.log = folder / "_delta_log"
        self.log.mkdir(parents=True)
        self.version = -1
        self.files: dict[str, DataFile] = {}
        self.columns: list[Column] = []
        self.keys = 0
        self.oldest = 0
        self.table_id = str(uuid.uuid4())
        for name, kind in (("part", "string"), ("n", "integer"), ("text", "string")):
            self._new_column(name, kind)
        self.partition = self.columns[0].key if partition else None
        self._commit([{"protocol": self.protocol()}, {"metaData": self.metadata()}])

    # -- metadata ---------------------------------------------------------------------------------

    def _new_column(self, name: str, kind: str) -> Column:
        self.keys += 1
        physical = (
            name if self.mode == "none" else f"col-{uuid.UUID(int=self.rng.getrandbits(128))}"
        )
        column = Column(self.keys, name, physical, kind)
        self.columns.append(column)
        return column

    def protocol(self) -> dict[str, Any]:
        features = ["deletionVectors", "v2Checkpoint"]
        if any(column.changed for column in self.columns):
            features.append("typeWidening")
        if self.mode != "none":
            features.append("columnMapping")
        return {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }

    def metadata(self) -> dict[str, Any]:
        fields = [self._field(column) for column in self.columns]
        named = [c.name for c in self.columns if c.key == self.partition]
        return {
            "id": self.table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": named,
            "configuration": {"delta.columnMapping.mode": self.mode},
            "createdTime": 0,
        }

    def _notes(self, key: int, physical: str) -> dict[str, Any]:
        if self.mode == "none":
            return {}
        return {
            "delta.columnMapping.id": key,
            "delta.columnMapping.physicalName": physical,
        }

    def _field(self, column: Column) -> dict[str, Any]:
        kind: Any = column.kind
        if kind == NESTED:
            inner = [
                {"name": n, "type": t, "nullable": True, "metadata": self._notes(i, p)}
                for n, t, i, p in self._inner(column)
            ]
            struct = {"type": "struct", "fields": inner}
            kind = {"type": "array", "elementType": struct, "containsNull": True}
        notes = self._notes(column.key, column.physical)
        if column.changed:
            notes["delta.typeChanges"] = [{"fromType": "x", "toType": column.kind}]
        return {"name": column.name, "type": kind, "nullable": True, "metadata": notes}

    def _inner(self, column: Column) -> list[tuple[str, str, int, str]]:
        base = 1000 * column.key
        if self.mode == "none":
            return [("x", "long", base + 1, "x"), ("y", "string", base + 2, "y")]
        return [("x", "long", base + 1, f"px{base}"), ("y", "string", base + 2, f"py{base}")]

    def _commit(self, actions: Sequence[dict[str, Any]]) -> None:
        self.version += 1
        shuffled = list(actions)
        self.rng.shuffle(shuffled)
        info = {"commitInfo": {"timestamp": 0, "operation": "HAND"}}
        lines = [json.dumps(action) for action in [info, *shuffled]]
        (self.log / f"{self.version:020d}.json").write_text("\n".join(lines))

    def change_metadata(self) -> None:
        self._commit([{"metaData": self.metadata()}, {"protocol": self.protocol()}])

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
        if kind == "integer":
            return rng.randrange(-50, 50)
        if kind == "long":
            return rng.choice([rng.randrange(-50, 50), 1 << 40])
        if kind in ("float", "double"):
            value = rng.choice([0.1, 3.4, -2.5, 1e10, rng.random()])
            return float(np.float32(value)) if kind == "float" else value
        if kind == "date":
            return date(2026, 1, 1) + timedelta(days=rng.randrange(100))
        if kind == "timestamp":
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randrange(10**10))
        return rng.choice(["a", "bb", "word " * rng.randrange(1, 12), "é" * 40, "z" * 32])

    def random_rows(self, count: int) -> list[Row]:
        return [{c.key: self.random_value(c.kind) for c in self.columns} for _ in range(count)]

    def rows(self) -> list[dict[str, Any]]:
        """What the table holds, under the names of now."""
        return [
            {c.name: row.get(c.key) for c in self.columns}
            for file in self.files.values()
            for row in file.live
        ]

    # -- files ------------------------------------------------------------------------------------

    def _arrow(self, column: Column) -> pa.Field:
        notes = {} if self.mode == "none" else {"PARQUET:field_id": str(column.key)}
        if column.kind != NESTED:
            return pa.field(column.physical, ARROW[column.kind], metadata=notes)
        inner = [
            pa.field(p, ARROW[t], metadata={"PARQUET:field_id": str(i)} if notes else {})
            for _, t, i, p in self._inner(column)
        ]
        return pa.field(column.physical, pa.list_(pa.struct(inner)), metadata=notes)

    def _stored(self, column: Column, value: Any) -> Any:
        if column.kind != NESTED or value is None:
            return value
        names = {n: p for n, _, _, p in self._inner(column)}
        return [v and {names[k]: inner for k, inner in v.items()} for v in value]

    def _write(self, rows: list[Row], part: Any) -> DataFile:
        held = [c for c in self.columns if c.key != self.partition]
        schema = pa.schema([self._arrow(c) for c in held])
        columns = [
            pa.array([self._stored(c, row.get(c.key)) for row in rows], schema.field(i).type)
            for i, c in enumerate(held)
        ]
        label = "" if self.partition is None else f"part={_escaped(part)}/"
        path = f"{label}part-{uuid.UUID(int=self.rng.getrandbits(128))}.parquet"
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            pa.Table.from_arrays(columns, schema=schema), target,
            data_page_size=self.rng.choice([100, 1 << 20]), write_batch_size=8,
            write_page_index=self.rng.random() < 0.5,
        )  # fmt: skip
        values = {}
        if self.partition is not None:
            values = {next(c.physical for c in self.columns if c.key == self.partition): part}
        add = {
            "path": quote(path),
            "partitionValues": values,
            "size": target.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps(self._stats(rows, held)),
        }
        return DataFile(path, add, rows)

    def _stats(self, rows: list[Row], held: Sequence[Column]) -> dict[str, Any]:
        low, high, nulls = {}, {}, {}
        for column in held:
            if column.kind == NESTED:
                continue
            values = [row[column.key] for row in rows if row.get(column.key) is not None]
            nulls[column.physical] = len(rows) - len(values)
            if values:
                low[column.physical] = _printed(min(values), column.kind, False)
                high[column.physical] = _printed(max(values), column.kind, True)
        return {"numRecords": len(rows), "minValues": low, "maxValues": high, "nullCount": nulls}

    def _added(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        groups: dict[Any, list[Row]] = {}
        for row in rows:
            groups.setdefault(row.get(self.partition) if self.partition else None, []).append(row)
        actions = []
        for part, held in groups.items():
            file = self._write(held, part)
            self.files[file.path] = file
            actions.append({"add": file.add})
        return actions

    def _remove(self, file: DataFile) -> dict[str, Any]:
        gone = {"path": file.add["path"], "dataChange": True, "deletionTimestamp": 0}
        if file.add.get("deletionVector"):
            gone["deletionVector"] = file.add["deletionVector"]
        return {"remove": gone}

    def append(self, count: int) -> None:
        self._commit(self._added(self.random_rows(count)))

    def delete_rows(self, file: DataFile, more: set[int], kind: str) -> list[dict[str, Any]]:
        """Actions that delete rows of a file by a vector."""
        removed = self._remove(file)
        file.gone |= more
        if len(file.gone) == len(file.rows):
            del self.files[file.path]
            return [removed]
        stats = {**json.loads(file.add["stats"]), "tightBounds": False}
        file.add = {
            **file.add,
            "stats": json.dumps(stats),
            "deletionVector": self.vector(file.gone, kind),
        }
        return [removed, {"add": file.add}]

    def vector(self, gone: set[int], kind: str) -> dict[str, Any]:
        data = vector_bytes(np.array(sorted(gone), np.uint64))
        about = {"sizeInBytes": len(data), "cardinality": len(gone)}
        if kind == "i":
            return {"storageType": "i", "pathOrInlineDv": base85(data), **about}
        name, offset = uuid.UUID(int=self.rng.getrandbits(128)), 1
        other = vector_bytes(np.arange(3, dtype=np.uint64))
        content, offsets = vector_file_bytes([other, data])
        offset = offsets[1]
        folder = "" if kind == "p" else self.rng.choice(["", "ab"])
        target = self.folder / folder / vector_file(name)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)
        if kind == "p":
            return {
                "storageType": "p",
                "pathOrInlineDv": f"file://{quote(str(target))}",
                "offset": offset,
                **about,
            }
        return {
            "storageType": "u",
            "pathOrInlineDv": folder + base85(name.bytes),
            "offset": offset,
            **about,
        }

    # -- what happens to a table ------------------------------------------------------------------

    def some_deletes(self) -> list[dict[str, Any]]:
        rng = self.rng
        actions: list[dict[str, Any]] = []
        chosen = rng.sample(list(self.files.values()), min(len(self.files), rng.randrange(1, 3)))
        for file in chosen:
            left = [i for i in range(len(file.rows)) if i not in file.gone]
            more = set(rng.sample(left, rng.randrange(1, len(left) + 1)))
            actions += self.delete_rows(file, more, rng.choice("uip"))
        return actions

    def delete(self) -> None:
        self._commit(self.some_deletes())

    def update(self) -> None:
        """Rows deleted by vectors, and others added in the same commit."""
        actions = self.some_deletes()
        self._commit(actions + self._added(self.random_rows(self.rng.randrange(1, 9))))

    def compact(self) -> None:
        rng = self.rng
        chosen = rng.sample(list(self.files.values()), min(len(self.files), 3))
        actions = [self._remove(file) for file in chosen]
        for file in chosen:
            del self.files[file.path]
        self._commit(actions + self._added(row for file in chosen for row in file.live))

    def overwrite_partition(self) -> None:
        file = self.rng.choice(list(self.files.values()))
        same = [
            f
            for f in self.files.values()
            if f.add["partitionValues"] == file.add["partitionValues"]
        ]
        actions = [self._remove(f) for f in same]
        for f in same:
            del self.files[f.path]
        part = file.rows[0].get(self.partition) if self.partition else None
        rows = [{**row, self.partition or 1: part} for row in self.random_rows(4)]
        self._commit(actions + self._added(rows))

    def add_column(self) -> None:
        kind = self.rng.choice([*ARROW, NESTED])
        self._new_column(f"extra{self.keys}", kind)
        self.change_metadata()

    def rename_column(self) -> None:
        if self.mode != "none":
            self.rng.choice(self.columns).name = f"renamed{self.version}"
            self.change_metadata()

    def replace_column(self) -> None:
        """Drop a column and add another one under its name."""
        chosen = [c for c in self.columns if c.key != self.partition]
        if self.mode != "none" and len(chosen) > 1:
            old = self.rng.choice(chosen)
            self.columns.remove(old)
            self.change_metadata()
            self._new_column(old.name, self.rng.choice(list(ARROW)))
            self.change_metadata()

    def widen_column(self) -> None:
        for column in self.columns:
            if column.kind in WIDER and column.key != self.partition:
                column.kind, column.changed = WIDER[column.kind], True
                self.change_metadata()
                return

    def vacuum(self) -> None:
        """Data files of older versions go."""
        for path in self.folder.rglob("part-*.parquet"):
            if str(path.relative_to(self.folder)) not in self.files:
                path.unlink()
        self.oldest = self.version

    def restore_nothing(self) -> None:
        """A commit that changes nothing."""
        self._commit([])

    # -- checkpoints ------------------------------------------------------------------------------

    def checkpoint(self, kind: str, clean: bool = False) -> None:
        adds = [file.add for file in self.files.values()]
        heads = [{"protocol": self.protocol()}, {"metaData": self.metadata()}]
        name = f"{self.version:020d}.checkpoint"
        if kind.startswith("v2"):
            self._v2(kind, name, heads, adds)
        elif kind == "parts":
            for number, actions in enumerate(([*heads], [{"add": a} for a in adds]), 1):
                self._parquet(f"{name}.{number:010d}.{2:010d}.parquet", actions)
            broken = f"{self.version:020d}.checkpoint.{1:010d}.{3:010d}.parquet"
            (self.log / broken).write_bytes(b"")
        else:
            actions = [*heads, *({"add": a} for a in adds)]
            self._parquet(f"{name}.parquet", actions, kind == "struct-stats")
        if self.rng.random() < 0.7:
            (self.log / "_last_checkpoint").write_text(json.dumps({"version": self.version}))
        if clean:
            for version in range(self.version):
                (self.log / f"{version:020d}.json").unlink(missing_ok=True)
            self.oldest = max(self.oldest, self.version)

    def _v2(self, kind: str, name: str, heads: list[dict[str, Any]], adds: list[Any]) -> None:
        heads.append({"checkpointMetadata": {"version": self.version}})
        for half in (adds[::2], adds[1::2]):
            if half:
                path = f"{uuid.UUID(int=self.rng.getrandbits(128))}.parquet"
                self._parquet(f"_sidecars/{path}", [{"add": a} for a in half])
                size = (self.log / "_sidecars" / path).stat().st_size
                heads.append(
                    {"sidecar": {"path": path, "sizeInBytes": size, "modificationTime": 0}}
                )
        unique = uuid.UUID(int=self.rng.getrandbits(128))
        if kind == "v2-json":
            text = "\n".join(json.dumps(action) for action in heads)
            (self.log / f"{name}.{unique}.json").write_text(text)
        else:
            self._parquet(f"{name}.{unique}.parquet", heads)

    def _parquet(
        self, name: str, actions: list[dict[str, Any]], struct_stats: bool = False
    ) -> None:
        add = list(_ADD)
        if struct_stats:
            actions = [_struct_stats(a) for a in actions]
            stats = [a["add"]["stats_parsed"] for a in actions if "add" in a]
            if stats:
                add.append(("stats_parsed", pa.array(stats).type))
        columns = {
            "protocol": pa.array([a.get("protocol") for a in actions], _PROTOCOL),
            "metaData": pa.array([_maps(a.get("metaData")) for a in actions], _META),
            "add": pa.array([_maps(a.get("add")) for a in actions], pa.struct(add)),
            "sidecar": pa.array([a.get("sidecar") for a in actions], _SIDECAR),
        }
        out = io.BytesIO()
        pq.write_table(pa.table(columns), out)
        target = self.log / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(out.getvalue())


def _maps(body: dict[str, Any] | None) -> dict[str, Any] | None:
    """Objects as Arrow takes maps."""
    if body is None:
        return None
    found = dict(body)
    for name in ("partitionValues", "configuration"):
        if name in found:
            found[name] = list(found[name].items())
    if "format" in found:
        found["format"] = {"provider": "parquet", "options": []}
    return found


def _struct_stats(action: dict[str, Any]) -> dict[str, Any]:
    if "add" not in action:
        return action
    stats = json.loads(action["add"]["stats"])
    # A writer of struct statistics gives them all the same fields.
    stats = {"numRecords": stats["numRecords"], "nullCount": stats["nullCount"] or {"none": 0}}
    return {"add": {**action["add"], "stats": None, "stats_parsed": stats}}


def _escaped(part: Any) -> str:
    return "__HIVE_DEFAULT_PARTITION__" if part is None else quote(str(part), safe="")


def _printed(value: Any, kind: str, high: bool) -> Any:
    """A bound as Spark prints it."""
    if kind == "string":
        return value if len(value) <= 32 else value[:32] + ("\U0010ffff" if high else "")
    if kind == "timestamp":
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if kind == "date":
        return value.isoformat()
    if kind == "float":
        return float(str(np.float32(value)))
    return value


def touch(path: Path, milliseconds: int) -> None:
    """Give a file an age."""
    os.utime(path, ns=(milliseconds * 1_000_000,) * 2)
