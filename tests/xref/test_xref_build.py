"""Building and using cross-references: scenarios A to D, routing, failures that keep rows."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables.log.actions import AddFile, AddXRef
from indextables.xref.cache import new_cache
from indextables.xref.rebuild import evaluate_xref_rebuild

OFF = {"spark.indextables.xref.autoIndex.enabled": "false"}
ON = {**OFF, "spark.indextables.xref.query.minSplitsForXRef": 1}


def add(path: str) -> AddFile:
    return AddFile(path, {}, 1, 1, True)


def xref(name: str, *paths: str) -> AddXRef:
    return AddXRef(f"_xrefsplits/aaaa/{name}", name, paths, len(paths), 1, 1, 0, 1, 1, 1, 1024)


def test_scenario_a_first_build() -> None:
    plan = evaluate_xref_rebuild([], [add(f"s{i}") for i in range(500)])
    assert [len(p.sources) for p in plan.to_build] == [500]
    assert plan.to_build[0].action == "created"


def test_scenario_b_new_splits_join() -> None:
    old = xref("x", *(f"s{i}" for i in range(500)))
    plan = evaluate_xref_rebuild([old], [add(f"s{i}") for i in range(550)])
    assert [len(p.sources) for p in plan.to_build] == [550]
    assert plan.to_build[0].replaces == (old,)


def test_scenario_c_full_ones_stay() -> None:
    old = xref("x", *(f"s{i}" for i in range(1024)))
    plan = evaluate_xref_rebuild([old], [add(f"s{i}") for i in range(1074)])
    assert [len(p.sources) for p in plan.to_build] == [50]
    assert plan.to_build[0].replaces == ()
    assert plan.unchanged == (old,)


def test_scenario_d_sources_are_gone() -> None:
    old = xref("x", "a", "b", "c", "d", "e")
    plan = evaluate_xref_rebuild([old], [add(p) for p in ("a", "bc", "d", "e")])
    assert plan.stale == (old,)
    (built,) = plan.to_build
    assert {f.path for f in built.sources} == {"a", "bc", "d", "e"}
    assert built.replaces == (old,)


def test_scope_leaves_other_partitions_alone() -> None:
    stale = xref("x", "p=1/a", "p=1/gone")
    plan = evaluate_xref_rebuild([stale], [add("p=1/a"), add("p=2/b")], scope=frozenset({"p=2/b"}))
    assert plan.unchanged == (stale,)
    assert [f.path for p in plan.to_build for f in p.sources] == ["p=2/b"]


def test_many_splits_make_several() -> None:
    plan = evaluate_xref_rebuild([], [add(f"s{i}") for i in range(25)], max_source_splits=10)
    assert [len(p.sources) for p in plan.to_build] == [10, 10, 5]


def test_force_rebuilds_what_is_fresh() -> None:
    old = xref("x", "a")
    assert evaluate_xref_rebuild([old], [add("a")]).to_build == ()
    assert evaluate_xref_rebuild([old], [add("a")], force=True).to_build[0].replaces == (old,)


# -- end to end ----------------------------------------------------------------------------------


def write(path: str, splits: int, start: int = 0) -> None:
    for i in range(start, start + splits):
        data = pa.table(
            {"id": [i * 10 + j for j in range(10)], "host": [f"h{i}-{j}" for j in range(10)],
             "msg": [f"word{i} common {j}" for j in range(10)], "p": [f"p{i % 2}"] * 10}
        )  # fmt: skip
        indextables.write(data, path, partition_by=["p"], text=["msg"], options=OFF)


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "table")
    write(place, 12)
    return place


def test_needles_open_one_split(path: str) -> None:
    table = indextables.open(path, options=ON)
    before = table.plan("host = 'h7-3' OR host = 'absent'")
    (row,) = table.build_xref()
    assert (row.action, row.source_splits_count) == ("created", 12)
    table = table.refresh()
    plan = table.plan("msg TEXTSEARCH 'word7'")
    assert len(plan) == 1
    assert "xref" in plan.explain()
    assert "12 covered" in plan.explain()
    assert table.to_arrow(where="msg TEXTSEARCH 'word7'").num_rows == 10
    assert len(before) >= 1
    assert table.build_xref()[0].action == "unchanged"


def test_dry_run_changes_nothing(path: str) -> None:
    table = indextables.open(path)
    assert table.build_xref(dry_run=True)[0].action == "would_create"
    assert table.refresh().version == table.version
    assert table.refresh().xref_coverage().covered == 0


def test_where_builds_only_its_partitions(path: str) -> None:
    table = indextables.open(path)
    table.build_xref(where="p = 'p0'")
    covered = table.refresh().xref_coverage()
    assert (covered.covered, covered.total) == (6, 12)


def test_uncovered_splits_are_kept(path: str) -> None:
    table = indextables.open(path, options=ON)
    table.build_xref()
    write(path, 2, start=12)
    table = table.refresh()
    assert table.to_arrow(where="msg TEXTSEARCH 'word13'").num_rows == 10
    assert len(table.plan("msg TEXTSEARCH 'absent'")) == 2


DAMAGE = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-20]),
    "garbage": lambda file: file.write_bytes(b"x" * 500),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_broken_file_costs_speed_never_rows(path: str, damage: str) -> None:
    table = indextables.open(path, options=ON)
    table.build_xref()
    table = table.refresh()
    file = Path(path) / table.xrefs()[0].path
    DAMAGE[damage](file)
    table.xref_router.cache = new_cache(1 << 20)
    plan = table.plan("msg TEXTSEARCH 'word7'")
    assert len(plan) == 12
    assert "not used" in plan.explain()
    assert table.to_arrow(where="msg TEXTSEARCH 'word7'").num_rows == 10


def test_a_slow_file_times_out(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = indextables.open(path, options={**ON, "spark.indextables.xref.query.timeoutMs": 20})
    table.build_xref()
    table = table.refresh()
    router = table.xref_router
    router.cache = new_cache(1 << 20)
    gate = threading.Event()
    real = router._read

    def slow(action: AddXRef) -> Any:
        gate.wait(5)
        return real(action)

    monkeypatch.setattr(router, "_read", slow)
    plan = table.plan("msg TEXTSEARCH 'word7'")
    gate.set()
    assert len(plan) == 12
    assert "timed out" in plan.explain()


def test_results_are_equal_with_and_without(path: str, rng: random.Random) -> None:
    indextables.open(path).build_xref()
    on = indextables.open(path, options=ON)
    off = indextables.open(path, options={"spark.indextables.xref.query.enabled": "false"})
    for _ in range(25):
        i, j = rng.randrange(14), rng.randrange(12)
        where = rng.choice(
            [f"host = 'h{i}-{j}'", f"msg TEXTSEARCH 'word{i}'", f"id IN ({i}, {i * j})",
             f"host = 'h{i}-1' OR id = {j}", f"NOT host = 'h{i}-1' AND id < 20",
             f"msg TEXTSEARCH 'word{i} OR word{j}' AND p = 'p0'"]
        )  # fmt: skip
        first = sorted(on.to_arrow(where=where)["id"].to_pylist())
        assert first == sorted(off.to_arrow(where=where)["id"].to_pylist()), where


def test_merge_rebuilds_stale_ones(path: str) -> None:
    table = indextables.open(path, options=ON)
    table.build_xref()
    table.merge()
    table = table.refresh()
    covered = table.xref_coverage()
    assert (covered.covered, covered.total, covered.xrefs) == (2, 2, 1)
    assert table.to_arrow(where="msg TEXTSEARCH 'word7'").num_rows == 10


@pytest.mark.parametrize("verb", ["update", "upsert", "delete"])
def test_changes_of_rows_rebuild_stale_ones(tmp_path: Path, verb: str) -> None:
    """A split that goes, with all its rows changed, leaves a cross-reference that names it."""
    place = str(tmp_path / "t")
    data = pa.table({"id": list(range(100)), "n": [0] * 100})
    indextables.write(data, place, rows_per_split=10)
    table = indextables.open(place)
    assert table.xref_coverage().covered == 10
    if verb == "update":
        table.update("id < 10", {"n": 1})
    elif verb == "upsert":
        table.upsert(data.slice(0, 10), on="id")
    else:
        table.delete("id < 10")
    table = indextables.open(place)
    live = {os.path.basename(add.path) for add in table.snapshot.files()}
    xrefs = table.snapshot.xrefs
    named = {os.path.basename(p) for one in xrefs for p in one.source_split_paths}
    assert named <= live
    assert table.xref_coverage().covered >= 9


def test_two_builders_do_not_fight(path: str) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            indextables.open(path).build_xref()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    table = indextables.open(path)
    assert table.xref_coverage().covered == 12
    assert len(table.xrefs()) == 1


def test_auto_index_after_commits(tmp_path: Path) -> None:
    place = str(tmp_path / "auto")
    data = pa.table({"id": list(range(100))})
    indextables.write(data, place, rows_per_split=10)
    table = indextables.open(place)
    assert table.xref_coverage().covered == 10
    assert "crossReferenceIndex" in (table.snapshot.protocol.reader_features or ())


def test_fuse16_is_built_from_rows_when_asked(path: str) -> None:
    table = indextables.open(path, options=ON)
    (row,) = table.build_xref(filter_type="fuse16")
    assert row.action == "created"
    table = table.refresh()
    assert len(table.plan("msg TEXTSEARCH 'word3'")) == 1


def test_cache_drops_the_least_used() -> None:
    class Fake:
        def __init__(self, size: int) -> None:
            self.nbytes = size

    cache = new_cache(100)
    for i in range(4):
        cache.load(("s", f"p{i}", 1), lambda: Fake(40))  # type: ignore[arg-type,return-value]
    assert len(cache) == 2
    assert ("s", "p3", 1) in cache
    assert ("s", "p0", 1) not in cache


class Counted:
    """A table of many splits that counts which of them become objects."""

    def __init__(self, count: int) -> None:
        self.num_files = count
        self.made: list[int] = []

    def indices_of(self, paths: Any) -> Any:
        numbers = [int(path.removeprefix("s")) for path in paths]
        return np.array([n if n < self.num_files else -1 for n in numbers], np.int64)

    def file(self, i: int) -> AddFile:
        self.made.append(i)
        return add(f"s{i}")


def test_a_plan_makes_objects_of_what_it_will_build_only() -> None:
    full = [xref(f"x{g}", *(f"s{i}" for i in range(64 * g, 64 * g + 64))) for g in range(100)]
    table = Counted(6400)
    assert evaluate_xref_rebuild(full, table, max_source_splits=64).to_build == ()
    assert table.made == []
    table = Counted(6405)
    plan = evaluate_xref_rebuild(full, table, max_source_splits=64)
    assert len(plan.unchanged) == 100
    assert [f.path for f in plan.to_build[0].sources] == [f"s{i}" for i in range(6400, 6405)]
    assert table.made == list(range(6400, 6405))
