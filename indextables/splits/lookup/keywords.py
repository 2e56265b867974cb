r"""Exact strings in the index: one shared field, one term for each column and value.

Handing tantivy one text a document is far cheaper than one a column. So the values of all exact
string columns of a row, and a mark for each column that is null in it, are joined into one text
that is cut at blanks:

* ``f3=value`` says that the column numbered 3 holds the value, ``f3!`` that it is null;
* ``#7`` says that the row lies in zone 7, so that a range of numbers narrows a search;
* blanks and backslashes in values are written as ``\s \t \n \f \r \\``: a term is one value.

A column where that happened is marked ``escaped``: patterns are then matched against its values
read off the dictionary, not against the terms themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.expr.analyzers import MAX_TERM_BYTES
from indextables.splits.format.info import IndexField
from indextables.splits.lookup.zones import ZONE_ROWS, physical_integers

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


def zone_mark(zone: int) -> str:
    return f"#{zone}"


def escape_value(value: str) -> str:
    return value.translate(_TABLE)


def unescape_value(text: str) -> str:
    return _CODE.sub(lambda m: _PLAIN[m[0]], text)


def value_texts(column: Any) -> pa.DictionaryArray:
    """The values of a column as they are spelt in terms and codes, each once."""
    if pa.types.is_string(column.type):
        return column.dictionary_encode()
    coded = physical_integers(column).dictionary_encode()
    return pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.cast(pa.string()))


def row_texts(
    batch: pa.RecordBatch, fields: list[IndexField], values: Mapping[str, Any], first: int
) -> tuple[Any, list[IndexField]]:
    """The text of each row (``None`` if no row has one), and what was noticed.

    ``values`` are the spelt values of the columns that have terms, as dictionaries; ``first`` is
    the number of the first row.
    """
    parts, noticed = [], []
    if any(f.kind in ("i64", "f64") and not f.keyed for f in fields):
        parts.append(_zone_marks(first, batch.num_rows))
    for field in fields:
        column = batch.column(field.column)
        nulls = len(column) if pa.types.is_null(column.type) else column.null_count
        if field.column in values:
            spelt, field = _spelt(values[field.column].dictionary, field)
            texts = spelt.take(values[field.column].indices)
            parts.append(pc.fill_null(texts, null_mark(field)) if nulls else texts)
        elif nulls:
            parts.append(pc.if_else(column.is_null(), null_mark(field), ""))
        noticed.append(field)
    if not parts:
        return None, noticed
    return pc.binary_join_element_wise(*parts, " "), noticed


def _zone_marks(first: int, count: int) -> Any:
    zones = np.arange(first, first + count) // ZONE_ROWS
    marks = pa.array([zone_mark(z) for z in range(int(zones[0]), int(zones[-1]) + 1)])
    return marks.take(pa.array(zones - zones[0]))


def _spelt(values: Any, field: IndexField) -> tuple[Any, IndexField]:
    """The terms of some values, and what was noticed about them."""
    if not field.keyed and pc.any(pc.match_substring_regex(values, _NEEDS_ESCAPE)).as_py():
        for char, code in _ESCAPES.items():
            values = pc.replace_substring(values, char, code)
        field = replace(field, escaped=True)
    texts = pc.binary_join_element_wise(pa.scalar(value_prefix(field)), values, "")
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    return texts, replace(field, complete=field.complete and longest <= MAX_TERM_BYTES)
