"""Settings of cross-references act: builds, files, requests and plans show it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from servers.counting_s3 import Remote
from servers.launch import Backend, start_counting
from settings_world import Far, files, opened, options, settings, write

import indextables
from indextables.errors import ConfigError, IndexTablesError
from indextables.log.log import TransactionLog
from indextables.log.read import cache as log_cache
from indextables.maintenance.crossref import index_cross_references
from indextables.native import Bundle, read_fxrf
from indextables.storage import diskcache
from indextables.storage.base import open_store
from indextables.table.table import Table
from indextables.xref import auto
from indextables.xref.cache import new_cache, shared_cache

ASKED = "host = 'h3-1'"
AUTO = {
    "xref__autoIndex__enabled": True,
    "xref__autoIndex__minSplitsToTrigger": 2,
    "xref__autoIndex__minUncoveredSplitsToTrigger": 2,
    "xref__autoIndex__minIntervalMs": 0,
}


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    """As a new process: only what is on disk is left."""
    log_cache.SHARED.invalidate()
    shared_cache(1 << 30).clear()
    diskcache._shared.clear()
    auto._last_run.clear()


def rows(splits: int, first: int = 0) -> dict[str, list[Any]]:
    """Hosts of each split overlap with those of all others in their bounds, not in their values."""
    numbers = range(first, first + splits)
    return {"host": [f"h{j}-{i}" for i in numbers for j in range(10)]}


def made(path: Path, splits: int = 6, **values: Any) -> str:
    write(rows(splits), path, write__rowsPerSplit=10, **values)
    return str(path)


def far(path: str | Path, **values: Any) -> tuple[Far, Table]:
    store = Far(open_store(str(path)))
    log = TransactionLog(str(path), store, settings(**values))
    return store, Table(log, log.snapshot())


# -- automatic builds ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "built"),
    [
        ({}, [6]),
        ({"xref__autoIndex__enabled": False}, []),
        ({"xref__autoIndex__minSplitsToTrigger": 7}, []),
        ({"xref__autoIndex__minUncoveredSplitsToTrigger": 7}, []),
        ({"xref__autoIndex__maxSourceSplits": 4}, [4, 2]),
    ],
    ids=[
        "default",
        "xref.autoIndex.enabled",
        "xref.autoIndex.minSplitsToTrigger",
        "xref.autoIndex.minUncoveredSplitsToTrigger",
        "xref.autoIndex.maxSourceSplits",
    ],
)
def test_auto_index(tmp_path: Path, given: dict[str, Any], built: list[int]) -> None:
    path = made(tmp_path / "t", **{**AUTO, **given})
    assert [x.source_split_count for x in opened(path).xrefs()] == built


@pytest.mark.parametrize(("interval", "covered"), [(0, 12), (3_600_000, 6)])
def test_auto_index_min_interval_ms(tmp_path: Path, interval: int, covered: int) -> None:
    given = {**AUTO, "xref__autoIndex__minIntervalMs": interval}
    path = made(tmp_path / "t", **given)
    write(rows(6, 6), path, write__rowsPerSplit=10, **given)
    assert opened(path).xref_coverage().covered == covered


@pytest.mark.parametrize("rebuild", [True, False])
def test_auto_index_rebuild_on_source_change(tmp_path: Path, rebuild: bool) -> None:
    path = made(tmp_path / "t")
    opened(path).build_xref()
    table = opened(path, xref__autoIndex__rebuildOnSourceChange=rebuild)
    table.merge()
    assert table.refresh().xref_coverage().covered == (1 if rebuild else 0)


# -- builds --------------------------------------------------------------------------------------


def test_build_parallelism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from indextables.storage import pool

    seen: list[int] = []
    real = pool.in_order

    def noted(run: Any, items: Any, count: int, *more: Any) -> Any:
        seen.append(count)
        return real(run, items, count, *more)

    monkeypatch.setattr(pool, "in_order", noted)
    path = made(tmp_path / "t")
    seen.clear()
    opened(path, xref__build__parallelism=3).build_xref()
    assert seen == [3]


class Uploads(Far):
    """Notes from where files are uploaded."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.places: list[Path] = []

    def put_file(self, path: str, local_path: str) -> None:
        self.places.append(Path(local_path))
        super().put_file(path, local_path)


