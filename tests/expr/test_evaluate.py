"""Evaluation against a plain-Python twin that judges the unbound filter row by row.

The twin knows nothing of binding: it compares Python values with exact arithmetic and Spark's
rules for NULL and NaN. Binding may turn NULL into FALSE, so the TRUE rows are compared; for the
leaves of bound predicates all three values are.
"""

from __future__ import annotations

import math
import os
import pickle
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.errors import EvaluationError, PlanningError, UnknownColumnError
from indextables.expr import filters as f
from indextables.expr.bind import bind
from indextables.expr.column import col
from indextables.expr.evaluate import can_evaluate, evaluate, matching_rows
from indextables.expr.predicate import FALSE, NULL, TRUE, Undecided

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("r", pa.float32()),
        ("dec", pa.decimal128(9, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("dt", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("bin", pa.binary()),
        ("st", pa.struct([("x", pa.int16()), ("y", pa.string())])),
    ]
)

FLOATS = [0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 1e300, 0.1, 2.0]
WIDE = [2**53, 2**53 + 1, 2**63 - 1, -(2**63)]


def small(rng: Random) -> int:
    return rng.randint(-3, 3)


def some_text(rng: Random, alphabet: str = "ab%_\\é\U0001f600\n") -> str:
    return "".join(rng.choices(alphabet, k=rng.randrange(5)))


def some_day(rng: Random) -> date:
    return date(1970, 1, 1) + timedelta(days=small(rng))


def some_instant(rng: Random) -> datetime:
    step = small(rng)
    return EPOCH + timedelta(hours=step * 12, microseconds=rng.choice([0, step]))


COLUMN_VALUES: dict[str, Callable[[Random], Any]] = {
    "i": lambda rng: rng.choice([small(rng), 2**31 - 1, -(2**31)]),
    "l": lambda rng: rng.choice([small(rng), *WIDE]),
    "d": lambda rng: rng.choice(FLOATS),
    "r": lambda rng: rng.choice([*FLOATS[:7], 0.10000000149011612]),
    "dec": lambda rng: Decimal(rng.randint(-300, 300)).scaleb(-2),
    "s": some_text,
    "b": lambda rng: rng.random() < 0.5,
    "dt": some_day,
    "ts": some_instant,
    "n": lambda rng: some_instant(rng).replace(tzinfo=None),
    "bin": lambda rng: rng.randbytes(rng.randrange(3)),
    "st.x": small,
    "st.y": some_text,
}
ODD_LITERALS: dict[str, list[Any]] = {
    "i": [1.5, -0.5, 2**40, Decimal("2.0"), math.nan, math.inf],
    "l": [1.5, 2.0**53, 2.0**63, -math.inf, Decimal("0.5"), 2**70],
    "d": [1, -2, 0],
    "r": [1, 0.1, 1e300],
    "dec": [Decimal("1.005"), Decimal("-0.001"), 10**9, 3, -(10**8)],
    "dt": [datetime(1970, 1, 1, 12), datetime(1970, 1, 2)],
    "st.x": [2**20, 0.5],
}
COMPARISONS = (
    f.EqualTo,
    f.EqualNullSafe,
    f.LessThan,
    f.LessThanOrEqual,
    f.GreaterThan,
    f.GreaterThanOrEqual,
)
AFFIXES = (f.StringStartsWith, f.StringEndsWith, f.StringContains)


def nullable(rng: Random, value: Any) -> Any:
    return None if rng.random() < 0.15 else value


def random_row(rng: Random) -> dict[str, Any]:
    row = {name: nullable(rng, COLUMN_VALUES[name](rng)) for name in SCHEMA.names if name != "st"}
    inner = {key: nullable(rng, COLUMN_VALUES[f"st.{key}"](rng)) for key in ("x", "y")}
    return {**row, "st": nullable(rng, inner)}


def random_leaf(rng: Random) -> f.Filter:
    name = rng.choice(sorted(COLUMN_VALUES))

    def literal() -> Any:
        odd = ODD_LITERALS.get(name, [])
        value = rng.choice(odd) if odd and rng.random() < 0.3 else COLUMN_VALUES[name](rng)
        return nullable(rng, value)

    shape = rng.choice(["compare", "compare", "in", "null", "text"])
    if shape == "compare":
        return rng.choice(COMPARISONS)(name, literal())
    if shape == "in":
        return f.In(name, [literal() for _ in range(rng.randrange(5))])
    if shape == "null" or name not in ("s", "st.y"):
        return rng.choice([f.IsNull, f.IsNotNull])(name)
    if rng.random() < 0.5:
        return f.Like(name, some_text(rng, "ab%_é\n"))
    return rng.choice(AFFIXES)(name, some_text(rng))


def random_tree(rng: Random, depth: int = 3) -> f.Filter:
    if depth == 0 or rng.random() < 0.3:
        return random_leaf(rng)
    if rng.random() < 0.25:
        return f.Not(random_tree(rng, depth - 1))
    join = rng.choice([f.And, f.Or])
    return join(*(random_tree(rng, depth - 1) for _ in range(rng.choice([2, 2, 3]))))


# -- the twin -------------------------------------------------------------------------------------


def look_up(row: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = row
    for part in path:
        value = None if value is None else value[part]
    return value


def key(value: Any) -> tuple[int, Any]:
    """A sort key with Spark's order: numbers exactly, NaN last, text by bytes."""
    if isinstance(value, bool | bytes):
        return 0, value
    if isinstance(value, float) and value != value:
        return 2, 0
    if isinstance(value, float) and math.isinf(value):
        return (1, 1) if value > 0 else (-1, 0)
    if isinstance(value, int | float | Decimal):
        return 0, Fraction(value)
    if isinstance(value, str):
        return 0, value.encode()
    if isinstance(value, datetime):
        return 0, value.replace(tzinfo=None)
    return 0, datetime(value.year, value.month, value.day)


def judge_comparison(node: f.Comparison, left: Any, right: Any) -> bool | None:
    if isinstance(node, f.EqualNullSafe):
        if left is None or right is None:
            return left is None and right is None
        return key(left) == key(right)
    if left is None or right is None:
        return None
    a, b = key(left), key(right)
    outcome = {
        f.EqualTo: a == b,
        f.LessThan: a < b,
        f.LessThanOrEqual: a <= b,
        f.GreaterThan: a > b,
        f.GreaterThanOrEqual: a >= b,
    }
    if type(node) in outcome:
        return outcome[type(node)]
    return {
        f.StringStartsWith: left.startswith,
        f.StringEndsWith: left.endswith,
        f.StringContains: left.__contains__,
    }[type(node)](right)


def judge(node: Any, row: dict[str, Any]) -> Any:
    """The filter's value for one row: True, False or None."""
    if isinstance(node, f.Attribute):
        return look_up(row, node.path)
    if isinstance(node, f.Lit):
        return node.value
    if isinstance(node, f.Not):
        inner = judge(node.child, row)
        return None if inner is None else not inner
    if isinstance(node, f.And | f.Or):
        values = [judge(part, row) for part in node.parts]
        decisive = isinstance(node, f.Or)
        if decisive in values:
            return decisive
        return None if None in values else not decisive
    if isinstance(node, f.IsNull | f.IsNotNull):
        return (judge(node.child, row) is None) == isinstance(node, f.IsNull)
    if isinstance(node, f.In):
        return judge(f.Or(*(f.EqualTo(node.left, v) for v in node.values)), row)
    if isinstance(node, f.Like):
        left, pattern = judge(node.left, row), judge(node.pattern, row)
        if left is None or pattern is None:
            return None
        regex = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern)
        return re.fullmatch(regex, left, re.S) is not None
    return judge_comparison(node, judge(node.left, row), judge(node.right, row))


TABLES = int(os.environ.get("INDEXTABLES_EXPR_TABLES", "40"))


def test_bound_predicates_are_true_for_the_twins_rows(rng: Random) -> None:
    for _ in range(TABLES):
        sample = [random_row(rng) for _ in range(12)]
        batch = pa.Table.from_pylist(sample, SCHEMA)
        for _ in range(25):
            tree = random_tree(rng)
            bound = bind(tree, SCHEMA)
            assert can_evaluate(bound)
            expected = [i for i, row in enumerate(sample) if judge(tree, row) is True]
            assert matching_rows(bound, batch).tolist() == expected, (tree, bound, sample)


def test_negation_partitions_the_rows(rng: Random) -> None:
    """A row is TRUE for the filter, or for its negation, or NULL: never two, never none."""
    for _ in range(TABLES):
        sample = [random_row(rng) for _ in range(12)]
        batch = pa.Table.from_pylist(sample, SCHEMA)
        for leaf in [random_leaf(rng) for _ in range(25)]:
            true = set(matching_rows(bind(leaf, SCHEMA), batch).tolist())
            false = set(matching_rows(bind(f.Not(leaf), SCHEMA), batch).tolist())
            unknown = {i for i, row in enumerate(sample) if judge(leaf, row) is None}
            assert true | false | unknown == set(range(len(sample))), leaf
            assert len(true) + len(false) + len(unknown) == len(sample), leaf


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-3, 3),
            st.none() | st.sampled_from(FLOATS),
            st.none() | st.text("abé", max_size=3),
        ),
        max_size=8,
    ),
    st.sampled_from(
        [
            "i = d", "i < d", "d <=> i", "d >= d", "NOT (i = d)", "coalesce(i, 0) = 0",
            "CASE WHEN i > 0 THEN d ELSE 1.5D END = 1.5D", "length(s) > i", "isnan(d) OR i = 1",
            "i IS NULL AND lower(s) = 'a'", "substring(s, 2, 1) = 'b' OR d = i",
        ]
    ),
)  # fmt: skip
def test_evaluation_does_not_depend_on_how_rows_are_cut(
    sample: list[tuple[Any, ...]], predicate: str
) -> None:
    schema = pa.schema([("i", pa.int32()), ("d", pa.float64()), ("s", pa.string())])
    names = schema.names
    whole = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in sample], schema)
    bound = bind(predicate, schema)
    pieces = [evaluate(bound, whole.slice(i, 1)).to_pylist() for i in range(len(sample))]
    assert evaluate(bound, whole).to_pylist() == [v for piece in pieces for v in piece]


