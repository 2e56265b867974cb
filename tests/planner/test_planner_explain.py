"""Explanations: the same facts as text, JSON and HTML; the reason for one split."""

from __future__ import annotations

import html.parser
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from planner.tables import Split, foreign_split
from planner.trapkit import Table, one

import indextables
import indextables.planner as planner
from indextables.config import Config
from indextables.errors import PlanningError
from indextables.expr.predicate import Column, Compare, InSet, Op
from indextables.mapping import DocMapping
from indextables.planner import Planner
from indextables.planner.explain.describe import leaf_text, size_text
from indextables.splits.read.choose import Chooser
from indextables.splits.read.reader import SplitReader

SCHEMA = pa.schema([("x", pa.int32()), ("host", pa.string()), ("day", pa.date32())])


@pytest.fixture
def table() -> Table:
    splits = [
        [{"x": 4 * k + j, "host": f"web-{k:02d}", "day": 19723 + k // 4} for j in range(4)]
        for k in range(12)
    ]
    found = Table(splits, SCHEMA, partitions=["day"])
    found.snapshot.table_mapping = DocMapping.for_schema(found.schema, ["day"])
    return found


class EveryOther:
    """A router that drops every second candidate."""

    def route(self, snapshot: Any, candidates: Any, predicate: Any) -> Any:
        report = type("Report", (), {"columns": ("host",), "detail": "1 file, 2 filters"})()
        keep = np.arange(len(candidates)) % 2 == 0
        return type("Routed", (), {"keep": keep, "report": report})()


def test_the_funnel_reads_from_left_to_right(table: Table) -> None:
    config = Config({"xref.query.minSplitsForXRef": 1})
    plan = Planner(table.snapshot, config=config, xref_router=EveryOther()).plan(
        "day = date'2024-01-02' AND x > 15 AND host != 'web-99' AND length(host) = 6"
    )
    text = plan.explain()
    assert "12 splits -> 4 (partition day) -> 4 (min/max x,host) -> 2 (xref host)" in text
    assert "1 file, 2 filters" in text
    assert text.index("AND") < text.index("12 splits"), "the filter tree stands above"
    assert re.search(r"partition +12 -> +4 .* ms", text)
    assert "day = 2024-01-02  [partition]" in text
    funnel = next(line for line in text.splitlines() if "splits ->" in line)
    assert repr(plan) == f"Plan({funnel})"


def test_reports_are_data(table: Table) -> None:
    report = table.plan("day = date'2024-01-02' AND x < 20").report
    assert [(s.name, s.splits_in, s.splits_out) for s in report.stages] == [
        ("list", 12, 12),
        ("partition", 12, 4),
        ("min/max", 4, 1),
    ]
    assert report.stages[1].pruned == 8
    assert (report.bytes_total, report.bytes_selected) == (12_000, 1000)
    assert (report.must_match, report.rows, report.most_rows) == (1, 4, 4)
    assert report.seconds >= sum(s.seconds for s in report.stages) > 0
    assert report.stage("partition") is report.stages[1]
    assert report.stage("xref") is None


def test_json_is_versioned_and_complete(table: Table) -> None:
    plan = table.plan("x BETWEEN 6 AND 9 OR host = 'web-11'", columns=["x"], limit=500)
    body = json.loads(plan.explain("json"))
    assert (body["format"], body["formatVersion"]) == ("indextables.plan", 2)
    assert set(body) == {
        "format", "formatVersion", "version", "filter", "funnel", "report", "columns",
        "limit", "residual", "tasks", "splits", "splitsOmitted",
    }  # fmt: skip
    assert body["filter"]["op"] == "or"
    assert body["filter"]["children"][1]["stages"] == ["min/max", "xref", "search"]
    assert [s["path"] for s in body["splits"]] == [s.path for s in plan.splits]
    assert body["report"]["stages"][-1]["splits_out"] == len(plan) == 3
    assert {r["access"]["kind"] for r in body["residual"]} <= {"search", "scan"}
    assert body["columns"] == ["x"]
    assert body["limit"] == 500


@pytest.mark.parametrize(
    ("sql", "access"),
    [
        ("s = 'a'", "search: index of s"),
        ("lower(s) = 'a'", "scan: no index narrows it"),
        ("lower(s) = 'a' AND i > 1", "search: index of i"),
        ("lower(s) = 'a' OR i > 1", "scan: no index narrows it"),
        ("s = 'a' OR i > 1", "search: index of s, i"),
        ("body TEXTSEARCH 'fox'", "search: index of body"),
        ("body > 'a' AND body LIKE '%o%'", "scan: no index narrows it"),
        ("s LIKE 'a%c%' AND body > 'a'", "search: index of s"),
        ("s != 'a' OR body > 'b'", "scan: no index narrows it"),
        ("NOT body TEXTSEARCH 'fox' AND i != 5", "search: index of body, i"),
        ("st.name = 'x' OR st.n > 1", "search: index of st"),
        ("raw = 'q'", "scan: no index narrows it"),
    ],
)
def test_the_access_is_the_one_splits_choose(tmp_path: Path, sql: str, access: str) -> None:
    """What the log promises is what the compiler of an open split says it will do."""
    path = str(tmp_path / "t")
    data = pa.table({"s": list("abcabc"), "i": [1, 5, 2, 9, 3, 0], "body": ["a fox", "no"] * 3})
    data = data.append_column("st", pa.array([{"name": "x", "n": 1}, {"name": "y", "n": 2}] * 3))
    data = data.append_column("raw", pa.array(list("pqrpqr")))
    indextables.write(data, path, text=["body"], options={"indexing.storeonlyfields": "raw"})
    plan = indextables.open(path).plan(sql)
    assert f"[{access}]" in plan.explain()
    reader = SplitReader.open(plan.planner.target.store, plan.splits[0])
    (group,) = plan.residual_groups
    found = Chooser(reader, group.predicate).describe()
    assert found.kind == access.split(":")[0]


class Checker(html.parser.HTMLParser):
    """Well-formed enough, and nothing from outside."""

    VOID = frozenset({"meta", "br", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not any(name in ("src", "href") or name.startswith("on") for name, _ in attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_alone(table: Table) -> None:
    plan = table.plan("x > 5 AND host LIKE 'web%'")
    page, piece = Checker(), Checker()
    text = plan.explain("html")
    page.feed(text)
    piece.feed(plan._repr_html_())
    assert page.open == piece.open == []
    assert page.seen.count("script") == 1
    assert "script" not in piece.seen
    assert "prefers-color-scheme:dark" in text
    assert text.count("<tr>") > len(plan)
    assert "http" not in text


def test_hostile_names_are_escaped() -> None:
    table = one("x", pa.string(), ["<script>alert(1)</script>", "z"], ["a"])
    table.snapshot.list[0].path = "<img src=x onerror=alert(1)>.split"
    table.snapshot.paths = pa.array([s.path for s in table.snapshot.list], pa.large_string())
    plan = table.plan("x = '<script>alert(1)</script>'")
    for text in (plan.explain("html"), plan._repr_html_()):
        assert "<script>alert" not in text
        assert "<img" not in text


def test_an_unknown_format_is_an_error(table: Table) -> None:
    with pytest.raises(PlanningError, match="text, json, html"):
        table.plan("x = 1").explain("pdf")
    with pytest.raises(PlanningError, match="needs a table"):
        planner.explain("x = 1", format="html")


def test_without_a_table_the_tree_and_what_could_be_used() -> None:
    text = planner.explain("status = 500 AND (host = 'a' OR u.age > 3) AND lower(z) = 'q'")
    assert "status = 500  [min/max, xref, search]" in text
    assert "u.age > 3  [min/max, search]" in text
    assert "[residual]" in text
    body = json.loads(planner.explain("d > date'2024-01-01'", format="json"))
    assert body["filter"]["text"] == "d > 2024-01-01"
    assert planner.explain("t < timestamp'2024-01-01 10:00:00'").startswith("t < 2024-01-01 10")
    assert planner.explain("a IS NULL") == "a IS NULL  [min/max, search]"


def test_with_a_table_explain_is_the_plans(table: Table) -> None:
    assert "12 splits -> 1 (min/max x)" in planner.explain("x = 5", table.snapshot)


# -- why ----------------------------------------------------------------------------------------


def why(table: Table, sql: str, split: int = 0) -> str:
    return table.plan(sql).why(f"part-{split:05d}.split")


def test_why_names_stage_statistic_and_rule(table: Table) -> None:
    assert "dropped by partition day" in why(table, "day > date'2024-01-02'")
    assert "CANNOT_MATCH, partition value '2024-01-01'" in why(table, "day > date'2024-01-02'")
    assert "dropped by min/max x" in why(table, "x = 40")
    assert "values from 0 to 3, none of them asked for" in why(table, "x = 40")
    kept = why(table, "x IN (1, 2)")
    assert "kept, MAY_MATCH" in kept
    assert "with asked values among them" in kept
    assert "kept, MUST_MATCH: every row matches" in why(table, "x < 4")
    assert "OR\n    " in why(table, "x < 4 OR host = 'web-00'")
    assert "nothing in the log decides it" in why(table, "abs(x) = 1")
    assert "no filter" in table.plan(None).why("part-00000.split")
    with pytest.raises(PlanningError, match="no live split"):
        table.plan(None).why("nope.split")


def test_why_names_the_traps() -> None:
    floats = one("f", pa.float64(), [1.0, float("nan")])
    assert "trap 1" in why(floats, "f > 3")
    nulls = one("i", pa.int32(), [None])
    assert "trap 4" in why(nulls, "i = 1")
    foreign = one("i", pa.int32(), [1], write=foreign_split)
    assert "trap 5" in why(foreign, "i IS NULL")
    equal = one("i", pa.int32(), [1])
    assert "trap 8" in why(equal, "i != 1")
    long = one("s", pa.string(), ["x" * 50])
    assert "trap 14" in why(long, f"s = '{'x' * 40}'")
    prefix = one("s", pa.string(), ["pa", "pb"])
    assert "trap 19" in why(prefix, "s NOT LIKE 'p%'")


def test_why_without_statistics() -> None:
    def forget(split: Split) -> None:
        split.lows.clear()
        split.highs.clear()

    bare = one("i", pa.int32(), [1], change=forget)
    assert "no statistics" in why(bare, "i = 1")
    assert "statistics do not help" in why(one("s", pa.string(), ["a"]), "s LIKE '%x'")
    assert "holds no rows" in why(one("i", pa.int32(), []), "i = 1")


def test_literals_are_shown_as_what_they_stand_for() -> None:
    def shown(dtype: pa.DataType, value: Any) -> str:
        return leaf_text(Compare(Column(("c",), dtype), Op.EQ, value))

    assert shown(pa.date32(), 19723) == "c = 2024-01-01"
    assert shown(pa.timestamp("us", "UTC"), 1) == "c = 1970-01-01 00:00:00.000001Z"
    assert shown(pa.timestamp("us"), 0) == "c = 1970-01-01 00:00:00"
    assert shown(pa.timestamp("us"), 1 << 62) == f"c = {1 << 62}"
    assert shown(pa.decimal128(10, 2), -950) == "c = -9.50"
    assert shown(pa.bool_(), True) == "c = true"
    assert shown(pa.string(), "it's") == "c = 'it''s'"
    assert shown(pa.binary(), b"\x01") == "c = X'01'"
    many = InSet(Column(("c",), pa.int32()), tuple(range(100)))
    assert leaf_text(many) == "c IN (0, 1, 2, 3, 4, 5, 94 more)"
    assert [size_text(n) for n in (7, 1500, 99_500_000, 3 * 10**15)] == [
        "7 B", "1.5 kB", "99.5 MB", "3000 TB",
    ]  # fmt: skip
