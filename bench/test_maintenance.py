"""Maintenance: merging against writing the same rows again, and a purge of 100,000 files."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import indextables
from indextables import maintenance
from indextables.log.log import TransactionLog

Report = Callable[..., Any]
OPTIONS = {"spark.indextables.xref.autoIndex.enabled": "false"}
ROWS = 100_000
SPLITS = 40
TURNS = 2
STRAYS = 100_000
YEAR_S = 365 * 86_400


def rows() -> pa.Table:
    rng = np.random.default_rng(1)
    words = np.array([f"word{i}" for i in range(5_000)])
    picks = rng.integers(0, len(words), (ROWS, 8))
    return pa.table(
        {
            "id": np.arange(ROWS),
            "host": [f"host-{i}" for i in rng.integers(0, 500, ROWS)],
            "x": rng.random(ROWS),
            "msg": [" ".join(line) for line in words[picks].tolist()],
        }
    )


def seconds(work: Callable[[], Any]) -> float:
    """Processor time of the process: both sides may use threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def test_merge_against_writing_again(tmp_path: Path, report: Report) -> None:
    """Peers: the rows read back and written as a new table, and written from memory alone."""
    data = rows()
    small = str(tmp_path / "small")
    indextables.write(data, small, text=["msg"], rows_per_split=ROWS // SPLITS, options=OPTIONS)
    size = indextables.open(small).snapshot.num_bytes / 1e6
    best = dict.fromkeys(("merge", "read and write", "write"), float("inf"))
    for turn in range(TURNS):
        path = str(tmp_path / f"merged{turn}")
        shutil.copytree(small, path)
        table = indextables.open(path)
        assert table.snapshot.num_files == SPLITS

        def read_and_write(place: str = f"{path}-again") -> None:
            found = indextables.open(small).to_arrow()
            indextables.write(found, place, text=["msg"], options=OPTIONS)

        def write(place: str = f"{path}-memory") -> None:
            indextables.write(data, place, text=["msg"], options=OPTIONS)

        works = {"merge": table.merge, "read and write": read_and_write, "write": write}
        for name, work in works.items():
            best[name] = min(best[name], seconds(work))
        assert indextables.open(path).snapshot.num_files == 1
        assert indextables.open(path).count() == ROWS
    ours = best.pop("merge")
    for name, peer in best.items():
        report(f"merge {SPLITS} splits, {size:.0f} MB", ours, peer, f"{name} the rows again")
        report("merge throughput", size / ours, size / peer, f"{name} the rows again", unit="MB/s")


def strew(path: Path) -> list[Path]:
    """Files of an aborted write, a year old, all of them on the disk."""
    strays = [path / f"stray-{i:06d}.split" for i in range(STRAYS)]
    long_ago = time.time() - YEAR_S
    for stray in strays:
        os.close(os.open(stray, os.O_CREAT | os.O_WRONLY))
        os.utime(stray, (long_ago, long_ago))
    os.sync()
    return strays


def test_purge_of_many_files(tmp_path: Path, report: Report) -> None:
    path = tmp_path / "table"
    indextables.write(pa.table({"id": [1, 2, 3]}), str(path), options=OPTIONS)
    strew(path)
    start = time.perf_counter()
    for entry in list(os.scandir(path)):
        if entry.name.startswith("stray-"):
            entry.stat()
            os.unlink(entry.path)
    peer = time.perf_counter() - start
    strew(path)
    log = TransactionLog.open(str(path))
    start = time.perf_counter()
    result = maintenance.purge(log)
    ours = time.perf_counter() - start
    assert result.metrics.orphaned_files_deleted == STRAYS
    assert indextables.open(str(path)).count() == 3
    report(f"purge {STRAYS:,} files, local", ours, peer, "scandir, stat, unlink")
    report("purge", STRAYS / ours, STRAYS / peer, "scandir, stat, unlink", unit="files/s")
