"""Traps 4 to 13 and 28: NULL, counts that are missing or stale, NOT, OR, IN with NULL."""

from __future__ import annotations

import pyarrow as pa
from planner.tables import Split, foreign_split, write_split
from planner.trapkit import Table, one

INT = pa.int32()


def test_trap_04_a_split_of_nulls_has_no_bounds() -> None:
    table = one("i", INT, [None, None], [1, None], [1])
    table.check("i > 0", [3, 5])
    table.check("i IS NULL", [1, 2, 4])
    assert table.kept("i > 0") == [1, 2]
    assert table.kept("i <= 0") == []
    assert table.proved("i IS NULL") == [0]
    assert table.proved("i > 0") == [2]


def test_trap_04_absent_bounds_alone_say_nothing() -> None:
    def forget(split: Split) -> None:
        split.lows.clear()
        split.highs.clear()
        split.stats = None

    table = one("i", INT, [None, None], [5], change=forget)
    table.check("i = 5", [3])
    assert table.kept("i = 5") == [0, 1]


def test_trap_05_a_missing_count_is_not_zero() -> None:
    table = one("i", INT, [1, None], [2], write=foreign_split)
    table.check("i IS NULL", [2])
    table.check("i IS NOT NULL", [1, 3])
    assert table.kept("i IS NULL") == [0, 1]
    assert table.kept("i IS NOT NULL") == [0, 1]
    assert table.proved("i < 9") == [], "nobody knows whether a row is NULL"
    assert one("i", INT, [1, None], [2]).kept("i IS NULL") == [0]


def test_trap_06_counts_made_stale_by_deletes() -> None:
    def delete_rows(split: Split) -> None:
        """Three physical rows, two of them NULL; one deletion later two rows are left."""
        split.rows.pop()
        split.num_records = 2
        split.lows.clear()
        split.highs.clear()
        split.stats = '{"numRecords":3,"nullCount":{"i":2,"id":0},"tightBounds":false}'

    table = one("i", INT, [5, None, None], change=delete_rows)
    table.check("i = 5", [1])
    table.check("i IS NOT NULL", [1])
    table.check("i IS NULL", [2])
    assert table.kept("i IS NOT NULL") == [0]
    assert table.proved("i IS NULL") == []


def test_trap_07_verdicts_are_never_negated() -> None:
    table = one("i", INT, [1, 9], [1, 1], [None])
    table.check("NOT (i = 1)", [2])
    table.check("NOT (i > 5)", [1, 3, 4])
    table.check("NOT (i IS NULL)", [1, 2, 3, 4])
    table.check("NOT (i = 1 OR i = 9)", [])
    assert table.kept("NOT (i = 1)") == [0]
    assert table.kept("NOT (i > 5)") == [0, 1]


def test_trap_07_no_opposite_means_may() -> None:
    table = one("i", INT, [1], [4])
    plan = table.plan("NOT (abs(i) = 1)")
    assert [int(i) for i in plan.selection] == [0, 1]
    assert len(plan.undecided) == 1
    assert table.by_arrow(plan.predicate) == [2]


def test_trap_08_not_equal_needs_a_single_value() -> None:
    table = one("i", INT, [5, 5], [5, None], [4, 5], [5, 6], [7])
    table.check("i != 5", [5, 8, 9])
    assert table.kept("i != 5") == [2, 3, 4], "nulls do not match either"
    assert table.proved("i != 5") == [4]
    floats = one("x", pa.float64(), [5.0, float("nan")], [5.0])
    floats.check("x != 5", [2])
    assert floats.kept("x != 5") == [0]


def test_trap_09_an_or_with_an_unprunable_leg() -> None:
    schema = pa.schema([("i", INT), ("j", INT)])
    table = Table([[{"i": 1, "j": -7}], [{"i": 2, "j": 3}], [{"i": 3, "j": 4}]], schema)
    either = table.plan("i = 1 OR abs(j) = 3")
    assert len(either) == 3
    assert table.by_arrow(either.predicate) == [1, 2]
    both = table.plan("i = 2 AND abs(j) = 3")
    assert [int(i) for i in both.selection] == [1]
    table.check("i = 1 OR j = 4", [1, 3])
    assert table.kept("i = 1 OR j = 4") == [0, 2]


def test_trap_10_in_with_null() -> None:
    table = one("i", INT, [1], [2], [None])
    table.check("i IN (1, NULL)", [1])
    assert table.kept("i IN (1, NULL)") == [0]
    table.check("i IN (NULL)", [])
    assert table.kept("i IN (NULL)") == []
    table.check("i = NULL", [])
    assert table.kept("i = NULL") == []


def test_trap_11_not_in_with_null() -> None:
    table = one("i", INT, [1], [2], [None])
    table.check("i NOT IN (5, NULL)", [])
    assert table.kept("i NOT IN (5, NULL)") == [], "never TRUE for any row"
    table.check("i NOT IN (1)", [2])
    assert table.kept("i NOT IN (1)") == [1]
    table.check("i NOT IN (1, 2, 3)", [])
    assert one("i", INT, [1, 3], [1, 4]).kept("i NOT IN (1, 2, 3)") == [1]


def test_trap_12_not_of_an_and_with_nulls() -> None:
    schema = pa.schema([("a", INT), ("b", INT)])
    rows = [[{"a": None, "b": 2}], [{"a": 1, "b": 1}], [{"a": 1, "b": None}], [{"a": 2, "b": 1}]]
    table = Table(rows, schema)
    table.check("NOT (a = 1 AND b = 1)", [1, 4])
    assert table.kept("NOT (a = 1 AND b = 1)") == [0, 3]
    table.check("NOT (a = 1 OR b = 1)", [])


def test_trap_13_null_safe_equality() -> None:
    table = one("i", INT, [1, None], [1], [2], [None])
    table.check("i <=> 1", [1, 3])
    table.check("i <=> NULL", [2, 5])
    table.check("NOT (i <=> 1)", [2, 4, 5])
    table.check("NOT (i <=> NULL)", [1, 3, 4])
    assert table.kept("i <=> NULL") == [0, 3]
    assert table.kept("NOT (i <=> 1)") == [0, 2, 3], "its opposite takes the nulls in"
    assert table.proved("NOT (i <=> 1)") == [2, 3]


def test_trap_28_a_column_that_old_splits_do_not_have() -> None:
    schema = pa.schema([("i", INT), ("late", INT)])

    def write(rows: list, table_schema: pa.Schema, values: dict) -> Split:
        old = all("late" not in r for r in rows)
        return write_split(rows, table_schema, values, ["i", "id"] if old else None)

    table = Table(
        [[{"i": 1}], [{"i": 2, "late": 5}], [{"i": 3, "late": None}]], schema, write=write
    )
    table.check("late IS NULL", [1, 3])
    table.check("late = 5", [2])
    table.check("late IS NOT NULL", [2])
    table.check("late <=> NULL", [1, 3])
    assert 0 in table.kept("late IS NULL")
    assert table.kept("late = 6") == [0], "absent statistics keep the split"


def test_an_empty_split_is_never_read() -> None:
    table = one("i", INT, [], [1])
    for sql in ("i = 1", "i IS NULL", "TRUE", "abs(i) = 1", "id > 0"):
        assert 0 not in table.kept(sql)
    assert table.kept(None) == [1]
