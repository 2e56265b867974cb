"""Which format a source has, and one way to open it.

A Delta table has a ``_delta_log``, an Iceberg table a ``metadata`` folder with ``*.metadata.json``
(or the location is such a file, or the options name a catalog), and everything else that holds
Parquet files is a folder of them. Delta is asked first: a Delta table with Iceberg
metadata beside its log (UniForm) is a Delta table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from indextables.errors import ConfigError, TableNotFoundError, did_you_mean
from indextables.sources.base import SourceTable
from indextables.sources.delta import open_delta
from indextables.sources.delta_log import LOG
from indextables.sources.parquet import open_parquet
from indextables.sources.roots import Roots, split_options

FORMATS = ("delta", "iceberg", "parquet")
METADATA_FILE = re.compile(r"\.metadata\.json$|\.gz\.metadata\.json$|\.metadata\.json\.gz$")
_MAGIC = re.compile(r"[*?\[]")


def open_source(
    location: str | Sequence[str],
    format: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> SourceTable:
    """The table of another format at a location.

    ``options`` are those of its storage, and ``roots``, ``relocate`` (see ``roots``), ``catalog``
    and ``table`` (Iceberg), ``partition_types`` (Parquet).
    """
    chosen = recognise(location, options) if format is None else format.lower()
    if chosen not in FORMATS:
        raise ConfigError(f"no source format '{format}'", hint=did_you_mean(chosen, FORMATS))
    if chosen == "parquet":
        return open_parquet(location, options)
    if not isinstance(location, str):
        raise ConfigError(f"a source of the format {chosen} is one location, not a list")
    if chosen == "delta":
        return open_delta(location, options)
    from indextables.sources.iceberg import open_iceberg

    return open_iceberg(location, options)


def recognise(location: str | Sequence[str], options: Mapping[str, Any] | None = None) -> str:
    """The format of the table at a location."""
    if not isinstance(location, str) or _MAGIC.search(location):
        return "parquet"
    if split_options(options)[0].get("catalog") or METADATA_FILE.search(location):
        return "iceberg"
    if location.lower().endswith(".parquet"):
        return "parquet"
    store = Roots.of(location, options).store
    if next(iter(store.list(LOG)), None) is not None:
        return "delta"
    if any(METADATA_FILE.search(info.path) for info in store.list("metadata")):
        return "iceberg"
    if next(iter(store.list(recursive=True)), None) is None:
        raise TableNotFoundError(
            "there is no Delta, Iceberg or Parquet table",
            path=location,
            hint="Name the folder of the table, a glob of Parquet files, or a metadata file",
        )
    return "parquet"
