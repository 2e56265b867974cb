"""What may be asked of served tables, with bounds: the one place behind every server.

A server knows its tables by name and never opens another path, whatever it is asked. Every question
only reads. Answers are bounded: at most ``most_rows`` rows, long cells cut after ``most_text``
characters, and no new work begins after ``seconds``. An answer that was cut says so. Values are
plain JSON. Errors are ours, with their codes, and pass through as they are.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import ConfigError, PlanningError, UnknownColumnError, did_you_mean
from indextables.printable import plain
from indextables.types import type_name

if TYPE_CHECKING:
    from indextables.table.table import Table

FRESH_SECONDS = 1.0
"""How old a snapshot may be before the log is asked again."""


@dataclass
class Limits:
    """Bounds of an answer."""

    most_rows: int = 1000
    most_text: int = 10_000
    seconds: float = 30.0


@dataclass
class Questions:
    """Named tables, and what may be asked of them."""

    paths: Mapping[str, str]
    storage_options: Mapping[str, Any] | None = None
    options: Mapping[str, Any] | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: dict[str, tuple[float, Table]] = {}

    @classmethod
    def over(cls, paths: Sequence[str], **given: Any) -> Questions:
        """Tables named by the last part of their paths."""
        if not paths:
            raise ConfigError("no table is named", hint="Give the path of at least one table")
        named: dict[str, str] = {}
        for path in paths:
            text = os.fspath(path)
            name = text.rstrip("/").rpartition("/")[2] or text
            unique = name if name not in named else f"{name}_{len(named)}"
            named[unique] = text
        return cls(named, **given)

    # -- tables -----------------------------------------------------------------------------------

    def table(self, name: str) -> Table:
        """The newest state of a table that is served."""
        if name not in self.paths:
            raise PlanningError(
                f"no table '{name}' is served here",
                hint=did_you_mean(name, self.paths) or f"Tables: {', '.join(self.paths)}",
            )
        with self._lock:
            at, table = self._opened.get(name, (-math.inf, None))
        now = time.monotonic()
        if table is None:
            from indextables.table import open_table

            table = open_table(
                self.paths[name], storage_options=self.storage_options, options=self.options
            )
        elif now - at > FRESH_SECONDS:
            table = table.refresh()
        else:
            return table
        with self._lock:
            self._opened[name] = (now, table)
        return table

    def tables(self) -> list[dict[str, Any]]:
        """Every table that is served, with its size."""
        return [self._facts(name) for name in self.paths]

    def _facts(self, name: str) -> dict[str, Any]:
        snapshot = self.table(name).snapshot
        return {
            "name": name,
            "version": snapshot.version,
            "rows": snapshot.num_rows,
            "splits": snapshot.num_files,
            "bytes": snapshot.num_bytes,
        }

    def describe(self, name: str) -> dict[str, Any]:
        """Columns, how each is indexed, and the newest versions."""
        table = self.table(name)
        history = [
            {"version": e.version, "timestamp": e.timestamp, "operation": e.operation}
            for e in table.history(5)
        ]
        return {
            **self._facts(name),
            "partition_columns": list(table.partition_columns),
            "columns": [self._column(table, column) for column in table.schema],
            "history": history,
        }

    def _column(self, table: Table, column: pa.Field) -> dict[str, Any]:
        known = table.mapping.get(column.name)
        indexed = "partition" if column.name in table.partition_columns else None
        if indexed is None and known is not None:
            indexed = "text" if known.is_tokenized else known.type
            indexed = "exact" if known.type == "text" and not known.is_tokenized else indexed
        return {"name": column.name, "type": type_name(column.type), "indexed": indexed}

    # -- rows -------------------------------------------------------------------------------------

    def search(
        self,
        name: str,
        query: Any,
        *,
        where: Any = None,
        columns: Sequence[str] | None = None,
        limit: int = 10,
        snippet: str | None = None,
    ) -> dict[str, Any]:
        """The best rows for a search string, with their scores."""
        table = self.table(name)
        found = table.search(
            query, columns, self._bounded(limit), where=_given(where), snippet=snippet
        )
        return {**self._answer(found, limit), "plan": self._funnel(table)}

    def rows(
        self,
        name: str,
        where: Any = None,
        columns: Sequence[str] | None = None,
        limit: int = 10,
        newest: str | None = None,
    ) -> dict[str, Any]:
        """Rows that match a condition; with ``newest`` those with the largest of it first."""
        table = self.table(name)
        most = self._bounded(limit)
        if newest is None:
            found = table.to_arrow(_given(where), columns, most)
        else:
            found = table.top(newest, most, descending=True, columns=columns, where=_given(where))
        return {**self._answer(found, limit), "plan": self._funnel(table)}

    def count(self, name: str, where: str | None = None) -> int:
        """How many rows match."""
        return self.table(name).count(_given(where))

    def aggregate(
        self,
        name: str,
        aggregates: Mapping[str, Any],
        group_by: Sequence[Any] = (),
        where: str | None = None,
        limit: int = 100,
    ) -> dict[str, Any]:
        """Counts, sums, averages, minima and maxima by groups, the largest first group first."""
        metrics = {key: tuple(m) if isinstance(m, list) else m for key, m in aggregates.items()}
        found = self.table(name).aggregate(metrics, group_by, where=_given(where))
        first = next(iter(metrics), None)
        if group_by and first is not None:
            found = found.sort_by([(first, "descending")])
        return self._answer(found.slice(0, self._bounded(limit)), limit, found.num_rows)

    def explain(self, name: str, where: str) -> dict[str, Any]:
        """Which splits a condition needs, and why."""
        found: dict[str, Any] = json.loads(self.table(name).explain(where, "json"))
        return found

    # -- bounds -----------------------------------------------------------------------------------

    def _bounded(self, limit: int) -> int:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ConfigError(f"limit {limit!r} is not a number of rows from 1 on")
        return min(limit, self.limits.most_rows)

    def plain_rows(self, found: pa.Table) -> list[dict[str, Any]]:
        """Rows as JSON has them, long cells cut."""
        end = time.monotonic() + self.limits.seconds
        return [self._row(row, end) for row in found.to_pylist()]

    def _answer(self, found: pa.Table, limit: int, of: int | None = None) -> dict[str, Any]:
        rows = self.plain_rows(found)
        most = self.limits.most_rows
        cut = limit > most and found.num_rows == most
        return {"rows": rows, "cut": cut or (of is not None and of > len(rows))}

    def _row(self, row: Mapping[str, Any], end: float) -> dict[str, Any]:
        if time.monotonic() > end:
            raise PlanningError(
                f"the answer took more than {self.limits.seconds:g} seconds",
                hint="Ask for fewer rows or columns",
            )
        return {key: self._value(value) for key, value in row.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            most = self.limits.most_text
            return value if len(value) <= most else f"{value[:most]}... ({len(value)} characters)"
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, Mapping):
            return {str(k): self._value(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(v) for v in value]
        return value if value is None or isinstance(value, bool | int | float) else plain(value)

    def _funnel(self, table: Table) -> dict[str, Any] | None:
        """How few splits the last plan needed."""
        plan = table.last_plan
        if plan is None:
            return None
        report = plan.report
        return {
            "splits": report.splits_total,
            "read": report.splits_selected,
            "stages": [
                {"name": s.name, "columns": list(s.columns), "left": s.splits_out}
                for s in report.stages
            ],
        }


def _given(where: Any) -> Any:
    """A condition; an empty field of a form asks for none."""
    return None if isinstance(where, str) and not where.strip() else where


def column_named(table: Table, name: str) -> pa.Field:
    """A column of a table, or an error that suggests one."""
    known: Iterator[pa.Field] = (c for c in table.schema if c.name.lower() == name.lower())
    found = next(known, None)
    if found is None:
        raise UnknownColumnError.of(name, table.schema.names, path=table.path)
    return found
