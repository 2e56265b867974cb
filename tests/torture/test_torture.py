"""The short form of ``make torture``: some tables with random lives, each with its own seed."""

from __future__ import annotations

import re

import pytest
from run_torture import torture
from torture_world import Shape, World

SHORT = Shape(rounds=2, steps=6)
LIVES = 12


@pytest.mark.parametrize("life", range(LIVES))
def test_whatever_happens_versions_equal_the_model(seed: int, life: int) -> None:
    torture(seed % 1_000_000 * 1000 + life, SHORT)


def test_a_seed_repeats_its_run(seed: int) -> None:
    """The same calls in the same order, faults included, so that a failure can be looked at."""
    shape = Shape(rounds=1, steps=6, most_actors=3)
    first, second = torture(seed, shape), torture(seed, shape)
    assert first.steps == second.steps
    assert calls(first) == calls(second)
    assert first.trace


def calls(world: World) -> list[str]:
    """The trace without the random parts of names."""
    return [re.sub(r"[0-9a-f-]{16,}", "*", line) for line in world.trace]


@pytest.mark.slow
@pytest.mark.parametrize("life", range(200))
def test_whatever_happens_for_long(seed: int, life: int) -> None:
    torture(seed % 1_000_000 * 1000 + 500 + life, Shape())
