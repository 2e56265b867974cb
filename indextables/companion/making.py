"""Making a companion: what is decided once, when it is made, and the sync that follows.

The columns and how they are indexed are fixed by the first call; the same call again only syncs,
and one that asks for something else is refused, since splits that exist would not follow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from indextables.companion.columns import readable, table_schema
from indextables.companion.facts import CompanionFacts, is_companion
from indextables.companion.opening import open_source, source_options
from indextables.companion.syncing import Runner, SyncResult, sync
from indextables.config import Config
from indextables.errors import ConfigError, SchemaMismatchError, TableNotFoundError
from indextables.log.actions import Metadata
from indextables.log.log import TransactionLog, new_metadata
from indextables.log.read.snapshot import TABLE_MAPPING
from indextables.mapping import DocMapping, IndexingOptions
from indextables.naming import stored_mapping
from indextables.sources.base import SourceSnapshot


def make(
    source: str,
    at: str,
    *,
    format: str | None = None,
    roots: Mapping[str, str] | None = None,
    indexing: IndexingOptions,
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    storage_options: Mapping[str, Any] | None = None,
    config: Config | None = None,
    run: Runner | None = None,
) -> tuple[TransactionLog, SyncResult]:
    """Make the companion at ``at`` if there is none, and bring it up to its source."""
    settings = config or Config()
    given = source_options(settings, storage_options or {})
    asked = CompanionFacts(format or "", source, roots=roots or {})
    table = open_source(asked, given)
    facts = replace(asked, format=table.format, location=table.location)
    log = _opened(at, storage_options, settings)
    if log is None:
        wanted = None if columns is None else list(columns)
        metadata = _first(facts, table.snapshot(), indexing, wanted, list(exclude))
        log = TransactionLog.begin(at, metadata, storage_options=storage_options, config=settings)
    else:
        _check_same(log, facts)
    return log, sync(log, run=run)


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


def _first(
    facts: CompanionFacts,
    source: SourceSnapshot,
    indexing: IndexingOptions,
    columns: list[str] | None,
    exclude: list[str],
) -> Metadata:
    """The metadata of a new companion."""
    kept, others = readable(source.columns)
    refused = {n: why for n, why in others.items() if n.lower() not in _lower(exclude)}
    if refused:
        name, why = next(iter(refused.items()))
        raise SchemaMismatchError(
            f"column '{name}' cannot be read: {why}",
            path=facts.location,
            hint=f"Leave it out: exclude=['{name}']",
        )
    schema = table_schema(kept)
    mapping = DocMapping.for_schema(schema, options=_indexing(indexing, schema, columns, exclude))
    stored = stored_mapping(mapping, schema)
    configuration = {**facts.configuration(), TABLE_MAPPING: stored.to_json()}
    return new_metadata(schema, (), configuration, None, None)


def _indexing(
    given: IndexingOptions, schema: Any, columns: list[str] | None, exclude: list[str]
) -> IndexingOptions:
    left = _lower(exclude)
    if columns is not None:
        asked = {*_lower(columns), *_lower(given.named_columns())}
        left |= {n.lower() for n in schema.names} - asked
    named = tuple(n for n in schema.names if n.lower() in left)
    return replace(given, unindexed=tuple(dict.fromkeys((*given.unindexed, *named))))


def _lower(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}
