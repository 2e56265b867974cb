"""Binding: dates, instants and wall clocks in the session's zone."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest
from binding import NEW_YORK, bound, micros, text

from indextables.expr.column import col
from indextables.expr.predicate import (
    And,
    Undecided,
)

# -- time -----------------------------------------------------------------------------------------


def test_session_zone_reads_naive_literals_of_timestamps() -> None:
    expected = micros(2024, 1, 1, 5)
    assert bound(col("ts") == datetime(2024, 1, 1), NEW_YORK).value == expected
    assert bound(col("ts") == "2024-01-01", NEW_YORK).value == expected
    assert bound(col("ts") == date(2024, 1, 1), NEW_YORK).value == expected
    assert bound("ts = DATE '2024-01-01'", NEW_YORK).value == expected
    assert bound("ts = TIMESTAMP '2024-01-01 00:00:00'", NEW_YORK).value == expected
    assert bound("ts = '2024-01-01T05:00:00Z'", NEW_YORK).value == expected
    assert bound("ts = '2024-01-01 06:00:00 Europe/Berlin'", NEW_YORK).value == expected
    aware = datetime(2024, 1, 1, 5, tzinfo=UTC)
    assert bound(col("ts") == aware, NEW_YORK).value == expected
    assert bound(col("ts") == np.datetime64("2024-01-01T00:00:00.123456"), NEW_YORK).value == (
        expected + 123456
    )


def test_wall_clocks_ignore_the_zone() -> None:
    expected = micros(2024, 1, 1)
    for source in (datetime(2024, 1, 1), "2024-01-01", date(2024, 1, 1), "2024-01-01 00:00:00Z"):
        assert bound(col("n") == source, NEW_YORK).value == expected


def test_an_instant_against_a_wall_clock_is_undecided() -> None:
    leaf = bound(col("n") == datetime(2024, 1, 1, tzinfo=UTC), NEW_YORK)
    assert isinstance(leaf, Undecided)
    assert leaf.references == ("n",)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("dt < TIMESTAMP_NTZ '2024-01-01 12:00:00'", "dt <= 19723"),
        ("dt < TIMESTAMP_NTZ '2024-01-01 00:00:00'", "dt < 19723"),
        ("dt = TIMESTAMP '2024-01-01 12:00:00'", "FALSE"),
        ("dt = TIMESTAMP '2024-01-01 00:00:00'", "dt = 19723"),
        ("dt != TIMESTAMP '2024-01-01 12:00:00'", "dt IS NOT NULL"),
        ("dt > TIMESTAMP '2024-01-01 12:00:00'", "dt >= 19724"),
        ("dt >= TIMESTAMP '2024-01-01 00:00:00'", "dt >= 19723"),
        ("dt = '2024-1-1'", "dt = 19723"),
        ("dt = '1969-12-31'", "dt = -1"),
        ("dt >= '-0001-01-01'", "dt >= -719893"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", NEW_YORK, "+05:30"])
def test_dates(source: str, expected: str, zone: str) -> None:
    assert text(source, zone) == expected


def test_local_mean_time_keeps_its_seconds() -> None:
    assert bound("ts = '1850-01-01'", "Europe/Berlin").value == micros(1850, 1, 1) - 3_208_000_000


def test_skipped_and_repeated_wall_times() -> None:
    skipped = bound("ts = '2024-03-10 02:30:00'", NEW_YORK).value
    assert skipped == micros(2024, 3, 10, 7, 30)
    repeated = bound("ts = '2024-11-03 01:30:00'", NEW_YORK).value
    assert repeated == micros(2024, 11, 3, 5, 30)


def test_a_day_may_start_after_midnight() -> None:
    assert bound("ts = DATE '2018-11-04'", "America/Sao_Paulo").value == micros(2018, 11, 4, 3)
    assert text("dt = TIMESTAMP '2018-11-04 01:00:00'", "America/Sao_Paulo") == "dt = 17839"


def test_years_beyond_pythons_calendar() -> None:
    assert bound("ts = '12024-01-01 00:00:00'").value == bound("ts = '2024-01-01'").value + (
        25 * 146_097 * 86_400_000_000
    )


# -- days of timestamps ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "first", "after"),
    [
        ("CAST(ts AS DATE) = '2024-11-03'", (2024, 11, 3, 4), (2024, 11, 4, 5)),
        ("to_date(ts) = DATE '2024-03-10'", (2024, 3, 10, 5), (2024, 3, 11, 4)),
        ("date(n) = '2024-03-10'", (2024, 3, 10), (2024, 3, 11)),
    ],
    ids=["long day", "short day", "wall clock"],
)
def test_the_day_of_a_timestamp_is_a_range(
    source: str, first: tuple[int, ...], after: tuple[int, ...]
) -> None:
    made = bound(source, NEW_YORK)
    assert [c.value for c in made.children] == [micros(*first), micros(*after) - 1]


def test_a_midnight_that_comes_twice_stays_undecided() -> None:
    """St. John's set its clocks back at one minute past midnight."""
    made = bound("CAST(ts AS DATE) = '2006-10-28'", "America/St_Johns")
    assert isinstance(made, Undecided)
    assert made.expression is not None
    assert isinstance(bound("CAST(ts AS DATE) = '2006-07-01'", "America/St_Johns"), And)
