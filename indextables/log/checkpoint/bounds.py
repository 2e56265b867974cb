"""Partition bounds of a manifest: the least and greatest value of each partition column.

Numbers are compared as numbers, everything else as text. Readers disagree about text that looks
like numbers (``9`` and ``10`` in a string column), so a string column gets bounds only when both
orders name the same least and greatest value; without bounds a manifest is simply read. NULLs are
left out; a column of NULLs alone has the bounds ``(None, None)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from indextables.log.checkpoint.manifest import Bounds


def bounds_of_values(values: Mapping[str, Iterable[str | None]], schema: pa.Schema) -> Bounds:
    """Bounds by column of the partition values that occur."""
    pairs = {
        column: column_bounds(texts, _is_number(schema, column)) for column, texts in values.items()
    }
    return {column: pair for column, pair in pairs.items() if pair is not None}


def column_bounds(
    values: Iterable[str | None], numeric: bool
) -> tuple[str | None, str | None] | None:
    """The bounds of some values, or ``None`` when readers could misunderstand them."""
    texts = [value for value in values if value is not None]
    if not texts:
        return None, None
    numbers = [number_of(text) for text in texts]
    if any(number is None for number in numbers):
        return None if numeric else (min(texts), max(texts))
    ordered = sorted(zip(numbers, texts, strict=True), key=lambda pair: pair[0])  # type: ignore[arg-type,return-value]
    pair = ordered[0][1], ordered[-1][1]
    if numeric or pair == (min(texts), max(texts)):
        return pair
    return None


def trusted_bounds(bounds: Bounds | None, schema: pa.Schema) -> Bounds | None:
    """Bounds read from a file, without those whose order is in doubt."""
    if bounds is None:
        return None
    return {
        column: (low, high)
        for column, (low, high) in bounds.items()
        if _is_number(schema, column) or not _looks_numeric(low, high)
    }


def _looks_numeric(low: str | None, high: str | None) -> bool:
    return any(text is not None and number_of(text) is not None for text in (low, high))


def _is_number(schema: pa.Schema, column: str) -> bool:
    index = schema.get_field_index(column)
    if index < 0:
        return False
    kind: Any = schema.field(index).type
    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind))


def number_of(text: str) -> Decimal | None:
    """The finite number a text spells, if any."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
