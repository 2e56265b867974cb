"""Random changes of a table, each followed by random questions, against a dictionary."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from dml_model import World, local_world
from servers.counting_s3 import CountingS3


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


@pytest.fixture(scope="module")
def server() -> Iterator[CountingS3]:
    with CountingS3() as running:
        yield running


def s3_world(server: CountingS3, name: str, rng: random.Random) -> World:
    storage = {
        "spark.indextables.s3.endpoint": server.endpoint,
        "spark.indextables.aws.accessKey": "key",
        "spark.indextables.aws.secretKey": "secret",
        "spark.indextables.aws.region": "us-east-1",
        "spark.indextables.s3.pathStyleAccess": "true",
    }
    return World(f"s3://tables/{name}", rng, storage)


def test_random_changes_on_an_object_store(server: CountingS3, rng: random.Random) -> None:
    world = s3_world(server, "short", rng)
    for name in ("delete", "update", "upsert", "merge", "delete", "restore", "reorg", "purge"):
        world.step(name)
        world.check()


@pytest.mark.slow
@pytest.mark.parametrize("round", range(5))
def test_random_changes_on_an_object_store_for_long(
    server: CountingS3, seed: int, round: int
) -> None:
    play(s3_world(server, f"long-{round}", random.Random(seed * 100 + round)), 120)


@pytest.mark.slow
@pytest.mark.parametrize("round", range(20))
def test_random_changes_for_long(tmp_path: Path, seed: int, round: int) -> None:
    play(local_world(tmp_path, random.Random(seed * 100 + round)), 120)
