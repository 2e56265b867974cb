"""Every predicate returns exactly the rows that evaluating it over all rows gives."""

from __future__ import annotations

import random
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from splitkit import (
    ALL_TYPES,
    RANDOM_OPTIONS,
    make_column,
    open_split,
    pooled_table,
    random_table,
    same,
    tables,
    value_pools,
)

from indextables.errors import PlanningError
from indextables.expr.bind import bind
from indextables.expr.casting import physical_values
from indextables.expr.evaluate import evaluate, matching_rows
from indextables.expr.normalize import like, string_match
from indextables.expr.predicate import (
    TRUE,
    Column,
    Compare,
    InSet,
    Like,
    Match,
    NullTest,
    Op,
    Predicate,
    StringMatch,
    conjunction,
    disjunction,
)
from indextables.splits.lookup.nodes import Index
from indextables.splits.read.access import (
    count_split,
    read_split,
)
from indextables.splits.read.access import (
    matching_rows as split_rows,
)
from indextables.splits.read.choose import Chooser
from indextables.splits.read.reader import SplitReader

COMPARABLE = [n for n in ALL_TYPES if n not in ("st", "ar", "mp", "nul")]


def literal(name: str, value: Any) -> Any:
    """A value as bound predicates hold it."""
    dtype = ALL_TYPES[name]
    found = physical_values(make_column(name, [value]))[0]
    if pa.types.is_decimal(dtype):
        return int(found * 10**dtype.scale)
    if dtype == pa.float32():
        return float(np.float32(value)) + 0.0
    return found + 0.0 if isinstance(found, float) else found


def random_leaf(rng: random.Random, pools: dict[str, list[Any]]) -> Predicate:
    kind = rng.choice(["compare"] * 4 + ["in"] * 2 + ["null", "match", "match", "nested"])
    name = rng.choice(COMPARABLE)
    column = Column((name,), ALL_TYPES[name])
    if kind == "null":
        return NullTest(column, rng.random() < 0.5)
    if kind == "match":
        return random_match(rng)
    if kind == "nested":
        return rng.choice(NESTED_LEAVES)
    if kind == "in":
        picked = [literal(name, v) for v in rng.choices(pools[name], k=rng.randrange(1, 22))]
        return InSet(column, tuple(dict.fromkeys(picked)), rng.random() < 0.4)
    return Compare(column, rng.choice(list(Op)), literal(name, rng.choice(pools[name])))


def random_match(rng: random.Random) -> Predicate:
    column = Column((rng.choice(["s", "txt", "ip"]),), pa.string())
    patterns = ["", "r", "re", "the%", "%e%", "_ed", "10.0.", "\\%", ".*", "ï", "%ï%", "_________"]
    kind, pattern, negated = rng.choice([*Match, None]), rng.choice(patterns), rng.random() < 0.4
    if kind is None:
        return like(column, pattern, "\\", negated=negated)
    return string_match(column, kind, pattern, negated=negated)


_NAME = Column(("st", "name"), pa.string())
_NUMBER = Column(("st", "n"), pa.int64())
NESTED_LEAVES: list[Predicate] = [
    Compare(_NAME, Op.EQ, "the quick fox"),
    Compare(_NAME, Op.EQ, "42"),
    Compare(_NAME, Op.NE, "red"),
    Compare(_NAME, Op.EQ, ""),
    Compare(_NAME, Op.LT, "n"),
    InSet(_NAME, ("red", "42", "")),
    Compare(_NUMBER, Op.GT, 1),
    InSet(_NUMBER, (0, 1), True),
    NullTest(_NAME, True),
    NullTest(_NUMBER, False),
    StringMatch(_NAME, Match.PREFIX, "re"),
]


def random_tree(rng: random.Random, pools: dict[str, list[Any]], depth: int = 3) -> Predicate:
    if depth == 0 or rng.random() < 0.3:
        return random_leaf(rng, pools)
    join = rng.choice([conjunction, disjunction])
    return join([random_tree(rng, pools, depth - 1) for _ in range(rng.randrange(2, 4))])


def check(reader: SplitReader, table: pa.Table, predicate: Predicate) -> None:
    expected = matching_rows(predicate, table, mapping=reader.mapping)
    assert split_rows(reader, predicate).tolist() == expected.tolist(), predicate
    assert count_split(reader, predicate) == len(expected), predicate


