"""Rows of a split in the shape of the table: evolved schemas, partition columns, casts.

A column that the split does not have is null (it was added later) or, if it is a partition column,
one constant from the log. A column whose type was widened since is cast. Names are matched without
case. A batch without columns keeps its number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from indextables.errors import SchemaMismatchError, UnknownColumnError
from indextables.fitting import fitted
from indextables.splits.format.partition_values import partition_array


class Shaper:
    """Turns stored columns of one split into columns of the table."""

    def __init__(
        self,
        stored: pa.Schema,
        table: pa.Schema,
        partition_values: Mapping[str, str | None],
        path: str,
    ) -> None:
        self._stored = {n.lower(): n for n in stored.names}
        self._places = {n.lower(): i for i, n in enumerate(table.names)}
        self._partitions = {k.lower(): v for k, v in partition_values.items()}
        self._path = path
        self.schema = table

    def field(self, column: str) -> pa.Field:
        found = self._places.get(column.lower())
        if found is None:
            raise UnknownColumnError.of(column, self.schema.names, path=self._path)
        return self.schema.field(found)

    def stored_name(self, column: str) -> str | None:
        """The column as the split spells it; ``None`` if it is not in its rows."""
        if column.lower() in self._partitions:
            return None
        return self._stored.get(column.lower())

    def stored_names(self, columns: Sequence[str]) -> list[str]:
        """What to read for these columns of the table."""
        found = [self.stored_name(self.field(c).name) for c in columns]
        return list(dict.fromkeys(n for n in found if n is not None))

    def shape(self, batch: pa.RecordBatch | None, columns: Sequence[str], rows: int) -> Any:
        """The table's columns from a batch of stored ones."""
        fields = [self.field(c) for c in columns]
        arrays = [self._column(batch, field, rows) for field in fields]
        if not arrays:
            return empty_batch(rows)
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _column(self, batch: pa.RecordBatch | None, field: pa.Field, rows: int) -> Any:
        name = self.stored_name(field.name)
        if name is not None and batch is not None:
            return self._cast(batch.column(name), field)
        return self.constant(field, rows)

    def constant(self, field: pa.Field, rows: int) -> Any:
        """A column that is the same in every row of the split."""
        text = self._partitions.get(field.name.lower())
        return partition_array(text, field.type, rows, self._path)

    def _cast(self, array: Any, field: pa.Field) -> Any:
        if array.type.equals(field.type):
            return array
        try:
            return fitted(array, field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatchError(
                f"column '{field.name}' is {array.type} in the split and {field.type} in the table",
                path=self._path,
            ) from error


def empty_batch(rows: int) -> pa.RecordBatch:
    """A batch without columns that still knows how many rows it has."""
    return pa.RecordBatch.from_struct_array(
        pa.StructArray.from_buffers(pa.struct([]), rows, [None], null_count=0)
    )
