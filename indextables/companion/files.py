"""Which files of the source a split of a companion covers, as the log and the split spell it.

A file is the same as before only if its path, its size and its token are; ``rows`` counts all its
rows, deleted ones included, so that the number of a row in the split is the number of rows of the
files before its own plus its position. Paths below the source's location are spelt relative to it:
a source that is copied as a whole keeps its companion.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from indextables.errors import CorruptFileError
from indextables.log.actions import AddFile
from indextables.sources.base import SourceFile

Key = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file as it was when it was indexed."""

    path: str
    size: int
    token: str
    rows: int

    def key(self, location: str) -> Key:
        """What ``SourceFile.key`` was."""
        return absolute(self.path, location), self.size, self.token

    @property
    def text(self) -> str:
        return json.dumps([self.path, self.size, self.token, self.rows], separators=(",", ":"))


def indexed(file: SourceFile, rows: int, location: str) -> IndexedFile:
    """A file of the source, of which ``rows`` rows were indexed."""
    return IndexedFile(relative(file.path, location), file.size, file.token, rows)


def relative(path: str, location: str) -> str:
    """A path as it is written down."""
    root = location.rstrip("/") + "/"
    return path[len(root) :] if path.startswith(root) else path


def absolute(path: str, location: str) -> str:
    """A path that was written down, as it is opened."""
    is_whole = "://" in path or path.startswith("/")
    return path if is_whole else f"{location.rstrip('/')}/{path}"


def files_of(add: AddFile) -> list[IndexedFile]:
    """The files that a split covers, in the order of its rows."""
    return [_parsed(text, add.path) for text in add.companion_source_files or ()]


def _parsed(text: str, split: str) -> IndexedFile:
    try:
        path, size, token, rows = json.loads(text)
        found = IndexedFile(str(path), int(size), str(token), int(rows))
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptFileError(
            f"companionSourceFiles does not parse: {error}",
            path=split,
            hint="Run DOCTOR on the companion, or build it again",
        ) from None
    if found.rows < 0 or found.size < 0:
        raise CorruptFileError("companionSourceFiles has a negative number", path=split)
    return found


def member(files: Iterable[IndexedFile]) -> bytes:
    """The member of a split that lists its files."""
    listed: list[Any] = [[f.path, f.size, f.token, f.rows] for f in files]
    return json.dumps({"files": listed}, separators=(",", ":"), ensure_ascii=False).encode()


def texts(files: Sequence[IndexedFile]) -> tuple[str, ...]:
    """The files as the log lists them."""
    return tuple(file.text for file in files)