# -- single cases ---------------------------------------------------------------------------------


def batch_of(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(*spec) for name, spec in columns.items()})


def test_three_values_of_a_leaf() -> None:
    batch = batch_of(i=([1, 2, None], pa.int32()))
    bound = bind("i = 1", batch.schema)
    assert evaluate(bound, batch).to_pylist() == [True, False, None]
    assert evaluate(bind("i NOT IN (1, 3)", batch.schema), batch).to_pylist() == [False, True, None]
    for constant, value in ((TRUE, True), (FALSE, False), (NULL, None)):
        assert evaluate(constant, batch).to_pylist() == [value] * 3


def test_dictionary_and_large_columns_are_read_as_bound() -> None:
    batch = batch_of(s=(["a", None, "b"], pa.dictionary(pa.int32(), pa.string())))
    schema = pa.schema([("s", pa.string())])
    assert matching_rows(bind("s = 'b'", schema), batch).tolist() == [2]
    large = batch_of(s=(["a", None, "b"], pa.large_string()))
    assert matching_rows(bind("s LIKE 'b%'", schema), large).tolist() == [2]


def test_a_column_missing_from_the_batch_is_an_error() -> None:
    with pytest.raises(UnknownColumnError):
        evaluate(bind("i = 1", pa.schema([("i", pa.int32())])), batch_of(j=([1],)))


