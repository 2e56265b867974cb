"""Feeding tantivy: Arrow columns in, one segment out, document number equal to row number.

Documents are made one at a time from the columns of a small batch. One thread, one commit, and a
memory ceiling as high as tantivy allows (it is a limit, not an allocation) keep everything in one
segment, in order; that is asserted, because every row number depends on it.
tantivy needs about as many bytes as it is given words, ten times as many if every word is short and
new: ``memory`` is the former, and writers close splits long before the latter could
reach the ceiling.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import repeat
from typing import Any

import pyarrow as pa

from indextables.errors import IndexTablesError
from indextables.expr.grams import folded
from indextables.expr.ipaddr import address_array, format_address
from indextables.expr.jsonpaths import Leaf
from indextables.splits.format.fields import (
    has_own_field,
    register_analyzers,
    tantivy_fields,
    tantivy_schema,
)
from indextables.splits.format.info import IndexField
from indextables.splits.lookup import keywords
from indextables.splits.lookup.pathtokens import row_texts
from indextables.storage.deleting import remove_tree

HEAP_CEILING = 4_293_000_000
MOST_MEMORY = HEAP_CEILING // 10
KEYS_SHARE = 4
GRAM_SHARE = 4
"""The pieces of a text take about so many times its bytes."""


class IndexBuilder:
    """Builds the tantivy index of one split in a folder of its own."""

    def __init__(self, folder: str, fields: list[IndexField]) -> None:
        import tantivy

        os.mkdir(folder)
        self.folder = folder
        self.fields = list(fields)
        self.num_docs = 0
        self.memory = 0
        """About how many bytes the index takes before it is written."""
        self.tokens: dict[str, pa.Array] = {}
        """After ``finish``: the distinct tokens of each tokenised column."""
        self.token_counts: dict[str, pa.Array] = {}
        """After ``finish``: in how many rows each of these tokens is."""
        self._listed: dict[str, list[tuple[str, int]]] = {}
        self._searcher: Any = None
        self._document = tantivy.Document
        self._index = tantivy.Index(tantivy_schema(fields), path=folder)
        register_analyzers(self._index, fields)
        self._writer: Any = self._index.writer(HEAP_CEILING, num_threads=1)

    @property
    def names(self) -> list[str]:
        """The index's fields in order."""
        return tantivy_fields(self.fields)

    def add(
        self, batch: pa.RecordBatch, leaves: Mapping[str, list[Leaf]], values: Mapping[str, Any]
    ) -> None:
        """Append documents; ``leaves`` are the scalars of the JSON columns of this batch.

        ``values`` are the spelt values of the columns that have terms, as dictionaries.
        """
        texts, self.fields = keywords.row_texts(batch, self.fields, values, self.num_docs)
        given: dict[str, list[Any]] = {}
        addresses: dict[str, list[Any]] = {}
        if texts is not None:
            self.memory += texts.nbytes // KEYS_SHARE
            given[keywords.KEYS] = texts.to_pylist()
        for at, field in enumerate(self.fields):
            if has_own_field(field):
                column = batch.column(field.column)
                self.memory += column.nbytes
                found, self.fields[at] = index_values(column, field, leaves.get(field.column, []))
                (addresses if field.kind == "ip" else given)[field.name] = found
            if field.grams:
                texts = folded(batch.column(field.column))
                self.memory += GRAM_SHARE * texts.nbytes
                given[field.gram_name] = texts.to_pylist()
        self._feed(batch.num_rows, given, addresses)
        self.num_docs += batch.num_rows

    def _feed(
        self, count: int, texts: dict[str, list[Any]], addresses: dict[str, list[Any]]
    ) -> None:
        """One document at a time: it is still in the cache when it is handed over."""
        document, add = self._document, self._writer.add_document
        names, places = tuple(texts), tuple(addresses)
        rows = zip(*texts.values(), strict=True) if texts else repeat((), count)
        points = zip(*addresses.values(), strict=True) if addresses else repeat((), count)
        for row, point in zip(rows, points, strict=False):
            doc = document()
            for name, text in zip(names, row, strict=True):
                if text is not None:
                    doc.add_text(name, text)
            for name, address in zip(places, point, strict=True):
                if address is not None:
                    doc.add_ip_addr(name, address)
            add(doc)

    def finish(self) -> None:
        """Commit; afterwards the folder holds one segment with every row in order."""
        self._writer.commit()
        self._writer.wait_merging_threads()
        self._writer = None
        self._index.reload()
        self._searcher = self._index.searcher()
        segments, docs = self._searcher.num_segments, self._searcher.num_docs
        for field in self.fields:
            if field.kind == "text":
                found = self.terms(field.name)
                self.tokens[field.column] = pa.array([term for term, _ in found], pa.string())
                counts = pa.array([count for _, count in found], pa.int64())
                self.token_counts[field.column] = counts
        self._index = None
        if segments > 1 or docs != self.num_docs:
            raise IndexTablesError(
                f"the index of {self.num_docs} rows came out as {segments} segments of {docs}",
                hint="Lower spark.indextables.write.rowsPerSplit",
            )

    def terms(self, name: str) -> list[tuple[str, int]]:
        """After ``finish``: the terms of a field, each with the number of its rows."""
        if name not in self._listed:
            self._listed[name] = self._searcher.terms_with_prefix(name, "")
        return self._listed[name]

    def records(self) -> dict[str, str]:
        """What the index keeps of the terms of each field that has terms."""
        own = {f.name: f.record for f in self.fields if f.kind in ("text", "paths")}
        return {keywords.KEYS: "basic", **own}

    def abort(self) -> None:
        self._writer = None
        self._index = self._searcher = None
        self._listed.clear()
        remove_tree(self.folder, os.path.dirname(self.folder))


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
    if field.kind == "ip":
        return [_address(raw) for raw in address_array(column).to_pylist()], field
    return column.to_pylist(), field


def _address(raw: bytes | None) -> str | None:
    return None if raw is None else format_address(int.from_bytes(raw, "big"))
