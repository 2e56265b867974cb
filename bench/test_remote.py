"""Whole queries over an object store: ours against Lance and Delta, counted at the server.

The store is our own S3 server on loopback (``tests/servers/counting_s3.py``) that lets every
request wait 30 ms for its first byte, as real ones do. Every query runs in a fresh process, so
nothing is cached; the seconds are by the clock, from the end of the imports to the answer, and
the middle ones of all rounds. Besides them are kept: requests, depth (the longest chain of
requests that had to wait for each other), megabytes, and processor time, of the query and of the
whole process with its imports; of these the least. Two tables: ``BENCH_ROWS`` rows in 20 splits,
and rows in many splits of 1,000. The answers of all peers are compared. Lance has an index for
every asked column; Delta has none, so its word queries read everything.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import logdata
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import remote_peers

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from servers.counting_s3 import Remote
from servers.launch import start_counting

import indextables

lance = pytest.importorskip("lance")
deltalake = pytest.importorskip("deltalake")

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
SPLITS = 20
MANY = 1000
SMALL = 1000
ROUNDS = 3
DELAY_S = 0.03
MB = 1e6

QUERIES = {
    "opened": "open the table",
    "needle": "needle by uuid, all columns",
    "rare": "rare word, two columns",
    "both": "AND of two words, count",
    "range": "range and equality, two columns",
    "count": "count of two conditions",
    "group": "group by service where level",
}


class Cost(NamedTuple):
    """What one run of a query cost."""

    requests: int
    depth: int
    megabytes: float
    seconds: float
    cpu: float
    whole_cpu: float

    @classmethod
    def of(cls, runs: list[Cost]) -> Cost:
        """The least of each figure, and the middle of the seconds, which others disturb."""
        seconds = statistics.median(run.seconds for run in runs)
        return cls(*map(min, zip(*runs, strict=True)))._replace(seconds=seconds)


class Tables:
    """The same rows in three formats on one server."""

    def __init__(self, endpoint: str, name: str, rows: pa.Table, per_split: int) -> None:
        self.endpoint, self.rows = endpoint, rows
        self.paths = {peer: f"s3://tables/{name}-{peer}" for peer in remote_peers.PEERS}
        indextables.write(
            rows,
            self.paths["ours"],
            text=["message"],
            rows_per_split=per_split,
            storage_options=remote_peers.our_options(endpoint),
        )
        options = remote_peers.object_store_options(endpoint)
        self._write_lance(options, per_split)
        self._write_delta(options, per_split)
        self.asked = self._asked()

    def _write_lance(self, options: dict[str, str], per_split: int) -> None:
        dataset = lance.write_dataset(
            self.rows,
            self.paths["lance"],
            max_rows_per_file=per_split,
            storage_options=options,
        )
        for column in ("service", "level"):
            dataset.create_scalar_index(column, index_type="BITMAP")
        for column in ("request_id", "ts", "status"):
            dataset.create_scalar_index(column, index_type="BTREE")
        dataset.create_scalar_index("message", index_type="INVERTED", with_position=True)

    def _write_delta(self, options: dict[str, str], per_split: int) -> None:
        """Files of about the rows of a split: the writer closes one that has reached its size."""
        sample = io.BytesIO()
        pq.write_table(self.rows.slice(0, per_split), sample)
        batches = self.rows.combine_chunks().to_batches(max_chunksize=per_split)
        deltalake.write_deltalake(
            self.paths["delta"],
            pa.RecordBatchReader.from_batches(self.rows.schema, batches),
            target_file_size=int(0.95 * sample.tell()),
            storage_options=options,
        )

    def _asked(self) -> dict[str, Any]:
        rows = len(self.rows)
        words = pc.value_counts(
            pc.list_flatten(pc.split_pattern(self.rows["message"].slice(0, 50_000), " "))
        ).to_pylist()
        words.sort(key=lambda word: (-word["counts"], word["values"]))
        rare = min(words, key=lambda word: abs(word["counts"] - 10))
        stamps = pc.sort_indices(self.rows["ts"]).to_numpy()
        low, high = (
            self.rows["ts"][int(stamps[i])].as_py() for i in (rows // 2, rows // 2 + rows // 50)
        )
        return {
            "endpoint": self.endpoint,
            "rows": rows,
            "id": self.rows["request_id"][rows // 3].as_py(),
            "rare": rare["values"],
            "common": words[30]["values"],
            "low": str(low),
            "high": str(high),
        }


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    running = start_counting(tmp_path_factory.mktemp("remote"))
    yield Remote(f"http://127.0.0.1:{running.port}")
    running.server.stop()


@pytest.fixture(scope="module")
def tables(remote: Remote) -> Tables:
    return Tables(remote.endpoint, "big", logdata.make(ROWS, seed=42), -(-ROWS // SPLITS))


@pytest.fixture(scope="module")
def many(remote: Remote) -> Tables:
    return Tables(remote.endpoint, "many", logdata.make(MANY * SMALL, seed=43), SMALL)


def ask(remote: Remote, peer: str, query: str, asked: dict[str, Any], home: Path) -> dict[str, Any]:
    """One query in a fresh process, with empty caches."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(home), "RUST_LOG": "error"}
    remote.reset(delay_s=DELAY_S)
    done = subprocess.run(
        [sys.executable, remote_peers.__file__, peer, query, json.dumps(asked)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    found = remote.report()
    remote.reset(delay_s=0)
    assert done.returncode == 0, done.stderr
    if os.environ.get("BENCH_TRACE"):
        print_trace(peer, query, found)
    answer = json.loads(done.stdout.splitlines()[-1])
    cost = Cost(
        found.requests,
        found.depth,
        found.bytes_sent / MB,
        answer["seconds"],
        answer["cpu"],
        answer["whole"],
    )
    return {"size": answer["size"], "cost": cost}


def print_trace(peer: str, query: str, found: Any) -> None:
    first = found.served[0].start
    print(f"-- {peer} {query}: {found.requests} requests, depth {found.depth}, {found.kinds}")
    for one in sorted(found.served, key=lambda r: r.start):
        times = f"{(one.start - first) * 1e3:7.0f} {(one.end - first) * 1e3:7.0f}"
        print(f"   {times} {one.kind} {one.status} {one.key} {one.range} {one.sent}")


def compare(
    remote: Remote, tables: Tables, query: str, name: str, report: Any, folder: Path
) -> None:
    """Run a query with every peer, compare the sizes of the answers, report four figures."""
    runs: dict[str, list[Cost]] = {}
    sizes: dict[str, int] = {}
    for number in range(ROUNDS):
        for peer, path in tables.paths.items():
            asked = {**tables.asked, "path": path}
            found = ask(remote, peer, query, asked, folder / f"{peer}-{number}")
            sizes[peer] = found["size"]
            runs.setdefault(peer, []).append(found["cost"])
    assert len(set(sizes.values())) == 1, (name, sizes)
    costs = {peer: Cost.of(found) for peer, found in runs.items()}
    ours = costs.pop("ours")
    for peer, cost in costs.items():
        report(name, ours.seconds, cost.seconds, peer, "s", 0.8)
        report(name, ours.cpu, cost.cpu, peer, "s of the processor")
        report(name, ours.whole_cpu, cost.whole_cpu, peer, "s of the processor, with imports")
        report(name, ours.requests, cost.requests, peer, "requests")
        report(name, ours.depth, cost.depth, peer, "depth", 1.0)
        report(name, ours.megabytes, cost.megabytes, peer, "MB")


@pytest.mark.parametrize("query", QUERIES)
def test_query(remote: Remote, tables: Tables, query: str, report: Any, tmp_path: Path) -> None:
    compare(remote, tables, query, QUERIES[query], report, tmp_path)


@pytest.mark.parametrize("query", ["rare", "count"])
def test_many_splits(remote: Remote, many: Tables, query: str, report: Any, tmp_path: Path) -> None:
    compare(remote, many, query, f"{QUERIES[query]}, {MANY:,} splits", report, tmp_path)
