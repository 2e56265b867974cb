"""Changing rows: one row among many splits, an upsert against Delta's merge, and reading after."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables.config import Config
from indextables.log.log import TransactionLog
from indextables.maintenance import delete_rows
from indextables.storage.base import open_store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from store_doubles import RecordingStore

Report = Callable[..., Any]
OPTIONS = {"spark.indextables.xref.autoIndex.enabled": "false"}
SPLITS = 1000
ROWS = 1_000_000
KEYS = 1000
TURNS = 3
PUTS = frozenset(("put", "put_file", "put_if_absent"))


def rows(count: int) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "id": rng.permutation(count),
            "host": [f"host-{i}" for i in rng.integers(0, 500, count)],
            "x": rng.random(count),
            "n": rng.integers(0, 1000, count),
        }
    )


def test_one_row_among_many_splits(tmp_path: Path, report: Report) -> None:
    """Peer: the split that holds the row is written again, as before deletion vectors."""
    path = str(tmp_path / "t")
    indextables.write(rows(10 * SPLITS), path, rows_per_split=10, options=OPTIONS)
    puts = {}
    for share, row in ((1.0, 7), (0.0, 8)):
        store = RecordingStore(open_store(path))
        config = Config({**OPTIONS, "deletionVector.maxShare": share, "checkpoint.interval": 0})
        log = TransactionLog(path, store, config)
        files = log.snapshot().num_files
        store.clear()
        done = delete_rows(log, f"id = {row}")
        assert done.rows_deleted == 1
        assert (done.splits_rewritten == 0) == (share == 1.0)
        assert log.snapshot().num_files == files
        puts[share] = sum(call.op in PUTS for call in store.calls)
    assert puts[1.0] <= 3
    report(
        f"DELETE of one row among {SPLITS:,} splits: writes to the store",
        ours=puts[1.0],
        peer=puts[0.0],
        peer_name="writing the split again",
        unit="PUTs",
        goal=1.0,
    )


def test_upsert_against_delta(tmp_path: Path, report: Report) -> None:
    """Peer: the merge of delta-rs, on the same rows and keys; processor time, both use threads."""
    deltalake = pytest.importorskip("deltalake")
    data = rows(ROWS)
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    indextables.write(data, here, rows_per_split=max(ROWS // 10, 1), options=OPTIONS)
    for first in range(0, ROWS, ROWS // 10):
        deltalake.write_deltalake(there, data.slice(first, ROWS // 10), mode="append")
    rng = np.random.default_rng(4)
    best = [float("inf"), float("inf")]
    for turn in range(TURNS):
        keys = rng.choice(ROWS, KEYS - 10, replace=False)
        fresh = np.arange(ROWS * 2 + 10 * turn, ROWS * 2 + 10 * turn + 10)
        source = rows(KEYS).set_column(0, "id", pa.array(np.concatenate([keys, fresh])))
        best[0] = min(best[0], _processor_seconds(lambda source=source: _ours(here, source)))
        best[1] = min(
            best[1], _processor_seconds(lambda source=source: _delta(deltalake, there, source))
        )
    count = indextables.open(here).count()
    assert count == deltalake.DeltaTable(there).to_pyarrow_table().num_rows
    report(
        f"upsert of {KEYS:,} keys into {ROWS:,} rows",
        ours=best[0],
        peer=best[1],
        peer_name="deltalake merge",
        unit="s",
        goal=0.2,
    )


def _ours(path: str, source: pa.Table) -> None:
    done = indextables.open(path, options=OPTIONS).upsert(source, on="id")
    assert (done.rows_updated, done.rows_inserted) == (KEYS - 10, 10)


def _delta(deltalake: Any, path: str, source: pa.Table) -> None:
    table = deltalake.DeltaTable(path)
    merge = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _processor_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def test_reading_with_one_percent_deleted(tmp_path: Path, report: Report) -> None:
    """Peer: the same table before the deletion; processor time of reading all rows."""
    whole, part = str(tmp_path / "whole"), str(tmp_path / "part")
    indextables.write(rows(ROWS), whole, options=OPTIONS)
    shutil.copytree(whole, part)
    indextables.open(part, options=OPTIONS).delete("n < 10")
    before, after = indextables.open(whole), indextables.open(part)
    assert 0 < before.count() - after.count() < 0.02 * ROWS + 10
    ours = peer = float("inf")
    for _ in range(3 * TURNS):
        ours = min(ours, _processor_seconds(lambda: sum(b.num_rows for b in after.scan())))
        peer = min(peer, _processor_seconds(lambda: sum(b.num_rows for b in before.scan())))
    report(
        "scan of all rows, 1 % of them deleted",
        ours=ours,
        peer=peer,
        peer_name="no row deleted",
        unit="s",
        goal=1.05,
    )
