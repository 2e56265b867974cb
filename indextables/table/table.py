"""A table at one version, without Spark.

A ``Table`` is a view of one snapshot: what it answers does not change under it. ``refresh()`` gives
the newest. Reading plans first (``Plan`` says which splits survived and why), then opens only those
splits, filter columns first, and returns Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.companion.reading import read_snapshot
from indextables.config import Config, checked_count, refuse_misspelt
from indextables.expr import sqltext
from indextables.gridview import Listing, shown
from indextables.log.log import TransactionLog
from indextables.log.read.pinned import pinned, refuse_other
from indextables.log.read.snapshot import Snapshot
from indextables.mapping import DocMapping
from indextables.naming import user_mapping
from indextables.planner import Plan, Planner
from indextables.storage.base import Store
from indextables.storage.pool import ahead
from indextables.table import execute, feed, lookups, ordering, render, searching
from indextables.table.changes import Difference, difference
from indextables.table.interchange import outputs
from indextables.table.verbs import Verbs
from indextables.xref.keymaps.router import KeyMapRouter
from indextables.xref.router import XRefQueryRouter
from indextables.xref.routing import router_of

if TYPE_CHECKING:
    from indextables.log.read.history import HistoryEntry


def mapping_of(snapshot: Snapshot) -> DocMapping:
    """How each column is indexed, as the table says or else as its schema implies."""
    known = snapshot.table_mapping
    if known is None:
        return DocMapping.for_schema(snapshot.schema, snapshot.partition_columns)
    return user_mapping(known, snapshot.schema)


def open_table(
    path: str,
    version: int | None = None,
    timestamp: Any = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Table:
    """Open the table at ``path``, now or as it was at a version or moment.

    The path may name the version itself: ``path@v12``, ``path@20260131``.
    """
    refuse_misspelt(options)
    config = Config.of(options)
    where: dict[str, Any] = {"storage_options": storage_options, "config": config}
    at = pinned(path, lambda p: TransactionLog.exists(p, **where))
    refuse_other(at, version, timestamp)
    log = TransactionLog.open(at.path, **where, check=False)
    ahead(log.store, sqltext.prepare)
    if at.is_pinned:
        return Table(log, read_snapshot(log, at.version, at.timestamp))
    return Table(log, read_snapshot(log, version, timestamp))


class Table(Verbs):
    """One table at one version."""

    def __init__(self, log: TransactionLog, snapshot: Snapshot) -> None:
        self.log = log
        self.snapshot = snapshot
        self.last_plan: Plan | None = None

    # -- facts, none of which does I/O ----------------------------------------------------------

    @property
    def path(self) -> str:
        return self.log.path

    @property
    def store(self) -> Store:
        return self.log.store

    @property
    def config(self) -> Config:
        return self.log.config

    @property
    def storage_options(self) -> Mapping[str, Any]:
        """The options its store was opened with."""
        options: Mapping[str, Any] = getattr(self.store, "options", {})
        return options

    @cached_property
    def xref_router(self) -> KeyMapRouter | XRefQueryRouter | None:
        """Routes queries past splits that lack their terms; none without such an index."""
        return router_of(self.store, self.snapshot, self.config)

    @property
    def version(self) -> int:
        return self.snapshot.version

    @property
    def schema(self) -> pa.Schema:
        return self.snapshot.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.snapshot.partition_columns

    @property
    def mapping(self) -> DocMapping:
        """How each column is indexed."""
        return mapping_of(self.snapshot)

    def __repr__(self) -> str:
        return render.as_text(self)

    def _repr_html_(self) -> str:
        return render.as_html(self)

    # -- other versions -------------------------------------------------------------------------

    def refresh(self) -> Table:
        """The table as it is now; reads only what is new."""
        return Table(self.log, read_snapshot(self.log))

    def at(self, version: int | None = None, timestamp: Any = None) -> Table:
        """The table as it was."""
        return Table(self.log, read_snapshot(self.log, version, timestamp))

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """What was committed, newest first."""
        return Listing(self.log.history(None if limit is None else checked_count(limit)))

    def diff(self, a: int, b: int | None = None) -> Difference:
        """The splits added and removed between two versions (``b``: this one)."""
        newer = self.snapshot if b is None else self.log.snapshot(version=b)
        return difference(self.log.snapshot(version=a), newer)

    def changes(self, from_version: int, to_version: int | None = None) -> pa.RecordBatchReader:
        """The rows that each version deleted, updated and inserted, both versions included.

        Beside the columns of the table, ``_change_type`` is insert, delete, update_preimage or
        update_postimage; ``_commit_version`` and ``_commit_timestamp`` say when.
        """
        return feed.changes(self.log, from_version, to_version)

    # -- reading --------------------------------------------------------------------------------

    def plan(
        self, where: Any = None, columns: Sequence[str] | None = None, limit: int | None = None
    ) -> Plan:
        """Which splits a query needs, and why."""
        at_once = execute.parallelism(self)
        planner = Planner(self, xref_router=self.xref_router, parallelism=at_once)
        self.last_plan = planner.plan(where, columns=columns, limit=limit)
        return self.last_plan

    def explain(self, where: Any = None, format: str = "text") -> str:
        """The plan of a query, as text, json or html."""
        return self.plan(where).explain(format)

    def scan(
        self,
        where: Any = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        batch_rows: int | None = None,
    ) -> pa.RecordBatchReader:
        """Stream the matching rows in batches."""
        plan = self.plan(where, columns, limit)
        return execute.reader(self, plan, batch_rows)

    def to_arrow(
        self, where: Any = None, columns: Sequence[str] | None = None, limit: int | None = None
    ) -> pa.Table:
        """The matching rows as one Arrow table."""
        return execute.collect(self, self.plan(where, columns, limit))

    def to_pandas(
        self, where: Any = None, columns: Sequence[str] | None = None, limit: int | None = None
    ) -> Any:
        """The matching rows as a pandas frame."""
        return outputs.to_pandas(self.to_arrow(where, columns, limit))

    def to_polars(
        self, where: Any = None, columns: Sequence[str] | None = None, limit: int | None = None
    ) -> Any:
        """The matching rows as a Polars frame; ``indextables.scan_polars`` gives a lazy one."""
        return outputs.to_polars(self.to_arrow(where, columns, limit))

    def dataset(self, where: Any = None) -> Any:
        """The table as a ``pyarrow.dataset.Dataset``, into which filters and columns are pushed.

        DuckDB, Polars and pyarrow read it; ``where`` is a condition of ours that always holds, so
        that ``duckdb.sql`` can search text: ``hits = table.dataset("message TEXTSEARCH 'x'")``.
        """
        from indextables.table.interchange.dataset import TableDataset

        return TableDataset(self, where)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All rows as an Arrow stream: ``pa.table(table)``, ``duckdb.sql("from table")``."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled table is opened again where it is loaded, at the same version."""
        return outputs.reopen, (self.path, self.version, dict(self.storage_options), self.config)

    def count(self, where: Any = None) -> int:
        """How many rows match; from the log alone where it can tell."""
        return execute.count(self, self.plan(where, columns=()))

    def aggregate(
        self,
        aggregates: Mapping[str, str | tuple[str, str]] | Sequence[Any],
        group_by: Sequence[Any] = (),
        where: Any = None,
    ) -> pa.Table:
        """Exact count, min, max, sum, avg, by groups, without materialising rows."""
        return shown(execute.aggregate(self, self.plan(where, columns=()), aggregates, group_by))

    def top(
        self,
        column: str,
        limit: int = 10,
        *,
        descending: bool = False,
        columns: Sequence[str] | None = None,
        where: Any = None,
    ) -> pa.Table:
        """The first ``limit`` rows in the order of a column; ORDER BY with LIMIT.

        NULL comes first, or last where descending; NaN is the largest number. Splits with an index
        of the column read just the rows it names.
        """
        request = ordering.Order(column, limit, descending, columns)
        return ordering.top_rows(self, request, where)

    def lookup(
        self,
        keys: Any,
        on: str,
        columns: Sequence[str] | None = None,
        *,
        where: Any = None,
    ) -> pa.Table:
        """The rows whose column ``on`` holds one of the keys: an index join.

        ``keys`` is a list or an Arrow array of up to some 100,000 values; NULL finds nothing, and a
        key that is given twice finds its rows once. Only splits that may hold a key are opened,
        each once, and asked only for the keys they may hold.
        """
        return lookups.lookup(self, keys, on, columns, where)

    def search(
        self,
        query: str | Mapping[str, Any],
        columns: Sequence[str] | None = None,
        limit: int = 10,
        *,
        fields: Sequence[str] | None = None,
        where: Any = None,
        snippet: str | None = None,
        statistics: str = "global",
        offset: int = 0,
        search_after: pa.Table | None = None,
        literal: bool = False,
    ) -> pa.Table:
        """The best ``limit`` rows for a search string, with ``_score``, best first.

        A dict is read as an Elasticsearch query: ``{"match": {"message": "disk full"}}``.
        ``fields`` are searched where the query names none (default: every text column);
        ``snippet`` names a column whose highlighted excerpt is added as ``_snippet``. Scores are
        BM25 over all live rows of the table; ``statistics="local"`` takes those of each split
        instead, which is cheaper and does not compare between splits.

        ``offset`` skips rows; ``search_after`` takes a page that a search returned and gives the
        one that follows it. ``literal=True`` searches for a pasted text as it stands.
        """
        asked = (query, columns, limit, fields, where, snippet, statistics)
        request = searching.Request(*asked, offset, search_after, literal)
        return searching.search(self, request)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.scan())

    def __len__(self) -> int:
        return self.count()
