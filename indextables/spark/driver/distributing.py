"""How a write wants its rows.

An optimised write wants those of one partition together, in full tasks. A clustered table wants
them sorted by its clustering columns, so that each split covers a narrow range: with partitions
inside every task, without them across all tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indextables.config import Config
from indextables.errors import TableNotFoundError
from indextables.spark.driver.request import Access
from indextables.spark.driver.tables import SHARED
from indextables.spark.driver.writing import defined
from indextables.table.definition import CLUSTER_BY


def distribution(access: Access, partition_columns: Sequence[str]) -> dict[str, Any]:
    """The columns to bring together, those to sort by, and the bytes of one task.

    No columns of either kind is Spark's own order.
    """
    config = _with_table(access)
    sort = [name.strip() for name in (config["write.clusterBy"] or "").split(",") if name.strip()]
    wanted = config["write.optimizeWrite.enabled"]
    mode = config["write.optimizeWrite.distributionMode"]
    if not wanted or mode == "none" or not partition_columns:
        return {"columns": [], "sort": sort, "partitioned": bool(partition_columns), "bytes": 0}
    target = min(
        config["write.optimizeWrite.targetSplitSize"], config["write.optimizeWrite.maxSplitSize"]
    )
    size = int(target / _ratio(access))
    return {"columns": list(partition_columns), "sort": sort, "partitioned": True, "bytes": size}


def _with_table(access: Access) -> Config:
    """The settings of this write, then those of the table or of its definition."""
    definition = defined(access.notes)
    if definition is not None:
        clustering = {CLUSTER_BY: ",".join(definition.cluster_by)} if definition.cluster_by else {}
        return Config.of(access.config, {**definition.settings, **clustering})
    try:
        known = SHARED.table(access).snapshot.metadata.configuration
    except TableNotFoundError:
        return access.config
    return Config.of(access.config, {k: v for k, v in known.items() if k == CLUSTER_BY})


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
