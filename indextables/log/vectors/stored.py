"""Where a table keeps its deletion vectors: small ones in the log, larger ones many to a file.

A vector is compared with what the log says of it whenever it is read: the frame's checksum, the
number of rows, and that each row is one the split has. What was read stays in memory, by the
vector's own id: another set of rows is always another vector.
"""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.errors import CorruptFileError, ObjectNotFoundError
from indextables.log.actions import DeletionVector
from indextables.log.actions.vector import vector_file
from indextables.log.vectors.codec import (
    FRAME_BYTES,
    Rows32,
    read_vector,
    vector_bytes,
    vector_file_bytes,
)
from indextables.lru import LRU
from indextables.storage.base import Store

KEPT_BYTES = 64 << 20
REMEDY = "Run DOCTOR; RESTORE a version from before the deletion, or bring the file back"


def deleted_rows(store: Store, vector: DeletionVector, num_rows: int, split: str) -> Rows32:
    """The rows of ``split`` (which has ``num_rows``) that are gone, ascending."""
    key = (store.identity, vector.unique_id, vector.size, vector.cardinality, num_rows)
    return _kept.load(
        key, lambda: _checked(_data_of(store, vector, split), vector, num_rows, split)
    )


def _data_of(store: Store, vector: DeletionVector, split: str) -> bytes:
    path = vector.path
    if path is None:
        return vector.inline_data
    start = vector.offset or 0
    try:
        (raw,) = store.read_ranges(path, [(start, start + vector.size + FRAME_BYTES)])
    except ObjectNotFoundError as error:
        raise ObjectNotFoundError(
            f"the file with the deletion vector of {split} is not there", path=path, hint=REMEDY
        ) from error
    if len(raw) != vector.size + FRAME_BYTES:
        raise CorruptFileError(f"the deletion vector of {split} ends early", path=path)
    return bytes(raw)


def _checked(data: bytes, vector: DeletionVector, num_rows: int, split: str) -> Rows32:
    try:
        rows = read_vector(data, most=num_rows)
    except CorruptFileError as error:
        raise _wrong(vector, split, error.reason) from error
    if len(rows) != vector.cardinality:
        raise _wrong(vector, split, f"it holds {len(rows)} rows, not {vector.cardinality}")
    if len(rows) and int(rows[-1]) >= num_rows:
        raise _wrong(vector, split, f"it names row {rows[-1]} of {num_rows}")
    found = rows.astype(np.uint32)
    found.flags.writeable = False
    return found


def _wrong(vector: DeletionVector, split: str, reason: str) -> CorruptFileError:
    return CorruptFileError(
        f"the deletion vector of {split} is damaged: {reason}",
        path=vector.path or split,
        hint=REMEDY,
    )


def store_vectors(
    store: Store, rows_by_split: Mapping[str, NDArray[Any]], most_inline: int
) -> dict[str, DeletionVector]:
    """Write the vectors of some splits: those of up to ``most_inline`` bytes go into the log."""
    datas = {path: vector_bytes(rows) for path, rows in rows_by_split.items()}
    found = {
        path: DeletionVector.inline(data, len(rows_by_split[path]))
        for path, data in datas.items()
        if len(data) <= most_inline
    }
    large = [path for path in datas if path not in found]
    if large:
        file_id = uuid.uuid4()
        content, offsets = vector_file_bytes(datas[path] for path in large)
        store.put(vector_file(file_id), content)
        for path, offset in zip(large, offsets, strict=True):
            size, count = len(datas[path]), len(rows_by_split[path])
            found[path] = DeletionVector.stored(file_id, offset, size, count)
    return found


_kept: LRU[Hashable, Rows32] = LRU(most_bytes=KEPT_BYTES, size_of=lambda rows: rows.nbytes)
