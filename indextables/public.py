"""The functions a user calls first: ``write``, ``open``, ``sql``, ``read``, ``register``.

A path may be a string or a ``pathlib.Path``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from indextables.errors import ConfigError

if TYPE_CHECKING:
    from indextables.log.commit.transaction import CommitResult
    from indextables.table import Table

__all__ = ["index", "open", "quote", "read", "register", "scan_polars", "sql", "write"]

Path: TypeAlias = "str | os.PathLike[str]"


def analyze(text: str, analyzer: str = "default") -> list[str]:
    """The tokens that an analyzer makes of a text, as an index of such a column holds them."""
    from indextables.expr.analyzers import analyze as tokens

    return tokens(analyzer, text)


def quote(text: str) -> str:
    """A search string that finds a text as it stands, whatever characters it holds.

    Its words are searched one after the other, so that a pasted ``https://a.b/c?d=[1]`` or ``f()``
    is no syntax: ``table.search(quote(pasted))``, or ``table.search(pasted, literal=True)``.
    """
    from indextables.expr.querystring import quoted

    return quoted(text)


def write(
    data: Any,
    path: Path,
    *,
    partition_by: Sequence[str] = (),
    mode: str = "append",
    replace_where: str | None = None,
    text: Iterable[str] = (),
    json: Iterable[str] = (),
    ip: Iterable[str] = (),
    tokenizers: Mapping[str, str] | None = None,
    substring: Iterable[str] = (),
    fast: Iterable[str] = (),
    rows_per_split: int | None = None,
    target_size: int | str | None = None,
    merge_schema: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> CommitResult:
    """Write data to the table at ``path``, in one commit.

    ``data`` is a Spark DataFrame, anything that holds Arrow data (pyarrow, pandas, Polars, DuckDB),
    a list of dicts, a dict of columns, an iterable of batches or dicts, or the path of a Parquet,
    CSV or newline-delimited JSON file.

    ``mode`` is ``append``, ``overwrite``, ``error`` or ``ignore``; ``replace_where`` limits an
    overwrite to the partitions it names. Strings are exact unless listed in ``text`` (tokenised),
    ``json`` or ``ip``. Columns in ``substring`` get an index of parts of words too, for
    ``LIKE '%part%'`` and the like. The table is created if there is none.
    """
    settings: dict[str, Any] = {
        "partition_by": partition_by,
        "mode": mode,
        "replace_where": replace_where,
        "text": text,
        "json": json,
        "ip": ip,
        "tokenizers": tokenizers,
        "substring": substring,
        "fast": fast,
        "rows_per_split": rows_per_split,
        "target_size": target_size,
        "merge_schema": merge_schema,
        "storage_options": storage_options,
        "options": options,
    }
    if hasattr(data, "sparkSession") and hasattr(data, "write"):
        from indextables.spark import write as write_dataframe

        result: CommitResult = write_dataframe(data, _text(path), **settings)
        return result
    from indextables.table import write_table

    return write_table(data, _text(path), **settings)


def open(
    path: Path,
    version: int | None = None,
    timestamp: Any = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Table:
    """The table at ``path``, now or as it was at a version or moment; no Spark needed."""
    from indextables.table import open_table

    where = _text(path)
    return open_table(where, version, timestamp, storage_options=storage_options, options=options)


def index(
    source: Path,
    at: Path,
    *,
    format: str | None = None,
    text: Iterable[str] = (),
    json: Iterable[str] = (),
    ip: Iterable[str] = (),
    tokenizers: Mapping[str, str] | None = None,
    substring: Iterable[str] = (),
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    roots: Mapping[str, str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    source_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    spark: Any = None,
) -> Table:
    """A companion at ``at``: an index over the Delta, Iceberg or Parquet table at ``source``.

    The source stays where and as it is, and is never written to. Called again, it indexes the files
    that are new since, and drops those that are gone. Reading the companion reads the source as it
    is at that moment, files that are not indexed yet included.

    ``format`` is ``delta``, ``iceberg`` or ``parquet`` (default: found out). Strings are exact
    unless listed in ``text``, ``json`` or ``ip``, as for ``write``. ``columns`` are the columns to
    index (default: all), ``exclude`` those to leave out of the index; all can be read.
    ``source_options`` reach the source (default: ``storage_options``, which reach the companion).
    ``roots`` are folders outside of the source's own where its files may be, by name.
    With ``spark`` the files are indexed by Spark tasks.
    """
    from indextables.table.companions import index_source

    return index_source(
        _text(source),
        _text(at),
        format=format,
        indexing={
            "text": text,
            "json": json,
            "ip": ip,
            "tokenizers": tokenizers,
            "substring": substring,
        },
        columns=columns,
        exclude=exclude,
        roots=roots,
        storage_options=storage_options,
        source_options=source_options,
        options=options,
        spark=spark,
    )


def _text(path: Path) -> str:
    """A path as text."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        raise ConfigError(
            f"a path is text or a pathlib.Path, not {type(path).__name__}",
            hint="Decode bytes with os.fsdecode first",
        )
    return text


def scan_polars(
    path: Path,
    version: int | None = None,
    timestamp: Any = None,
    *,
    where: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """The table at ``path`` as a Polars ``LazyFrame``; its filters and columns are pushed down.

    ``where`` is a condition in our language, for what Polars has no words for: text search.
    """
    from indextables.table.interchange.polars_scan import scan

    table = open(path, version, timestamp, storage_options=storage_options, options=options)
    return scan(table, where)


def register(spark: Any) -> int:
    """Make ``spark.read.format("indextables")`` and our SQL known to a Spark session.

    Returns the layer that serves: 2 with the planner in the driver, 1 for the plain data source.
    """
    from indextables.spark import register as run

    layer: int = run(spark)
    return layer


def read(
    spark: Any,
    path: Path,
    *,
    where: Any = None,
    columns: Sequence[str] | None = None,
    version: int | None = None,
    timestamp: Any = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """The table at ``path`` as a Spark DataFrame."""
    from indextables.spark import read as run

    return run(
        spark,
        _text(path),
        where=where,
        columns=columns,
        version=version,
        timestamp=timestamp,
        options=options or {},
    )


def sql(spark: Any, text: str, **options: Any) -> Any:
    """Run a command or query: a DataFrame, or an Arrow table when ``spark`` is ``None``."""
    from indextables.sql import run

    return run(spark, text, **options)
