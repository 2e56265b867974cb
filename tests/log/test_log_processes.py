"""Eight processes commit to one table: versions without gaps, nothing lost, nothing doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from log_helpers import SCHEMA, config

from indextables.log.actions import AddFile, CommitInfo, RemoveFile
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.versions import list_log

PROCESSES = 8
COMMITS = 50
WORKER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from log_helpers import config, split
from indextables.errors import CommitConflictError
from indextables.log.log import TransactionLog
from indextables.log.commit.transaction import Transaction

job = json.loads(sys.stdin.read())
settings = config(**job["config"])
log = TransactionLog.open(job["path"], storage_options=job["options"], config=settings)
done, merges, mine = [], 0, []
for number in range(job["commits"]):
    name = f"w{job['worker']}-{number}"
    base = log.snapshot()
    removed = [split(mine.pop(0)).removal(1)] if number % 5 == 4 else []
    mine.append(name)
    result = log.commit(Transaction(base, "WRITE", actions=[*removed, split(name)]))
    done.append([result.version, result.commit_id, name, [r.path for r in removed]])
    shared = base.index_of(f"shared{number // 4 % 3}.split")
    if number % 4 == 3 and shared is not None:
        try:
            log.commit(Transaction(base, "MERGE", actions=[base.file(shared).removal(1)]))
            merges += 1
        except CommitConflictError as error:
            assert "concurrent delete" in str(error), error
print(json.dumps({"done": done, "merges": merges}))
"""


def race(path: str, options: dict[str, Any], commits: int) -> list[dict[str, Any]]:
    """Run the workers and give what each says it committed."""
    settings = {
        "transaction.retry.maxAttempts": 1000,
        "transaction.retry.baseDelayMs": 20 if options else 2,
        "transaction.retry.maxDelayMs": 500 if options else 60,
        "transaction.commit.deadlineSeconds": 60.0,
    }
    here = str(Path(__file__).parent)
    workers = []
    for worker in range(PROCESSES):
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, here],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )
        job = {
            "path": path,
            "options": options,
            "config": settings,
            "worker": worker,
            "commits": commits,
        }
        assert process.stdin is not None
        process.stdin.write(json.dumps(job).encode())
        process.stdin.close()
        process.stdin = None
        workers.append(process)
    outputs = [process.communicate() for process in workers]
    for process, (_, errors) in zip(workers, outputs, strict=True):
        assert process.returncode == 0, errors.decode()
    return [json.loads(out) for out, _ in outputs]


def check(path: str, options: dict[str, Any], commits: int = COMMITS) -> None:
    log = TransactionLog.create(path, SCHEMA, storage_options=options, config=config())
    shared = [AddFile(f"shared{i}.split", {}, 1, 1) for i in range(3)]
    from indextables.log.commit.transaction import Transaction

    log.commit(Transaction(None, "WRITE", actions=shared))
    said = race(path, options, commits)
    cache.SHARED.invalidate()
    total = PROCESSES * commits
    merges = sum(worker["merges"] for worker in said)
    snapshot = log.snapshot()
    assert snapshot.version == 1 + total + merges
    assert sorted(list_log(log.store).versions) == list(range(snapshot.version + 1))
    changes = log.changes(1, snapshot.version)
    assert changes is not None
    _check_versions(changes, said)
    assert merges <= 3
    _check_files(snapshot, said, merges)


def _check_versions(changes: list[Any], said: list[dict[str, Any]]) -> None:
    """Every acknowledged commit is in the log once, at the version its writer was told."""
    claimed = {row[1]: row for worker in said for row in worker["done"]}
    ids = Counter()
    for change in changes:
        info = change.actions[0]
        assert isinstance(info, CommitInfo)
        ids[info.commit_id] += 1
        if info.operation == "WRITE":
            version, _, name, removed = claimed.pop(info.commit_id)
            assert version == change.version
            adds = [a.path for a in change.actions if isinstance(a, AddFile)]
            removes = [a.path for a in change.actions if isinstance(a, RemoveFile)]
            assert (adds, removes) == ([f"{name}.split"], removed)
    assert claimed == {}
    assert set(ids.values()) == {1}


def _check_files(snapshot: Any, said: list[dict[str, Any]], merges: int) -> None:
    added = {f"{row[2]}.split" for worker in said for row in worker["done"]}
    removed = [path for worker in said for row in worker["done"] for path in row[3]]
    assert len(set(removed)) == len(removed)
    live = snapshot.paths.to_pylist()
    assert len(set(live)) == len(live)
    assert {p for p in live if p.startswith("w")} == added - set(removed)
    assert sum(p.startswith("shared") for p in live) == 3 - merges


def test_eight_processes_on_a_local_disk(tmp_path: Path) -> None:
    check(str(tmp_path / "table"), {})


@pytest.mark.server
@pytest.mark.parametrize("server", ["s3_ministack", "s3_seaweed"])
def test_eight_processes_on_s3(server: str, request: pytest.FixtureRequest) -> None:
    backend = request.getfixturevalue(server)
    check(backend.fresh(), backend.options, commits=5)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.server
@pytest.mark.parametrize("server", ["s3_ministack", "s3_seaweed"])
def test_eight_processes_on_s3_at_length(server: str, request: pytest.FixtureRequest) -> None:
    backend = request.getfixturevalue(server)
    check(backend.fresh(), backend.options)
