"""Tables that two layers and Parquet share; the session itself is the one of all tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from spark_world import World

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if shutil.which("java") is None:
                item.add_marker(pytest.mark.skip(reason="java is missing"))


@pytest.fixture(scope="session")
def world(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(spark, tmp_path_factory.mktemp("world"))
