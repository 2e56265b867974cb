"""Who may read and write a table: protocol versions 1 to 4 and named features.

* Version 1: adds, removes, metadata. Version 2: footer offsets, split metadata, skips.
  Version 3: multi-part checkpoints, schema deduplication, feature names. Version 4: Avro state.
* A program refuses a table whose minimum version is above its own, or that names a feature it
  does not know; the refusal says which, and to upgrade. It never guesses.
* A feature used for the first time raises the table's protocol in the same commit
  (``protocol.autoUpgrade``); with that off, the commit is refused. A protocol is never lowered.
* Cross-references, deletion vectors, renamed or dropped columns (``columnMapping``) and rows that
  are in another table (``companion``) are named features of version 3 and stay so in version 4.
  Once a table names a feature it names all that its version implies, so that the list is complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from indextables.errors import ConfigError, ProtocolError
from indextables.log.actions import (
    Action,
    AddFile,
    AddXRef,
    Metadata,
    Protocol,
    RemoveXRef,
    SkipFile,
)
from indextables.naming import RETIRED_NAMES, STORED_NAME

CURRENT_VERSION = 4
FIRST_WITH_FEATURES = 3


@dataclass(frozen=True, slots=True)
class Feature:
    """Something a table can use; ``named`` ones are listed in the protocol action."""

    name: str
    version: int
    named: bool = False


SKIPPED_FILES = Feature("skippedFiles", 2)
EXTENDED_METADATA = Feature("extendedMetadata", 2)
FOOTER_OFFSETS = Feature("footerOffsets", 2)
MULTI_PART_CHECKPOINT = Feature("multiPartCheckpoint", 3)
SCHEMA_DEDUPLICATION = Feature("schemaDeduplication", 3)
AVRO_STATE = Feature("avroState", 4)
CROSS_REFERENCES = Feature("crossReferenceIndex", 3, named=True)
DELETION_VECTORS = Feature("deletionVectors", 3, named=True)
COLUMN_MAPPING = Feature("columnMapping", 3, named=True)
COMPANION = Feature("companion", 3, named=True)
COMPANION_ENABLED = "indextables.companion.enabled"
"""In the configuration of a table whose rows are in another."""

FEATURES = (
    SKIPPED_FILES,
    EXTENDED_METADATA,
    FOOTER_OFFSETS,
    MULTI_PART_CHECKPOINT,
    SCHEMA_DEDUPLICATION,
    AVRO_STATE,
    CROSS_REFERENCES,
    DELETION_VECTORS,
    COLUMN_MAPPING,
    COMPANION,
)
READER_FEATURES = frozenset(feature.name for feature in FEATURES) | {"tantivy4java"}
WRITER_FEATURES = READER_FEATURES | {
    "checkpoint",
    "checkpoints",
    "conditionalWrites",
    "optimizeWrite",
}


def protocol_of(version: int, metadata: Metadata | None = None) -> Protocol:
    """The protocol of a new table, with what its metadata uses."""
    if not 1 <= version <= CURRENT_VERSION:
        raise ConfigError(
            f"protocol version {version} does not exist",
            hint=f"Use a version from 1 to {CURRENT_VERSION}",
        )
    used = features_of([] if metadata is None else [metadata])
    return upgraded(Protocol(version, version), used)


def check_readable(protocol: Protocol, path: str) -> None:
    """Refuse a table that this release cannot read."""
    _check_version("read", protocol.min_reader_version, path)
    _check_features("read", protocol.reader_features, READER_FEATURES, path)


def check_writable(protocol: Protocol, path: str) -> None:
    """Refuse a table that this release cannot write."""
    _check_version("write", protocol.min_writer_version, path)
    _check_features("write", protocol.writer_features, WRITER_FEATURES, path)


def _check_version(verb: str, needed: int, path: str) -> None:
    if needed > CURRENT_VERSION:
        raise ProtocolError(
            f"the table needs protocol version {needed} to {verb} it, "
            f"this release knows versions up to {CURRENT_VERSION}",
            path=path,
            hint="Upgrade indextables to a release that knows this version "
            "(pip install -U indextables)",
        )


def _check_features(
    verb: str, needed: frozenset[str] | None, known: frozenset[str], path: str
) -> None:
    unknown = sorted((needed or frozenset()) - known)
    if unknown:
        raise ProtocolError(
            f"the table needs features this release cannot {verb}: {', '.join(unknown)}",
            path=path,
            hint="Upgrade indextables to a release that knows them (pip install -U indextables)",
        )


def supports(protocol: Protocol, feature: Feature) -> bool:
    """Does the table's protocol already allow the feature?"""
    if min(protocol.min_reader_version, protocol.min_writer_version) < feature.version:
        return False
    named = (protocol.reader_features or frozenset()) & (protocol.writer_features or frozenset())
    return not feature.named or feature.name in named


