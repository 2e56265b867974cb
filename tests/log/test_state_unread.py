"""Manifests that a query does not need are not read; answers are the same as if they were."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.log.actions import AddFile
from indextables.log.checkpoint import state as states
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read import unread
from indextables.planner import Planner

SMALL = {
    "spark.indextables.state.entriesPerManifest": "4",
    "spark.indextables.state.cache.enabled": "false",
    "spark.indextables.state.compaction.maxManifests": "1000",
    "spark.indextables.checkpoint.interval": "1000",
    "spark.indextables.xref.autoIndex.enabled": "false",
}


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The manifests that were decoded, in order."""
    found: list[str] = []
    real = states._segments_of

    def noted(info: Any, *more: Any) -> Any:
        found.append(info.path)
        return real(info, *more)

    monkeypatch.setattr(states, "_segments_of", noted)
    return found


def cold(path: str, **options: str) -> TransactionLog:
    table = indextables.open(path, options={**SMALL, **options})
    table.log.invalidate_cache()
    return table.log


DAYS = [f"2024-01-{d:02d}" for d in range(1, 13)]
VALUES = {
    "day": (pa.string(), DAYS),
    "n": (pa.int64(), [9, 10, -3, 100, 7]),
    "date": (pa.date32(), [1, 400, 19000]),
}


@pytest.mark.parametrize("column", VALUES)
def test_answers_are_those_of_the_whole_table(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, decoded: list[str], column: str
) -> None:
    rng = random.Random(f"{seed}{column}")
    path = str(tmp_path / "t")
    dtype, values = VALUES[column]
    rows: list[tuple[Any, int]] = []

    def write() -> None:
        some = [rng.choice([*values, None]) for _ in range(6)]
        numbers = [rng.randint(0, 50) for _ in some]
        rows.extend(zip(pa.array(some, dtype).to_pylist(), numbers, strict=True))
        data = pa.table({column: pa.array(some, dtype), "v": numbers})
        indextables.write(data, path, partition_by=[column], options=SMALL)

    for _ in range(4):
        write()
    indextables.open(path, options=SMALL).compact()
    write()
    indextables.open(path, options=SMALL).checkpoint()
    write()
    gone = rng.randint(0, 50)
    indextables.open(path, options=SMALL).delete(f"v = {gone}")
    rows[:] = [r for r in rows if r[1] != gone]
    monkeypatch.setattr(unread, "LEAST_ENTRIES", 0)
    fewer = 0
    for value in pa.array(values, dtype).to_pylist():
        shown = f"DATE '{value}'" if column == "date" else f"{value!r}"
        for op in ("=", "<", "<=", ">", ">=", "<>"):
            log = cold(path)
            snapshot = log.snapshot()
            assert snapshot.is_unread
            decoded.clear()
            where = f"{column} {op} {shown} AND v >= 10"
            plan = Planner(log).plan(where)
            fewer += len(decoded) < len(snapshot.manifests)
            found = indextables.open(path, options=SMALL).to_arrow(where)
            expected = [
                r for r in rows if r[0] is not None and r[1] >= 10 and _holds(r[0], op, value)
            ]
            key = repr
            got = zip(found[column].to_pylist(), found["v"].to_pylist(), strict=True)
            assert sorted(got, key=key) == sorted(expected, key=key), where
            assert f"{len(decoded)} read" in plan.explain() or len(decoded) == 0
    assert fewer > 5
    whole = indextables.open(path, options=SMALL)
    assert len(whole) == len(rows)
    nulls = whole.to_arrow(f"{column} IS NULL")
    assert nulls.num_rows == sum(r[0] is None for r in rows)


def _holds(value: Any, op: str, other: Any) -> bool:
    tests = {
        "=": value == other, "<": value < other, "<=": value <= other,
        ">": value > other, ">=": value >= other, "<>": value != other,
    }  # fmt: skip
    return tests[op]


@pytest.mark.parametrize("each", [1_000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_one_partition_of_many_decodes_one_manifest(
    tmp_path: Path, decoded: list[str], each: int
) -> None:
    """21 manifests; nothing is set for the test but their size. The long form has 1M splits."""
    path = str(tmp_path / "t")
    schema = pa.schema([("day", pa.string()), ("v", pa.int64())])
    options = {**SMALL, "spark.indextables.state.entriesPerManifest": str(each)}
    TransactionLog.create(path, schema, partition_columns=["day"])
    log = cold(path, **options)
    days = [f"d{i:02d}" for i in range(21)]
    for d in days:
        adds = [
            AddFile(
                f"day={d}/part-{i}.split", {"day": d}, 10, 1, num_records=1, has_footer_offsets=True
            )
            for i in range(each)
        ]
        log.commit(Transaction(None, "WRITE", actions=adds))
    log.checkpoint()
    log = cold(path, **options)
    decoded.clear()
    plan = Planner(log).plan("day = 'd07'")
    assert len(plan) == each
    assert len(decoded) == 1
    assert "from 1 of 21 manifests, 1 read" in plan.explain()
    again = Planner(log).plan("day = 'd07' AND v = 3")
    assert (len(again), len(decoded)) == (each, 1), "what was read is kept"
    assert log.snapshot().num_files == 21 * each
    assert len(decoded) == 1 + 21


def test_manifests_of_older_writers_are_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = states.ManifestInfo("manifests/manifest-0123456789abcdef.avro", 5)
    assert not unread.is_typed(info)
    bounds = {"n": ("10", "9")}
    from indextables.expr.bind import bind

    where = bind("n = 3", pa.schema([("n", pa.int64())]), partition_columns=["n"])
    assert unread.needed([info], [bounds], where) == {0}
    typed = states.ManifestInfo("manifests/manifest-t123456789abcde.avro", 5)
    assert unread.needed([typed], [{"n": ("4", "9")}], where) == set()
    assert unread.needed([typed], [{"n": ("1", "9")}], where) == {0}
    assert unread.needed([typed], [{}], where) == {0}
    assert unread.needed([typed], [None], where) == {0}
