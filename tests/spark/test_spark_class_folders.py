"""Folders of compiled classes: the JVM removes those it loads, a jar leaves nothing else behind."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from indextables.spark.driver import classes as kept


def classes(folder: Path) -> Path:
    (folder / "io" / "indextables").mkdir(parents=True)
    (folder / "io" / "indextables" / "Bridge.class").write_bytes(b"class")
    return folder


def test_the_jvm_removes_the_classes_it_loads(tmp_path: Path) -> None:
    """Java deletes in the opposite order of the calls, and only folders that are empty by then."""
    marked: list[str] = []

    def file(path: str) -> Any:
        return SimpleNamespace(deleteOnExit=lambda: marked.append(path))

    jvm = SimpleNamespace(java=SimpleNamespace(io=SimpleNamespace(File=file)))
    folder = classes(tmp_path / "shim")
    kept._goes_with_the_jvm(jvm, str(folder))
    for path in map(Path, reversed(marked)):
        path.rmdir() if path.is_dir() else path.unlink()
    assert not folder.exists()


def test_a_jar_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cache = classes(tmp_path / "work"), tmp_path / "cache"
    cache.mkdir()
    kept.pack(folder, cache / "a.jar")
    assert zipfile.ZipFile(cache / "a.jar").namelist() == ["io/indextables/Bridge.class"]

    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(kept.os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        kept.pack(folder, cache / "b.jar")
    assert [file.name for file in cache.iterdir()] == ["a.jar"]
