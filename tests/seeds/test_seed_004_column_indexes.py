"""Seed 004, column indexes: operations, cost, observability, versions and failures.

Files byte by byte are tested in ``tests/columnindex/test_columnindex_formats.py``, the choice of an
index in ``test_columnindex_choice.py``, answers against brute force beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables.splits.lookup.colindex.metrics import METRICS

ROWS = 1000


@pytest.fixture(autouse=True)
def counters() -> Iterator[None]:
    METRICS.reset()
    yield
    METRICS.reset()


@pytest.fixture
def table(tmp_path: Path) -> indextables.Table:
    numbers = range(ROWS)
    data = pa.table({
        "email": [f"u{i}@example.com" for i in numbers],
        "status": ["active" if i % 10 else "failed" for i in numbers],
        "age": [i % 80 for i in numbers],
    })  # fmt: skip
    indextables.write(data, str(tmp_path / "t"))
    return indextables.open(str(tmp_path / "t"))


def test_creating_an_index(table: indextables.Table) -> None:
    table.define_index("email")
    assert table.refresh().index_coverage("email").covered == 0
    table.index_blocks()
    assert table.refresh().index_coverage("email").covered == 1


def test_dropping_an_index(table: indextables.Table) -> None:
    table.create_index("email")
    table.drop_index("email")
    assert table.refresh().indexes() == []
    assert table.refresh().count("email = 'u7@example.com'") == 1


def test_query_with_index(table: indextables.Table) -> None:
    table.create_index("email")
    now = table.refresh()
    assert now.to_arrow("email = 'u7@example.com'")["age"].to_pylist() == [7]
    assert METRICS.lookups["email", "hit"] == 1


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("email = 'u7@example.com'", 1),
        ("email IN ('u1@example.com', 'u2@example.com', 'nobody')", 2),
        ("age >= 78 AND age <= 79", 24),
        ("age < 1", 13),
    ],
)
def test_supported_sql_patterns(table: indextables.Table, where: str, rows: int) -> None:
    table.create_index("email")
    table.create_index("age")
    assert table.refresh().to_arrow(where).num_rows == rows
    assert sum(n for (_, outcome), n in METRICS.lookups.items() if outcome == "hit") >= 1


def test_20_percent_threshold_rule(table: indextables.Table) -> None:
    table.create_index("status")
    table.refresh().to_arrow("status = 'active'")
    assert METRICS.lookups["status", "fallback"] == 1
    table.refresh().to_arrow("status = 'failed'")
    assert METRICS.lookups["status", "hit"] == 1


def test_multi_index_evaluation(table: indextables.Table, caplog: pytest.LogCaptureFixture) -> None:
    table.create_index("email")
    table.create_index("status")
    with caplog.at_level(logging.DEBUG, "indextables.columnindex"):
        found = table.refresh().to_arrow("email = 'u10@example.com' AND status = 'failed'")
    assert found.num_rows == 1
    assert any("Selected index on column 'email'" in m for m in caplog.messages)


def test_outcome_miss_for_a_column_without_an_index(table: indextables.Table) -> None:
    table.to_arrow("age = 3")
    assert METRICS.lookups["age", "miss"] == 1
    table.create_index("email")
    table.refresh().to_arrow("age = 3 AND email = 'u3@example.com'")
    assert METRICS.lookups["age", "miss"] == 2
    assert METRICS.lookups["email", "hit"] == 1


def test_outcome_error_never_fails_the_query(table: indextables.Table, tmp_path: Path) -> None:
    table.create_index("email")
    for file in (tmp_path / "t").rglob("idx_*"):
        file.write_bytes(b"not an index")
    from indextables.splits.lookup.colindex.opening import forget_indexes

    forget_indexes()
    assert table.refresh().count("email = 'u7@example.com'") == 1
    assert METRICS.lookups["email", "error"] >= 1


def test_version_awareness(table: indextables.Table) -> None:
    """A split that is written anew has another name, so an old index cannot answer for it."""
    table.create_index("email")
    table.delete("age = 7")
    now = table.refresh()
    assert now.count("email = 'u7@example.com'") == 0
    assert now.count("email = 'u8@example.com'") == 1


def test_logging_lines(table: indextables.Table) -> None:
    table.create_index("email")
    table.refresh().to_arrow("email = 'u7@example.com'")
    lookups, cache, read = METRICS.lines()
    assert lookups == "Index lookups: email=1 (hit)"
    assert cache.startswith("Cache stats: hits=")
    assert read.startswith("Bytes read: ")


def test_index_intersection(table: indextables.Table) -> None:
    table.create_index("age")
    table.create_index("status")
    where = "age IN (10, 20, 30, 40, 50, 60, 70, 71, 72) AND status = 'failed'"
    assert table.refresh().to_arrow(where).num_rows == sum(
        i % 80 in (10, 20, 30, 40, 50, 60, 70, 71, 72) and i % 10 == 0 for i in range(ROWS)
    )


def test_no_class_of_the_package_is_for_tests_alone() -> None:
    """``storage/testing.py`` is for tests of stores, also of those that users bring."""
    package = Path(indextables.__file__).parent
    for name in ("RowIdCache", "VersionedBlockId", "IndexSelector", "FilterAnalyzer"):
        uses = [p for p in package.rglob("*.py") if name in p.read_text("utf-8")]
        assert len(uses) != 1, f"{name} is used nowhere else than {uses}"