@pytest.mark.parametrize("key", ["xref.build.tempDirectoryPath", "indexWriter.tempDirectoryPath"])
def test_build_temp_directory_path(tmp_path: Path, key: str) -> None:
    path = made(tmp_path / "t")
    folder = tmp_path / "work"
    config = settings().updated({key: str(folder)})
    store = Uploads(open_store(path))
    log = TransactionLog(path, store, config)
    with pytest.raises(ConfigError, match="tempDirectoryPath"):
        Table(log, log.snapshot()).build_xref()
    assert files(store, "_xrefsplits") == []
    folder.mkdir()
    Table(log, log.snapshot()).build_xref()
    (place,) = store.places
    assert place.is_relative_to(folder)
    assert list(folder.iterdir()) == []
    assert len(files(store, "_xrefsplits")) == 1


@pytest.mark.parametrize(
    ("given", "built"),
    [
        ({}, [6]),
        ({"xref__build__heapSize": 1}, [1] * 6),
        ({"indexWriter__heapSize": 1}, [1] * 6),
        ({"indexWriter__heapSize": 1, "xref__build__heapSize": "1M"}, [6]),
    ],
    ids=["default", "xref.build.heapSize", "indexWriter.heapSize", "own before writer's"],
)
def test_build_heap_size(tmp_path: Path, given: dict[str, Any], built: list[int]) -> None:
    """Filters that do not fit go into the next cross-reference; all splits stay covered."""
    path = made(tmp_path / "t")
    table = opened(path, **given)
    done = table.build_xref()
    assert [row.source_splits_count for row in done] == built
    again = table.refresh()
    assert again.xref_coverage().covered == 6
    assert {row.action for row in again.build_xref()} == {"unchanged"}
    found = opened(path, xref__query__minSplitsForXRef=1)
    assert found.to_arrow(where=ASKED).num_rows == 1


def test_a_full_cross_reference_is_not_built_again_for_more_splits(tmp_path: Path) -> None:
    """Room is a matter of ``xref.build.heapSize`` too."""
    path = made(tmp_path / "t")
    small = {"xref__build__heapSize": 1}
    opened(path, **small).build_xref()
    before = {x.path for x in opened(path).xrefs()}
    write(rows(2, 6), path, write__rowsPerSplit=10)
    opened(path, **small).build_xref()
    after = {x.path for x in opened(path).xrefs()}
    assert before < after
    assert len(after) == 8


class Session:
    """As much of a Spark session as a build asks for."""

    _jsparkSession = object()  # noqa: N815
    defaultParallelism = 2  # noqa: N815

    def __init__(self) -> None:
        self.sparkContext = self
        self.asked = 0

    def parallelize(self, items: list[Any], parts: int) -> Session:
        self.asked += len(items)
        self.items = items
        return self

    def map(self, run: Any) -> Session:
        self.results = [run(item) for item in self.items]
        return self

    def toLocalIterator(self) -> Iterator[Any]:  # noqa: N802
        return iter(self.results)


@pytest.mark.parametrize(("distributed", "asked"), [(True, 6), (False, 0)])
def test_build_distributed(tmp_path: Path, distributed: bool, asked: int) -> None:
    path = made(tmp_path / "t")
    session = Session()
    log = opened(path, xref__build__distributed=distributed).log
    index_cross_references(log, spark=session)
    assert session.asked == asked
    assert opened(path).xref_coverage().covered == 6


