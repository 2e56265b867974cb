"""Writing one split: Arrow batches in, one bundle file out, everything computed in one pass.

Each batch goes to the rows, to the statistics, to the key hashes (for the filter that cross-
references copy) and to the index. How columns are indexed is decided on the first rows; the index
is then fed, document number equal to row number. Equal rows in equal batches give equal bytes.

The split of a companion is written without rows, with a list of the files of another table that
hold them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.config import Config
from indextables.errors import IndexTablesError, SchemaMismatchError
from indextables.expr.jsonpaths import Leaf, flatten
from indextables.expr.keys import HASH_KIND, KeyCollector, canonical_texts, distinct
from indextables.fitting import fitted
from indextables.log.actions import AddFile
from indextables.mapping import DocMapping
from indextables.native import BinaryFuse8, BinaryFuse16, hash_terms
from indextables.splits.format import members
from indextables.splits.format.bundle import INFO, BundleWriter
from indextables.splits.format.fields import (
    SAMPLE_ROWS,
    column_number,
    has_hashes,
    has_terms,
    has_zones,
    plan_fields,
)
from indextables.splits.format.info import IndexField, IndexFile, SplitInfo
from indextables.splits.lookup.codes import CodeBuilder, typed_values
from indextables.splits.lookup.colindex.encode import build_member
from indextables.splits.lookup.hashtable import build_hash_table
from indextables.splits.lookup.keywords import value_texts
from indextables.splits.lookup.words.directory import pack_directory
from indextables.splits.lookup.zones import ZoneBuilder
from indextables.splits.read.indexfiles import pack_index, sealed_meta
from indextables.splits.rows import RowsFile, RowsWriter
from indextables.splits.write.documents import MOST_MEMORY, IndexBuilder
from indextables.splits.write.keeping import SETTING
from indextables.splits.write.keys import Counted, counted_rows, counted_terms, keys_member
from indextables.splits.write.stats import SplitStatistics, StatisticsCollector
from indextables.splits.write.words import WordsWriter
from indextables.storage import workfolders
from indextables.storage.scratch import in_scratch, scratch_folder

PIECE_ROWS = 8192
PIECE_BYTES = 16 << 20
SAMPLE_BYTES = 64 << 20
WORK_FOLDER = "spark.indextables.indexWriter.tempDirectoryPath"


@dataclass(frozen=True, slots=True)
class FinishedSplit:
    """A split ready for upload, and all the log will say about it."""

    local_path: str
    size: int
    num_records: int
    stats_json: str
    min_values: Mapping[str, str]
    max_values: Mapping[str, str]
    footer_start: int
    footer_end: int
    doc_mapping_json: str
    uncompressed_size: int

    def to_add(
        self,
        path: str,
        partition_values: Mapping[str, str | None] | None = None,
        *,
        data_change: bool = True,
        modification_time: int | None = None,
        num_merge_ops: int = 0,
    ) -> AddFile:
        """The action that makes this split part of a table."""
        return AddFile(
            path=path,
            partition_values=dict(partition_values or {}),
            size=self.size,
            modification_time=modification_time or time.time_ns() // 1_000_000,
            data_change=data_change,
            stats=self.stats_json,
            min_values=dict(self.min_values),
            max_values=dict(self.max_values),
            num_records=self.num_records,
            footer_start_offset=self.footer_start,
            footer_end_offset=self.footer_end,
            has_footer_offsets=True,
            num_merge_ops=num_merge_ops,
            delete_opstamp=0,
            doc_mapping_json=self.doc_mapping_json,
            uncompressed_size_bytes=self.uncompressed_size,
        )

    def discard(self) -> None:
        """Delete the local file and its folder."""
        workfolders.release(os.path.dirname(self.local_path))


class SplitWriter:
    """Writes one split. ``schema`` is without partition columns."""

    def __init__(
        self,
        schema: pa.Schema,
        mapping: DocMapping,
        config: Config | None = None,
        *,
        work_dir: str | None = None,
        work_setting: str = WORK_FOLDER,
        column_indexes: Mapping[str, str] | None = None,
        has_rows: bool = True,
    ) -> None:
        self.schema = schema
        self.mapping = mapping
        self._sources: bytes | None = None
        self._config = config or Config()
        self._setting = WORK_FOLDER if work_dir is None else work_setting
        parent = work_dir or self._config["indexWriter.tempDirectoryPath"]
        self._folder = scratch_folder("split", parent, self._setting)
        self._rows = RowsWriter(schema) if has_rows else None
        self._statistics = StatisticsCollector(schema, self._config)
        self._sample: list[pa.RecordBatch] | None = []
        self._builder: IndexBuilder | None = None
        self._keys: dict[str, KeyCollector] = {}
        self._hashed: dict[str, list[tuple[NDArray[np.uint64], NDArray[np.uint32]]]] = {}
        self._coded: dict[str, CodeBuilder] = {}
        self._counted: dict[str, Counted] = {}
        self._zones = ZoneBuilder({})
        self._kept: dict[str, list[Any]] = {c: [] for c in column_indexes or {}}
        self._carried: dict[str, bytes] = {}
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self.num_rows = 0
        self._bytes = 0

    @property
    def estimated_bytes(self) -> int:
        """Rough size of the finished split."""
        return int(self._bytes * 0.6)

    def carry_column_indexes(self, made: Mapping[str, bytes]) -> None:
        """Put column indexes that exist already into the split; they are of its rows to come."""
        self._carried.update(made)

    def carry_sources(self, listed: bytes) -> None:
        """Put the list of the files that hold the rows into the split, which has none itself."""
        self._sources = listed

    @property
    def is_full(self) -> bool:
        """Has the index taken the memory it may take (``indexWriter.heapSize``)?"""
        most = min(self._config["indexWriter.heapSize"], MOST_MEMORY)
        return self._builder is not None and self._builder.memory >= most

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; columns are matched by name and must have the split's types."""
        with in_scratch(os.path.dirname(os.path.dirname(self._folder)), self._setting):
            self._append(self._conform(batch))

    def _append(self, batch: pa.RecordBatch) -> None:
        self.num_rows += batch.num_rows
        self._bytes += batch.nbytes
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, PIECE_ROWS - self._pending_rows)
            self._pending.append(part)
            self._pending_rows += part.num_rows
            self._pending_bytes += part.nbytes
            start += part.num_rows
            if self._pending_rows == PIECE_ROWS or self._pending_bytes >= PIECE_BYTES:
                self._flush()

    def _flush(self) -> None:
        """Small batches are joined first: every step has a price per batch."""
        pending, self._pending = self._pending, []
        self._pending_rows = self._pending_bytes = 0
        if len(pending) == 1:
            self._write_piece(pending[0])
        elif pending:
            joined = pa.Table.from_batches(pending, schema=self.schema).combine_chunks()
            for piece in joined.to_batches():
                self._write_piece(piece)

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        batch = self._in_order(batch)
        for field in self.schema:
            if not field.nullable and batch.column(field.name).null_count:
                raise SchemaMismatchError(f"column '{field.name}' may not be null")
        return batch

    def _in_order(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.schema.equals(self.schema):
            return batch
        missing = [n for n in self.schema.names if n not in batch.schema.names]
        if missing:
            raise SchemaMismatchError(f"the batch has no column {', '.join(missing)}")
        try:
            columns = [fitted(batch.column(f.name), f.type) for f in self.schema]
        except pa.ArrowInvalid as error:
            raise SchemaMismatchError(f"the batch does not fit the schema: {error}") from error
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _write_piece(self, piece: pa.RecordBatch) -> None:
        if self._sample is None:
            self._index(piece)
        else:
            self._sample.append(piece)
            rows = sum(p.num_rows for p in self._sample)
            if rows >= SAMPLE_ROWS or sum(p.nbytes for p in self._sample) >= SAMPLE_BYTES:
                self._start_index()
        if self._rows is not None:
            self._rows.write(piece)
        self._statistics.add(piece)
        for column, kept in self._kept.items():
            kept.append(piece.column(column))

    def _start_index(self) -> None:
        waiting, self._sample = self._sample or [], None
        sample = pa.Table.from_batches(waiting, schema=self.schema)
        fields = plan_fields(self.schema, self.mapping, sample)
        self._builder = IndexBuilder(os.path.join(self._folder, "index"), fields)
        for field in fields:
            mapping = self.mapping.get(field.column)
            if has_hashes(field):
                self._hashed[field.column] = []
            elif has_terms(field):
                self._coded[field.column] = CodeBuilder()
            if mapping is not None and field.kind != "none" and not has_hashes(field):
                self._keys[field.column] = KeyCollector(replace(mapping, name=field.column))
        self._zones = ZoneBuilder({f.column: column_number(f) for f in fields if has_zones(f)})
        for piece in waiting:
            self._index(piece)

    def _index(self, piece: pa.RecordBatch) -> None:
        assert self._builder is not None
        first = self._builder.num_docs
        nested = [f.column for f in self._builder.fields if f.kind == "paths"]
        texts = {f.column for f in self._builder.fields if f.kind == "text"}
        leaves = {c: _leaves(piece.column(c)) for c in nested}
        values = {c: value_texts(piece.column(c)) for c in self._coded}
        self._builder.add(piece, leaves, values)
        self._zones.add(piece)
        for column, coder in self._coded.items():
            coder.add(values[column])
        for column, collector in self._keys.items():
            if column in leaves:
                collector.add_leaves(leaves[column])
            elif column not in texts and (column not in self._coded or self._coded[column].gave_up):
                collector.add(piece.column(column))
        for column, found in self._hashed.items():
            found.append(self._hash(column, piece.column(column), first))

    def _hash(
        self, column: str, array: Any, first: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        mapping = self.mapping.get(column)
        assert mapping is not None
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(valid).astype(np.uint32) + np.uint32(first)
        texts = canonical_texts(array, mapping)
        return hash_terms(column, texts, HASH_KIND), rows

    # -- finishing --------------------------------------------------------------------------------

    def finish(self) -> FinishedSplit:
        """Write the bundle; the writer is done afterwards."""
        if self.num_rows == 0:
            self.abort()
            raise IndexTablesError("a split needs at least one row")
        try:
            with in_scratch(os.path.dirname(os.path.dirname(self._folder)), self._setting):
                return self._finish()
        except BaseException:
            self.abort()
            raise

    def _finish(self) -> FinishedSplit:
        self._flush()
        if self._sample is not None:
            self._start_index()
        builder = self._builder
        assert builder is not None
        rows = None if self._rows is None else self._rows.finish()
        statistics = self._statistics.finish(self.num_rows)
        builder.finish()
        for column, tokens in builder.tokens.items():
            self._keys[column].add_tokens(tokens)
            if self._keeps_keys:
                counts = builder.token_counts[column].to_numpy()
                self._counted[column] = counted_terms(hash_terms(column, tokens, HASH_KIND), counts)
        bundle = BundleWriter(os.path.join(self._folder, "split.bundle"))
        try:
            start, end = self._bundle(bundle, builder, rows, statistics)
        except BaseException:
            bundle.abort()
            raise
        return self._finished(bundle.path, start, end, statistics)

    def _bundle(
        self,
        bundle: BundleWriter,
        builder: IndexBuilder,
        rows: RowsFile | None,
        statistics: SplitStatistics,
    ) -> tuple[int, int]:
        if rows is not None:
            bundle.add(members.ROWS, *rows.pages)
        files = pack_index(builder.folder, bundle, builder.names)
        meta = sealed_meta(builder.folder)
        words = self._add_words(bundle, builder, files)
        builder.abort()
        fields, codes = self._add_tables(bundle, builder.fields)
        xref = self._add_filters(bundle, fields)
        self._add_column_indexes(bundle)
        for name, packed in sorted(codes.items(), key=lambda item: (-len(item[1]), item[0])):
            bundle.add(name, packed)  # the smallest come with the footer's read
        bundle.add(members.WORDS_DIRECTORY, words)
        self._add_info(bundle, rows, fields, files, meta, statistics, xref)
        return bundle.finish(sync=False)

    def _add_words(
        self, bundle: BundleWriter, builder: IndexBuilder, files: dict[str, IndexFile]
    ) -> bytes:
        """Add the blocks of words; the directory of them."""
        writer = WordsWriter(builder.folder, files)
        for name, record in builder.records().items():
            writer.add(name, record, builder.terms, self.num_rows)
        bundle.add(members.WORDS, *writer.blocks)
        return pack_directory(writer.tables)

    def _add_tables(
        self, bundle: BundleWriter, fields: list[IndexField]
    ) -> tuple[list[IndexField], dict[str, bytes]]:
        """Add hash tables; how fields are indexed, and the tables of codes by member."""
        codes: dict[str, bytes] = {}
        for column, parts in self._hashed.items():
            hashes = np.concatenate([h for h, _ in parts])
            rows = np.concatenate([r for _, r in parts])
            bundle.add(members.hash_table(column), build_hash_table(hashes, rows))
            self._hashed[column] = [(distinct(hashes), rows)]
            if self._keeps_keys:
                self._counted[column] = counted_rows(hashes, rows)
        for at, field in enumerate(fields):
            coder = self._coded.get(field.column)
            if coder is not None:
                self._keys[field.column].add(self._typed(field.column, coder))
                self._count_codes(field.column, coder)
                packed = coder.finish()
                if packed is not None:
                    codes[members.codes(field.column)] = packed
                    fields[at] = replace(field, codes=True)
        return fields, codes

    @property
    def _keeps_keys(self) -> bool:
        return bool(self._config[SETTING] == "true")

    def _count_codes(self, column: str, coder: CodeBuilder) -> None:
        mapping = self.mapping.get(column)
        counts = coder.counts() if self._keeps_keys else None
        if counts is not None and mapping is not None:
            texts = canonical_texts(self._typed(column, coder), mapping)
            self._counted[column] = counted_terms(hash_terms(column, texts, HASH_KIND), counts)

    def _typed(self, column: str, coder: CodeBuilder) -> Any:
        return typed_values(pa.array(coder.values, pa.string()), self.schema.field(column).type)

    def _add_filters(self, bundle: BundleWriter, fields: list[IndexField]) -> dict[str, Any]:
        parts = {c: collector.hashes() for c, collector in self._keys.items()}
        parts |= {c: found[0][0] for c, found in self._hashed.items()}
        for at, field in enumerate(fields):
            if field.column in parts:
                fields[at] = replace(field, terms=len(parts[field.column]))
        if self._keeps_keys:
            everything = self._config["xref.keymap.allTypes"]
            made = keys_member(parts, self._counted, self.mapping, self.schema, everything)
            bundle.add(members.KEYS, *made)
        keys = distinct(np.concatenate([np.empty(0, np.uint64), *parts.values()]))
        bundle.add(members.FUSE8, BinaryFuse8.build(keys, round_segments=True).to_postcard())
        if self._config["xref.build.filterType"] == "fuse16":
            bundle.add(members.FUSE16, BinaryFuse16.build(keys, round_segments=True).to_postcard())
        described = [f.to_dict() for f in self.mapping.fields if f.name in parts]
        return {"hash": HASH_KIND, "fields": described, "num_keys": len(keys)}

    def _add_column_indexes(self, bundle: BundleWriter) -> None:
        for column, data in self._carried.items():
            bundle.add(members.column_index(column), data)
        for column, arrays in self._kept.items():
            data = build_member(pa.chunked_array(arrays), self._config)
            bundle.add(members.column_index(column), data)

    def _add_info(
        self,
        bundle: BundleWriter,
        rows: RowsFile | None,
        fields: list[IndexField],
        files: dict[str, IndexFile],
        meta: str,
        statistics: SplitStatistics,
        xref: dict[str, Any],
    ) -> None:
        if rows is not None:
            bundle.add(members.ROWS_DIRECTORY, rows.directory)
        if self._sources is not None:
            bundle.add(members.SOURCES, self._sources)
        bundle.add(members.ZONES, self._zones.finish())
        bundle.add(members.DOC_MAPPING, self.mapping.to_json().encode())
        info = SplitInfo(
            schema=self.schema,
            num_rows=self.num_rows,
            mapping=self.mapping,
            checksums=bundle.checksums,
            fields={f.column: f for f in fields},
            null_counts=statistics.null_counts,
            nan_counts=statistics.nan_counts,
            integers=statistics.integers,
            index_files=files,
            index_meta=meta,
            xref=xref,
            has_rows=rows is not None,
        )
        bundle.add(INFO, info.to_json())

    def _finished(
        self, path: str, start: int, end: int, statistics: SplitStatistics
    ) -> FinishedSplit:
        return FinishedSplit(
            local_path=path,
            size=end,
            num_records=self.num_rows,
            stats_json=statistics.stats_json,
            min_values=statistics.min_values,
            max_values=statistics.max_values,
            footer_start=start,
            footer_end=end,
            doc_mapping_json=self.mapping.to_json(),
            uncompressed_size=self._bytes,
        )

    def abort(self) -> None:
        """Give up; nothing is left on disk."""
        if self._builder is not None:
            self._builder.abort()
        workfolders.release(self._folder)


def _leaves(column: Any) -> list[Leaf]:
    return flatten(column, is_text=pa.types.is_string(column.type))
