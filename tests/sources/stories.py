"""What happens to tables of others: random changes, with what the table holds after each.

A story is a table and a generator of changes. ``step`` makes one and says which; ``rows`` is the
truth afterwards, from a model or from the format's own library, never from the code under test.
Companions use the same stories: interleave ``step`` with syncs, and compare with ``rows``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Protocol

import pyarrow as pa
from deltakit import CHECKPOINTS, DeltaBook
from icebergkit import IcebergBook

Rows = list[dict[str, Any]]


class Story(Protocol):
    """A table of another format that changes."""

    format: str
    location: str

    def step(self) -> str:
        """Change the table; the name of what was done."""
        ...

    def rows(self) -> Rows:
        """What the table holds now, in any order."""
        ...


def in_order(rows: Rows) -> list[str]:
    """Rows in a form that can be compared whatever their order."""
    return sorted(repr({k: _plain(v) for k, v in sorted(row.items())}) for row in rows)


def _plain(value: Any) -> Any:
    """The same text for the same value, whatever made it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in sorted(value.items())}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


class HandDelta:
    """A Delta table written by hand: vectors, mapped columns, every kind of checkpoint."""

    format = "delta"

    def __init__(self, folder: Path, rng: Random, mode: str | None = None) -> None:
        self.rng = rng
        chosen = mode or rng.choice(["none", "name", "id"])
        self.book = DeltaBook(folder, rng, chosen, partition=rng.random() < 0.7)
        self.location = str(folder)
        self.book.append(20)

    def step(self) -> str:
        book, rng = self.book, self.rng
        if not book.files:
            book.append(20)
            return "append"
        steps: dict[str, Callable[[], None]] = {
            "append": lambda: book.append(rng.randrange(1, 30)),
            "delete": book.delete,
            "delete again": book.delete,
            "update": book.update,
            "compact": book.compact,
            "overwrite": book.overwrite_partition,
            "add column": book.add_column,
            "rename column": book.rename_column,
            "replace column": book.replace_column,
            "widen column": book.widen_column,
            "vacuum": book.vacuum,
            "nothing": book.restore_nothing,
            "checkpoint": lambda: book.checkpoint(rng.choice(CHECKPOINTS), rng.random() < 0.3),
        }
        name = rng.choice(list(steps))
        steps[name]()
        return name

    def rows(self) -> Rows:
        return self.book.rows()


class LibraryDelta:
    """A Delta table written and read by the ``deltalake`` library."""

    format = "delta"

    def __init__(self, folder: Path, rng: Random) -> None:
        from deltalake import DeltaTable, write_deltalake

        self.rng, self.location = rng, str(folder)
        self.extra: list[str] = []
        self._write, self._open = write_deltalake, lambda: DeltaTable(self.location)
        partition = ["p"] if rng.random() < 0.6 else None
        self._write(self.location, self._batch(30), partition_by=partition)
        self.partitioned = partition is not None

    def _batch(self, count: int) -> pa.Table:
        rng = self.rng
        columns = {
            "id": pa.array([rng.randrange(1000) for _ in range(count)], pa.int64()),
            "p": pa.array(
                [rng.choice(["x", "y z", "a/b=c", None]) for _ in range(count)], pa.string()
            ),
            "text": pa.array(
                [rng.choice([None, "", "word " * rng.randrange(1, 15)]) for _ in range(count)],
                pa.string(),
            ),
            "inner": pa.array(
                [rng.choice([None, {"a": rng.randrange(9), "b": ["t"]}]) for _ in range(count)],
                pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]),
            ),
        }
        for name in self.extra:
            columns[name] = pa.array([rng.random() for _ in range(count)], pa.float64())
        return pa.table(columns)

    def step(self) -> str:
        steps = {
            "append": self._append,
            "delete": lambda: self._open().delete(f"id % 7 = {self.rng.randrange(7)}"),
            "update": lambda: self._open().update(
                updates={"text": "'updated'"}, predicate=f"id % 11 = {self.rng.randrange(11)}"
            ),
            "merge": self._merge,
            "optimize": lambda: self._open().optimize.compact(),
            "z-order": lambda: self._open().optimize.z_order(["id"]),
            "vacuum": self._vacuum,
            "add column": self._add_column,
            "overwrite": self._overwrite,
            "checkpoint": lambda: self._open().create_checkpoint(),
        }
        name = self.rng.choice(list(steps))
        steps[name]()
        return name

    def _append(self) -> None:
        self._write(self.location, self._batch(self.rng.randrange(1, 30)), mode="append")

    def _merge(self) -> None:
        source = self._batch(10)
        unique = source.group_by("id").aggregate([]).num_rows
        if unique == source.num_rows:
            (
                self._open()
                .merge(source, "t.id = s.id", source_alias="s", target_alias="t")
                .when_matched_update(updates={"text": "'merged'"})
                .when_not_matched_insert_all()
                .execute()
            )

    def _vacuum(self) -> None:
        self._open().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    def _add_column(self) -> None:
        if len(self.extra) < 3:
            self.extra.append(f"extra{len(self.extra)}")
            self._write(self.location, self._batch(5), mode="append", schema_mode="merge")

    def _overwrite(self) -> None:
        rows = self._batch(8).to_pylist()
        data = pa.Table.from_pylist([{**r, "p": "x"} for r in rows], self._batch(0).schema)
        self._write(self.location, data, mode="overwrite", predicate="p = 'x'")

    def rows(self) -> Rows:
        from deltalake import QueryBuilder

        found = QueryBuilder().register("t", self._open()).execute("SELECT * FROM t")
        rows: Rows = pa.table(found.read_all()).to_pylist()
        return rows


