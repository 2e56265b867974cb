"""Corners: text searches, odd literals, tables by path, lists of splits."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from planner.tables import FakeSnapshot, Split, Texts, write_split
from planner.trapkit import Table, one

import indextables.planner as planner
from indextables.config import Config
from indextables.expr import ast
from indextables.expr.like import LikePattern
from indextables.expr.normalize import like
from indextables.expr.predicate import (
    And,
    Column,
    Compare,
    InSet,
    Like,
    Match,
    Op,
    Or,
    StringMatch,
    TextMatch,
)
from indextables.log.log import TransactionLog
from indextables.mapping import DocMapping, IndexingOptions
from indextables.planner import Planner
from indextables.planner.explain.describe import leaf_text, literal_text, usable_stages
from indextables.planner.stages.method import expected_access
from indextables.planner.tasks import mapping_texts

TEXT = Column(("s",), pa.string())


def search(query: ast.Query, negated: bool = False) -> TextMatch:
    return TextMatch(query, ("s",), "source", negated=negated)


def test_text_searches_are_kept_for_the_split() -> None:
    table = one("s", pa.string(), ["a"], ["b"])
    leaf = search(ast.Term("s", "a"))
    plan = table.plan(leaf)
    assert (len(plan), plan.must_match, plan.residual) == (2, 0, leaf)
    assert "trap 30" in plan.why("part-00000.split")
    assert usable_stages(leaf) == ("xref", "search")
    assert usable_stages(search(leaf.query, negated=True)) == ("search",)


def test_searches_for_everything_and_nothing_are_constants() -> None:
    table = one("s", pa.string(), ["a"], [None])
    assert len(table.plan(search(ast.MatchNone()))) == 0
    assert len(table.plan(search(ast.MatchAll(), negated=True))) == 0
    assert table.plan(search(ast.MatchAll())).must_match == 2
    assert table.plan(search(ast.MatchNone(), negated=True)).must_match == 2
    assert "the same for every row" in table.plan(search(ast.MatchAll())).why("part-00000.split")


def test_a_search_in_an_or_excludes_nothing() -> None:
    table = one("s", pa.string(), ["a"], ["b"])
    leaf, above = search(ast.Term("s", "a")), Compare(TEXT, Op.GT, "a")
    both = table.plan(And((leaf, above)))
    assert both.selection.tolist() == [1]
    assert both.residual == leaf
    assert len(table.plan(Or((leaf, Compare(TEXT, Op.GT, "z"))))) == 2
    assert table.plan(Or((leaf, above))).must_match == 1


@pytest.mark.parametrize(
    "leaf",
    [
        Compare(TEXT, Op.EQ, "\ud800"),
        InSet(TEXT, ("a", "\udfff")),
        StringMatch(TEXT, Match.PREFIX, "\ud800"),
    ],
)
def test_half_a_surrogate_pair_in_a_literal_decides_nothing(leaf: Any) -> None:
    assert len(one("s", pa.string(), ["a"], ["b"]).plan(leaf)) == 2


@pytest.mark.parametrize("pattern", ["%ay", "%ay%", "%a_"])
def test_patterns_without_order_are_laid_against_partition_values(pattern: str) -> None:
    schema = pa.schema([("i", pa.int32()), ("p", pa.string())])
    values = ["xay", "ay", "b", None, ""]
    table = Table([[{"i": 1, "p": v}] for v in values], schema, partitions=["p"])
    column = Column(("p",), pa.string(), True)
    plan = table.plan(like(column, pattern, "\\"))
    assert plan.selection.tolist() == [0, 1]
    assert plan.verdicts.tolist() == [2, 2]
    negated = table.plan(like(column, pattern, "\\", negated=True))
    assert negated.selection.tolist() == [2, 4], "an empty text is a value"


def test_partition_values_of_other_types_decide_nothing() -> None:
    schema = pa.schema([("i", pa.int32()), ("p", pa.binary())])
    split = Split([], partition={"p": "x"}, num_records=1)
    snapshot = FakeSnapshot([split], schema, ["p"])
    column = Column(("p",), pa.binary(), True)
    assert len(planner.plan(Compare(column, Op.EQ, b"y"), snapshot)) == 1
    odd = Split([], partition={"p": "nine"}, num_records=1)
    typed = FakeSnapshot([odd], pa.schema([("p", pa.int32())]), ["p"])
    assert len(planner.plan("p = 8", typed)) == 1


def test_partition_columns_may_differ_in_case() -> None:
    schema = pa.schema([("i", pa.int32()), ("Day", pa.int32())])
    splits = [write_split([{"i": 1}], schema, {"Day": k}) for k in (1, 2)]
    for split in splits:
        split.partition = {"day": split.partition["Day"]}
    snapshot = FakeSnapshot(splits, schema, ["day"])
    assert planner.plan("DAY = 2", snapshot).selection.tolist() == [1]


def test_a_table_by_its_path(tmp_path: Path) -> None:
    TransactionLog.create(str(tmp_path / "t"), pa.schema([("i", pa.int32())]))
    plan = planner.plan("i = 1", str(tmp_path / "t"))
    assert len(plan) == 0
    assert plan.planner.target.path
    assert len(planner.plan("i = 1", tmp_path / "t")) == 0


def test_the_tables_own_cross_references_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from indextables.xref import routing

    class Only:
        def __init__(self, store: Any, config: Config) -> None:
            assert store == "the store"

        def route(self, snapshot: Any, candidates: Any, predicate: Any) -> Any:
            report = SimpleNamespace(columns=("s",), detail="asked")
            return SimpleNamespace(keep=np.arange(len(candidates)) == 0, report=report)

    monkeypatch.setattr(routing, "XRefQueryRouter", Only)
    table = one("s", pa.string(), ["a", "c"], ["a", "c"])
    table.snapshot.xrefs = ("one",)
    config = Config({"xref.query.minSplitsForXRef": 1})
    owner = SimpleNamespace(snapshot=table.snapshot, store="the store", config=config)
    plan = planner.plan("s = 'b'", owner)
    assert plan.selection.tolist() == [0]
    assert "2 splits -> 2 (min/max s) -> 1 (xref s)" in plan.explain()
    assert "dropped by xref s (asked)" in plan.why("part-00001.split")


def test_lists_of_splits() -> None:
    plan = one("i", pa.int32(), [1], [2], [3]).plan("i > 1")
    assert [s.path for s in plan.splits] == ["part-00001.split", "part-00002.split"]
    assert [s.path for s in plan.splits[1:]] == ["part-00002.split"]
    assert repr(plan.splits) == "FileList(2 of 3 files of version 7)"
    assert plan.indices.dtype == np.int64


def test_manifests_are_counted() -> None:
    schema = pa.schema([("i", pa.int32()), ("p", pa.int32())])
    table = Table([[{"i": 1, "p": k}] for k in range(6)], schema, partitions=["p"])
    table.snapshot.manifest_of = np.array([0, 0, 1, 1, 2, -1], np.int32)
    table.snapshot.manifest_partition_bounds = [None, None, None]  # type: ignore[attr-defined]
    report = table.plan("p IN (0, 2, 5)").report
    assert report.stages[1].detail == "from 2 of 3 manifests, 3 read"


def test_access_is_foretold() -> None:
    table = one("s", pa.string(), ["a"])
    leaf = Compare(TEXT, Op.EQ, "a")
    snapshot = table.snapshot
    assert expected_access(snapshot, leaf).kind == "scan"
    snapshot.table_mapping = DocMapping.for_schema(table.schema)
    assert expected_access(snapshot, leaf).kind == "search"
    snapshot.indexes = SimpleNamespace(definitions={"s": object()})  # type: ignore[attr-defined]
    assert expected_access(snapshot, leaf).kind == "column_index"
    assert expected_access(snapshot, Compare(TEXT, Op.NE, "a")).kind == "search"


def test_stages_of_a_leaf_follow_the_mapping() -> None:
    schema = pa.schema([("s", pa.string())])
    leaf = Compare(TEXT, Op.EQ, "a")
    tokens = DocMapping.for_schema(schema, options=IndexingOptions(text=("s",)))
    assert usable_stages(leaf, tokens) == ("min/max", "search")
    assert usable_stages(leaf, DocMapping.for_schema(schema)) == ("min/max", "xref", "search")
    assert usable_stages(Like(TEXT, LikePattern.parse("a%b"))) == ("min/max", "search")
    assert usable_stages(Like(TEXT, LikePattern.parse("%a%b"))) == ("search",)
    assert leaf_text(StringMatch(TEXT, Match.SUFFIX, "x", negated=True)) == "s NOT ENDS WITH 'x'"
    assert literal_text(1 << 40, pa.date32()) == str(1 << 40)


def test_mappings_of_foreign_splits_come_from_the_registry() -> None:
    columns = {
        "docMappingJson": Texts.of([None, "[]", None]),
        "docMappingRef": Texts.of(["r", None, None]),
    }
    snapshot: Any = SimpleNamespace(text_column=columns.__getitem__, mapping_registry={"r": "[{}]"})
    assert mapping_texts(snapshot, [0, 1, 2]) == ["[{}]", "[]", None]


def test_the_planners_names_for_filters_and_queries() -> None:
    import importlib

    names = importlib.import_module("indextables.planner.filters")
    queries = importlib.import_module("indextables.planner.ast")
    assert names.EqualTo is planner.filters.EqualTo
    assert queries.Term is ast.Term
    assert Planner(one("i", pa.int32(), [1]).snapshot).plan(names.EqualTo("i", 1)).count() == 1
