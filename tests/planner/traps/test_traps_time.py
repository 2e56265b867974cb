"""Traps 20 to 22: milliseconds, time zones, dates against timestamps."""

from __future__ import annotations

import datetime

import pyarrow as pa
from planner.tables import EPOCH, Split, foreign_split
from planner.trapkit import Table, one

INSTANT = pa.timestamp("us", "UTC")
WALL = pa.timestamp("us")


def micros(text: str) -> int:
    return (datetime.datetime.fromisoformat(text) - EPOCH) // datetime.timedelta(microseconds=1)


def iso(rows: list, schema: pa.Schema, values: dict) -> Split:
    return foreign_split(rows, schema, values, time="iso")


def test_trap_20_statistics_cut_to_milliseconds() -> None:
    value = micros("2024-01-01 00:00:00.123456")
    table = one("t", INSTANT, [value], write=iso)
    assert table.snapshot.list[0].highs["t"] == "2024-01-01T00:00:00.123Z"
    table.check("t = timestamp'2024-01-01 00:00:00.123456'", [1])
    table.check("t > timestamp'2024-01-01 00:00:00.123400'", [1])
    assert table.kept("t > timestamp'2024-01-01 00:00:00.123999'") == []
    assert table.kept("t > timestamp'2024-01-01 00:00:00.123998'") == [0]


def test_trap_20_a_plain_number_has_no_unit() -> None:
    value = micros("2024-01-01 00:00:00.123456")
    for unit in ("micros", "millis", "seconds"):

        def write(rows: list, schema: pa.Schema, values: dict, unit: str = unit) -> Split:
            return foreign_split(rows, schema, values, time=unit)

        table = one("t", INSTANT, [value], write=write)
        table.check("t = timestamp'2024-01-01 00:00:00.123456'", [1])
        assert table.kept("t > timestamp'2030-01-01 00:00:00'") == [0], "no guess by magnitude"
    ours = one("t", INSTANT, [value])
    assert ours.kept("t > timestamp'2030-01-01 00:00:00'") == []


def test_trap_20_the_end_of_time() -> None:
    table = one("t", INSTANT, [(1 << 63) - 1], [0])
    table.check("t > timestamp'1970-01-02 00:00:00'", [1])
    assert table.kept("t <= timestamp'1970-01-01 00:00:00'") == [1]


def test_trap_21_literals_take_the_session_zone() -> None:
    value = micros("2024-06-01 10:00:00")
    berlin = Table(
        [[{"t": value, "w": value}], [{"t": 0, "w": 0}]],
        pa.schema([("t", INSTANT), ("w", WALL)]),
        time_zone="Europe/Berlin",
    )
    berlin.check("t = timestamp'2024-06-01 12:00:00'", [1])
    berlin.check("t = timestamp'2024-06-01 10:00:00'", [])
    berlin.check("w = timestamp_ntz'2024-06-01 10:00:00'", [1])
    assert berlin.kept("t = timestamp'2024-06-01 12:00:00'") == [0]
    assert berlin.kept("w = timestamp_ntz'2024-06-01 10:00:00'") == [0]


def test_trap_21_local_mean_time() -> None:
    value = micros("1850-01-01 00:00:00") - (53 * 60 + 28) * 1_000_000
    table = one("t", INSTANT, [value], [value + 1], time_zone="Europe/Berlin")
    table.check("t = timestamp'1850-01-01 00:00:00'", [1])
    assert table.kept("t = timestamp'1850-01-01 00:00:00'") == [0]


def test_trap_22_dates_against_timestamps() -> None:
    noon = micros("2024-06-01 12:00:00")
    midnight = micros("2024-06-01 00:00:00")
    table = one("t", INSTANT, [noon], [midnight], [midnight - 1])
    table.check("t = date'2024-06-01'", [2])
    table.check("t > date'2024-06-01'", [1])
    table.check("t < date'2024-06-01'", [3])
    table.check("t >= date'2024-06-01'", [1, 2])
    assert table.kept("t = date'2024-06-01'") == [1]
    days = one("d", pa.date32(), [19875], [19876])
    days.check("d = date'2024-06-01'", [1])
    days.check("d >= timestamp'2024-06-01 12:00:00'", [2])
    days.check("d = timestamp'2024-06-01 12:00:00'", [])
    days.check("d < timestamp'2024-06-01 12:00:00'", [1])
    assert days.kept("d > date'2024-06-01'") == [1]


def test_trap_22_midnight_is_the_sessions() -> None:
    midnight = micros("2024-05-31 22:00:00")
    table = one("t", INSTANT, [midnight], [midnight - 1], time_zone="Europe/Berlin")
    table.check("t >= date'2024-06-01'", [1])
    assert table.kept("t >= date'2024-06-01'") == [0]


def test_partition_values_are_typed() -> None:
    schema = pa.schema([("i", pa.int32()), ("month", pa.int32()), ("day", pa.date32())])
    splits = [[{"i": 1, "month": m, "day": 19875 + m}] for m in range(1, 13)] + [
        [{"i": 1, "month": None, "day": None}]
    ]
    table = Table(splits, schema, partitions=["month", "day"])
    table.check("month > 9", [10, 11, 12])
    assert table.kept("month > 9") == [9, 10, 11], "9 is below 10"
    assert table.proved("month > 9") == [9, 10, 11], "nothing is left to check"
    table.check("month IS NULL", [13])
    assert table.kept("month IS NULL") == [12]
    table.check("day <= date'2024-06-03'", [1, 2])
    assert table.kept("month NOT IN (1, 2)") == list(range(2, 12))
