"""Names of a split's members, and who builds those that other parts of the house own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ROWS = "rows.bin"
ROWS_DIRECTORY = "rows.dir"
FUSE8 = "fuse.filter"
FUSE16 = "fuse16.filter"
ZONES = "zones.bin"
KEYS = "keys.bin"
DOC_MAPPING = "_doc_mapping.json"

ColumnIndexBuilder = Callable[[Any, Any], bytes]
"""``build(column: pa.ChunkedArray, config) -> bytes`` of one column of one split."""

_column_index_builders: dict[str, ColumnIndexBuilder] = {}


def hash_table(column: str) -> str:
    return f"hash/{column}.tbl"


def codes(column: str) -> str:
    return f"codes/{column}.bin"


def column_index(column: str) -> str:
    return f"colidx/{column}.idx"


def register_column_index_builder(kind: str, builder: ColumnIndexBuilder) -> None:
    """Let split writers build column indexes; ``kind`` is a value of ``columnIndex.format``."""
    _column_index_builders[kind] = builder


def column_index_builder(kind: str) -> ColumnIndexBuilder | None:
    if kind not in _column_index_builders:
        from indextables.columnindex import build_member

        register_column_index_builder("bbidx1", build_member)
        register_column_index_builder("bbidx2", build_member)
    return _column_index_builders.get(kind)
