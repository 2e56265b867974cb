"""Traps 29 and 30: filters of keys decide only what they were built with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from planner.trapkit import Table

import indextables
from indextables.config import Config
from indextables.expr import predicate as p
from indextables.expr.analyzers import analyze
from indextables.expr.keys import canonical_text, key_for_term
from indextables.mapping import DocMapping, IndexingOptions
from indextables.planner import Planner

ALWAYS = Config({"xref.query.minSplitsForXRef": 0})


@dataclass
class Report:
    columns: tuple[str, ...] = ()
    detail: str = ""


@dataclass
class Routed:
    keep: Any
    report: Report = field(default_factory=Report)


class SetRouter:
    """A cross-reference that never errs: sets of keys instead of filters."""

    def __init__(self, table: Table, mapping: DocMapping) -> None:
        self.schema, self.mapping = table.schema, mapping
        self.keys = [self._keys(split.rows) for split in table.snapshot.list]

    def _keys(self, rows: list[dict[str, Any]]) -> set[str]:
        found = set()
        for row in rows:
            for name, value in row.items():
                known = self.mapping.get(name)
                if value is None or known is None:
                    continue
                texts = [canonical_text(self.schema.field(name).type, value)]
                if known.is_tokenized:
                    texts = analyze(known.tokenizer or "default", value, known.token_length)
                found |= {f"{name}:{text}" for text in texts}
        return found

    def route(self, snapshot: Any, candidates: Any, predicate: Any) -> Routed:
        keep = [self._possible(predicate, self.keys[int(i)]) for i in candidates]
        return Routed(np.array(keep, np.uint8), Report(("keys",)))

    def _possible(self, node: p.Predicate, keys: set[str]) -> bool:
        if isinstance(node, p.And):
            return all(self._possible(child, keys) for child in node.children)
        if isinstance(node, p.Or):
            return any(self._possible(child, keys) for child in node.children)
        if isinstance(node, p.Compare) and node.op is p.Op.EQ:
            return self._has(node.column.name, node.value, keys)
        if isinstance(node, p.InSet) and not node.negated:
            return any(self._has(node.column.name, v, keys) for v in node.values)
        return node != p.FALSE

    def _has(self, name: str, value: Any, keys: set[str]) -> bool:
        known = self.mapping.get(name)
        assert known is not None
        if known.is_tokenized:
            return True
        text = key_for_term(known, self.schema.field(name).type, value)
        return text is None or f"{name}:{text}" in keys


def kept(table: Table, mapping: DocMapping, sql: str, wanted: list[int]) -> list[int]:
    """Splits left by the keys alone; the rows must be those of brute force."""
    table.snapshot.table_mapping = mapping
    planner = Planner(table.snapshot, config=ALWAYS, xref_router=SetRouter(table, mapping))
    plan = planner.plan(sql)
    assert table.planned(plan) == table.brute_force(plan.predicate) == wanted
    return [int(i) for i in plan.selection]


def test_trap_29_keys_are_spelled_alike_on_both_sides() -> None:
    schema = pa.schema(
        [("x", pa.float64()), ("m", pa.decimal128(10, 2)), ("b", pa.binary()), ("d", pa.date32())]
    )
    rows = [
        {"x": 1.0, "m": 150, "b": b"\x01", "d": 0},
        {"x": -0.0, "m": 15, "b": b"\x02", "d": 1},
        {"x": 1e3, "m": 1, "b": b"", "d": 2},
    ]
    table = Table([[r] for r in rows], schema)
    for split in table.snapshot.list:
        split.lows.clear()
        split.highs.clear()
    mapping = DocMapping.for_schema(table.schema)
    assert kept(table, mapping, "x = 1", [1]) == [0]
    assert kept(table, mapping, "x = 1.00", [1]) == [0]
    assert kept(table, mapping, "x = 0", [2]) == [1]
    assert kept(table, mapping, "x = 1000", [3]) == [2]
    assert kept(table, mapping, "m = 1.5", [1]) == [0]
    assert kept(table, mapping, "m IN (0.15, 7)", [2]) == [1]
    assert kept(table, mapping, "b = X'01'", [1]) == [0]
    assert kept(table, mapping, "d = date'1970-01-02'", [2]) == [1]
    assert kept(table, mapping, "x = 1 OR m = 0.01", [1, 3]) == [0, 2]
    assert kept(table, mapping, "x = 1 AND m = 0.01", []) == []


@pytest.mark.parametrize("sql", ["lower(s) = 'a'", "cast(i as string) = '1'", "abs(i) = 1"])
def test_trap_29_computed_values_have_no_key(sql: str) -> None:
    table = Table([[{"s": "A", "i": 1}], [{"s": "a", "i": -1}]], pa.schema(
        [("s", pa.string()), ("i", pa.int32())]))  # fmt: skip
    mapping = DocMapping.for_schema(table.schema)
    plan = Planner(table.snapshot, config=ALWAYS, xref_router=SetRouter(table, mapping)).plan(sql)
    assert len(plan) == 2


def test_trap_30_equality_on_tokenised_text_is_not_a_key() -> None:
    schema = pa.schema([("body", pa.string())])
    table = Table([[{"body": "The Quick fox"}], [{"body": "slow"}], [{"body": "QUICK"}]], schema)
    for split in table.snapshot.list:
        split.highs.clear()
        split.lows.clear()
    mapping = DocMapping.for_schema(table.schema, options=IndexingOptions(text=("body",)))
    assert kept(table, mapping, "body = 'The Quick fox'", [1]) == [0, 1, 2]
    assert kept(table, mapping, "body LIKE 'The%'", [1]) == [0, 1, 2]
    exact = DocMapping.for_schema(table.schema)
    assert kept(table, exact, "body = 'The Quick fox'", [1]) == [0]


def test_trap_30_values_that_are_too_long_for_a_term_are_not_lost(tmp_path: Path) -> None:
    """The index has no such term; filters of keys and the splits themselves must not miss it."""
    path, huge = str(tmp_path / "t"), "x" * 70_000
    for value in (huge, "y", huge + "z"):
        indextables.write(pa.table({"s": [value]}), path)
    indextables.open(path).build_xref(force=True)
    table = indextables.open(path, options={"xref.query.minSplitsForXRef": "0"})
    plan = table.plan(f"s = '{huge}'")
    assert plan.report.stage("xref") is not None
    assert table.count(f"s = '{huge}'") == 1
    assert table.count(f"s IN ('{huge}', 'y')") == 2
    assert table.count(f"s != '{huge}'") == 2


def test_trap_30_a_router_that_fails_keeps_every_split() -> None:
    from indextables.errors import CorruptFileError

    class Broken:
        def route(self, snapshot: Any, candidates: Any, predicate: Any) -> Any:
            raise CorruptFileError("a filter of the wrong length")

    table = Table(
        [[{"s": "a"}, {"s": "c"}], [{"s": "a"}, {"s": "c"}]], pa.schema([("s", pa.string())])
    )
    plan = Planner(table.snapshot, config=ALWAYS, xref_router=Broken()).plan("s = 'b' AND id > 2")
    assert [int(i) for i in plan.selection] == [1]
    assert "kept all" in plan.report.stages[-1].detail
    strict = ALWAYS.updated({"xref.query.fallbackOnError": False})
    with pytest.raises(CorruptFileError):
        Planner(table.snapshot, config=strict, xref_router=Broken()).plan("s = 'b'")
