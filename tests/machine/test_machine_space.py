"""No room for temporary files: the error names the folder and the setting that moves it, nothing is
left behind, and the table is as it was."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.config import Config
from indextables.errors import ConfigError, MachineError
from indextables.maintenance.rewrite import WORK_FOLDER as MERGE_FOLDER
from indextables.mapping import DocMapping
from indextables.splits.format.bundle import BundleWriter
from indextables.splits.read.foreign import ForeignRows
from indextables.splits.write.documents import IndexBuilder
from indextables.splits.write.split_writer import WORK_FOLDER, SplitWriter
from indextables.storage.blockfiles import BlockFolder
from indextables.storage.scratch import scratch_folder

SCRIPT = Path(__file__).with_name("space.py")
SCHEMA = pa.schema({"id": pa.int64(), "msg": pa.string()})
BATCH = pa.record_batch({"id": [1, 2], "msg": ["big fox", "small dog"]}, schema=SCHEMA)


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_in_tantivy(*_: Any, **__: Any) -> Any:
    raise ValueError("An IO error occurred: 'No space left on device (os error 28)'")


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX processes")
@pytest.mark.parametrize("limit", [2_000, 100_000, 600_000])
@pytest.mark.parametrize("chosen", [False, True], ids=["TMPDIR", "setting"])
def test_files_that_may_not_grow(tmp_path: Path, limit: int, chosen: bool) -> None:
    temp, work = tmp_path / "temp", tmp_path / "work"
    temp.mkdir()
    work.mkdir()
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), str(work) if chosen else "-", str(limit)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "TMPDIR": str(temp)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["temp"] == str(temp)
    for verb in ("written", "searched", "merged"):
        assert found[verb]["error"] == "MachineError", found[verb]
    assert f"in {work if chosen else temp}" in found["written"]["text"]
    assert WORK_FOLDER in found["written"]["text"]
    assert f"in {temp}." in found["searched"]["text"]
    assert "TMPDIR" in found["searched"]["text"]
    assert (found["left"], found["gone"]) == ([], [])
    assert found["rows"] == 4000


PLACES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "making the folder": (tempfile, "mkdtemp", full),
    "starting the index": (IndexBuilder, "__init__", full_in_tantivy),
    "feeding the index": (IndexBuilder, "_feed", full_in_tantivy),
    "closing the index": (IndexBuilder, "finish", full_in_tantivy),
    "writing members": (BundleWriter, "_write", full),
    "closing the split": (BundleWriter, "finish", full),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_full_work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    config = Config.of({WORK_FOLDER: str(work)})
    mapping = DocMapping.for_schema(SCHEMA)
    SplitWriter(SCHEMA, mapping, config).abort()
    monkeypatch.setattr(*PLACES[place])

    def split() -> None:
        writer = SplitWriter(SCHEMA, mapping, config)
        writer.write(BATCH)
        writer.finish()

    with pytest.raises(MachineError) as raised:
        split()
    assert f"no space left in {work}" in str(raised.value)
    assert WORK_FOLDER in str(raised.value)
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("place", PLACES)
def test_a_write_that_finds_no_room_leaves_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    work, path = tmp_path / "work", tmp_path / "t"
    work.mkdir()
    options = {WORK_FOLDER: str(work)}
    indextables.write(pa.table([BATCH["id"], BATCH["msg"]], schema=SCHEMA), str(path))
    before = sorted(p for p in path.rglob("*"))
    monkeypatch.setattr(*PLACES[place])
    with pytest.raises(MachineError, match="no space left"):
        indextables.write(pa.Table.from_batches([BATCH]), str(path), options=options)
    assert list(work.iterdir()) == []
    assert sorted(p for p in path.rglob("*")) == before


def test_a_work_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gone") as raised:
        SplitWriter(
            SCHEMA, DocMapping.for_schema(SCHEMA), Config.of({WORK_FOLDER: str(tmp_path / "gone")})
        )
    assert WORK_FOLDER in str(raised.value)


def test_merges_work_where_their_setting_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, path = tmp_path / "work", tmp_path / "t"
    options = {MERGE_FOLDER: str(work)}
    for _ in range(2):
        indextables.write(pa.Table.from_batches([BATCH]), str(path))
    with pytest.raises(ConfigError, match=MERGE_FOLDER):
        indextables.open(str(path), options=options).merge()
    work.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(BundleWriter, "_write", full)
        with pytest.raises(MachineError) as raised:
            indextables.open(str(path), options=options).merge()
    assert f"no space left in {work}" in str(raised.value)
    assert MERGE_FOLDER in str(raised.value)
    assert list(work.iterdir()) == []
    merged = indextables.open(str(path), options=options).merge().metrics
    assert (merged.status, list(work.iterdir())) == ("success", [])


def test_no_folder_for_temporary_files_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(MachineError, match="TMPDIR"):
        scratch_folder("x-")


def test_no_room_for_a_foreign_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ForeignRows.__new__(ForeignRows)
    made._source = type("Source", (), {"path": "p", "corrupt": None})()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ForeignRows, "_lay_files", full)
    with pytest.raises(MachineError, match="no space left in") as raised:
        made._unpack()
    assert "TMPDIR" in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_a_full_cache_disk_serves_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = BlockFolder(str(tmp_path), 100_000, min_free_bytes=0)
    monkeypatch.setattr(os, "replace", full)
    folder.save("k", 0, b"x" * 100)
    assert folder.stats.bypassed == 1
    assert folder.load("k", 0, 100) is None
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]