def test_build_max_source_splits_and_max_xrefs_per_run(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    first = opened(path, xref__build__maxSourceSplits=2, xref__build__maxXRefsPerRun=1)
    assert [row.source_splits_count for row in first.build_xref()] == [2]
    tight = {"xref__build__heapSize": 1, "xref__build__maxXRefsPerRun": 2}
    opened(path, **tight).build_xref()
    assert [x.source_split_count for x in opened(path).xrefs()] == [2, 1, 1]


def bundle_of(path: str) -> tuple[Bundle, str]:
    (name,) = files(open_store(path), "/xref-")
    return Bundle.parse((Path(path) / name).read_bytes()), name


@pytest.mark.parametrize(("kind", "bits"), [("fuse8", 8), ("fuse16", 16)])
def test_build_filter_type(tmp_path: Path, kind: str, bits: int) -> None:
    path = made(tmp_path / "t")
    opened(path, xref__build__filterType=kind).build_xref()
    bundle, _ = bundle_of(path)
    assert f"BinaryFuse{bits}".encode() in bytes(bundle.member("xref_header.json"))


def test_storage_directory(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    opened(path, xref__storage__directory="_elsewhere").build_xref()
    store = open_store(path)
    assert files(store, "_xrefsplits/") == []
    assert len(files(store, "_elsewhere/")) == 1
    assert len(opened(path, xref__query__minSplitsForXRef=1).plan(ASKED)) == 1


def test_storage_compression_enabled(tmp_path: Path) -> None:
    sizes = {}
    for enabled in (True, False):
        path = made(tmp_path / str(enabled), 40)
        opened(path, xref__storage__compressionEnabled=enabled).build_xref()
        bundle, _ = bundle_of(path)
        filters = bundle.member("fuse_filters.bin")
        sizes[enabled] = len(filters)
        assert bool(read_fxrf(filters).compression) is enabled
        assert len(opened(path, xref__query__minSplitsForXRef=1).plan(ASKED)) == 1
    assert sizes[True] < sizes[False]


# -- queries -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"xref__query__minSplitsForXRef": 1}, 1),
        ({"xref__query__minSplitsForXRef": 7}, 6),
        ({"xref__query__minSplitsForXRef": 1, "xref__query__enabled": False}, 6),
    ],
    ids=["few", "xref.query.minSplitsForXRef", "xref.query.enabled"],
)
def test_query(tmp_path: Path, given: dict[str, Any], left: int) -> None:
    path = made(tmp_path / "t")
    opened(path).build_xref()
    assert len(opened(path, **given).plan(ASKED)) == left


