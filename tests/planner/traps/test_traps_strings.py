"""Traps 14 to 19 and 27: cut maxima, surrogates, byte order, LIKE, case and collations."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from planner.tables import Split, foreign_split, write_split
from planner.trapkit import Table, one

from indextables.errors import AmbiguousColumnError, PlanningError, UnknownColumnError

TEXT = pa.string()


def test_trap_14_a_cut_maximum_is_below_the_data() -> None:
    long = "x" * 32 + "yz"
    table = one("s", TEXT, [long], ["a"], ["x" * 32])
    table.check(f"s = '{long}'", [1])
    table.check(f"s > '{'x' * 32}'", [1])
    table.check(f"s >= '{'x' * 32}y'", [1])
    table.check(f"s IN ('{long}', 'q')", [1])
    assert table.kept(f"s = '{long}'") == [0], "a whole maximum of full length still prunes"
    assert table.kept("s > 'y'") == [], "above everything that starts with the prefix"
    assert table.proved("s < 'y'") == [0, 1, 2]
    assert table.proved(f"s <= '{'x' * 32}'") == [1, 2], "the cut one may lie above"


def test_trap_14_a_writer_that_does_not_say_what_it_cut() -> None:
    def short(rows: list, schema: pa.Schema, values: dict) -> Split:
        return foreign_split(rows, schema, values, limit=3)

    table = one("s", TEXT, ["abcdef"], ["abc"], ["b"], write=short)
    table.check("s = 'abcdef'", [1])
    table.check("s > 'abc'", [1, 3])
    assert table.kept("s > 'abd'") == [2]


def test_trap_15_no_successor_is_needed() -> None:
    for last in ("\ud7ff", "\U0010ffff", "\U0010ffff" * 40, "z" * 31 + "\U0010ffff"):
        table = one("s", TEXT, [last + "tail"], ["a"])
        table.check(f"s > '{last}'", [1])
        table.check(f"s LIKE '{last}%'", [1])
        assert table.kept(f"s LIKE '{last}%'") == [0]
    everything = one("s", TEXT, ["\U0010ffff" * 40], ["a"])
    assert everything.kept("s > 'b'") == [0]


def test_trap_15_half_a_surrogate_pair() -> None:
    """A cut in the middle of a pair is written as a question mark, which sorts far below."""
    value = "y" * 31 + "\U0001f600"
    table = one("s", TEXT, [value], write=foreign_split)
    assert table.snapshot.list[0].highs["s"].endswith("?")
    table.check(f"s = '{value}'", [1])
    table.check(f"s > '{'y' * 31}A'", [1])


def test_trap_16_order_of_bytes_not_of_utf16_units() -> None:
    emoji, wide = "\U0001f600", "\uff21"
    for write in (write_split, foreign_split):
        table = one("s", TEXT, [emoji, wide], ["a"], write=write)
        table.check(f"s = '{emoji}'", [1])
        table.check(f"s = '{wide}'", [2])
        table.check(f"s > '{wide}'", [1])
        table.check("s < 'b'", [3])
        assert table.kept("s < 'b'") == ([1] if write is write_split else [0, 1])
    ours = one("s", TEXT, [emoji], [wide])
    assert ours.kept(f"s > '{wide}'") == [0]
    assert ours.kept(f"s < '{emoji}'") == [1]


def test_trap_17_prefixes_overlap_a_range() -> None:
    table = one("s", TEXT, ["abz", "ac"], ["aa", "abzz"], ["b", "c"], ["ab"], ["a"])
    table.check("s LIKE 'ab%'", [1, 4, 7])
    assert table.kept("s LIKE 'ab%'") == [0, 1, 3], "a maximum above the prefix is no reason"
    assert table.proved("s LIKE 'ab%'") == [3]
    table.check("startswith(s, 'a')", [1, 2, 3, 4, 7, 8])
    assert table.proved("startswith(s, 'a')") == [0, 1, 3, 4]


def test_trap_18_wildcards_and_escapes_inside_the_prefix() -> None:
    table = one("s", TEXT, ["a_c", "abc"], ["a%c"], ["a\\b"], ["zzz", None])
    table.check(r"s LIKE 'a\\_c'", [1])
    table.check("s LIKE 'a_c'", [1, 2, 3])
    table.check("s LIKE 'a!%%' ESCAPE '!'", [3])
    assert table.kept("s LIKE 'a!%%' ESCAPE '!'") == [1]
    table.check("s LIKE '%'", [1, 2, 3, 4, 5])
    assert table.proved("s LIKE '%'") == [0, 1, 2]
    table.check("s LIKE '%c'", [1, 2, 3])
    table.check("s LIKE ''", [])
    table.check("s LIKE 'zzz'", [5])
    assert table.kept("s LIKE 'zzz'") == [3]
    with pytest.raises(PlanningError):
        table.plan("s LIKE 'a!' ESCAPE '!'")


def test_trap_19_not_like() -> None:
    table = one("s", TEXT, ["pa", "pz"], ["pa", None], ["oz", "pa"], ["pz", "q"], ["q"])
    table.check("s NOT LIKE 'p%'", [5, 8, 9])
    assert table.kept("s NOT LIKE 'p%'") == [2, 3, 4]
    assert table.proved("s NOT LIKE 'p%'") == [4]
    table.check("s NOT LIKE 'p%z'", [1, 3, 5, 6, 8, 9])
    assert table.kept("s NOT LIKE 'p%z'") == [0, 1, 2, 3, 4], "more than a prefix proves nothing"


def test_trap_27_names_ignore_case_values_do_not() -> None:
    schema = pa.schema([("Host", TEXT)])
    table = Table([[{"Host": "Web"}], [{"Host": "web"}]], schema)
    table.check("HOST = 'Web'", [1])
    assert table.kept("hOsT = 'web'") == [1]
    twice = Table([[{"a": "x", "A": "y"}]], pa.schema([("a", TEXT), ("A", TEXT)]))
    with pytest.raises(AmbiguousColumnError):
        twice.plan("a = 'x'")
    with pytest.raises(UnknownColumnError, match="Did you mean 'Host'"):
        table.plan("hots = 'x'")


def test_trap_27_a_collated_column_is_not_pruned() -> None:
    note = json.dumps({"__COLLATIONS": {"s": "icu.UTF8_LCASE"}})
    schema = pa.schema([pa.field("s", TEXT, metadata={"spark": note})])
    table = Table([[{"s": "WEB"}], [{"s": "zzz"}]], schema)
    plan = table.plan("s = 'web'")
    assert [int(i) for i in plan.selection] == [0, 1]
    assert plan.undecided
