"""Roaring sets of rows: equal to a twin and to another implementation, safe on damaged bytes."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
import roaring_twin
from test_native_fuzz import mutate

from indextables.errors import CorruptFileError
from indextables.native._roaring import decode_rows, encode_rows

MUTANTS = int(os.environ.get("INDEXTABLES_FUZZ_INPUTS", "20000"))
MOST = 1 << 32


def some_rows(rng: random.Random) -> list[int]:
    """Sets that need every kind of container: sparse, dense, runs, and high halves."""
    rows: set[int] = set()
    for _ in range(rng.randint(0, 5)):
        start = rng.choice([0, 65_530, 1 << 20, (1 << 32) - 10, 1 << 33]) + rng.randrange(70_000)
        kind = rng.randrange(4)
        if kind == 0:
            rows |= {start + rng.randrange(200_000) for _ in range(rng.randint(1, 300))}
        elif kind == 1:
            rows |= set(range(start, start + rng.randint(1, 9000)))
        elif kind == 2:
            rows |= set(range(start, start + 60_000, rng.randint(2, 9)))
        else:
            rows.add(start)
    return sorted(rows)


def as_array(rows: list[int]) -> Any:
    return np.array(rows, np.uint64)


def test_bytes_equal_the_twin(rng: random.Random) -> None:
    for _ in range(60):
        rows = some_rows(rng)
        data = encode_rows(as_array(rows))
        assert data == roaring_twin.encode(rows)
        assert decode_rows(data, MOST).tolist() == rows


@pytest.mark.parametrize("form", ["plain", "runs", "best"])
def test_every_form_of_a_container_is_read(form: str, rng: random.Random) -> None:
    for _ in range(30):
        rows = some_rows(rng)
        assert decode_rows(roaring_twin.encode(rows, form), MOST).tolist() == rows


def test_another_implementation_reads_and_writes_the_same(rng: random.Random) -> None:
    pyroaring = pytest.importorskip("pyroaring")
    for _ in range(30):
        rows = some_rows(rng)
        assert list(pyroaring.BitMap64.deserialize(encode_rows(as_array(rows)))) == rows
        theirs = pyroaring.BitMap64(rows)
        theirs.run_optimize()
        assert decode_rows(theirs.serialize(), MOST).tolist() == rows


def test_the_full_container_and_the_empty_set() -> None:
    for rows in ([], list(range(65_536)), list(range(1, 65_536, 2)), [0], [(1 << 64) - 1]):
        assert decode_rows(encode_rows(as_array(rows)), 1 << 63).tolist() == rows


def test_more_rows_than_allowed_are_refused_before_they_are_listed() -> None:
    data = roaring_twin.encode(list(range(100_000)), "runs")
    assert len(data) < 100
    assert len(decode_rows(data, 100_000)) == 100_000
    with pytest.raises(CorruptFileError, match="more rows than there can be"):
        decode_rows(data, 99_999)


def test_rows_that_do_not_ascend_are_not_written() -> None:
    with pytest.raises(ValueError, match="ascend"):
        encode_rows(as_array([3, 3]))
    with pytest.raises(ValueError, match="ascend"):
        encode_rows(as_array([70_000, 3]))


def test_damaged_bytes_give_rows_or_an_error(rng: random.Random) -> None:
    samples = [
        roaring_twin.encode(rows, form)
        for rows in ([1, 5, 70_000], list(range(5000)), list(range(0, 20_000, 3)), [1 << 33])
        for form in ("plain", "runs", "best")
    ]
    seen = {"rows": 0, "error": 0}
    for _ in range(MUTANTS):
        damaged = mutate(rng.choice(samples), rng.random)
        try:
            rows = decode_rows(damaged, 1 << 20)
        except CorruptFileError:
            seen["error"] += 1
            continue
        seen["rows"] += 1
        assert len(rows) <= 1 << 20
        assert (np.diff(rows.astype(object)) > 0).all() if len(rows) < 100 else True
        assert len(rows) < 2 or (rows[1:] > rows[:-1]).all()
    assert min(seen.values()) > 0
