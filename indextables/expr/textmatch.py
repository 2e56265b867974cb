"""Brute-force text matching."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.expr.ast import Query
from indextables.mapping import DocMapping


def match_rows(
    query: Query, batch: pa.RecordBatch | pa.Table, mapping: DocMapping
) -> NDArray[np.bool_]:
    raise NotImplementedError


_: Any = None
