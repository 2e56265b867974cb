"""How an optimised write wants its rows: those of one partition together, in full tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indextables.errors import TableNotFoundError
from indextables.spark.driver.request import Access
from indextables.spark.driver.tables import SHARED


def distribution(access: Access, partition_columns: Sequence[str]) -> dict[str, Any]:
    """The columns to cluster by and the bytes of one task; no columns is Spark's own order."""
    config = access.config
    wanted = config["write.optimizeWrite.enabled"]
    mode = config["write.optimizeWrite.distributionMode"]
    if not wanted or mode == "none" or not partition_columns:
        return {"columns": [], "bytes": 0}
    target = min(
        config["write.optimizeWrite.targetSplitSize"], config["write.optimizeWrite.maxSplitSize"]
    )
    return {"columns": list(partition_columns), "bytes": int(target / _ratio(access))}


def _ratio(access: Access) -> float:
    """Split bytes per input byte: from the table's own splits where it has enough rows."""
    config = access.config
    default = float(config["write.optimizeWrite.samplingRatio"])
    try:
        snapshot = SHARED.table(access).snapshot
    except TableNotFoundError:
        return default
    rows = snapshot.num_rows or 0
    if rows < config["write.optimizeWrite.minRowsForEstimation"]:
        return default
    sizes = [f.uncompressed_size_bytes or 0 for f in list(snapshot.files())[-32:]]
    stored = [f.size for f in list(snapshot.files())[-32:]]
    return max(sum(stored) / sum(sizes), 0.05) if sum(sizes) else default
