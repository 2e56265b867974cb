"""A folder, a glob or a list of Parquet files as a source.

Such a table has no metadata: its files are those that are there when it is asked, and its columns
are those of all files together. A column has the type that holds the values of every file; types
that have none are an error that names both files. Names are matched without case where they
differ by case alone, as Spark does.

Folders named ``column=value`` are partitions. Their values are typed as Spark types them: ``INT``,
``BIGINT``, ``DOUBLE`` or ``DATE`` where all of them fit, else ``STRING``; the option
``partition_types`` (``{"day": "date"}``) overrules that. A value wins over a column of that name in
the file.

Names that begin with ``_`` or ``.`` are left out, as Hadoop does. A file that is not a Parquet file
by its name is refused, not left out: a forgotten file would be rows that silently do not exist.

There are no versions. Asking for one is an error.
"""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.errors import (
    ConfigError,
    IndexTablesError,
    SchemaMismatchError,
    TableNotFoundError,
    VersionNotFoundError,
)
from indextables.log.actions.fields import NULL_PARTITION
from indextables.lru import LRU
from indextables.sources import pages
from indextables.sources.base import EqualityDelete, SourceColumn, SourceFile
from indextables.sources.footer import FooterFacts, read_facts
from indextables.sources.roots import Roots, canonical, rooted, split_options
from indextables.sources.rows import ParquetRows
from indextables.sources.union import united
from indextables.storage import pool
from indextables.storage.base import ObjectInfo, Store
from indextables.types import normalize_type, type_from_text

_MAGIC = re.compile(r"[*?\[]")
_DATA = re.compile(r"(?i).*\.(parquet|parq|pqt?)$|[^.]+$")
_INTEGER = re.compile(r"[+-]?\d{1,19}$")
_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d$")
_schemas: LRU[tuple[str, int, str], tuple[pa.Schema, int]] = LRU(most=20_000)


def open_parquet(
    location: str | Sequence[str], options: Mapping[str, Any] | None = None
) -> ParquetTable:
    """The Parquet files at a folder, a glob, or a list of addresses."""
    if not isinstance(location, str):
        files = tuple(rooted(str(one)) for one in location)
        if not files:
            raise ConfigError("a source of no Parquet files has no columns")
        return ParquetTable(Roots.of(_common(files), options), files, None, _types(options))
    if _MAGIC.search(location):
        folder = location[: _MAGIC.search(location).start()].rpartition("/")[0]  # type: ignore[union-attr]
        root = Roots.of(folder or (".", "/")[location.startswith("/")], options)
        pattern = location[len(folder) :].lstrip("/") if folder else location.lstrip("/")
        return ParquetTable(root, (), pattern, _types(options))
    if location.lower().endswith(".parquet") and _is_file(location, options):
        return open_parquet([location], options)
    return ParquetTable(Roots.of(location, options), (), None, _types(options))


def _is_file(location: str, options: Mapping[str, Any] | None) -> bool:
    folder, _, name = rooted(location).rpartition("/")
    return Roots.of(folder, options).store.exists(name)


def _common(files: Sequence[str]) -> str:
    """The folder that all files are in."""
    parts = [file.split("/")[:-1] for file in files]
    same = itertools.takewhile(lambda names: len(set(names)) == 1, zip(*parts, strict=False))
    shared = [names[0] for names in same]
    if len(shared) < 3:
        raise ConfigError("the Parquet files of a source lie in one bucket or file system")
    return "/".join(shared) if len(shared) > 3 or shared[2] else "/".join(shared) + "/"


def _types(options: Mapping[str, Any] | None) -> dict[str, pa.DataType]:
    named = split_options(options)[0].get("partition_types") or {}
    return {name: type_from_text(text) for name, text in named.items()}


