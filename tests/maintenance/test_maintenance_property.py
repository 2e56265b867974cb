"""Random lives of a table: whatever was done to it, what can be read reads right.

The model is a dict of rows for every version. After each step the newest version is compared; after
each purge every version the log can still build is, with every split, cross-reference and index
sidecar it names. Files that left the table less than the retention ago must still be there, and
readers opened before (which hold a snapshot and look at the log no more) read on if all they hold
is that young.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables import maintenance
from indextables.errors import IndexTablesError
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot

HOUR = 3_600_000
DAY = 24 * HOUR
DAYS = ("mon", "tue", "wed")
OPTIONS = {
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.xref.query.minSplitsForXRef": "1",
    "spark.indextables.checkpoint.interval": "4",
}
Rows = dict[int, str]


def files_of(snapshot: Snapshot) -> frozenset[str]:
    """Everything a reader of this version may open."""
    indexes = {f.path for f in snapshot.indexes.files.values()}
    return frozenset(snapshot.paths.to_pylist()) | {x.path for x in snapshot.xrefs} | indexes


def ids_of(table: indextables.Table) -> list[int]:
    return sorted(table.to_arrow(columns=["id"])["id"].to_pylist())


class Life:
    """One table and what it should hold."""

    def __init__(self, path: str, rng: random.Random) -> None:
        self.path = path
        self.rng = rng
        self.next_id = 0
        self.rows: Rows = {}
        self.expected: dict[int, Rows] = {}
        self.live: frozenset[str] = frozenset()
        self.left_at: dict[str, int] = {}
        self.steps: list[str] = []
        self.readers: list[tuple[indextables.Table, Rows]] = []
        self.dropped: set[str] = set()
        """Index sidecars that DROP INDEX deleted; readers that named them do without."""
        self.deleted = 0

    @property
    def log(self) -> TransactionLog:
        log = TransactionLog.open(self.path)
        log.invalidate_cache()
        return log

    # -- steps -----------------------------------------------------------------------------------

    def write(self) -> None:
        new = range(self.next_id, self.next_id + self.rng.randint(1, 6))
        day = self.rng.choice(DAYS)
        self.next_id = new.stop
        table = pa.table({"id": list(new), "word": [f"w{i}" for i in new], "day": [day] * len(new)})
        indextables.write(table, self.path, partition_by=["day"], text=["word"], options=OPTIONS)
        self.rows |= dict.fromkeys(new, day)

    def merge(self) -> None:
        indextables.open(self.path).merge(max_source_splits=self.rng.choice([2, 3, 100]))

    def delete(self) -> None:
        low = self.rng.randint(0, self.next_id)
        high = low + self.rng.randint(0, 5)
        indextables.open(self.path).delete(f"id BETWEEN {low} AND {high}")
        self.rows = {i: d for i, d in self.rows.items() if not low <= i <= high}

    def drop(self) -> None:
        day = self.rng.choice(DAYS)
        indextables.open(self.path).drop_partitions(f"day = '{day}'")
        self.rows = {i: d for i, d in self.rows.items() if d != day}

    def xref(self) -> None:
        indextables.open(self.path).build_xref(force=self.rng.random() < 0.3)

    def index(self) -> None:
        """Sidecars for the splits that exist, or for none any more: DROP deletes them at once."""
        table = indextables.open(self.path)
        before = {f.path for f in table.snapshot.indexes.files.values()}
        if not table.indexes():
            table.create_index("id")
        elif self.rng.random() < 0.3:
            table.drop_index("id")
        else:
            table.index_splits(force=self.rng.random() < 0.5)
        self.dropped |= {p for p in before if not (Path(self.path) / p).exists()}

    def reader(self) -> None:
        table = indextables.open(self.path, options=OPTIONS)
        self.readers.append((table, dict(self.rows)))

    def checkpoint(self) -> None:
        maintenance.checkpoint(self.log, compact=self.rng.random() < 0.5)

    def truncate(self) -> None:
        maintenance.truncate_time_travel(self.log)

    def restore(self) -> None:
        version = self.rng.choice(sorted(self.readable()))
        if version in self.expected:
            maintenance.restore_to_version(self.log, version)
            self.rows = dict(self.expected[version])

    def age(self) -> None:
        """Let every file look older by up to sixty days, and what versions did with it."""
        days = self.rng.choice([2, 20, 60])
        shift = days * DAY / 1000
        self.left_at = {path: left - days * DAY for path, left in self.left_at.items()}
        for file in Path(self.path).rglob("*"):
            if file.is_file():
                stamp = file.stat().st_mtime - shift
                os.utime(file, (stamp, stamp))

    def purge(self) -> None:
        hours = self.rng.choice([24, 72, 168])
        now = int(time.time() * 1000) + self.rng.choice([0, 12, 48, 100, 2000]) * HOUR
        result = maintenance.purge(
            self.log,
            older_than_hours=hours,
            log_retention_hours=self.rng.choice([24, 720]),
            now_ms=now,
        )
        self.deleted += result.metrics.orphaned_files_deleted
        young = {p for p, left in self.left_at.items() if now - left < hours * HOUR}
        missing = {p for p in young - self.dropped if not (Path(self.path) / p).exists()}
        assert not missing, f"files a reader may still hold are gone: {missing} {self.steps}"
        self.left_at = {p: t for p, t in self.left_at.items() if p in young}
        self.check_every_version()
        held = self.live | young
        self.readers = [r for r in self.readers if files_of(r[0].snapshot) <= held]
        for table, rows in self.readers:
            assert ids_of(table) == sorted(rows), f"a reader lost rows: {self.steps}"
            for one in sorted(rows)[:2]:
                assert table.count(f"word TEXTSEARCH 'w{one}'") == 1
                assert table.count(f"id = {one}") == 1

    # -- checks ----------------------------------------------------------------------------------

    def step(self) -> None:
        names = ["write"] * 5 + ["merge", "purge", "age"] * 2
        names += ["delete", "drop", "xref", "checkpoint", "truncate", "restore", "index", "reader"]
        name = self.rng.choice(names) if self.expected else "write"
        self.steps.append(name)
        getattr(self, name)()
        snapshot = self.log.snapshot()
        self.expected[snapshot.version] = dict(self.rows)
        live = files_of(snapshot)
        now = int(time.time() * 1000)
        self.left_at |= dict.fromkeys(self.live - live, now)
        self.left_at = {p: t for p, t in self.left_at.items() if p not in live}
        self.live = live
        self.check(snapshot.version)

    def readable(self) -> set[int]:
        log = self.log
        found = set()
        for version in range(log.snapshot().version + 1):
            try:
                log.snapshot(version=version)
                found.add(version)
            except IndexTablesError:
                continue
        return found

    def check_every_version(self) -> None:
        readable = self.readable()
        newest = self.log.snapshot().version
        assert newest in readable
        for version in readable:
            snapshot = self.log.snapshot(version=version)
            named = files_of(snapshot) - self.dropped
            missing = [p for p in named if not (Path(self.path) / p).exists()]
            assert not missing, f"version {version} lost {missing}: {self.steps}"
            if version in self.expected:
                self.check(version)

    def check(self, version: int) -> None:
        table = indextables.open(self.path, version=version, options=OPTIONS)
        want = self.expected[version]
        got = table.to_arrow(columns=["id", "day"]).to_pylist() if want else []
        assert {r["id"]: r["day"] for r in got} == want, f"version {version}: {self.steps}"
        assert len(got) == len(want)
        assert table.count() == len(want)
        if want:
            one = self.rng.choice(sorted(want))
            assert table.count(f"word TEXTSEARCH 'w{one}'") == 1, self.steps
            assert table.count(f"id = {one}") == 1, self.steps


@pytest.mark.parametrize("life", range(3))
def test_what_can_be_read_reads_right(tmp_path: Path, seed: int, life: int) -> None:
    table = Life(str(tmp_path / "table"), random.Random(f"{seed}-{life}"))
    for _ in range(25):
        table.step()
    table.truncate()
    files = {str(p.relative_to(table.path)) for p in Path(table.path).rglob("*.split")}
    table.left_at.clear()
    later = int(time.time() * 1000) + 1000 * DAY
    maintenance.purge(table.log, now_ms=later)
    left = {str(p.relative_to(table.path)) for p in Path(table.path).rglob("*.split")}
    readable = [table.log.snapshot(version=v) for v in table.readable()]
    assert left == files & frozenset().union(*map(files_of, readable))
    assert len(readable) <= 3, "version 0, the truncated one, and one of what PURGE retired"
    table.check_every_version()


@pytest.mark.slow
@pytest.mark.parametrize("life", range(40))
def test_what_can_be_read_reads_right_for_long(tmp_path: Path, seed: int, life: int) -> None:
    table = Life(str(tmp_path / "table"), random.Random(f"long-{seed}-{life}"))
    for _ in range(80):
        table.step()


def test_merge_of_200_splits_keeps_rows_statistics_and_xref_answers(
    tmp_path: Path, rng: random.Random
) -> None:
    path = str(tmp_path / "table")
    n, per_split = 1000, 5
    ids = list(range(n))
    rng.shuffle(ids)
    rows = pa.table(
        {
            "id": ids,
            "word": [f"w{i} all" for i in ids],
            "x": [None if i % 7 == 0 else i / 4 for i in ids],
        }
    )
    indextables.write(rows, path, text=["word"], rows_per_split=per_split, options=OPTIONS)
    assert indextables.open(path).snapshot.num_files == n // per_split
    indextables.open(path).build_xref()
    wanted = rng.sample(ids, 4)
    questions = [f"word TEXTSEARCH 'w{i}'" for i in wanted] + [f"id = {i}" for i in wanted]
    questions += ["word TEXTSEARCH 'nowhere'", "id IN (3, 5000)", "x IS NULL", "id > 990"]
    before = answers(path, questions)
    result = indextables.open(path).merge(max_source_splits=50)
    assert result.metrics.merged_files >= n // per_split
    table = indextables.open(path)
    assert table.snapshot.num_files < 10
    assert {p for x in table.xrefs() for p in x.source_split_paths} == set(
        table.snapshot.paths.to_pylist()
    )
    assert answers(path, questions) == before
    assert sorted(before[1]) == sorted(ids)


def answers(path: str, questions: list[str]) -> tuple[dict[str, list[int]], list[int], object]:
    """Rows per question, all rows, and what statistics alone say."""
    table = indextables.open(path, options=OPTIONS)
    found = {
        q: sorted(table.to_arrow(where=q, columns=["id"])["id"].to_pylist()) for q in questions
    }
    stats = table.aggregate(
        {"n": "count", "lo": ("min", "x"), "hi": ("max", "x"), "some": ("count", "x")}
    ).to_pylist()
    return found, sorted(table.to_arrow(columns=["id"])["id"].to_pylist()), stats
