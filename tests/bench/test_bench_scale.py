"""The simulation behind ``docs/scale.md``, small: requests must not grow with the splits."""

from __future__ import annotations

from pathlib import Path

import pytest
import scale


def requests(path: str, splits: int) -> dict[str, int]:
    """Requests of each step, on a table of that many splits."""
    scale.simulate(path, splits)
    process = scale.Process(path)
    host = scale.needle()
    steps = {
        "open": process.open,
        "reopen": process.open,
        "needle": lambda: process.ask(f"id = {scale.ROWS + 17}"),
        "again": lambda: process.ask(f"id = {scale.ROWS + 17}"),
        "host": lambda: process.ask(f"host = '{host}'"),
    }
    return {name: process.counted(name, work)["requests"] for name, work in steps.items()}


def test_requests_do_not_grow_with_the_splits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "ROWS", 300)
    monkeypatch.setattr(scale, "KEYS", 100)
    monkeypatch.setitem(scale.QUIET, "spark.indextables.xref.query.minSplitsForXRef", "1")
    few = requests(str(tmp_path / "few"), 20)
    many = requests(str(tmp_path / "many"), 900)
    assert few == many
    assert many["open"] <= 10
    assert many["reopen"] <= 3
    assert 1 <= many["needle"] <= 4
    assert many["again"] == 0
