"""A checksum of the table in every commit, compared whenever versions are replayed.

Each commit says what the table holds after it: one number over all live files, made of the path,
the size and the rows of each. The sum does not depend on an order and follows from the one before
by the files that came and went, so a writer pays for its own files. A reader that applied versions
to a checkpoint compares the last one's number with what it holds. A lost action, a checkpoint that
left a file out, a version file put back from an old copy are then an error, where they would
otherwise be rows too few or too many.

A large state whose files are read as queries need them (``unread``) is not compared.

Commits of other programs carry none and are not compared; where another program made a version of
the same number (``disputed``), nothing is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from indextables.config import Config
from indextables.errors import CorruptFileError
from indextables.log.actions import CommitInfo
from indextables.log.read.facts import Fact
from indextables.log.read.versions import version_path

if TYPE_CHECKING:
    from indextables.log.read.columns import Segment
    from indextables.log.read.snapshot import Snapshot, VersionActions

ENABLED = "transaction.checksum.enabled"
HASHES: Fact[None, npt.NDArray[np.uint64]] = Fact()
_SIZE, _ROWS, _ALL = (
    np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
)


def checksum_of(snapshot: Snapshot) -> str:
    """The checksum of all live files, 16 hex digits."""
    total = np.uint64(0)
    with np.errstate(over="ignore"):
        for segment, mask in zip(snapshot.segments, snapshot.live, strict=True):
            each = HASHES.of(segment, None, partial(_of_files, segment))
            total += (each if mask is None else each[mask]).sum(dtype=np.uint64)
    return f"{int(total):016x}"


def _of_files(segment: Segment) -> npt.NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        sizes = segment.ints("size").astype(np.uint64) * _SIZE
        rows = segment.ints("numRecords").astype(np.uint64) * _ROWS
        mixed = segment.path_hashes() ^ sizes ^ rows
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _ALL
        found: npt.NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(32))
    return found


def verify(snapshot: Snapshot, changes: Sequence[VersionActions], config: Config) -> Snapshot:
    """The snapshot, if it holds what the last of its versions says."""
    if not changes or snapshot.disputed or snapshot.is_unread or not config[ENABLED]:
        return snapshot
    said = next((a.state_checksum for a in changes[-1].actions if isinstance(a, CommitInfo)), None)
    if said is None or said == checksum_of(snapshot):
        return snapshot
    raise CorruptFileError(
        f"the log does not add up: version {snapshot.version} says that the table's files have the "
        f"checksum {said}, replaying it gives {checksum_of(snapshot)}",
        path=version_path(snapshot.version),
        version=snapshot.version,
        hint="A version or checkpoint was lost or changed: restore it from a copy. "
        f"spark.indextables.{ENABLED}=false reads the table as it is",
    )