@pytest.mark.parametrize("rows", [1, 30, 3000])
def test_random_trees_over_all_types(rows: int, rng: random.Random, tmp_path: Path) -> None:
    pools = value_pools(rng)
    table = pooled_table(rng, pools, rows)
    reader = open_split(table, tmp_path)
    for _ in range(120):
        check(reader, table, random_leaf(rng, pools))
        check(reader, table, random_tree(rng, pools))


@settings(max_examples=12)
@given(table=tables(max_rows=8), seed=st.integers(0, 2**32))
def test_random_values_of_all_types(table: pa.Table, seed: int) -> None:
    rng = random.Random(seed)
    pools = value_pools(rng)
    with tempfile.TemporaryDirectory() as folder:
        reader = open_split(table, Path(folder))
        for name in COMPARABLE:
            column = Column((name,), ALL_TYPES[name])
            for value in physical_values(table.column(name).combine_chunks()):
                if value is not None:
                    scale = 10 ** ALL_TYPES[name].scale if hasattr(ALL_TYPES[name], "scale") else 1
                    bound = int(value * scale) if hasattr(ALL_TYPES[name], "scale") else value
                    check(reader, table, Compare(column, rng.choice(list(Op)), bound))
        check(reader, table, random_tree(rng, pools))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, SplitReader]:
    table = random_table(random.Random(11), 20_000)
    return table, open_split(table, tmp_path_factory.mktemp("large"), RANDOM_OPTIONS)


FILTERS = [
    "level = 'ERROR'",
    "level != 'ERROR'",
    "level in ('INFO', 'nope')",
    "level not in ('INFO', 'WARN')",
    "level is null",
    "level is not null and n is null",
    "level > 'INFO'",
    "host like 'host-00%'",
    "host like '%9'",
    "host like 'host-0_1'",
    "host not like 'host-01%'",
    "n = 7",
    "n != 7",
    "n >= 10 and n < 12",
    "n between -3 and 3 and level = 'WARN'",
    "n < -45 or n > 45",
    "n in (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20)",
    "n not in (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20)",
    "x = 0.0",
    "x = double('NaN')",
    "x > 2.5",
    "x >= double('NaN')",
    "x < 0 and x > -0.01",
    "not (x > 0)",
    "ts >= timestamp '2001-09-09 02:00:00' and ts < timestamp '2001-09-09 02:05:00'",
    "ip = '10.1.2.3'",
    "ip in ('10.1.2.3', 'not an address')",
    "ip != '10.1.2.3'",
    "msg = 'alpha'",
    "msg like '%beta%gamma%'",
    "msg is null",
    "not (level = 'ERROR' and n > 0)",
    "(level = 'ERROR' or host = 'host-001') and not (n > 10 or x < 0)",
    "true",
    "false",
]


@pytest.mark.parametrize("text", FILTERS)
def test_filters_over_a_larger_split(text: str, large: tuple[pa.Table, SplitReader]) -> None:
    table, reader = large
    predicate = bind(text, table.schema, mapping=reader.mapping)
    keep = evaluate(predicate, table, mapping=reader.mapping)
    expected = table.filter(keep)
    found = pa.Table.from_batches(read_split(reader, predicate), schema=table.schema)
    assert found.num_rows == expected.num_rows
    assert count_split(reader, predicate) == expected.num_rows
    for name in table.schema.names:
        assert same(found.column(name), expected.column(name)), name
    some = pa.Table.from_batches(
        read_split(reader, predicate, ["host", "id"], limit=5),
        schema=pa.schema([("host", pa.string()), ("id", pa.string())]),
    )
    assert some.to_pylist() == expected.select(["host", "id"]).slice(0, 5).to_pylist()


