"""The state manifest: what a checkpoint's ``_manifest.avro`` or ``_manifest.json`` says.

It lists manifests (files of file entries, shared between states), the tombstones that hide some
of their entries, and the facts a reader needs to start without the versions below: metadata, the
schema registry, and in ``extras`` (ours; others skip it) every other live action.

Manifest paths come in three forms; ``resolve`` makes each relative to the log folder:
``manifests/x.avro`` and ``state-v…/x.avro`` are so already, a bare ``x.avro`` lies beside the
state manifest that names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import CorruptFileError, ProtocolError
from indextables.log.actions import Action, Metadata, Protocol
from indextables.log.actions.fields import integer, text, text_map, texts, wrong_type
from indextables.log.actions.schema_registry import bare_registry
from indextables.log.read.ledger import Ledger, actions_from_json
from indextables.storage.base import safe_path

FORMAT_VERSION = 1
MANIFESTS_DIR = "manifests"
Bounds = Mapping[str, tuple[str | None, str | None]]


@dataclass(frozen=True, slots=True)
class ManifestInfo:
    """One file of entries. ``path`` is relative to the log folder."""

    path: str
    num_entries: int
    min_added_at_version: int = 0
    max_added_at_version: int = 0
    partition_bounds: Bounds | None = None
    tombstone_count: int = 0
    live_entry_count: int = -1

    def to_record(self) -> dict[str, Any]:
        bounds = None
        if self.partition_bounds is not None:
            bounds = {k: {"min": lo, "max": hi} for k, (lo, hi) in self.partition_bounds.items()}
        return {
            "path": self.path,
            "numEntries": self.num_entries,
            "minAddedAtVersion": self.min_added_at_version,
            "maxAddedAtVersion": self.max_added_at_version,
            "partitionBounds": bounds,
            "tombstoneCount": self.tombstone_count,
            "liveEntryCount": self.live_entry_count,
        }

    @classmethod
    def from_record(cls, record: Any, state_dir: str) -> ManifestInfo:
        where = "manifests"
        if not isinstance(record, dict):
            wrong_type(where, "an object", record)
        return cls(
            path=resolve(text(record.get("path"), f"{where}.path"), state_dir),
            num_entries=integer(record.get("numEntries", -1), f"{where}.numEntries"),
            min_added_at_version=integer(record.get("minAddedAtVersion") or 0, where),
            max_added_at_version=integer(record.get("maxAddedAtVersion") or 0, where),
            partition_bounds=_bounds(record.get("partitionBounds")),
            tombstone_count=integer(record.get("tombstoneCount") or 0, where),
            live_entry_count=integer(record.get("liveEntryCount", -1), where),
        )


def _bounds(value: Any) -> Bounds | None:
    if value is None:
        return None
    where = "manifests.partitionBounds"
    if not isinstance(value, dict) or not all(isinstance(v, dict) for v in value.values()):
        wrong_type(where, "an object of bounds", value)
    return {key: (_opt(item.get("min")), _opt(item.get("max"))) for key, item in value.items()}


def _opt(value: Any) -> str | None:
    return None if value is None else text(value, "manifests.partitionBounds")


@dataclass(frozen=True, slots=True)
class StateManifest:
    """A checkpoint's own file, decoded and checked. ``extras`` are live actions besides files."""

    state_version: int
    created_at: int
    num_files: int
    total_bytes: int
    manifests: tuple[ManifestInfo, ...]
    tombstones: tuple[str, ...] = ()
    schema_registry: Mapping[str, str] = field(default_factory=dict)
    protocol_version: int = 4
    metadata: Metadata | None = None
    extras: tuple[Action, ...] = ()
    format_version: int = FORMAT_VERSION
    fingerprint: str = ""

    @property
    def is_ours(self) -> bool:
        """Did this program write it? Only ours carry the protocol among their extras."""
        return any(isinstance(action, Protocol) for action in self.extras)

    def applied_to(self, ledger: Ledger) -> Ledger:
        """The ledger with what this state knows; ``ledger`` holds what older files said."""
        heads: list[Action] = [] if self.metadata is None else [self.metadata]
        known = {**ledger.registry, **self.schema_registry}
        seeded = Ledger(ledger.protocol, ledger.metadata, known)
        return seeded.applied([*heads, *self.extras])

    def to_record(self, extras: str | None) -> dict[str, Any]:
        metadata = None
        if self.metadata is not None:
            metadata = json.dumps(self.metadata.envelope(), ensure_ascii=False)
        return {
            "formatVersion": self.format_version,
            "stateVersion": self.state_version,
            "createdAt": self.created_at,
            "numFiles": self.num_files,
            "totalBytes": self.total_bytes,
            "manifests": [info.to_record() for info in self.manifests],
            "tombstones": list(self.tombstones),
            "schemaRegistry": dict(self.schema_registry),
            "protocolVersion": self.protocol_version,
            "metadata": metadata,
            "extras": extras,
        }

    @classmethod
    def from_record(cls, record: Any, state_dir: str, fingerprint: str = "") -> StateManifest:
        """Check a decoded record; anything missing that matters is ``CorruptFileError``."""
        if not isinstance(record, dict):
            wrong_type("state", "an object", record)
        version = integer(record.get("formatVersion", FORMAT_VERSION), "formatVersion")
        if version > FORMAT_VERSION:
            raise ProtocolError(
                f"the state has format {version}; this release reads up to {FORMAT_VERSION}",
                hint="Upgrade indextables to read this table",
            )
        listed = record.get("manifests")
        if not isinstance(listed, list):
            wrong_type("manifests", "an array", listed)
        extras = record.get("extras")
        return cls(
            state_version=integer(record.get("stateVersion"), "stateVersion"),
            created_at=integer(record.get("createdAt") or 0, "createdAt"),
            num_files=integer(record.get("numFiles") or 0, "numFiles"),
            total_bytes=integer(record.get("totalBytes") or 0, "totalBytes"),
            manifests=tuple(ManifestInfo.from_record(item, state_dir) for item in listed),
            tombstones=texts(record.get("tombstones") or [], "tombstones"),
            schema_registry=_registry(record.get("schemaRegistry")),
            protocol_version=integer(record.get("protocolVersion") or 4, "protocolVersion"),
            metadata=_metadata(record.get("metadata")),
            extras=tuple(actions_from_json(None if extras is None else text(extras, "extras"))),
            format_version=version,
            fingerprint=fingerprint,
        )


def _registry(value: Any) -> dict[str, str]:
    return bare_registry(text_map(value or {}, "schemaRegistry"))


def _metadata(value: Any) -> Metadata | None:
    """Metadata as JSON text or object, wrapped in its action or bare; ``null`` is none."""
    if value is None or value == "":
        return None
    try:
        body = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"the state's metadata is not JSON: {error}") from None
    if body is None:
        return None
    if isinstance(body, dict) and "metaData" in body:
        body = body["metaData"]
    return None if body is None else Metadata.from_dict(body)


def resolve(path: str, state_dir: str) -> str:
    """A manifest's path relative to the log folder; ``state_dir`` is the bare folder name."""
    if not path.startswith((f"{MANIFESTS_DIR}/", "state-v")):
        path = f"{state_dir}/{path}"
    return safe_path(path)
