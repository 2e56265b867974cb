"""What a question to a source costs in requests, and that none of them writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltakit import DeltaBook
from icebergkit import IcebergBook
from servers.counting_s3 import CountingS3
from stories import HandDelta, HandIceberg, in_order

from indextables.sources.reading import read_all
from indextables.sources.recognise import open_source
from indextables.storage import open_store


class Far:
    """A folder on an object store that counts."""

    def __init__(self, server: CountingS3) -> None:
        self.server = server
        self.options = {
            "key": "k", "secret": "s", "endpoint_url": server.endpoint,
            "client_kwargs": {"region_name": "us-east-1"},
        }  # fmt: skip
        self.store = open_store("s3://lake/t", self.options)
        self.sent: dict[str, float] = {}

    def copy(self, folder: Path) -> None:
        """What is new in a folder; then counting begins."""
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if path.is_file() and self.sent.get(name) != path.stat().st_mtime_ns:
                self.store.put(name, path.read_bytes())
                self.sent[name] = path.stat().st_mtime_ns
        self.server.reset()


@pytest.fixture
def far() -> Iterator[Far]:
    with CountingS3() as server:
        yield Far(server)


def test_a_delta_table_that_did_not_change_costs_one_listing(
    far: Far, tmp_path: Path, rng: Random
) -> None:
    book = DeltaBook(tmp_path / "t", rng, "name")
    for _ in range(4):
        book.append(5)
    book.checkpoint("classic")
    book.append(5)
    far.copy(book.folder)
    table = open_source("s3://lake/t", "delta", far.options)
    assert sum(f.rows or 0 for f in table.snapshot().files()) == 25
    assert far.server.report().requests == 4, "hint, listing, checkpoint, commit"
    far.server.reset()
    assert table.snapshot().version == book.version
    assert far.server.report().requests == 1
    book.append(5)
    book.append(5)
    far.copy(book.folder)
    assert sum(f.rows or 0 for f in table.snapshot().files()) == 35
    assert far.server.report().requests == 3, "listing and two commits"


def test_an_iceberg_table_that_did_not_change_costs_three_requests(
    far: Far, tmp_path: Path, rng: Random
) -> None:
    book = IcebergBook(tmp_path / "t", rng)
    for _ in range(3):
        book.append(5)
    far.copy(book.folder)
    options: dict[str, Any] = {**far.options, "relocate": {f"file://{book.folder}": "s3://lake/t"}}
    table = open_source("s3://lake/t", "iceberg", options)
    assert sum(f.rows or 0 for f in table.snapshot().files()) == 15
    far.server.reset()
    assert sum(f.rows or 0 for f in table.snapshot().files()) == 15
    assert far.server.report().requests == 3, "listing, metadata, manifest list; manifests are kept"


def test_a_table_made_again_is_another_table(tmp_path: Path, rng: Random) -> None:
    for size in (3, 7):
        book = DeltaBook(tmp_path / "t", rng)
        book.append(size)
        table = open_source(str(tmp_path / "t"))
        assert in_order(read_all(table.snapshot()).to_pylist()) == in_order(book.rows())
        (tmp_path / "t").rename(tmp_path / f"old{size}")


@pytest.mark.parametrize("kind", [HandDelta, HandIceberg])
def test_nothing_is_written_into_a_source(tmp_path: Path, rng: Random, kind: Any) -> None:
    story = kind(tmp_path / "t", rng)
    for _ in range(5):
        story.step()
    before = {p: os.stat(p).st_mtime_ns for p in sorted((tmp_path / "t").rglob("*"))}
    assert in_order(read_all(open_source(story.location).snapshot()).to_pylist()) == in_order(
        story.rows()
    )
    assert {p: os.stat(p).st_mtime_ns for p in sorted((tmp_path / "t").rglob("*"))} == before
