"""Names of the files of a log, and what a listing of them says.

The log is the folder ``_transaction_log`` below the table's root:

* ``00000000000000000042.json``                         version 42: twenty digits, nothing else
* ``00000000000000000040.checkpoint.json``              JSON checkpoint, or a manifest of parts
* ``00000000000000000040.checkpoint.<id>.<part>.json``  one part
* ``state-v00000000000000000040/``                      Avro state
* ``manifests/``, ``_last_checkpoint``                  shared manifests, and the hint

Any other name is ignored. Twenty digits can spell numbers above 2**63-1, which no version reaches
and other implementations cannot hold; listings skip them, so nothing may be written there: a commit
after the last version is refused.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import CommitFailedError, ConfigError
from indextables.storage.base import ObjectInfo, Store
from indextables.storage.deleting import LOG_FOLDER

LOG_DIR = LOG_FOLDER
HINT_PATH = f"{LOG_DIR}/_last_checkpoint"
LARGEST = (1 << 63) - 1
_VERSION = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.json")
_PART = re.compile(r"([0-9]{20})\.checkpoint\.([0-9A-Za-z-]+)\.([0-9]{1,10})\.json")
_STATE = re.compile(r"state-v([0-9]{20})")


def digits(version: int) -> str:
    """A version as file names spell it."""
    return f"{version:020d}"


def next_version(version: int, path: str) -> int:
    """The version after ``version``; there is none after the last one that listings find."""
    if version >= LARGEST:
        raise CommitFailedError(
            f"version {version} is the last one a log can hold",
            path=path,
            version=version,
            hint="Nothing was written; copy the table to a new path and go on there",
        )
    return version + 1


def asked_version(version: Any) -> int:
    """A version as a caller gives it: a whole number, nothing that merely looks like one."""
    try:
        number = operator.index(version)
    except TypeError:
        number = None
    if number is None or isinstance(version, bool):
        raise ConfigError(
            f"{version!r} is not a version", hint="Versions are whole numbers from 0 on: version=7"
        )
    return number


def version_path(version: int) -> str:
    return f"{LOG_DIR}/{digits(version)}.json"


def checkpoint_path(version: int) -> str:
    return f"{LOG_DIR}/{digits(version)}.checkpoint.json"


def part_name(version: int, checkpoint_id: str, part: int) -> str:
    return f"{digits(version)}.checkpoint.{checkpoint_id}.{part:05d}.json"


def state_dir(version: int) -> str:
    return f"{LOG_DIR}/state-v{digits(version)}"


@dataclass(frozen=True, slots=True)
class PartFile:
    """A part of a multi-part checkpoint, read from its name."""

    version: int
    checkpoint_id: str
    part: int
    info: ObjectInfo


@dataclass(frozen=True, slots=True)
class LogListing:
    """What the log folder holds at and above ``since``; not ``complete``: only the first of it."""

    since: int = 0
    versions: Mapping[int, ObjectInfo] = field(default_factory=dict)
    checkpoints: Mapping[int, ObjectInfo] = field(default_factory=dict)
    parts: tuple[PartFile, ...] = ()
    states: frozenset[int] = frozenset()
    complete: bool = True

    @property
    def is_empty(self) -> bool:
        return not (self.versions or self.checkpoints or self.states)

    @property
    def newest(self) -> int:
        """The highest version any file speaks of, -1 when there is none."""
        return max((*self.versions, *self.checkpoints, *self.states), default=-1)

    def run_after(self, version: int) -> list[int]:
        """The version files that follow ``version`` without a gap."""
        run = []
        while (version := version + 1) in self.versions:
            run.append(version)
        return run


def list_log(store: Store, since: int = 0, most_pages: int | None = None) -> LogListing:
    """A fresh listing; with ``since`` the files of older versions are not asked for."""
    versions: dict[int, ObjectInfo] = {}
    checkpoints: dict[int, ObjectInfo] = {}
    parts: list[PartFile] = []
    after = f"{LOG_DIR}/{digits(since)}" if since > 0 else None
    found = store.list_folder(LOG_DIR, after, most_pages)
    for info in found.files:
        name = info.path.rpartition("/")[2]
        if (version := _numbered(_VERSION, name)) is not None:
            versions[version] = info
        elif (version := _numbered(_CHECKPOINT, name)) is not None:
            checkpoints[version] = info
        elif (match := _PART.fullmatch(name)) and int(match[1]) <= LARGEST:
            parts.append(PartFile(int(match[1]), match[2], int(match[3]), info))
    states = frozenset(v for v in _states(found.folders) if v >= since)
    return LogListing(since, versions, checkpoints, tuple(parts), states, found.complete)


def list_states(store: Store) -> list[int]:
    """Versions that have a state folder, ascending."""
    return _states(store.list_dirs(LOG_DIR))


def _states(folders: Sequence[str]) -> list[int]:
    names = (path.rstrip("/").rpartition("/")[2] for path in folders)
    found = (_numbered(_STATE, name) for name in names)
    return sorted(version for version in found if version is not None)


def _numbered(pattern: re.Pattern[str], name: str) -> int | None:
    match = pattern.fullmatch(name)
    if match is None or int(match[1]) > LARGEST:
        return None
    return int(match[1])
