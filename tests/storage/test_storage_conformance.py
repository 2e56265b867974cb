"""One set of promises, kept by every store: local and memory always, the services on loopback."""

from __future__ import annotations

import os
import pickle
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from indextables.errors import (
    CorruptFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from indextables.storage import Store, open_store
from indextables.storage.memory import clear_memory

KINDS = {
    "local": None,
    "memory": None,
    "counting": "s3_counting",
    "gcs": "gcs_server",
    "ministack": "s3_ministack",
    "seaweed": "s3_seaweed",
    "azurite": "azure_azurite",
    "counting, fsspec": "s3_counting",
    "ministack, fsspec": "s3_ministack",
    "seaweed, fsspec": "s3_seaweed",
    "azurite, fsspec": "azure_azurite",
}
"""S3 and Azure go through obstore, and once more through the fsspec clients."""
ODD_NAMES = [
    "k=a#b?c/[x]*%20.json",
    "date=2024-01-01 00:00:00/part.split",
    "naïve/日本 語.json",
    "a+b&c=d/e~f'(g)!.bin",
    "?versionId=1/x?versionid=2",
    "braces/{0}{name}.json",
    "..dots../...",
]


def with_marks(kind: str) -> object:
    marks = [pytest.mark.server] if KINDS[kind] not in (None, "s3_counting") else []
    return pytest.param(kind, marks=marks, id=kind)


@pytest.fixture(scope="module", params=[with_marks(kind) for kind in KINDS])
def location(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """(uri, options) of the parametrised store; servers are started on first use."""
    fixture = KINDS[request.param]
    if request.param == "local":
        return str(tmp_path_factory.mktemp("local")), {}
    if fixture is None:
        return "memory://conformance", {}
    uri, options = request.getfixturevalue(fixture)
    client = "fsspec" if request.param.endswith("fsspec") else "auto"
    return uri, options | {"spark.indextables.storage.client": client}


@pytest.fixture
def store(location: tuple[str, dict[str, str]], request: pytest.FixtureRequest) -> Iterator[Store]:
    uri, options = location
    name = f"{abs(hash(request.node.nodeid)):x}-{random.getrandbits(40):x}"
    yield open_store(f"{uri}/{name}", options)
    if uri.startswith("memory:"):
        clear_memory("conformance")


def names(store: Store, *args: object, **kwargs: object) -> list[str]:
    return [info.path for info in store.list(*args, **kwargs)]  # type: ignore[arg-type]


def test_what_is_put_is_read(store: Store) -> None:
    for size in (0, 1, 70_000, 3 << 20):
        data = random.Random(size).randbytes(size)
        store.put("dir/data.bin", data)
        assert store.read("dir/data.bin") == data
        assert store.stat("dir/data.bin").size == size


def test_put_replaces_and_stat_tells_the_time(store: Store) -> None:
    before = time.time() * 1000
    store.put("a", b"one")
    store.put("a", b"three")
    info = store.stat("a")
    assert (info.path, info.size) == ("a", 5)
    assert abs(info.modified_ms - before) < 60_000
    assert store.read("a") == b"three"


def test_missing_objects_are_named(store: Store) -> None:
    for call in (store.read, store.stat):
        with pytest.raises(ObjectNotFoundError, match="no/such"):
            call("no/such")
    with pytest.raises(ObjectNotFoundError):
        store.read_range("no/such", 0, 1)
    with pytest.raises(ObjectNotFoundError):
        store.read_ranges("no/such", [(0, 1), (5, 6)])
    assert not store.exists("no/such")


def test_a_folder_is_not_an_object(store: Store) -> None:
    store.put("folder/x", b"1")
    assert not store.exists("folder")
    assert store.exists("folder/x")


def test_put_if_absent_creates_once(store: Store) -> None:
    store.put_if_absent("log/0.json", b"first")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("log/0.json", b"second")
    assert store.read("log/0.json") == b"first"


def test_put_if_absent_of_nothing_is_still_a_create(store: Store) -> None:
    store.put_if_absent("empty", b"")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("empty", b"")
    store.put("full", b"data")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("full", b"")
    assert store.read("full") == b"data"


def test_of_racing_creates_exactly_one_wins(store: Store) -> None:
    def create(round_and_writer: tuple[int, int]) -> bool:
        number, writer = round_and_writer
        try:
            store.put_if_absent(f"race/{number}", f"writer {writer}".encode())
        except ObjectExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        for number in range(3):
            won = list(pool.map(create, [(number, writer) for writer in range(8)]))
            assert won.count(True) == 1
            assert store.read(f"race/{number}") == f"writer {won.index(True)}".encode()


def test_ranges_are_exact_in_any_order(store: Store, rng: random.Random) -> None:
    data = rng.randbytes(300_000)
    store.put("data", data)
    assert store.read_range("data", 0, 300_000) == data
    assert store.read_range("data", 299_999, 300_000) == data[-1:]
    ranges = []
    for _ in range(40):
        start = rng.randrange(300_000)
        ranges.append((start, min(300_000, start + rng.choice((0, 1, 100, 20_000)))))
    store.near_gap = 4096
    assert store.read_ranges("data", ranges) == [data[a:b] for a, b in ranges]
    assert store.read_ranges("data", []) == []


@pytest.mark.parametrize("bounds", [(90, 101), (100, 101), (500, 600), (-1, 5), (5, 4)])
def test_ranges_outside_the_object_are_errors(store: Store, bounds: tuple[int, int]) -> None:
    store.put("short", b"x" * 100)
    with pytest.raises(CorruptFileError):
        store.read_range("short", *bounds)
    with pytest.raises(CorruptFileError):
        store.read_ranges("short", [(0, 10), bounds])


def test_read_many_keeps_order_and_errors_in_place(store: Store) -> None:
    for number in range(20):
        store.put(f"many/{number}", str(number).encode())
    asked = [f"many/{number}" for number in (3, 19, 3, 99, 0)]
    answers = store.read_many(asked, parallelism=4)
    assert [a for a in answers if isinstance(a, bytes)] == [b"3", b"19", b"3", b"0"]
    assert isinstance(answers[3], ObjectNotFoundError)
    assert store.read_many([]) == []


def test_listing_is_sorted_fresh_and_one_level(store: Store) -> None:
    assert names(store, "log") == []
    for number in (3, 1, 2):
        store.put(f"log/{number:020d}.json", b"x" * number)
    store.put("log/sub/deep.json", b"")
    store.put("logs-of-another/x", b"")
    store.put("log.txt", b"")
    expected = [f"log/{number:020d}.json" for number in (1, 2, 3)]
    assert names(store, "log") == expected
    assert names(store, "log/") == expected
    assert [info.size for info in store.list("log")] == [1, 2, 3]
    assert names(store, "log", start_after=expected[0]) == expected[1:]
    assert names(store, "log", start_after="log/00000000000000000001.jsom") == expected[:]
    assert names(store, "log", start_after=expected[2]) == []
    store.put(f"log/{4:020d}.json", b"")
    assert names(store, "log", start_after=expected[2]) == [f"log/{4:020d}.json"]


def test_recursive_listing_sorts_by_whole_path(store: Store) -> None:
    paths = ["a.b/x", "a/x", "a/y/z", "a0", "b", "a-b"]
    for path in paths:
        store.put(path, b"")
    assert names(store, recursive=True) == sorted(paths)
    assert names(store, "a", recursive=True) == ["a/x", "a/y/z"]
    assert names(store, start_after="a/x", recursive=True) == ["a/y/z", "a0", "b"]
    assert names(store) == ["a-b", "a0", "b"]
    assert store.list_dirs() == ["a", "a.b"]
    assert store.list_dirs("a") == ["a/y"]
    assert store.list_dirs("a/y") == []
    assert store.list_dirs("nothing") == []


def test_listing_skips_work_in_progress(store: Store) -> None:
    store.put("log/.abc.tmp", b"")
    store.put("log/.hidden", b"")
    store.put("log/x.tmp", b"")
    assert names(store, "log") == ["log/.hidden", "log/x.tmp"]
    assert names(store, recursive=True) == ["log/.hidden", "log/x.tmp"]
    store.put(".b.tmp", b"xy")
    found = list(store.list_temporaries())
    assert [(info.path, info.size) for info in found] == [(".b.tmp", 2), ("log/.abc.tmp", 0)]
    assert all(info.modified_ms > 0 for info in found)


def test_long_listings_come_in_pages(store: Store) -> None:
    count = 230
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.put(f"p/{n:05d}", b""), range(count)))
    expected = [f"p/{number:05d}" for number in range(count)]
    assert names(store, "p") == expected
    assert names(store, recursive=True) == expected
    assert names(store, "p", start_after="p/00150") == expected[151:]


