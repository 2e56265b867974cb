"""A needle through Spark over 1,000 splits: cross-references on against off.

The sought value is spread so that bounds cannot tell splits apart; without cross-references every
split is opened. Wall-clock times are the best of several runs that take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from measure import SHORT

import indextables

SPLITS = 60 if SHORT else 1000
ROWS = 100
OFF = {"spark.indextables.xref.query.enabled": "false"}

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("xref") / "table")
    users = np.random.default_rng(3).permutation(SPLITS * ROWS)
    rows = pa.table({"user": [f"user-{u:07d}" for u in users], "n": np.arange(len(users))})
    options = {"spark.indextables.storage.fsync": "false"}
    indextables.write(rows, path, rows_per_split=ROWS, options=options)
    table = indextables.open(path)
    table.build_xref()
    assert table.snapshot.num_files == SPLITS
    return path


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def test_needle_with_and_without(spark: Any, path: str, report: Any) -> None:
    where = f"user = 'user-{SPLITS * ROWS // 3:07d}'"
    read: dict[str, int] = {}

    def ask(name: str, options: dict[str, str]) -> None:
        frame = spark.read.format("indextables").options(**options).load(path)
        assert len(frame.filter(where).collect()) == 1
        plan = indextables.last_plan(spark)
        assert plan is not None
        read[name] = len(plan.splits)

    times = [(seconds(lambda: ask("on", {})), seconds(lambda: ask("off", OFF))) for _ in range(3)]
    on, off = (min(t) for t in zip(*times[1:], strict=True))
    report("needle through Spark", on, off, "XRef off", goal=0.5)
    report("splits opened", read["on"], read["off"], "XRef off", unit="splits", goal=0.1)
