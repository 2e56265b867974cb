"""Iceberg tables, through the ``pyiceberg`` library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indextables.errors import MissingLibraryError
from indextables.sources.base import SourceTable


def open_iceberg(location: str, options: Mapping[str, Any] | None = None) -> SourceTable:
    """The Iceberg table at a location."""
    raise MissingLibraryError.of("pyiceberg", "iceberg")
