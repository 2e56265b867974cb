"""Companions over Delta and Iceberg tables that change, at any lag, against the tables themselves.

The stories append, delete (by vectors, positions and values), update, merge, compact, vacuum, and
change columns and partitions; syncs come in between at random. Every answer of the companion is
compared with what the story, or the format's own library, says the table holds.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from storykit import HandDelta, HandIceberg, LibraryDelta, LibraryIceberg, lived

KINDS = [HandDelta, HandIceberg, LibraryDelta, LibraryIceberg]
STORIES, STEPS, PREDICATES = 3, 7, 24
"""Four kinds, so many stories of each, so many steps: 2,100 pairs of a predicate and its rows."""


def told(kind: type, folder: Path, seed: int, steps: int, predicates: int) -> int:
    rng = Random(seed)
    story = kind(folder / "source", rng)
    try:
        return sum(lived(story, str(folder / "index"), rng, steps, predicates))
    finally:
        if hasattr(story, "close"):
            story.close()


@pytest.mark.parametrize("number", range(STORIES))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_companion_gives_the_rows_of_its_source(
    kind: type, number: int, tmp_path: Path, seed: int
) -> None:
    pairs = told(kind, tmp_path, seed + number, STEPS, PREDICATES)
    assert pairs == STEPS * (PREDICATES + 1)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(100))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_companion_gives_the_rows_of_its_source_for_long(
    kind: type, number: int, tmp_path: Path, seed: int
) -> None:
    assert told(kind, tmp_path, 1000 * (seed + 1) + number, 10, 24) == 250
