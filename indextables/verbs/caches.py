"""Verbs for the caches of this machine and of Spark's executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from indextables.verbs.base import Target, Verb, hidden, parameter, verb

if TYPE_CHECKING:
    import pyarrow as pa  # noqa: F401

    from indextables.maintenance import describe


@verb
class DescribeDiskCache(Verb["describe.DiskCacheUse"]):
    """The disk cache of this process."""

    SQL = "DESCRIBE INDEXTABLES DISK CACHE"
    CLI, METHOD = "cache disk", "disk_cache"
    DOES = "maintenance.describe:disk_cache"


@verb
class InvalidateCache(Verb["describe.Invalidated"]):
    """Forget cached log state, of one table or of all."""

    SQL = "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE [FOR {table}]"
    CLI, METHOD = "cache invalidate", "invalidate_cache"

    def apply(self, on: Target) -> describe.Invalidated:
        from indextables.maintenance.describe import invalidate_cache

        return invalidate_cache(None if on.path is None else on.log)


@verb
class FlushDiskCache(Verb["describe.FlushedDisk"]):
    """Delete everything the disk cache holds."""

    SQL = "FLUSH INDEXTABLES DISK CACHE"
    CLI, METHOD = "cache flush-disk", "flush_disk_cache"
    DOES = "maintenance.describe:flush_disk_cache"


@verb
class FlushSearcherCache(Verb["describe.Flushed"]):
    """Forget open splits and loaded cross-references."""

    SQL = "FLUSH INDEXTABLES SEARCHER CACHE"
    CLI, METHOD = "cache flush-searcher", "flush_searcher_cache"
    DOES = "maintenance.describe:flush_searcher_cache"


@verb
class Prewarm(Verb["pa.Table"]):
    """Read the asked parts of every split once, so that they are cached."""

    SQL = (
        "PREWARM INDEXTABLES CACHE {table} [FOR SEGMENTS {segments:names}] "
        "[ON FIELDS {fields:names}] [WITH PERWORKER PARALLELISM OF {parallelism:int}] "
        "[WHERE {where:predicate}] [{asynchronous:ASYNC MODE}]"
    )
    CLI, METHOD = "cache prewarm", "prewarm"
    COLUMNS = "maintenance.prewarm:PREWARM_COLUMNS"
    DOES = "maintenance.prewarm:prewarm"

    segments: Sequence[str] = parameter(default=(), doc="Parts of a split, such as TERM_DICT.")
    fields: Sequence[str] = parameter(default=(), doc="Columns.")
    parallelism: int | None = parameter(default=None, doc="Splits at once in each worker.")
    where: Any = parameter(default=None, doc="Predicate on partition columns.")
    asynchronous: bool = parameter(default=False, doc="Do not wait for it.")
    spark: Any = hidden(default=None)
