"""Column indexes over one million rows: 10,000 distinct strings, all distinct uuids, five states.

Peers in the same run: a pyarrow scan of the column in memory, DuckDB on a Parquet file, tantivy
with a raw field. ``BENCH_ROWS`` makes it smaller. Each figure is the best of several rounds by the
wall clock, because DuckDB works in several threads; the sizes are exact. The look-up of a cold
block reads, checks and decompresses the block anew each time; the list of 1,000 values runs on the
decoded index, its first run is reported apart. All give row numbers: DuckDB those of the file,
tantivy those of its documents, which were added in row order.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import indextables
from indextables.splits.lookup.colindex import compact
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.postings import build_postings
from indextables.splits.lookup.colindex.predicates import any_of

duckdb = pytest.importorskip("duckdb")
tantivy = pytest.importorskip("tantivy")

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
SEED = 20


def column(shape: str) -> pa.Array:
    rng = np.random.default_rng(SEED)
    if shape == "str10k":
        words = pa.array([f"customer-{i:08d}@mail" for i in range(10_000)])
        return words.take(pa.array(rng.integers(0, 10_000, ROWS)))
    if shape == "uuid":
        digits = rng.bytes(16 * ROWS).hex()
        return pa.array([str(uuid.UUID(digits[i : i + 32])) for i in range(0, 32 * ROWS, 32)])
    words = pa.array(["active", "closed", "frozen", "late", "fraud"])
    return words.take(pa.array(rng.choice(5, ROWS, p=[0.8, 0.15, 0.04, 0.009, 0.001])))


def clocked(work: Callable[[], Any], rounds: int) -> float:
    """The least time of several runs, in seconds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def in_turn(ours: Callable[[], Any], peer: Callable[[], Any]) -> tuple[float, float]:
    """The least times of two works that differ much in length, over the same second or so."""
    times = [(clocked(ours, 20), clocked(peer, 1)) for _ in range(60)]
    return min(a for a, _ in times), min(b for _, b in times)


class Case:
    """One shape: its column, index, Parquet file, and tantivy's index."""

    def __init__(self, shape: str, folder: Path) -> None:
        self.shape, self.folder = shape, folder
        self.values = column(shape)
        start = time.process_time()
        self.data = compact.encode(build_postings(self.values))
        self.build_seconds = time.process_time() - start
        self.index = ColumnIndex.from_bytes(self.data, num_rows=ROWS)
        self.parquet = str(folder / f"{shape}.parquet")
        pq.write_table(pa.table({"c": self.values}), self.parquet, compression="zstd")
        column_chunks = pq.ParquetFile(self.parquet).metadata
        self.parquet_size = sum(
            column_chunks.row_group(i).column(0).total_compressed_size
            for i in range(column_chunks.num_row_groups)
        )
        picks = np.random.default_rng(1).integers(0, ROWS, 1000)
        self.wanted = [self.values[int(i)].as_py() for i in picks]
        if shape == "status":
            self.wanted = ["fraud"] * 1000

    @cached_property
    def tantivy(self) -> Any:
        """A schema and a searcher over one segment."""
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("c", tokenizer_name="raw", index_option="basic")
        place = self.folder / f"{self.shape}.tantivy"
        place.mkdir()
        index = tantivy.Index(builder.build(), path=str(place))
        writer = index.writer(heap_size=1 << 30, num_threads=1)
        for value in self.values.to_pylist():
            writer.add_document(tantivy.Document(c=value))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        return index.schema, index.searcher()


@pytest.fixture(scope="module", params=["str10k", "uuid", "status"])
def case(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(request.param, tmp_path_factory.mktemp("bench"))


def test_size(case: Case, report: Any) -> None:
    report(
        f"{case.shape}: bytes",
        ours=len(case.data),
        peer=case.parquet_size,
        peer_name="parquet column",
        unit="B",
        goal=1.2,
    )


def test_exact(case: Case, report: Any) -> None:
    wanted = case.wanted[0]
    key = wanted.encode()
    block_index = case.index._form
    connection = duckdb.connect()
    schema, searcher = case.tantivy
    query = tantivy.Query.term_query(schema, "c", wanted)

    def cold() -> Any:
        block_index._kept.clear()
        return case.index.exact(key)

    def scan() -> Any:
        return np.flatnonzero(pc.equal(case.values, wanted).to_numpy(False))

    def duck() -> Any:
        table = f"read_parquet('{case.parquet}', file_row_number = true)"
        asked = f"SELECT file_row_number FROM {table} WHERE c = '{wanted}'"
        return connection.sql(asked).fetchnumpy()["file_row_number"]

    def search() -> Any:
        return [address.doc for _, address in searcher.search(query, limit=ROWS).hits]

    assert np.array_equal(cold(), scan())
    assert np.array_equal(np.sort(duck()), scan())
    assert searcher.num_segments > 1 or sorted(search()) == scan().tolist()
    ours = clocked(cold, 1000)
    name = f"{case.shape}: exact, cold block"
    report(name, ours=ours, peer=60e-6, peer_name="60 us", unit="s", goal=1)
    for peer, run in (("pyarrow scan", scan), ("duckdb", duck), ("tantivy", search)):
        taken = clocked(run, 10)
        report(f"{case.shape}: exact", ours=ours, peer=taken, peer_name=peer, unit="s")


def test_in_list(case: Case, report: Any) -> None:
    if case.shape == "status":
        pytest.skip("five values make no list")
    asked = any_of([w.encode() for w in case.wanted])
    start = time.perf_counter()
    case.index.lookup(asked)
    first = time.perf_counter() - start
    schema, searcher = case.tantivy
    query = tantivy.Query.term_set_query(schema, "c", list(set(case.wanted)))
    case.index.flat()
    ours, peer = in_turn(
        lambda: case.index.lookup(asked), lambda: searcher.search(query, limit=ROWS)
    )
    name = f"{case.shape}: IN(1000)"
    report(name, ours=ours, peer=peer, peer_name="tantivy", unit="s", goal=1 / 15)
    report(f"{name}, first", ours=first, peer=peer, peer_name="tantivy", unit="s")
    values = pa.array(sorted(set(case.wanted)))
    scan = clocked(lambda: np.flatnonzero(pc.is_in(case.values, values).to_numpy(False)), 5)
    report(name, ours=ours, peer=scan, peer_name="pyarrow scan", unit="s")


def test_needle(case: Case, report: Any, tmp_path: Path) -> None:
    if case.shape == "status":
        pytest.skip("not a needle")
    numbers = np.arange(ROWS)
    table = pa.table({"c": case.values, "a": numbers, "b": numbers * 0.5, "d": numbers % 1000})
    parquet = str(tmp_path / "t.parquet")
    pq.write_table(table, parquet, compression="zstd")
    path = str(tmp_path / "t")
    indextables.write(table.slice(0, 0), path)
    indextables.open(path).define_index("c")
    indextables.write(table, path)
    opened = indextables.open(path)
    connection = duckdb.connect()
    wanted = case.wanted[0]

    def ours() -> Any:
        return opened.to_arrow(f"c = '{wanted}'")

    def peer() -> Any:
        text = f"SELECT * FROM '{parquet}' WHERE c = '{wanted}'"
        return connection.sql(text).arrow().read_all()

    assert ours().num_rows == peer().num_rows
    mine, theirs = clocked(ours, 15), clocked(peer, 7)
    report(f"{case.shape}: SELECT *", ours=mine, peer=theirs, peer_name="duckdb", unit="s", goal=1)
