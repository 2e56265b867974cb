"""What all benchmarks share: lines against the named peers, and points of curves.

    def test_something(report, series):
        report("probe 10,000 filters", ours=21e-6, peer=600e-6, peer_name="one by one",
               unit="s", goal=0.1)
        series("planning", "ours", 1000, 0.2)

Each call of ``report`` is one line; ``ratio`` is ours / peer, so for costs smaller is better (for
units that end in ``/s`` larger is), and ``goal`` is the worst ratio that satisfies. All lines are
printed at the end of the session and, test by test, merged into ``bench/results/<suite>.json``,
named after the file. ``ratios.py`` has the rules, ``measure.py`` has the clocks.

With ``BENCH_SHORT=1`` every suite but Spark's runs on small data, once or twice: the answers are
compared with the peers' as always, the figures mean nothing and are not kept. A peer that is not
installed skips its tests.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure  # sets the sizes of the short form before any suite reads them
import pytest
from machine import context
from ratios import Line, write_suite

RESULTS = Path(os.environ.get("BENCH_RESULTS") or Path(__file__).parent / "results")
PEERS = frozenset(
    ("deltalake", "pyiceberg", "lance", "duckdb", "pyxorfilter", "xxhash", "s3fs", "google_crc32c")
)
LINES = pytest.StashKey[list[Line]]()
POINTS = pytest.StashKey[list[dict[str, Any]]]()
Report = Callable[..., Line]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LINES] = []
    config.stash[POINTS] = []
    # it is started servers that fork, and they become other programs at once
    config.addinivalue_line("filterwarnings", "ignore:lance is not fork-safe:UserWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In the short form the sizes that suites keep as constants shrink."""
    if not measure.SHORT:
        return
    items[:] = [item for item in items if is_in_short(item)]
    for item in items:
        module: Any = getattr(item, "module", None)
        for name, value in measure.SHORT_SIZES.get(suite_of(item), {}).items():
            assert hasattr(module, name), f"{item.path} has no constant {name}"
            setattr(module, name, value)


def is_in_short(item: Any) -> bool:
    name = item.originalname or item.name
    return (
        suite_of(item) not in measure.LEFT_OUT_OF_SHORT
        and name not in measure.TESTS_LEFT_OUT_OF_SHORT
    )


def suite_of(item: Any) -> str:
    return Path(str(item.path)).stem.removeprefix("test_")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """A comparison whose peer is not installed is skipped, not failed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in PEERS:
            raise
        pytest.skip(f"{error.name} is not installed")


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Record one comparison with a peer; see the head of this file."""
    suite = suite_of(request.node)

    def record(
        name: str,
        ours: float,
        peer: float,
        peer_name: str = "peer",
        unit: str = "s",
        goal: float | None = None,
    ) -> Line:
        ratio = ours / peer if peer else float("inf")
        line = Line(suite, name, ours, peer_name, peer, ratio, unit, goal)
        request.config.stash[LINES].append(line)
        return line

    return record


@pytest.fixture
def series(request: pytest.FixtureRequest) -> Callable[[str, str, float | str, float], None]:
    """Record one point of a curve: which plot, which line of it, x and y."""

    def record(plot: str, line: str, x: float | str, y: float) -> None:
        point = {"suite": suite_of(request.node), "plot": plot, "line": line, "x": x, "y": y}
        request.config.stash[POINTS].append(point)

    return record


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    lines = config.stash[LINES]
    if not lines:
        return
    terminalreporter.section("ratios (ours / peer)")
    for row in table(lines):
        terminalreporter.write_line(row)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Keep what is measured so far, so that a run which is cut off leaves its results."""
    suite, stash = suite_of(item), item.config.stash
    if not measure.SHORT:
        keep(
            [line for line in stash[LINES] if line.suite == suite],
            [point for point in stash[POINTS] if point["suite"] == suite],
        )


def keep(lines: list[Line], points: list[dict[str, Any]]) -> None:
    suites = {line.suite for line in lines} | {point["suite"] for point in points}
    found = context() if suites else {}
    for suite in suites:
        write_suite(
            RESULTS / f"{suite}.json",
            [line for line in lines if line.suite == suite],
            found,
            [point for point in points if point["suite"] == suite],
        )


def table(lines: list[Line]) -> list[str]:
    """The lines as aligned text."""
    rows = [("suite", "what", "ours", "peer", "peer's name", "unit", "ratio", "goal")]
    for line in lines:
        goal = "" if line.goal is None else f"{'>=' if line.is_rate else '<='} {line.goal:g}"
        numbers = (f"{line.ours:.4g}", f"{line.peer:.4g}")
        rows.append(
            (line.suite, line.name, *numbers, line.peer_name, line.unit, f"{line.ratio:.3f}", goal)
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session of two cores in which our source is registered with its planner inside."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        import indextables.spark

        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "2g")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        assert indextables.spark.register(session) == 2
        yield session
        session.stop()