def test_delete_removes_many_and_tolerates_missing(store: Store) -> None:
    paths = [f"d/{number}" for number in range(30)]
    for path in paths:
        store.put(path, b"")
    store.delete([*paths[:25], "d/never-was"])
    assert sorted(names(store, "d")) == sorted(paths[25:])
    store.delete([])
    store.put_if_absent("d/0", b"again")
    assert store.read("d/0") == b"again"


def test_odd_names_are_kept(store: Store) -> None:
    for name in ODD_NAMES:
        store.put_if_absent(name, name.encode())
        assert store.read(name) == name.encode()
        assert store.stat(name).path == name
    assert names(store, recursive=True) == sorted(ODD_NAMES)
    store.delete(ODD_NAMES)
    assert names(store, recursive=True) == []


def test_data_that_looks_like_a_protocol_survives(store: Store) -> None:
    for data in (b"x\n--==0==\ny\n--==0==--\nz", b"0\r\n\r\n" * 5, bytes(range(256)) * 3):
        store.put("frame", data)
        assert store.read("frame") == data
        store.put_if_absent("framed", data)
        assert store.read("framed") == data
        store.delete(["framed"])


def test_files_are_uploaded_whole(store: Store, tmp_path: Path, rng: random.Random) -> None:
    for size in (0, 1000, 6 << 20):
        source = tmp_path / "finished.split"
        source.write_bytes(rng.randbytes(size))
        store.put_file("part/finished.split", str(source))
        assert store.stat("part/finished.split").size == size
        assert store.read("part/finished.split") == source.read_bytes()
    with pytest.raises(StorageError):
        store.put_file("part/none", str(tmp_path / "missing"))
    assert not store.exists("part/none")


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n", b"--", b"\n--==0==--", b"\x00", b" "])
def test_bytes_at_the_ends_of_data_are_kept(store: Store, tmp_path: Path, end: bytes) -> None:
    """Uploads are framed by some clients, and what looks like a frame is still data."""
    data = end + b"middle" + end
    source = tmp_path / "finished.split"
    source.write_bytes(data)
    store.put("put", data)
    store.put_if_absent("created", data)
    store.put_file("uploaded", str(source))
    for path in ("put", "created", "uploaded"):
        assert store.stat(path).size == len(data)
        assert store.read(path) == data


