"""The table of value hashes: finds every row of a value, reads only the pages it needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import CorruptFileError
from indextables.splits.lookup.hashtable import HashTable, build_hash_table


def table_of(raw: bytes, log: list[Any] | None = None) -> HashTable:
    def read(ranges: Any) -> list[bytes]:
        if log is not None:
            log.extend(ranges)
        return [raw[a:b] for a, b in ranges]

    return HashTable(read, len(raw), "some.split")


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 50), max_size=400),
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 60), max_size=20),
)
def test_every_row_of_a_value_is_found(held: list[int], asked: list[int]) -> None:
    hashes = np.array(held, np.uint64)
    rows = np.arange(len(held), dtype=np.uint32)
    table = table_of(build_hash_table(hashes, rows))
    assert table.count == len(held)
    found = table.lookup(np.array(asked, np.uint64))
    expected = {row for row, value in enumerate(held) if value in set(asked)}
    assert expected <= set(found.tolist())
    assert found.tolist() == sorted(set(found.tolist()))


def test_strangers_are_rare_and_pages_few() -> None:
    rng = np.random.default_rng(1)
    count = 300_000
    hashes = rng.integers(0, 2**64, count, dtype=np.uint64)
    raw = build_hash_table(hashes, np.arange(count, dtype=np.uint32))
    assert len(raw) < 5.1 * count
    log: list[Any] = []
    table = table_of(raw, log)
    assert table.lookup(hashes[1234:1235]).tolist().count(1234) == 1
    assert sum(b - a for a, b in log) < 250_000
    others = rng.integers(0, 2**64, 2000, dtype=np.uint64)
    assert len(table.lookup(others)) < 60
    everything = table.lookup(hashes[:5000])
    assert set(range(5000)) <= set(everything.tolist())
    assert len(everything) < 5100


def test_rows_above_three_bytes() -> None:
    rows = np.array([0, 2**24, 2**31], np.uint32)
    hashes = np.array([5, 2**63, 2**40], np.uint64)
    table = table_of(build_hash_table(hashes, rows))
    for hashed, row in zip(hashes, rows, strict=True):
        assert row in table.lookup(np.array([hashed], np.uint64))


def test_bytes_do_not_depend_on_the_order_given() -> None:
    rng = np.random.default_rng(2)
    hashes = rng.integers(0, 2**16, 3000, dtype=np.uint64) << np.uint64(48)
    rows = np.arange(3000, dtype=np.uint32)
    order = rng.permutation(3000)
    assert build_hash_table(hashes, rows) == build_hash_table(hashes[order], rows[order])


def test_every_flipped_byte_is_seen() -> None:
    rng = np.random.default_rng(3)
    hashes = rng.integers(0, 2**64, 1500, dtype=np.uint64)
    raw = build_hash_table(hashes, np.arange(1500, dtype=np.uint32))
    for place in range(0, len(raw), 11):
        bad = bytearray(raw)
        bad[place] ^= 0x80
        with pytest.raises(CorruptFileError, match="some"):
            table_of(bytes(bad)).lookup(hashes)


@pytest.mark.parametrize("length", [0, 10, 40, 100])
def test_cut_tables_are_refused(length: int) -> None:
    raw = build_hash_table(np.arange(500, dtype=np.uint64), np.arange(500, dtype=np.uint32))
    with pytest.raises(CorruptFileError, match="some"):
        table_of(raw[:length])