@dataclass
class ParquetTable:
    """Parquet files that are a table because the caller says so."""

    roots: Roots
    listed: tuple[str, ...]
    pattern: str | None
    types: Mapping[str, pa.DataType]
    format: str = "parquet"

    @property
    def location(self) -> str:
        return self.roots.location + (f"/{self.pattern}" if self.pattern else "")

    def snapshot(
        self,
        version: int | None = None,
        timestamp: int | None = None,
        *,
        columns: Sequence[SourceColumn] = (),
        seen: Callable[[SourceFile], bool] | None = None,
    ) -> ParquetSnapshot:
        """The files that are there now.

        ``columns`` are those of files for which ``seen`` is true: their footers are not read again.
        """
        if version not in (None, 0) or timestamp is not None:
            raise VersionNotFoundError(
                "a folder of Parquet files has no versions", path=self.location
            )
        found = [self._file(store, info) for store, info in self._infos()]
        if not found:
            raise TableNotFoundError("there are no Parquet files", path=self.location)
        files, partitions = _partitioned(found, self.roots, self.types)
        new = [f for f in files if seen is None or not seen(f)]
        made = [*_columns(self.roots, new, partitions, columns), *partitions]
        names = tuple(column.identity for column in partitions)
        return ParquetSnapshot(self.roots, self.location, tuple(made), names, tuple(files))

    def _infos(self) -> Iterator[tuple[Store, ObjectInfo]]:
        if self.listed:
            for address in self.listed:
                store, path = self.roots.locate(address)
                yield store, store.stat(path)
            return
        store = self.roots.store
        for info in store.list(recursive=True):
            if self.pattern is not None:
                if _fits(info.path, self.pattern):
                    yield store, info
            elif not _is_hidden(info.path):
                if not _DATA.match(info.path.rpartition("/")[2]):
                    raise IndexTablesError(
                        f"'{info.path}' is no Parquet file by its name",
                        path=self.location,
                        hint="Name the files with a glob, such as folder/*.parquet",
                    )
                yield store, info

    def _file(self, store: Store, info: ObjectInfo) -> SourceFile:
        return SourceFile(f"{store.uri}/{info.path}", info.size, token=_token(store, info))


def _fits(path: str, pattern: str) -> bool:
    """Does a path fit a glob, in which ``**`` is any number of folders?"""
    parts, wanted = path.split("/"), pattern.split("/")
    return _fit_parts(parts, wanted)


def _fit_parts(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_fit_parts(parts[i:], wanted[1:]) for i in range(len(parts) + 1))
    return (
        bool(parts)
        and fnmatch.fnmatchcase(parts[0], wanted[0])
        and _fit_parts(parts[1:], wanted[1:])
    )


def _is_hidden(path: str) -> bool:
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part)
        for part in path.split("/")
    )


def _token(store: Store, info: ObjectInfo) -> str:
    local = store.local_path(info.path)
    if local is None:
        return info.etag or str(info.modified_ms)
    found = os.stat(local)
    return f"{found.st_mtime_ns}-{found.st_ino}"


# -- partitions -----------------------------------------------------------------------------------


def _partitioned(
    files: Sequence[SourceFile], roots: Roots, declared: Mapping[str, pa.DataType]
) -> tuple[list[SourceFile], list[SourceColumn]]:
    """The files with their partition values, and the columns of these."""
    texts = [_folders(file.path, roots.location) for file in files]
    if len({tuple(t) for t in texts}) > 1:
        a, b = files[0], next(f for f, t in zip(files, texts, strict=True) if [*t] != [*texts[0]])
        raise SchemaMismatchError(
            f"files lie in partitions of different columns: '{a.path}' and '{b.path}'",
            path=roots.location,
            hint="Index the folder above the partitions, or name the files with a glob",
        )
    types = {n: declared.get(n) or partition_type(t[n] for t in texts) for n in texts[0]}
    read = {name: _reader(name, dtype) for name, dtype in types.items()}
    valued = [
        replace(file, partition={name: read[name](text) for name, text in found.items()})
        for file, found in zip(files, texts, strict=True)
    ]
    return valued, [SourceColumn(name, dtype, name, name) for name, dtype in types.items()]


def _folders(path: str, root: str) -> dict[str, str]:
    inner = canonical(path)[len(root.rstrip("/")) + 1 :].split("/")[:-1]
    pairs = [part.partition("=") for part in inner if "=" in part]
    return {unquote(name): unquote(value) for name, _, value in pairs}


