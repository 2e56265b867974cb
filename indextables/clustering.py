"""Clustering: rows that are asked for together are written together.

``write.clusterBy`` names columns, first the one that is filtered most. Rows are sorted by them
before they are cut into splits, so each split holds a narrow range of values and min/max excludes
nearly all of them. MERGE joins splits that are neighbours in that order, where it would otherwise
join those of the same age, so ranges stay narrow. The order is by the first column, then by the
second where the first is equal, and so on; NULL comes last.

The setting of a write that creates a table becomes a property of the table, which later writes and
merges follow; ``ALTER TABLE ... SET TBLPROPERTIES`` changes it. A write is sorted as far as memory
holds its rows; rows beyond that make another sorted run, which a merge joins with the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from indextables.config import PREFIX, Config
from indextables.errors import SchemaMismatchError, UnknownColumnError
from indextables.types import type_name

KEY = "write.clusterBy"
PROPERTY = PREFIX + KEY


def cluster_columns(
    schema: pa.Schema, config: Config, configuration: Mapping[str, str]
) -> tuple[str, ...]:
    """The columns to cluster by, as the schema spells them: those of the settings or the table."""
    asked = config[KEY]
    if asked is None:
        asked = next((v for k, v in configuration.items() if k.lower() == PROPERTY.lower()), "")
    names = {name.lower(): name for name in schema.names}
    found = []
    for part in (p.strip() for p in asked.split(",")):
        if not part:
            continue
        if part.lower() not in names:
            raise UnknownColumnError.of(part, schema.names)
        name = names[part.lower()]
        dtype = schema.field(name).type
        if pa.types.is_nested(dtype) or pa.types.is_null(dtype):
            raise SchemaMismatchError(
                f"rows cannot be clustered by '{name}', which is {type_name(dtype)}",
                hint=f"Name columns that have an order in {PROPERTY}",
            )
        found.append(name)
    return tuple(dict.fromkeys(found))


def with_columns(configuration: Mapping[str, str], columns: Sequence[str]) -> dict[str, str]:
    """The table's properties with these columns to cluster by; none is no property."""
    kept = {k: v for k, v in configuration.items() if k.lower() != PROPERTY.lower()}
    return {**kept, PROPERTY: ",".join(columns)} if columns else kept


def sorted_rows(batches: Sequence[pa.RecordBatch], columns: Sequence[str]) -> list[pa.RecordBatch]:
    """The rows in order of the columns."""
    table = pa.Table.from_batches(batches)
    order: list[pa.RecordBatch] = (
        table.sort_by([(c, "ascending") for c in columns]).combine_chunks().to_batches()
    )
    return order


def place_of(text: str | None, dtype: pa.DataType) -> tuple[Any, ...]:
    """Where a split with this smallest value stands among its neighbours."""
    if text is None:
        return (2, "")
    t = pa.types
    if t.is_integer(dtype) or t.is_floating(dtype) or t.is_decimal(dtype):
        try:
            return (0, Decimal(text)) if Decimal(text).is_finite() else (1, text)
        except InvalidOperation:
            return (1, text)
    return (1, text)
