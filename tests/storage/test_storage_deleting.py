"""What may be deleted: by kind and place, never by who named it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from indextables.errors import UnsafePathError
from indextables.log.read.versions import checkpoint_path, part_name, state_dir, version_path
from indextables.splits.lookup.colindex.layout import sidecar_path
from indextables.storage.base import Store, open_store
from indextables.storage.deleting import (
    UNCOMMITTED,
    Kind,
    Live,
    delete,
    delete_state_folder,
    remove_file,
    remove_tree,
    sift,
)
from indextables.storage.paths import temporary_name
from indextables.xref.keymaps.layout import new_keymap_path
from indextables.xref.layout import xref_path

UUID = "61d16c75-6994-46b7-a15b-8b538852e50e"
PLACES = {
    Kind.SPLIT: ["part-0-abc.split", "day=mon/h=a%2F..%2F../x.split", "a b/ü.split"],
    Kind.XREF: [xref_path("0123456789abcdef"), xref_path("x", "elsewhere/deep")],
    Kind.SIDECAR: [sidecar_path("1a2b3c4d", "day=mon/x.split")],
    Kind.KEYMAP: [new_keymap_path(), "_keymap/abcd/run-0123456789abcdef.kmap"],
    Kind.VECTOR: [f"deletion_vector_{UUID}.bin", f"ab/deletion_vector_{UUID}.bin"],
    Kind.CHECKSUM: [".x.split.crc", "day=mon/.x.split.crc"],
    Kind.VERSION: [version_path(1), version_path(123)],
    Kind.CHECKPOINT: [checkpoint_path(0), checkpoint_path(7)],
    Kind.PART: [f"_transaction_log/{part_name(7, 'ab-1', 3)}"],
    Kind.STATE: [f"{state_dir(7)}/_manifest.avro", f"{state_dir(7)}/manifest-1.avro"],
    Kind.MANIFEST: ["_transaction_log/manifests/m-1.avro", f"{state_dir(7)}/m-1.avro"],
    Kind.TEMPORARY: [temporary_name(), f"day=mon/{temporary_name('probe-')}"],
}
NEVER = [
    version_path(0),
    "_transaction_log/_last_checkpoint",
    "_transaction_log/x.split",
    "_transaction_log/manifests/a/b.avro",
    "_transaction_log/.x.split.crc",
    "_transaction_log",
    "_colindex/abcd/x.split",
    "_colindex/idx_a_b.idx",
    "_colindex/abcd/notes.txt",
    "elsewhere/abcd/idx_a_b.idx",
    "notes.txt",
    "deletion_vector_x.bin",
    f"_transaction_log/deletion_vector_{UUID}.bin",
    f"a/b/deletion_vector_{UUID}.bin",
    "data.parquet",
    "x.split/",
    ".split",
    "x.split.bak",
    "x.SPLIT",
    "x.split\n",
    ".notes.tmp",
    ".tmp",
    "../x.split",
    "a/../x.split",
    "a/./x.split",
    "./x.split",
    "a//x.split",
    "/etc/x.split",
    "file:///etc/x.split",
    "s3://bucket/x.split",
    "a\0/x.split",
    "",
    "%2e%2e/x.split",
    "%2E%2e/%2e%2E/x.split",
    "%252e%252e/x.split",
    "%2525252525252e/x.split",
    "..%2fx.split",
    "..\\x.split",
    "%2e%2e%5cx.split",
    "a/%2e/x.split",
]


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
def test_a_kind_goes_from_its_own_place_only(kind: Kind) -> None:
    allowed, refused = sift(kind, PLACES[kind], UNCOMMITTED)
    assert (allowed, refused) == (PLACES[kind], [])
    may_share = {
        Kind.SPLIT: {Kind.XREF},
        Kind.STATE: {Kind.MANIFEST},
        Kind.MANIFEST: {Kind.STATE},
    }
    for other, paths in PLACES.items():
        if other is not kind and other not in may_share.get(kind, set()):
            assert sift(kind, paths, UNCOMMITTED)[0] == []


@pytest.mark.parametrize("path", NEVER, ids=repr)
def test_nothing_else_goes_as_any_kind(path: str) -> None:
    allowed, refused = sift(tuple(Kind), [path], UNCOMMITTED)
    assert allowed == []
    assert refused[0].path == path
    assert refused[0].why


@pytest.mark.parametrize(
    "spelling",
    ["day=a b/X.split", "day=a%20b/X.split", "DAY=a b/x.SPLIT".replace("SPLIT", "split")],
)
def test_a_live_file_stays_in_any_spelling(spelling: str) -> None:
    live = Live(["day=a b/X.split"])
    assert sift(Kind.SPLIT, [spelling], live)[0] == []
    composed, decomposed = "day=\u00fc/x.split", "day=u\u0308/x.split"
    assert sift(Kind.SPLIT, [composed], Live([decomposed]))[0] == []


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = open_store(str(tmp_path / "table"))
    for path in ("a.split", "b.split", "day=mon/c.split", "notes.txt"):
        made.put(path, b"x")
    return made


def there(store: Store) -> list[str]:
    return [info.path for info in store.list(recursive=True)]


def test_one_wrong_path_refuses_them_all(store: Store) -> None:
    before = there(store)
    for wrong in ("notes.txt", "../a.split", "b.split"):
        with pytest.raises(UnsafePathError, match="refusing to delete"):
            delete(store, Kind.SPLIT, ["a.split", wrong], Live(["b.split"]))
    assert there(store) == before
    delete(store, Kind.SPLIT, ["a.split", "gone.split"], Live(["b.split"]))
    assert there(store) == [path for path in before if path != "a.split"]


def test_who_deletes_splits_says_what_is_live(store: Store) -> None:
    for kind in (Kind.SPLIT, Kind.XREF, Kind.SIDECAR, Kind.KEYMAP, Kind.VECTOR):
        with pytest.raises(TypeError, match="live"):
            delete(store, kind, [])


def test_no_deletion_goes_through_a_link(store: Store, tmp_path: Path) -> None:
    """``alias/c.split`` is the live ``day=mon/c.split`` under a name that the log does not know."""
    root = tmp_path / "table"
    (root / "alias").symlink_to(root / "day=mon")
    (root / "link.split").symlink_to(root / "b.split")
    assert "alias/c.split" in there(store)
    with pytest.raises(UnsafePathError, match="symbolic link"):
        delete(store, Kind.SPLIT, ["alias/c.split"], UNCOMMITTED)
    delete(store, Kind.SPLIT, ["link.split"], UNCOMMITTED)
    assert store.read("day=mon/c.split") == store.read("b.split") == b"x"
    assert not os.path.lexists(root / "link.split")


def test_only_an_empty_state_folder_goes(store: Store, tmp_path: Path) -> None:
    store.put(f"{state_dir(3)}/_manifest.avro", b"x")
    (tmp_path / "table" / "empty").mkdir()
    for folder in (state_dir(3), "empty", "day=mon", "_transaction_log"):
        delete_state_folder(store, folder)
    assert (tmp_path / "table" / "empty").exists()
    delete(store, Kind.STATE, [f"{state_dir(3)}/_manifest.avro"])
    delete_state_folder(store, state_dir(3))
    assert not (tmp_path / "table" / state_dir(3)).exists()


def test_local_removals_stay_below_their_folder(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for folder in (mine, other):
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "file").touch()
    (mine / "link").symlink_to(other)
    assert not remove_file(other / "deep" / "file", mine)
    assert not remove_file(mine / ".." / "other" / "deep" / "file", mine)
    assert not remove_file(mine / "link" / "deep" / "file", mine)
    assert not remove_file(mine / "missing", mine)
    for path in (other / "deep", mine / "link" / "deep", mine / "link"):
        remove_tree(str(path), str(mine))
    assert (other / "deep" / "file").exists()
    assert remove_file(mine / "deep" / "file", mine)
    remove_tree(str(mine / "deep"), str(mine))
    assert not (mine / "deep").exists()
