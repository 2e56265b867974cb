"""Where key maps live: ``_keymap/<4 letters>/run-<16 hex digits>.kmap``."""

from __future__ import annotations

import uuid

from indextables.storage.deleting import KEYMAP_FOLDER
from indextables.storage.foldername import hash_directory


def new_keymap_path() -> str:
    """The path of a fresh key map, relative to the table."""
    name = f"run-{uuid.uuid4().hex[:16]}.kmap"
    return f"{KEYMAP_FOLDER}/{hash_directory(name)}/{name}"
