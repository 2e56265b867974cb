"""Keys and measures computed in tasks: Spark's values, and nothing that is not known."""

from __future__ import annotations

import itertools
import json
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from indextables.errors import EvaluationError
from indextables.expr.predicate import FALSE, TRUE
from indextables.planner.tasks import SplitTask
from indextables.spark.driver import packing
from indextables.spark.driver.packing import packed
from indextables.spark.tasks.computing import Computed
from indextables.spark.tasks.grouped import gathered, supported
from indextables.splits.read.source import SplitRef

NAN, INF = float("nan"), float("inf")
BATCH = pa.RecordBatch.from_pydict(
    {
        "n": pa.array([1, -7, None, 2**53 + 1], pa.int64()),
        "x": pa.array([NAN, -0.5, None, INF], pa.float64()),
        "s": pa.array([{"a": 1}, None, {"a": None}, {"a": 4}], pa.struct([("a", pa.int32())])),
        "at": pa.array([0, -1, None, 3_599_999_999], pa.timestamp("us", "UTC")),
        "d": pa.array([Decimal("1.5"), None, Decimal("-2.5"), Decimal("9.9")], pa.decimal128(2, 1)),
    }
)


def field(*names: str) -> dict[str, Any]:
    return {"op": "field", "name": list(names)}


def lit(value: Any, kind: str) -> dict[str, Any]:
    return {"op": "lit", "type": kind, "value": value}


def call(op: str, *children: Any, **rest: Any) -> dict[str, Any]:
    return {"op": op, "children": list(children), **rest}


def values(node: dict[str, Any]) -> list[Any]:
    found = Computed.of(node, BATCH.schema)
    assert found is not None
    found = pickle.loads(pickle.dumps(found))
    result = found.over(BATCH)
    assert result.type == found.dtype
    return list(result.to_pylist())


ZERO = lit("0.0", "double")


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (field("S", "A"), [1, None, None, 4]),
        (call("CAST", field("n"), type="double"), [1.0, -7.0, None, float(2**53)]),
        (call("CAST", field("at"), type="long"), [0, -1, None, 3599]),
        (call(">", field("x"), ZERO), [True, False, None, True]),
        (call("=", field("x"), field("x")), [True, True, None, True]),
        (call("<", field("x"), lit("NaN", "double")), [False, True, None, True]),
        (call("+", field("n"), lit(1, "long")), [2, -6, None, 2**53 + 2]),
        (
            call("CASE_WHEN", call("<", field("x"), ZERO),
                 call("FLOOR", call("/", field("x"), lit("0.25", "double")))),
            [None, -2, None, None],
        ),
        (call("-", field("n")), [-1, 7, None, -(2**53) - 1]),
        (call("-", call("CAST", field("n"), type="double")), [-1.0, 7.0, None, -float(2**53)]),
        (call("IS_NULL", field("x")), [False, False, True, False]),
        (
            call("CASE_WHEN", call("<", field("n"), lit(0, "long")), lit("low", "string")),
            [None, "low", None, None],
        ),
        (
            call("CASE_WHEN", call(">", field("n"), lit(0, "long")), lit(1, "integer"),
                 lit(0, "integer")),
            [1, 0, 0, 1],
        ),
        (call("AND", call("IS_NULL", field("n")), lit(None, "boolean")),
         [False, False, None, False]),
    ],
)  # fmt: skip
def test_values(node: dict[str, Any], expected: list[Any]) -> None:
    assert values(node) == expected


@pytest.mark.parametrize(
    "node",
    [
        call("UPPER", field("n")),
        call("-", field("s", "a")),
        call("CAST", field("n"), type="interval day to second"),
        call("+", field("n"), {"op": "lit", "type": "variant", "value": "1"}),
        {"op": "something new"},
        call("/", field("x"), field("x")),
        call("/", field("x"), ZERO),
        call("+", field("n"), field("x")),
        call("CAST", field("x"), type="long"),
        call("CAST", field("d"), type="double"),
        call("CASE_WHEN", lit(True, "boolean"), field("n"), field("x")),
        field("nope"),
        field("s", "nope"),
    ],
)
def test_what_is_unknown_is_left_to_spark(node: dict[str, Any]) -> None:
    assert Computed.of(node, BATCH.schema) is None
    assert supported(BATCH.schema, [node], [{"function": "CountStar"}]) is None


def test_text_with_a_collation_is_left_to_spark() -> None:
    note = json.dumps({"__COLLATIONS": {"s": "icu.UTF8_LCASE"}})
    schema = pa.schema([pa.field("s", pa.string(), metadata={"spark": note}), ("t", pa.string())])
    assert supported(schema, [field("t")], [{"function": "Max", "measure": field("t")}])
    assert supported(schema, [field("s")], [{"function": "CountStar"}]) is None
    assert supported(schema, [], [{"function": "Max", "measure": field("s")}]) is None


