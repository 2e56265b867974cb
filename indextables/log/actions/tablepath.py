"""Which paths a log may name: only places inside its own table.

Writers spell a split's path relative to the table's root, some older ones absolutely. An absolute
path inside the root becomes relative; one that leaves the root is ``UnsafePathError``, because a
log that could name any file could read or delete any file.
"""

from __future__ import annotations

import re

from indextables.errors import UnsafePathError
from indextables.storage.base import safe_path
from indextables.storage.client_options import scheme_of

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/+")


def table_path(path: str, root: str) -> str:
    """``path`` relative to the table at ``root`` (the uri of its store)."""
    if not path.startswith("/") and not _SCHEME.match(path):
        return safe_path(path)
    folder = _place(root).rstrip("/") + "/"
    place = _place(path)
    if scheme_of(path) != scheme_of(root) or not place.startswith(folder):
        raise UnsafePathError(
            f"the log names {path!r}, which is outside the table",
            path=root,
            hint="Paths in a log are relative to its table or below its root; a table that was "
            "moved must keep its folder layout, else restore the log from a copy",
        )
    return safe_path(place[len(folder) :])


def _place(path: str) -> str:
    """A uri without scheme and leading slashes."""
    match = _SCHEME.match(path)
    return (path[match.end() :] if match else path).lstrip("/")
