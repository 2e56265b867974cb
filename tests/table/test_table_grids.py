"""What notebooks show: history, findings, aggregates and results of verbs as small tables."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.gridview import MOST_ROWS, Listing, as_html

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def table(tmp_path: Path) -> indextables.Table:
    indextables.write([{"id": i, "host": EVIL} for i in range(5)], tmp_path / "t")
    found = indextables.open(tmp_path / "t")
    found.delete(f"host = '{EVIL}' AND id = 1")
    return found.refresh()


def test_history_and_doctor(table: indextables.Table) -> None:
    for found, word in ((table.history(), "DELETE"), (table.doctor(), "sound")):
        page = found._repr_html_()  # type: ignore[attr-defined]
        assert "<table" in page
        assert word in page
        assert EVIL not in page
        assert isinstance(found, list)
    assert "&lt;script&gt;" in table.history()._repr_html_()  # type: ignore[attr-defined]


def test_results_of_verbs(table: indextables.Table) -> None:
    for found in (table.delete("id = 2"), table.purge(dry_run=True), table.checkpoint()):
        page = found._repr_html_()
        assert "status" in page
        assert "<table" in page


def test_colours_are_those_of_the_page(table: indextables.Table) -> None:
    for page in (table.history()._repr_html_(), table._repr_html_()):  # type: ignore[attr-defined]
        for fixed in ("#", "rgb(", "white", "black"):
            assert f"color:{fixed}" not in page
            assert f"background:{fixed}" not in page


def test_aggregates_in_a_notebook(
    table: indextables.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught: dict[Any, Any] = {}
    html = SimpleNamespace(for_type=lambda kind, show: taught.update({kind: show}))
    formatter = SimpleNamespace(formatters={"text/html": html})
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(display_formatter=formatter))
    monkeypatch.setitem(sys.modules, "IPython", shell)  # type: ignore[arg-type]
    found = table.aggregate({"n": "count"}, ["host"])
    page = taught[pa.Table](found)
    assert "&lt;script&gt;" in page
    assert ">4<" in page
    assert taught[pa.Table](pa.table({"a": [1]})) is None


def test_long_and_empty_results() -> None:
    assert "and 25 more rows" in Listing([{"a": 1}] * (MOST_ROWS + 25))._repr_html_()
    assert "no rows" in Listing([])._repr_html_()
    assert as_html(pa.table({"a": []})) is None
    assert copy.copy(Listing([1])) == [1]
