"""Which paths a log may name: only places inside its own table.

Writers spell a split's path relative to the table's root, some older ones absolutely. An absolute
path inside the root becomes relative; one that leaves the root is ``UnsafePathError``, because a
log that could name any file could read or delete any file.
"""

from __future__ import annotations

import re

from indextables.errors import UnsafePathError
from indextables.storage.base import safe_path

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/+")
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "wasb": "az", "wasbs": "az", "abfss": "az"}
_SAME_STORE |= {"abfs": "az", "local": "file"}


def table_path(path: str, root: str) -> str:
    """``path`` relative to the table at ``root`` (the uri of its store)."""
    if path.startswith("/") or _SCHEME.match(path):
        return _inside(path, root)
    return safe_path(path)


def _inside(path: str, root: str) -> str:
    scheme, place = _split(path)
    root_scheme, root_place = _split(root)
    if scheme != root_scheme or not place.startswith(root_place.rstrip("/") + "/"):
        raise UnsafePathError(
            f"the log names {path!r}, which is outside the table",
            path=root,
            hint="Paths in a log are relative to its table or below its root; a table that was "
            "moved must keep its folder layout, else restore the log from a copy",
        )
    return safe_path(place[len(root_place.rstrip("/")) + 1 :])


def _split(path: str) -> tuple[str, str]:
    """Scheme (a bare path is a local file) and the place without leading slashes."""
    match = _SCHEME.match(path)
    if match is None:
        return "file", path.lstrip("/")
    scheme = match[1].lower()
    return _SAME_STORE.get(scheme, scheme), path[match.end() :]
