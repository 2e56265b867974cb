"""Opening a source, and the rows of one of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indextables.companion.facts import CompanionFacts
from indextables.config import Config
from indextables.sources.base import SourceColumn, SourceFile, SourceSnapshot, SourceTable

SOURCE_OPTIONS = "companion.source."


def open_source(facts: CompanionFacts, options: Mapping[str, Any]) -> SourceTable:
    """The table that a companion indexes."""
    from indextables.companion.plain import PlainTable

    return PlainTable(facts.location)


def file_rows(snapshot: SourceSnapshot, file: SourceFile, columns: Sequence[SourceColumn]) -> Any:
    """``scan`` and ``take`` over the rows of one file."""
    from indextables.companion.plain import PlainRows

    return PlainRows(file, columns)


def source_options(config: Config, own: Mapping[str, Any]) -> dict[str, Any]:
    """How the source is reached: as the settings say, else as the companion itself is."""
    given = dict(config.family(SOURCE_OPTIONS))
    return given or dict(own)


def recognised(source: str, format: str | None) -> tuple[str, str]:
    """The format of a source, and its location as it is written down."""
    import os

    location = source if "://" in source else os.path.abspath(source)
    return format or "parquet", location.rstrip("/")
