"""docs/architecture.md is compared with real calls: a Spark query, a write, a merge.

Each operation runs once before it is recorded, so that imports are done. What runs in Spark's
workers is recorded in this process: the reader that the driver packed for them is pickled,
unpickled and asked for its partitions, as a worker would.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docs.blocks import DOCS
from docs.flows import PACKAGE, Recorder, Stack, Step, flow_of, mistakes

import indextables

PAGE = (DOCS / "architecture.md").read_text("utf-8")
ROWS = [
    {"day": f"2026-01-0{i % 2 + 1}", "host": f"web-{i}", "message": f"connection timeout {i}"}
    for i in range(40)
]


def new_table(path: Path) -> str:
    for part in (ROWS[:20], ROWS[20:]):
        indextables.write(part, str(path), partition_by=["day"], text=["message"], rows_per_split=5)
    return str(path)


def recorded(
    run: Callable[[Any], Any], tmp_path: Path, ready: Callable[[str], Any] = str
) -> list[Stack]:
    run(ready(new_table(tmp_path / "first")))
    table = ready(new_table(tmp_path / "second"))
    recorder = Recorder()
    with recorder.recording():
        run(table)
    return recorder.calls


def merge(table: indextables.Table) -> None:
    assert table.merge().metrics.merged_files > 0


def append(path: str) -> None:
    assert indextables.write(ROWS, path).version > 1


def test_a_write(tmp_path: Path) -> None:
    assert mistakes(flow_of(PAGE, "A write"), recorded(append, tmp_path)) == []


def test_a_merge(tmp_path: Path) -> None:
    assert mistakes(flow_of(PAGE, "A merge"), recorded(merge, tmp_path, indextables.open)) == []


@pytest.mark.spark
def test_a_spark_query(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark calls back in threads of its own, so recording starts where it enters Python."""
    from indextables.spark.driver import bridge

    packed: list[Any] = []
    recorder = Recorder()
    on = [False]

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            if not on[0]:
                return original(*arguments)
            with recorder.recording():
                return original(*arguments)

        return run

    really_packed = bridge.packed

    def keep(reader: Any, output: Any) -> bytes:
        packed.append((pickle.dumps(reader), pickle.dumps(reader.partitions())))
        return really_packed(reader, output)

    monkeypatch.setattr(bridge.Bridge, "ask", watched(bridge.Bridge.ask))
    monkeypatch.setattr(bridge.Bridge, "fetch", watched(bridge.Bridge.fetch))
    monkeypatch.setattr(bridge, "packed", keep)

    def query(path: str) -> None:
        frame = spark.read.format("indextables").option("read.driver.maxSplits", 0).load(path)
        found = frame.filter(
            "day = '2026-01-01' AND host >= 'web-2' AND message TEXTSEARCH 'timeout'"
        )
        assert found.count() == len(found.collect()) > 0

    def tasks() -> None:
        for reader, partitions in packed:
            for partition in pickle.loads(partitions):
                list(pickle.loads(reader).read(partition))

    query(new_table(tmp_path / "first"))
    tasks()
    second = new_table(tmp_path / "second")
    packed.clear()
    on[0] = True
    query(second)
    assert packed
    with recorder.recording():
        tasks()
    assert "\n".join(mistakes(flow_of(PAGE, "A Spark query"), recorder.calls)) == ""


def test_every_file_of_the_page_exists() -> None:
    for name in re.findall(r"`([\w/]+\.py)`", PAGE):
        known = (Path(PACKAGE) / name, DOCS.parent / name)
        assert any(path.exists() for path in known), name


def test_a_wrong_page_is_found(tmp_path: Path) -> None:
    """A swapped step, a step nobody calls, a folder left out, two returns."""
    calls = recorded(append, tmp_path)
    right = flow_of(PAGE, "A write")
    assert mistakes(right, calls) == []
    swapped = [*right[:3], right[4], right[3], *right[5:]]
    assert any("not called from" in text for text in mistakes(swapped, calls))
    strange = [*right[:3], Step("planner/plan.py", ()), *right[3:]]
    assert any(text.startswith("planner/plan.py: not called") for text in mistakes(strange, calls))
    helper = [replace(right[0], helpers=("planner/plan.py",)), *right[1:]]
    assert mistakes(helper, calls) == ["planner/plan.py: not called while public.py is at work"]
    shorter = [replace(step, helpers=()) for step in right]
    assert "splits/rows/: takes part and is not named" in mistakes(shorter, calls)
    twice = [*right, Step("table/order.py", (), "back in")]
    assert "table/order.py: more than one row returns" in mistakes(twice, calls)
