"""Arrow values from buffers are those of Arrow itself, and need no pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables.buffers import (
    ALWAYS,
    NEVER,
    flag_array,
    flags_of,
    number_array,
    numbers_of,
    optional_numbers,
    scalar_of,
    text_array,
)

TEXTS: list[list[str | None]] = [[], ["a"], [None], ["", "ü", None, "long" * 99], [None] * 17]


@pytest.mark.parametrize("texts", TEXTS)
def test_texts(texts: list[str | None]) -> None:
    made = text_array(texts)
    made.validate(full=True)
    assert made.equals(pa.array(texts, pa.string()))


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "u4", "i8", "f4", "f8"])
def test_numbers(dtype: str) -> None:
    values = np.arange(40).astype(dtype)
    for part in (values, values[3:], values[::2], values[:0]):
        made = number_array(part)
        made.validate(full=True)
        assert made.equals(pa.array(part))
        assert numbers_of(made).tolist() == part.tolist()
        assert numbers_of(made.slice(1, 3)).tolist() == part[1:4].tolist()
        chunks = pa.chunked_array([made, made.slice(2), made.slice(0, 0)])
        back = numbers_of(chunks)
        assert back.tolist() == [*part, *part[2:]]
        assert back.dtype == part.dtype
        nulls = part % 3 == 1
        assert number_array(part, nulls).equals(pa.array(part, mask=nulls))


def test_optional_numbers() -> None:
    assert optional_numbers([1, None, -7], np.int64).equals(pa.array([1, None, -7]))
    assert optional_numbers([0.5, None], np.float64).equals(pa.array([0.5, None]))
    assert optional_numbers([], np.int64).equals(pa.array([], pa.int64()))
    with pytest.raises(OverflowError):
        optional_numbers([2**63], np.int64)


def test_flags() -> None:
    values = np.arange(19) % 3 == 0
    for part in (values, values[5:], values[:0]):
        assert flag_array(part).equals(pa.array(part))
    nulls = pa.array([True, None, False] * 9)
    for some in (nulls, nulls.slice(2, 11), nulls.slice(0, 0), pa.array([True] * 9).slice(3)):
        assert flags_of(some).tolist() == [value is True for value in some.to_pylist()]
    assert (NEVER.as_py(), ALWAYS.as_py()) == (False, True)


SCALARS: list[tuple[Any, pa.DataType]] = [
    ("x", pa.string()),
    (True, pa.bool_()),
    (7, pa.int32()),
    (-1, pa.int64()),
    (2**63 - 1, pa.int64()),
    (1.5, pa.float64()),
    (0.1, pa.float32()),
    (None, pa.int32()),
    (b"x", pa.binary()),
]


@pytest.mark.parametrize(("value", "dtype"), SCALARS)
def test_scalars(value: Any, dtype: pa.DataType) -> None:
    assert scalar_of(value, dtype).equals(pa.scalar(value, dtype))


@pytest.mark.parametrize(("value", "dtype"), [(300, pa.int8()), (-1, pa.uint8()), ("x", pa.int8())])
def test_a_value_that_does_not_fit_is_refused_as_by_arrow(value: Any, dtype: pa.DataType) -> None:
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        scalar_of(value, dtype)


QUERIES = [
    "t.count(\"body TEXTSEARCH 'w1 w2'\")",
    "t.to_arrow(where=\"body TEXTSEARCH 'w1'\", columns=['n', 'body'])",
    "t.count(\"kind = 'k1' AND n >= 5\")",
    "t.to_arrow(where=\"id = 'id-7'\")",
    "t.to_arrow(where=\"n >= 5 AND n < 90 AND kind = 'k1'\")",
    "t.to_arrow(limit=3)",
    "t.aggregate({'n': 'count', 'm': ('avg', 'n')}, ['kind'], where=\"n > 5\")",
    "t.aggregate({'n': 'count', 'm': ('max', 'n')}, where=\"kind = 'k1'\")",
    "t.aggregate({'n': ('sum', 'n'), 'x': ('max', 'f'), 'a': ('avg', 'f')}, ['id'], 'n < 9')",
]


def test_a_first_query_imports_no_pandas(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "n": range(3000),
            "f": [i / 4 for i in range(3000)],
            "id": [f"id-{i}" for i in range(3000)],
            "kind": [f"k{i % 3}" for i in range(3000)],
            "body": [f"w{i % 7} w{i % 5}" for i in range(3000)],
        }
    )
    indextables.write(rows, str(tmp_path), text=["body"], rows_per_split=1500)
    asked = "; ".join(f"{query}; assert 'pandas' not in sys.modules" for query in QUERIES)
    code = f"import sys, indextables; t = indextables.open({str(tmp_path)!r}); {asked}"
    subprocess.run([sys.executable, "-c", code], check=True)
