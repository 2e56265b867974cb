"""``df.write.partitionBy(...).mode("append").save(path)`` where there is no table yet.

For an append or overwrite Spark compares ``partitionBy`` with the table, and there is none. Asked
to create, it hands the partition columns over. So a save in our format that partitions a path
without a table becomes a creating one; everything else passes untouched.
"""

from __future__ import annotations

import functools
from typing import Any

_MARK = "_indextables_save"


def patch_save() -> None:
    """Wrap ``DataFrameWriter.save`` once per process."""
    from pyspark.sql.readwriter import DataFrameWriter

    plain = DataFrameWriter.save
    if getattr(plain, _MARK, False):
        return

    @functools.wraps(plain)
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803
        **options: Any,
    ) -> None:
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if format is not None:
            self.format(format)
        if _creates(self, path):
            self.mode("errorifexists")
        plain(self, path)

    setattr(save, _MARK, True)
    DataFrameWriter.save = save


def _creates(writer: Any, path: str | None) -> bool:
    """Is this a partitioned append or overwrite in our format, with no table to meet?"""
    java = getattr(writer, "_jwrite", None)
    if java is None or java.source() != "indextables" or not java.partitioningColumns().isDefined():
        return False
    if str(java.curmode()) not in ("Append", "Overwrite"):
        return False
    from indextables.spark.options import access, session_settings
    from indextables.spark.tables import SHARED

    found = java.extraOptions().originalMap().iterator()
    options: dict[str, str] = {}
    while found.hasNext():
        pair = found.next()
        options[pair._1()] = pair._2()
    if path is not None:
        options["path"] = path
    return not SHARED.exists(access(options, session_settings(writer._spark)))
