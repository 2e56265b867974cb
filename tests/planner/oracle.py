"""The NoREC oracle: rows found with pruning are the rows found without it.

A round makes one random table (all types, hard values, missing and foreign statistics) and many
random predicates. For each pair the planner's splits, verdicts and residuals are held against the
rows themselves, and against the plain-Python twin. Any difference is an ``OracleError`` that says
which seed replays it.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from planner import twin
from planner.rows import order, truth
from planner.tables import FakeSnapshot, Split, column, foreign_split, write_split

from indextables.expr import predicate as p
from indextables.expr.normalize import like, string_match
from indextables.planner.plan import Plan, Planner
from indextables.planner.stages import stats

PAIRS_PER_TABLE = 40

STRINGS = [
    "", "a", "ab", "abc", "abd", "b", "Z", "é", "ab%c", "a_c", "a\\b", "?", "zz?",
    "\ud7ff", "\ue000", "\uffff", "\U0001f600", "\U0010ffff", "x" * 31, "x" * 32, "x" * 33,
    "x" * 32 + "y", "x" * 40, "y" * 31 + "\U0001f600z", "ab\uff21", "ab\U0001f601",
]  # fmt: skip
DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.1, 1.5, 1e300, -1e300, 5e-324, 2.0**53, 2.0**53 + 2,
    math.nan, math.inf, -math.inf, 0.30000000000000004, 19.99, 1e22, 123456789.123,
]  # fmt: skip
SINGLES = [float(np.float32(v)) for v in (0.0, -0.0, 0.1, 1.5, 3.4e38, 1e-45, 16777216, 19.99)]
SINGLES += [math.nan, math.inf, -math.inf]
INTS = [0, 1, 2, 3, 9, 10, 11, -1, -10, 100, (1 << 31) - 1, -(1 << 31)]
LONGS = [*INTS, (1 << 53) + 1, 1 << 62, (1 << 63) - 1, -(1 << 63)]
DAYS = [0, 1, -1, 19723, 19724, -25567, 2932896]
MICROS = [
    0,
    1,
    999,
    1000,
    999_999,
    1_700_000_000_123_456,
    1_700_000_000_123_000,
    -1,
    -3_786_825_600_000_000,
]
CENTS = [0, 1, 950, 1025, -950, 999_999_999, 123]
HUGE = [0, 1, -1, 10**20, -(10**30), 95000, 102500]

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), INTS),
    "l": (pa.int64(), LONGS),
    "f": (pa.float32(), SINGLES),
    "d": (pa.float64(), DOUBLES),
    "s": (pa.string(), STRINGS),
    "b": (pa.bool_(), [True, False]),
    "day": (pa.date32(), DAYS),
    "ts": (pa.timestamp("us", "UTC"), MICROS),
    "ntz": (pa.timestamp("us"), MICROS),
    "dec": (pa.decimal128(10, 2), CENTS),
    "wide": (pa.decimal128(38, 4), HUGE),
    "bin": (pa.binary(), [b"", b"a", b"\xff"]),
}
WEIGHTS = [1 if name in ("bin", "wide") else 8 if name == "s" else 3 for name in TYPES]
PARTITIONS = {
    "pi": "i", "ps": "s", "pday": "day", "pts": "ts", "pdec": "dec", "pd": "d",
    "pf": "f", "pb": "b",
}  # fmt: skip


class OracleError(AssertionError):
    """Pruning changed an answer."""


# -- tables -------------------------------------------------------------------------------------


def random_table(rng: random.Random) -> FakeSnapshot:
    names = list(dict.fromkeys(rng.choices(list(TYPES), WEIGHTS, k=rng.randint(2, 5))))
    parts = rng.sample(list(PARTITIONS), rng.choice([0, 0, 1, 1, 2]))
    fields = [(n, TYPES[n][0]) for n in names] + [(q, TYPES[PARTITIONS[q]][0]) for q in parts]
    schema = pa.schema(fields)
    splits = [random_split(rng, schema, names, parts) for _ in range(rng.randint(1, 9))]
    return FakeSnapshot(splits, schema, parts)


def random_split(
    rng: random.Random, schema: pa.Schema, names: list[str], parts: list[str]
) -> Split:
    pools = {n: random_pool(rng, TYPES[n][1]) for n in names}
    rows = [{n: rng.choice(pools[n]) for n in names} for _ in range(rng.choice([0, 1, 1, 2, 3, 5]))]
    partition = {q: rng.choice([*TYPES[PARTITIONS[q]][1], None]) for q in parts}
    style = rng.random()
    limit = rng.choice([32, 32, 1, 2, 3])
    if style < 0.6:
        split = write_split(rows, schema, partition, limit=limit)
    elif style < 0.8:
        unit = rng.choice(["micros", "millis", "seconds", "iso"])
        split = foreign_split(rows, schema, partition, limit=limit, time=unit)
    else:
        split = write_split(rows, schema, partition, rng.sample(names, rng.randint(0, len(names))))
    damage(rng, split, parts)
    return split


def random_pool(rng: random.Random, values: list[Any]) -> list[Any]:
    """Few values per split, so that bounds are narrow and sometimes one point."""
    kind = rng.random()
    if kind < 0.08:
        return [None]
    pool = rng.sample(values, rng.randint(1, min(3, len(values))))
    return [*pool, None] if kind < 0.35 else pool


def damage(rng: random.Random, split: Split, parts: list[str]) -> None:
    """Statistics that are missing, loose or contradictory must cost pruning, never rows."""
    for bounds in (split.lows, split.highs):
        for name in [n for n in bounds if rng.random() < 0.1]:
            del bounds[name]
    if rng.random() < 0.05:
        split.num_records = -1
    if split.stats and rng.random() < 0.1:
        split.stats = split.stats.replace('"tightBounds": true', '"tightBounds": false')
    for q in parts:
        if split.partition[q] is None and rng.random() < 0.5:
            split.partition[q] = "__HIVE_DEFAULT_PARTITION__"
        elif q != "ps" and rng.random() < 0.05:
            split.partition[q] = rng.choice(["", "?"])


# -- predicates ---------------------------------------------------------------------------------


def random_predicate(rng: random.Random, snapshot: FakeSnapshot, depth: int = 0) -> p.Predicate:
    if depth < 3 and rng.random() < (0.75 if depth == 0 else 0.3):
        children = [random_predicate(rng, snapshot, depth + 1) for _ in range(rng.randint(2, 3))]
        join: Callable[[list[p.Predicate]], p.Predicate] = (
            p.conjunction if rng.random() < 0.55 else p.disjunction
        )
        return join(children)
    return random_leaf(rng, snapshot)


def random_leaf(rng: random.Random, snapshot: FakeSnapshot) -> p.Predicate:
    kind = rng.random()
    if kind < 0.02:
        return rng.choice([p.TRUE, p.FALSE, p.NULL])
    name = rng.choice(snapshot.schema.names)
    col = column(snapshot.schema, name, snapshot.partition_columns)
    if kind < 0.06:
        return p.Undecided(f"f({name})", (name,), rng.random() < 0.5, odd_size(name))
    if kind < 0.2:
        return p.NullTest(col, rng.random() < 0.5)
    pool = TYPES[PARTITIONS.get(name, name)][1]
    if pa.types.is_string(col.dtype) and kind < 0.45:
        return random_pattern(rng, col)
    if kind < 0.6:
        values = {order(v): v for v in rng.sample(pool, min(len(pool), rng.randint(1, 5)))}
        ordered = tuple(values[k] for k in sorted(values))
        return p.InSet(col, ordered, rng.random() < 0.4)
    return p.Compare(col, rng.choice(list(p.Op)), rng.choice(pool))


def odd_size(name: str) -> Callable[[Any], bool | None]:
    """A stand-in for a function nobody below Spark knows."""

    def decide(row: Any) -> bool | None:
        return None if row[name] is None else len(repr(row[name])) % 2 == 1

    return decide


def random_pattern(rng: random.Random, col: p.Column) -> p.Predicate:
    """A pattern in the form that binding gives it."""
    kind = rng.choice([*p.Match, None])
    negated = rng.random() < 0.4
    text = rng.choice(STRINGS)[: rng.choice([0, 1, 2, 3, 40])]
    escape = rng.choice(["\\", "\\", "!"])
    if kind is not None:
        return string_match(col, kind, text, negated=negated)
    text = "".join(escape + c if c in "%_" + escape else c for c in text)
    text = text + rng.choice(["", "%", "_", "%%", "%b", "%_", escape + "%", escape + "_%"])
    return like(col, text, escape, negated=negated)


# -- the check ----------------------------------------------------------------------------------


@contextmanager
def zones_of(size: int) -> Any:
    """Small tables with zones, as large tables have them."""
    before = stats.ZONE, stats.ZONES_ABOVE
    stats.ZONE, stats.ZONES_ABOVE = size, 1
    try:
        yield
    finally:
        stats.ZONE, stats.ZONES_ABOVE = before


def check_pair(
    snapshot: FakeSnapshot, predicate: p.Predicate, fired: Counter[str], limit: int | None = None
) -> Plan:
    """Hold one plan against the rows and the twin."""
    plan = Planner(snapshot, parallelism=2).plan(predicate)
    wanted = {
        (i, k)
        for i, split in enumerate(snapshot.list)
        for k, row in enumerate(split.rows)
        if truth(predicate, row) is True
    }
    found = {
        (i, k)
        for group in plan.residual_groups
        for i in plan.selection[group.positions].tolist()
        for k, row in enumerate(snapshot.list[i].rows)
        if truth(group.predicate, row) is True
    }
    _require(found == wanted, f"rows differ: lost {wanted - found}, extra {found - wanted}")
    count = plan.count()
    _require(count is None or count == len(wanted), f"count {count}, truth {len(wanted)}")
    _check_verdicts(plan, snapshot, predicate, fired)
    if limit is not None:
        _check_limit(snapshot, predicate, limit, len(wanted))
    return plan


def _check_verdicts(
    plan: Plan, snapshot: FakeSnapshot, predicate: p.Predicate, fired: Counter[str]
) -> None:
    kept = dict(zip(plan.selection.tolist(), plan.verdicts.tolist(), strict=True))
    for i, split in enumerate(snapshot.list):
        verdict, rule = twin.verdict(predicate, split)
        fired[rule] += 1
        expected = twin.CANNOT if split.num_records == 0 else verdict
        _require(
            kept.get(i, twin.CANNOT) == expected,
            f"split {i}: kernel {kept.get(i, 0)}, twin {expected} by '{rule}'",
        )
        if kept.get(i) == twin.MUST:
            wrong = [r for r in split.rows if truth(predicate, r) is not True]
            _require(not wrong, f"split {i} must match but {wrong[:1]} does not")


def _check_limit(snapshot: FakeSnapshot, predicate: p.Predicate, limit: int, total: int) -> None:
    plan = Planner(snapshot).plan(predicate, limit=limit)
    rows = [r for i in plan.selection.tolist() for r in snapshot.list[i].rows]
    found = sum(truth(predicate, row) is True for row in rows)
    _require(found >= min(limit, total), f"limit {limit}: {found} of {total} rows are left")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise OracleError(message)


def run(pairs: int, seed: int, fired: Counter[str] | None = None) -> Counter[str]:
    """Check so many pairs; a difference names the table's own seed."""
    fired = Counter() if fired is None else fired
    for number in range(-(-pairs // PAIRS_PER_TABLE)):
        run_table(f"{seed}:{number}", min(PAIRS_PER_TABLE, pairs - number * PAIRS_PER_TABLE), fired)
    return fired


def run_table(table_seed: str, pairs: int, fired: Counter[str]) -> None:
    rng = random.Random(table_seed)
    snapshot = random_table(rng)
    with zones_of(rng.choice([1, 2, 3, 64])):
        for k in range(pairs):
            predicate = random_predicate(rng, snapshot)
            limit = rng.choice([None, None, 0, 1, 3])
            try:
                check_pair(snapshot, predicate, fired, limit)
            except Exception as error:
                raise OracleError(
                    f"{error}\n  replay: run_table({table_seed!r}, {k + 1}, Counter())"
                    f"\n  predicate: {predicate!r}\n  schema: {snapshot.schema}"
                ) from error