def features_of(actions: Iterable[Action]) -> set[Feature]:
    """What the actions of a commit use beyond version 1."""
    used: set[Feature] = set()
    for action in actions:
        if isinstance(action, AddFile):
            used |= _features_of_add(action)
        elif isinstance(action, SkipFile):
            used.add(SKIPPED_FILES)
        elif isinstance(action, AddXRef | RemoveXRef):
            used.add(CROSS_REFERENCES)
        elif isinstance(action, Metadata):
            used |= _features_of_metadata(action)
    return used


def _features_of_metadata(metadata: Metadata) -> set[Feature]:
    mapped = RETIRED_NAMES in metadata.configuration or STORED_NAME in metadata.schema_string
    used = {COLUMN_MAPPING} if mapped else set()
    return used | {COMPANION} if is_companion(metadata) else used


def is_companion(metadata: Metadata) -> bool:
    """Are the rows of the table in another?"""
    return metadata.configuration.get(COMPANION_ENABLED, "").strip().lower() == "true"


def _features_of_add(add: AddFile) -> set[Feature]:
    used: set[Feature] = set()
    if add.has_footer_offsets:
        used.add(FOOTER_OFFSETS)
    if add.split_tags is not None or add.num_merge_ops is not None:
        used.add(EXTENDED_METADATA)
    if add.doc_mapping_ref is not None:
        used.add(SCHEMA_DEDUPLICATION)
    if add.deletion_vector is not None:
        used.add(DELETION_VECTORS)
    return used


def upgraded(protocol: Protocol, features: Iterable[Feature]) -> Protocol:
    """The lowest protocol, at or above the given one, that allows the features."""
    missing = [feature for feature in features if not supports(protocol, feature)]
    if not missing:
        return protocol
    floor = max(feature.version for feature in missing)
    named = {feature.name for feature in missing if feature.named}
    return raised(protocol, floor, floor, named)


def raised(
    protocol: Protocol, reader_version: int, writer_version: int, named: Iterable[str] = ()
) -> Protocol:
    """The protocol with higher minima and more names; nothing is ever lowered or dropped."""
    reader = max(protocol.min_reader_version, reader_version)
    writer = max(protocol.min_writer_version, writer_version)
    readers, writers = protocol.reader_features, protocol.writer_features
    if named or readers is not None or writers is not None:
        unnamed = (f for f in FEATURES if not f.named)
        implied = {f.name for f in unnamed if FIRST_WITH_FEATURES <= f.version <= reader}
        names = implied | set(named)
        readers = (readers or frozenset()) | names
        writers = (writers or frozenset()) | names
    return replace(
        protocol,
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=readers,
        writer_features=writers,
    )


def refuse_upgrade(missing: Iterable[Feature], path: str) -> ProtocolError:
    """What a commit gets that needs more than the table allows, when upgrades are off."""
    names = ", ".join(sorted(feature.name for feature in missing))
    return ProtocolError(
        f"the table's protocol does not allow {names}",
        path=path,
        hint="Call upgrade_protocol(), or set spark.indextables.protocol.autoUpgrade=true",
    )
