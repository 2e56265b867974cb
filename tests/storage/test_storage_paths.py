"""Unsafe paths are refused by every operation of every store; links may not leave the root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import ConfigError, ObjectNotFoundError, UnsafePathError
from indextables.storage import Store, open_store, safe_path
from indextables.storage.paths import is_temporary, temporary_name

UNSAFE = [
    "",
    "/etc/passwd",
    "..",
    "../x",
    "a/../../x",
    "a/..",
    "./a",
    "a/./b",
    "a//b",
    "a/",
    "file:/etc/passwd",
    "file:///etc/passwd",
    "s3://bucket/key",
    "S3A://bucket/key",
    "a\0b",
    "bad\ud800name",
]
SAFE = [
    "a",
    "a/b.split",
    "date=2024-01-01 00:00:00/part.split",
    "k=a:b/x",
    "..hidden",
    "a..b/c..",
    "...",
    "k=%2e%2e/x",
    "naïve/日本.json",
    "k=[x]*?/y",
]


@pytest.mark.parametrize("path", UNSAFE)
def test_unsafe_paths_are_refused(path: str) -> None:
    with pytest.raises(UnsafePathError):
        safe_path(path)


@pytest.mark.parametrize("path", SAFE)
def test_safe_paths_are_kept_as_they_are(path: str) -> None:
    assert safe_path(path) == path


@given(st.text(alphabet="./\\a:\0%", max_size=12))
def test_an_accepted_path_stays_below_its_root(path: str) -> None:
    try:
        safe_path(path)
    except UnsafePathError:
        return
    assert os.path.normpath("/base/table/" + path).startswith("/base/table/")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "file:///etc/passwd", "a\0b"])
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_every_operation_checks_its_path(kind: str, path: str, tmp_path: Path) -> None:
    store = open_store("memory://paths" if kind == "memory" else str(tmp_path / "t"))
    calls = [
        lambda: store.read(path),
        lambda: store.read_range(path, 0, 1),
        lambda: store.read_ranges(path, [(0, 1)]),
        lambda: store.stat(path),
        lambda: store.exists(path),
        lambda: list(store.list(path)),
        lambda: store.list_dirs(path),
        lambda: store.put(path, b""),
        lambda: store.put_file(path, str(tmp_path)),
        lambda: store.put_if_absent(path, b""),
        lambda: store.delete([path]),
    ]
    for call in calls:
        with pytest.raises(UnsafePathError):
            call()
    assert isinstance(store.read_many([path])[0], UnsafePathError)


def test_temporary_names_are_recognised() -> None:
    assert is_temporary(temporary_name())
    assert is_temporary("a/b/.x.tmp")
    assert not is_temporary("x.tmp")
    assert not is_temporary(".hidden")


@pytest.fixture
def linked(tmp_path: Path) -> Store:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    root = tmp_path / "table"
    (root / "real").mkdir(parents=True)
    (root / "real" / "data").write_bytes(b"data")
    (root / "inside").symlink_to(root / "real")
    (root / "file-out").symlink_to(outside / "secret")
    (root / "folder-out").symlink_to(outside)
    (root / "dangling-out").symlink_to(outside / "missing")
    return open_store(str(root))


def test_links_inside_the_root_work(linked: Store) -> None:
    assert linked.read("inside/data") == b"data"


@pytest.mark.parametrize(
    "path", ["file-out", "folder-out/secret", "folder-out/new", "dangling-out"]
)
def test_links_that_leave_the_root_are_refused(linked: Store, path: str, tmp_path: Path) -> None:
    for call in (
        lambda: linked.read(path),
        lambda: linked.put(path, b"x"),
        lambda: linked.put_if_absent(path, b"x"),
        lambda: linked.stat(path),
        lambda: linked.local_path(path),
        lambda: linked.delete([path]),
        lambda: list(linked.list(recursive=True)),
    ):
        with pytest.raises(UnsafePathError, match="outside"):
            call()
    assert sorted(os.listdir(tmp_path / "outside")) == ["secret"]


def test_a_root_that_is_itself_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    store = open_store(str(tmp_path / "alias"))
    store.put_if_absent("a/b", b"1")
    assert (tmp_path / "real" / "a" / "b").read_bytes() == b"1"


def test_roots_are_spelled_in_several_ways(tmp_path: Path) -> None:
    for uri in (
        str(tmp_path),
        f"file://{tmp_path}",
        f"file:{tmp_path}",
        f"file://localhost{tmp_path}",
    ):
        assert open_store(uri).uri == f"file://{tmp_path}"
    with pytest.raises(ConfigError, match="names a host"):
        open_store("file://elsewhere/path")
    with pytest.raises(ConfigError, match="scheme"):
        open_store("ftp://host/path")
    with pytest.raises(ConfigError, match="needs a name"):
        open_store("memory://")


def test_a_folder_is_not_an_object(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("folder/x", b"1")
    assert not store.exists("folder")
    with pytest.raises(ObjectNotFoundError):
        store.read("folder")
    with pytest.raises(ObjectNotFoundError):
        store.read("folder/x/y")
