"""Random changes of a table, each followed by random questions, against a dictionary."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from dml_model import World, local_world


def play(world: World, steps: int) -> None:
    for _ in range(steps):
        world.step()
        world.check()


def test_random_changes_on_a_local_disk(tmp_path: Path, rng: random.Random) -> None:
    play(local_world(tmp_path, rng), 25)


def test_every_step_once_and_in_pairs_that_matter(tmp_path: Path, rng: random.Random) -> None:
    """Coverage by construction: what follows a change of rows is what could lose or revive one."""
    world = local_world(tmp_path, rng, **{"deletionVector.maxShare": 1.0})
    for name in (
        "append", "delete", "update", "upsert", "merge", "update", "restore", "delete", "index",
        "upsert", "checkpoint", "delete", "reorg", "update", "xref", "purge", "overwrite", "upsert",
    ):  # fmt: skip
        world.step(name)
        world.check()


@pytest.mark.slow
@pytest.mark.parametrize("round", range(20))
def test_random_changes_for_long(tmp_path: Path, seed: int, round: int) -> None:
    play(local_world(tmp_path, random.Random(seed * 100 + round)), 120)
