"""Splits written by JVM IndexTables: their rows come back, their index is not searched.

Such a split has no rows member. tantivy opens it all the same (its term dictionary is of another
kind, so only the document store is used), and every document is one row, in document order. Values
are restored to the table's types: dates and timestamps from date fields, arrays out of their
``{"_values": [...]}`` wrapper, maps from objects, decimals from numbers. Columns the document lacks
are null. Filters are applied afterwards, by scanning.

There are no checksums of ours in these files; what tantivy cannot decode is ``CorruptFileError``.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.errors import CorruptFileError, IndexTablesError, ProtocolError
from indextables.expr.jsonpaths import ARRAY_PART
from indextables.mapping import DocMapping, FieldMapping
from indextables.splits.format import members
from indextables.splits.format.info import MOST_ROWS
from indextables.splits.read.source import SplitSource
from indextables.storage import workfolders
from indextables.storage.machine import refuse_to_judge
from indextables.storage.scratch import in_scratch, scratch_folder

_EXTENSIONS = (".term", ".idx", ".pos", ".fast", ".fieldnorm", ".store", ".del")
_ARROW = {
    "text": pa.string(),
    "i64": pa.int64(),
    "u64": pa.int64(),
    "f64": pa.float64(),
    "bool": pa.bool_(),
    "datetime": pa.timestamp("us", "UTC"),
    "bytes": pa.binary(),
    "ip": pa.string(),
    "json": pa.string(),
}


class ForeignRows:
    """``scan`` and ``take`` over the document store of one foreign split."""

    def __init__(self, source: SplitSource, schema: pa.Schema | None = None) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._pid = -1
        self._searcher: Any = None
        self._meta = self._read_meta()
        self._unstored = {f["name"] for f in self._meta["schema"] if not _is_stored(f)}
        self._bounds = np.cumsum([0, *(s["max_doc"] for s in self._meta["segments"])])
        self.mapping = self._read_mapping()
        self.schema = schema or self._own_schema()

    def _read_meta(self) -> dict[str, Any]:
        try:
            meta: dict[str, Any] = json.loads(self._source.member("meta.json"))
            if any(s.get("deletes") for s in meta["segments"]):
                raise CorruptFileError(
                    "a foreign split with deleted documents", path=self._source.path
                )
            if any(not 0 <= int(s["max_doc"]) <= MOST_ROWS for s in meta["segments"]):
                raise ValueError("an impossible number of documents")
            return meta
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._source.corrupt(f"member 'meta.json' does not parse ({error})") from error

    def _read_mapping(self) -> DocMapping:
        if self._source.ref.doc_mapping:
            return DocMapping.from_json(self._source.ref.doc_mapping)
        if self._source.has(members.DOC_MAPPING):
            return DocMapping.from_json(self._source.member(members.DOC_MAPPING).decode())
        return DocMapping(tuple(_field_mapping(entry) for entry in self._meta["schema"]))

    def _own_schema(self) -> pa.Schema:
        return pa.schema([(f.name, _ARROW.get(f.type, pa.string())) for f in self.mapping.fields])

    @property
    def num_rows(self) -> int:
        return int(self._bounds[-1])

    def typed(self, schema: pa.Schema) -> ForeignRows:
        """The same rows in the types of a table."""
        names = {n.lower() for n in self.mapping.names}
        kept = pa.schema([f for f in schema if f.name.lower() in names])
        return ForeignRows(self._source, kept)

    # -- rows -------------------------------------------------------------------------------------

    def take(self, rows: Any, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        documents = self._documents(np.asarray(rows, np.int64))
        names = self.schema.names if columns is None else list(columns)
        self._require_stored(names)
        fields = [self.schema.field(n) for n in names]
        if not fields:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
        arrays = [_column(documents, field) for field in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _require_stored(self, names: Sequence[str]) -> None:
        """A column that was indexed and not stored has values, which are not here: not NULLs."""
        missing = [name for name in names if name in self._unstored]
        if missing:
            raise ProtocolError(
                f"the split indexes {', '.join(missing)} without holding the values",
                path=self._source.path,
                hint="Splits of companion tables are read by JVM IndexTables, or read the table "
                "that they index",
            )

    def scan(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65_536,
        row_range: tuple[int, int] | None = None,
        without: Any = None,
    ) -> Iterator[pa.RecordBatch]:
        first, last = row_range or (0, self.num_rows)
        for start in range(first, last, batch_rows):
            rows = np.arange(start, min(start + batch_rows, last))
            left = rows if without is None else np.setdiff1d(rows, without)
            yield self.take(left, columns)

    def _documents(self, rows: Any) -> list[dict[str, list[Any]]]:
        from tantivy import DocAddress

        searcher = self._open()
        segments = np.searchsorted(self._bounds, rows, side="right") - 1
        numbers = rows - self._bounds[segments]
        try:
            return [
                searcher.doc(DocAddress(int(s), int(n))).to_dict()
                for s, n in zip(segments, numbers, strict=True)
            ]
        except Exception as error:
            refuse_to_judge(error, path=self._source.path)
            raise self._source.corrupt(f"a document cannot be read ({error})") from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            refuse_to_judge(error, path=self._source.path)
            raise self._source.corrupt(f"a document cannot be read ({error})") from error

    def _open(self) -> Any:
        with self._lock:
            if self._searcher is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._searcher = self._unpack()
            return self._searcher

    def _lay_files(self, folder: str) -> None:
        for name in self._source.footer.files:
            if name == "meta.json" or name.endswith(_EXTENSIONS):
                with open(os.path.join(folder, os.path.basename(name)), "wb") as file:
                    file.write(self._source.member(name))

    def _unpack(self) -> Any:
        import tantivy

        folder = scratch_folder("foreign")
        try:
            with in_scratch(folder):
                self._lay_files(folder)
                index = tantivy.Index.open(folder)
                searcher = index.searcher()
        except IndexTablesError:
            raise
        except Exception as error:
            raise self._source.corrupt(f"the index does not open ({error})") from error
        finally:
            workfolders.release(folder)
        weakref.finalize(self, lambda kept: None, index)
        if searcher.num_docs != self.num_rows:
            raise self._source.corrupt("the index does not hold the rows that it says")
        return searcher


def _is_stored(entry: dict[str, Any]) -> bool:
    return (entry.get("options") or {}).get("stored") is not False


def _field_mapping(entry: dict[str, Any]) -> FieldMapping:
    body = {"name": entry["name"], "type": entry["type"]}
    indexing = (entry.get("options") or {}).get("indexing") or {}
    if isinstance(indexing, dict) and "tokenizer" in indexing:
        body["tokenizer"] = indexing["tokenizer"]
    return FieldMapping.from_dict(
        {"json_object": {**body, "type": "json"}}.get(entry["type"], body)
    )


# -- values --------------------------------------------------------------------------------------


def _column(documents: list[dict[str, list[Any]]], field: pa.Field) -> pa.Array:
    found = [(doc.get(field.name) or [None])[0] for doc in documents]
    return pa.array([restore(v, field.type) for v in found], field.type)


def restore(value: Any, dtype: pa.DataType) -> Any:
    """A stored value as a value of a table's type."""
    t = pa.types
    if value is None:
        return None
    if t.is_list(dtype):
        inner = value.get(ARRAY_PART, []) if isinstance(value, dict) else value
        return [restore(v, dtype.value_type) for v in inner]
    if t.is_map(dtype):
        return [(_key(k, dtype.key_type), restore(v, dtype.item_type)) for k, v in value.items()]
    if t.is_struct(dtype):
        return {f.name: restore(value.get(f.name), f.type) for f in dtype.fields}
    if t.is_temporal(dtype):
        return _moment(value, dtype)
    if t.is_decimal(dtype):
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-dtype.scale))
    if t.is_string(dtype):
        return value if isinstance(value, str) else json.dumps(value)
    if t.is_integer(dtype):
        return int(value)
    return float(value) if t.is_floating(dtype) else value


def _key(text: str, dtype: pa.DataType) -> Any:
    return restore(text, dtype) if not pa.types.is_boolean(dtype) else text == "true"


def _moment(value: Any, dtype: pa.DataType) -> Any:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, int):
        return value
    if pa.types.is_date(dtype):
        return value.date() if isinstance(value, datetime) else value
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return aware if dtype.tz else aware.replace(tzinfo=None)
