"""Ratios: what one line of a benchmark says, how lines are kept, and when one got worse.

A line compares ours with a peer measured in the same run, so the machine cancels out; a ratio is
what is kept and checked, never a time. For costs (seconds, bytes) smaller is better, for rates
(anything per second) larger is. A line is known by suite, name, peer and unit.

A *loss* is a ratio worse than the baseline's by more than the tolerance. Three things are not
losses: a line without a baseline (new), a baseline without a line (not measured, reported as such),
and a line against a fixed figure (a bar, a budget) on another machine than the baseline's, because
there nothing cancels out. A line that lost is measured again before it counts: other work on the
machine only ever makes a ratio worse by chance, so the best of several runs is the one compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TOLERANCE = 0.20
FIXED = frozenset(
    ("bar", "planning bar", "budget", "allowed", "the goal", "60 us", "floor + 150 ms", "goal")
)
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Line:
    """One comparison; ``ratio`` is ours / peer, ``goal`` the worst ratio that satisfies."""

    suite: str
    name: str
    ours: float
    peer_name: str
    peer: float
    ratio: float
    unit: str
    goal: float | None = None

    @property
    def key(self) -> Key:
        return (self.suite, self.name, self.peer_name, self.unit)

    @property
    def is_rate(self) -> bool:
        """Is more better?"""
        return self.unit.endswith("/s")

    @property
    def is_fixed(self) -> bool:
        """Is the peer a figure rather than a program?"""
        return self.peer_name in FIXED

    @property
    def cost(self) -> float:
        """The ratio as a cost: smaller is better whatever the unit."""
        if not self.is_rate:
            return self.ratio
        return 1 / self.ratio if self.ratio else float("inf")

    @property
    def meets_goal(self) -> bool | None:
        """``None`` where there is no goal."""
        if self.goal is None:
            return None
        return self.ratio >= self.goal if self.is_rate else self.ratio <= self.goal


@dataclass(frozen=True)
class Loss:
    """A line that got worse; ``by`` is the share, 0.25 for a quarter."""

    line: Line
    before: Line
    by: float

    def __str__(self) -> str:
        return (
            f"{self.line.suite}: {self.line.name} against {self.line.peer_name}: "
            f"{self.before.ratio:.4g} -> {self.line.ratio:.4g} ({self.by:+.0%})"
        )


def losses(
    now: Iterable[Line],
    baseline: Iterable[Line],
    *,
    tolerance: float = TOLERANCE,
    same_machine: bool = True,
) -> list[Loss]:
    """The lines that lost more than the tolerance, the worst first."""
    known = {line.key: line for line in baseline}
    found = []
    for line in now:
        before = known.get(line.key)
        if before is None or before.cost <= 0 or (line.is_fixed and not same_machine):
            continue
        by = line.cost / before.cost - 1
        if by > tolerance:
            found.append(Loss(line, before, by))
    return sorted(found, key=lambda loss: -loss.by)


def not_measured(now: Iterable[Line], baseline: Iterable[Line]) -> list[Line]:
    """Lines of the baseline that the run does not have."""
    have = {line.key for line in now}
    return [line for line in baseline if line.key not in have]


def best(runs: Iterable[Sequence[Line]]) -> list[Line]:
    """Of each line the best measurement, in the order of first appearance."""
    found: dict[Key, Line] = {}
    for run in runs:
        for line in run:
            have = found.get(line.key)
            if have is None or line.cost < have.cost:
                found[line.key] = line
    return list(found.values())


# -- files ----------------------------------------------------------------------------------------


def line_of(row: dict[str, Any]) -> Line:
    return Line(**{name: row.get(name) for name in Line.__dataclass_fields__})  # type: ignore[arg-type]


def read_suite(path: Path) -> dict[str, Any]:
    """One suite's file: context, lines, series."""
    if not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def read_lines(folder: Path) -> list[Line]:
    """The lines of every suite."""
    return [
        line_of(row)
        for path in sorted(folder.glob("*.json"))
        for row in read_suite(path).get("lines", [])
    ]


def write_suite(
    path: Path,
    lines: Sequence[Line],
    context: dict[str, Any],
    series: Sequence[dict[str, Any]] = (),
) -> None:
    """Keep a run; what it did not measure stays as an earlier run of the same settings left it."""
    before = read_suite(path)
    if before.get("context", {}).get("settings", {}) != context.get("settings", {}):
        before = {}
    merged = {line_of(row).key: row for row in before.get("lines", [])}
    merged |= {line.key: asdict(line) for line in lines}
    points = {_point(row): row for row in before.get("series", [])}
    points |= {_point(row): row for row in series}
    found: dict[str, Any] = {"suite": path.stem, "context": context, "lines": list(merged.values())}
    if points:
        found["series"] = list(points.values())
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _point(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["plot"], row["line"], row["x"])


def read_baseline(path: Path) -> tuple[str, list[Line]]:
    """The machine of the baseline and its lines."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return found["machine"], [line_of(row) for row in found["lines"]]


def baseline_settings(path: Path) -> dict[str, dict[str, str]]:
    """The sizes each suite of the baseline was run with; a check must use the same."""
    found: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8")).get(
        "suites", {}
    )
    return found


def settings_of(folder: Path) -> dict[str, dict[str, str]]:
    """The settings of every kept suite that had any."""
    found = {p.stem: read_suite(p).get("context", {}).get("settings", {}) for p in folder.iterdir()}
    return {suite: found[suite] for suite in sorted(found) if found[suite]}


def write_baseline(
    path: Path, machine: str, lines: Iterable[Line], suites: dict[str, dict[str, str]] | None = None
) -> None:
    rows = [asdict(line) for line in sorted(best([list(lines)]), key=lambda line: line.key)]
    whole = {"machine": machine, "suites": suites or {}, "lines": rows}
    text = json.dumps(whole, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
