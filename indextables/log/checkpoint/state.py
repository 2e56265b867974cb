"""Avro states: reading one into a snapshot, writing a snapshot as one.

A state is a folder ``state-v<version>`` with one file, ``_manifest.avro`` (``_manifest.json`` in
the older description; both are read). It names the manifests that hold the file entries; they lie
in ``manifests/`` and are shared by the states that need them.

What we write is always self-contained: metadata, protocol and every live action besides files are
inside, counts and sizes are exact, tombstones are exactly the dead entries of the manifests that
are kept. A state is only a shortcut: it is written after the commit it describes, with
``put_if_absent``; the second writer finds the same state and stops.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from indextables.config import Config
from indextables.errors import (
    AmbiguousWriteError,
    CorruptFileError,
    IndexTablesError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    TransientStorageError,
)
from indextables.log.actions.mappings import renamed_references
from indextables.log.checkpoint.avro_file import ContainerWriter, read_records
from indextables.log.checkpoint.avro_schema import STATE_MANIFEST
from indextables.log.checkpoint.compaction import FULL, Layout, choose_layout, dead_paths
from indextables.log.checkpoint.encode import ManifestEncoder
from indextables.log.checkpoint.entries import read_entries
from indextables.log.checkpoint.manifest import MANIFESTS_DIR, ManifestInfo, StateManifest
from indextables.log.read.bounded import read_files
from indextables.log.read.columns import Mask, Segment
from indextables.log.read.filecolumns import FileColumns
from indextables.log.read.ledger import Ledger, ledger_to_json
from indextables.log.read.localcache import MIN_ENTRIES, CachedColumns, LocalCache
from indextables.log.read.replay import hide, hide_earlier_duplicates
from indextables.log.read.snapshot import Snapshot, SnapshotSource
from indextables.log.read.unread import TYPED, Columns, UnreadState, can_wait
from indextables.log.read.versions import LOG_DIR, state_dir
from indextables.storage.base import Store
from indextables.storage.deleting import Kind, delete
from indextables.storage.retry import RetryPolicy, tries

STATE_FILES = ("_manifest.avro", "_manifest.json")
Written: TypeAlias = tuple[ManifestInfo, list[Segment]]


@dataclass(frozen=True, slots=True)
class StateWrite:
    """What writing a state did."""

    version: int
    state_dir: str
    num_files: int
    total_bytes: int
    manifests_kept: int
    manifests_written: int
    tombstones: int
    kind: str
    already_there: bool = False


# -- reading ------------------------------------------------------------------------------------


def read_state(store: Store, version: int) -> StateManifest:
    """The state manifest of a version; ``ObjectNotFoundError`` when there is none."""
    folder = state_dir(version)
    try:
        path, data = f"{folder}/{STATE_FILES[0]}", store.read(f"{folder}/{STATE_FILES[0]}")
    except ObjectNotFoundError:
        path, data = f"{folder}/{STATE_FILES[1]}", store.read(f"{folder}/{STATE_FILES[1]}")
    try:
        manifest = decode_state(data, folder.rpartition("/")[2])
    except CorruptFileError as error:
        raise _broken(error, path, version) from error
    if manifest.state_version != version:
        reason = f"the state says it is version {manifest.state_version}"
        raise CorruptFileError(reason, path=path, version=version, hint=_REMEDY)
    return manifest


_REMEDY = "The versions of the log still hold the table; delete this state or write a checkpoint"


def _broken(error: CorruptFileError, path: str, version: int | None) -> CorruptFileError:
    return CorruptFileError(
        error.reason, offset=error.offset, path=path, version=version, hint=_REMEDY
    )


def decode_state(data: bytes, folder: str) -> StateManifest:
    """A state manifest from its bytes, in Avro or JSON."""
    fingerprint = hashlib.sha256(data).hexdigest()
    record = _avro_record(data) if data[:4] == b"Obj\x01" else _json_record(data)
    return StateManifest.from_record(record, folder, fingerprint)


def _json_record(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"the state is neither Avro nor JSON: {error}") from None


def _avro_record(data: bytes) -> Any:
    records = read_records(data)
    if len(records) != 1:
        raise CorruptFileError(f"a state holds one record, this one {len(records)}")
    return records[0]


def load_state(
    store: Store,
    state: StateManifest,
    *,
    config: Config | None = None,
    ledger: Ledger | None = None,
    source: SnapshotSource | None = None,
) -> Snapshot:
    """The snapshot of a state. ``ledger``: what older files said, for states without metadata."""
    config = config or Config()
    facts = state.applied_to(ledger or Ledger())
    unread = _unread(store, state, config, facts)
    if unread is not None:
        return Snapshot(
            state.state_version,
            state.created_at,
            facts,
            manifests=state.manifests,
            source=source,
            unread=unread,
        )
    columns = _cached_columns(store, state, config)
    return Snapshot(
        state.state_version,
        state.created_at,
        facts,
        columns.segments,
        columns.live,
        manifests=state.manifests,
        source=source,
    )


def _unread(
    store: Store, state: StateManifest, config: Config, facts: Ledger
) -> UnreadState | None:
    """The state with its manifests left for later, where that can pay."""
    columns = facts.metadata.partition_columns if facts.metadata else ()
    if not state.is_ours or not can_wait(state.manifests, columns):
        return None
    cache = LocalCache.of(config) if state.fingerprint else None
    if cache is not None and cache.has(store, state.state_version, state.fingerprint):
        return None

    def read(manifests: Sequence[ManifestInfo]) -> Columns:
        some = replace(state, manifests=tuple(manifests))
        whole = len(manifests) == len(state.manifests)
        found = (_cached_columns if whole else _decoded_columns)(store, some, config)
        return list(found.segments), list(found.live)

    return UnreadState(read, state.manifests, facts)


def _cached_columns(store: Store, state: StateManifest, config: Config) -> CachedColumns:
    """The state's files: from the local copy if there is one, else decoded (and copied)."""
    entries = sum(info.num_entries for info in state.manifests)
    cache = LocalCache.of(config) if entries >= MIN_ENTRIES and state.fingerprint else None
    if cache is None:
        return _decoded_columns(store, state, config)
    path = cache.path_of(store, state.state_version, state.fingerprint)
    found = cache.load(path)
    if found is None:
        found = _decoded_columns(store, state, config)
        cache.save(path, found)
    return found


