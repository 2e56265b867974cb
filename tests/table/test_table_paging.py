"""Pages of a search: together they are the whole answer, each row once, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import IndexTablesError, PlanningError


@pytest.fixture
def table(tmp_path: Path) -> indextables.Table:
    words = ["disk", "disk disk", "disk full", "disk full now"]
    for part in range(3):
        rows = [{"id": part * 40 + i, "msg": words[i % 4]} for i in range(40)]
        indextables.write(rows, tmp_path / "t", text=["msg"])
    return indextables.open(tmp_path / "t")


def pages(table: Any, size: int, **given: Any) -> list[pa.Table]:
    found = [table.search("disk", limit=size, **given)]
    while found[-1].num_rows:
        found.append(table.search("disk", limit=size, search_after=found[-1], **given))
    return found


@pytest.mark.parametrize("statistics", ["global", "local"])
@pytest.mark.parametrize("where", [None, "id % 3 = 0"])
def test_pages_are_the_whole(table: indextables.Table, statistics: str, where: str | None) -> None:
    given = {"statistics": statistics, "where": where, "columns": ["id"]}
    whole = table.search("disk", limit=1000, **given).to_pylist()
    assert len(whole) == (120 if where is None else 40)
    after = pages(table, 7, **given)
    assert [row for page in after for row in page.to_pylist()] == whole
    offset = [table.search("disk", limit=7, offset=at, **given) for at in range(0, 126, 7)]
    assert [row for page in offset for row in page.to_pylist()] == whole


def test_a_page_of_another_search_or_version_is_refused(table: indextables.Table) -> None:
    page = table.search("disk", limit=5)
    for wrong in ({"where": "id > 3"}, {"fields": ["msg"]}, {"statistics": "local"}):
        with pytest.raises(PlanningError, match="another search"):
            table.search("disk", search_after=page, **wrong)
    with pytest.raises(PlanningError, match="another search"):
        table.search("full", search_after=page)
    with pytest.raises(PlanningError, match="two ways"):
        table.search("disk", search_after=page, offset=5)
    for no_page in ("x", page.to_pylist(), pa.table({"a": [1]})):
        with pytest.raises(PlanningError, match="not a page"):
            table.search("disk", search_after=no_page)
    table.delete("id = 3")
    with pytest.raises(PlanningError, match=rf"table\.at\({table.version}\)"):
        table.refresh().search("disk", search_after=page)
    assert table.refresh().at(table.version).search("disk", search_after=page).num_rows == 10


PASTED = [
    "https://example.org/a?b=[1]&c={2}",
    "[SPARK-1234] fix f()",
    'say "hi" \\ there',
    "C:\\temp\\*",
    "a AND (b OR",
    "user:name^2~",
    "/etc/passwd",
    "-5 + NOT",
]


@pytest.mark.parametrize("text", PASTED)
def test_pasted_text_is_found(tmp_path: Path, text: str) -> None:
    rows = [{"msg": f"before {text} after"}, {"msg": "something else"}]
    indextables.write(rows, tmp_path / "t", text=["msg"])
    table = indextables.open(tmp_path / "t")
    assert table.search(text, literal=True)["msg"].to_pylist() == [rows[0]["msg"]]
    assert table.search(indextables.quote(text))["msg"].to_pylist() == [rows[0]["msg"]]
    in_sql = indextables.quote(text).replace("\\", "\\\\").replace("'", "\\'")
    assert table.count(f"msg TEXTSEARCH '{in_sql}'") == 1


def test_quote_takes_text_alone() -> None:
    assert indextables.quote('a"b\\') == '"a\\"b\\\\"'
    for other in (None, b"x", 5):
        with pytest.raises(IndexTablesError):
            indextables.quote(other)  # type: ignore[arg-type]


def test_blank_text_finds_nothing(table: indextables.Table) -> None:
    assert table.search("", literal=True).num_rows == 0
    assert table.search("...", literal=True).num_rows == 0
