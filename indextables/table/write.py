"""Writing a table without Spark: one pass over the data, one commit, by ``WriteOrder``.

The modes are Spark's: ``append`` adds, ``overwrite`` replaces (all rows, the partitions of
``replace_where``, or, with dynamic partition overwrite, the partitions the data touches), ``error``
refuses an existing table, ``ignore`` leaves it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from indextables.config import Config, refuse_misspelt
from indextables.log.commit.transaction import CommitResult
from indextables.table.interchange.inputs import as_batches
from indextables.table.order import WriteOrder
from indextables.table.write_options import indexing_options


def write_table(
    data: Any,
    path: str,
    *,
    partition_by: Sequence[str] = (),
    mode: str = "append",
    replace_where: str | None = None,
    text: Iterable[str] = (),
    json: Iterable[str] = (),
    ip: Iterable[str] = (),
    tokenizers: Mapping[str, str] | None = None,
    substring: Iterable[str] = (),
    fast: Iterable[str] = (),
    rows_per_split: int | None = None,
    target_size: int | str | None = None,
    merge_schema: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> CommitResult:
    """Write data in any of the forms of ``interchange.inputs`` to the table at ``path``.

    The table is created if there is none. Returns the commit; its ``snapshot`` is the new table.
    """
    config = _config(options, rows_per_split, target_size, merge_schema, replace_where)
    schema, batches = as_batches(data)
    order = WriteOrder(
        path,
        schema,
        (partition_by,) if isinstance(partition_by, str) else tuple(partition_by),
        mode,
        indexing_options(
            config,
            text=text,
            json=json,
            ip=ip,
            tokenizers=tokenizers,
            fast=fast,
            substring=substring,
        ),
        config,
        dict(storage_options or {}),
        replaces=config["write.replaceWhere"],
    ).decide()
    return order.skipped() or order.commit(order.write(batches))


def _config(
    options: Mapping[str, Any] | None,
    rows_per_split: int | None,
    target_size: int | str | None,
    merge_schema: bool | None,
    replace_where: str | None,
) -> Config:
    refuse_misspelt(options)
    given = {
        "write.rowsPerSplit": rows_per_split,
        "write.targetSplitSize": target_size,
        "write.mergeSchema": merge_schema,
        "write.replaceWhere": replace_where,
    }
    return Config.of({k: v for k, v in given.items() if v is not None}, options)