class HandIceberg:
    """An Iceberg table written by hand: every kind of delete, and columns that change."""

    format = "iceberg"

    def __init__(
        self, folder: Path, rng: Random, version: int | None = None, ids: bool | None = None
    ) -> None:
        self.rng, self.location = rng, str(folder)
        chosen = version or rng.choice([2, 3])
        self.book = IcebergBook(folder, rng, chosen, rng.random() < 0.7 if ids is None else ids)
        self.book.append(20)

    def step(self) -> str:
        book, rng = self.book, self.rng
        if not book.files:
            book.append(20)
            return "append"
        steps: dict[str, Callable[[], None]] = {
            "append": lambda: book.append(rng.randrange(1, 20)),
            "delete positions": book.delete_positions,
            "delete by vector": book.delete_by_vector,
            "delete by value": book.delete_by_value,
            "write and delete": book.write_and_delete,
            "upsert": book.upsert,
            "compact": book.compact,
            "add column": book.add_column,
            "rename column": book.rename_column,
            "replace column": book.replace_column,
            "widen column": book.widen_column,
            "change partition": book.change_partition,
        }
        name = rng.choice(list(steps))
        steps[name]()
        return name

    def rows(self) -> Rows:
        return self.book.rows()


class LibraryIceberg:
    """An Iceberg table written and read by the ``pyiceberg`` library, in a catalog of SQLite."""

    format = "iceberg"
    name = "db.t"

    def __init__(self, folder: Path, rng: Random) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        folder.mkdir(parents=True, exist_ok=True)
        self.rng = rng
        self.catalog = {
            "name": "c",
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
        }
        opened = SqlCatalog("c", uri=self.catalog["uri"], warehouse=self.catalog["warehouse"])
        opened.create_namespace("db")
        self.table = opened.create_table(self.name, self._batch(0).schema)
        self.engine = opened.engine
        self.location = self.table.location().removeprefix("file://")
        self.extra = 0
        self.table.append(self._fresh(20))

    def close(self) -> None:
        self.engine.dispose()

    def _batch(self, count: int) -> pa.Table:
        rng = self.rng
        return pa.table(
            {
                "id": pa.array([rng.randrange(50) for _ in range(count)], pa.int32()),
                "p": pa.array(
                    [rng.choice(["x", "y z", "a/b", None]) for _ in range(count)], pa.string()
                ),
                "text": pa.array(
                    [rng.choice([None, "", "word " * rng.randrange(1, 9)]) for _ in range(count)],
                    pa.string(),
                ),
                "inner": pa.array(
                    [rng.choice([None, {"a": rng.randrange(9), "b": ["t"]}]) for _ in range(count)],
                    pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]),
                ),
            }
        )

    def _fresh(self, count: int) -> pa.Table:
        """Random rows in the table's schema of now."""
        rows = self._batch(count)
        schema = self.table.schema().as_arrow()
        by_id = {1: "id", 2: "p", 3: "text", 4: "inner"}
        columns = []
        for wanted, known in zip(schema, self.table.schema().fields, strict=True):
            name = by_id.get(known.field_id)
            if name is None:
                columns.append(pa.nulls(count, wanted.type))
            else:
                columns.append(pa.array(rows[name].to_pylist(), wanted.type))
        return pa.Table.from_arrays(columns, schema=schema)

    def step(self) -> str:
        rng = self.rng
        steps: dict[str, Callable[[], None]] = {
            "append": lambda: self.table.append(self._fresh(rng.randrange(1, 20))),
            "delete": lambda: self.table.delete(f"{self._name(1)} == {rng.randrange(50)}"),
            "delete many": lambda: self.table.delete(f"{self._name(1)} > {rng.randrange(25, 50)}"),
            "overwrite": lambda: self.table.overwrite(
                self._fresh(4), f"{self._name(1)} < {rng.randrange(5)}"
            ),
            "add column": self._add_column,
            "rename column": self._rename,
            "widen column": self._widen,
            "change partition": self._partition,
        }
        name = rng.choice(list(steps))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps[name]()
        return name

    def _name(self, field_id: int) -> str:
        return str(self.table.schema().find_column_name(field_id))

    def _add_column(self) -> None:
        from pyiceberg.types import StringType

        self.extra += 1
        with self.table.update_schema() as update:
            update.add_column(f"extra{self.extra}", StringType())

    def _rename(self) -> None:
        self.extra += 1
        with self.table.update_schema() as update:
            update.rename_column(self._name(3), f"renamed{self.extra}")

    def _widen(self) -> None:
        from pyiceberg.types import LongType

        with self.table.update_schema() as update:
            update.update_column(self._name(1), LongType())

    def _partition(self) -> None:
        from pyiceberg.transforms import IdentityTransform

        with self.table.update_spec() as update:
            for field in self.table.spec().fields:
                update.remove_field(field.name)
            self.extra += 1
            source = self.rng.choice([2, 3, None])
            if source is not None:
                update.add_field(self._name(source), IdentityTransform(), f"part{self.extra}")

    def rows(self) -> Rows:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: Rows = self.table.scan().to_arrow().to_pylist()
        return found
