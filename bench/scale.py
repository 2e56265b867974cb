"""How a table grows: 100,000 splits simulated, a million measured, ten million estimated.

    python bench/scale.py             prints the figures of docs/scale.md (about two minutes)
    python bench/scale.py --splits 20000

The simulated table has a real log of that many splits (one version, one checkpoint) and real
cross-references over them; only a handful of the splits exist as files, those that queries end up
reading. Requests are counted by a recording store that looks remote and accounts 30 ms for every
round trip; ranges that an object store would fetch together count as one request.

Filters have false positives (0.39 % of the splits with 8-bit fingerprints), and each one opens a
split in vain. The simulation asks for a value without any, since those splits do not exist; their
number is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import indextables
from indextables.config import Config
from indextables.log.actions import AddFile, AddXRef
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read import cache as log_cache
from indextables.native import BinaryFuse8, hash_term
from indextables.splits.read.reader import forget_readers
from indextables.storage.base import open_store
from indextables.storage.ranges import coalesce
from indextables.table.table import Table
from indextables.xref.cache import new_cache
from indextables.xref.file import SourceFilter, write_xref
from indextables.xref.router import XRefQueryRouter

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from store_doubles import Call, RecordingStore

LATENCY_S = 0.030
GAP = 512 << 10
REAL = 4
ROWS = 20_000
PER_XREF = 1024
KEYS = 1000
BYTES_PER_KEY = 1.24
TYPICAL_KEYS = 38_000
QUIET = {
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.storage.fsync": "false",
    "spark.indextables.checkpoint.enabled": "false",
    "spark.indextables.state.cache.enabled": "false",
}


def rows_of(split: int) -> pa.Table:
    ids = np.arange(split * ROWS, (split + 1) * ROWS)
    return pa.table(
        {
            "id": ids,
            "host": [f"host-{i * 7919 % 1_000_003:07d}" for i in ids],
            "message": [f"request {i} took {i % 97} ms" for i in ids],
        }
    )


def simulate(path: str, splits: int) -> float:
    """A table of so many splits, the first few of them real; seconds it took."""
    start = time.perf_counter()
    for split in range(REAL):
        indextables.write(rows_of(split), path, text=["message"], options=QUIET)
    log = TransactionLog.open(path, config=Config.of(QUIET))
    model = log.snapshot().file(0)
    log.commit(Transaction(None, "SIMULATE", actions=list(pretended(model, splits))))
    adds = list(log.snapshot().files())
    log.commit(Transaction(None, "SIMULATE", actions=list(crossed(log, adds))))
    log.checkpoint()
    return time.perf_counter() - start


def pretended(model: AddFile, splits: int) -> Iterator[AddFile]:
    rng = random.Random(4)
    for split in range(REAL, splits):
        low, high = split * ROWS, split * ROWS + ROWS - 1
        yield replace(
            model,
            path=f"part-{uuid.UUID(int=rng.getrandbits(128), version=4)}.split",
            min_values={**(model.min_values or {}), "id": str(low), "host": "host-0000000"},
            max_values={**(model.max_values or {}), "id": str(high), "host": "host-1000002"},
            added_at_version=None,
            added_at_timestamp=None,
        )


def crossed(log: TransactionLog, adds: list[AddFile]) -> Iterator[AddXRef]:
    """Cross-references over all splits; those of real splits hold their real keys."""
    from indextables.xref.sources import source_filter

    made = pretended_filters()
    real = {
        add.path: source_filter(log.store, add, log.config, "fuse8")
        for add in adds
        if log.store.exists(add.path)
    }
    model = next(iter(real.values()))
    for start in range(0, len(adds), PER_XREF):
        sources = [
            real.get(add.path) or pretended_filter(model, add.path, made[i % len(made)])
            for i, add in enumerate(adds[start : start + PER_XREF])
        ]
        name = f"_xrefsplits/aaaa/xref-{start:08d}.split"
        written = write_xref(f"{start:08d}", log.table_id, sources)
        log.store.put(name, written.data)
        yield AddXRef(
            name,
            f"xref-{start:08d}",
            tuple(s.path for s in sources),
            len(sources),
            len(written.data),
            written.total_terms,
            written.footer_start,
            written.footer_end,
        )


def pretended_filters() -> list[BinaryFuse8]:
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 2**63, KEYS + 64, np.int64).astype(np.uint64)
    return [BinaryFuse8.build(keys[i : i + KEYS]) for i in range(64)]


def needle() -> str:
    """A host of the second split that no pretended filter takes for one of its own."""
    filters = pretended_filters()
    for host in rows_of(1)["host"].to_pylist():
        key = hash_term("host", host, "xxh64")
        if not any(key in one for one in filters):
            return str(host)
    raise AssertionError("every host is a false positive somewhere")


def pretended_filter(model: SourceFilter, path: str, made: BinaryFuse8) -> SourceFilter:
    return replace(model, path=path, filter=made, num_keys=KEYS)


# -- requests -------------------------------------------------------------------------------------


def requests_of(store: RecordingStore) -> int:
    """Requests an object store would see."""
    count = 0
    for call in made(store):
        if call.op == "read_ranges":
            count += len(coalesce(call.detail, GAP))
        elif call.op == "read_many":
            count += len(call.detail)
        else:
            count += 1
    return count


def made(store: RecordingStore) -> list[Call]:
    """The calls that went over the network: a list of no files does not."""
    return [call for call in store.calls if call.op != "read_many" or call.detail]


class Process:
    """A process that starts with nothing in memory, on a store 30 ms away."""

    def __init__(self, path: str) -> None:
        log_cache.SHARED.invalidate()
        forget_readers()
        self.store = RecordingStore(open_store(path), latency_s=LATENCY_S, hide_local_files=True)
        self.log = TransactionLog(path, self.store, Config.of(QUIET))
        self.xrefs = new_cache(8 << 30)
        self.table: Table | None = None

    def open(self) -> None:
        self.table = Table(self.log, self.log.snapshot())
        self.table.__dict__["xref_router"] = XRefQueryRouter(
            self.store, self.log.config, self.xrefs
        )

    def ask(self, where: str) -> int:
        assert self.table is not None
        return self.table.to_arrow(where).num_rows

    def counted(self, name: str, work: Callable[[], Any]) -> dict[str, Any]:
        self.store.clear()
        start = time.process_time()
        answer = work()
        took = time.process_time() - start
        figures = {
            "step": name,
            "answer": answer,
            "round trips": len(made(self.store)),
            "requests": requests_of(self.store),
            "waiting s": round(len(made(self.store)) * LATENCY_S, 2),
            "CPU s": round(took, 3),
        }
        print(json.dumps(figures), flush=True)
        return figures


def count_requests(path: str, splits: int) -> None:
    print(f"-- requests over {splits:,} splits, 30 ms a round trip")
    host = needle()
    process = Process(path)
    process.counted("open, nothing known", process.open)
    process.counted("open again, nothing new", process.open)
    process.counted("id = k (min/max)", lambda: process.ask(f"id = {ROWS + 17}"))
    process.counted("id = k, again", lambda: process.ask(f"id = {ROWS + 17}"))
    process.counted("id of another split", lambda: process.ask(f"id = {2 * ROWS + 17}"))
    process.counted("host = h (all XRefs)", lambda: process.ask(f"host = '{host}'"))
    process.counted("host = h, again", lambda: process.ask(f"host = '{host}'"))
    process.counted("absent host", lambda: process.ask("host = 'host-0000000x'"))
    print(
        f"   false positives to expect: {splits * 0.0039:,.0f} splits (fuse8), "
        f"{splits * 1.5e-5:,.1f} (fuse16)"
    )
    print(f"   XRefs in memory: {process.xrefs.nbytes / 1e6:,.0f} MB for {KEYS:,} keys a split")


# -- memory and time ------------------------------------------------------------------------------

OPENER = """
import json, sys, time
import numpy, pyarrow, zstandard
from indextables.config import Config
from indextables.log.log import TransactionLog
from indextables.planner import Planner
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
config = Config({"state.cache.enabled": False})
before = resident()
start = time.process_time()
log = TransactionLog.open(sys.argv[1], config=config)
snapshot = log.snapshot()
opened = time.process_time() - start
after_open = resident() - before
planner = Planner(snapshot, config=config)
planner.bind("id = 1 AND name = 'x'")
start = time.process_time()
planner.plan(sys.argv[2])
first = time.process_time() - start
warm = []
for k in range(20):
    start = time.process_time()
    left = len(planner.plan(sys.argv[2]))
    warm.append(time.process_time() - start)