def test_casts_fail_only_on_rows_that_reach_them() -> None:
    batch = batch_of(k=([1, 2], pa.int32()), s=(["7", "x"], pa.string()))
    guarded = bind("s = 7 AND k = 1", batch.schema)
    assert matching_rows(guarded, batch).tolist() == [0]
    assert matching_rows(bind("k = 2 OR s = 7", batch.schema), batch).tolist() == [0, 1]
    with pytest.raises(EvaluationError, match="'x' cannot be cast to bigint"):
        evaluate(bind("s = 7", batch.schema), batch)


def test_undecided_without_expression_is_refused() -> None:
    batch = batch_of(s=(["a"], pa.string()))
    bound = bind("soundex(s) = 'A000'", batch.schema)
    assert isinstance(bound, Undecided)
    assert not can_evaluate(bound)
    with pytest.raises(PlanningError, match="without Spark"):
        evaluate(bound, batch)


def test_predicates_travel() -> None:
    schema = pa.schema([("s", pa.string()), ("d", pa.float64())])
    bound = bind("lower(s) = 'x' OR d IN (1, 2) OR s LIKE '_a%'", schema)
    assert pickle.loads(pickle.dumps(bound)) == bound


def test_wide_decimals_compare_by_their_integers() -> None:
    huge = Decimal("99999999999999999999999999999999999.999")
    batch = batch_of(dec=([huge, huge.copy_negate(), Decimal(0), None], pa.decimal128(38, 3)))
    assert matching_rows(bind(col("dec") > 0, batch.schema), batch).tolist() == [0]
    assert matching_rows(bind(col("dec").isin(huge, 0), batch.schema), batch).tolist() == [0, 2]


def test_empty_batches() -> None:
    batch = batch_of(s=([], pa.string()), i=([], pa.int32()))
    for predicate in ("s = 'a' AND i > 1", "lower(s) = 'a' OR i / 2 = 1", "s RLIKE 'a'"):
        assert evaluate(bind(predicate, batch.schema), batch).to_pylist() == []
