"""Keys and measures computed in tasks: Spark's values, and nothing that is not known."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from indextables.errors import EvaluationError
from indextables.expr.predicate import FALSE, TRUE
from indextables.planner.tasks import SplitTask
from indextables.spark import packing
from indextables.spark.aggregating import gathered, supported
from indextables.spark.computing import Computed
from indextables.spark.packing import packed
from indextables.splits.source import SplitRef

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
