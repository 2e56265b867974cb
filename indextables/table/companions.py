"""``indextables.index``: a companion as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from indextables.companion.commands import on_spark
from indextables.companion.making import Asked, make
from indextables.companion.opening import SOURCE_OPTIONS
from indextables.companion.reading import read_snapshot
from indextables.config import Config
from indextables.table.table import Table
from indextables.table.write_options import indexing_options


def index_source(
    source: str,
    at: str,
    *,
    format: str | None,
    indexing: Mapping[str, Any],
    columns: Iterable[str] | None,
    exclude: Iterable[str],
    roots: Mapping[str, str] | None,
    storage_options: Mapping[str, Any] | None,
    source_options: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    spark: Any,
) -> Table:
    """Make or sync the companion at ``at``; the companion as it is then."""
    reach = {SOURCE_OPTIONS + key: value for key, value in (source_options or {}).items()}
    config = Config.of({**(options or {}), **reach})
    asked = Asked(
        source,
        format,
        roots or {},
        indexing_options(config, **indexing),
        None if columns is None else list(columns),
        tuple(exclude),
    )
    log, _ = make(at, asked, storage_options=storage_options, config=config, run=on_spark(spark))
    return Table(log, read_snapshot(log))
