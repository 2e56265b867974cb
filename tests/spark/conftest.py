"""One Spark session for all tests of this folder, and tables that two layers and Parquet share."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from spark_world import World

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if "spark" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.filterwarnings("ignore"))
            if shutil.which("java") is None:
                item.add_marker(pytest.mark.skip(reason="java is missing"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        import indextables.spark

        session = (
            SparkSession.builder.master("local[2,3]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "1g")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.inMemoryColumnarStorage.partitionPruning", "false")
            .config("spark.sql.parquet.filterPushdown", "false")
            .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        assert indextables.spark.register(session) == 2
        yield session
        session.stop()


@pytest.fixture(scope="session")
def world(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(spark, tmp_path_factory.mktemp("world"))