OPERANDS = [
    *(field(name) for name in BATCH.schema.names),
    field("s", "a"),
    lit(None, "void"),
    lit(None, "long"),
    lit("text", "string"),
    lit("0x", "binary"),
    lit(True, "boolean"),
    lit(1, "date"),
    lit("1.50", "decimal(3,2)"),
]
NAMES = [
    "+", "-", "*", "/", "%", "&", "|", "^", "~", "=", "<=>", "<>", "<", "<=", ">", ">=",
    "AND", "OR", "NOT", "IS_NULL", "IS_NOT_NULL", "IN", "CASE_WHEN", "COALESCE", "CAST",
    "FLOOR", "CEIL", "ROUND", "ABS", "SQRT", "UPPER", "SUBSTRING", "CONCAT", "EXTRACT",
    "field", "lit", "", "no such thing",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_tree_whatever_is_more_than_unknown(name: str) -> None:
    """Each name with zero to three operands of each type: computed over rows, or left to Spark."""
    for count in range(4):
        for operands in itertools.product(OPERANDS, repeat=count):
            for more in ({}, {"type": "double"}, {"type": "no type"}):
                found = Computed.of(call(name, *operands, **more), BATCH.schema)
                if found is not None:
                    assert len(found.over(BATCH.slice(1, 2))) == 2


@pytest.mark.parametrize("function", ["Sum", "Min", "Max", "Count", "Avg", "GeneralAggregateFunc"])
def test_functions_over_all_types_are_exact_or_left_to_spark(function: str) -> None:
    for node in OPERANDS:
        for distinct in (False, True):
            asked = [{"function": function, "measure": node, "distinct": distinct}]
            found = supported(BATCH.schema, [], asked)
            if found is not None:
                assert not distinct
                assert sum(batch.num_rows for batch in found.of([BATCH])) >= 1


@pytest.mark.parametrize(("op", "test"), [("AND", "IS_NULL"), ("OR", "IS_NOT_NULL")])
def test_what_is_decided_on_the_left_is_not_computed_on_the_right(op: str, test: str) -> None:
    """2^53 + 1 and more would overflow, and Spark never gets that far."""
    huge = call("+", field("n"), lit(2**63 - 10, "long"))
    node = call(op, call(test, field("n")), call(">", huge, lit(0, "long")))
    decided = {"AND": False, "OR": True}[op]
    assert values(node) == [decided, decided, None, decided]
    other = {"AND": "IS_NOT_NULL", "OR": "IS_NULL"}[op]
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        values(call(op, call(other, field("n")), call(">", huge, lit(0, "long"))))


@pytest.mark.parametrize("ansi", [True, False])
def test_an_overflow_is_an_error_under_ansi_rules(ansi: bool) -> None:
    found = Computed.of(call("FLOOR", field("x")), BATCH.schema, ansi)
    if found is None:
        assert not ansi
        return
    with pytest.raises(EvaluationError, match="overflow"):
        found.over(BATCH)


def test_sums_of_decimals_go_over_in_pieces() -> None:
    wide = pa.RecordBatch.from_pydict({"d": pa.array([Decimal("9.9")] * 25, pa.decimal128(2, 1))})
    functions = [
        {"function": "Sum", "measure": field("d")},
        {"function": "Count", "measure": field("d")},
        {"function": "Max", "measure": field("d")},
    ]
    aggregation = supported(wide.schema, [], functions)
    assert aggregation is not None
    (found,) = aggregation.of([wide])
    rows = found.to_pylist()
    assert found.schema.field("agg_0").type == pa.decimal128(2, 1)
    assert sum(r["agg_0"] for r in rows) == Decimal("247.5")
    assert sum(r["agg_1"] for r in rows) == 25
    assert {r["agg_2"] for r in rows} == {Decimal("9.9")}


def test_no_rows_are_one_row_without_groups_and_none_with() -> None:
    functions = [{"function": "CountStar"}, {"function": "Max", "measure": field("x")}]
    whole = supported(BATCH.schema, [], functions)
    grouped = supported(BATCH.schema, [field("n")], functions)
    assert whole is not None
    assert grouped is not None
    assert [b.to_pylist() for b in whole.of([])] == [[{"agg_0": 0, "agg_1": None}]]
    assert list(grouped.of([])) == []


def test_small_batches_are_joined_in_order() -> None:
    parts = [BATCH.slice(i, 1) for i in range(4)]
    assert [b.num_rows for b in gathered(parts, 3)] == [3, 1]
    whole = pa.Table.from_batches(gathered(parts, 3))
    assert whole["at"].to_pylist() == BATCH["at"].to_pylist()
    assert [b.num_rows for b in gathered([p.select([]) for p in parts], 3)] == [3, 1]


def test_small_tasks_are_joined() -> None:
    def task(size: int, predicate: Any = TRUE) -> SplitTask:
        return SplitTask((SplitRef(f"{size}", size),), predicate)

    second = int(packing.BYTES_PER_SECOND)
    assert [len(t.splits) for t in packed([task(10), task(20), task(second // 20)], 2)] == [3]
    assert [len(t.splits) for t in packed([task(10), task(20, FALSE), task(30)], 2)] == [1, 1, 1]
    eight = [task(second // 20 + i) for i in range(8)]
    assert [len(t.splits) for t in packed(eight, 2)] == [4, 4]
    assert [len(t.splits) for t in packed(eight, 2, share=0.1)] == [8]
    assert [len(t.splits) for t in packed(eight, 8)] == [1] * 8
    assert [len(t.splits) for t in packed([task(second)] * 8, 1)] == [1] * 8
    assert packed([], 2) == []
