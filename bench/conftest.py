"""What all benchmarks share: a table of ratios against the named peers.

    def test_something(report):
        report("probe 10,000 filters", ours=21e-6, peer=600e-6, peer_name="one by one",
               unit="s", goal=0.1)

Each call is one line; ``ratio`` is ours / peer, so for times smaller is better, and ``goal`` is
the largest ratio that satisfies. All lines are printed at the end of the session and written to
``bench/results/<suite>.json``, where the suite is the file's name without ``test_``.
``measure.py`` has the clocks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Line:
    suite: str
    name: str
    ours: float
    peer_name: str
    peer: float
    ratio: float
    unit: str
    goal: float | None = None


LINES = pytest.StashKey[list[Line]]()
Report = Callable[..., Line]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LINES] = []


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Record one comparison with a peer; see the head of this file."""
    suite = Path(str(request.node.path)).stem.removeprefix("test_")

    def record(
        name: str,
        ours: float,
        peer: float,
        peer_name: str = "peer",
        unit: str = "s",
        goal: float | None = None,
    ) -> Line:
        line = Line(suite, name, ours, peer_name, peer, ours / peer, unit, goal)
        request.config.stash[LINES].append(line)
        return line

    return record


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    lines = config.stash[LINES]
    if not lines:
        return
    write_results(lines)
    terminalreporter.section("ratios (ours / peer)")
    for row in table(lines):
        terminalreporter.write_line(row)


def write_results(lines: list[Line]) -> None:
    RESULTS.mkdir(exist_ok=True)
    for suite in {line.suite for line in lines}:
        rows = [asdict(line) for line in lines if line.suite == suite]
        text = json.dumps({"suite": suite, "lines": rows}, indent=2, ensure_ascii=False)
        (RESULTS / f"{suite}.json").write_text(text + "\n", encoding="utf-8")


def table(lines: list[Line]) -> list[str]:
    """The lines as aligned text."""
    rows = [("suite", "what", "ours", "peer", "peer's name", "unit", "ratio", "goal")]
    for line in lines:
        goal = "" if line.goal is None else f"<= {line.goal:g}"
        numbers = (f"{line.ours:.4g}", f"{line.peer:.4g}")
        rows.append(
            (line.suite, line.name, *numbers, line.peer_name, line.unit, f"{line.ratio:.3f}", goal)
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
