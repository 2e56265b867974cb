"""Edges through Spark: empty partition values, and arguments that are no version or moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import indextables

VALUES = ["", None, "a", " "]


def test_the_empty_string_is_not_null(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = spark.createDataFrame(list(enumerate(VALUES)), "n int, p string")
    frame.write.format("indextables").partitionBy("p").mode("append").save(path)
    held = {f.partition_values["p"] for f in indextables.open(path).snapshot.files()}
    assert held == set(VALUES)
    read = spark.read.format("indextables").load(path)
    assert {r.n: r.p for r in read.collect()} == dict(enumerate(VALUES))
    for where, expected in (
        ("p = ''", [0]),
        ("p IS NULL", [1]),
        ("p <> ''", [2, 3]),
        ("p IN ('', 'a')", [0, 2]),
        ("p <= ''", [0]),
        ("length(p) = 0", [0]),
        ("p LIKE ''", [0]),
    ):
        assert sorted(r.n for r in read.filter(where).collect()) == expected, where
        assert read.filter(where).count() == len(expected), where
    groups = {r.p: r["count"] for r in read.groupBy("p").count().collect()}
    assert groups == dict.fromkeys(VALUES, 1)
    indextables.sql(spark, f"DROP INDEXTABLES PARTITIONS FROM '{path}' WHERE p = ''")
    again = spark.read.format("indextables").load(path)
    assert sorted(r.n for r in again.collect()) == [1, 2, 3]


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("versionAsOf", "true", "is not a version"),
        ("versionAsOf", "1.0", "is not a version"),
        ("versionAsOf", "1_0", "is not a version"),
        ("versionAsOf", "-1", "cannot be read"),
        ("versionAsOf", "9223372036854775808", "cannot be read"),
        ("versionAsOf", "77", "cannot be read"),
        ("versionAsOf", "", "is not a version"),
        ("spark.indextables.read.version", "-1", "is not 0 or more"),
        ("spark.indextables.read.timestamp", "nan", "is not a timestamp"),
        ("timestampAsOf", "nan", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR"),
        ("timestampAsOf", "inf", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR"),
        ("timestampAsOf", "", "timestampAsOf is empty"),
    ],
)
def test_what_is_no_version_or_moment(
    spark: Any, tmp_path: Path, option: str, value: str, word: str
) -> None:
    path = str(tmp_path / "t")
    indextables.write([{"a": 1}], path)
    with pytest.raises(Exception, match=word):
        spark.read.format("indextables").option(option, value).load(path).collect()


def test_the_literal_beside_a_double_is_rounded_by_spark(spark: Any, tmp_path: Path) -> None:
    """Spark casts the literal before it pushes the filter; without Spark it is compared exactly."""
    path = str(tmp_path / "t")
    indextables.write([{"d": 9007199254740992.0}], path)
    read = spark.read.format("indextables").load(path)
    assert read.filter("d = 9007199254740993").count() == 1
    assert indextables.open(path).count("d = 9007199254740993") == 0
