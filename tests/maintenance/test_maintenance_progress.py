"""What progress counts: the parts that are done are the parts that were expected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables.progress import Progress


class Recorded(Progress):
    """Every pair of done and total, as a screen would have shown them."""

    def __init__(self, label: str, total: int | None) -> None:
        super().__init__(label, total)
        self.counted = 0
        self.expected = total or 0

    def advance(self, parts: int = 1, note: str = "") -> None:
        self.counted += parts
        assert self.counted <= self.expected, f"{self.counted}/{self.expected}"
        super().advance(parts, note)

    def expect(self, parts: int) -> None:
        self.expected += parts
        super().expect(parts)


def record(monkeypatch: pytest.MonkeyPatch, module: str) -> list[Recorded]:
    bars: list[Recorded] = []

    @contextmanager
    def progress(label: str, total: int | None = None) -> Iterator[Recorded]:
        bars.append(Recorded(label, total))
        yield bars[-1]

    monkeypatch.setattr(f"{module}.progress", progress)
    return bars


@pytest.fixture
def table(tmp_path: Path) -> indextables.Table:
    path = str(tmp_path / "t")
    quiet = {"checkpoint.enabled": "false", "xref.autoIndex.enabled": "false"}
    for i in range(17):
        indextables.write(pa.table({"id": [i]}), path, options=quiet)
    return indextables.open(path)


def test_merging_in_several_passes(
    table: indextables.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of one pass are merged again by the next, so more is done than there were splits."""
    bars = record(monkeypatch, "indextables.maintenance.merge")
    table.merge(max_source_splits=2)
    (bar,) = bars
    assert bar.counted == bar.expected > 17


def test_fewer_cross_references_than_planned(
    table: indextables.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    bars = record(monkeypatch, "indextables.xref.builder")
    options = {"xref.build.maxSourceSplits": "5", "xref.build.maxXRefsPerRun": "1"}
    indextables.open(table.path, options=options).build_xref()
    assert [(bar.counted, bar.expected) for bar in bars] == [(5, 5)]


def test_purging_and_looking_for_damage(
    table: indextables.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = record(monkeypatch, "indextables.maintenance.checkup")
    table.doctor()
    assert [(bar.counted, bar.expected) for bar in looked] == [(17, 17)]
