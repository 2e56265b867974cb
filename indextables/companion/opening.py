"""Opening the source of a companion, with the options that reach it.

Credentials and other options of the source come from the settings under ``companion.source.``;
without any, the source is reached as the companion itself is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indextables.companion.facts import CompanionFacts
from indextables.config import Config
from indextables.sources import recognise
from indextables.sources.base import SourceTable

SOURCE_OPTIONS = "companion.source."


def open_source(facts: CompanionFacts, options: Mapping[str, Any]) -> SourceTable:
    """The table that a companion indexes; an empty format is found out."""
    given = dict(options)
    if facts.roots:
        given["roots"] = list(facts.roots.values())
    return recognise.open_source(facts.location, facts.format or None, given)


def source_options(config: Config, own: Mapping[str, Any]) -> dict[str, Any]:
    """How the source is reached: as the settings say, else as the companion itself is."""
    given = dict(config.family(SOURCE_OPTIONS))
    return given or dict(own)
