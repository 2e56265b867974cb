"""What PySpark's own writers do for our format, once per process.

``df.write.partitionBy(...).mode("append").save(path)`` where there is no table yet: for an append
or overwrite Spark compares ``partitionBy`` with the table, and there is none. Asked to create, it
hands the partition columns over. So a save in our format that partitions a path without a table
becomes a creating one. It stays an append or overwrite for the commit: if another writer creates
the table meanwhile is no conflict.

Every way to write, SQL included, shows errors of ours plainly; see ``failing``. While a frame is
read or saved its session is the active one: Spark looks settings up there, and a thread that has
just begun has none. Everything else passes untouched.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from indextables.spark.driver.failing import told_plainly

_MARK = "_indextables_patched"
FORMATS = (
    "indextables",
    "io.indextables.spark.core.IndexTables4SparkTableProvider",
    "io.indextables.provider.IndexTablesProvider",
)
"""The names of the format: ours, and those of JVM IndexTables."""
_V2 = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")


def patch_writers() -> None:
    """Wrap the writers of PySpark's classic sessions."""
    from pyspark.sql import SparkSession
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2

    _wrap(DataFrameReader, "load", _actively)
    _wrap(DataFrameWriter, "save", _saving)
    _wrap(DataFrameWriter, "insertInto", _actively)
    _wrap(DataFrameWriter, "saveAsTable", _saving_as_table)
    for name in _V2:
        _wrap(DataFrameWriterV2, name, _actively)
    _wrap(SparkSession, "sql", _plainly)


def _wrap(owner: Any, name: str, wrapper: Any) -> None:
    plain = getattr(owner, name)
    if not hasattr(plain, _MARK):
        wrapped = functools.wraps(plain)(wrapper(plain))
        setattr(wrapped, _MARK, True)
        setattr(owner, name, wrapped)


def _plainly(plain: Any) -> Any:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with told_plainly():
            return plain(self, *args, **kwargs)

    return run


def _actively(plain: Any) -> Any:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with told_plainly(), active(self._spark):
            return plain(self, *args, **kwargs)

    return run


@contextmanager
def active(spark: Any) -> Iterator[None]:
    """Make a classic session the one that Spark asks while something is done with it.

    Some platforms give no access to the JVM; their sessions take care of this themselves.
    """
    try:
        sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession
        before = sessions.getActiveSession()
        sessions.setActiveSession(spark._jsparkSession)
    except Exception:
        yield
        return
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _saving_as_table(plain: Any) -> Any:
    def save(
        self: Any,
        name: str,
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
        with told_plainly(), active(self._spark):
            place = _growing(self, name)
            if place is None:
                plain(self, name)
            else:
                self.save(place)

    return save


def _growing(writer: Any, name: str) -> str | None:
    """Where a table is that an append may add columns to: Spark lets no new column reach a name."""
    java = getattr(writer, "_jwrite", None)
    if java is None or java.source() != "indextables" or str(java.curmode()).lower() != "append":
        return None
    asked = java.extraOptions().get("mergeSchema")
    if not asked.isDefined() or str(asked.get()).lower() != "true":
        return None
    if not writer._spark.catalog.tableExists(name):
        return None
    rows = writer._spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    found = {row[0]: row[1] for row in rows}
    return found.get("Location") if found.get("Provider") == "indextables" else None


def _saving(plain: Any) -> Any:
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
        with told_plainly(), active(self._spark):
            asked = _creating(self, path)
            if asked is None:
                plain(self, path)
            else:
                _create(plain, self, path, asked)

    return save


def _create(plain: Any, writer: Any, path: str | None, asked: str) -> None:
    """Save to a path without a table, as a creation that may come second."""
    writer.option("__savemode", asked).mode("errorifexists")
    try:
        plain(writer, path)
    except Exception as error:
        if "TABLE_OR_VIEW_ALREADY_EXISTS" not in str(error):
            raise
        plain(writer.mode(asked), path)


def _creating(writer: Any, path: str | None) -> str | None:
    """The mode of a partitioned append or overwrite in our format, with no table to meet."""
    java = getattr(writer, "_jwrite", None)
    if java is None or java.source() not in FORMATS:
        return None
    if not java.partitioningColumns().isDefined():
        return None
    mode = str(java.curmode()).lower()
    if mode not in ("append", "overwrite"):
        return None
    from indextables.spark.driver.request import access, session_settings
    from indextables.spark.driver.tables import SHARED

    found = java.extraOptions().originalMap().iterator()
    options: dict[str, str] = {}
    while found.hasNext():
        pair = found.next()
        options[pair._1()] = pair._2()
    if path is not None:
        options["path"] = path
    there = SHARED.exists(access(options, session_settings(writer._spark)))
    return None if there else mode
