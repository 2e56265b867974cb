"""The log of a Delta table: which files are live at a version.

The log is read here, with our own storage, and not through the ``deltalake`` library: the library
does not say which deletion vector a file has, which is half of what a file's rows are, and refuses
tables that can be read well. It is the judge in the tests instead.

A version is the newest complete checkpoint at or before it (one file, several parts, or a V2
checkpoint with sidecars) and the commits that follow, without a gap. A file of the table is named
by its path **and** its deletion vector: a commit that deletes rows removes the one pair and adds
the other, in any order. The hint ``_last_checkpoint`` saves listing what is older; nothing else is
taken from it, and a listing that lacks its checkpoint is made again without it.

The time of a version is the one that its commit carries, where the table keeps such times, and else
the age of its file; ages that do not grow with the version are taken to.

The newest state that was read of a table is kept. It holds for as long as the log lists the commit
of its version as the same object; then what follows it is all that is read: one listing where
nothing did.

A log is cleaned while it is read: a file that was listed and is gone makes the reading start again.
"""

from __future__ import annotations

import io
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow.parquet as pq

from indextables.errors import (
    CorruptFileError,
    ObjectNotFoundError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
)
from indextables.lru import LRU
from indextables.sources.pages import decode
from indextables.sources.roots import Roots
from indextables.storage.base import ObjectInfo, Store

LOG = "_delta_log"
SIDECARS = f"{LOG}/_sidecars"
_COMMIT = re.compile(r"(\d{20})\.json$")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-fA-F-]{36}))?\.(parquet|json)$"
)
_WANTED = ("add", "metaData", "protocol", "sidecar")
_TRIES = 3
_STAMPED = "delta.enableInCommitTimestamps"
_STAMPED_SINCE = "delta.inCommitTimestampEnablementVersion"

Action = dict[str, Any]
FileKey = tuple[str, str]


_kept: LRU[str, State] = LRU(most=8)


@dataclass
class Listing:
    """What a log holds."""

    commits: dict[int, ObjectInfo] = field(default_factory=dict)
    checkpoints: dict[int, list[tuple[str, ...]]] = field(default_factory=dict)
    """Of each version the complete checkpoints, each as its files."""

    @property
    def newest(self) -> int:
        return max([*self.commits, *self.checkpoints], default=-1)


@dataclass
class State:
    """A table at a version, in the log's own words."""

    version: int
    protocol: Action
    metadata: Action
    adds: dict[FileKey, Action]
    timestamp: int | None = None
    commit: ObjectInfo | None = None
    """The file of the version's commit, where the log holds it."""


def list_log(store: Store, after: int | None = None) -> Listing:
    """The commits and complete checkpoints of a log, from a version on."""
    found = Listing()
    parts: dict[tuple[int, int], dict[int, str]] = {}
    start = None if after is None else f"{LOG}/{after:020d}"
    for info in store.list(LOG, start):
        name = info.path.rpartition("/")[2]
        if commit := _COMMIT.match(name):
            found.commits[int(commit[1])] = info
        elif checkpoint := _CHECKPOINT.match(name):
            version, part, of = int(checkpoint[1]), checkpoint[2], checkpoint[3]
            if part is None and info.size:
                found.checkpoints.setdefault(version, []).append((info.path,))
            elif part is not None:
                parts.setdefault((version, int(of)), {})[int(part)] = info.path
    for (version, of), held in parts.items():
        if sorted(held) == list(range(1, of + 1)):
            files = tuple(held[i] for i in range(1, of + 1))
            found.checkpoints.setdefault(version, []).append(files)
    return found


def _hinted(store: Store) -> int | None:
    """The version of the checkpoint that the log points to."""
    try:
        version = json.loads(store.read(f"{LOG}/_last_checkpoint")).get("version")
        return version if isinstance(version, int) and version >= 0 else None
    except (ObjectNotFoundError, ValueError, AttributeError, RecursionError):
        return None


def read_state(roots: Roots, version: int | None) -> State:
    """The table at a version, or at its newest."""
    for left in reversed(range(_TRIES)):
        try:
            return _read_state(roots, version)
        except ObjectNotFoundError:
            if not left:
                raise
    raise AssertionError("unreachable")


