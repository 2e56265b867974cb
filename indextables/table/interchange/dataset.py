"""A table as a ``pyarrow.dataset.Dataset``: the form that pushes columns and filters down.

DuckDB, Polars and pyarrow ask a dataset for a scanner with the columns and the filter they need.
The filter is turned into ours (``arrow_filters``) to find splits and rows that may match, and is
then applied once more, whole, by Arrow: the answer is exactly Arrow's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from indextables.table import execute
from indextables.table.interchange.arrow_filters import columns_of, to_filter
from indextables.table.interchange.outputs import pushed_plan

if TYPE_CHECKING:
    from indextables.planner import Plan
    from indextables.table.table import Table


class TableDataset(ds.Dataset):  # type: ignore[misc]
    """One table at one version; ``where`` is a condition of ours that always holds."""

    def __init__(self, table: Table, where: Any = None) -> None:
        self.table = table
        self.where = where
        self.last_plan: Plan | None = None

    def __repr__(self) -> str:
        asked = "" if self.where is None else f" where {self.where!r}"
        return f"<indextables.TableDataset {self.table.path}@v{self.table.version}{asked}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return TableDataset, (self.table, self.where)

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def scanner(
        self, columns: Any = None, filter: Any = None, batch_size: int | None = None, **options: Any
    ) -> ds.Scanner:
        """A scanner of the rows that satisfy ``filter``; reads when it is read."""
        known = {"use_threads", "memory_pool", "fragment_scan_options", "cache_metadata"}
        passed = {k: v for k, v in options.items() if k in known and v is not None}
        names = self._needed(columns, filter)
        schema = pa.schema([self.schema.field(name) for name in names])
        reader = pa.RecordBatchReader.from_batches(schema, self._read(names, filter, batch_size))
        return ds.Scanner.from_batches(reader, columns=columns, filter=filter, **passed)

    def _needed(self, columns: Any, filter: Any) -> list[str]:
        """Columns to read: those asked for and those of the filter; all where that is not known."""
        if not isinstance(columns, list | tuple):
            return list(self.schema.names)
        used = columns_of(filter)
        if used is None or any(name not in self.schema.names for name in columns):
            return list(self.schema.names)
        return [name for name in self.schema.names if name in used or name in columns]

    def _read(
        self, names: list[str], filter: Any, batch_size: int | None
    ) -> Iterator[pa.RecordBatch]:
        self.last_plan = pushed_plan(self.table, self.where, to_filter(filter), names)
        yield from execute.batches(self.table, self.last_plan, batch_size)

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """How many rows satisfy ``filter``; from the log where that can tell."""
        if filter is None:
            return self.table.count(self.where)
        return int(self.scanner(columns=[], filter=filter).count_rows())

    def get_fragments(self, filter: Any = None) -> Iterator[Any]:
        """A table is read through ``scanner``; its splits are no fragments of pyarrow's."""
        raise NotImplementedError("read a table through scanner(), to_table() or to_batches()")
