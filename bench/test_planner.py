"""Planning over 10,000, 100,000 and 1,000,000 splits, beside deltalake and pyiceberg.

Times are CPU milliseconds of the whole process (the peers use threads), the best of several runs,
because other work may share the machine. A *bar* is a time the project promises. The peers get
the same file list, bounds and filter, and must find the same files. ``INDEXTABLES_BENCH_LONG=1``
also gives them 100,000 and (deltalake) 1,000,000 files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from measure import SHORT
from planner_peers import delta_plan, delta_table, iceberg_plan, iceberg_table
from planner_tables import ROWS, SyntheticSnapshot, columns, with_xrefs

from indextables.planner import Planner
from indextables.planner.stages.stats import bounds_of

LONG = bool(os.environ.get("INDEXTABLES_BENCH_LONG"))
SIZES = (1_000, 10_000) if SHORT else (10_000, 100_000, 1_000_000)
BARS = {10_000: 0.5, 1_000_000: 10.0}
DELTA_SHOWS = 10  # its EXPLAIN names no more files than this
Report = Callable[..., Any]


def cpu_ms(run: Callable[[], Any], repeat: int = 20) -> float:
    """The best CPU time of a call in milliseconds."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time_ns()
        run()
        best = min(best, time.process_time_ns() - start)
    return best / 1e6


def filters(n: int) -> dict[str, str]:
    key = n // 2 * ROWS + 5
    day = date(1970, 1, 1) + timedelta(days=19_500)
    host = f"host-{n // 2 % 5000:05d}-m"
    return {
        "id = k": f"id = {key}",
        "day and id": f"day = date'{day}' AND id = {key}",
        "host": f"host = '{host}'",
        "IN of three": f"id IN ({key}, {key + 7 * ROWS}, {key - 900 * ROWS})",
        "OR of two columns": f"id = {key} OR host = '{host}'",
        "half of the table": f"id > {key}",
    }


@pytest.mark.parametrize("layout", ["clustered", "scattered"])
def test_warm_plans(layout: str, report: Report) -> None:
    for n in SIZES:
        planner = Planner(SyntheticSnapshot(n, layout == "scattered"))
        for name, sql in filters(n).items():
            left = len(planner.plan(sql))
            took = cpu_ms(lambda planner=planner, sql=sql: planner.plan(sql))
            print(f"PLAN {layout} {n:>9,} splits -> {left:>7,}  {name:<18} {took:8.3f} ms")
            assert left >= 1
            if n in BARS and name != "half of the table":
                report(f"{layout} {n:,}: {name}", took, BARS[n], "bar", "ms", 1.0)


@pytest.mark.parametrize("layout", ["clustered", "scattered"])
def test_one_xref_term(layout: str, report: Report) -> None:
    """A million splits, all covered: a day of them asked for a term, and all of them at once."""
    snapshot = SyntheticSnapshot(1_000_000, layout == "scattered")
    planner = Planner(snapshot, xref_router=with_xrefs(snapshot))
    day = date(1970, 1, 1) + timedelta(days=19_500)
    for name, sql in (("day", f"day = date'{day}' AND status = 207"), ("all", "status = 207")):
        plan = planner.plan(sql)
        routed = plan.report.stage("xref")
        assert routed is not None
        assert routed.splits_out < routed.splits_in / 50
        took = cpu_ms(lambda sql=sql: planner.plan(sql))
        print(f"XREF {layout} {name}: {plan!r} {took:.3f} ms")
        report(
            f"{layout}, xref over {name}", took, 25.0, "bar", "ms", 1.0 if name == "day" else None
        )


def explain_ms(planner: Planner, sql: str, rounds: int = 30) -> float:
    """The fastest ``explain`` of a plan that has just been made into tasks."""
    best = float("inf")
    for _ in range(rounds):
        plan = planner.plan(sql)
        assert plan.tasks
        start = time.process_time_ns()
        plan.explain()
        best = min(best, time.process_time_ns() - start)
    return best / 1e6


def test_explain_beside_planning(report: Report) -> None:
    """What ``explain`` adds to a plan that is put to use, that is, made into tasks."""

    def used(planner: Planner, sql: str) -> None:
        assert planner.plan(sql).tasks

    for n in SIZES:
        planner = Planner(SyntheticSnapshot(n, scattered=True))
        sql = filters(n)["OR of two columns"]
        work = cpu_ms(lambda p=planner, q=sql: used(p, q), 30)
        explained = explain_ms(planner, sql)
        goal = 0.05 if n == SIZES[-1] else None
        report(f"explain over {n:,}", explained, work, "plan and tasks", "ms", goal)
        if n in BARS:
            report(f"explain over {n:,}", explained, BARS[n], "planning bar", "ms", goal)


def test_kernel_beside_numpy(report: Report) -> None:
    """The verdicts of a million intervals beside the two comparisons alone in numpy."""
    planner = Planner(SyntheticSnapshot(1_000_000, scattered=True))
    sql = filters(1_000_000)["id = k"]
    planner.plan(sql)
    column = bounds_of(planner.snapshot, "id", pa.int64())
    key = 500_000 * ROWS + 5
    numpy = cpu_ms(lambda: np.flatnonzero((column.lows <= key) & (column.highs >= key)))
    report("1,000,000 splits, no order", cpu_ms(lambda: planner.plan(sql)), numpy, "numpy", "ms")


@pytest.mark.parametrize("n", SIZES if LONG else SIZES[:1])
def test_beside_deltalake(n: int, tmp_path: Path, report: Report) -> None:
    planner = Planner(SyntheticSnapshot(n))
    table = delta_table(tmp_path / "delta", columns(n))
    for name in ("id = k", "host"):
        sql = filters(n)[name]
        peer = delta_plan(table, sql)
        assert peer() == min(DELTA_SHOWS, len(planner.plan(sql)))
        ours = cpu_ms(lambda sql=sql: planner.plan(sql))
        report(f"plan {name} over {n:,} files", ours, cpu_ms(peer, 5), "deltalake", "ms", 0.1)


@pytest.mark.parametrize("n", SIZES[:2] if LONG else SIZES[:1])
def test_beside_pyiceberg(n: int, tmp_path: Path, report: Report) -> None:
    planner = Planner(SyntheticSnapshot(n))
    table = iceberg_table(tmp_path / "iceberg", columns(n))
    for name in ("id = k", "host"):
        sql = filters(n)[name]
        peer = iceberg_plan(table, sql)
        assert peer() == len(planner.plan(sql))
        ours = cpu_ms(lambda sql=sql: planner.plan(sql))
        report(f"plan {name} over {n:,} files", ours, cpu_ms(peer, 2), "pyiceberg", "ms", 0.01)


def test_first_plan_parses_the_statistics() -> None:
    """The first plan of a snapshot turns texts into numbers; later ones reuse them."""
    for n in SIZES:
        snapshot = SyntheticSnapshot(n)
        for which in ("min", "max"):
            for column in ("id", "host"):
                snapshot.stat_column(which, column)
        snapshot.text_column("stats")
        planner = Planner(snapshot)
        predicate = planner.bind(filters(n)["OR of two columns"])
        took = cpu_ms(lambda planner=planner, p=predicate: planner.plan(p), 1)
        each = 1e6 * took / n / 4
        print(f"FIRST PLAN {n:>9,} splits, two columns: {took:.1f} ms, {each:.0f} ns a bound")
