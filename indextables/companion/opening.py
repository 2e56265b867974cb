"""Opening the source of a companion: which format it is, and how it is reached.

The format is found out from what lies at the location: a log of Delta, metadata of Iceberg, else
files of Parquet. Credentials and other options of the source come from the settings under
``companion.source.``; without any, the source is reached as the companion itself is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from indextables.companion.facts import CompanionFacts
from indextables.config import Config
from indextables.errors import ConfigError
from indextables.sources.base import SourceTable
from indextables.sources.parquet import open_parquet
from indextables.sources.roots import Roots

SOURCE_OPTIONS = "companion.source."
FORMATS = ("delta", "iceberg", "parquet")


def open_source(facts: CompanionFacts, options: Mapping[str, Any]) -> SourceTable:
    """The table that a companion indexes."""
    given = dict(options)
    if facts.roots:
        given["roots"] = list(facts.roots.values())
    return _opener(facts.format)(facts.location, given)


def _opener(format: str) -> Callable[[str, Mapping[str, Any]], SourceTable]:
    if format == "parquet":
        return open_parquet
    raise ConfigError(
        f"a source has the format {', '.join(FORMATS)}, not {format!r}",
        hint="Leave the format out to have it found out",
    )


def recognised(location: str, format: str | None, options: Mapping[str, Any]) -> str:
    """The format of what is at a location."""
    if format is not None:
        return format.strip().lower()
    if any(letter in location for letter in "*?["):
        return "parquet"
    store = Roots.of(location, options).store
    if any(True for _ in store.list("_delta_log/", recursive=False)):
        return "delta"
    named = (info.path for info in store.list("metadata/", recursive=False))
    return "iceberg" if any(path.endswith(".metadata.json") for path in named) else "parquet"


def source_options(config: Config, own: Mapping[str, Any]) -> dict[str, Any]:
    """How the source is reached: as the settings say, else as the companion itself is."""
    given = dict(config.family(SOURCE_OPTIONS))
    return given or dict(own)