def _follow_up(roots: Roots) -> State | None:
    """The newest state from the one that is kept; ``None`` where it does not lead there."""
    store = roots.store
    kept = _kept.get(store.identity)
    if kept is None or kept.commit is None:
        return None
    listing = list_log(store, kept.version - 1)
    newest = max(listing.commits, default=-1)
    if listing.commits.get(kept.version) != kept.commit or newest < listing.newest:
        return None
    if any(v not in listing.commits for v in range(kept.version, newest + 1)):
        return None
    state = replace(kept, adds=dict(kept.adds))
    _advance(roots, listing, state, newest)
    return state


def _advance(roots: Roots, listing: Listing, state: State, version: int) -> None:
    """Apply the commits after a state, up to a version."""
    paths = [listing.commits[v].path for v in range(state.version + 1, version + 1)]
    for path, data in zip(paths, roots.store.read_many(paths, 16), strict=True):
        actions = commit_actions(data, path)
        state.timestamp = in_commit_time(actions[:1])
        for action in actions:
            _apply(state, action)
    state.version, state.commit = version, listing.commits.get(version)
    if state.timestamp is None and state.commit is not None:
        state.timestamp = state.commit.modified_ms


def _read_state(roots: Roots, version: int | None) -> State:
    store = roots.store
    state = _follow_up(roots) if version is None else None
    if state is None:
        state = _read_whole(roots, version)
    if version is None:
        _kept.put(store.identity, state)
    return state


def _read_whole(roots: Roots, version: int | None) -> State:
    store = roots.store
    hint = _hinted(store)
    usable = hint is not None and (version is None or version >= hint)
    listing = list_log(store, hint if usable else None)
    if usable and hint not in listing.checkpoints:
        listing = list_log(store)
    if listing.newest < 0:
        raise TableNotFoundError("there is no Delta log", path=roots.location)
    wanted = listing.newest if version is None else version
    if wanted not in listing.commits and wanted not in listing.checkpoints:
        raise VersionNotFoundError(
            f"the Delta table has no version {wanted}; its newest is {listing.newest}",
            path=roots.location,
            version=wanted,
        )
    return replay(roots, listing, wanted)


def replay(roots: Roots, listing: Listing, version: int) -> State:
    """The table at a version that the listing holds."""
    base = max((v for v in listing.checkpoints if v <= version), default=-1)
    missing = [v for v in range(base + 1, version + 1) if v not in listing.commits]
    if missing:
        raise VersionNotFoundError(
            f"version {missing[0]} of the Delta log is gone, so version {version} is not known",
            path=roots.location,
            version=version,
            hint="Ask for a newer version",
        )
    state = State(base, {}, {}, {})
    if base >= 0:
        for action in _checkpoint_actions(roots, listing.checkpoints[base]):
            _apply(state, action)
    _advance(roots, listing, state, version)
    if not state.protocol or not state.metadata:
        raise CorruptFileError(
            "the Delta log has no protocol or no metadata", path=roots.location, version=version
        )
    return state


def _apply(state: State, action: Action) -> None:
    if add := action.get("add"):
        state.adds[_key(add)] = add
    elif remove := action.get("remove"):
        state.adds.pop(_key(remove), None)
    elif metadata := action.get("metaData"):
        state.metadata = metadata
    elif protocol := action.get("protocol"):
        state.protocol = protocol


def _key(action: Action) -> FileKey:
    path = action.get("path")
    if not isinstance(path, str) or not path:
        raise CorruptFileError("an action of a Delta log names no file")
    vector = action.get("deletionVector")
    return path, vector_id(vector) if vector else ""


def vector_id(vector: Mapping[str, Any]) -> str:
    """Tells the vectors of a table apart."""
    offset = vector.get("offset")
    name = f"{vector.get('storageType')}{vector.get('pathOrInlineDv')}"
    return name if offset is None else f"{name}@{offset}"


# -- commits and checkpoints ----------------------------------------------------------------------


