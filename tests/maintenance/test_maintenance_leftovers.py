"""What crashes leave and what damaged or hostile logs name: PURGE, DROP INDEX and RESTORE."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables import maintenance
from indextables.columnindex import drop_index, prune_stale_indexes
from indextables.errors import MaintenanceError
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.cache import SHARED
from indextables.log.retention.rules import discard
from indextables.splits.read.reader import forget_readers
from indextables.storage.deleting import Kind
from indextables.storage.paths import is_temporary

DAY_S = 86_400
PLAIN = {
    "spark.indextables.transaction.compression.enabled": "false",
    "spark.indextables.checkpoint.enabled": "false",
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.purge.retentionCheckEnabled": "false",
}
KILLED = """
import os, sys, pyarrow as pa
import indextables
from indextables.storage import local
if sys.argv[2] == "rows":
    def stop(*given): print("here", flush=True); sys.stdin.read()
    local.os.replace = stop
else:
    local._link = lambda *given: (print("here", flush=True), sys.stdin.read())
indextables.write(pa.table({"id": [1]}), sys.argv[1])
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "table")
    for k in range(3):
        indextables.write(pa.table({"id": [k, k + 10], "v": [k, k]}), place, options=PLAIN)
    return place


def opened(path: str) -> TransactionLog:
    SHARED.invalidate()
    return TransactionLog.open(path, config=indextables.open(path, options=PLAIN).config)


def rows(path: str) -> int:
    """How many rows can be read, from their files and not from the log."""
    SHARED.invalidate()
    forget_readers()
    return indextables.open(path).to_arrow().num_rows


def temporaries(path: str) -> list[Path]:
    return [file for file in Path(path).rglob("*") if is_temporary(file.name)]


def age(file: Path, days: float) -> None:
    then = time.time() - days * DAY_S
    os.utime(file, (then, then))


# -- temporary files -------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["rows", "commit"])
def test_purge_deletes_what_a_killed_writer_left(path: str, moment: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, path, moment],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "here\n"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    (left,) = temporaries(path)
    log = opened(path)

    young = maintenance.purge(log, older_than_hours=0).metrics
    assert left.exists(), "a write may be under way, whatever retention is asked for"
    assert "temporary" not in young.message

    age(left, 8)
    shown = maintenance.purge(log, older_than_hours=24, dry_run=True).metrics
    assert shown.orphaned_files_found == 1
    assert left.name in shown.message
    assert left.exists()
    done = maintenance.purge(log, older_than_hours=24).metrics
    assert (done.status, done.orphaned_files_deleted) == ("SUCCESS", 1)
    assert left.name in done.message
    assert temporaries(path) == []
    assert rows(path) == 6


def test_purge_leaves_temporary_files_of_others_alone(path: str) -> None:
    others = [Path(path) / name for name in (".swp.tmp", "x.tmp", ".tmp", ".ABC-1.tmp")]
    for file in others:
        file.touch()
        age(file, 400)
    maintenance.purge(opened(path), older_than_hours=0)
    assert all(file.exists() for file in others)


# -- names that are no part of a table -------------------------------------------------------------


def test_purge_goes_by_the_layout(path: str) -> None:
    """Old files that nobody lists, but that a table does not put there."""
    kept = ["notes.txt", "data.crc", "loose.idx", "_colindex/loose.idx", "_transaction_log/x.split",
            "_colindex/abcd/x.split", "x.split.bak"]  # fmt: skip
    gone = ["stray.split", "_xrefsplits/abcd/xref-1.split", "_colindex/abcd/idx_1_2.idx",
            ".stray.split.crc"]  # fmt: skip
    live = [f.path for f in opened(path).snapshot().files()]
    kept.append(f".{live[0]}.crc")
    for name in [*kept, *gone]:
        file = Path(path) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        age(file, 400)
    maintenance.purge(opened(path), older_than_hours=24)
    assert [name for name in kept if not (Path(path) / name).exists()] == []
    assert [name for name in gone if (Path(path) / name).exists()] == []


def test_purge_keeps_live_splits_under_every_name_that_a_link_gives_them(path: str) -> None:
    """The log lists a link; the file itself has two more names, one by a linked folder."""
    live = [Path(path) / f.path for f in opened(path).snapshot().files()]
    (Path(path) / "moved").mkdir()
    target = Path(path) / "moved" / "elsewhere.split"
    os.rename(live[0], target)
    live[0].symlink_to(target)
    (Path(path) / "alias").symlink_to(Path(path) / "moved")
    stray = Path(path) / "stray.split"
    stray.touch()
    for file in (stray, target, *live):
        age(file, 400)
    maintenance.purge(opened(path), older_than_hours=24)
    assert not stray.exists()
    assert rows(path) == 6


def test_a_removal_that_claims_to_be_old_does_not_age_a_young_file(path: str) -> None:
    """A log may say anything about when a file was removed; the file is as young as it is."""
    young = Path(path) / "young.split"
    young.touch()
    remove = {"path": "young.split", "deletionTimestamp": 1, "dataChange": True}
    add_version(path, [{"remove": remove}])
    maintenance.purge(opened(path), older_than_hours=24)
    assert young.exists()