def test_nearly_unique_columns_are_found_by_hash(large: tuple[pa.Table, SplitReader]) -> None:
    table, reader = large
    assert reader.info.fields["id"].kind == "hash"
    ids = table.column("id").to_pylist()
    for text, expected in [
        (f"id = '{ids[77]}'", [77]),
        (f"id in ('{ids[5]}', 'nope', '{ids[19999]}')", [5, 19999]),
        (f"id = '{ids[77]}' and level = 'no such'", []),
        (f"id = '{ids[5]}' or n = 1000", [5]),
        ("id = 'nope'", []),
    ]:
        predicate = bind(text, table.schema, mapping=reader.mapping)
        assert split_rows(reader, predicate).tolist() == expected
        assert Chooser(reader, predicate).describe().kind == "search"
    many = bind("id in (" + ",".join(f"'{i}'" for i in ids[::7]) + ")", table.schema)
    assert split_rows(reader, many).tolist() == list(range(0, 20_000, 7))
    mixed = bind("id in (" + ",".join(f"'{i}'" for i in ids[::3]) + ") and n = 5", table.schema)
    expected = matching_rows(mixed, table).tolist()
    assert split_rows(reader, mixed).tolist() == expected


def test_given_rows_narrow_but_never_decide(large: tuple[pa.Table, SplitReader]) -> None:
    table, reader = large
    predicate = bind("n > 10", table.schema)
    expected = matching_rows(predicate, table)
    for hint in (np.arange(100), np.arange(0, 20_000, 2)):
        found = split_rows(reader, predicate, only=hint)
        assert found.tolist() == np.intersect1d(expected, hint).tolist()
        assert count_split(reader, predicate, only=hint) == len(found)
    assert count_split(reader, TRUE, only=np.arange(9)) == 9


def test_partition_and_missing_columns_are_decided_first(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3]})
    reader = open_split(table, tmp_path)
    schema = pa.schema([("a", pa.int64()), ("p", pa.int32()), ("later", pa.string())])
    cases = {
        "p = 5": [0, 1, 2],
        "p = 6": [],
        "p > 1 and a > 1": [1, 2],
        "p = 6 or a = 3": [2],
        "later is null": [0, 1, 2],
        "later = 'x'": [],
        "not (later = 'x')": [],
        "later = 'x' or a = 1": [0],
    }
    for text, expected in cases.items():
        predicate = bind(text, schema, partition_columns=("p",))
        found = split_rows(reader, predicate, schema=schema, partition_values={"p": "5"})
        assert found.tolist() == expected, text


def test_long_values_make_patterns_scan_but_stay_right(tmp_path: Path) -> None:
    long = "prefix-" + "x" * 70_000
    table = pa.table({"s": ["prefix-a", long, "other", None]})
    reader = open_split(table, tmp_path)
    assert not reader.info.fields["s"].complete
    for text, expected in [
        ("s like 'prefix-%'", [0, 1]),
        (f"s = '{long}'", [1]),
        (f"s != '{long}'", [0, 2]),
        ("s = 'other'", [2]),
        ("s is not null", [0, 1, 2]),
    ]:
        predicate = bind(text, table.schema, mapping=reader.mapping)
        assert split_rows(reader, predicate).tolist() == expected, text[:30]


def test_explains_itself(large: tuple[pa.Table, SplitReader]) -> None:
    table, reader = large

    def plan(text: str) -> Any:
        return Chooser(reader, bind(text, table.schema, mapping=reader.mapping)).describe()

    assert plan("level = 'ERROR'").kind == "search"
    assert plan("level = 'ERROR'").exact
    assert plan("level > 'A'").exact
    assert plan("msg > 'A'").kind == "scan"
    assert plan("true").kind == "scan"
    assert "filter" in plan("level = 'ERROR' and msg > 'b'").detail
    assert "hash" in plan("id = 'x'").detail


def test_every_short_pattern_of_like(tmp_path: Path) -> None:
    """Patterns that a hand can list, against texts that they are made of; the index is asked."""
    letters = "a%_\\"
    texts = ["".join(t) for size in range(4) for t in product(letters, repeat=size)]
    table = pa.table({"s": [*texts, None, "a\n", "\U0001f600a"]})
    reader = open_split(table, tmp_path)
    column = Column(("s",), pa.string())
    searched = 0
    for pattern in ["".join(p) for size in range(4) for p in product("a%_!", repeat=size)]:
        for negated in (False, True):
            try:
                leaf = like(column, pattern, "!", negated=negated)
            except PlanningError:
                continue
            check(reader, table, leaf)
            if isinstance(leaf, Like) and not negated:
                found = reader.session().find(leaf)
                if isinstance(found.node, Index):
                    searched += 1
                    assert not found.node.exact
                    assert found.residual == leaf
    assert searched > 20
