"""Substrings of 1 M messages: ours against DuckDB over Parquet and Lance's n-gram index.

A piece of eight characters that few messages hold is counted and its rows are read. Each message
ends with a random hexadecimal id, so pieces of ids are rare. Times are the least of several rounds,
in processor time of the whole process; sizes are bytes on disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import logdata
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import indextables

lance = pytest.importorskip("lance")

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
AIM = 1 / 20


def least(work: Callable[[], Any]) -> float:
    """The least processor time of the process for a work."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


class Peers:
    """The same messages three times."""

    def __init__(self, folder: Path) -> None:
        rows = logdata.make(ROWS, seed=42)
        ids = pc.replace_substring(rows["request_id"], "-", "")
        texts = pc.binary_join_element_wise(rows["message"], ids, " id=")
        self.rows = pa.table({"n": range(ROWS), "message": texts})
        self.built: dict[str, float] = {}
        self.sizes: dict[str, int] = {}
        self.table = self._ours(folder, "with", ["message"])
        self._ours(folder, "without", [])
        self.parquet = str(folder / "rows.parquet")
        pq.write_table(self.rows, self.parquet, compression="zstd")
        self.sizes["parquet"] = os.path.getsize(self.parquet)
        self.duck = duckdb.connect()
        self.duck.execute(f"CREATE VIEW rows AS SELECT * FROM '{self.parquet}'")
        start = time.process_time()
        self.lance = lance.write_dataset(self.rows, str(folder / "rows.lance"))
        self.lance.create_scalar_index("message", index_type="NGRAM")
        self.built["lance"] = time.process_time() - start
        self.sizes["lance"] = sum(
            path.stat().st_size for path in (folder / "rows.lance").rglob("*") if path.is_file()
        )
        whole = ids[ROWS // 3].as_py()
        self.piece = whole[11:19]

    def _ours(self, folder: Path, name: str, parts: list[str]) -> indextables.Table:
        path = str(folder / name)
        options = {"spark.indextables.xref.autoIndex.enabled": "false"}
        start = time.process_time()
        indextables.write(self.rows, path, text=["message"], substring=parts, options=options)
        self.built[name] = time.process_time() - start
        table = indextables.open(path)
        self.sizes[name] = table.snapshot.num_bytes
        return table


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Peers:
    return Peers(tmp_path_factory.mktemp("substring"))


def questions(peers: Peers, pattern: str) -> dict[str, Callable[[], int]]:
    where = f"message LIKE '%{pattern}%'"
    sql = f"SELECT n, message FROM rows WHERE {where}"
    asked = f"contains(message, '{pattern}')"
    return {
        "ours": lambda: peers.table.to_arrow(where, columns=["n", "message"]).num_rows,
        "duckdb": lambda: len(peers.duck.execute(sql).fetchall()),
        "lance": lambda: peers.lance.to_table(columns=["n", "message"], filter=asked).num_rows,
    }


@pytest.mark.parametrize("kind", ["rare piece of 8", "absent piece of 8", "piece of 3"])
def test_rows_with_a_piece(peers: Peers, report: Any, kind: str) -> None:
    pattern = {"rare piece of 8": peers.piece, "absent piece of 8": "zqxjkvwy"}.get(kind, "f0a")
    works = questions(peers, pattern)
    counts = {name: work() for name, work in works.items()}
    assert len(set(counts.values())) == 1, counts
    times = {name: least(work) for name, work in works.items()}
    for peer in ("duckdb", "lance"):
        goal = AIM if peer == "duckdb" and kind.startswith("rare") else None
        report(f"{kind} ({counts['ours']:,})", times["ours"], times[peer], peer, "s", goal)


def test_size_and_build(peers: Peers, report: Any) -> None:
    index = peers.sizes["with"] - peers.sizes["without"]
    texts = peers.rows["message"].nbytes
    report("substring index / text", index / 1e6, texts / 1e6, "text", "MB")
    report("size on disk", peers.sizes["with"] / 1e6, peers.sizes["lance"] / 1e6, "lance", "MB")
    report("build", peers.built["with"], peers.built["lance"], "lance")
    report("build with / without", peers.built["with"], peers.built["without"], "without")
