"""Plans: residuals, counts, limits, tasks, errors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from planner.tables import FakeSnapshot, Split, write_split
from planner.trapkit import Table

import indextables.planner as planner
from indextables.config import Config
from indextables.errors import (
    ConfigError,
    PlanningError,
    QuerySyntaxError,
    TypeMismatchError,
    UnknownColumnError,
)
from indextables.expr.column import col
from indextables.expr.predicate import FALSE, TRUE, Compare, Op
from indextables.planner import Planner, filters
from indextables.planner.binding import BOUND
from indextables.planner.explain.describe import predicate_text
from indextables.planner.tasks import deal_out, splits_per_task

SCHEMA = pa.schema([("x", pa.int32()), ("s", pa.string()), ("day", pa.date32())])


@pytest.fixture
def table() -> Table:
    """Twelve splits of four rows, three days, x from 0 to 47."""
    splits = [
        [{"x": 4 * k + j, "s": f"{k:02d}{j}", "day": 19723 + k // 4} for j in range(4)]
        for k in range(12)
    ]
    return Table(splits, SCHEMA, partitions=["day"])


# -- residuals ----------------------------------------------------------------------------------


def test_partition_filters_vanish_from_the_residual(table: Table) -> None:
    plan = table.plan("day = date'2024-01-02'")
    assert plan.residual == TRUE
    assert [len(g.positions) for g in plan.residual_groups] == [4]
    assert plan.count() == 16


def test_what_bounds_prove_vanishes_too(table: Table) -> None:
    plan = table.check("x >= 6 AND s < '04'", range(7, 17))
    texts = {predicate_text(g.predicate): len(g.positions) for g in plan.residual_groups}
    assert texts == {"TRUE": 2, "x >= 6": 1}
    assert predicate_text(plan.residual) == "x >= 6"


def test_or_legs_vanish_where_they_are_decided(table: Table) -> None:
    sql = "(day = date'2024-01-01' AND x = 5) OR (day = date'2024-01-02' AND x = 17)"
    plan = table.check(sql, [6, 18])
    texts = {predicate_text(g.predicate) for g in plan.residual_groups}
    assert texts == {"x = 5", "x = 17"}


def test_rare_residuals_are_joined() -> None:
    schema = pa.schema([("p", pa.int32()), ("x", pa.int32())])
    splits = [[{"p": k, "x": k}, {"p": k, "x": k + 100}] for k in range(40)]
    table = Table(splits, schema, partitions=["p"])
    sql = " OR ".join(f"(p = {k} AND x = {k + 50})" for k in range(30))
    plan = table.check(sql, [])
    assert 1 < len(plan.residual_groups) <= 16
    assert sum(len(g.positions) for g in plan.residual_groups) == len(plan) == 30


def test_a_hundred_leaves() -> None:
    table = Table([[{"x": k}] for k in range(5)], pa.schema([("x", pa.int32())]))
    sql = " OR ".join(f"(x = {k} AND s{k} = 1)" for k in range(50))
    wide = pa.schema([("x", pa.int32()), *((f"s{k}", pa.int32()) for k in range(50))])
    table = Table([[{"x": k, f"s{k}": 1}] for k in range(5)], wide)
    table.check(sql, [1, 2, 3, 4, 5])


def test_undecided_parts_stay(table: Table) -> None:
    plan = table.plan("x = 5 AND length(s) = 3")
    assert len(plan) == 1
    assert [leaf.references for leaf in plan.undecided] == [("s",)]
    plan.check_decidable()
    assert plan.count() is None


def test_what_nobody_can_evaluate_is_an_error_before_reading(table: Table) -> None:
    odd = filters.Unsupported("some_udf(x)", (filters.Attribute("x"),))
    plan = table.plan(filters.And(filters.EqualTo("x", 5), odd))
    assert len(plan) == 1
    with pytest.raises(PlanningError, match="some_udf"):
        plan.check_decidable()


# -- counts and limits --------------------------------------------------------------------------


def test_count_from_the_log_alone(table: Table) -> None:
    assert table.plan(None).count() == 48
    assert table.plan("x < 8").count() == 8
    assert table.plan("x < 9").count() is None
    assert table.plan("x < 0").count() == 0
    assert table.plan("x < 8", limit=3).count() == 3


def test_count_is_unknown_where_rows_are() -> None:
    def forget(split: Split) -> None:
        split.num_records = -1

    table = Table([[{"x": 1}]], pa.schema([("x", pa.int32())]), change=forget)
    plan = table.plan("x = 1")
    assert plan.must_match == 1
    assert plan.count() is None
    assert plan.report.most_rows is None


def test_a_limit_is_met_from_splits_that_match_whole(table: Table) -> None:
    plan = table.plan("x >= 6", limit=7)
    assert [int(i) for i in plan.selection] == [2, 3], "two whole splits instead of eleven"
    assert plan.stages[-1].name == "limit"
    assert len(table.plan("x >= 6", limit=100)) == 11
    assert len(table.plan("x >= 6", limit=0)) == 0
    assert [int(i) for i in table.plan("x = 6", limit=1).selection] == [1]
    with pytest.raises(PlanningError):
        table.plan("x = 6", limit=-1)


# -- tasks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("splits", "parallelism", "expected"),
    [
        (1, 8, 1),
        (16, 8, 1),
        (17, 8, 1),
        (64, 8, 2),
        (65, 8, 3),
        (1000, 2, 125),
        (10_000, 8, 256),
        (0, 8, 1),
    ],
)
def test_auto_splits_per_task(splits: int, parallelism: int, expected: int) -> None:
    assert splits_per_task(Config(), splits, parallelism) == expected


def test_a_given_number_of_splits_per_task() -> None:
    assert splits_per_task(Config({"read.splitsPerTask": "5"}), 1, 8) == 5
    for wrong in ("0", "many", "-1"):
        with pytest.raises(ConfigError):
            splits_per_task(Config({"read.splitsPerTask": wrong}), 1, 8)


def test_tasks_are_about_equally_heavy() -> None:
    sizes = [100, 1, 1, 1, 50, 50, 1, 1]
    groups = deal_out(sizes, 4)
    assert sorted(i for g in groups for i in g) == list(range(8))
    assert all(len(g) <= 4 for g in groups)
    assert sorted(sum(sizes[i] for i in g) for g in groups) == [102, 103]
    assert deal_out([5, 5], 1) == [[0], [1]]
    assert deal_out([], 3) == []


def test_tasks_carry_their_residual_and_pickle(table: Table) -> None:
    config = Config({"read.splitsPerTask": "3"})
    plan = Planner(table.snapshot, config=config).plan("x >= 6", columns=["S", "day"])
    tasks = pickle.loads(pickle.dumps(plan.tasks))
    assert [t.columns for t in tasks] == [("s", "day")] * len(tasks)
    by_path = {ref.path: t.predicate for t in tasks for ref in t.splits}
    assert len(by_path) == 11
    assert by_path["part-00001.split"] == plan.predicate
    assert by_path["part-00002.split"] == TRUE
    assert tasks[0].splits[0].partition_values == {"day": "2024-01-01"}
    assert max(len(t.splits) for t in tasks) == 3
    assert len(pickle.dumps(tasks[0])) < 4000


def test_with_a_limit_whole_splits_come_first(table: Table) -> None:
    plan = table.plan("x >= 6", limit=1000)
    assert plan.tasks[0].predicate == TRUE
    assert plan.tasks[-1].predicate != TRUE
    assert all(t.limit == 1000 for t in plan.tasks)


# -- inputs -------------------------------------------------------------------------------------


def test_the_same_filter_in_any_form(table: Table) -> None:
    forms: list[Any] = [
        "x = 5",
        filters.EqualTo("x", 5),
        [filters.EqualTo("x", 5)],
        col("x") == 5,
        table.plan("x = 5").predicate,
    ]
    plans = [planner.plan(form, table.snapshot) for form in forms]
    assert len({repr(p.predicate) for p in plans}) == 1
    assert all(p.selection.tolist() == [1] for p in plans)


def test_no_filter_is_every_split(table: Table) -> None:
    for nothing in (None, [], "TRUE"):
        plan = table.plan(nothing)
        assert len(plan) == 12
        assert plan.residual == TRUE
        assert plan.must_match == 12


def test_a_constant_false_filter_reads_nothing(table: Table) -> None:
    for never in ("FALSE", "x = NULL", "x IN (NULL)", FALSE):
        plan = table.plan(never)
        assert len(plan) == 0
        assert plan.tasks == []
        assert plan.count() == 0


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("y = 5", UnknownColumnError),
        ("x = 5 AND", QuerySyntaxError),
        ("x = 'five'", TypeMismatchError),
        ("day = 3", TypeMismatchError),
        ("s LIKE 'a!' ESCAPE '!'", PlanningError),
        (3.5, PlanningError),
    ],
)
def test_wrong_filters_are_errors_never_all_rows(table: Table, sql: Any, error: type) -> None:
    with pytest.raises(error):
        table.plan(sql)


def test_wrong_columns_and_tables_are_errors(table: Table) -> None:
    with pytest.raises(UnknownColumnError, match="Did you mean 'day'"):
        table.plan("x = 5", columns=["dya"])
    with pytest.raises(PlanningError, match="cannot plan over a dict"):
        planner.plan("x = 5", {})


def test_options_switch_patterns_off(table: Table) -> None:
    off = {"spark.indextables.filter.stringStartsWith.pushdown": "false"}
    assert len(planner.plan("startswith(s, '03')", table.snapshot, options=off)) == 12
    assert len(planner.plan("startswith(s, '03')", table.snapshot)) == 1
    off = {"filter.stringPattern.pushdown": "false"}
    assert len(planner.plan("s LIKE '03%1'", table.snapshot, options=off)) == 12
    assert len(planner.plan("s LIKE '03%1'", table.snapshot)) == 1


def test_tables_and_logs_are_taken_too(table: Table) -> None:
    class Log:
        path = "memory://t"
        config = Config({"read.splitsPerTask": "2"})
        storage_options = {"key": "value"}  # noqa: RUF012

        def snapshot(self) -> FakeSnapshot:
            return table.snapshot

    plan = planner.plan("x < 8", Log())
    assert [t.table_path for t in plan.tasks] == ["memory://t"]
    assert plan.tasks[0].storage_options == {"key": "value"}
    assert len(plan.tasks[0].splits) == 2


def test_bound_texts_are_remembered_but_not_for_ever(table: Table) -> None:
    first = table.plan("x = 1").predicate
    assert table.plan("x = 1").predicate is first
    for k in range(300):
        Planner(table.snapshot).bind(f"x = {k}")
    assert len(table.snapshot.facts.cache(BOUND)) == 256


def test_an_empty_table() -> None:
    snapshot = FakeSnapshot([], SCHEMA, ["day"])
    plan = planner.plan("x = 1 AND day = date'2024-01-01' AND s > 'a'", snapshot)
    assert (len(plan), plan.count(), plan.tasks) == (0, 0, [])
    assert "0 splits" in plan.explain()


def test_plans_run_in_threads(table: Table) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def one(k: int) -> list[int]:
        predicate = Compare(table.plan("x = 0").predicate.column, Op.EQ, k)  # type: ignore[union-attr]
        return list(Planner(table.snapshot).plan(predicate).selection)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, range(48)))
    assert found == [[k // 4] for k in range(48)]


def test_a_router_that_miscounts_is_an_error(table: Table) -> None:
    class Short:
        def route(self, snapshot: Any, candidates: Any, predicate: Any) -> Any:
            return type("R", (), {"keep": np.ones(1), "report": None})()

    config = Config({"xref.query.minSplitsForXRef": 0})
    with pytest.raises(PlanningError, match="judged 1 of"):
        Planner(table.snapshot, config=config, xref_router=Short()).plan("s IN ('010', '113')")


def test_a_router_is_asked_only_when_it_pays(table: Table) -> None:
    class Never:
        def route(self, snapshot: Any, candidates: Any, predicate: Any) -> Any:
            raise AssertionError

    plan = Planner(table.snapshot, xref_router=Never()).plan("x > 5")
    assert "fewer than 128" in plan.report.stages[-1].detail
    off = Config({"xref.query.enabled": False})
    plan = Planner(table.snapshot, config=off, xref_router=Never()).plan("x > 5")
    assert plan.report.stages[-1].detail == "skipped: switched off"
    always = Config({"xref.query.minSplitsForXRef": 0})
    plan = Planner(table.snapshot, config=always, xref_router=Never()).plan("x = 999")
    assert plan.report.stages[-1].detail == "skipped: no candidates"


def test_unknown_types_have_only_null_counts() -> None:
    schema = pa.schema([("b", pa.binary()), ("l", pa.list_(pa.int32()))])
    splits = [write_split([{"b": b"a", "l": None}], schema), write_split([{"b": None}], schema)]
    snapshot = FakeSnapshot(splits, schema)
    assert planner.plan("b = X'62'", snapshot).selection.tolist() == [0]
    assert planner.plan("b IS NULL", snapshot).selection.tolist() == [1]
    assert planner.plan("l IS NOT NULL", snapshot).selection.tolist() == []


def test_a_router_is_asked_what_is_left_in_each_group() -> None:
    schema = pa.schema([("p", pa.int32()), ("s", pa.string())])
    splits = [[{"p": k % 3, "s": "a"}, {"p": k % 3, "s": "z"}] for k in range(6)]
    table = Table(splits, schema, partitions=["p"])
    asked: dict[str, list[int]] = {}

    class Note:
        def route(self, snapshot: Any, candidates: Any, predicate: Any) -> Any:
            asked[predicate_text(predicate)] = candidates.tolist()
            return type("R", (), {"keep": candidates % 2 == 0, "report": None})()

    config = Config({"xref.query.minSplitsForXRef": 1})
    plan = Planner(table.snapshot, config=config, xref_router=Note()).plan(
        "(p = 0 AND s = 'h') OR (p = 1 AND s = 'k') OR p = 2"
    )
    assert asked == {"s = 'h'": [0, 3], "s = 'k'": [1, 4]}
    assert plan.selection.tolist() == [0, 2, 4, 5], "what must match is kept unasked"
