"""The bytes of an index, in the configured format."""

from __future__ import annotations

import pyarrow as pa

from indextables.config import Config
from indextables.splits.lookup.colindex import bbidx1, compact
from indextables.splits.lookup.colindex.layout import split_number
from indextables.splits.lookup.colindex.postings import Postings, build_postings


def encode_index(postings: Postings, config: Config, split: str | None = None) -> bytes:
    """The bytes of an index in the configured format, for a split's bundle or for a file."""
    number = 0 if split is None else split_number(split)
    if config["columnIndex.format"] == "bbidx1":
        return bbidx1.encode(postings, number)
    size = min(int(config["columnIndex.blockSize"]), compact.MOST_BLOCK_BYTES)
    extra = {} if split is None else {"split": number}
    return compact.encode(postings, block_bytes=size, extra=extra)


def build_member(column: pa.ChunkedArray, config: Config) -> bytes:
    """The index a split carries inside."""
    return encode_index(build_postings(column), config)