def _decoded_columns(store: Store, state: StateManifest, config: Config) -> CachedColumns:
    segments: list[Segment] = []
    for info, data in _manifest_bytes(store, state, config):
        segments += _segments_of(info, data, state.state_version, store.uri)
    live: list[Mask | None] = [None] * len(segments)
    hide(segments, live, list(state.tombstones))
    hide_earlier_duplicates(segments, live)
    return CachedColumns(segments, live)


def _manifest_bytes(
    store: Store, state: StateManifest, config: Config
) -> Iterator[tuple[ManifestInfo, bytes]]:
    """Manifests a few at a time, so that their bytes are never all in memory."""
    step = config["state.read.parallelism"] if store.capabilities.remote else 1
    for first in range(0, len(state.manifests), step):
        batch = state.manifests[first : first + step]
        paths = [f"{LOG_DIR}/{info.path}" for info in batch]
        blobs = read_files(store, paths, step, config)
        for info, blob in zip(batch, blobs, strict=True):
            if isinstance(blob, StorageError):
                raise blob
            yield info, blob


def _segments_of(info: ManifestInfo, data: bytes, version: int, root: str) -> list[Segment]:
    path = f"{LOG_DIR}/{info.path}"
    try:
        segments = read_entries(data, root)
    except CorruptFileError as error:
        raise _broken(error, path, version) from error
    count = sum(segment.n for segment in segments)
    if info.num_entries >= 0 and count != info.num_entries:
        reason = f"the manifest holds {count} entries, the state expects {info.num_entries}"
        raise CorruptFileError(reason, path=path, version=version, hint=_REMEDY)
    for segment in segments:
        segment.manifest = info.path
    return segments


# -- writing ------------------------------------------------------------------------------------


def write_state(
    store: Store,
    snapshot: Snapshot,
    *,
    config: Config | None = None,
    force_compaction: bool = False,
    as_json: bool = False,
    now_ms: int | None = None,
) -> StateWrite:
    """Write ``snapshot`` as the state of its version; base manifests are shared where possible."""
    config = config or Config()
    layout = choose_layout(snapshot, config, force=force_compaction)
    threshold = config["state.schema.renormalizeThreshold"]
    renamed = renamed_references(snapshot, snapshot.ledger.registry, threshold)
    if renamed:
        layout = Layout(FULL, "document mappings get canonical references", ())
    elif not _all_there(store, layout):
        layout = Layout(FULL, "a base manifest is gone", ())
    encoder = ManifestEncoder(
        snapshot.stored_schema, snapshot.stored_partition_columns, config, renamed
    )
    written = _write_manifests(store, snapshot, layout, encoder)
    registry = _registry(snapshot, renamed, encoder.registry)
    infos = [info for info, _ in written]
    state = _state_of(snapshot, layout, infos, registry, now_ms or int(time.time() * 1000))
    there = _put_state(store, state, ledger_to_json(snapshot.ledger), config, as_json)
    if not there:
        if not _all_there(store, layout):
            raise _withdrawn(store, state, as_json)
        _rebase(snapshot, layout, written, state)
    return StateWrite(
        version=snapshot.version,
        state_dir=state_dir(snapshot.version).rpartition("/")[2],
        num_files=state.num_files,
        total_bytes=state.total_bytes,
        manifests_kept=len(layout.kept),
        manifests_written=len(written),
        tombstones=len(state.tombstones),
        kind=layout.kind,
        already_there=there,
    )


