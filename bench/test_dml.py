"""Changing rows: one row among many splits, an upsert against Delta's merge, and reading after."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import logdata
import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables.config import Config
from indextables.log.log import TransactionLog
from indextables.maintenance import delete_rows
from indextables.storage.base import open_store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from servers.counting_s3 import CountingS3

Report = Callable[..., Any]
OPTIONS = {"spark.indextables.xref.autoIndex.enabled": "false"}
SPLITS = 1000
ROWS = 1_000_000
KEYS = 1000
TURNS = 3


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
    """Peer: the split that holds the row is written again, as before deletion vectors.

    On an S3 server that counts requests.
    """
    local, puts = str(tmp_path / "t"), {}
    indextables.write(rows(10 * SPLITS), local, rows_per_split=10, options=OPTIONS)
    with CountingS3() as server:
        options = {
            "spark.indextables.s3.endpoint": server.endpoint,
            "spark.indextables.aws.accessKey": "key",
            "spark.indextables.aws.secretKey": "secret",
            "spark.indextables.aws.region": "us-east-1",
            "spark.indextables.s3.pathStyleAccess": "true",
        }
        store = open_store("s3://bench/t", options)
        for file in sorted(p for p in Path(local).rglob("*") if p.is_file()):
            store.put(file.relative_to(local).as_posix(), file.read_bytes())
        for share, row in ((1.0, 7), (0.0, 8)):
            config = Config({**OPTIONS, "deletionVector.maxShare": share, "checkpoint.interval": 0})
            log = TransactionLog("s3://bench/t", store, config)
            files = log.snapshot().num_files
            server.reset()
            done = delete_rows(log, f"id = {row}")
            assert done.rows_deleted == 1
            assert (done.splits_rewritten == 0) == (share == 1.0)
            kinds = server.report().kinds
            assert log.snapshot().num_files == files
            puts[share] = sum(count for kind, count in kinds.items() if kind.startswith("PUT"))
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


@pytest.mark.parametrize("shape", ["narrow", "log"])
def test_reading_with_one_percent_deleted(tmp_path: Path, report: Report, shape: str) -> None:
    """Peer: the same table before the deletion; processor time of reading all rows.

    Four narrow columns, or the ten columns of a log with messages.
    """
    whole, part = str(tmp_path / "whole"), str(tmp_path / "part")
    count = ROWS if shape == "narrow" else ROWS // 4
    data = rows(count) if shape == "narrow" else logdata.make(count)
    where = "n < 10"
    if shape == "log":
        where = f"latency < {float(np.quantile(data['latency'].to_numpy(), 0.01))!r}"
    indextables.write(data, whole, options=OPTIONS)
    shutil.copytree(whole, part)
    indextables.open(part, options=OPTIONS).delete(where)
    before, after = indextables.open(whole), indextables.open(part)
    assert 0 < before.count() - after.count() < 0.02 * count + 10
    ours = peer = float("inf")
    for _ in range(3 * TURNS):
        ours = min(ours, _processor_seconds(lambda: sum(b.num_rows for b in after.scan())))
        peer = min(peer, _processor_seconds(lambda: sum(b.num_rows for b in before.scan())))
    name = "four narrow columns" if shape == "narrow" else "a log"
    report(
        f"scan of all rows, 1 % of them deleted: {name}",
        ours=ours,
        peer=peer,
        peer_name="no row deleted",
        unit="s",
        goal=1.05,
    )
