"""Files as data: Parquet, CSV, newline-delimited JSON and plain text, with one schema for all.

The types of CSV and JSON are inferred from **all** of the data, in a first pass, so that a value on
the last line can neither fail the write half-way nor be dropped; the second pass reads with the
schema that the first one found. A column that only some files have is NULL in the others.

A line that cannot be read is handled as ``bad_lines`` says: ``stop`` fails with the file and the
line, ``skip`` leaves it out and counts it, ``keep`` stores it as it is in the column ``_raw``, with
NULL in every other column. A CSV line is bad if it has another number of fields than the header, a
JSON line if it is not an object. Plain text has one column, ``line``, and no bad lines.
"""

from __future__ import annotations

import glob
import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import pyarrow as pa

from indextables.errors import ConfigError, SchemaMismatchError

Format = Literal["parquet", "csv", "ndjson", "text"]
BadLines = Literal["stop", "skip", "keep"]
FORMATS: tuple[str, ...] = get_args(Format)
BAD_LINES: tuple[str, ...] = get_args(BadLines)
RAW = "_raw"
LINE = "line"
LINES_AT_ONCE = 20_000
_ENDINGS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".txt": "text",
    ".log": "text",
}
_COMPRESSED = (".gz", ".bz2", ".zst")


@dataclass
class FileFormat:
    """How files are to be read, and what was seen while reading them."""

    format: str | None = None
    bad_lines: str = "stop"
    delimiter: str | None = None
    bad: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise ConfigError(f"format {self.format!r} is not one of {', '.join(FORMATS)}")
        if self.bad_lines not in BAD_LINES:
            raise ConfigError(f"bad_lines {self.bad_lines!r} is not one of {', '.join(BAD_LINES)}")

    def of(self, path: str) -> str:
        """The format of a file: as given, else by its name."""
        if self.format is not None:
            return self.format
        name = path.lower()
        for ending in _COMPRESSED:
            name = name.removesuffix(ending)
        found = _ENDINGS.get(os.path.splitext(name)[1])
        if found is None:
            raise ConfigError(
                "the name does not tell the format of the file",
                path=path,
                hint=f"Say which it is: format, one of {', '.join(FORMATS)}",
            )
        return found


def expand(paths: Sequence[str]) -> list[str]:
    """Files of paths, folders and globs, in order; a pattern without a file is an error."""
    found: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            pattern = os.path.join(glob.escape(path), "**", "*")
            here = [p for p in sorted(glob.glob(pattern, recursive=True)) if os.path.isfile(p)]
        elif os.path.exists(path):
            here = [path]
        else:
            here = sorted(glob.glob(path, recursive=True))
        if not here:
            raise ConfigError("there is no such file", path=path, hint="Check the path")
        found += here
    return found


def read_files(paths: Sequence[str], how: FileFormat) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """One schema and the batches of all files."""
    sources = [_source(path, how) for path in expand(paths)]
    schemas = [source.schema() for source in sources]
    try:
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowException, ValueError) as error:
        raise SchemaMismatchError(
            f"the files do not share a schema: {error}",
            hint="Write them to different tables, or rename the column",
        ) from error
    schema = pa.schema([_known(f) for f in schema])
    return schema, (batch for source in sources for batch in source.batches(schema))


def _known(found: pa.Field) -> pa.Field:
    """A column without any value is text."""
    return found.with_type(pa.string()) if pa.types.is_null(found.type) else found


def _source(path: str, how: FileFormat) -> Source:
    kinds: dict[str, type[Source]] = {
        "parquet": ParquetSource,
        "csv": CsvSource,
        "ndjson": JsonSource,
        "text": TextSource,
    }
    return kinds[how.of(path)](path, how)


