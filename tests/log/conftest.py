"""Tables in memory go when their test ends; listings of the others stay short."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from log_helpers import forget_stores

from indextables.log.read import cache


@pytest.fixture(autouse=True)
def tables_of_one_test() -> Iterator[None]:
    yield
    forget_stores()
    cache.SHARED.invalidate()