print(json.dumps({"splits": snapshot.num_files, "open s": round(opened, 3),
    "open MB": round(after_open / 1e6, 1),
    "with plan columns MB": round((resident() - before) / 1e6, 1),
    "first plan ms": round(first * 1e3, 2), "warm plan ms": round(min(warm) * 1e3, 3),
    "left": left}))
"""


def opened(path: str, where: str) -> dict[str, Any]:
    """Open and plan in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", OPENER, path, where], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    print(json.dumps(found), flush=True)
    return found


def log_bytes(path: str) -> int:
    return sum(f.stat().st_size for f in (Path(path) / "_transaction_log").rglob("*.avro"))


def measure_growth(folder: Path, sizes: tuple[int, ...]) -> dict[int, dict[str, Any]]:
    """Logs of five columns with bounds: open, memory, plan."""
    import log_tables

    print("-- memory and time, five columns with bounds, one process each")
    found = {}
    for n in sizes:
        entries = log_tables.make(n)
        path = folder / f"log-{n}"
        log_tables.write_ours(path, entries)
        found[n] = {**opened(str(path), "id = 123456789"), "log MB": log_bytes(str(path)) / 1e6}
        print(f"   log of {n:,} splits: {found[n]['log MB']:.1f} MB of manifests")
    return found


