"""Rows with pruning are rows without it, over random tables and predicates.

``INDEXTABLES_ORACLE_PAIRS`` sets the number of pairs; ``run_oracle.py`` is the long form.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from planner import oracle, rulecases, twin
from planner.rows import truth
from planner.tables import FakeSnapshot, column, write_split

from indextables.expr import predicate as p
from indextables.planner.stages import stats

PAIRS = int(os.environ.get("INDEXTABLES_ORACLE_PAIRS", "20000"))
SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_pruning_changes_no_answer(shard: int, seed: int) -> None:
    fired = oracle.run(PAIRS // SHARDS, seed * SHARDS + shard)
    assert set(fired) <= rulecases.NAMES, "a rule without a case of its own"


@pytest.mark.parametrize("rule", rulecases.CASES, ids=str)
def test_every_rule_fires(rule: str) -> None:
    """By construction: each rule has a table and a predicate that it alone decides."""
    schema, split, predicate = rulecases.CASES[rule]
    fired: Counter[str] = Counter()
    oracle.check_pair(FakeSnapshot([split], schema, list(split.partition)), predicate, fired)
    assert fired == {rule: 1}


def test_every_rule_has_a_case() -> None:
    """The cases name what the twin can answer, read from its own text."""
    assert rulecases.in_source(twin) == rulecases.NAMES


def test_the_oracle_sees_a_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that forgets NaN is caught."""
    monkeypatch.setattr(stats, "_raise_to_nan", lambda *args: None)
    with pytest.raises(oracle.OracleError, match="replay"):
        oracle.run(20_000, seed=5)


def test_the_oracle_sees_a_lost_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that takes a cut maximum for a whole one is caught."""
    monkeypatch.setattr(stats, "_whole", lambda source, column: np.ones(source.n, np.uint8))
    with pytest.raises(oracle.OracleError, match="replay"):
        oracle.run(20_000, seed=6)


def test_failures_replay_from_their_own_seed() -> None:
    fired: Counter[str] = Counter()
    oracle.run_table("17:3", 5, fired)
    again: Counter[str] = Counter()
    oracle.run_table("17:3", 5, again)
    assert fired == again


@pytest.mark.parametrize("size", [1, 7, 64])
def test_large_tables_with_zones(size: int, rng: random.Random) -> None:
    """Hundreds of splits, so that zones are dropped, kept and cut."""
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("m", pa.int32())])
    splits = [
        write_split(
            [{"i": 10 * k + j, "s": f"{k:03d}{'x' * rng.randint(0, 9)}"} for j in range(3)],
            schema,
            {"m": k // 40},
        )
        for k in range(300)
    ]
    snapshot = FakeSnapshot(splits, schema, ["m"])
    fired: Counter[str] = Counter()
    with oracle.zones_of(size):
        for _ in range(30):
            at = rng.randrange(3200)
            leaves: list[p.Predicate] = [
                p.Compare(column(schema, "i"), rng.choice(list(p.Op)), at),
                p.StringMatch(column(schema, "s"), p.Match.PREFIX, f"{at % 300:03d}"[:2]),
                p.Compare(column(schema, "m", ["m"]), rng.choice(list(p.Op)), at % 9),
            ]
            rng.shuffle(leaves)
            join = rng.choice([p.conjunction, p.disjunction])
            oracle.check_pair(snapshot, join(leaves[: rng.randint(1, 3)]), fired)
    assert fired["Compare outside"] > 100


def test_nested_fields_use_statistics_by_path() -> None:
    schema = pa.schema([("u", pa.struct([("age", pa.int32())])), ("id", pa.int64())])
    age = p.Column(("u", "age"), pa.int32())
    splits = [write_split([{"u": {"age": a}, "id": a}], schema) for a in (5, 50)]
    for split, value in zip(splits, ("5", "50"), strict=True):
        split.lows["u.age"] = split.highs["u.age"] = value
    snapshot = FakeSnapshot(splits, schema)
    plan = oracle.check_pair(snapshot, p.Compare(age, p.Op.GT, 10), Counter())
    assert plan.selection.tolist() == [1]
    shadowed = FakeSnapshot(splits, schema.append(pa.field("u.age", pa.int32())))
    found = oracle.Planner(shadowed).plan(p.Compare(age, p.Op.GT, 10))
    assert len(found) == 2, "a column of that very name makes the statistic ambiguous"
    assert truth(found.predicate, {"u": {"age": 50}}) is True
