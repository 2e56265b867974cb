"""A version in a path: ``logs@v12`` and ``logs@20260131`` are the table ``logs`` as it was.

After ``@`` stands ``v`` with a version, or a moment in UTC: ``yyyyMMdd``, with ``HHmm``, ``ss`` and
milliseconds as far as they are known. A table whose own path ends like that is found first, so
nothing that is there changes its meaning. Such a path is for reading: old versions are not written.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass

from indextables.errors import ConfigError

_MOMENT = r"\d{8}(?:\d{4}(?:\d{2}(?:\d{3})?)?)?"
_PINNED = re.compile(rf"(?P<path>.+[^/])@(?:v(?P<version>\d{{1,18}})|(?P<moment>{_MOMENT}))/?")
_FORMS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S", 17: "%Y%m%d%H%M%S%f"}


@dataclass(frozen=True, slots=True)
class Pinned:
    """A path without its version, and the version or moment that was in it."""

    path: str
    version: int | None = None
    timestamp: datetime.datetime | None = None

    @property
    def is_pinned(self) -> bool:
        return self.version is not None or self.timestamp is not None


def pinned(path: str, exists: Callable[[str], bool]) -> Pinned:
    """The table and version that a path means; ``exists`` says whether a table is at a path."""
    match = _PINNED.fullmatch(path)
    if match is None or exists(path):
        return Pinned(path)
    if match["version"] is not None:
        return Pinned(match["path"], int(match["version"]))
    return Pinned(match["path"], timestamp=_moment(match["moment"], path))


def _moment(digits: str, path: str) -> datetime.datetime:
    try:
        found = datetime.datetime.strptime(digits, _FORMS[len(digits)])
    except ValueError:
        raise ConfigError(
            f"'{digits}' is no moment",
            path=path,
            hint="Write path@yyyyMMdd, path@yyyyMMddHHmmss, or path@v12 for a version",
        ) from None
    return found.replace(tzinfo=datetime.UTC)


def refuse_other(at: Pinned, version: object, timestamp: object) -> None:
    """A version in the path and another beside it contradict each other."""
    if at.is_pinned and (version is not None or timestamp is not None):
        raise ConfigError(
            "the path names a version, and another version or timestamp is given",
            path=at.path,
            hint="Leave one of them out",
        )


def refuse_write(path: str) -> None:
    """Refuse to write an old version; called where a table is to be made at ``path``."""
    match = _PINNED.fullmatch(path)
    if match is not None:
        raise ConfigError(
            f"'{path}' names an old version, which cannot be written",
            path=path,
            hint=f"Write to '{match['path']}', or RESTORE the version first",
        )
