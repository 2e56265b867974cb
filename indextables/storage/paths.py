"""Which paths a store accepts, and which names are not objects.

Paths come from callers and from log files that anybody may have written, so they are checked in
one place before they reach a file system or a URL. A safe path is relative, ``/`` separated,
has no empty, ``.`` or ``..`` segment, no scheme, no NUL and encodes as UTF-8. Everything else is
``UnsafePathError``: a path is refused, never repaired, so two paths cannot name one object.

Names that start with ``.`` and end with ``.tmp`` are work in progress (or what a crash left of
it): listings skip them.
"""

from __future__ import annotations

import re
import uuid

from indextables.errors import UnsafePathError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_BAD_SEGMENTS = frozenset(("", ".", ".."))


def safe_path(path: str) -> str:
    """The path itself when it is safe, else ``UnsafePathError``."""
    if not isinstance(path, str) or not path:
        raise _unsafe(path, "it is empty")
    if path.startswith("/") or _SCHEME.match(path):
        raise _unsafe(path, "it is absolute")
    if "\0" in path:
        raise _unsafe(path, "it holds a NUL character")
    if not _BAD_SEGMENTS.isdisjoint(path.split("/")):
        raise _unsafe(path, "it has an empty, '.' or '..' segment")
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise _unsafe(path, "it is not valid Unicode") from None
    return path


def safe_folder(prefix: str) -> str:
    """A folder path without its trailing slash; the empty string is the root of the store."""
    return "" if prefix in ("", "/") else safe_path(prefix.removesuffix("/"))


def is_temporary(name: str) -> bool:
    """Whether a file name (or path) is work in progress that no reader may see."""
    last = name.rpartition("/")[2]
    return last.startswith(".") and last.endswith(".tmp")


def temporary_name(kind: str = "") -> str:
    """A fresh name that listings skip."""
    return f".{kind}{uuid.uuid4().hex}.tmp"


def _unsafe(path: object, why: str) -> UnsafePathError:
    return UnsafePathError(
        f"unsafe path {path!r}: {why}",
        hint="Paths inside a table are relative to its root and never leave it",
    )
