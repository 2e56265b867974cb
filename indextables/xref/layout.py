"""Where cross-reference files live: ``_xrefsplits/<4 letters>/xref-<id>.split``."""

from __future__ import annotations

import uuid

from indextables.storage.foldername import hash_directory


def new_xref_id() -> str:
    """A fresh id: 16 hex digits."""
    return uuid.uuid4().hex[:16]


def xref_path(xref_id: str, directory: str = "_xrefsplits") -> str:
    """The path of a cross-reference, relative to the table."""
    file_name = f"xref-{xref_id}.split"
    return f"{directory}/{hash_directory(file_name)}/{file_name}"
