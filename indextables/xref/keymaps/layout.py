"""Where key maps live: ``_keymap/<4 letters>/run-<16 hex digits>.kmap``."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from indextables.native import xxh64
from indextables.storage.deleting import KEYMAP_FOLDER
from indextables.storage.foldername import hash_directory


def new_keymap_path() -> str:
    """The path of a fresh key map, relative to the table."""
    name = f"run-{uuid.uuid4().hex[:16]}.kmap"
    return f"{KEYMAP_FOLDER}/{hash_directory(name)}/{name}"


def digest_of(paths: Iterable[str]) -> str:
    """By which the log knows that a file covers the splits it was committed for."""
    return f"{xxh64(chr(10).join(paths).encode()):016x}"
