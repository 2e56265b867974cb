"""Names of a split's members."""

from __future__ import annotations

ROWS = "rows.bin"
ROWS_DIRECTORY = "rows.dir"
FUSE8 = "fuse.filter"
FUSE16 = "fuse16.filter"
ZONES = "zones.bin"
WORDS = "words.bin"
WORDS_DIRECTORY = "words.dir"
KEYS = "keys.bin"
DOC_MAPPING = "_doc_mapping.json"
SOURCES = "sources.json"


def hash_table(column: str) -> str:
    return f"hash/{column}.tbl"


def codes(column: str) -> str:
    return f"codes/{column}.bin"


def column_index(column: str) -> str:
    return f"colidx/{column}.idx"
