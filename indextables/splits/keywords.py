r"""Exact strings in the index: one shared field, one term for each column and value.

Handing tantivy one text a document is far cheaper than one a column. So the values of all exact
string columns of a row, and a mark for each column that is null in it, are joined into one text
that is cut at blanks:

* ``f3=value`` says that the column numbered 3 holds the value, ``f3!`` that it is null;
* blanks and backslashes in values are written as ``\s \t \n \f \r \\``: a term is one value.

A column where that happened is marked ``escaped``: patterns are then laid against its values read
off the dictionary, not against the terms themselves.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.expr.analyzers import MAX_TERM_BYTES
from indextables.splits.info import IndexField

KEYS = "keys"
_ESCAPES = {"\\": "\\\\", " ": "\\s", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_TABLE = str.maketrans(_ESCAPES)
_PLAIN = {code: char for char, code in _ESCAPES.items()}
_NEEDS_ESCAPE = r"[\\ \t\n\f\r]"
_CODE = re.compile(r"\\.", re.DOTALL)


def value_prefix(field: IndexField) -> str:
    return f"{field.name}="


def null_mark(field: IndexField) -> str:
    return f"{field.name}!"


def escape_value(value: str) -> str:
    return value.translate(_TABLE)


def unescape_value(text: str) -> str:
    return _CODE.sub(lambda m: _PLAIN[m[0]], text)


def row_texts(batch: pa.RecordBatch, fields: list[IndexField]) -> tuple[Any, list[IndexField]]:
    """The text of each row (``None`` if no row has one), and what was noticed."""
    parts, noticed = [], []
    for field in fields:
        column = batch.column(field.column)
        nulls = len(column) if pa.types.is_null(column.type) else column.null_count
        if field.kind == "term":
            texts, field = _values(column, field)
            parts.append(pc.fill_null(texts, null_mark(field)) if nulls else texts)
        elif nulls:
            parts.append(pc.if_else(column.is_null(), null_mark(field), ""))
        noticed.append(field)
    if not parts:
        return None, noticed
    return pc.binary_join_element_wise(*parts, " "), noticed


def _values(column: Any, field: IndexField) -> tuple[Any, IndexField]:
    if pc.any(pc.match_substring_regex(column, _NEEDS_ESCAPE)).as_py():
        for char, code in _ESCAPES.items():
            column = pc.replace_substring(column, char, code)
        field = replace(field, escaped=True)
    texts = pc.binary_join_element_wise(pa.scalar(value_prefix(field)), column, "")
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    return texts, replace(field, complete=field.complete and longest <= MAX_TERM_BYTES)
