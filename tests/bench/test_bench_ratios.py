"""The rules by which benchmark ratios are kept and compared with the baseline."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from ratios import (
    Line,
    baseline_settings,
    best,
    losses,
    not_measured,
    read_baseline,
    read_lines,
    write_baseline,
    write_suite,
)
from results_page import page, spelled

BENCH = Path(__file__).parents[2] / "bench"
SLOW = Line("table", "needle", 2.0, "duckdb", 10.0, 0.2, "s", 1.0)
RATE = Line("spark", "scan", 50.0, "parquet", 100.0, 0.5, "rows/s", 0.4)
FIXED = Line("xref", "route", 1.0, "budget", 2.0, 0.5, "s", 1.0)


def at(line: Line, ratio: float) -> Line:
    return replace(line, ratio=ratio)


@pytest.mark.parametrize(
    ("ratio", "lost"), [(0.1, False), (0.2, False), (0.2399, False), (0.2401, True), (2.0, True)]
)
def test_a_cost_is_lost_when_it_grows_by_more_than_a_fifth(ratio: float, lost: bool) -> None:
    assert bool(losses([at(SLOW, ratio)], [SLOW])) is lost


@pytest.mark.parametrize(
    ("ratio", "lost"), [(0.9, False), (0.5, False), (0.42, False), (0.41, True), (0.0, True)]
)
def test_a_rate_is_lost_when_it_shrinks(ratio: float, lost: bool) -> None:
    assert bool(losses([at(RATE, ratio)], [RATE])) is lost


def test_the_worst_loss_comes_first_and_says_what_happened() -> None:
    found = losses([at(SLOW, 0.3), at(RATE, 0.1)], [SLOW, RATE])
    assert [loss.line.suite for loss in found] == ["spark", "table"]
    assert str(found[1]) == "table: needle against duckdb: 0.2 -> 0.3 (+50%)"


def test_fixed_figures_count_only_on_the_same_machine() -> None:
    now = [at(FIXED, 5.0)]
    assert losses(now, [FIXED], same_machine=True)
    assert not losses(now, [FIXED], same_machine=False)
    assert losses([at(SLOW, 5.0)], [SLOW], same_machine=False)


def test_new_lines_and_lines_that_were_not_measured_are_no_losses() -> None:
    other = replace(SLOW, peer_name="lance", ratio=99.0)
    assert not losses([other], [SLOW])
    assert not_measured([other], [SLOW]) == [SLOW]
    assert not_measured([at(SLOW, 9)], [SLOW]) == []


def test_the_best_of_several_runs_counts() -> None:
    runs = [[at(SLOW, 0.5), at(RATE, 0.1)], [at(SLOW, 0.21)], [at(RATE, 0.6), at(SLOW, 0.3)]]
    found = best(runs)
    assert [line.ratio for line in found] == [0.21, 0.6]
    assert not losses(found, [SLOW, RATE])


def test_runs_of_a_part_keep_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    other = replace(SLOW, peer_name="lance")
    context = {"when": "now", "machine": "m", "memory_gb": 1, "system": "s", "versions": {}}
    point = {"suite": "table", "plot": "p", "line": "l", "x": 1, "y": 2}
    write_suite(path, [SLOW, other], context, [point])
    write_suite(path, [at(SLOW, 0.7)], context, [{**point, "x": 2}])
    assert [line.ratio for line in read_lines(tmp_path)] == [0.7, 0.2]
    assert '"x": 1' in path.read_text()
    text = page(tmp_path, [])
    assert "2 ratios in 1 suites; 2 of 2 goals are met" in text
    assert "| needle | 2 s | 10 s (duckdb) | 0.7 | ≤ 1 | yes |" in text


def test_runs_of_another_size_replace_what_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    write_suite(path, [SLOW, RATE], {"settings": {}})
    write_suite(path, [at(SLOW, 0.7)], {"settings": {"BENCH_ROWS": "1000"}})
    assert [line.ratio for line in read_lines(tmp_path)] == [0.7]


def test_the_baseline_comes_back_as_it_was(tmp_path: Path) -> None:
    sizes = {"table": {"BENCH_ROWS": "1000"}}
    write_baseline(tmp_path / "b.json", "a machine", [SLOW, RATE], sizes)
    assert baseline_settings(tmp_path / "b.json") == sizes
    machine, lines = read_baseline(tmp_path / "b.json")
    assert (machine, lines) == ("a machine", [RATE, SLOW])


def test_goals_are_judged_by_direction() -> None:
    assert SLOW.meets_goal is True
    assert at(SLOW, 1.1).meets_goal is False
    assert RATE.meets_goal is True
    assert at(RATE, 0.3).meets_goal is False
    assert replace(SLOW, goal=None).meets_goal is None


def test_the_committed_baseline_can_be_read() -> None:
    machine, lines = read_baseline(BENCH / "baseline.json")
    assert machine
    assert len({line.key for line in lines}) == len(lines) > 50
    assert not losses(lines, lines)


def test_seconds_are_spelled_in_a_unit_that_suits_them() -> None:
    assert spelled(0.0005, "s") == ("500", "µs")
    assert spelled(0.25, "s cpu") == ("250", "ms cpu")
    assert spelled(0.25, "s", "µs") == ("2.5e+05", "µs")
    assert spelled(12.5, "MB") == ("12.5", "MB")


def test_what_is_kept_names_no_place_on_a_machine() -> None:
    results = (BENCH / "results").glob("*.json")
    for file in (BENCH / "baseline.json", BENCH / "RESULTS.md", *results):
        assert not re.search(r"(?<![\w.])/(work|tmp|home|root)/", file.read_text()), file.name
