"""Rows of one split (1 M log rows): scattered rows, clustered rows, full scans, write, size.

Peers in the same run: the Lance file format (its reader held open, the better of file and dataset)
and Parquet with zstd (pyarrow). Works take turns; each figure is the best of several rounds. Times
are processor time of the whole process (all threads), because the peers use thread pools and the
machine is shared; the wall clock of the best round is printed beside them with ``-s``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import logdata
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from indextables.splits.rows import RowsReader, RowsWriter

lance = pytest.importorskip("lance")
lance_file = pytest.importorskip("lance.file")

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
TWO = ["ts", "message"]
Times = dict[str, tuple[float, float]]


@dataclass
class Files:
    table: pa.Table
    folder: Path
    reader: RowsReader
    lance: Any
    lance_two: Any
    dataset: Any
    parquet: Path
    written: Times
    sizes: dict[str, int]


def once(work: Callable[[], Any]) -> tuple[float, float]:
    """Processor seconds of the process, wall seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def turns(works: dict[str, Callable[[], Any]], rounds: int) -> Times:
    """The least processor and wall time of each work."""
    best = {name: (float("inf"), float("inf")) for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            cpu, wall = once(work)
            best[name] = min(best[name][0], cpu), min(best[name][1], wall)
    for name, (cpu, wall) in best.items():
        print(f"    {name:8s} cpu {cpu * 1e3:9.2f} ms   wall {wall * 1e3:9.2f} ms")
    return best


def write_rows(table: pa.Table, folder: Path) -> None:
    writer = RowsWriter(table.schema)
    for batch in table.to_batches():
        writer.write(batch)
    file = writer.finish()
    with open(folder / "rows.bin", "wb") as out:
        out.writelines(file.pages)
    (folder / "rows.dir").write_bytes(file.directory)


def write_lance(table: pa.Table, folder: Path) -> None:
    with lance_file.LanceFileWriter(str(folder / "rows.lance"), table.schema) as out:
        for batch in table.to_batches():
            out.write_batch(batch)


def write_parquet(table: pa.Table, folder: Path) -> None:
    pq.write_table(table, folder / "rows.parquet", compression="zstd", row_group_size=131_072)


def open_rows(folder: Path) -> RowsReader:
    payload = memoryview(pa.memory_map(str(folder / "rows.bin")).read_buffer())
    directory = (folder / "rows.dir").read_bytes()
    return RowsReader(
        lambda ranges: [payload[a:b] for a, b in ranges],
        directory,
        len(payload),
        payload=payload,
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    table = logdata.make(ROWS)
    folder = tmp_path_factory.mktemp("rows")
    written = {
        "ours": once(lambda: write_rows(table, folder)),
        "lance": once(lambda: write_lance(table, folder)),
        "parquet": once(lambda: write_parquet(table, folder)),
    }
    lance.write_dataset(table, str(folder / "dataset"))
    sizes = {
        "ours": sum((folder / n).stat().st_size for n in ("rows.bin", "rows.dir")),
        "lance": (folder / "rows.lance").stat().st_size,
        "parquet": (folder / "rows.parquet").stat().st_size,
    }
    path = str(folder / "rows.lance")
    return Files(
        table,
        folder,
        open_rows(folder),
        lance_file.LanceFileReader(path),
        lance_file.LanceFileReader(path, columns=TWO),
        lance.dataset(str(folder / "dataset")),
        folder / "rows.parquet",
        written,
        sizes,
    )


def scattered(count: int, sets: int = 8) -> list[Any]:
    rng = np.random.default_rng(count)
    return [np.sort(rng.choice(ROWS, count, replace=False)).astype(np.uint32) for _ in range(sets)]


def takers(
    files: Files, sets: list[Any], columns: list[str] | None
) -> dict[str, Callable[[], Any]]:
    """Each work takes the next set of rows, so that none profits from the one before."""
    reader = files.lance if columns is None else files.lance_two
    cycles = {name: iter(sets * 1000) for name in ("ours", "lance", "dataset")}
    return {
        "ours": lambda: files.reader.take(next(cycles["ours"]), columns),
        "lance": lambda: reader.take_rows(next(cycles["lance"])).to_table(),
        "dataset": lambda: files.dataset.take(next(cycles["dataset"]), columns=columns),
    }


@pytest.mark.parametrize("columns", [None, TWO], ids=["all", "two"])
@pytest.mark.parametrize("count", [1, 100, 1000])
def test_scattered_rows(files: Files, report: Any, count: int, columns: list[str] | None) -> None:
    sets = scattered(count)
    expected = files.table.select(columns or files.table.schema.names).take(pa.array(sets[0]))
    assert pa.Table.from_batches([files.reader.take(sets[0], columns)]).equals(expected)
    name = f"{count} scattered rows, {'all' if columns is None else '2'} columns"
    print(f"\n{name}")
    best = turns(takers(files, sets, columns), 24)
    report_best(report, name, best)


@pytest.mark.parametrize("columns", [None, TWO], ids=["all", "two"])
def test_clustered_rows(files: Files, report: Any, columns: list[str] | None) -> None:
    starts = np.random.default_rng(3).integers(0, ROWS - 100, 8)
    sets = [np.arange(s, s + 100, dtype=np.uint32) for s in starts]
    name = f"100 neighbouring rows, {'all' if columns is None else '2'} columns"
    print(f"\n{name}")
    report_best(report, name, turns(takers(files, sets, columns), 24))


def report_best(report: Any, name: str, best: Times) -> None:
    """Against the better of Lance's two doors, by processor time and by wall clock."""
    for index, unit in ((0, "s cpu"), (1, "s wall")):
        peer = min(best["lance"][index], best["dataset"][index])
        report(name, best["ours"][index], peer, peer_name="lance", unit=unit, goal=1.0)


@pytest.mark.parametrize("columns", [None, TWO], ids=["all", "two"])
def test_full_scan(files: Files, report: Any, columns: list[str] | None) -> None:
    def ours() -> None:
        for _ in files.reader.scan(columns):
            pass

    reader = files.lance if columns is None else files.lance_two

    def peer() -> None:
        for _ in reader.read_all(batch_size=65_536).to_batches():
            pass

    name = f"full scan, {'all' if columns is None else '2'} columns"
    print(f"\n{name}")

    def batches() -> None:
        for _ in pq.ParquetFile(files.parquet).iter_batches(65_536, columns=columns):
            pass

    best = turns(
        {
            "ours": ours,
            "parquet": lambda: pq.read_table(files.parquet, columns=columns),
            "batches": batches,
            "lance": peer,
        },
        5,
    )
    best["parquet"] = tuple(map(min, best["parquet"], best["batches"]))
    for index, unit in ((0, "s cpu"), (1, "s wall")):
        for other in ("parquet", "lance"):
            goal = 1.25 if other == "parquet" else None
            report(name, best["ours"][index], best[other][index], other, unit, goal)


def test_open_and_first_row(files: Files, report: Any) -> None:
    rows = np.array([ROWS // 3], np.uint32)
    path = str(files.folder / "rows.lance")
    print("\nopen and one row")
    best = turns(
        {
            "ours": lambda: open_rows(files.folder).take(rows),
            "lance": lambda: lance_file.LanceFileReader(path).take_rows(rows).to_table(),
        },
        12,
    )
    for index, unit in ((0, "s cpu"), (1, "s wall")):
        report("open and one row", best["ours"][index], best["lance"][index], "lance", unit, 1.0)


def test_size_and_write(files: Files, report: Any) -> None:
    for other in ("lance", "parquet"):
        ours, peer = files.sizes["ours"] / 1e6, files.sizes[other] / 1e6
        report("size", ours, peer, other, "MB", 1.1 if other == "parquet" else 1.0)
        report("write", files.written["ours"][0], files.written[other][0], other, "s cpu")
