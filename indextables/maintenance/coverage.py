"""DESCRIBE STATS COVERAGE: which columns have which statistics, in how many splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indextables.log.log import TransactionLog
from indextables.maintenance.rows import Row
from indextables.naming import stored_name
from indextables.types import type_name


@dataclass(frozen=True)
class StatsCoverage(Row):
    """One column."""

    table_path: str
    column: str
    type: str
    splits: int
    splits_with_bounds: int
    splits_with_null_counts: int
    splits_with_nan_counts: int
    bounds_percent: float
    can_have: bool


def stats_coverage(log: TransactionLog) -> list[StatsCoverage]:
    """A row for each column that is not a partition column."""
    snapshot = log.snapshot()
    total = snapshot.num_files
    rows = []
    for field in snapshot.schema:
        if field.name in snapshot.partition_columns:
            continue
        stored = stored_name(field)
        low = snapshot.stat_column("min", stored)
        high = snapshot.stat_column("max", stored)
        bounds = 0
        if low is not None and high is not None:
            bounds = int(np.count_nonzero((low.valid != 0) & (high.valid != 0)))
        rows.append(
            StatsCoverage(
                log.path,
                field.name,
                type_name(field.type),
                total,
                bounds,
                _known(snapshot.stats_counts("nullCount", stored)),
                _known(snapshot.stats_counts("nanCount", stored)),
                100.0 * bounds / total if total else 0.0,
                _can_have(field.type),
            )
        )
    return rows


def _known(counts: object) -> int:
    return 0 if counts is None else int(np.count_nonzero(np.asarray(counts) >= 0))


def _can_have(dtype: pa.DataType) -> bool:
    t = pa.types
    return not (t.is_nested(dtype) or t.is_binary(dtype) or t.is_null(dtype))