def _reader(name: str, dtype: pa.DataType) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return None if text == NULL_PARTITION else value_of(text, dtype)
        except (ValueError, ArithmeticError) as error:
            raise SchemaMismatchError(
                f"partition '{name}={text}' is no {dtype}: {error}",
                hint="Set the option partition_types",
            ) from None

    return read


def partition_type(texts: Iterable[str]) -> pa.DataType:
    """The narrowest type of all these partition values."""
    values = {text for text in texts if text != NULL_PARTITION}
    if not values:
        return pa.string()
    if all(_INTEGER.match(v) for v in values):
        largest = max(abs(int(v)) for v in values)
        if largest < 1 << 63:
            return pa.int32() if largest < 1 << 31 else pa.int64()
    if all(_DOUBLE.match(v) for v in values):
        return pa.float64()
    if all(_DATE.match(v) and _is_date(v) for v in values):
        return pa.date32()
    return pa.string()


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def value_of(text: str, dtype: pa.DataType) -> Any:
    """A partition value, as Hive and Delta write it."""
    t = pa.types
    if t.is_string(dtype):
        return text
    if t.is_binary(dtype):
        return text.encode()
    if t.is_boolean(dtype):
        return {"true": True, "false": False}[text.lower()]
    made = pa.scalar(text.strip(), pa.string()).cast(dtype)
    return made.as_py()


# -- columns --------------------------------------------------------------------------------------


def _columns(
    roots: Roots,
    files: Sequence[SourceFile],
    partitions: Sequence[SourceColumn],
    known: Sequence[SourceColumn],
) -> list[SourceColumn]:
    outside = {column.name for column in partitions}
    schemas = pool.in_order(lambda f: schema_of(roots, f), files, pool.workers(roots.store))
    found = {c.name: (c.type, "") for c in known if c.name not in outside}
    spelled = {name.lower(): name for name in found}
    for file, (schema, _) in zip(files, schemas, strict=True):
        for one in schema:
            if one.name not in outside:
                name = spelled.setdefault(one.name.lower(), one.name)
                before, where = found.get(name, (one.type, file.path))
                found[name] = united(before, one.type, name, where, file.path), where
    return [SourceColumn(name, dtype, name, name) for name, (dtype, _) in found.items()]


def schema_of(roots: Roots, file: SourceFile) -> tuple[pa.Schema, int]:
    """The columns of a file in types that a table can have, and its number of rows."""

    def read() -> tuple[pa.Schema, int]:
        store, path = roots.locate(file.path)
        facts, _, _ = read_facts(store, path, file.size)
        fields = pages.arrow_fields(facts, range(len(facts.columns)), path)
        return pa.schema([pa.field(f.name, usable(f.type)) for f in fields]), facts.num_rows

    return _schemas.load(file.key, read)


def usable(dtype: pa.DataType) -> pa.DataType:
    """The table's type for a type of Arrow; one that a table cannot have stays as it is."""
    try:
        return normalize_type(dtype)
    except SchemaMismatchError:
        return dtype


@dataclass
class ParquetSnapshot:
    """The Parquet files that were there at one moment."""

    roots: Roots
    location: str
    columns: tuple[SourceColumn, ...]
    partition_columns: tuple[str, ...]
    _files: tuple[SourceFile, ...]
    format: str = "parquet"
    version: int = 0
    timestamp: int | None = None

    def files(self) -> Iterator[SourceFile]:
        return iter(self._files)

    def deleted_positions(self, file: SourceFile) -> NDArray[np.uint64] | None:
        return None

    def equality_rows(self, delete: EqualityDelete) -> pa.Table:
        raise IndexTablesError("Parquet files have no deletes", path=self.location)

    def rows(self, file: SourceFile, facts: FooterFacts | None = None) -> ParquetRows:
        store, path = self.roots.locate(file.path)
        return ParquetRows(
            store, path, file.size, self.columns, partition=file.partition, facts=facts
        )
