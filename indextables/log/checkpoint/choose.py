"""Checkpoints of either format: choosing one, writing one, loading one.

The table's protocol and ``state.format`` choose: Avro state from protocol 4 on, else JSON. A
checkpoint is written after the commit it describes and is only a shortcut, so a writer that fails
to write it has lost nothing.

States of older writers may not carry the table's metadata or protocol. Then these come from the
files below: the newest earlier version or state that has them, at last version 0. A protocol is
never below what the state itself says.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from indextables.config import Config
from indextables.errors import (
    CorruptFileError,
    IndexTablesError,
    ObjectNotFoundError,
    StorageError,
)
from indextables.log.actions import Action, CommitInfo, Metadata, Protocol
from indextables.log.actions.codec import REMEDY, decode_actions
from indextables.log.actions.protocol import AVRO_STATE, check_readable, raised, supports
from indextables.log.checkpoint import json_parts as checkpoint_json
from indextables.log.checkpoint.manifest import StateManifest
from indextables.log.checkpoint.state import load_state, read_state, write_state
from indextables.log.read import hint
from indextables.log.read.bounded import in_time, read_files
from indextables.log.read.diverged import disputed_paths, united
from indextables.log.read.ledger import Ledger
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.log.read.versions import LogListing, list_log, state_dir, version_path
from indextables.storage.base import Store

logger = logging.getLogger(__name__)
_BATCH = 32


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that is there now; ``created`` says whether this call wrote it."""

    version: int
    format: str
    num_files: int
    num_actions: int
    parts: int = 0
    created: bool = True


# -- writing ------------------------------------------------------------------------------------


def write_checkpoint(
    store: Store, snapshot: Snapshot, config: Config, *, compact: bool = False
) -> Checkpoint:
    """Write the snapshot as a checkpoint of its version and let the hint point to it."""
    if config["state.format"] == "avro" and supports(snapshot.protocol, AVRO_STATE):
        done, pointer = _write_avro(store, snapshot, config, compact)
    else:
        done, pointer = _write_json(store, snapshot, config)
    hint.write_hint(store, pointer)
    return done


