"""Columns of a batch as the arrays a predicate was bound to."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import UnknownColumnError
from indextables.expr.predicate import Column


def read_column(batch: pa.RecordBatch | pa.Table, column: Column) -> pa.Array:
    """The column or struct field as one array of its bound type; in a NULL struct it is NULL."""
    if column.root not in batch.schema.names:
        raise UnknownColumnError.of(column.root, batch.schema.names)
    values = one_array(batch.column(column.root))
    for name in column.path[1:]:
        values = pc.struct_field(values, [name])
    if values.type == column.dtype or pa.types.is_nested(column.dtype):
        return values
    return values.cast(column.dtype)


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values in one piece."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    if values.num_chunks == 1:
        return values.chunk(0)
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
