"""Rows come back as they were written: scanned, taken, and read by the plain-Python oracle."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_data import LEAVES, mapped, random_array, ranged, scanned, tables, write
from rows_oracle import Oracle, plain


def same(left: pa.Table, right: pa.Table) -> None:
    """Equal values down to the bits of floats."""
    assert left.schema.equals(right.schema)
    assert left.num_rows == right.num_rows
    for name in left.schema.names:
        a, b = left[name].combine_chunks(), right[name].combine_chunks()
        assert plain(a) == plain(b), name


@given(table=tables(), block_rows=st.sampled_from([None, 1, 8, 64]), data=st.data())
@settings(max_examples=150)
def test_random_tables_come_back(table: pa.Table, block_rows: int | None, data: Any) -> None:
    compression = data.draw(st.sampled_from(["auto", "auto", "none", "zstd"]))
    file, payload = write(table, block_rows=block_rows, compression=compression)
    assert file.num_rows == table.num_rows
    reader = mapped(file, payload)
    whole = scanned(reader)
    whole.validate(full=True)
    same(whole, table)
    same(scanned(ranged(file, payload), batch_rows=7), table)
    if table.num_rows:
        rows = data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=40))
        taken = reader.take(np.array(rows, np.uint32))
        taken.validate(full=True)
        same(pa.Table.from_batches([taken]), table.take(pa.array(rows, pa.int64())))


@given(table=tables(max_rows=1500, max_columns=2), block_rows=st.sampled_from([None, 8, 64, 1024]))
@settings(max_examples=60, deadline=None)
def test_scans_leave_rows_out(table: pa.Table, block_rows: int | None) -> None:
    """Against reading everything and picking afterwards: none, few, many, runs and whole blocks."""
    rng = np.random.default_rng(table.num_rows)
    n = table.num_rows
    reader = mapped(*write(table, block_rows=block_rows))
    where = np.arange(n, dtype=np.uint32)
    runs = (where // max(int(rng.integers(1, 90)), 1)) % 2 == 0
    for flags in (
        np.zeros(n, bool),
        rng.random(n) < 0.01,
        rng.random(n) < 0.3,
        rng.random(n) < 0.97,
        runs,
        np.ones(n, bool),
    ):
        gone, left = where[flags], table.take(pa.array(where[~flags]))
        for size in (65_536, 7 * 64):
            found = scanned(reader, batch_rows=size, without=gone)
            found.validate(full=True)
            same(found, left)
        if len(left):
            same(pa.Table.from_batches([reader.take(where[~flags])]), left)


def test_maps_to_lists_of_nulls(rng: random.Random) -> None:
    """With items behind the lists that are null themselves, which do not belong to them."""
    for _ in range(30):
        count = rng.randrange(1, 40)
        ends = pa.array(range(0, 6 * count + 1, 6), pa.int32())
        gone = pa.array([rng.random() < 0.5 for _ in range(count)])
        lists = pa.ListArray.from_arrays(ends, pa.nulls(6 * count), mask=gone)
        cuts = sorted([0, count, *(rng.randrange(count + 1) for _ in range(6))])
        keys = pa.array(range(count), pa.int32())
        maps = pa.MapArray.from_arrays(pa.array(cuts, pa.int32()), keys, lists)
        for column in (maps, maps.slice(rng.randrange(len(maps)))):
            table = pa.table({"c": column})
            same(scanned(mapped(*write(table))), table)


@given(table=tables(max_rows=80), block_rows=st.sampled_from([None, 4, 32]))
@settings(max_examples=60)
def test_oracle_reads_the_same_values(table: pa.Table, block_rows: int | None) -> None:
    file, payload = write(table, block_rows=block_rows)
    columns = Oracle(file.directory, payload).columns()
    for name in table.schema.names:
        assert columns[name] == plain(table[name].combine_chunks())


@pytest.mark.parametrize("dtype", [t for t in LEAVES if not pa.types.is_null(t)], ids=str)
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 700])
def test_every_type_across_block_borders(dtype: pa.DataType, rows: int, rng: Any) -> None:
    table = pa.table({"a": random_array(rng, dtype, rows), "b": pa.array(range(rows))})
    file, payload = write(table, block_rows=64)
    reader = ranged(file, payload)
    same(scanned(reader), table)
    for start in range(0, rows, 61):
        stop = min(start + 64, rows)
        same(scanned(reader, row_range=(start, stop)), table.slice(start, stop - start))


def test_sliced_input_is_written_from_its_offset(rng: random.Random) -> None:
    kinds = [*LEAVES, pa.list_(pa.string()), pa.struct([("a", pa.int32()), ("b", pa.string())])]
    kinds.append(pa.map_(pa.string(), pa.list_(pa.float64())))
    table = pa.table({f"c{i}": random_array(rng, k, 200) for i, k in enumerate(kinds)})
    part = table.slice(37, 101)
    file, payload = write(part, batch_rows=13)
    same(scanned(mapped(file, payload)), part)


def test_empty_inputs() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.string()))])
    file, payload = write(schema.empty_table())
    assert (file.num_rows, payload) == (0, b"")
    reader = mapped(file, payload)
    assert list(reader.scan()) == []
    empty = reader.take(np.zeros(0, np.uint32))
    assert empty.num_rows == 0
    assert empty.schema.equals(schema)


def test_rows_without_columns_keep_their_number() -> None:
    table = pa.table({"a": list(range(100))})
    file, payload = write(table)
    reader = mapped(file, payload)
    assert [b.num_rows for b in reader.scan([], batch_rows=30)] == [30, 30, 30, 10]
    assert reader.take(np.arange(5), []).num_rows == 5


def test_many_chunks_share_dictionaries(rng: random.Random) -> None:
    n = 150_000
    host = pa.array([f"host-{i % 50}x{'y' * (i % 7)}" for i in range(n)])
    text = pa.array([f"user {i * 7919 % 4001} said {'hello ' * (i % 5)}{i % 97}" for i in range(n)])
    status = pa.array(np.array([200, 404, 5_000_000_000])[np.arange(n) % 3])
    table = pa.table({"host": host, "text": text, "status": status})
    file, payload = write(table, batch_rows=10_007)
    reader = mapped(file, payload)
    assert scanned(reader).equals(table)
    assert len(payload) < table.nbytes / 5
    rows = np.array(sorted(rng.sample(range(n), 500)), np.uint32)
    assert pa.Table.from_batches([reader.take(rows)]).equals(table.take(pa.array(rows)))
    assert len(reader._directory.resource_start) == 3


def test_a_table_that_no_longer_fits_is_learned_anew() -> None:
    n = 65_536
    first = [f"alpha beta gamma {i % 1000} delta epsilon" for i in range(n)]
    second = [f"ZYXWV/{i * 31 % 5003}?QPON=MLKJ&HGFE={i % 77}" for i in range(n)]
    table = pa.table({"text": first + second})
    file, payload = write(table)
    assert scanned(mapped(file, payload)).equals(table)
    assert len(payload) < table.nbytes / 3


def test_equal_input_gives_equal_bytes(rng: random.Random) -> None:
    table = pa.table({"a": random_array(rng, pa.string(), 500), "b": pa.array(range(500))})
    assert write(table) == write(table)
    assert write(table, batch_rows=3) == write(table)


@pytest.mark.parametrize(
    ("given_type", "stored"),
    [
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.list_(pa.large_string()), pa.list_(pa.field("element", pa.string()))),
        (pa.large_list(pa.int32()), pa.list_(pa.field("element", pa.int32()))),
    ],
    ids=str,
)
def test_richer_arrow_types_are_normalised(given_type: pa.DataType, stored: pa.DataType) -> None:
    sample: list[Any] = ["a", None, "ccc", "a"]
    if pa.types.is_large_binary(given_type):
        sample = [b"a", None, b"\xff"]
    elif pa.types.is_large_list(given_type):
        sample = [[1, 2], None, []]
    elif pa.types.is_list(given_type):
        sample = [["a"], None, []]
    plain_type = stored if not pa.types.is_dictionary(given_type) else pa.string()
    array = pa.array(sample, plain_type).cast(given_type)
    file, payload = write(pa.table({"a": array}))
    reader = mapped(file, payload)
    assert reader.schema.field("a").type == stored
    assert scanned(reader)["a"].to_pylist() == sample


def test_wide_values_make_small_blocks() -> None:
    big = ["x" * 300_000 + str(i) for i in range(40)]
    table = pa.table({"big": big, "small": list(range(40))})
    file, payload = write(table)
    reader = mapped(file, payload)
    assert scanned(reader).equals(table)
    assert reader._column(0).count >= 10
    assert reader.take([39])["big"].to_pylist() == [big[39]]


def test_a_long_list_of_one_number(rng: random.Random) -> None:
    lists = pa.array([[7] * 400_000, [], None, [7, 7]], pa.list_(pa.int64()))
    nulls = pa.array([[None] * 300_000, [1], None, []], pa.list_(pa.decimal128(20, 2)))
    empty = pa.array([[""] * 300_000, ["a"], None, []], pa.list_(pa.string()))
    table = pa.table({"a": lists, "b": nulls, "c": empty})
    file, payload = write(table)
    assert scanned(mapped(file, payload)).equals(table)
    assert mapped(file, payload).take([0])["a"].equals(lists.slice(0, 1))
