"""Making a companion: what is decided once, when it is made, and the sync that follows.

The columns and how they are indexed are fixed by the first call; the same call again only syncs,
and one that asks for something else is refused, since splits that exist would not follow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from indextables.companion.columns import readable, table_schema
from indextables.companion.facts import CompanionFacts, is_companion, mapping_text
from indextables.companion.opening import open_source, source_options
from indextables.companion.syncing import Runner, SyncResult, sync
from indextables.config import Config
from indextables.errors import ConfigError, SchemaMismatchError, TableNotFoundError
from indextables.log.actions import Metadata
from indextables.log.log import TransactionLog, new_metadata
from indextables.log.read.snapshot import TABLE_MAPPING
from indextables.mapping import DocMapping, IndexingOptions
from indextables.naming import stored_mapping
from indextables.sources.base import SourceSnapshot, SourceTable


@dataclass(frozen=True)
class Asked:
    """What a companion is made of."""

    source: str = ""
    format: str | None = None
    roots: Mapping[str, str] = field(default_factory=dict)
    indexing: IndexingOptions = field(default_factory=IndexingOptions)
    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    version: int | None = None
    """The version of the source to index; the newest without."""
    target_bytes: int | None = None

    @property
    def says_how(self) -> bool:
        """Does it say which columns are indexed, or how?"""
        given = self.columns is not None or bool(self.exclude)
        return given or self.indexing != IndexingOptions()

    @property
    def facts(self) -> CompanionFacts:
        return CompanionFacts(self.format or "", self.source, roots=self.roots)

    def opened(self, config: Config, own: Mapping[str, Any]) -> SourceTable:
        """The source; ``own`` are the options of the companion."""
        return open_source(self.facts, source_options(config, own))


def make(
    at: str,
    asked: Asked,
    *,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
    run: Runner | None = None,
) -> tuple[TransactionLog, SyncResult]:
    """Make the companion at ``at`` if there is none, and bring it up to its source."""
    settings = config or Config()
    log = _opened(at, storage_options, settings)
    if log is not None:
        log.writable_snapshot()
    table = asked.opened(settings, storage_options or {})
    facts = replace(asked.facts, format=table.format, location=table.location)
    snapshot = None if log is not None and asked.version is None else table.snapshot(asked.version)
    if log is None:
        assert snapshot is not None
        metadata = _first(facts, snapshot, asked)
        log = TransactionLog.begin(at, metadata, storage_options=storage_options, config=settings)
    else:
        _check_same(log, facts)
        if asked.says_how:
            _check_indexing(log, snapshot or table.snapshot(), asked)
    return log, sync(log, source=snapshot, run=run, target_bytes=asked.target_bytes)


def _opened(
    at: str, storage_options: Mapping[str, Any] | None, config: Config
) -> TransactionLog | None:
    try:
        return TransactionLog.open(at, storage_options=storage_options, config=config)
    except TableNotFoundError:
        return None


def _check_same(log: TransactionLog, facts: CompanionFacts) -> None:
    configuration = log.snapshot().metadata.configuration
    if not is_companion(configuration):
        raise ConfigError(
            f"the table at {log.path} is no companion", hint="Choose another path for the companion"
        )
    known = CompanionFacts.of(configuration, log.path)
    if (known.format, known.location) != (facts.format, facts.location):
        raise ConfigError(
            f"the companion at {log.path} indexes {known.format} {known.location}, "
            f"not {facts.format} {facts.location}",
            hint="Choose another path for the companion",
        )


def _check_indexing(log: TransactionLog, source: SourceSnapshot, asked: Asked) -> None:
    """Refuse to index columns in another way than the splits that exist."""
    known = DocMapping.from_json(mapping_text(log.snapshot().metadata.configuration) or "[]")
    kept, _ = readable(source.columns)
    schema = table_schema(kept)
    wanted = stored_mapping(DocMapping.for_schema(schema, options=_indexing(asked, schema)), schema)
    names = {column.identity: column.name for column in kept}
    for field_ in wanted.fields:
        held = known.get(field_.name)
        if held is not None and held != field_:
            raise ConfigError(
                f"the companion at {log.path} indexes column '{names[field_.name]}' in another way",
                hint="Leave the columns out of the call to sync, or choose another path",
            )


def _first(facts: CompanionFacts, source: SourceSnapshot, asked: Asked) -> Metadata:
    """The metadata of a new companion."""
    kept, others = readable(source.columns)
    refused = {n: why for n, why in others.items() if n.lower() not in _lower(asked.exclude)}
    if refused:
        name, why = next(iter(refused.items()))
        raise SchemaMismatchError(
            f"column '{name}' cannot be read: {why}",
            path=facts.location,
            hint=f"Leave it out: exclude=['{name}']",
        )
    schema = table_schema(kept)
    mapping = DocMapping.for_schema(schema, options=_indexing(asked, schema))
    stored = stored_mapping(mapping, schema)
    configuration = {**facts.configuration(), TABLE_MAPPING: stored.to_json()}
    return new_metadata(schema, (), configuration, None, None)


def _indexing(asked: Asked, schema: pa.Schema) -> IndexingOptions:
    given = asked.indexing
    left = _lower(asked.exclude)
    if asked.columns is not None:
        kept = {*_lower(asked.columns), *_lower(given.named_columns())}
        left |= {n.lower() for n in schema.names} - kept
    named = tuple(n for n in schema.names if n.lower() in left)
    return replace(given, unindexed=tuple(dict.fromkeys((*given.unindexed, *named))))


def _lower(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}
