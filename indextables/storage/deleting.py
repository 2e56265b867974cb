"""The one place that deletes: what may go, and the calls that make it go.

A table's files are named by logs that anybody with access to the folder may have written, and by
listings of folders that other tools share. So a path is never deleted because something *named* it.
The caller says what kind of file it means to delete, and the path must be one that this kind has in
a table's layout:

* a split: ``*.split`` outside of the log and of the index folder;
* a cross-reference: ``<folder>/<4 letters>/xref-<id>.split``;
* a key map: ``_keymap/<4 letters>/run-<16 hex digits>.kmap``;
* an index file: ``_colindex/<4 letters>/idx_<id>.idx``;
* deletion vectors: ``deletion_vector_<uuid>.bin`` in the table's folder or one below it;
* a checksum that Hadoop wrote beside a file: ``.<name>.crc``;
* the files of the log, each by its own name; version 0 never goes;
* a temporary file: ``.<id>.tmp``, with an id of ours.

Whatever is in doubt stays: a path that is not safe (absolute, ``..``, also behind percent signs
outside of partition values), a path of another kind, a path that is still live. Who deletes
splits, cross-references or index files has to say what is live (``UNCOMMITTED`` for files of its
own that no commit named). Live paths are compared loosely (percent signs, case, Unicode
composition), because a second name of a live file is still that file. On a file system no
deletion goes through a symbolic link (see ``LocalStore.delete``).

``delete`` refuses the whole call when one path is wrong: its callers made the names themselves, so
that is a mistake of ours. ``sift`` is for verbs that get names from a log: it says which paths
may go and why the others stay, so that the verb can report them.

Local work folders and caches go through ``remove_file`` and ``remove_tree``, which stay below a
folder that the caller names. ``tests/docs/test_reliability_lists.py`` finds deletions elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import unquote

from indextables.errors import UnsafePathError
from indextables.storage.paths import safe_path

if TYPE_CHECKING:
    from indextables.storage.base import Store

LOG_FOLDER = "_transaction_log"
INDEX_FOLDER = "_colindex"
KEYMAP_FOLDER = "_keymap"
_MOST_DECODINGS = 4


class Kind(Enum):
    """What a file is to a table; the value is the shape of its path."""

    SPLIT = rf"(?!(?:{LOG_FOLDER}|{INDEX_FOLDER})/)(?:[^/]+/)*[^/.][^/]*\.split"
    XREF = rf"(?!(?:{LOG_FOLDER}|{INDEX_FOLDER})/)(?:[^/]+/)+[a-z]{{4}}/xref-[^/]+\.split"
    SIDECAR = rf"{INDEX_FOLDER}/[a-z]{{4}}/idx_[^/]+\.idx"
    KEYMAP = rf"{KEYMAP_FOLDER}/[a-z]{{4}}/run-[0-9a-f]{{16}}\.kmap"
    VECTOR = (
        rf"(?!(?:{LOG_FOLDER}|{INDEX_FOLDER}|{KEYMAP_FOLDER})/)(?:[^/]+/)?"
        r"deletion_vector_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.bin"
    )
    CHECKSUM = rf"(?!{LOG_FOLDER}/)(?:[^/]+/)*\.[^/]+\.crc"
    VERSION = rf"{LOG_FOLDER}/(?!0{{20}})[0-9]{{20}}\.json"
    CHECKPOINT = rf"{LOG_FOLDER}/[0-9]{{20}}\.checkpoint\.json"
    PART = rf"{LOG_FOLDER}/[0-9]{{20}}\.checkpoint\.[0-9A-Za-z-]+\.[0-9]{{1,10}}\.json"
    STATE = rf"{LOG_FOLDER}/state-v[0-9]{{20}}/[^/]+"
    MANIFEST = rf"{LOG_FOLDER}/(?:manifests|state-v[0-9]{{20}})/[^/]+\.avro"
    TEMPORARY = r"(?:[^/]+/)*\.(?:[a-z]+-)?[0-9a-f]{32}\.tmp"

    def has(self, path: str) -> bool:
        """Does a path have the shape of this kind?"""
        return re.fullmatch(self.value, path, re.S) is not None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A path that stays, and why."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path!r}: {self.why}"


class Live:
    """Paths that must stay, in any letter case or Unicode form."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._keys = {_key(path) for path in paths}

    def __contains__(self, path: str) -> bool:
        return _key(path) in self._keys