def wants_own_version(store: Store, snapshot: Snapshot, config: Config) -> bool:
    """Is there a state of this version already that a compaction would make smaller?"""
    if config["state.format"] != "avro" or not supports(snapshot.protocol, AVRO_STATE):
        return False
    try:
        state = read_state(store, snapshot.version)
    except (ObjectNotFoundError, CorruptFileError):
        return False
    fewest = max(1, -(-state.num_files // max(1, config["state.entriesPerManifest"])))
    return bool(state.tombstones) or len(state.manifests) > fewest


def _write_avro(
    store: Store, snapshot: Snapshot, config: Config, compact: bool
) -> tuple[Checkpoint, hint.LastCheckpoint]:
    written = write_state(
        store, snapshot, config=config, force_compaction=compact, now_ms=snapshot.timestamp_ms
    )
    pointer = hint.LastCheckpoint(
        version=written.version,
        size=written.num_files,
        size_in_bytes=written.total_bytes,
        num_files=written.num_files,
        created_time=snapshot.timestamp_ms,
        format=hint.AVRO_STATE,
        state_dir=written.state_dir,
    )
    done = Checkpoint(
        written.version,
        hint.AVRO_STATE,
        written.num_files,
        written.num_files + len(snapshot.ledger.to_actions()),
        created=not written.already_there,
    )
    return done, pointer


def _write_json(
    store: Store, snapshot: Snapshot, config: Config
) -> tuple[Checkpoint, hint.LastCheckpoint]:
    written = checkpoint_json.write_checkpoint(store, snapshot, config, snapshot.timestamp_ms)
    kind = hint.JSON_MULTIPART if written.parts else hint.JSON
    pointer = hint.LastCheckpoint(
        version=written.version,
        size=written.num_actions,
        size_in_bytes=written.num_bytes,
        num_files=snapshot.num_files,
        created_time=snapshot.timestamp_ms,
        parts=written.parts or None,
        checkpoint_id=written.checkpoint_id,
        format=kind,
    )
    done = Checkpoint(
        written.version,
        kind,
        snapshot.num_files,
        written.num_actions,
        written.parts,
        written.created,
    )
    return done, pointer


# -- loading ------------------------------------------------------------------------------------


def load_checkpoint(store: Store, version: int, listing: LogListing, config: Config) -> Snapshot:
    """The table as its checkpoint of ``version`` says; a state is preferred to JSON.

    ``ObjectNotFoundError`` when there is none after all (a folder without its file);
    ``CorruptFileError`` when there is one that cannot be used.
    """
    if version not in listing.states:
        return _load_json(store, version, listing, config)
    try:
        return _load_avro(store, version, listing, config)
    except (CorruptFileError, ObjectNotFoundError):
        if version not in listing.checkpoints:
            raise
    return _load_json(store, version, listing, config)


def _load_json(store: Store, version: int, listing: LogListing, config: Config) -> Snapshot:
    actions = checkpoint_json.read_checkpoint(store, version, config)
    said = next((a.timestamp for a in actions if isinstance(a, CommitInfo)), None)
    modified = listing.checkpoints[version].modified_ms
    return Snapshot.from_replay(
        [VersionActions(version, modified if said is None else said, actions)]
    )


def _load_avro(store: Store, version: int, listing: LogListing, config: Config) -> Snapshot:
    state = in_time(store, state_dir(version), config, lambda: read_state(store, version))
    snapshot = _snapshot_of(store, state, config)
    if state.is_ours:
        return snapshot

    shared = _newest_shared(store, version, listing)
    at = snapshot if shared == version else foreign_state(store, shared, config)
    return united(
        snapshot,
        at,
        lambda number: version_file(store, number),
        lambda number: foreign_state(store, number, config),
    )


def _newest_shared(store: Store, version: int, listing: LogListing) -> int:
    """The newest number up to ``version`` that has a version file and a state, -1 for none."""
    if version in listing.versions:
        return version
    whole = list_log(store) if listing.since else listing
    return max((v for v in whole.states.intersection(whole.versions) if v <= version), default=-1)


def version_file(store: Store, version: int) -> VersionActions | None:
    """The actions of a version file, ``None`` when there is none."""
    try:
        actions = _version_actions(store.read(version_path(version)), store, version)
    except ObjectNotFoundError:
        return None
    said = (a.timestamp for a in actions if isinstance(a, CommitInfo))
    return VersionActions(version, next((t for t in said if t is not None), 0), actions)


def foreign_state(store: Store, version: int, config: Config) -> Snapshot | None:
    """The snapshot of a state that another program wrote, ``None`` when there is none.

    An old state may have lost its manifests to a clean-up: then it cannot be asked any more.
    """
    try:
        state = read_state(store, version) if version > 0 else None
        return None if state is None or state.is_ours else _snapshot_of(store, state, config)
    except (ObjectNotFoundError, CorruptFileError) as error:
        logger.info("the state of version %d says nothing: %s", version, error)
        return None


def disputed_versions(store: Store, config: Config) -> Iterator[tuple[int, list[str]]]:
    """Every version whose file another program's state of the same number disagrees with."""
    listing = list_log(store)
    for version in sorted(listing.states.intersection(listing.versions)):
        paths = _disputed_at(store, version, config)
        if paths:
            yield version, paths


def is_disputed(store: Store, version: int, config: Config) -> bool:
    """Was this version made by two programs, of which each left the other's files out?"""
    return bool(_disputed_at(store, version, config))


def _disputed_at(store: Store, version: int, config: Config) -> list[str]:
    theirs = foreign_state(store, version, config)
    change = None if theirs is None else version_file(store, version)
    return [] if theirs is None or change is None else disputed_paths(theirs, change)


def is_foreign(store: Store, version: int) -> bool:
    """Is there a state of this version that another program wrote?"""
    try:
        return not read_state(store, version).is_ours
    except (ObjectNotFoundError, CorruptFileError):
        return False


def _snapshot_of(store: Store, state: StateManifest, config: Config) -> Snapshot:
    version = state.state_version
    if config["protocol.checkEnabled"]:
        check_readable(Protocol(state.protocol_version, 1), state_dir(version))
    ledger = older_facts(store, state, config)
    try:
        return load_state(store, state, config=config, ledger=ledger)
    except ObjectNotFoundError as error:
        raise CorruptFileError(
            f"the state refers to a manifest that is gone: {error.path}",
            path=state_dir(version),
            version=version,
            hint=REMEDY,
        ) from error


def older_facts(store: Store, state: StateManifest, config: Config) -> Ledger:
    """What the state does not say itself: metadata and protocol out of the files below it."""
    protocol = next((a for a in state.extras if isinstance(a, Protocol)), None)
    if protocol is not None and state.metadata is not None:
        return Ledger()
    found: list[Action] = []
    if state.metadata is None:
        found = list(_newest_metadata(store, state.state_version, config))
        if not any(isinstance(action, Metadata) for action in found):
            raise CorruptFileError(
                "neither the state nor any file below it holds the table's metadata",
                path=state_dir(state.state_version),
                version=state.state_version,
                hint=REMEDY,
            )
    if protocol is None:
        known = next((a for a in found if isinstance(a, Protocol)), None) or _first_protocol(store)
        number = state.protocol_version
        found.append(raised(known or Protocol(number, number), number, number))
    return Ledger().applied(found)


def _first_protocol(store: Store) -> Protocol | None:
    """The protocol of version 0, if version 0 is there and readable."""
    try:
        actions = _version_actions(store.read(version_path(0)), store, 0)
    except (ObjectNotFoundError, CorruptFileError):
        return None
    return next((a for a in actions if isinstance(a, Protocol)), None)


def _newest_metadata(store: Store, below: int, config: Config) -> Iterator[Action]:
    """The newest metadata at or below a version (and a protocol if one lies on the way)."""
    listing = list_log(store)
    numbers = sorted({v for v in (*listing.versions, *listing.states) if v <= below}, reverse=True)
    for first in range(0, len(numbers), _BATCH):
        batch = numbers[first : first + _BATCH]
        versions = [v for v in batch if v in listing.versions]
        said = _actions_by_version(store, versions, config)
        for version in batch:
            heads = _heads(said.get(version, ()))
            if version in listing.states and version < below:
                heads += _state_metadata(store, version)
            yield from heads
            if any(isinstance(action, Metadata) for action in heads):
                return


def _heads(actions: Sequence[Action]) -> list[Action]:
    return [action for action in actions if isinstance(action, Protocol | Metadata)]


def _actions_by_version(
    store: Store, versions: Sequence[int], config: Config
) -> dict[int, list[Action]]:
    paths = [version_path(v) for v in versions]
    blobs = read_files(store, paths, config["transaction.maxConcurrentReads"], config)
    found = {}
    for version, data in zip(versions, blobs, strict=True):
        if isinstance(data, ObjectNotFoundError):
            continue
        if isinstance(data, StorageError):
            raise data
        found[version] = _version_actions(data, store, version)
    return found


def _version_actions(data: bytes, store: Store, version: int) -> list[Action]:
    path = version_path(version)
    return decode_actions(data, root=store.uri, path=path, version=version)


def _state_metadata(store: Store, version: int) -> list[Action]:
    """An older state's metadata; one that cannot be read says nothing."""
    try:
        metadata = read_state(store, version).metadata
    except (CorruptFileError, ObjectNotFoundError):
        return []
    return [] if metadata is None else [metadata]


def is_readable(store: Store, version: int, listing: LogListing, config: Config) -> bool:
    """Can the checkpoint of this version replace the versions below it?"""
    try:
        load_checkpoint(store, version, listing, config)
    except IndexTablesError:
        return False
    return True
