"""When asking a cross-reference pays: bytes and requests against those of the splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables.config import Config
from indextables.planner import Planner
from indextables.storage.base import Capabilities
from indextables.storage.memory import MemoryStore, clear_memory
from indextables.xref.cache import new_cache
from indextables.xref.evaluate import may_prune
from indextables.xref.router import XRefQueryRouter, patience_s

PATH = "memory://xref-cost"
SPLITS = 12
LEAST = "xref.query.minSplitsForXRef"


class Far(MemoryStore):
    capabilities = Capabilities(remote=True, persistent=False, local_files=False)


@pytest.fixture(scope="module")
def table() -> Iterator[indextables.Table]:
    names = [f"v{37 * i % (SPLITS * 10)}" for i in range(SPLITS * 10)]
    rows = pa.table({"n": range(SPLITS * 10), "s": names})
    indextables.write(rows, PATH, rows_per_split=10)
    opened = indextables.open(PATH)
    assert len(opened.snapshot.xrefs) == 1
    yield opened
    clear_memory(PATH.removeprefix("memory://"))


def router_of(store: Any, **settings: Any) -> XRefQueryRouter:
    given = {"cache.disk.enabled": False, **settings}
    return XRefQueryRouter(store, Config(given), new_cache(1 << 20))


def stage(table: indextables.Table, router: XRefQueryRouter, where: str = "s = 'v3'") -> Any:
    plan = Planner(table.snapshot, config=router.config, xref_router=router).plan(where)
    return plan.report.stage("xref")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("s = 'v3'", True),
        ("s IN ('v3', 'v4')", True),
        ("n > 3", False),
        ("n > 3 AND s = 'v3'", True),
        ("n > 3 OR s = 'v3'", False),
        ("s = 'v4' OR s = 'v3'", True),
        ("s != 'v3'", False),
        ("s NOT IN ('v3')", False),
        ("s LIKE 'v%'", False),
        ("s IS NULL", False),
    ],
)
def test_only_terms_are_worth_asking_for(
    table: indextables.Table, where: str, expected: bool
) -> None:
    assert may_prune(Planner(table.snapshot).bind(where)) is expected


def test_a_small_file_pays_on_an_object_store(table: indextables.Table) -> None:
    assert stage(table, router_of(Far(PATH))).splits_out == 1


def test_the_rule_on_a_local_store_is_by_count(table: indextables.Table) -> None:
    found = stage(table, router_of(MemoryStore(PATH)))
    assert found.splits_out == found.splits_in > 1
    assert found.detail == f"skipped: {found.splits_in} candidates, fewer than 128"


def test_a_query_waits_as_long_as_opening_its_splits_would_take() -> None:
    assert patience_s(Config({}), 10) == 5
    assert patience_s(Config({}), 100_000) > 60
    assert patience_s(Config({"xref.query.timeoutMs": 1000}), 100_000) == 1


def test_a_large_file_does_not_pay_until_it_is_loaded(table: indextables.Table) -> None:
    snapshot, router = table.snapshot, router_of(Far(PATH))
    predicate = Planner(snapshot).bind("s = 'v3'")
    (action,) = snapshot.xrefs
    few, all_of_them = np.arange(2), np.arange(SPLITS)
    large = replace(action, size=Far.coalesce_gap * SPLITS)
    router._relevant = lambda *_: [large]  # type: ignore[method-assign]
    assert "KB to ask" in str(router.too_dear(snapshot, few, predicate))
    smaller = replace(action, size=Far.coalesce_gap)
    router._relevant = lambda *_: [smaller]  # type: ignore[method-assign]
    assert router.too_dear(snapshot, all_of_them, predicate) is None
    assert "KB to ask" in str(router.too_dear(snapshot, few[:1], predicate))
    router._relevant = lambda *_: [action]  # type: ignore[method-assign]
    router._load(action)
    assert router.too_dear(snapshot, few[:1], predicate) is None
    router._relevant = lambda *_: []  # type: ignore[method-assign]
    assert "covers" in str(router.too_dear(snapshot, few, predicate))


def test_the_key_overrules_the_cost_when_it_is_set(table: indextables.Table) -> None:
    never = router_of(Far(PATH), **{LEAST: SPLITS + 1})
    assert "fewer than 13" in stage(table, never).detail
    always = router_of(MemoryStore(PATH), **{LEAST: 1})
    assert stage(table, always).splits_out == 1


def test_a_range_is_not_asked_about(table: indextables.Table) -> None:
    found = stage(table, router_of(Far(PATH)), "n >= 0 AND s > 'v'")
    assert "no term" in found.detail or "nothing left" in found.detail