def estimate(found: dict[int, dict[str, Any]], splits: int) -> None:
    """The line through the two largest sizes, read at ``splits``."""
    a, b = sorted(found)[-2:]
    print(f"-- estimated for {splits:,} splits (a line through {a:,} and {b:,})")
    for name in (
        "open s",
        "open MB",
        "with plan columns MB",
        "first plan ms",
        "warm plan ms",
        "log MB",
    ):
        low, high = found[a][name], found[b][name]
        slope = (high - low) / (b - a)
        print(f"   {name:<22} {high + slope * (splits - b):>12,.1f}")
    print(
        f"   XRef bytes at {TYPICAL_KEYS:,} keys a split: "
        f"{splits * TYPICAL_KEYS * BYTES_PER_KEY / 1e9:,.0f} GB in {-(-splits // PER_XREF):,} files"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=100_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--estimate", type=int, default=10_000_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table"
        took = simulate(path, asked.splits)
        xrefs = [f.stat().st_size for f in (Path(path) / "_xrefsplits").rglob("*.split")]
        print(
            f"-- {asked.splits:,} splits simulated in {took:.1f} s; {len(xrefs)} XRefs, "
            f"{sum(xrefs) / 1e6:,.1f} MB ({sum(xrefs) / asked.splits / KEYS:.3f} bytes a key)"
        )
        heads = [f.stat().st_size for f in Path(path).rglob("_manifest.avro")]
        print(f"   the head of its checkpoint, XRef sources included: {heads[-1] / 1e6:.1f} MB")
        count_requests(path, asked.splits)
        found = measure_growth(Path(folder), tuple(asked.sizes))
        estimate(found, asked.estimate)


if __name__ == "__main__":
    main()