@pytest.mark.parametrize("name", ["notes.txt", "_transaction_log/00000000000000000001.json"])
@pytest.mark.parametrize("kind", ["add", "addXRef", "indexBlocks"])
def test_purge_reports_what_the_log_names_elsewhere(path: str, kind: str, name: str) -> None:
    notes = Path(path) / "notes.txt"
    notes.touch()
    age(notes, 400)
    add_version(path, named(path, kind, name))
    before = sorted(p for p in Path(path).rglob("*") if p.is_file())
    found = maintenance.purge(opened(path), older_than_hours=24).metrics
    assert name in found.message
    assert "left alone" in found.message
    assert [p for p in before if not p.exists()] == []


def add_version(path: str, actions: list[dict[str, Any]]) -> None:
    folder = Path(path) / "_transaction_log"
    newest = max(int(f.stem) for f in folder.glob("0*.json"))
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (folder / f"{newest + 1:020d}.json").write_text(text)
    SHARED.invalidate()


def actions_of(path: str, kind: str) -> list[dict[str, Any]]:
    files = sorted((Path(path) / "_transaction_log").glob("0*.json"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line for line in lines if kind in line]


def named(path: str, kind: str, name: str) -> list[dict[str, Any]]:
    """The newest action of a kind once more, naming something else."""
    table = indextables.open(path, options=PLAIN)
    if kind == "addXRef":
        table.build_xref()
    if kind == "indexBlocks":
        table.create_index("v")
    (found,) = actions_of(path, kind)[-1:]
    if kind == "indexBlocks":
        found[kind]["files"][0]["path"] = name
    else:
        found[kind]["path"] = name
    return [found]


# -- column indexes --------------------------------------------------------------------------------


def hostile_names(path: str) -> list[str]:
    live = [f.path for f in opened(path).snapshot().files()]
    return [live[0], "_transaction_log/00000000000000000001.json", "notes.txt"]


@pytest.mark.parametrize("which", range(3))
def test_drop_index_deletes_index_files_only(
    path: str, which: int, caplog: pytest.LogCaptureFixture
) -> None:
    (Path(path) / "notes.txt").touch()
    name = hostile_names(path)[which]
    add_version(path, named(path, "indexBlocks", name))
    files = sorted((Path(path) / "_colindex").rglob("*.idx"))
    assert len(files) == 3
    with caplog.at_level(logging.WARNING):
        found = drop_index(opened(path), "v")
    assert name in caplog.text
    assert (Path(path) / name).exists()
    assert found.cardinality == 2
    assert sum(file.exists() for file in files) == 1
    assert rows(path) == 6


def test_drop_index_spares_the_index_of_another_column(path: str) -> None:
    table = indextables.open(path, options=PLAIN)
    table.create_index("id")
    other = next((Path(path) / "_colindex").rglob("*.idx"))
    add_version(path, named(path, "indexBlocks", str(other.relative_to(path))))
    drop_index(opened(path), "v")
    assert other.exists()


def test_prune_stale_indexes_goes_by_the_layout(path: str) -> None:
    indextables.open(path, options=PLAIN).create_index("v")
    stranger, stale = Path(path) / "_colindex/notes.txt", Path(path) / "_colindex/abcd/idx_1_2.idx"
    stale.parent.mkdir(exist_ok=True)
    for file in (stranger, stale):
        file.touch()
    assert prune_stale_indexes(opened(path)) == 1
    assert stranger.exists()
    assert not stale.exists()
    assert len(list((Path(path) / "_colindex").rglob("*.idx"))) == 3


# -- restore and lost commits ----------------------------------------------------------------------


def test_restore_refuses_a_version_that_names_something_else(path: str) -> None:
    (Path(path) / "notes.txt").touch()
    add_version(path, named(path, "add", "notes.txt"))
    remove = {"path": "notes.txt", "deletionTimestamp": 1, "dataChange": True}
    add_version(path, [{"remove": remove}])
    before = opened(path).snapshot().version
    with pytest.raises(MaintenanceError, match=r"no split of a table: 'notes\.txt'"):
        maintenance.restore_to_version(opened(path), before - 1)
    assert opened(path).snapshot().version == before
    assert (Path(path) / "notes.txt").exists()


def test_files_of_a_lost_commit_go_unless_the_table_lists_them(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = opened(path)
    live = log.snapshot().files()[0].path
    lost = Path(path) / "lost.split"
    lost.touch()
    with caplog.at_level(logging.WARNING):
        discard(log, Kind.SPLIT, ["lost.split", live, "notes.txt"])
    assert not lost.exists()
    assert (Path(path) / live).exists()
    assert live in caplog.text
    assert rows(path) == 6


def test_a_removal_is_as_old_as_the_store_says_whatever_clock_its_writer_had(path: str) -> None:
    """Found by simulation: a clock that was behind let PURGE delete what readers still had."""
    log = opened(path)
    (old,) = list(log.snapshot().files())[:1]
    two_days_ago = int((time.time() - 2 * DAY_S) * 1000)
    log.commit(Transaction(log.snapshot(), "RAW", actions=[old.removal(two_days_ago)]))
    os.utime(Path(path) / old.path, (time.time() - 9 * DAY_S,) * 2)
    log.checkpoint()
    maintenance.purge(opened(path), older_than_hours=24, log_retention_hours=0)
    assert (Path(path) / old.path).exists()
    later = int((time.time() + 2 * DAY_S) * 1000)
    maintenance.purge(opened(path), older_than_hours=24, log_retention_hours=0, now_ms=later)
    assert not (Path(path) / old.path).exists()
