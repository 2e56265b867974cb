"""The short form of ``make simulate``: some seeds of every story, and every planted bug."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sim_coverage import PACKAGE, PLANNER, RETENTION
from sim_machine import forget_splits
from sim_planted import PLANTED, Bug
from sim_run import Tally, hunt, simulate
from sim_stories import STORIES

ROUNDS = 6
FOLDER = Path(__file__).parent


def first_seed(seed: int) -> int:
    """Where a run starts: at the first story."""
    return seed % 1_000_000 * len(STORIES)


def test_every_promise_is_kept_and_no_knob_is_dead(seed: int) -> None:
    """Some seeds of each story; every fault and every rule happened in them."""
    first = first_seed(seed)
    tally = Tally()
    for number in range(first, first + ROUNDS * len(STORIES)):
        outcome = simulate(number)
        told = "\n".join(outcome.steps[-40:])
        again = f"python tests/simulation/run.py --seed {number}"
        assert outcome.failure is None, f"{outcome.failure}\n{told}\nrepeat it: {again}"
        tally.add(outcome)
    assert not tally.dead_knobs


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_caught_within_its_budget(name: str) -> None:
    """From a fixed first seed, so that a change is judged by what it changed."""
    bug: Bug = PLANTED[name]
    found = hunt(bug)
    assert found is not None, f"{bug.what}: not caught within {bug.budget} seeds"


def test_a_seed_repeats_its_run(seed: int) -> None:
    """The same calls in the same order, also in a process with other hashes of strings."""
    chosen = [first_seed(seed) + k for k in range(0, len(STORIES), 5)]
    here = [simulate(number).world.scheduler.fingerprint() for number in chosen]
    forget_splits()
    again = [simulate(number).world.scheduler.fingerprint() for number in chosen]
    assert here == again
    program = (
        "import sys, logging; sys.path[:0] = sys.argv[1:3]\n"
        "logging.disable(logging.CRITICAL)\n"
        "from sim_run import simulate\n"
        "print(*(simulate(int(n)).world.scheduler.fingerprint() for n in sys.argv[3:]))"
    )
    command = [sys.executable, "-c", program, str(FOLDER.parent), str(FOLDER), *map(str, chosen)]
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == here


def test_planted_bugs_name_real_places() -> None:
    """Every place that a bug or a rule names is in the source."""
    places = [place for bug in PLANTED.values() for place in bug.where.split(", ")]
    places += RETENTION.values()
    for place in places:
        path, _, name = place.partition("::")
        text = PACKAGE / path
        assert text.exists(), place
        if name:
            assert f"{name.rpartition('.')[2]}" in text.read_text(encoding="utf-8"), place
    wording = (PACKAGE / "planner/explain/why.py").read_text(encoding="utf-8")
    for rule in PLANNER:
        assert rule.partition(":")[0].removeprefix("dropped by xref") in wording, rule


def test_there_are_enough_bugs() -> None:
    assert len(PLANTED) >= 15
    assert sum(bug.from_issue for bug in PLANTED.values()) >= 7


def test_no_planted_bug_is_in_the_package() -> None:
    """Bugs are planted from outside: nothing in the package knows of them."""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "sim_planted" not in text, path


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_every_promise_is_kept_for_long(seed: int, part: int) -> None:
    first = first_seed(seed) + 1_000_000 + part * 500
    for number in range(first, first + 500):
        outcome = simulate(number)
        assert outcome.failure is None, f"seed {number} ({outcome.story}): {outcome.failure}"
