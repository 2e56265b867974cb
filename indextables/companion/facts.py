"""What the log of a companion says about its source: the table's configuration.

The keys that JVM IndexTables has are spelt as it spells them. Options to reach the source, among
them credentials, are never written: they come with each opening of the companion, under
``companion.source.`` in the settings, or are those of the companion itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from indextables.errors import CorruptFileError
from indextables.log.actions.protocol import COMPANION_ENABLED
from indextables.log.read.snapshot import TABLE_MAPPING
from indextables.types import schema_from_json, schema_to_json

PREFIX = "indextables.companion."
FORMAT = PREFIX + "sourceFormat"
LOCATION = PREFIX + "sourceTablePath"
MODES = PREFIX + "indexingModes"
FAST_FIELDS = PREFIX + "fastFieldMode"
SYNCED = PREFIX + "lastSyncedVersion"
ROOTS = PREFIX + "tableRoots"
LEFT_OUT = PREFIX + "excludeColumns"
SCHEMA = PREFIX + "schema."
SCHEMA_TAG = "companionSchema"
FIELDS_TAG = "companionFields"
"""The fields inside of columns, as distinct from later ones of the same name and type."""
DISABLED = "DISABLED"


@dataclass(frozen=True, slots=True)
class CompanionFacts:
    """The source of a companion, and how it is indexed."""

    format: str
    location: str
    modes: Mapping[str, str] = field(default_factory=dict)
    """Columns (by identity) that are not indexed as their type says, and how they are."""
    synced: int | None = None
    roots: Mapping[str, str] = field(default_factory=dict)
    """Folders outside of the source's location that its files may be in, by name."""

    def configuration(self) -> dict[str, str]:
        """As the log has it."""
        found = {
            COMPANION_ENABLED: "true",
            FORMAT: self.format,
            LOCATION: self.location,
            MODES: json.dumps(dict(self.modes), sort_keys=True),
            FAST_FIELDS: DISABLED,
        }
        if self.synced is not None:
            found[SYNCED] = str(self.synced)
        if self.roots:
            found[ROOTS] = json.dumps(dict(self.roots), sort_keys=True)
        return found

    @classmethod
    def of(cls, configuration: Mapping[str, str], path: str) -> CompanionFacts:
        """From a log's configuration."""
        try:
            synced = configuration.get(SYNCED)
            return cls(
                format=configuration[FORMAT],
                location=configuration[LOCATION],
                modes=json.loads(configuration.get(MODES, "{}")),
                synced=None if synced is None else int(synced),
                roots=json.loads(configuration.get(ROOTS, "{}")),
            )
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise CorruptFileError(
                f"the configuration of the companion is malformed: {error!r}",
                path=path,
                hint="Build the companion again",
            ) from None


def is_companion(configuration: Mapping[str, str]) -> bool:
    """Does a log's configuration say that its table is a companion?"""
    return configuration.get(COMPANION_ENABLED, "").strip().lower() == "true"


def schema_digest(schema: pa.Schema) -> str:
    """The name under which the configuration holds the schema of splits."""
    return hashlib.sha256(schema_to_json(schema).encode()).hexdigest()[:16]


def with_schema(configuration: Mapping[str, str], schema: pa.Schema) -> dict[str, str]:
    """The configuration that also holds this schema of splits."""
    return {**configuration, SCHEMA + schema_digest(schema): schema_to_json(schema)}


def split_schema(configuration: Mapping[str, str], tags: Mapping[str, Any] | None) -> Any:
    """The schema of a split, by its tag; ``None`` where that is not known."""
    text = configuration.get(SCHEMA + str((tags or {}).get(SCHEMA_TAG)))
    return None if text is None else schema_from_json(text)


def mapping_text(configuration: Mapping[str, str]) -> str | None:
    """How the columns are indexed."""
    return configuration.get(TABLE_MAPPING)
