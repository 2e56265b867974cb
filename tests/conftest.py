"""Shared fixtures: where the interop tables are, and seeds that can be set.

With ``CI`` in the environment random tests repeat one fixed run, so that a change is judged by what
it changed; everywhere else each run draws a new seed and prints it. An exception that a kernel
would swallow reaches pytest as a warning, and warnings are errors.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["servers.fixtures", "spark_session"]

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[2] / "shared"

IN_CI = bool(os.environ.get("CI"))
CI_SEED = 20261116

settings.register_profile(
    "house",
    deadline=None,
    derandomize=IN_CI,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="seed of the randomised tests")
    parser.addoption(
        "--seeds", type=int, default=1, help="run only the seeded tests, each with so many seeds"
    )


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("--seed")
    if seed is None:
        fresh = CI_SEED if IN_CI else random.SystemRandom().getrandbits(32)
        seed = int(os.environ.get("INDEXTABLES_TEST_SEED", fresh))
    config.stash[SEED] = seed


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long form of a test runs only when asked for: ``-m slow`` or INDEXTABLES_SLOW=1."""
    if config.getoption("--seeds") > 1:
        items[:] = [item for item in items if _is_seeded(item)]
    if "slow" in config.option.markexpr or os.environ.get("INDEXTABLES_SLOW") == "1":
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="long form, run with -m slow"))


SEED = pytest.StashKey[int]()


def pytest_report_header(config: pytest.Config) -> str:
    return f"random seed: {config.stash[SEED]} (set it with --seed)"


def _is_seeded(item: pytest.Item) -> bool:
    """Does a test take the run's seed, and not a parameter of that name?"""
    given = {str(mark.args[0]) for mark in item.iter_markers("parametrize")}
    return "seed" in getattr(item, "fixturenames", ()) and not any("seed" in g for g in given)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """With ``--seeds`` a seeded test runs once for the seed of the run and each that follows."""
    count = metafunc.config.getoption("--seeds")
    if count > 1 and _is_seeded(metafunc.definition):
        first = metafunc.config.stash[SEED]
        metafunc.parametrize("seed", range(first, first + count), indirect=True)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The run's random seed, printed in the header; a failure with ``--seeds`` names its own."""
    return int(getattr(request, "param", request.config.stash[SEED]))


@pytest.fixture
def rng(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Known-answer vectors committed with the tests."""
    return DATA


# The tables written by JVM IndexTables that tests read. Other folders beside them are not ours to
# judge: nothing in the tests walks the folder.
INTEROP_TABLES = (
    "01_single_write",
    "02_five_appends",
    "03_with_removes",
    "04_partitioned",
    "06_schema_dedup",
    "07_two_writes_no_checkpoint",
    "09_partitioned_multi_append",
    "11_mixed_operations",
    "14_after_merge",
)


@pytest.fixture(scope="session")
def interop_tables(interop_dir: Path) -> list[Path]:
    """The folder of each table in ``INTEROP_TABLES``."""
    return [interop_dir / name for name in INTEROP_TABLES]


@pytest.fixture(scope="session")
def interop_dir() -> Path:
    """Tables written by JVM IndexTables; absent on machines without them."""
    folder = SHARED / "interop"
    if not folder.is_dir():
        pytest.skip("tables written by JVM IndexTables are not on this machine")
    return folder
