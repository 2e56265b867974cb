"""Curves for the plots: planning time by number of splits, the pruning funnel, the XRef probe.

Planning is the same question on the same file list for every peer (an id that one file holds);
answers are compared before anything is timed. Times are processor milliseconds of the whole
process, the best of several rounds. Ours keeps the bound form of a filter's text, so it is asked
for another id each time, and the question asked again is a line of its own. The file list is in
memory for us and deltalake; pyiceberg reads its manifests for every plan. Peers go up to 100,000
files (pyiceberg: 10,000), in the long form (``INDEXTABLES_BENCH_LONG=1``) to 1,000,000, because
making those tables takes minutes; plans of over a second are timed once.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from measure import SHORT, timed
from planner_peers import delta_plan, delta_table, iceberg_plan, iceberg_table
from planner_tables import ROWS, SyntheticSnapshot, columns

import indextables
from indextables.native import BinaryFuse8, FilterSet
from indextables.planner import Planner

LONG = bool(os.environ.get("INDEXTABLES_BENCH_LONG"))
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
PEER_SIZES = (1_000, 10_000, 100_000)
MOST = {"deltalake": 100_000, "pyiceberg": 10_000}
FILTERS = (100, 1_000, 10_000)
KEYS_PER_FILTER = 10_000
Series = Callable[[str, str, Any, float], None]


def best_ms(work: Callable[[], Any], rounds: int) -> float:
    best = float("inf")
    for _ in range(1 if SHORT else rounds):
        start = time.process_time_ns()
        work()
        best = min(best, time.process_time_ns() - start)
    return best / 1e6


def peer_ms(plan: Callable[[], int]) -> float:
    """The best of some plans, all of them right; one is enough where it takes over a second."""
    start = time.process_time_ns()
    assert plan() == 1
    first = (time.process_time_ns() - start) / 1e6
    return first if first > 1000 else best_ms(plan, 3)


def question(n: int, turn: int = 0) -> str:
    return f"id = {(n // 2 - turn) * ROWS + 5}"


def ours_ms(planner: Planner, n: int) -> tuple[float, float]:
    """A plan of a question never asked before, and of one asked again."""
    assert len(planner.plan(question(n))) == 1
    gc.collect()
    again = best_ms(lambda: planner.plan(question(n)), 30)
    fresh = iter(range(1, 400))
    return best_ms(lambda: planner.plan(question(n, next(fresh))), 30), again


def test_planning_ours(series: Series) -> None:
    for n in SIZES:
        planner = Planner(SyntheticSnapshot(n, scattered=True))
        new, again = ours_ms(planner, n)
        series("planning", "indextables", n, new)
        series("planning", "indextables, asked again", n, again)


@pytest.mark.parametrize("peer", ["deltalake", "pyiceberg"])
def test_planning_peers(peer: str, series: Series, report: Any, tmp_path: Path) -> None:
    make, plan_of = {
        "deltalake": (delta_table, delta_plan),
        "pyiceberg": (iceberg_table, iceberg_plan),
    }[peer]
    sizes = [*PEER_SIZES, 1_000_000] if LONG else [n for n in PEER_SIZES if n <= MOST[peer]]
    for n in sizes:
        where = question(n)
        found = columns(n, scattered=True)
        plan = plan_of(make(tmp_path / f"{peer}-{n}", found), where)
        theirs = peer_ms(plan)
        ours, _ = ours_ms(Planner(SyntheticSnapshot(n, scattered=True)), n)
        series("planning", peer, n, theirs)
        report(f"plan over {n:,} splits, a new question", ours, theirs, peer, "ms", 0.1)


def test_funnel(series: Series, tmp_path: Path) -> None:
    """How many splits each stage leaves, on a table whose splits exist."""
    path = str(tmp_path / "table")
    splits, rows = (20, 10) if SHORT else (200, 50)
    ids = np.arange(splits * rows)
    table = pa.table(
        {
            "day": [f"2026-01-{1 + i * 10 // len(ids):02d}" for i in ids],
            "minute": (ids * 7) % 1440,
            "request": [f"req-{(i * 7919) % len(ids):06d}" for i in ids],
        }
    )
    options = {
        "spark.indextables.xref.autoIndex.enabled": "false",
        "spark.indextables.xref.query.minSplitsForXRef": "1",
        "spark.indextables.storage.fsync": "false",
    }
    indextables.write(table, path, partition_by=["day"], rows_per_split=rows, options=options)
    indextables.open(path, options=options).build_xref()
    opened = indextables.open(path, options=options)
    needle = table.slice(len(ids) // 2, 1).to_pylist()[0]
    where = (
        f"day >= '{needle['day']}' AND minute BETWEEN {needle['minute']} AND "
        f"{needle['minute'] + 30} AND request = '{needle['request']}'"
    )
    plan = opened.plan(where)
    assert opened.count(where) == 1
    series("funnel", "splits", "all", plan.report.splits_total)
    for stage in plan.report.stages:
        series("funnel", "splits", stage.name, stage.splits_out)


def test_probe(series: Series) -> None:
    """One term against n filters: grouped and transposed, and one after another."""
    rng = np.random.default_rng(5)
    for n in FILTERS:
        keys = rng.integers(0, 2**63, KEYS_PER_FILTER + n, np.int64).astype(np.uint64)
        built = [BinaryFuse8.build(keys[i : i + KEYS_PER_FILTER]) for i in range(min(n, 200))]
        filters = [built[i % len(built)] for i in range(n)]
        held = FilterSet(filters)
        asked = [int(k) for k in rng.integers(0, 2**63, 50, np.int64)]
        for key in asked[:5]:
            assert held.probe(key).tolist() == [key in one for one in filters]
        turn = iter(asked * 100)
        series("probe", "grouped", n, timed(lambda h=held, t=turn: h.probe(next(t)), 100) * 1e6)
        one_by_one = timed(lambda f=filters, k=asked[0]: [k in one for one in f], 5)
        series("probe", "one by one from Python", n, one_by_one * 1e6)
