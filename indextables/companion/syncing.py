"""Bringing a companion up to its source: new files are indexed, files that are gone are dropped.

Nothing else is touched. The list of files comes from one snapshot of the source; what is covered
already is decided by path, size and token. Each job is a commit of its own, so a sync that was
stopped continues where it was. On every attempt to commit, splits of which a file is covered by
then are left out: of two that index the same file at the same time one wins, and no file is in two
splits.

A file that the source gave up leaves its split by a deletion vector; a split without a file, or one
whose columns changed so that it cannot be used (``columns``), is removed once its files are covered
by others. Readers need neither: they ask the source (``reading``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from indextables.companion.building import Built, Job, build
from indextables.companion.columns import fits, inner_identity, readable, table_schema
from indextables.companion.facts import (
    FIELDS_TAG,
    SYNCED,
    CompanionFacts,
    mapping_text,
    split_schema,
    with_schema,
)
from indextables.companion.files import IndexedFile, Key, files_of
from indextables.companion.origin import without_files
from indextables.companion.reading import source_of
from indextables.errors import CorruptFileError, IndexTablesError
from indextables.log.actions import Action, AddFile, Metadata
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.log.vectors.stored import store_vectors
from indextables.mapping import DocMapping
from indextables.naming import stored_schema
from indextables.progress import progress
from indextables.sources.base import SourceColumn, SourceFile, SourceSnapshot
from indextables.storage import pool
from indextables.storage.deleting import UNCOMMITTED, Kind, delete
from indextables.types import schema_to_json

OPERATION = "COMPANION"
TARGET_BYTES = 256 << 20
LEAST_BYTES = 16 << 20
MOST_ROWS = 4_000_000
Runner = Callable[[Sequence[Job]], Iterator[Built]]


@dataclass
class SyncResult:
    """What a sync did."""

    source_version: int
    splits_created: int = 0
    splits_invalidated: int = 0
    files_indexed: int = 0
    files_dropped: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    duration_ms: int = 0
    too_large: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SyncPlan:
    """What is to be done."""

    raw: Snapshot
    source: SourceSnapshot
    columns: tuple[SourceColumn, ...]
    missing: tuple[SourceFile, ...]
    """Files that no split covers."""
    dropped: dict[str, list[int]]
    """Numbers of the files that left their split, by its path, where others stay."""
    unneeded: tuple[AddFile, ...]
    """Splits without a file of the source."""
    unfit: tuple[AddFile, ...]
    """Splits that cannot be used any more; their files are missing too."""


def plan_sync(log: TransactionLog, source: SourceSnapshot | None = None) -> SyncPlan:
    """Compare the splits of a companion with its source."""
    raw = log.snapshot()
    found = source_of(log, raw) if source is None else source
    columns, _ = readable(found.columns)
    missing = {f.key: f for f in found.files()}
    dropped: dict[str, list[int]] = {}
    unneeded: list[AddFile] = []
    unfit: list[AddFile] = []
    for add in raw.files():
        listed = _listed(add)
        schema = split_schema(raw.metadata.configuration, add.tags)
        if listed is None or schema is None or not _is_fit(add, schema, found, columns):
            unfit.append(add)
            continue
        held = [missing.pop(f.key(found.location), None) for f in listed]
        gone = [number for number, file in enumerate(held) if file is None]
        if len(gone) == len(held):
            unneeded.append(add)
        elif gone:
            dropped[add.path] = gone
    return SyncPlan(
        raw, found, tuple(columns), tuple(missing.values()), dropped, tuple(unneeded), tuple(unfit)
    )


def _is_fit(
    add: AddFile, schema: Any, source: SourceSnapshot, columns: Sequence[SourceColumn]
) -> bool:
    inner = inner_identity(source.columns, schema.names)
    return fits(schema, columns) and inner == (add.tags or {}).get(FIELDS_TAG, "")


def _listed(add: AddFile) -> list[IndexedFile] | None:
    try:
        return files_of(add)
    except CorruptFileError:
        return None


@mutates("SYNC COMPANION")
def sync(
    log: TransactionLog,
    *,
    source: SourceSnapshot | None = None,
    run: Runner | None = None,
    target_bytes: int | None = None,
) -> SyncResult:
    """Index what is missing and drop what is gone."""
    start = time.monotonic()
    plan = plan_sync(log, source)
    result = SyncResult(plan.source.version)
    _drop(log, plan, result)
    _describe(log, plan)
    jobs = list(_jobs(log, plan, target_bytes))
    with progress(f"index {plan.source.location}", sum(len(j.files) for j in jobs)) as bar:
        for built in (run or in_threads)(jobs):
            _commit(log, plan, built, result)
            bar.advance(built.files)
    _finish(log, plan, result)
    result.duration_ms = int(1000 * (time.monotonic() - start))
    return result


def in_threads(jobs: Sequence[Job]) -> Iterator[Built]:
    """The jobs side by side in this process."""
    return pool.in_order(build, jobs, parallelism())


# -- jobs -----------------------------------------------------------------------------------------


def _jobs(log: TransactionLog, plan: SyncPlan, target_bytes: int | None) -> Iterator[Job]:
    schema = stored_schema(table_schema(plan.columns))
    mapping = _mapping(plan)
    indexes = {c: d.id for c, d in plan.raw.indexes.definitions.items() if c in schema.names}
    source = without_files(plan.source)
    for files in grouped(plan.missing, parallelism(), target_bytes):
        yield Job(
            source,
            files,
            schema,
            mapping,
            log.config,
            log.path,
            dict(log.store.options),
            indexes,
        )


def parallelism() -> int:
    """Cores of this machine."""
    return os.cpu_count() or 1


def _mapping(plan: SyncPlan) -> str:
    """How columns are indexed: as the table says, new columns as their type implies."""
    text = mapping_text(plan.raw.metadata.configuration)
    known = DocMapping.from_json(text or "[]")
    schema = stored_schema(table_schema(plan.columns))
    fresh = DocMapping.for_schema(schema)
    return DocMapping(tuple(known.get(f.name) or f for f in fresh.fields)).to_json()


def grouped(
    files: Iterable[SourceFile], at_once: int, target_bytes: int | None = None
) -> Iterator[tuple[SourceFile, ...]]:
    """Files that become a split together: of one partition first, neighbours in the listing."""
    ordered = sorted(files, key=lambda f: repr(sorted(f.partition.items())))
    total = sum(f.size for f in ordered)
    target = max(LEAST_BYTES, min(TARGET_BYTES, -(-total // max(1, at_once))))
    target = target if target_bytes is None else target_bytes
    group: list[SourceFile] = []
    size = rows = 0
    for file in ordered:
        if group and (size + file.size > target or rows + (file.rows or 0) > MOST_ROWS):
            yield tuple(group)
            group, size, rows = [], 0, 0
        group.append(file)
        size += file.size
        rows += file.rows or 0
    if group:
        yield tuple(group)


# -- commits --------------------------------------------------------------------------------------


def _commit(log: TransactionLog, plan: SyncPlan, built: Built, result: SyncResult) -> None:
    """Add the splits of a job, but for those of which a file is covered by now."""
    kept: list[AddFile] = []

    def actions(newest: Snapshot) -> list[Action]:
        landed = [add for add in built.adds if newest.index_of(add.path) is not None]
        if landed:
            kept[:] = landed
            return []
        taken = covered(newest, plan)
        kept[:] = [add for add in built.adds if not taken & _keys(add, plan)]
        return list(kept)

    if built.adds:
        _run(log, actions)
    lost = [add.path for add in built.adds if add not in kept]
    if lost:
        delete(log.store, Kind.SPLIT, lost, UNCOMMITTED)
    result.splits_created += len(kept)
    result.files_indexed += sum(len(add.companion_source_files or ()) for add in kept)
    result.bytes_read += built.read_bytes
    result.bytes_written += sum(add.size for add in kept)
    result.too_large += built.too_large


def _keys(add: AddFile, plan: SyncPlan) -> set[Key]:
    return {f.key(plan.source.location) for f in _listed(add) or ()}


def covered(snapshot: Snapshot, plan: SyncPlan) -> set[Key]:
    """The files that splits of a snapshot cover so that they can be used."""
    unfit = {add.path for add in plan.unfit}
    return {key for add in snapshot.files() if add.path not in unfit for key in _keys(add, plan)}


def _run(log: TransactionLog, actions: Callable[[Snapshot], list[Action]]) -> None:
    """Commit what is left to be done on the newest snapshot, if anything is."""
    log.commit(Transaction(None, OPERATION, actions=actions))


def _drop(log: TransactionLog, plan: SyncPlan, result: SyncResult) -> None:
    """Splits without a file go; of others, the rows of files that are gone."""
    if not plan.unneeded and not plan.dropped:
        return
    unneeded = {add.path for add in plan.unneeded}
    now = int(time.time() * 1000)

    def actions(newest: Snapshot) -> list[Action]:
        found: list[Action] = []
        rows: dict[str, Any] = {}
        narrowed: dict[str, AddFile] = {}
        for add in newest.files():
            if add.path in unneeded:
                found.append(add.removal(now, data_change=False))
            elif add.path in plan.dropped:
                gone = _rows_of_files(add, plan.dropped[add.path])
                if add.num_deleted != len(gone):
                    rows[add.path], narrowed[add.path] = gone, add
        inline = log.config["deletionVector.maxInlineBytes"]
        for path, vector in store_vectors(log.store, rows, inline).items():
            add = narrowed[path]
            found.append(replace(add, deletion_vector=vector, data_change=False))
        return found

    _run(log, actions)
    result.splits_invalidated += len(unneeded)
    result.files_dropped += sum(map(len, plan.dropped.values()))
    result.files_dropped += sum(len(a.companion_source_files or ()) for a in plan.unneeded)


def _rows_of_files(add: AddFile, numbers: Sequence[int]) -> Any:
    starts = np.concatenate([[0], np.cumsum([f.rows for f in files_of(add)])])
    parts = [np.arange(starts[n], starts[n + 1], dtype=np.uint32) for n in numbers]
    return np.concatenate([np.empty(0, np.uint32), *parts])


def _describe(log: TransactionLog, plan: SyncPlan) -> None:
    """Let the metadata hold the schema of the splits to come, before they do."""
    schema = stored_schema(table_schema(plan.columns))

    def actions(newest: Snapshot) -> list[Action]:
        known = newest.metadata
        configuration = with_schema(known.configuration, schema)
        text = schema_to_json(table_schema(plan.columns))
        changed = replace(known, configuration=configuration, schema_string=text)
        return [] if changed == known else [changed]

    if plan.missing:
        _run(log, actions)


def _finish(log: TransactionLog, plan: SyncPlan, result: SyncResult) -> None:
    """Remove what cannot be used any more, and note the version."""
    unfit = {add.path for add in plan.unfit}
    now = int(time.time() * 1000)

    def actions(newest: Snapshot) -> list[Action]:
        found: list[Action] = [
            add.removal(now, data_change=False) for add in newest.files() if add.path in unfit
        ]
        known: Metadata = newest.metadata
        version = str(plan.source.version)
        if known.configuration.get(SYNCED) != version:
            found.append(replace(known, configuration={**known.configuration, SYNCED: version}))
        return found

    _run(log, actions)
    result.splits_invalidated += len(unfit)


def facts_of(log: TransactionLog) -> CompanionFacts:
    """The source of a companion; an ordinary table has none."""
    from indextables.companion.facts import is_companion

    configuration = log.snapshot().metadata.configuration
    if not is_companion(configuration):
        raise IndexTablesError(
            "the table is not a companion", path=log.path, hint="Make one with indextables.index"
        )
    return CompanionFacts.of(configuration, log.path)
