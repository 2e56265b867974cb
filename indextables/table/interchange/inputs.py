"""What ``write`` takes: anything that is, holds or names Arrow data, as a schema and its batches.

* Arrow: tables, batches, readers, datasets, scanners, and whatever exports a stream (pandas,
  Polars, DuckDB relations, another ``Table``). Lazy frames of Polars are collected.
* Python: a list of dicts, a dict of columns, an iterable (a generator too) of batches, tables or
  dicts. An iterable is read once, in pieces; its first piece fixes the schema.
* Files: a path, a glob or a list of paths to Parquet, CSV or newline-delimited JSON; see ``files``.

Nothing is guessed about data without a schema: an empty list says nothing about columns and is an
error, an empty Arrow table is an empty write.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from indextables.errors import ConfigError, SchemaMismatchError

BATCH_ROWS = 65_536
"""Rows of a batch that is made here."""

Batches = tuple[pa.Schema, Iterator[pa.RecordBatch]]


def as_batches(data: Any) -> Batches:
    """The schema and batches of anything that ``write`` takes."""
    if isinstance(data, pa.Table):
        return data.schema, iter(data.to_batches(max_chunksize=BATCH_ROWS))
    if isinstance(data, pa.RecordBatch):
        return data.schema, iter([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.schema, iter(data)
    if isinstance(data, str | os.PathLike):
        return _of_files([data])
    if isinstance(data, Mapping):
        return as_batches(_table_of_columns(data))
    return _of_library(data) or _of_iterable(data)


def _of_library(data: Any) -> Batches | None:
    """Frames, datasets and scanners, known by what they can do."""
    if hasattr(data, "collect_schema") and hasattr(data, "collect"):
        return as_batches(data.collect().to_arrow())
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, iter(reader)
    if hasattr(data, "__arrow_c_array__"):
        return as_batches(pa.record_batch(data))
    if hasattr(data, "scanner") and hasattr(data, "schema"):
        return as_batches(data.scanner().to_reader())
    if hasattr(data, "to_reader"):
        return as_batches(data.to_reader())
    if type(data).__module__.partition(".")[0] == "pandas":
        return as_batches(pa.Table.from_pandas(data, preserve_index=False))
    return None


def _of_iterable(data: Any) -> Batches:
    if isinstance(data, bytes | bytearray) or not isinstance(data, Iterable):
        raise _cannot(data)
    if isinstance(data, list) and data and all(isinstance(row, Mapping) for row in data):
        return as_batches(table_of_rows(data))
    pieces = iter(data)
    first = next(pieces, None)
    if first is None:
        raise ConfigError(
            "there is nothing to write, and nothing that says which columns there would be",
            hint="An empty write needs a schema: give pyarrow.table({...}) or schema.empty_table()",
        )
    everything = itertools.chain([first], pieces)
    if isinstance(first, Mapping):
        return _in_step(table_of_rows(rows) for rows in _chunks(everything))
    if isinstance(first, str | os.PathLike):
        return _of_files(list(everything))
    return _in_step(_piece(piece) for piece in everything)


def _piece(piece: Any) -> pa.Table:
    if not isinstance(piece, pa.Table | pa.RecordBatch) and not hasattr(
        piece, "__arrow_c_stream__"
    ):
        raise _cannot(piece)
    schema, batches = as_batches(piece)
    return pa.Table.from_batches(list(batches), schema=schema)


def _in_step(pieces: Iterator[pa.Table]) -> Batches:
    """Batches with the schema of the first piece; a later piece has to fit."""
    first = next(pieces)

    def batches() -> Iterator[pa.RecordBatch]:
        for number, piece in enumerate(itertools.chain([first], pieces), 1):
            yield from _fitted(piece, first.schema, number).to_batches(max_chunksize=BATCH_ROWS)

    return first.schema, batches()


def _fitted(piece: pa.Table, schema: pa.Schema, number: int) -> pa.Table:
    extra = [name for name in piece.column_names if name not in schema.names]
    if extra:
        raise SchemaMismatchError(
            f"part {number} of the data has columns that the first part lacks: {', '.join(extra)}",
            hint="The first part fixes the schema; give every part the same columns",
        )
    try:
        return pa.table(
            [
                piece[field.name].cast(field.type)
                if field.name in piece.column_names
                else pa.nulls(piece.num_rows, field.type)
                for field in schema
            ],
            schema=schema,
        )
    except (pa.ArrowException, ValueError) as error:
        raise SchemaMismatchError(
            f"part {number} of the data does not fit the first part: {error}",
            hint="The first part fixes the schema; give every part the same column types",
        ) from error


def _chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(itertools.islice(rows, BATCH_ROWS)):
        yield chunk


def table_of_rows(rows: list[Any]) -> pa.Table:
    """A table of a list of dicts; a column that only later rows have is NULL before."""
    wrong = next((row for row in rows if not isinstance(row, Mapping)), None)
    if wrong is not None:
        raise _cannot(wrong)
    names = dict.fromkeys(name for row in rows for name in row)
    try:
        return pa.table({name: [row.get(name) for row in rows] for name in names})
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise SchemaMismatchError(
            f"the rows make no table: {error}",
            hint="Give every column values of one type; text must be valid Unicode",
        ) from error


def _table_of_columns(columns: Mapping[str, Any]) -> pa.Table:
    try:
        return pa.table(dict(columns))
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise SchemaMismatchError(
            f"the columns make no table: {error}",
            hint="Give a dict of column names and equally long lists of values of one type",
        ) from error


def _of_files(paths: list[Any]) -> Batches:
    from indextables.table.interchange.files import FileFormat, read_files

    return read_files([os.fspath(path) for path in paths], FileFormat())


def _cannot(data: Any) -> ConfigError:
    return ConfigError(
        f"cannot write data of type {type(data).__name__}",
        hint="Give a Spark DataFrame, Arrow data (pyarrow, pandas, Polars, anything that streams "
        "Arrow), a list of dicts, or paths of CSV, JSON or Parquet files",
    )
