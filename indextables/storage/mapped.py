"""Local files in memory, read-only, without a descriptor that stays open."""

from __future__ import annotations

import os

from indextables.native._mapped import MappedFile


def map_file(path: str | os.PathLike[str]) -> memoryview:
    """The whole file; it is unmapped when the last view of it is gone."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return memoryview(MappedFile(fd, os.fstat(fd).st_size))
    finally:
        os.close(fd)