UNCOMMITTED = Live(())
"""For files of this process that no commit has named: nothing of the kind can be live."""
_MAY_BE_LIVE = frozenset((Kind.SPLIT, Kind.XREF, Kind.SIDECAR, Kind.KEYMAP, Kind.VECTOR))


def sift(
    kinds: Kind | Collection[Kind], paths: Iterable[str], live: Live | None = None
) -> tuple[list[str], list[Refusal]]:
    """Which of these paths may be deleted as files of these kinds, and why the others stay."""
    shapes = (kinds,) if isinstance(kinds, Kind) else tuple(kinds)
    if live is None and not _MAY_BE_LIVE.isdisjoint(shapes):
        raise TypeError("a deletion of splits or their indexes says which of them are live")
    allowed: list[str] = []
    refused: list[Refusal] = []
    for path in paths:
        why = _objection(shapes, path, live or UNCOMMITTED)
        if why is None:
            allowed.append(path)
        else:
            refused.append(Refusal(path, why))
    return allowed, refused


def delete(
    store: Store, kinds: Kind | Collection[Kind], paths: Iterable[str], live: Live | None = None
) -> None:
    """Delete files of a table; one path that may not go refuses them all."""
    allowed, refused = sift(kinds, paths, live)
    if refused:
        raise UnsafePathError(
            f"refusing to delete {refused[0]}",
            path=store.uri,
            hint="Nothing was deleted. Run DOCTOR; if the log does not name this path, report it",
        )
    if allowed:
        store.delete(allowed)


def delete_state_folder(store: Store, folder: str) -> None:
    """Remove the empty folder of a state; only file systems have one, and only empty ones go."""
    place = store.local_path(folder)
    if place is not None and re.fullmatch(rf"{LOG_FOLDER}/state-v[0-9]{{20}}", folder):
        with contextlib.suppress(OSError):
            os.rmdir(place)


def _objection(shapes: Sequence[Kind], path: str, live: Live) -> str | None:
    try:
        safe_path(path)
    except UnsafePathError:
        return "it is not a path inside a table"
    if _hides_a_step_up(path):
        return "it has a '.' or '..' segment once it is decoded"
    if not any(kind.has(path) for kind in shapes):
        names = " or ".join(kind.name.lower() for kind in shapes)
        return f"it is not where a table keeps a {names}"
    return "it is live" if path in live else None


def _hides_a_step_up(path: str) -> bool:
    """Is a segment ``.`` or ``..`` once it is decoded? A partition's value may be anything."""
    return any("=" not in segment and _decodes_to_dots(segment) for segment in path.split("/"))


def _decodes_to_dots(segment: str) -> bool:
    for _ in range(_MOST_DECODINGS):
        if not {".", ".."}.isdisjoint(re.split(r"[/\\]", segment)):
            return True
        decoded = unquote(segment)
        if decoded == segment:
            return False
        segment = decoded
    return True


def _key(path: str) -> str:
    if "%" in path:
        path = unquote(path)
    return path.casefold() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


# -- local files that are no part of a table -------------------------------------------------------


def remove_file(path: str | os.PathLike[str], below: str | os.PathLike[str]) -> bool:
    """Remove a file in a folder of ours; ``False`` when it is not there or may not go."""
    if not _is_below(path, below):
        return False
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def remove_tree(path: str, below: str) -> None:
    """Remove a folder of ours with all that is in it; links are removed, not followed."""
    if _is_below(path, below) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)


def _is_below(path: str | os.PathLike[str], below: str | os.PathLike[str]) -> bool:
    folder = os.path.realpath(os.path.dirname(os.fspath(path)))
    root = os.path.realpath(below)
    return folder == root or folder.startswith(root.rstrip(os.sep) + os.sep)
