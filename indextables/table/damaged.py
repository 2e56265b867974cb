"""Splits that are missing or damaged, where the rows are elsewhere.

A split of a companion holds an index alone. Without it an answer takes longer and is the same, so a
part that is gone or does not fit its checksum is noted in the log, and the rows are read where
they are. Splits that hold their rows have nothing to fall back on: there it is an error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from indextables.config import Config
from indextables.errors import CorruptFileError, ObjectNotFoundError
from indextables.splits.read.access import SplitScan
from indextables.splits.read.reader import SplitReader
from indextables.splits.read.source import SplitRef
from indextables.storage.base import Store

LOG = logging.getLogger("indextables.read")
R = TypeVar("R")


def open_sound(store: Store, split: SplitRef, config: Config, *, whole: bool) -> SplitReader:
    """A split; of one that is not there or damaged the rows alone, if they are elsewhere."""
    try:
        return SplitReader.open(store, split, config=config, whole=whole)
    except (CorruptFileError, ObjectNotFoundError) as error:
        rows = split.without_split()
        if rows is None:
            raise
        _tell(split, error)
        return SplitReader.open(store, rows, config=config)


def soundly(scan: SplitScan, run: Callable[[SplitScan], R]) -> R:
    """``run`` on a split, or on its rows alone if the split turns out to be damaged."""
    try:
        return run(scan)
    except (CorruptFileError, ObjectNotFoundError) as error:
        split, rows = scan.reader.ref, scan.reader.ref.without_split()
        if rows is None or error.path != split.path:
            raise
        _tell(split, error)
        return run(scan.on(scan.reader.opened_as(rows)))


def _tell(split: SplitRef, error: Exception) -> None:
    LOG.warning("%s is not used, its files are read: %s", split.path, error)
