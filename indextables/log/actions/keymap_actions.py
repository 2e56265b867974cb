"""The actions of key maps: which files answer for which splits, and which no longer do.

A key map covers up to a million splits, so its action does not list them: the file does, and the
action carries their number and a digest of their paths, by which a reader knows that file and log
speak of the same splits. Readers that do not know these actions read the table without key maps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from indextables.log.actions import fields as f
from indextables.log.actions.fields import Field
from indextables.log.actions.spelled import Spelled


@dataclass(frozen=True, slots=True)
class AddKeyMap(Spelled):
    """A key map becomes usable."""

    path: str
    size: int
    splits: int
    digest: str
    created_time: int = 0
    build_duration_ms: int = 0
    tail: int = 0
    """Bytes at the end of the file that open it; 0: unknown."""
    opening: str = field(default="", repr=False)
    """Those bytes themselves in base64, where they are few: the log opens the map."""
    shard: int = 0
    shard_bits: int = 0
    """The file holds the keys whose hashes begin with ``shard`` in so many bits."""

    KEY: ClassVar[str] = "addKeyMap"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "path", f.name, required=True),
        Field("size", "size", f.natural, required=True),
        Field("splits", "splits", f.natural, required=True),
        Field("digest", "digest", f.text, required=True),
        Field("created_time", "createdTime", f.integer),
        Field("build_duration_ms", "buildDurationMs", f.integer),
        Field("tail", "tail", f.natural),
        Field("opening", "opening", f.text),
        Field("shard", "shard", f.natural),
        Field("shard_bits", "shardBits", f.natural),
    )


@dataclass(frozen=True, slots=True)
class RemoveKeyMap(Spelled):
    """A key map is no longer to be used; its file stays until it is purged."""

    path: str
    deletion_timestamp: int
    reason: str = "replaced"

    KEY: ClassVar[str] = "removeKeyMap"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "path", f.name, required=True),
        Field("deletion_timestamp", "deletionTimestamp", f.integer, required=True),
        Field("reason", "reason", f.text),
    )
