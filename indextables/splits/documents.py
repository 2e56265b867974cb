"""Feeding tantivy: Arrow columns in, one segment out, document number equal to row number.

Documents are made column by column, in batches small enough to stay in cache. One thread, one
commit, and a memory ceiling as high as tantivy allows (it is a limit, not an allocation) keep
everything in one segment, in order; that is asserted, because every row number depends on it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import IndexTablesError
from indextables.expr.ipaddr import address_array, format_address
from indextables.expr.jsonpaths import Leaf
from indextables.splits import keywords
from indextables.splits.fields import (
    has_own_field,
    register_analyzers,
    tantivy_fields,
    tantivy_schema,
)
from indextables.splits.info import IndexField
from indextables.splits.pathtokens import row_texts

HEAP_CEILING = 4_293_000_000

Adder = Callable[[list[Any], str, list[Any]], None]


class IndexBuilder:
    """Builds the tantivy index of one split in a folder of its own."""

    def __init__(self, folder: str, fields: list[IndexField]) -> None:
        import tantivy

        os.mkdir(folder)
        self.folder = folder
        self.fields = list(fields)
        self.num_docs = 0
        self._document = tantivy.Document
        self._index = tantivy.Index(tantivy_schema(fields), path=folder)
        register_analyzers(self._index, fields)
        self._writer: Any = self._index.writer(HEAP_CEILING, num_threads=1)

    @property
    def names(self) -> list[str]:
        """The index's fields in order."""
        return tantivy_fields(self.fields)

    def add(self, batch: pa.RecordBatch, leaves: Mapping[str, list[Leaf]]) -> None:
        """Append documents; ``leaves`` are the scalars of the JSON columns of this batch."""
        document = self._document
        docs = [document() for _ in range(batch.num_rows)]
        texts, self.fields = keywords.row_texts(batch, self.fields)
        if texts is not None:
            _add_texts(docs, keywords.KEYS, texts.to_pylist())
        for at, field in enumerate(self.fields):
            if has_own_field(field):
                column = batch.column(field.column)
                values, self.fields[at] = index_values(column, field, leaves.get(field.column, []))
                _ADDERS[field.kind](docs, field.name, values)
        add = self._writer.add_document
        for doc in docs:
            add(doc)
        self.num_docs += len(docs)

    def finish(self) -> None:
        """Commit; afterwards the folder holds one segment with every row in order."""
        self._writer.commit()
        self._writer.wait_merging_threads()
        self._writer = None
        self._index.reload()
        searcher = self._index.searcher()
        segments, docs = searcher.num_segments, searcher.num_docs
        self._index = None
        if segments > 1 or docs != self.num_docs:
            raise IndexTablesError(
                f"the index of {self.num_docs} rows came out as {segments} segments of {docs}",
                hint="Lower spark.indextables.write.rowsPerSplit",
            )

    def abort(self) -> None:
        self._writer = None
        self._index = None
        shutil.rmtree(self.folder, ignore_errors=True)


# -- values --------------------------------------------------------------------------------------


def index_values(
    column: Any, field: IndexField, leaves: list[Leaf]
) -> tuple[list[Any], IndexField]:
    """What the index is given for each row, and the field with what was noticed on the way."""
    if field.kind == "paths":
        found = row_texts(leaves, len(column))
        complete = field.complete and found.complete
        field = replace(field, complete=complete, gaps=field.gaps or found.gaps)
        return found.texts.to_pylist(), field
    if field.kind == "f64":
        return canonical_doubles(column).to_pylist(), field
    if field.kind == "i64":
        return physical_integers(column).to_pylist(), field
    if field.kind == "ip":
        return [_address(raw) for raw in address_array(column).to_pylist()], field
    return column.to_pylist(), field


def canonical_doubles(column: Any) -> Any:
    """Doubles with one zero and one NaN, both positive."""
    values = pc.add(column.cast(pa.float64()), 0.0)
    return pc.if_else(pc.is_nan(values), float("nan"), values)


def physical_integers(column: Any) -> Any:
    """The 64-bit integers by which a column is compared."""
    dtype = column.type
    if pa.types.is_decimal(dtype):
        return unscaled_integers(column)
    if pa.types.is_date(dtype):
        column = column.cast(pa.int32())
    return column.cast(pa.int64())


def unscaled_integers(column: Any) -> Any:
    """The unscaled integers of decimals of at most 18 digits: the low words of their storage."""
    words = np.frombuffer(column.buffers()[1], np.int64)
    low = words[2 * column.offset : 2 * (column.offset + len(column)) : 2]
    mask = None
    if column.null_count:
        mask = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(low, pa.int64(), mask=mask)


def _address(raw: bytes | None) -> str | None:
    return None if raw is None else format_address(int.from_bytes(raw, "big"))


# -- adders --------------------------------------------------------------------------------------


def _add_texts(docs: list[Any], name: str, values: list[Any]) -> None:
    for doc, value in zip(docs, values, strict=True):
        if value is not None:
            doc.add_text(name, value)


def _add_integers(docs: list[Any], name: str, values: list[Any]) -> None:
    for doc, value in zip(docs, values, strict=True):
        if value is not None:
            doc.add_integer(name, value)


def _add_floats(docs: list[Any], name: str, values: list[Any]) -> None:
    for doc, value in zip(docs, values, strict=True):
        if value is not None:
            doc.add_float(name, value)


def _add_addresses(docs: list[Any], name: str, values: list[Any]) -> None:
    for doc, value in zip(docs, values, strict=True):
        if value is not None:
            doc.add_ip_addr(name, value)


_ADDERS: dict[str, Adder] = {
    "text": _add_texts,
    "paths": _add_texts,
    "i64": _add_integers,
    "f64": _add_floats,
    "ip": _add_addresses,
}
