"""What happens to tables of others: random changes, with what the table holds after each.

A story is a table and a generator of changes. ``step`` makes one and says which; ``rows`` is the
truth afterwards, from a model or from the format's own library, never from the code under test.
Companions use the same stories: interleave ``step`` with syncs, and compare with ``rows``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Protocol

import pyarrow as pa
from deltakit import CHECKPOINTS, DeltaBook

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