class Source:
    """One file."""

    def __init__(self, path: str, how: FileFormat) -> None:
        self.path = path
        self.how = how

    def schema(self) -> pa.Schema:
        """Columns and types, from the whole file."""
        raise NotImplementedError

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """The rows, with the columns of ``schema`` that the file has."""
        raise NotImplementedError

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows, in the shape of ``schema``."""
        for table in self.tables(schema):
            columns = [
                table[f.name].cast(f.type)
                if f.name in table.column_names
                else pa.nulls(table.num_rows, f.type)
                for f in schema
            ]
            yield from pa.table(columns, schema=schema).to_batches()

    def open(self) -> Any:
        return pa.input_stream(self.path, compression="detect")

    def lines(self) -> Iterator[list[bytes]]:
        """The lines without their ends, some at a time."""
        chunk: list[bytes] = []
        with self.open() as stream:
            for line in io.BufferedReader(stream):
                chunk.append(line.rstrip(b"\r\n"))
                if len(chunk) >= LINES_AT_ONCE:
                    yield chunk
                    chunk = []
        if chunk:
            yield chunk

    def refuse(self, reason: str) -> SchemaMismatchError:
        return SchemaMismatchError(
            reason, path=self.path, hint="bad_lines='skip' or 'keep' goes on past such lines"
        )


class ParquetSource(Source):
    """A Parquet file."""

    def schema(self) -> pa.Schema:
        from pyarrow import parquet

        return parquet.read_schema(self.path).remove_metadata()

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        from pyarrow import parquet

        with parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches():
                yield pa.Table.from_batches([batch])


class TextSource(Source):
    """Lines of text; bytes that are no UTF-8 are replaced."""

    def schema(self) -> pa.Schema:
        return pa.schema([(LINE, pa.string())])

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        for lines in self.lines():
            yield pa.table({LINE: [line.decode("utf-8", "replace") for line in lines]})


class JsonSource(Source):
    """One JSON object a line."""

    def schema(self) -> pa.Schema:
        found = [pa.schema([])]
        if self.how.bad_lines == "keep":
            found.append(pa.schema([(RAW, pa.string())]))
        number = 0
        for lines in self.lines():
            good, bad = self._sorted(lines, number)
            number += len(lines)
            if good:
                found.append(self._parsed(good, None).schema)
            self.how.bad += len(bad)
        return pa.unify_schemas(found, promote_options="permissive")

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        number = 0
        for lines in self.lines():
            good, bad = self._sorted(lines, number)
            number += len(lines)
            if good:
                yield self._parsed(good, schema)
            if bad and self.how.bad_lines == "keep":
                yield pa.table({RAW: [line.decode("utf-8", "replace") for line in bad]})

    def _sorted(self, lines: list[bytes], before: int) -> tuple[list[bytes], list[bytes]]:
        """Objects, and what is none; empty lines are neither."""
        good: list[bytes] = []
        bad: list[bytes] = []
        for number, line in enumerate(lines, before + 1):
            if not line.strip():
                continue
            if _is_object(line):
                good.append(line)
            elif self.how.bad_lines == "stop":
                raise self.refuse(f"line {number} is not a JSON object")
            else:
                bad.append(line)
        return good, bad

    def _parsed(self, lines: list[bytes], schema: pa.Schema | None) -> pa.Table:
        from pyarrow import json as arrow_json

        options = arrow_json.ParseOptions(explicit_schema=schema)
        try:
            return arrow_json.read_json(io.BytesIO(b"\n".join(lines)), parse_options=options)
        except pa.ArrowException as error:
            raise SchemaMismatchError(
                f"a field has values of several types: {error}",
                path=self.path,
                hint="Give each field one type, or ingest the lines with format='text'",
            ) from error


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


class CsvSource(Source):
    """Comma- or tab-separated values with a header line."""

    def schema(self) -> pa.Schema:
        """The types of the first block, widened until every block converts."""
        types: dict[str, pa.DataType] = {}
        while True:
            bad: list[str] = []
            try:
                with self._reader(types, bad) as reader:
                    schema = reader.schema
                    for _ in reader:
                        pass
            except pa.ArrowInvalid as error:
                if not self._widen(types, str(error)):
                    raise self.refuse(str(error)) from error
                continue
            self.how.bad += len(bad)
            kept = [(RAW, pa.string())] if self.how.bad_lines == "keep" else []
            return pa.schema([*schema, *(pa.field(*k) for k in kept)])

    def _widen(self, types: dict[str, pa.DataType], message: str) -> bool:
        """Read the column that did not convert as the next wider type; is there one?"""
        where, _, rest = message.partition(": CSV conversion error to ")
        number = where.rpartition("#")[2]
        if not rest or not number.isdigit():
            return False
        name = self._names()[int(number)]
        integer = rest.startswith(("int", "uint"))
        wider = pa.float64() if integer and name not in types else pa.string()
        if types.get(name) == pa.string():
            return False
        types[name] = wider
        return True

    def _names(self) -> list[str]:
        with self._reader({}, []) as reader:
            return list(reader.schema.names)

    def _reader(self, types: dict[str, pa.DataType], bad: list[str]) -> Any:
        from pyarrow import csv

        def handle(row: Any) -> str:
            if self.how.bad_lines == "stop":
                return "error"
            bad.append(row.text)
            return "skip"

        delimiter = self.how.delimiter or ("\t" if ".tsv" in self.path.lower() else ",")
        return csv.open_csv(
            self.open(),
            parse_options=csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=handle
            ),
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=True),
        )

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        bad: list[str] = []
        types = {f.name: f.type for f in schema}
        with self._reader(types, bad) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])
        if bad and self.how.bad_lines == "keep":
            yield pa.table({RAW: bad})
