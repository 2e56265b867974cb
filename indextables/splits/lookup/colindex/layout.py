"""Where index files live, and how a split is numbered in them.

An index built after its split was written is a file beside it:
``_colindex/<4 letters>/idx_<index id>_<split id>.idx``. The split id is the uuid in the split's
name, or a hash of its path where there is none. The name depends on nothing else, so two builders
of the same index write the same file, and it can be found again without the log.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from indextables.errors import IndexTablesError
from indextables.native import fxhash64
from indextables.storage.deleting import INDEX_FOLDER
from indextables.storage.foldername import hash_directory

DIRECTORY = INDEX_FOLDER
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")


def split_number(split_path: str) -> int:
    """The block id of a split in row ids."""
    return fxhash64(split_path)


def split_id(split_path: str) -> str:
    """What distinguishes a split in file names."""
    found = _UUID.findall(split_path.rsplit("/", 1)[-1].lower())
    return found[-1] if found else f"{split_number(split_path):016x}"


def sidecar_path(index_id: str, split_path: str) -> str:
    """The index file of a split, relative to the table."""
    name = f"idx_{index_id}_{split_id(split_path)}.idx"
    return f"{DIRECTORY}/{hash_directory(name)}/{name}"


def new_index_id() -> str:
    """A fresh id: 8 hex digits."""
    return uuid.uuid4().hex[:8]


@dataclass(frozen=True, slots=True)
class VersionedBlockId:
    """A block and its version, printed ``2a@v1.0``.

    Splits never change, so for a table's splits the version is the one that added them.
    """

    block_id: int
    version: str

    def __str__(self) -> str:
        return f"{self.block_id:02x}@{self.version}"

    @classmethod
    def parse(cls, text: str) -> VersionedBlockId:
        block, at, version = text.partition("@")
        if not at:
            raise IndexTablesError(f"'{text}' has no version", hint="Write it as 2a@v1.0")
        try:
            return cls(int(block, 16), version)
        except ValueError:
            raise IndexTablesError(f"Invalid hex string '{block}'") from None
