"""Joining sessions: layers, fallback, new sessions, settings."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from spark_world import World

import indextables.spark as it
from indextables.errors import ConfigError
from indextables.spark.driver import session as joining
from indextables.spark.driver.classes import ShimUnavailableError
from indextables.spark.driver.request import access


def test_registering_again_is_harmless(spark: Any) -> None:
    assert it.register(spark) == 2
    assert it.register(spark) == 2


def test_a_new_session_of_the_same_jvm(world: World) -> None:
    other = world.spark.newSession()
    assert it.register(other) == 2
    assert other.read.format("indextables").load(world.path).filter("id = 3").count() == 1
    path = world.path
    found = other.sql(f"select count(*) from indextables.`{path}` where message TEXTSEARCH 'disk'")
    assert found.collect()[0][0] > 0


def test_one_warning_where_the_planner_cannot_load(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ShimUnavailableError("no compiler here")

    monkeypatch.setattr(joining, "install", refuse)
    other = spark.newSession()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert it.register(other) == 1
        assert it.register(other) == 1
    ours = [w for w in seen if "no compiler here" in str(w.message)]
    assert len(ours) == 1
    assert it.last_plan(other) is None


def test_the_setting_switches_the_planner_off(spark: Any) -> None:
    other = spark.newSession()
    other.conf.set("spark.indextables.spark.shim.enabled", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert it.register(other) == 1


def test_access_merges_options_over_session() -> None:
    found = access(
        {"path": "/t", "spark.indextables.READ.batchrows": "7", "fs.s3a.endpoint": "x"},
        {"spark.indextables.read.batchRows": "9", "spark.indextables.read.splitsPerTask": "3"},
    )
    assert found.config["read.batchRows"] == 7
    assert found.config["read.splitsPerTask"] == "3"
    assert found.storage_options == {"fs.s3a.endpoint": "x"}


def test_access_needs_a_path() -> None:
    with pytest.raises(ConfigError, match="needs a path"):
        access({})


def test_access_suggests_near_names() -> None:
    with pytest.raises(ConfigError, match=r"read\.batchRows"):
        access({"path": "/t", "spark.indextables.read.batchRow": "7"})


def test_local_uris_are_plain_paths() -> None:
    assert access({"path": "file:///a/b"}).path == "/a/b"
    assert access({"path": "file:/a/b"}).path == "/a/b"


def test_the_worker_is_frozen_once(world: World) -> None:
    from pyspark.sql.functions import udf

    @udf("int")
    def frozen(_: int) -> int:
        import gc

        return gc.get_freeze_count()

    assert world.frame("l2").filter("id = 1").select("id").count() == 1
    assert world.frame("l2").filter("id = 1").select(frozen("id")).collect()[0][0] > 1000
