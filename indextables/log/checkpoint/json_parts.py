"""Checkpoints in JSON: the whole table at one version, in one file or in parts.

A checkpoint is self-contained: protocol and metadata first, then every live split, then what else
must survive (cross-references, indexes, skips, transaction numbers; other readers ignore what
they do not know). Above ``checkpoint.actionsPerPart`` actions it is cut into parts. Parts are
written first, under names that carry a fresh id, and the file ``<version>.checkpoint.json`` last,
with put-if-absent: it is either the only file or the manifest that lists the parts, and it is what
makes the checkpoint exist. A crash before that leaves orphan parts for the clean-up.

Reading also accepts the older form of one JSON object with ``protocol``, ``metaData`` and a list
under ``add``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from indextables.config import Config
from indextables.errors import (
    CorruptFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from indextables.log.actions import Action, AddFile, CommitInfo, Metadata, Protocol
from indextables.log.actions import fields as f
from indextables.log.actions.codec import (
    Encoding,
    actions_of,
    decode_actions,
    encode_actions,
    encode_lines,
    encoding,
    located,
    sole_object,
)
from indextables.log.actions.protocol import MULTI_PART_CHECKPOINT, SCHEMA_DEDUPLICATION, supports
from indextables.log.actions.schema_registry import deduplicate, renormalize, restore, with_registry
from indextables.log.read.bounded import read_file, read_files
from indextables.log.read.versions import LOG_DIR, checkpoint_path, digits, part_name
from indextables.storage.base import Store
from indextables.storage.deleting import Kind, delete

if TYPE_CHECKING:
    from indextables.log.read.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class JsonCheckpoint:
    """A JSON checkpoint that was written; ``parts`` is 0 for a single file."""

    version: int
    num_actions: int
    num_bytes: int
    parts: int = 0
    checkpoint_id: str | None = None
    created: bool = True
    """False when another writer had written this checkpoint already."""


# -- writing ------------------------------------------------------------------------------------


def write_checkpoint(
    store: Store, snapshot: Snapshot, config: Config, now_ms: int
) -> JsonCheckpoint:
    """Write the snapshot's version as a JSON checkpoint, in parts where the protocol has them."""
    actions = checkpoint_actions(snapshot, config)
    form = encoding(config)
    per_part = max(1, config["checkpoint.actionsPerPart"])
    if len(actions) <= per_part or not supports(snapshot.protocol, MULTI_PART_CHECKPOINT):
        data = encode_actions(actions, **form)
        created = _publish(store, snapshot.version, data)
        return JsonCheckpoint(snapshot.version, len(actions), len(data), created=created)
    parts = [actions[i : i + per_part] for i in range(0, len(actions), per_part)]
    return _write_parts(store, snapshot.version, parts, form, now_ms)


def _write_parts(
    store: Store, version: int, parts: Sequence[Sequence[Action]], form: Encoding, now_ms: int
) -> JsonCheckpoint:
    checkpoint_id = uuid.uuid4().hex
    names = [part_name(version, checkpoint_id, number) for number in range(1, len(parts) + 1)]
    size = 0
    for name, part in zip(names, parts, strict=True):
        data = encode_actions(part, **form)
        store.put(f"{LOG_DIR}/{name}", data)
        size += len(data)
    manifest = {
        "version": version,
        "checkpointId": checkpoint_id,
        "parts": names,
        "createdTime": now_ms,
        "format": "json",
    }
    created = _publish(store, version, encode_lines([manifest], **form))
    if not created:
        delete(store, Kind.PART, [f"{LOG_DIR}/{name}" for name in names])
    count = sum(map(len, parts))
    return JsonCheckpoint(version, count, size, len(parts), checkpoint_id, created)


def _publish(store: Store, version: int, data: bytes) -> bool:
    """Create the checkpoint's own file; "it exists" may be our own bytes after a lost reply."""
    path = checkpoint_path(version)
    if store.exists(path):
        return False
    try:
        store.put_if_absent(path, data)
    except ObjectExistsError:
        return store.read(path) == data
    return True


def checkpoint_actions(snapshot: Snapshot, config: Config) -> list[Action]:
    """Everything the table is at this version, in the order a reader applies it."""
    registry = dict(snapshot.ledger.registry)
    metadata: Metadata = snapshot.metadata
    adds: list[AddFile] = list(snapshot.files())
    if supports(snapshot.protocol, SCHEMA_DEDUPLICATION):
        adds, inline = deduplicate(adds)
        threshold = config["state.schema.renormalizeThreshold"]
        adds, registry = renormalize(adds, {**registry, **inline}, threshold)
        metadata = with_registry(metadata, registry)
    else:
        adds = [restore(add, registry) for add in adds]
    taken = CommitInfo(timestamp=snapshot.timestamp_ms, operation="CHECKPOINT")
    return [snapshot.protocol, metadata, taken, *adds, *snapshot.ledger.extra_actions()]


# -- reading ------------------------------------------------------------------------------------


def read_checkpoint(store: Store, version: int, config: Config) -> list[Action]:
    """The actions of a JSON checkpoint, single or in parts."""
    path = checkpoint_path(version)
    data = read_file(store, path, config)
    whole = sole_object(data, path=path, version=version)
    if whole is None:
        actions = decode_actions(data, root=store.uri, path=path, version=version)
    elif _is_parts_manifest(whole):
        actions = _read_parts(store, version, whole, config)
    else:
        actions = actions_of(_flat(whole), root=store.uri, path=path, version=version)
    _check_whole(actions, path, version)
    return actions


def _is_parts_manifest(line: dict[str, Any]) -> bool:
    return "parts" in line and "checkpointId" in line


def _flat(whole: dict[str, Any]) -> Iterator[Any]:
    """One action a line, out of an object that holds or lists them all."""
    for key, body in whole.items():
        yield from ({key: item} for item in (body if isinstance(body, list) else [body]))


def _read_parts(store: Store, version: int, manifest: Any, config: Config) -> list[Action]:
    names = part_names(manifest, version)
    paths = [f"{LOG_DIR}/{name}" for name in names]
    actions: list[Action] = []
    blobs = read_files(store, paths, config["checkpoint.parallelism"], config)
    for path, data in zip(paths, blobs, strict=True):
        if isinstance(data, ObjectNotFoundError):
            missing = CorruptFileError(f"its part {path} is missing")
            raise located(missing, checkpoint_path(version), version)
        if isinstance(data, StorageError):
            raise data
        actions += decode_actions(data, root=store.uri, path=path, version=version)
    return actions


def part_names(manifest: Any, version: int) -> tuple[str, ...]:
    """The parts a manifest lists; names that are not parts of this version are refused."""
    path = checkpoint_path(version)
    try:
        names = f.texts(manifest["parts"], "parts")
    except CorruptFileError as error:
        raise located(error, path, version) from None
    prefix = f"{digits(version)}.checkpoint."
    if not names or not all(n.startswith(prefix) and "/" not in n for n in names):
        raise located(CorruptFileError("it lists files that are not its parts"), path, version)
    return names


def _check_whole(actions: Sequence[Action], path: str, version: int) -> None:
    for kind in (Protocol, Metadata):
        if not any(isinstance(action, kind) for action in actions):
            raise located(
                CorruptFileError(f"the checkpoint has no {kind.KEY} action"), path, version
            )