def test_query_fallback_on_error(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    opened(path).build_xref()
    _, name = bundle_of(path)
    (Path(path) / name).write_bytes(b"broken")
    asked = {"xref__query__minSplitsForXRef": 1}
    assert len(opened(path, **asked).plan(ASKED)) == 6
    with pytest.raises(IndexTablesError):
        opened(path, xref__query__fallbackOnError=False, **asked).plan(ASKED)


def test_cache_max_size(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    opened(path, xref__build__maxSourceSplits=3).build_xref()
    for most, again in (("1G", 0), ("1", 1)):
        forget()
        given = {"xref__query__minSplitsForXRef": 1, "xref__localCache__enabled": False}
        store, table = far(path, xref__cache__maxSize=most, **given)
        table.plan(ASKED)
        assert len(store.paths("read", "/xref-")) == 2
        store.clear()
        table.plan(ASKED)
        assert len(store.paths("read", "/xref-")) >= again
        assert bool(store.paths("read", "/xref-")) is bool(again)


# -- files on local disk -------------------------------------------------------------------------


def fetched(store: Far) -> int:
    """Requests for cross-references."""
    return sum("/xref-" in call.path for call in store.calls)


@pytest.mark.parametrize("enabled", [True, False])
def test_local_cache(tmp_path: Path, enabled: bool) -> None:
    """``xref.localCache.enabled``: the next process finds them in ``xref.localCache.directory``."""
    path = made(tmp_path / "t")
    opened(path).build_xref()
    kept = tmp_path / "kept"
    given = {"xref__query__minSplitsForXRef": 1, "xref__localCache__directory": str(kept)}
    for turn in range(2):
        forget()
        store, table = far(path, xref__localCache__enabled=enabled, **given)
        assert len(table.plan(ASKED)) == 1
        assert fetched(store) == (0 if enabled and turn else 1)
    assert kept.exists() is enabled


def test_a_broken_copy_is_fetched_again(tmp_path: Path) -> None:
    """A copy with the wrong bytes costs one plan its speed, never rows."""
    path = made(tmp_path / "t")
    opened(path).build_xref()
    given = {
        "xref__query__minSplitsForXRef": 1,
        "xref__localCache__enabled": True,
        "xref__localCache__directory": str(tmp_path / "kept"),
    }
    _, name = bundle_of(path)
    real = (Path(path) / name).read_bytes()
    (Path(path) / name).write_bytes(b"x" * len(real))
    _, table = far(path, **given)
    assert len(table.plan(ASKED)) == 6
    (Path(path) / name).write_bytes(real)
    table.xref_router.cache = new_cache(1 << 20)  # type: ignore[union-attr]
    assert len(table.plan(ASKED)) == 1


def test_on_disk_is_near(tmp_path: Path) -> None:
    """What lies on disk costs no request, so asking pays where it did not before."""
    path = tmp_path / "t"
    write({"n": list(range(400)), **rows(40)}, path, write__rowsPerSplit=10)
    opened(path).build_xref()
    absent = "n = 15 AND host = 'h5-zz'"
    given = {
        "xref__localCache__enabled": True,
        "xref__localCache__directory": str(tmp_path / "kept"),
    }
    store, table = far(path, **given)
    store.inner.coalesce_gap = 1
    assert len(table.plan(absent)) == 1, "too dear to ask"
    far(path, xref__query__minSplitsForXRef=1, **given)[1].plan(absent)
    forget()
    store, table = far(path, **given)
    store.inner.coalesce_gap = 1
    assert len(table.plan(absent)) == 0
    assert fetched(store) == 0


def test_keymap_settings(tmp_path: Path) -> None:
    """Maps are made on request, joined by fan-out and number, and cut at the largest size."""

    def maps(name: str, count: int = 1, **given: Any) -> int:
        path = tmp_path / name
        for _ in range(4):
            write(rows(count), path, mode="append", **given)
        return len(opened(path).snapshot.keymaps)

    on: dict[str, Any] = {"xref__keymap__enabled": True, "xref__keymap__fanOut": 2}
    assert maps("off") == 0
    assert maps("narrow", **on) < 4
    assert maps("wide", **{**on, "xref__keymap__fanOut": 32}) == 4
    assert maps("few", **{**on, "xref__keymap__fanOut": 32}, xref__keymap__maxMaps=2) <= 2
    assert maps("small", 1_500, **on, xref__keymap__maxSize=1 << 15) > 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Remote, Backend]]:
    running = start_counting(tmp_path_factory.mktemp("counting"))
    yield Remote(f"http://127.0.0.1:{running.port}"), running.backend
    running.server.stop()


QUERY = """
import json, sys
import indextables
path, given = sys.argv[1], json.loads(sys.argv[2])
table = indextables.open(path, storage_options=given["store"], options=given["options"])
print(len(table.plan(given["where"])))
"""


def test_a_second_process_downloads_no_cross_reference(
    server: tuple[Remote, Backend], tmp_path: Path
) -> None:
    remote, backend = server
    path = backend.fresh()
    given = options(
        xref__query__minSplitsForXRef=1,
        xref__keymap__enabled=False,
        cache__directoryPath=str(tmp_path / "cache"),
    )
    table = {"host": [f"h{j}-{i}" for i in range(6) for j in range(10)]}
    indextables.write(
        pa.table(table), path, rows_per_split=10, storage_options=backend.options, options=given
    )
    indextables.open(path, storage_options=backend.options, options=given).build_xref()
    asked = json.dumps({"store": backend.options, "options": given, "where": ASKED})
    counts = []
    for _ in range(2):
        remote.reset()
        done = subprocess.run(
            [sys.executable, "-c", QUERY, path, asked],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
            env=dict(os.environ),
        )
        assert done.stdout.split() == ["1"]
        counts.append(sum("/xref-" in one.key for one in remote.report().served))
    assert counts == [1, 0]
