"""The session of the tests hides nothing: its log is read and warnings are errors."""

from __future__ import annotations

import warnings
from typing import Any

import pytest


def log_error(spark: Any, text: str) -> None:
    spark._jvm.org.apache.logging.log4j.LogManager.getLogger("tests.watch").error(text)


def test_an_error_in_the_log_is_seen_once(spark: Any) -> None:
    log_error(spark, "something broke")
    assert spark.driver_log.taken() == ["watch: something broke"]
    assert spark.driver_log.taken() == []


@pytest.mark.driver_errors("broke on purpose")
def test_a_test_can_say_what_it_provokes(spark: Any) -> None:
    log_error(spark, "this broke on purpose")


def test_code_that_does_not_compile_is_not_interpreted(spark: Any) -> None:
    assert spark.conf.get("spark.sql.codegen.fallback") == "false"


def test_warnings_are_errors(spark: Any) -> None:
    with pytest.raises(RuntimeWarning):
        warnings.warn("look here", RuntimeWarning, stacklevel=1)
