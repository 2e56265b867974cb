"""Every test begins without open indexes and with counters at zero."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from indextables import columnindex
from indextables.splits.lookup.colindex.metrics import METRICS


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    columnindex.forget_indexes()
    METRICS.reset()
    yield
    columnindex.forget_indexes()
