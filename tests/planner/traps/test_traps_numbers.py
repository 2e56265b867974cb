"""Traps 1 to 3 and 23 to 26: NaN, zero's sign, decimals, literals that do not fit, widening."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from planner.tables import Split, foreign_split
from planner.trapkit import Table, one

DOUBLE = pa.float64()
NAN = math.nan


def test_trap_01_nan_is_above_every_number() -> None:
    table = one("x", DOUBLE, [1.0, NAN, 3.0], [1.0, 3.0], [NAN, NAN], [9.0])
    table.check("x > 4", [2, 6, 7, 8])
    table.check("NOT (x < 4)", [2, 6, 7, 8])
    table.check("x NOT BETWEEN 0 AND 4", [2, 6, 7, 8])
    table.check("x = double('NaN')", [2, 6, 7])
    table.check("x > 4 OR x = 1", [1, 2, 4, 6, 7, 8])
    table.check("x IN (5, double('NaN'))", [2, 6, 7])
    assert table.kept("x > 4") == [0, 2, 3], "the split without NaN is dropped"
    assert table.proved("x > 4") == [2, 3], "a split of NaN alone is above"
    assert table.kept("x < 4") == [0, 1], "NaN is not below"


def test_trap_01_an_unknown_nan_count_is_not_zero() -> None:
    table = one("x", DOUBLE, [1.0, NAN], [1.0, 2.0], write=foreign_split)
    table.check("x > 4", [2])
    assert table.kept("x > 4") == [0, 1]
    assert table.kept("x < 0") == [], "lower bounds still help"


def test_trap_02_a_nan_never_becomes_a_bound() -> None:
    def poison(split: Split) -> None:
        split.lows["x"] = split.highs["x"] = "NaN"

    table = one("x", DOUBLE, [NAN, 1.0], [5.0], change=poison)
    for low in (-9, 0, 4):
        table.check(f"x > {low}", [1, 3] + ([2] if low < 1 else []))
    assert table.kept("x = 7") == [0, 1], "a bound that is no number is no bound"


def test_trap_03_negative_zero_equals_zero() -> None:
    table = one("x", DOUBLE, [-0.0], [0.0], [-0.0, 1.0], [2.0])
    for text in ("0.0", "-0.0", "0"):
        table.check(f"x = {text}", [1, 2, 3])
        table.check(f"x >= {text}", [1, 2, 3, 4, 5])
        table.check(f"x != {text}", [4, 5])
        table.check(f"x IN ({text})", [1, 2, 3])
    table.check("x < 0", [])
    assert table.kept("x < 0") == []
    assert table.kept("x != 0") == [2, 3], "splits of zeros of either sign are dropped"


def test_trap_23_decimals_are_numbers_of_their_scale() -> None:
    money = pa.decimal128(10, 2)
    table = one("m", money, [950], [1025], [-950, 123])
    table.check("m < 10", [1, 3, 4])
    table.check("m > 9.5", [2])
    table.check("m = 9.50", [1])
    table.check("m = 9.505", [])
    table.check("m <= 9.505", [1, 3, 4])
    table.check("m > 9.505", [2])
    table.check("m != 9.505", [1, 2, 3, 4])
    assert table.kept("m > 9.505") == [1], "'9.5' is not above '10.25'"
    assert table.kept("m = 9.505") == []


def test_trap_23_more_digits_than_64_bits() -> None:
    wide = pa.decimal128(38, 4)
    table = one("w", wide, [10**30], [-(10**30)], [5])
    table.check("w > 1", [1])
    table.check("w < 1", [2, 3])
    table.check("w = 100000000000000000000000000", [1])
    assert table.kept("w > 1") == [0, 1], "bounds beyond 64 bits are unknown, short ones work"


def test_trap_24_literals_outside_the_column() -> None:
    table = one("i", pa.int32(), [1, 2], [(1 << 31) - 1], [-(1 << 31)])
    table.check("i = 1.5", [])
    table.check("i > 1.5", [2, 3])
    table.check("i <= 1.5", [1, 4])
    table.check("i != 1.5", [1, 2, 3, 4])
    table.check(f"i > {1 << 40}", [])
    table.check(f"i < {1 << 40}", [1, 2, 3, 4])
    table.check(f"i = {1 << 32}", [])
    table.check(f"i >= -{1 << 40}", [1, 2, 3, 4])
    assert table.kept(f"i > {1 << 40}") == []
    assert table.kept("i = 1.5") == []
    assert table.kept(f"i > {(1 << 31) - 2}") == [1]


def test_trap_25_integers_above_two_to_the_53() -> None:
    big = 1 << 53
    table = one("l", pa.int64(), [big], [big + 1], [big + 2])
    table.check(f"l = {big + 1}", [2])
    assert table.kept(f"l = {big + 1}") == [1], "doubles cannot tell these apart"
    table.check(f"l > {big}", [2, 3])
    doubles = one("x", DOUBLE, [float(big)], [float(big + 2)])
    doubles.check(f"x = {big}", [1])
    assert doubles.kept(f"x >= {big + 2}") == [1]


def test_trap_25_an_integer_column_against_a_double() -> None:
    table = one("l", pa.int64(), [(1 << 53) + 1], [1 << 53], [5])
    plan = table.plan(f"l < double('{float(1 << 53)!r}')")
    assert table.planned(plan) == table.by_arrow(plan.predicate)


def test_trap_26_bounds_written_before_the_column_was_widened() -> None:
    old = float(np.float32(0.1))

    def as_float(split: Split) -> None:
        split.lows["x"] = split.highs["x"] = "0.1"

    table = one("x", DOUBLE, [old], change=as_float)
    table.check(f"x = {old!r}", [1])
    table.check("x > 0.1", [1])
    table.check("x = 0.1", [])
    assert table.kept("x > 0.2") == []
    assert table.kept("x < 0.09") == []
    ints = one("l", pa.int64(), [(1 << 31) - 1], [1 << 40])
    ints.check(f"l >= {(1 << 31) - 1}", [1, 2])
    assert ints.kept(f"l > {(1 << 31) - 1}") == [1]


@pytest.mark.parametrize("text", ["7.0", "7e0", " 7", "7L", ""])
def test_trap_26_a_text_that_is_not_the_type_is_no_bound(text: str) -> None:
    def spell(split: Split) -> None:
        split.lows["i"] = split.highs["i"] = text

    table = one("i", pa.int32(), [7], change=spell)
    table.check("i = 7", [1])
    assert table.kept("i = 8") == [0]


def test_float_column_is_compared_as_double() -> None:
    table = one("f", pa.float32(), [float(np.float32(0.1))], [float(np.float32(0.5))])
    table.check("f > 0.1", [1, 2])
    table.check("f = 0.5", [2])
    assert table.kept("f <= 0.1") == [], "the float nearest to 0.1 is above it"
    assert Table([[{"f": 1.0}]], pa.schema([("f", pa.float32())])).proved("f = 1") == [0]
