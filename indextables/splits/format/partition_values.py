"""Partition values: texts in the log, folders in the table, typed constants in the rows.

A value is written as Spark prints it (timestamps in UTC, ``-0.0`` as ``0.0``), NULL as the marker
every Hive-style table uses; the empty string is a value of its own, ``""`` in the log and ``k=`` in
the folder. The text in the log is what counts; the folder ``k=v`` is for people,
with every character outside a safe set percent-encoded, so that no value can leave the table or
merge with another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import pyarrow as pa

from indextables.errors import CorruptFileError, IndexTablesError, SchemaMismatchError
from indextables.expr.casting import cast_array, physical_values, text_of
from indextables.log.actions.fields import NULL_PARTITION
from indextables.types import type_name

_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+@~ ,()!$&'")


def partition_texts(array: Any, column: str) -> list[str | None]:
    """The texts of partition values, one for each element."""
    dtype = array.type
    t = pa.types
    if t.is_nested(dtype) or t.is_binary(dtype) or t.is_null(dtype):
        raise SchemaMismatchError(
            f"column '{column}' of type {type_name(dtype)} cannot be a partition column"
        )
    return [None if v is None else _text(v, dtype, column) for v in physical_values(array)]


def _text(value: Any, dtype: pa.DataType, column: str) -> str:
    if isinstance(value, float) and value == 0:
        value = 0.0
    text = text_of(value, dtype, UTC)
    if text == NULL_PARTITION:
        raise SchemaMismatchError(
            f"'{text}' cannot be a value of partition column '{column}': it stands for NULL"
        )
    return text


def partition_array(text: str | None, dtype: pa.DataType, rows: int, path: str) -> pa.Array:
    """A column of one partition value."""
    if text is None or text == NULL_PARTITION:
        return pa.nulls(rows, dtype)
    if pa.types.is_string(dtype):
        return pa.repeat(pa.scalar(text, dtype), rows)
    try:
        one = cast_array(pa.array([text], pa.string()), dtype, UTC, False)
    except (IndexTablesError, pa.ArrowInvalid) as error:
        raise CorruptFileError(
            f"partition value '{text}' is not a {type_name(dtype)}", path=path
        ) from error
    return pa.repeat(one[0], rows)


def partition_folder(values: Mapping[str, str | None], columns: Sequence[str]) -> str:
    """``k=v/k=v`` in the order of the partition columns; empty for an unpartitioned table."""
    parts = []
    for column in columns:
        text = values[column]
        shown = NULL_PARTITION if text is None else escape(text)
        parts.append(f"{escape(column)}={shown}")
    return "/".join(parts)


def escape(text: str) -> str:
    """Percent-encode what is not plainly safe in a path of any store."""
    raw = text.encode()
    body = "".join(chr(b) if b in _SAFE else f"%{b:02X}" for b in raw)
    return "%2E" + body[1:] if body.startswith(".") else body
