"""The index of a merged split, from the indexes of its sources.

The sources are put end to end, without the rows that were dropped: keys are merged as sorted runs
and rows move by what comes before them. The result is, byte for byte, what reading the rows again
would give. Where a source has no index of the column, or one of another kind, or one that cannot be
read, the answer is ``None`` and the index is built from rows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.config import Config
from indextables.splits.lookup.colindex.encode import encode_index
from indextables.splits.lookup.colindex.opening import UNREADABLE, IndexRefs, open_index
from indextables.splits.lookup.colindex.postings import Postings, merge_postings
from indextables.splits.lookup.colindex.values import kind_of
from indextables.splits.read.reader import SplitReader
from indextables.storage.base import Store
from indextables.storage.machine import refuse_to_judge

LOG = logging.getLogger("indextables.columnindex")


def merged_member(
    store: Store,
    sources: Sequence[Any],
    column: str,
    dtype: pa.DataType,
    refs: IndexRefs,
    config: Config,
    dropped: Mapping[str, NDArray[np.uint32]],
) -> bytes | None:
    """The index a split carries that holds the rows of some others; ``dropped`` rows by path."""
    parts = []
    for source in sources:
        part = _postings(store, source, column, dtype, refs, config)
        if part is None:
            return None
        gone = dropped.get(source.path)
        parts.append(part if gone is None or len(gone) == 0 else part.without(gone))
    return encode_index(merge_postings(parts), config) if parts else None


def _postings(
    store: Store,
    source: Any,
    column: str,
    dtype: pa.DataType,
    refs: IndexRefs,
    config: Config,
) -> Postings | None:
    try:
        reader = SplitReader.open(store, source, config=config)
        index, _ = open_index(store, reader, column, refs, config)
        if index is None or index.kind is not kind_of(dtype):
            return None
        return index.flat()
    except UNREADABLE as error:
        refuse_to_judge(error, path=source.path)
        LOG.warning("the index of '%s' of %s is rebuilt: %s", column, source.path, error)
        return None
