"""Opening, caching and refreshing big logs: against fastavro and deltalake in the same run.

The normal form uses 100,000 splits, the long form (``INDEXTABLES_BENCH_LONG=1``) a million. Opens
run in fresh processes, so that memory and imports are theirs alone; processor time is what the
open itself took, without imports. Goals: decode 1.5 us an entry; a million splits open in 1.5 s
and 300 MB, in 150 ms from the local copy; a refresh after one commit takes 5 ms.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import log_tables
import measure
import numpy as np
import pytest

SIZES = [100_000, 1_000_000] if os.environ.get("INDEXTABLES_BENCH_LONG") else [100_000]
if measure.SHORT:
    SIZES = [12_000]
ROUNDS = 3

MEMORY = """
def peak_memory():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
"""
OURS = """
import json, sys, time
import numpy, pyarrow, zstandard
from indextables.config import Config
from indextables.log.log import TransactionLog
config = Config({"state.cache.enabled": sys.argv[2] != "off", "state.cache.path": sys.argv[2]})
start = time.process_time()
log = TransactionLog.open(sys.argv[1], config=config)
snapshot = log.snapshot()
assert snapshot.num_files == int(sys.argv[3])
cpu = time.process_time() - start
rss = peak_memory()
start = time.process_time()
low, high = snapshot.stat_column("min", "id"), snapshot.stat_column("max", "id")
columns = time.process_time() - start
print(json.dumps({"cpu": cpu, "rss": rss, "columns": columns}))
"""
DELTA = """
import json, sys, time
from deltalake import DeltaTable
start = time.process_time()
table = DeltaTable(sys.argv[1])
files = table.file_uris()
assert len(files) == int(sys.argv[3])
cpu = time.process_time() - start
print(json.dumps({"cpu": cpu, "rss": peak_memory()}))
"""


def best_of(program: str, *arguments: str) -> dict[str, float]:
    """The least of each figure over several fresh processes."""
    found: list[dict[str, float]] = []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY + program, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    return {key: min(run[key] for run in found) for key in found[0]}


def least(work: Callable[[], Any], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


@pytest.fixture(scope="module", params=SIZES)
def entries(request: pytest.FixtureRequest) -> log_tables.Entries:
    return log_tables.make(request.param)


@pytest.fixture(scope="module")
def tables(
    entries: log_tables.Entries, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tables")
    log_tables.write_ours(folder / "ours", entries)
    log_tables.write_delta(folder / "delta", entries)
    return folder / "ours", folder / "delta"


def test_decode(entries: log_tables.Entries, report: Any) -> None:
    """A manifest's bytes to columns, decompression included; fastavro reads a tenth of it."""
    import fastavro

    from indextables.log.checkpoint.entries import read_entries

    encoder = log_tables.encoder_of(entries)
    parts = [
        log_tables.manifest_bytes(encoder, np.arange(first, min(first + 50_000, entries.n)))
        for first in range(0, entries.n, log_tables.PER_MANIFEST)
    ]
    sample = log_tables.manifest_bytes(encoder, np.arange(10_000))
    ours = least(lambda: [read_entries(part, "file:///t") for part in parts]) / entries.n
    theirs = least(lambda: list(fastavro.reader(io.BytesIO(sample))), 3) / 10_000
    report(f"decode, {entries.n:,} entries", ours * 1e6, theirs * 1e6, "fastavro", "us/entry")


def test_write(entries: log_tables.Entries, report: Any) -> None:
    import fastavro

    from indextables.log.checkpoint.avro_schema import FILE_ENTRY

    encoder = log_tables.encoder_of(entries)
    some = np.arange(min(entries.n, 50_000))
    ours = least(lambda: log_tables.manifest_bytes(encoder, some), 3) / len(some)
    small = log_tables.manifest_bytes(encoder, np.arange(5000))
    rows = list(fastavro.reader(io.BytesIO(small)))
    schema = fastavro.parse_schema(FILE_ENTRY)
    theirs = least(lambda: fastavro.writer(io.BytesIO(), schema, rows, codec="zstandard"), 3) / len(
        rows
    )
    report("encode a manifest", ours * 1e6, theirs * 1e6, "fastavro", "us/entry")


def test_open(
    entries: log_tables.Entries, tables: tuple[Path, Path], tmp_path: Path, report: Any
) -> None:
    ours, delta = tables
    n = str(entries.n)
    peer = best_of(DELTA, str(delta), "-", n)
    cold = best_of(OURS, str(ours), "off", n)
    best_of(OURS, str(ours), str(tmp_path), n)
    cached = best_of(OURS, str(ours), str(tmp_path), n)
    name = f"{entries.n:,} splits"
    report(f"cold open, {name}", cold["cpu"], peer["cpu"], "deltalake", "s CPU")
    report(f"memory after open, {name}", cold["rss"] / 1e6, peer["rss"] / 1e6, "deltalake", "MB")
    report(f"open from the copy, {name}", cached["cpu"], peer["cpu"], "deltalake", "s CPU")
    report(
        f"memory, from the copy, {name}", cached["rss"] / 1e6, peer["rss"] / 1e6, "deltalake", "MB"
    )
    report(f"bounds of a column, {name}", cached["columns"], peer["cpu"], "deltalake open", "s CPU")


def test_refresh(entries: log_tables.Entries, tables: tuple[Path, Path], report: Any) -> None:
    """The next snapshot after one commit of one file, and after one that also removes one."""
    from deltalake import DeltaTable

    from indextables.config import Config
    from indextables.log.actions import AddFile
    from indextables.log.log import TransactionLog
    from indextables.log.read.versions import version_path

    ours, delta = tables
    log = TransactionLog.open(str(ours), config=Config({"state.cache.enabled": False}))
    snapshot = log.snapshot()
    times = []
    for k in range(9):
        version = snapshot.version + 1
        actions = [AddFile(f"part-new-{version}.split", size=1, num_records=1)]
        if k % 2:
            actions.append(snapshot.file(k).removal(1))
        lines = "\n".join(json.dumps(action.envelope()) for action in actions)
        log.store.put(version_path(version), lines.encode())
        start = time.process_time()
        snapshot = snapshot.refresh()
        times.append(time.process_time() - start)
        assert snapshot.version == version
    table = DeltaTable(str(delta))
    last = delta / "_delta_log" / f"{1:020d}.json"
    add = {"path": "x", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    last.write_text(json.dumps({"add": add}) + "\n")
    start = time.process_time()
    table.update_incremental()
    peer = time.process_time() - start
    assert table.version() == 1
    report(f"refresh, {entries.n:,} splits", min(times), peer, "deltalake", "s CPU")