def _rebase(
    snapshot: Snapshot, layout: Layout, written: list[Written], state: StateManifest
) -> None:
    kept = sorted(layout.kept_segments)
    segments = [snapshot.segments[k] for k in kept]
    live = [snapshot.live[k] for k in kept]
    for _, fresh in written:
        segments += fresh
        live += [None] * len(fresh)
    ledger = replace(snapshot.ledger, registry=state.schema_registry)
    snapshot.rebase(ledger, segments, live, state.manifests)


def _registry(
    snapshot: Snapshot, renamed: Mapping[str, str], inline: Mapping[str, str]
) -> dict[str, str]:
    """Every mapping that an entry of the new state may refer to."""
    known = snapshot.ledger.registry
    return {**known, **{new: known[old] for old, new in renamed.items()}, **inline}


def _withdrawn(store: Store, state: StateManifest, as_json: bool) -> IndexTablesError:
    """A clean-up took a manifest between our look and our write: no such state may stay."""
    path = _state_path(state.state_version, as_json)
    delete(store, Kind.STATE, [path])
    return IndexTablesError(
        "a manifest of the base state was deleted while the new state was written",
        path=path,
        version=state.state_version,
        hint="The table is unharmed; write a checkpoint again",
    )


def _state_path(version: int, as_json: bool) -> str:
    return f"{state_dir(version)}/{STATE_FILES[1 if as_json else 0]}"


def _all_there(store: Store, layout: Layout) -> bool:
    """A stale base may name manifests that were collected since: never refer to those."""
    if not layout.kept:
        return True
    folders = {use.info.path.rpartition("/")[0] for use in layout.kept}
    found = {info.path for folder in folders for info in store.list(f"{LOG_DIR}/{folder}")}
    return all(f"{LOG_DIR}/{use.info.path}" in found for use in layout.kept)


def _write_manifests(
    store: Store, snapshot: Snapshot, layout: Layout, encoder: ManifestEncoder
) -> list[Written]:
    """Store the live files that no kept manifest holds; also give them as segments."""
    written = []
    for encoded in encoder.encode(_loose(snapshot, layout), sort=layout.kind == FULL):
        info = ManifestInfo(
            path=f"{MANIFESTS_DIR}/{TYPED}{uuid.uuid4().hex[:15]}.avro",
            num_entries=encoded.num_entries,
            min_added_at_version=encoded.min_version,
            max_added_at_version=encoded.max_version,
            partition_bounds=encoded.bounds,
            live_entry_count=encoded.num_entries,
        )
        store.put(f"{LOG_DIR}/{info.path}", encoded.data)
        written.append((info, _segments_of(info, encoded.data, snapshot.version, "")))
    return written


def _loose(snapshot: Snapshot, layout: Layout) -> FileColumns:
    kept = layout.kept_segments
    loose = [k for k in range(len(snapshot.segments)) if k not in kept]
    return FileColumns([snapshot.segments[k] for k in loose], [snapshot.live[k] for k in loose])


def _state_of(
    snapshot: Snapshot,
    layout: Layout,
    written: list[ManifestInfo],
    registry: Mapping[str, str],
    now_ms: int,
) -> StateManifest:
    kept = [
        ManifestInfo(
            use.info.path,
            use.live + use.dead,
            use.info.min_added_at_version,
            use.info.max_added_at_version,
            use.info.partition_bounds,
            use.dead,
            use.live,
        )
        for use in layout.kept
    ]
    tombstones = {
        path: None for k in sorted(layout.kept_segments) for path in dead_paths(snapshot, k)
    }
    return StateManifest(
        state_version=snapshot.version,
        created_at=now_ms,
        num_files=snapshot.num_files,
        total_bytes=snapshot.num_bytes,
        manifests=(*kept, *written),
        tombstones=tuple(tombstones),
        schema_registry=registry,
        protocol_version=4,
        metadata=snapshot.metadata,
    )


def encode_state(state: StateManifest, extras: str | None, config: Config, as_json: bool) -> bytes:
    """The bytes of a state manifest, in Avro or JSON."""
    record = state.to_record(extras)
    if as_json:
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
    import fastavro

    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(STATE_MANIFEST), record)
    writer = ContainerWriter(STATE_MANIFEST, config)
    writer.add_block(1, body.getvalue())
    return writer.finish()


def _put_state(
    store: Store, state: StateManifest, extras: str, config: Config, as_json: bool
) -> bool:
    """Create the state's file; ``True`` when a valid state of this version is there already."""
    path = _state_path(state.state_version, as_json)
    data = encode_state(state, extras, config, as_json)
    policy = RetryPolicy.of_ms(
        config["state.retry.maxAttempts"],
        config["state.retry.baseDelayMs"],
        config["state.retry.maxDelayMs"],
    )
    failed: Exception | None = None
    for _ in tries(policy):
        try:
            store.put_if_absent(path, data)
            return False
        except ObjectExistsError:
            read_state(store, state.state_version)
            return store.read(path) != data
        except (AmbiguousWriteError, TransientStorageError) as error:
            failed = error
    raise IndexTablesError(
        f"the state could not be written in {policy.attempts} tries",
        path=path,
        version=state.state_version,
        hint="The table is unharmed; write a checkpoint again",
    ) from failed
