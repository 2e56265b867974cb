"""From files to a snapshot: which checkpoint to start from, which versions to apply.

The newest version is decided by the listing, never by the hint. A load starts from the newest
checkpoint that can be read (Avro state or JSON) and applies the version files that follow it
without a gap; a gap ends the table there. Files below the checkpoint are not looked at.

A checkpoint that cannot be read gives way to an older one, or for the versions from 0 on,
but only if that still reaches as far as the broken checkpoint did. Otherwise its content exists
nowhere else, and the load fails with its error: an older table is never served as the newest.

A version file or a checkpoint that was listed and is gone when read was cleaned away meanwhile; the
load starts again with a fresh listing. A checkpoint that is gone is no reason to serve an older
version. Where the fresh listing is the same, no clean-up is running: an interrupted deletion left a
part of a state. The version that was asked for is then gone; a newest version is damaged.

On an object store a load is two or three round trips. The first look asks for version 0 (which
names the table) and for one page of the listing, side by side; checkpoint or versions follow. The
hint is read only where the log is longer than a page, to list from the newest checkpoint on.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

from indextables.config import Config
from indextables.errors import (
    CorruptFileError,
    IndexTablesError,
    ObjectNotFoundError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
)
from indextables.log.actions import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    UnknownActions,
)
from indextables.log.actions.codec import REMEDY, decode_actions
from indextables.log.actions.protocol import check_readable
from indextables.log.checkpoint.choose import load_checkpoint
from indextables.log.read.bounded import read_files
from indextables.log.read.checksum import verify
from indextables.log.read.hint import read_hint
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.log.read.versions import LOG_DIR, LogListing, list_log, version_path
from indextables.storage.base import Store
from indextables.storage.pool import side_by_side

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
_LISTINGS = 5


class VanishedError(ObjectNotFoundError):
    """A listed file is gone: it was cleaned away meanwhile; list again."""


class LostCheckpointError(VanishedError):
    """A listed checkpoint is gone, and nothing else of the log reaches as far."""


def undisturbed(look: Callable[P, T]) -> Callable[P, T]:
    """Marks what lists the log and then reads it: again, where a clean-up took files meanwhile."""

    @wraps(look)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_LISTINGS - 1):
            with contextlib.suppress(VanishedError):
                return look(*args, **kwargs)
        return look(*args, **kwargs)

    return run


class Start(NamedTuple):
    """A snapshot to apply versions on, or the very beginning."""

    snapshot: Snapshot | None
    version: int


class FirstLook(NamedTuple):
    """What one round trip says: version 0, if it is there, and a listing."""

    first: bytes | None
    listing: LogListing

    @property
    def token(self) -> str:
        """What distinguishes this table from another one at the same place: its first version."""
        return "no version 0" if self.first is None else hashlib.sha256(self.first).hexdigest()

    def is_of(self, snapshot: Snapshot) -> bool:
        """Is version 0 the beginning of this snapshot, not of a table made there meanwhile?"""
        if self.first is None:
            return True
        path = version_path(0)
        try:
            actions = decode_actions(self.first, root="", path=path, version=0)
        except IndexTablesError:
            return False
        return any(isinstance(a, Metadata) and a.id == snapshot.metadata.id for a in actions)


def first_look(store: Store, since: int = 0) -> FirstLook:
    """Version 0 and the listing from ``since`` on, cut after a page when from the beginning."""
    pages = None if since else 1
    return FirstLook(
        *side_by_side(
            store, lambda: read_first(store), lambda: list_log(store, since, most_pages=pages)
        )
    )


def read_first(store: Store) -> bytes | None:
    """Version 0 as it is stored."""
    try:
        return store.read(version_path(0))
    except ObjectNotFoundError:
        return None


class Loaded(NamedTuple):
    """A snapshot, and the highest version any file of the log speaks of."""

    snapshot: Snapshot
    newest: int


def load_snapshot(
    store: Store, config: Config, version: int | None = None, look: FirstLook | None = None
) -> Loaded:
    """The table at ``version``, or at the newest one; ``look`` is a fresh look at all of it."""
    look = look or FirstLook(None, list_log(store, most_pages=1))
    listing = look.listing if look.listing.complete else _list_from_hint(store, version)
    for attempt in range(_LISTINGS):
        try:
            return Loaded(_load(store, config, listing, version, look.first), listing.newest)
        except _NeedsOlderError:
            pass
        except VanishedError as gone:
            logger.info("%s was cleaned away while reading, listing again (%d)", gone, attempt)
            lost = isinstance(gone, LostCheckpointError)
            if lost and list_log(store, listing.since) == listing:
                raise _incomplete(gone, version, listing, store) from gone
        except CorruptFileError:
            if list_log(store, listing.since) == listing:
                raise
        listing, look = list_log(store), FirstLook(None, listing)
    raise StorageError(
        "the log changes faster than it can be read", path=store.uri, hint="Try again"
    )


def _list_from_hint(store: Store, version: int | None) -> LogListing:
    """A long log from its newest checkpoint on, as far as the hint knows it."""
    hint = read_hint(store)
    if hint is None or (version is not None and version < hint.version):
        return list_log(store)
    listing = list_log(store, hint.version)
    return listing if listing.states or listing.checkpoints else list_log(store)


class _NeedsOlderError(Exception):
    """The files from the hint on are not enough."""


def no_table(path: str) -> TableNotFoundError:
    return TableNotFoundError(
        "no transaction log found",
        path=path,
        hint=f"A table has a folder {LOG_DIR}; check the path, or create the table",
    )


def _load(
    store: Store,
    config: Config,
    listing: LogListing,
    version: int | None,
    first: bytes | None,
) -> Snapshot:
    if listing.is_empty and not listing.since:
        raise no_table(store.uri)
    last = listing.newest if version is None else version
    start: Start
    ahead: list[VersionActions]
    start, ahead = side_by_side(
        store,
        lambda: _start(store, config, listing, last),
        lambda: _read_ahead(store, config, listing, last),
    )
    run = _run(listing, start.version, last)
    reached = run[-1] if run else start.version
    if version is not None and (reached != version or version < 0):
        raise not_found(version, listing, store)
    if [change.version for change in ahead] == run:
        changes = ahead
    else:
        changes = read_versions(store, config, run, listing, first)
    if start.snapshot is None:
        return verify(Snapshot.from_replay(changes), changes, config)
    if not changes:
        return start.snapshot
    return verify(start.snapshot.with_versions(changes), changes, config)


def _run(listing: LogListing, start: int, last: int) -> list[int]:
    return [version for version in listing.run_after(start) if version <= last]


def _read_ahead(
    store: Store, config: Config, listing: LogListing, last: int
) -> list[VersionActions]:
    """The versions after the newest checkpoint, read while that one is; none without one.

    They are not needed if the checkpoint turns out to be broken, so a failure is left to code that
    reads them again.
    """
    known = [v for v in (*listing.states, *listing.checkpoints) if v <= last]
    run = _run(listing, max(known), last) if known and store.capabilities.remote else []
    try:
        return read_versions(store, config, run, listing)
    except IndexTablesError:
        return []


def _start(store: Store, config: Config, listing: LogListing, last: int) -> Start:
    """The newest readable checkpoint at or below ``last``, else the beginning."""
    broken: IndexTablesError | None = None
    lost = -1
    for candidate in sorted({*listing.states, *listing.checkpoints}, reverse=True):
        if candidate > last:
            continue
        if broken is not None and _reach(listing, candidate, last) < lost:
            break
        try:
            return Start(load_checkpoint(store, candidate, listing, config), candidate)
        except (CorruptFileError, ObjectNotFoundError) as error:
            logger.warning("passing over the checkpoint of version %d: %s", candidate, error)
            if broken is None:
                broken, lost = error, candidate
    if listing.since:
        raise _NeedsOlderError
    if broken is not None and _reach(listing, -1, last) < lost:
        raise _lost(broken, lost)
    if 0 not in listing.versions:
        raise missing_first(store)
    return Start(None, -1)


def _lost(error: IndexTablesError, version: int) -> IndexTablesError:
    """The error of a checkpoint that nothing replaces; one that is gone has to be listed again."""
    if isinstance(error, CorruptFileError):
        return error
    return LostCheckpointError("a checkpoint was cleaned away", path=error.path, version=version)


def _incomplete(
    gone: VanishedError, version: int | None, listing: LogListing, store: Store
) -> IndexTablesError:
    """What is said of a file that a settled listing names and that is not there."""
    if version is not None and version < listing.newest:
        states = listing.states - {gone.version}
        return not_found(version, replace(listing, states=states), store)
    return CorruptFileError(
        "the newest checkpoint is incomplete and no other file of the log replaces it",
        path=gone.path,
        version=gone.version,
        hint=REMEDY,
    )


def _reach(listing: LogListing, start: int, last: int) -> int:
    """How far the version files lead from ``start``, at most to ``last``."""
    run = listing.run_after(start)
    return min(last, run[-1] if run else start)


def missing_first(store: Store) -> CorruptFileError:
    return CorruptFileError(
        "version 0 is missing and no checkpoint replaces it",
        path=version_path(0),
        version=0,
        hint=REMEDY,
    )


def not_found(version: int, listing: LogListing, store: Store) -> VersionNotFoundError:
    known = reachable_versions(list_log(store) if listing.since else listing)
    shown = ", ".join(_ranges(known)) or "none"
    return VersionNotFoundError(
        f"version {version} cannot be read",
        path=store.uri,
        version=version,
        hint=f"Versions that can be read: {shown}",
    )


def _ranges(versions: Sequence[int]) -> Iterator[str]:
    """``0, 5, 10 to 12``: the versions that are there, none that is not."""
    start = 0
    for i, version in enumerate(versions):
        if i + 1 == len(versions) or versions[i + 1] != version + 1:
            first = versions[start]
            yield str(version) if first == version else f"{first} to {version}"
            start = i + 1


def reachable_versions(listing: LogListing) -> list[int]:
    """Versions that can be rebuilt from what a full listing holds, ascending."""
    starts = sorted({*listing.states, *listing.checkpoints})
    found = {*starts}
    for start in (-1, *starts):
        found.update(listing.run_after(start))
    return sorted(found)


def read_versions(
    store: Store,
    config: Config,
    versions: Sequence[int],
    listing: LogListing,
    first: bytes | None = None,
) -> list[VersionActions]:
    """The actions of these versions, in the order given; ``first`` is version 0 if it is known."""
    paths = [version_path(version) for version in versions]
    known = {} if first is None else {version_path(0): first}
    missing = [path for path in paths if path not in known]
    read = read_files(store, missing, config["transaction.maxConcurrentReads"], config)
    answers = {**known, **dict(zip(missing, read, strict=True))}
    blobs = [answers[path] for path in paths]
    found = []
    for version, path, data in zip(versions, paths, blobs, strict=True):
        if isinstance(data, ObjectNotFoundError):
            raise VanishedError("the file was cleaned away", path=path, version=version)
        if isinstance(data, StorageError):
            raise data
        actions = decode_version(data, store.uri, version, config)
        modified = listing.versions[version].modified_ms if version in listing.versions else 0
        found.append(VersionActions(version, commit_time(actions, modified), actions))
    return found


def decode_version(data: bytes, root: str, version: int, config: Config) -> list[Action]:
    """The actions of a version file; its protocol is checked before anything else is read."""
    path = version_path(version)

    def check(protocol: Protocol) -> None:
        check_readable(protocol, path)

    checked = check if config["protocol.checkEnabled"] else None
    actions = decode_actions(data, root=root, path=path, version=version, check=checked)
    if version == 0:
        check_first(actions, path)
    return actions


def commit_time(actions: Sequence[Action], modified_ms: int) -> int:
    """When a version was committed: as its writer says, else when its file was written."""
    for action in actions:
        if isinstance(action, CommitInfo) and action.timestamp is not None:
            return action.timestamp
    created = next((a.created_time for a in actions if isinstance(a, Metadata)), None)
    first = not any(isinstance(action, AddFile) for action in actions)
    return created if created is not None and first else modified_ms


def check_first(actions: Sequence[Action], path: str) -> None:
    """Version 0 holds exactly one protocol and one metaData action."""
    said = (a for a in actions if not isinstance(a, CommitInfo | UnknownActions))
    kinds = [type(action) for action in said]
    if sorted(kind.KEY for kind in kinds) != [Metadata.KEY, Protocol.KEY]:
        listed = ", ".join(kind.KEY for kind in kinds) or "nothing"
        raise CorruptFileError(
            f"version 0 must hold exactly protocol and metaData, it holds {listed}",
            path=path,
            version=0,
            hint=REMEDY,
        )
