"""``make bench``, ``make bench-check``, ``make bench-short``: run the suites, keep, compare, draw.

    python bench/run.py                 every suite, then RESULTS.md and the plots
    python bench/run.py table xref      some suites, merged into what is kept
    python bench/run.py --page          RESULTS.md and the plots of what is kept
    python bench/run.py --check         every suite; fails when a ratio lost more than 20 %
    python bench/run.py --baseline      what is kept becomes the baseline

Each suite runs in a process of its own. ``--check`` runs the suites that lost again, up to three
runs in all, and compares the best of each line; the files of a check go to a folder of their own.
A suite is checked with the sizes its baseline was measured with.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import processor
from ratios import (
    Line,
    baseline_settings,
    best,
    losses,
    not_measured,
    read_baseline,
    read_lines,
    read_suite,
    settings_of,
    write_baseline,
)

HERE = Path(__file__).parent
RESULTS, PLOTS = HERE / "results", HERE / "plots"
PAGE, BASELINE = HERE / "RESULTS.md", HERE / "baseline.json"
RUNS = 3


def suites() -> list[str]:
    return [path.stem.removeprefix("test_") for path in sorted(HERE.glob("test_*.py"))]


def run(suite: str, results: Path = RESULTS, settings: dict[str, str] | None = None) -> int:
    """One suite in a process of its own; 0 when every answer was right."""
    print(f"== {suite}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", f"bench/test_{suite}.py"]
    environment = {**os.environ, **(settings or {}), "BENCH_RESULTS": str(results)}
    done = subprocess.run(command, cwd=HERE.parent, env=environment, check=False)
    return 0 if done.returncode == pytest_no_tests() else done.returncode


def pytest_no_tests() -> int:
    """What pytest returns when a suite's peers are all absent."""
    return 5


def write_page() -> None:
    from plots import draw_all
    from results_page import page

    points = [p for f in sorted(RESULTS.glob("*.json")) for p in read_suite(f).get("series", [])]
    drawn = draw_all(PLOTS, read_lines(RESULTS), points)
    PAGE.write_text(page(RESULTS, drawn), encoding="utf-8")
    print(f"wrote {PAGE} and {len(drawn)} plots")


def check(chosen: list[str]) -> int:
    """Run, compare with the baseline, run again what lost; how many losses stay."""
    machine, baseline = read_baseline(BASELINE)
    sizes = baseline_settings(BASELINE)
    baseline = [line for line in baseline if line.suite in chosen]
    same = machine == processor()
    runs: list[list[Line]] = []
    waiting, broken = list(chosen), 0
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            for suite in waiting:
                broken += run(suite, Path(folder), sizes.get(suite)) != 0
            runs.append(read_lines(Path(folder)))
        found = losses(best(runs), baseline, same_machine=same)
        waiting = sorted({loss.line.suite for loss in found})
        if not waiting:
            break
    for line in not_measured(best(runs), baseline):
        print(f"not measured: {line.suite}: {line.name} against {line.peer_name}")
    for loss in found:
        print(f"LOST {loss}")
    print(f"{len(best(runs))} ratios, {len(found)} lost more than 20 %, {broken} suites failed")
    return 1 if found or broken else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", help="default: all")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--baseline", action="store_true")
    asked = parser.parse_args()
    chosen = asked.suites or suites()
    if asked.check:
        return check(chosen)
    failed = 0
    if not (asked.page or asked.baseline):
        failed = sum(run(suite) != 0 for suite in chosen)
    if asked.baseline:
        write_baseline(BASELINE, processor(), read_lines(RESULTS), settings_of(RESULTS))
    elif os.environ.get("BENCH_SHORT") != "1":
        write_page()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