def test_local_paths_are_real_files_or_none(store: Store) -> None:
    store.put("x/y", b"content")
    path = store.local_path("x/y")
    assert (path is not None) == store.capabilities.local_files
    if path is not None:
        assert Path(path).read_bytes() == b"content"


def test_a_pickled_store_opens_the_same_table(store: Store) -> None:
    store.put("x", b"1")
    copy = pickle.loads(pickle.dumps(store))
    assert (copy.uri, copy.identity) == (store.uri, store.identity)
    assert copy.read("x") == b"1"


def test_the_probe_accepts_the_store_and_leaves_nothing(store: Store) -> None:
    store.probe_conditional_create()
    assert names(store, recursive=True) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reads_and_writes(store: Store) -> None:
    if not store.capabilities.persistent:
        pytest.skip("memory is not shared between processes")
    store.put("parent", b"1")
    child = os.fork()
    if child == 0:
        try:
            ok = store.read("parent") == b"1"
            store.put_if_absent("child", b"2")
            os._exit(0 if ok else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.read("child") == b"2"
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("child", b"3")


def test_files_and_folders_of_one_listing(store: Store) -> None:
    """``list_folder`` says what ``list`` and ``list_dirs`` say."""
    for name in ("log/1", "log/2", "log/3", "log/state-a/x", "log/state-b/y", "other/z"):
        store.put(name, b"x")
    for after in (None, "log/1", "log/2"):
        found = store.list_folder("log", after)
        assert [f.path for f in found.files] == [f.path for f in store.list("log", after)]
        assert found.folders == store.list_dirs("log")
        assert found.complete
    assert store.list_folder("nothing") == ([], [], True)
    first = store.list_folder("log", None, 1)
    assert first.complete, "one page holds it all"
