"""What a reader asks for, projections, and how calls are refused."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from rows_data import mapped, ranged, scanned, write

from indextables.errors import IndexTablesError, SchemaMismatchError, UnknownColumnError
from indextables.splits.rows import RowsReader, RowsWriter


@pytest.fixture(scope="module")
def table() -> pa.Table:
    n = 5000
    return pa.table(
        {
            "id": pa.array(range(n)),
            "s": pa.array(
                [
                    None if i % 11 == 0 else {"a": i, "b": {"c": f"x{i % 9}", "d": [i, i]}}
                    for i in range(n)
                ]
            ),
            "name.with.dots": pa.array([f"w{i % 13}" for i in range(n)]),
            "text": pa.array([f"row {i} says hello to row {i * 7 % n}" for i in range(n)]),
        }
    )


class Recorder:
    """A payload that remembers what was asked."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.calls: list[list[tuple[int, int]]] = []

    def __call__(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.calls.append(list(ranges))
        return [self.payload[a:b] for a, b in ranges]

    @property
    def asked(self) -> int:
        return sum(b - a for call in self.calls for a, b in call)


def test_one_request_for_all_ranges_of_a_call(table: pa.Table) -> None:
    file, payload = write(table, block_rows=256)
    store = Recorder(payload)
    reader = RowsReader(store, file.directory, len(payload))
    assert store.calls == []
    reader.take([3, 2000, 4999])
    assert len(store.calls) == 1
    assert store.asked < len(payload) / 3
    first = store.asked
    reader.take([3, 2000, 4999])
    assert len(store.calls) == 2
    assert store.asked - first <= first


def test_unneeded_columns_are_not_read(table: pa.Table) -> None:
    file, payload = write(table)
    store = Recorder(payload)
    reader = RowsReader(store, file.directory, len(payload))
    for batch in reader.scan(["id"]):
        assert batch.schema.names == ["id"]
    only_id = store.asked
    assert only_id < len(payload) / 10
    list(reader.scan(["s.a"]))
    nested = store.asked - only_id
    list(reader.scan(["s"]))
    assert nested < (store.asked - only_id - nested) / 2


def test_neighbouring_blocks_are_one_range(table: pa.Table) -> None:
    file, payload = write(table, block_rows=64)
    store = Recorder(payload)
    list(RowsReader(store, file.directory, len(payload)).scan(["id"]))
    assert len(store.calls[0]) == 1


def test_projection_of_struct_fields(table: pa.Table) -> None:
    file, payload = write(table)
    reader = mapped(file, payload)
    got = pa.Table.from_batches(list(reader.scan(["s.b.c", "id"])))
    assert got.schema.names == ["s", "id"]
    wanted = [None if v is None else {"b": {"c": v["b"]["c"]}} for v in table["s"].to_pylist()]
    assert got["s"].to_pylist() == wanted
    two = reader.take([1, 12], ["s.b.d", "s.a"])
    assert two["s"].to_pylist() == [{"a": 1, "b": {"d": [1, 1]}}, {"a": 12, "b": {"d": [12, 12]}}]
    assert reader.take([1], ["s.a", "s"]).column(0).to_pylist() == table["s"].to_pylist()[1:2]
    assert reader.take([1], ["name.with.dots"]).column(0).to_pylist() == ["w1"]


@pytest.mark.parametrize("name", ["nope", "s.nope", "id.a", "s.b.c.d", "S", "text.x"])
def test_unknown_columns(table: pa.Table, name: str) -> None:
    file, payload = write(table)
    with pytest.raises(UnknownColumnError, match=name):
        mapped(file, payload).take([1], [name])
    with pytest.raises(UnknownColumnError, match=name):
        mapped(file, payload).scan([name])


def test_order_and_repetition_of_rows_are_kept(table: pa.Table) -> None:
    file, payload = write(table, block_rows=32)
    rows = [4999, 0, 7, 7, 7, 4999, 31, 32, 33]
    got = mapped(file, payload).take(np.array(rows, np.int64))
    assert pa.Table.from_batches([got]).equals(table.take(pa.array(rows)))


@pytest.mark.parametrize("rows", [[5000], [-1], [0.5], [[1, 2]], [1 << 40]])
def test_impossible_row_numbers(table: pa.Table, rows: list[object]) -> None:
    file, payload = write(table)
    with pytest.raises(IndexTablesError, match="row numbers"):
        mapped(file, payload).take(np.array(rows))


@pytest.mark.parametrize("bounds", [(-1, 5), (5, 4), (0, 5001)])
def test_impossible_row_ranges(table: pa.Table, bounds: tuple[int, int]) -> None:
    file, payload = write(table)
    with pytest.raises(IndexTablesError, match="row range"):
        mapped(file, payload).scan(row_range=bounds)


@pytest.mark.parametrize("bounds", [(0, 0), (5000, 5000), (0, 1), (17, 4100), (4999, 5000)])
def test_row_ranges(table: pa.Table, bounds: tuple[int, int]) -> None:
    file, payload = write(table, block_rows=128)
    got = scanned(ranged(file, payload), row_range=bounds, batch_rows=1000)
    assert got.equals(table.slice(bounds[0], bounds[1] - bounds[0]))


def test_threads_share_a_reader(table: pa.Table) -> None:
    file, payload = write(table, block_rows=64)
    reader = ranged(file, payload)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        rows = np.sort(np.random.default_rng(seed).integers(0, 5000, 300))
        try:
            got = pa.Table.from_batches([reader.take(rows)])
            assert got.equals(table.take(pa.array(rows)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_writer_refuses_what_does_not_fit() -> None:
    schema = pa.schema([("a", pa.int32()), ("b", pa.string())])
    writer = RowsWriter(schema)
    with pytest.raises(SchemaMismatchError, match="0 columns named 'b'"):
        writer.write(pa.record_batch({"a": [1]}))
    with pytest.raises(SchemaMismatchError, match="column 'a'"):
        writer.write(pa.record_batch({"a": [1 << 40], "b": ["x"]}))
    with pytest.raises(SchemaMismatchError, match="cannot be stored"):
        RowsWriter(pa.schema([("d", pa.duration("s"))]))
    with pytest.raises(IndexTablesError, match="compression"):
        RowsWriter(schema, compression="brotli")
    with pytest.raises(IndexTablesError, match="power of two"):
        RowsWriter(schema, block_rows=100)
    writer.write(pa.record_batch({"b": ["x"], "a": pa.array([7], pa.int64())}))
    assert writer.num_rows == 1
    file = writer.finish()
    assert scanned(mapped(file, b"".join(file.pages))).to_pylist() == [{"a": 7, "b": "x"}]


def test_buffers_of_any_byte_format_are_read(table: pa.Table) -> None:
    file, payload = write(table)
    buffer = memoryview(pa.py_buffer(payload))
    directory = memoryview(pa.py_buffer(file.directory))
    asked = RowsReader(lambda ranges: [buffer[a:b] for a, b in ranges], directory, len(payload))
    held = RowsReader(lambda ranges: [], directory, len(payload), payload=buffer)
    assert scanned(asked).equals(table)
    assert scanned(held).equals(table)


def test_no_columns_at_all() -> None:
    writer = RowsWriter(pa.schema([]))
    three = pa.table({"x": [1, 2, 3]}).to_batches()[0]
    writer.write(three.select([]))
    file = writer.finish()
    reader = mapped(file, b"".join(file.pages))
    assert (file.num_rows, reader.num_rows) == (3, 3)
    assert [batch.num_rows for batch in reader.scan()] == [3]


def test_chunks_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    from indextables.splits.rows import write as rows_write

    monkeypatch.setattr(rows_write, "CHUNK_BYTES", 10_000)
    table = pa.table({"a": pa.array(["x" * (i % 400) for i in range(500)], pa.large_string())})
    file, payload = write(table, batch_rows=30)
    reader = mapped(file, payload)
    assert 8 <= len(reader._directory.chunk_rows) <= 40
    assert scanned(reader)["a"].to_pylist() == table["a"].to_pylist()


def test_schema_metadata_is_kept() -> None:
    schema = pa.schema([pa.field("a", pa.int32(), metadata={"k": "v"})], metadata={"x": "y"})
    file, payload = write(pa.table({"a": [1]}, schema=schema))
    assert mapped(file, payload).schema.equals(schema, check_metadata=True)


def test_text_beyond_one_arrow_array_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    from indextables.splits.rows import decode as rows_decode

    monkeypatch.setattr(rows_decode, "MAX_TEXT", 10_000)
    table = pa.table({"a": [f"{i:050d}" + "x" * (i % 40) for i in range(1000)]})
    file, payload = write(table, block_rows=128)
    reader = mapped(file, payload)
    batches = list(reader.scan())
    assert len(batches) > 5
    assert pa.Table.from_batches(batches).equals(table)
    with pytest.raises(IndexTablesError, match="2 GB"):
        reader.take(np.arange(1000))
