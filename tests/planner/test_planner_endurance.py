"""Planning for a long time and from many threads: no memory is kept, the answers stay the same.

Every plan asks for other numbers, so anything remembered by literal would add up. Words are drawn
from a fixed set, because the analyzers keep the words they met last. The newest few bound filters
are kept on purpose; the warm-up fills that place while memory is already being counted.
"""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import psutil
import pyarrow as pa
import pytest

import indextables
from indextables.planner import Planner
from indextables.planner.binding import MOST_REMEMBERED
from indextables.table import Table

SPLITS, ROWS = 24, 20
WORDS = 60
THREADS = 16
OPTIONS = {
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.xref.query.minSplitsForXRef": "1",
    "spark.indextables.storage.fsync": "false",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("endurance") / "table")
    ids = range(SPLITS * ROWS)
    rows = pa.table(
        {
            "id": list(ids),
            "day": [f"2026-01-{1 + i // (ROWS * 8):02d}" for i in ids],
            "text": [f"w{i % WORDS} common" for i in ids],
            "x": [float(i * 37 % 101) for i in ids],
        }
    )
    indextables.write(
        rows,
        place,
        partition_by=["day"],
        text=["text"],
        rows_per_split=ROWS,
        options=OPTIONS,
    )
    indextables.open(place, options=OPTIONS).build_xref()
    return place


@pytest.fixture
def table(path: str) -> Table:
    opened = indextables.open(path, options=OPTIONS)
    opened.log.invalidate_cache()
    return indextables.open(path, options=OPTIONS)


def questions() -> Iterator[str]:
    """Another filter each time; they repeat after no number that matters."""
    number = 0
    while True:
        number += 1
        i = number * 13 % (SPLITS * ROWS)
        yield f"id = {number}"
        yield f"text TEXTSEARCH 'w{number % WORDS}' AND id > {number % 400}"
        yield f"day = '2026-01-0{1 + number % 3}' AND x < {number / 7}"
        yield f"id IN ({i}, {number}, {number + 1000}) OR x = {number}.5"
        yield f"NOT (id BETWEEN {i} AND {i + 40}) AND day IS NOT NULL"


def endure(table: Table, plans: int) -> tuple[int, int]:
    """Bytes of Python objects and of the process that so many plans left behind."""
    planner = Planner(table, xref_router=table.xref_router)
    asked = questions()

    def work(count: int) -> None:
        for _ in range(count):
            plan = planner.plan(next(asked))
            assert len(plan.tasks) <= len(plan)

    work(5 * WORDS)
    tracemalloc.start()
    try:
        work(MOST_REMEMBERED + 44)
        gc.collect()
        before, resident = tracemalloc.get_traced_memory()[0], psutil.Process().memory_info().rss
        work(plans)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        return grown, psutil.Process().memory_info().rss - resident
    finally:
        tracemalloc.stop()


def test_plans_leave_no_memory_behind(table: Table) -> None:
    grown, resident = endure(table, 300)
    assert grown < 100_000, f"{grown:,} bytes of objects stayed"
    assert resident < 8_000_000, f"the process grew by {resident:,} bytes"


@pytest.mark.slow
def test_ten_thousand_plans_leave_no_memory_behind(table: Table) -> None:
    grown, resident = endure(table, 10_000)
    print(f"10,000 plans: {grown:,} bytes of objects, {resident:,} bytes of the process")
    assert grown < 100_000, f"{grown:,} bytes of objects stayed"
    assert resident < 8_000_000, f"the process grew by {resident:,} bytes"


def said(planner: Planner, where: str) -> tuple[Any, ...]:
    """Everything a plan decides."""
    plan = planner.plan(where)
    stages = tuple((s.name, s.splits_in, s.splits_out) for s in plan.report.stages)
    return tuple(sorted(a.path for a in plan.splits)), plan.report.must_match, stages


def test_sixteen_threads_plan_on_one_snapshot(table: Table) -> None:
    """All start at once on a snapshot nobody has planned on, so that they race for its caches."""
    source = questions()
    asked = [next(source) for _ in range(40)]
    alone = indextables.open(table.path, options=OPTIONS)
    alone.log.invalidate_cache()
    alone = indextables.open(table.path, options=OPTIONS)
    want = [said(Planner(alone, xref_router=alone.xref_router), where) for where in asked]
    planner = Planner(table, xref_router=table.xref_router)
    start = threading.Barrier(THREADS)
    wrong: list[Any] = []

    def work(turn: int) -> None:
        start.wait()
        for k in range(len(asked)):
            at = (k + turn * 3) % len(asked)
            try:
                got = said(planner, asked[at])
            except Exception as error:
                wrong.append((asked[at], repr(error)))
                return
            if got != want[at]:
                wrong.append((asked[at], got, want[at]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    assert any(len(paths) < SPLITS for paths, _, _ in want)
