"""A build that is stopped anywhere is finished by the next one; no file twice, none forgotten."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables
from indextables.companion import syncing
from indextables.companion.building import Built, Job, build
from indextables.companion.files import files_of
from indextables.companion.making import Asked, make
from indextables.log.log import TransactionLog

FILES = 12


class StoppedError(Exception):
    """Stands for a process that was killed."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(FILES):
        ids = pa.array(range(10 * number, 10 * number + 10), pa.int64())
        pq.write_table(pa.table({"id": ids}), folder / f"{number:02}.parquet")
    return folder


def covered(at: str) -> list[str]:
    return [
        file.path for add in TransactionLog.open(at).snapshot().files() for file in files_of(add)
    ]


def stopping(after: int, committed: bool) -> syncing.Runner:
    """Jobs that are stopped after some, before or after what the last built is committed."""

    def run(jobs: Sequence[Job]) -> Iterator[Built]:
        for number, job in enumerate(jobs):
            if number == after:
                if not committed:
                    build(job)
                raise StoppedError
            yield build(job)

    return run


def test_the_next_build_finishes_what_one_began(
    source: Path, tmp_path: Path, rng: random.Random
) -> None:
    for number in range(8):
        at = str(tmp_path / f"index-{number}")
        asked = Asked(str(source), "parquet", target_bytes=1)
        for _ in range(rng.randrange(1, 4)):
            with pytest.raises(StoppedError):
                make(at, asked, run=stopping(rng.randrange(3), rng.random() < 0.5))
            assert indextables.open(at).count() == 10 * FILES
        make(at, asked)
        assert sorted(covered(at)) == [f"{number:02}.parquet" for number in range(FILES)]
        assert indextables.open(at).snapshot.lag.uncovered == 0
        assert indextables.open(at).count("id >= 35") == 10 * FILES - 35


def test_two_builds_at_once_index_no_file_twice(source: Path, tmp_path: Path) -> None:
    at = str(tmp_path / "index")
    asked = Asked(str(source), "parquet", target_bytes=1)

    def with_another(jobs: Sequence[Job]) -> Iterator[Built]:
        for number, job in enumerate(jobs):
            built = build(job)
            if number == 2:
                make(at, asked)
            yield built

    _, found = make(at, asked, run=with_another)
    assert found.files_indexed == 2, "the others were indexed by the other build"
    assert sorted(covered(at)) == [f"{number:02}.parquet" for number in range(FILES)]
    splits = {path.name for path in (tmp_path / "index").glob("*.split")}
    assert splits == {add.path for add in TransactionLog.open(at).snapshot().files()}
