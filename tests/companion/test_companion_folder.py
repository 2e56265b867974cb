"""A companion over a folder of Parquet files gives the rows that the folder has, at any lag."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables
from indextables.errors import (
    IndexTablesError,
    MaintenanceError,
    PlanningError,
)
from indextables.log.log import TransactionLog
from indextables.planner import Planner
from indextables.splits.read.reader import forget_readers

WORDS = ["alpha", "beta", "gamma", "disk", "full", "error", "timeout", "retry"]
FILTERS = [
    "host = 'web-3'",
    "n < 100",
    "n = 205",
    "n IN (1, 205, 399, 10000)",
    "x > 0.9 AND host <> 'web-1'",
    "x IS NULL",
    "host LIKE 'web-%' OR n = 7",
    "NOT (host = 'web-2')",
    "id = 'none'",
]


def rows(rng: random.Random, first: int, count: int = 200) -> pa.Table:
    return pa.table(
        {
            "id": [f"{rng.getrandbits(64):016x}" for _ in range(count)],
            "n": pa.array(range(first, first + count), pa.int64()),
            "host": [rng.choice([None, *(f"web-{i}" for i in range(5))]) for _ in range(count)],
            "message": [" ".join(rng.choices(WORDS, k=6)) for _ in range(count)],
            "x": [None if rng.random() < 0.1 else rng.random() for _ in range(count)],
        }
    )


@pytest.fixture
def folder(tmp_path: Path, rng: random.Random) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(4):
        pq.write_table(rows(rng, 200 * number), source / f"part-{number}.parquet")
    return source


def expected(source: Path, where: str) -> list[dict[str, Any]]:
    import duckdb

    whole = pq.read_table(source)  # noqa: F841
    found = duckdb.sql(f"SELECT * FROM whole WHERE {where} ORDER BY n").to_arrow_table()
    return found.to_pylist()


def check(table: Any, source: Path) -> None:
    for where in FILTERS:
        found = sorted(table.to_arrow(where=where).to_pylist(), key=lambda row: row["n"])
        wanted = expected(source, where)
        assert found == wanted, where
        assert table.count(where) == len(wanted), where
    texts = pq.read_table(source)["message"].to_pylist()
    both = sum("disk" in text and "full" in text for text in texts)
    assert table.count("message TEXTSEARCH 'disk AND full'") == both
    assert table.count() == len(texts)
    groups = table.aggregate({"rows": "count"}, group_by=["host"]).to_pylist()
    assert sum(group["rows"] for group in groups) == len(texts)


def test_rows_are_those_of_the_source_whatever_the_index_knows(
    folder: Path, tmp_path: Path, rng: random.Random
) -> None:
    at = str(tmp_path / "index")
    table = indextables.index(folder, at, text=["message"])
    check(table, folder)
    assert table.snapshot.lag.covered == 4
    assert not any(name.endswith(".parquet") for name in os.listdir(at))

    pq.write_table(rows(rng, 5000), folder / "part-9.parquet")
    (folder / "part-1.parquet").unlink()
    pq.write_table(rows(rng, 7000, 50), folder / "part-2.parquet")
    stale = table.refresh()
    check(stale, folder)
    assert (stale.snapshot.lag.covered, stale.snapshot.lag.uncovered) == (2, 2)
    assert stale.snapshot.lag.gone == 2

    synced = indextables.index(folder, at)
    check(synced, folder)
    assert (synced.snapshot.lag.covered, synced.snapshot.lag.uncovered) == (4, 0)
    check(indextables.open(at), folder)


def test_a_sync_touches_only_what_changed(folder: Path, tmp_path: Path, rng: random.Random) -> None:
    at = str(tmp_path / "index")
    first = indextables.index(folder, at, text=["message"])
    log = TransactionLog.open(at)
    before = log.snapshot()
    assert indextables.index(folder, at).snapshot.lag == first.snapshot.lag
    assert log.snapshot().version == before.version, "nothing changed, and yet there is a commit"

    pq.write_table(rows(rng, 5000), folder / "part-9.parquet")
    (folder / "part-0.parquet").unlink()
    indextables.index(folder, at)
    after = log.snapshot()
    kept = after.file(after.index_of(before.path(0)) or 0)
    assert kept.path == before.path(0), "files that stay were indexed again"
    assert kept.num_deleted == 200
    assert after.num_files == 2

    for name in ("part-1", "part-2", "part-3"):
        (folder / f"{name}.parquet").unlink()
    indextables.index(folder, at)
    assert [add.path for add in log.snapshot().files()] == [after.path(1)]


def test_columns_that_are_not_indexed_can_be_read(folder: Path, tmp_path: Path) -> None:
    some = indextables.index(folder, str(tmp_path / "some"), columns=["id"])
    for where in FILTERS:
        found = sorted(some.to_arrow(where=where).to_pylist(), key=lambda row: row["n"])
        assert found == expected(folder, where), where
    others = indextables.index(folder, str(tmp_path / "others"), exclude=["message", "x"])
    assert others.to_arrow(where="n = 205").to_pylist() == expected(folder, "n = 205")


def test_rows_of_a_companion_are_changed_in_its_source(folder: Path, tmp_path: Path) -> None:
    at = str(tmp_path / "index")
    table = indextables.index(folder, at, text=["message"])
    for change in (
        lambda: indextables.write(rows(random.Random(1), 0), at),
        lambda: table.delete("n = 1"),
        lambda: table.update("n = 1", {"host": "'a'"}),
        lambda: table.merge(),
        lambda: table.truncate(),
        lambda: table.add_column("more", "bigint"),
        lambda: table.upsert(rows(random.Random(1), 0), on="n"),
    ):
        with pytest.raises(MaintenanceError, match="source"):
            change()
    check(table.refresh(), folder)


def test_the_log_of_a_companion_alone_is_not_read(folder: Path, tmp_path: Path) -> None:
    at = str(tmp_path / "index")
    indextables.index(folder, at)
    with pytest.raises(PlanningError, match="together with the table"):
        Planner(TransactionLog.open(at))


def test_a_file_that_vanishes_under_a_query_is_an_error(folder: Path, tmp_path: Path) -> None:
    table = indextables.index(folder, str(tmp_path / "index"))
    (folder / "part-1.parquet").unlink()
    with pytest.raises((IndexTablesError, OSError)):
        table.to_arrow(where="n >= 0")


def test_options_of_the_source(folder: Path, tmp_path: Path) -> None:
    (folder / "day=2026-01-31").mkdir()
    for name in os.listdir(folder):
        if name.endswith(".parquet"):
            (folder / name).rename(folder / "day=2026-01-31" / name)
    at = str(tmp_path / "index")
    types = {"partition_types": {"day": "string"}}
    table = indextables.index(folder, at, source_options=types)
    assert table.schema.field("day").type == pa.string()
    plain = indextables.open(at)
    assert plain.schema.field("day").type == pa.date32()
    assert plain.count("day = '2026-01-31'") == table.count("day = '2026-01-31'") == 800
    given = {f"companion.source.{key}": value for key, value in types.items()}
    assert indextables.open(at, options=given).schema.field("day").type == pa.string()


def split_of(at: str) -> Path:
    (name,) = (name for name in os.listdir(at) if name.endswith(".split"))
    return Path(at) / name


def asked(at: str) -> tuple[Any, ...]:
    forget_readers()
    table = indextables.open(at)
    return (
        table.to_arrow(where="host = 'web-3'").num_rows,
        table.count("id < '8'"),
        table.count("message TEXTSEARCH 'disk AND full'"),
        sorted(map(repr, table.aggregate({"rows": "count"}, group_by=["host"]).to_pylist())),
    )


def test_a_split_that_is_gone_or_damaged_costs_time_only(
    folder: Path, tmp_path: Path, rng: random.Random
) -> None:
    at = str(tmp_path / "index")
    indextables.index(folder, at, text=["message"])
    before = asked(at)
    split = split_of(at)
    sound = split.read_bytes()
    for _ in range(40):
        hurt = bytearray(sound)
        place = rng.randrange(len(hurt))
        hurt[place : place + 64] = bytes(b ^ 0x5A for b in hurt[place : place + 64])
        split.write_bytes(bytes(hurt))
        assert asked(at) == before, place
    split.write_bytes(sound[: len(sound) // 2])
    assert asked(at) == before
    split.unlink()
    assert asked(at) == before