def commit_actions(data: bytes | StorageError, path: str) -> list[Action]:
    """The actions of a commit, or of a checkpoint in JSON."""
    if isinstance(data, StorageError):
        raise data
    try:
        actions = [json.loads(line) for line in data.decode("utf-8").splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"a commit of a Delta log is no JSON: {error}", path=path) from None
    if not all(isinstance(action, dict) for action in actions):
        raise CorruptFileError("a commit of a Delta log holds no actions", path=path)
    return actions


def _checkpoint_actions(roots: Roots, choices: Sequence[tuple[str, ...]]) -> Iterator[Action]:
    """The actions of the first of several checkpoints of one version that can be read."""
    for number, files in enumerate(sorted(choices, key=len)):
        try:
            actions = [a for f in files for a in _file_actions(roots.store, f)]
            sidecars = [a["sidecar"] for a in actions if a.get("sidecar")]
            for sidecar in sidecars:
                store, path = _sidecar(roots, str(sidecar.get("path")))
                actions += _file_actions(store, path)
            return iter(actions)
        except (CorruptFileError, ObjectNotFoundError):
            if number == len(choices) - 1:
                raise
    return iter(())


def _sidecar(roots: Roots, path: str) -> tuple[Store, str]:
    if "/" in path:
        return roots.locate(path)
    return roots.store, f"{SIDECARS}/{path}"


def _file_actions(store: Store, path: str) -> Iterable[Action]:
    data = store.read(path)
    if path.endswith(".json"):
        return commit_actions(data, path)
    return decode(lambda: _parquet_actions(data), path)  # type: ignore[no-any-return]


def _parquet_actions(data: bytes) -> list[Action]:
    opened = pq.ParquetFile(io.BytesIO(data), coerce_int96_timestamp_unit="us")
    held = [name for name in _WANTED if name in opened.schema_arrow.names]
    found: list[Action] = []
    for batch in opened.iter_batches(columns=held):
        for name in held:
            column = batch.column(name)
            for value in column.filter(column.is_valid()).to_pylist():
                found.append({name: _cleaned(value)})
    return found


def _cleaned(value: Any) -> Any:
    """A struct of a checkpoint as JSON would have it: maps as objects, nothing for NULL."""
    if isinstance(value, dict):
        return {k: _cleaned(v) for k, v in value.items() if v is not None}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    if isinstance(value, list):
        return [_cleaned(v) for v in value]
    return value


# -- times ----------------------------------------------------------------------------------------


def version_at(roots: Roots, timestamp: int) -> int:
    """The newest version that was there at a time in milliseconds."""
    store = roots.store
    listing = list_log(store)
    versions = sorted(v for v in listing.commits if _is_known(listing, v))
    if not versions:
        raise TableNotFoundError("there is no Delta log", path=roots.location)
    settings = replay(roots, listing, versions[-1]).metadata.get("configuration") or {}
    stamped = len(versions)
    if settings.get(_STAMPED) == "true":
        since = int(settings.get(_STAMPED_SINCE, 0))
        stamped = next((i for i, v in enumerate(versions) if v >= since), stamped)
    ages = [listing.commits[v].modified_ms for v in versions[:stamped]]
    for i in range(1, len(ages)):
        ages[i] = max(ages[i], ages[i - 1] + 1)
    found = bisect_right(ages, timestamp)
    if found == stamped:
        later = versions[stamped:]
        found += bisect_right(
            later, timestamp, key=lambda v: commit_time(store, listing.commits[v])
        )
    if not found:
        raise VersionNotFoundError(
            f"the Delta table has no version as old as {timestamp} ms", path=roots.location
        )
    return versions[found - 1]


def _is_known(listing: Listing, version: int) -> bool:
    base = max((v for v in listing.checkpoints if v <= version), default=-1)
    return all(v in listing.commits for v in range(base + 1, version + 1))


def commit_time(store: Store, info: ObjectInfo) -> int:
    """When a version was committed: as it says itself, else the age of its file."""
    stamped = in_commit_time(commit_actions(store.read(info.path), info.path)[:1])
    return info.modified_ms if stamped is None else stamped


def in_commit_time(actions: Iterable[Action]) -> int | None:
    """The time that a commit carries, where the table keeps such times."""
    for action in actions:
        stamped = (action.get("commitInfo") or {}).get("inCommitTimestamp")
        if isinstance(stamped, int):
            return stamped
    return None
