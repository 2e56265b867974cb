"""Columns of which it is not worth asking a key map, because every split has all their values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables.config import Config
from indextables.planner import Planner
from indextables.storage.base import Capabilities
from indextables.storage.memory import MemoryStore, clear_memory
from indextables.xref.telling import is_worth_asking

PATH = "memory://xref-telling"
SPLITS, ROWS = 6, 40
LONG = "https://example.org/a/long/common/beginning/of/every/address/"


class Far(MemoryStore):
    capabilities = Capabilities(remote=True, persistent=False, local_files=False)


@pytest.fixture(scope="module")
def table() -> Iterator[indextables.Table]:
    numbers = range(SPLITS * ROWS)
    rows = pa.table(
        {
            "id": [f"v{37 * i % len(numbers):04d}" for i in numbers],
            "level": [("INFO", "WARN", "ERROR")[i % 3] for i in numbers],
            "code": [i % 5 for i in numbers],
            "url": [LONG + "x" * 300 for _ in numbers],
            "body": [f"word{i} common" for i in numbers],
        }
    )
    indextables.write(rows, PATH, rows_per_split=ROWS, text=["body"])
    yield indextables.open(PATH)
    clear_memory(PATH.removeprefix("memory://"))


CASES = [
    ("id = 'v0003'", True),
    ("level = 'WARN'", False),
    ("level IN ('WARN', 'INFO')", False),
    ("code = 3", False),
    ("code = 3 AND level = 'WARN'", False),
    ("code = 3 AND id = 'v0003'", True),
    ("id = 'v0003' OR level = 'WARN'", False),
    ("id = 'v0003' OR id = 'v0004'", True),
    ("body TEXTSEARCH 'common'", True),
    (f"url = '{LONG}y'", True),
    ("code > 3", False),
]


@pytest.mark.parametrize(("where", "expected"), CASES)
def test_few_splits_are_asked_about_telling_columns(
    table: indextables.Table, where: str, expected: bool
) -> None:
    bound = Planner(table.snapshot).bind(where)
    few = np.arange(SPLITS)
    assert is_worth_asking(Far(PATH), Config(), table.snapshot, few, bound) is expected


@pytest.mark.parametrize("count", [1, SPLITS])
def test_one_split_and_many_are_asked_whatever_the_column(
    table: indextables.Table, count: int
) -> None:
    bound = Planner(table.snapshot).bind("level = 'WARN'")
    config = Config({"read.remoteParallelism": SPLITS - 1})
    assert is_worth_asking(Far(PATH), config, table.snapshot, np.arange(count), bound)
