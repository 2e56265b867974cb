"""More splits than the process may have open files: all verbs work, and where no descriptor is left
at all, every verb says so and judges nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.native._mapped import MappedFile
from indextables.storage.mapped import map_file

SPLITS = 110
LIMIT = 64
SCRIPT = Path(__file__).with_name("descriptors.py")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX processes")


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table of many small splits, each with an index of ``id``."""
    path = str(tmp_path / "t")
    options = {
        "spark.indextables.storage.fsync": "false",
        "spark.indextables.xref.autoIndex.enabled": "false",
    }
    numbers = pa.array(range(SPLITS), pa.int64())
    data = pa.table({"id": numbers, "msg": [f"word{i % 5} text" for i in range(SPLITS)]})
    indextables.write(data.slice(0, 0), path, text=["msg"], options=options)
    indextables.open(path, options=options).define_index("id")
    indextables.write(data, path, rows_per_split=1, options=options)
    return path


def run(table: str, how: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), table, str(LIMIT), how],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_many_splits_need_few_descriptors(table: str) -> None:
    found = run(table, "work")
    assert found["rows"] == SPLITS
    assert found["searched"] == found["best"] == SPLITS // 5
    assert found["summed"] == SPLITS * (SPLITS - 1) // 2
    assert found["top"] == [0, 1, 2]
    assert not [f for f in found["doctor"] if f[0] == "error"]
    assert found["purge"] == "DRY_RUN"
    assert found["index"] == SPLITS
    assert found["xref"] == [["created", SPLITS]]
    assert found["deleted"] == 1
    assert found["merged"] == "success"
    assert (found["skips"], found["count"]) == (0, SPLITS - 1)
    assert found["files"] < SPLITS // 10
    assert found["kept open"] <= 2, "a split or an index keeps a descriptor"


def test_without_descriptors_nothing_is_judged(table: str) -> None:
    version = indextables.open(table).version
    found = run(table, "exhausted")
    verbs = [v for v in found.values() if isinstance(v, dict)]
    assert len(verbs) >= 9, found
    for verb in verbs:
        assert verb["error"] == "MachineError", verb
        assert "descriptor" in verb["text"], verb
        assert "ulimit -n" in verb["text"], verb
    assert (found["version"], found["skips"], found["xrefs"]) == (version, 0, 0)
    assert (found["count"], found["files"]) == (SPLITS, SPLITS)


def test_a_mapping_outlives_its_descriptor_and_its_name(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"0123456789")
    view = map_file(file)
    part = view[3:5]
    file.unlink()
    del view
    assert (bytes(part), part.readonly) == (b"34", True)
    file.write_bytes(b"")
    assert bytes(map_file(file)) == b""
    with pytest.raises(FileNotFoundError):
        map_file(tmp_path / "gone")
    with pytest.raises(OSError, match="descriptor"):
        MappedFile(-1, 10)
    with pytest.raises(ValueError, match="negative"):
        MappedFile(0, -1)
