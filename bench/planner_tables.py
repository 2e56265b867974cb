"""Synthetic snapshots of any size, columnar from the start: one split per ``ROWS`` ids.

``clustered`` data is laid out as a log-structured table is: ids and days ascend with the splits.
``scattered`` data has the same splits in random order, so that runs of splits cover everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.config import Config
from indextables.log.actions import AddXRef
from indextables.log.read.columns import StringColumn
from indextables.log.read.facts import Facts
from indextables.log.read.ledger import ColumnIndexes
from indextables.mapping import DocMapping
from indextables.native import BinaryFuse8, FilterSet
from indextables.xref.cache import new_cache
from indextables.xref.file import Kind, LoadedXRef
from indextables.xref.router import XRefQueryRouter

ROWS = 1000
SIZE = 128 << 20
DAYS = 1000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("price", pa.float64()),
        ("host", pa.string()),
        ("status", pa.int32()),
        ("day", pa.date32()),
    ]
)


@dataclass
class Columns:
    """Bounds of every split as arrays; the peers are given the same numbers."""

    id_low: Any
    id_high: Any
    host_low: Any
    host_high: Any
    day: Any


def columns(n: int, scattered: bool = False) -> Columns:
    order = np.arange(n, dtype=np.int64)
    if scattered:
        np.random.default_rng(7).shuffle(order)
    hosts = pa.array(order % 5000)
    padded = pc.utf8_lpad(hosts.cast(pa.string()), 5, "0")
    return Columns(
        id_low=order * ROWS,
        id_high=order * ROWS + ROWS - 1,
        host_low=pc.binary_join_element_wise("host-", padded, "-a", ""),
        host_high=pc.binary_join_element_wise("host-", padded, "-z", ""),
        day=order * DAYS // n,
    )


class SyntheticSnapshot:
    """What the planner asks of a snapshot, without a log behind it."""

    def __init__(self, n: int, scattered: bool = False) -> None:
        self.columns = columns(n, scattered)
        self.schema = SCHEMA
        self.partition_columns = ("day",)
        self.stored_schema, self.stored_partition_columns = SCHEMA, self.partition_columns
        self.version, self.num_files = 1, n
        self.sizes = np.full(n, SIZE, np.int64)
        self.num_records = np.full(n, ROWS, np.int64)
        self.live_records = self.num_records
        self.footer_starts = self.footer_ends = np.full(n, -1, np.int64)
        self.table_mapping = self.manifest_of = None
        self.mapping_registry: dict[str, str] = {}
        self.xrefs = self.keymaps = self.manifest_partition_bounds = ()
        self.indexes = ColumnIndexes()
        self.facts = Facts()
        numbers = pa.array(np.arange(n)).cast(pa.string())
        self.paths = pc.binary_join_element_wise("part-", numbers, ".split", "")
        days = pa.array(np.arange(DAYS, dtype=np.int32) + 19000).cast(pa.date32())
        self._days: list[str | None] = days.cast(pa.string()).to_pylist()
        self._codes = self.columns.day.astype(np.int32)
        self._texts: dict[tuple[str, str], StringColumn] = {}

    def partition_codes(self, column: str) -> tuple[Any, list[str | None]]:
        return self._codes, self._days

    def stat_column(self, which: str, column: str) -> StringColumn | None:
        key = (which, column)
        if key not in self._texts:
            self._texts[key] = StringColumn.from_arrow(self._bounds(which, column))
        return self._texts[key]

    def _bounds(self, which: str, column: str) -> Any:
        low = which == "min"
        c = self.columns
        if column == "host":
            return c.host_low if low else c.host_high
        ids = c.id_low if low else c.id_high
        if column == "price":
            return pa.array(ids * 0.25).cast(pa.string())
        if column == "status":
            return pa.array(np.full(self.num_files, 100 if low else 599)).cast(pa.string())
        return pa.array(ids * 1_000_000 if column == "ts" else ids).cast(pa.string())

    def vectors(self, numbers: Any) -> list[None]:
        return [None] * len(numbers)

    def derive(self, fact: Any, key: Any, build: Any) -> Any:
        """All splits as one segment."""
        return fact.of(self, key, lambda: build(self))

    @property
    def n(self) -> int:
        return self.num_files

    def ints(self, name: str) -> Any:
        return self.num_records

    def texts(self, name: str) -> StringColumn:
        return self.text_column(name)

    def map_texts(self, name: str, column: str) -> StringColumn | None:
        return self.stat_column({"minValues": "min", "maxValues": "max"}[name], column)

    def counts(self, kind: str, column: str) -> Any:
        return np.zeros(self.num_files, np.int64)

    def text_column(self, name: str) -> StringColumn:
        key = ("doc", name)
        if key not in self._texts:
            text = '{"tightBounds":true,"truncated":[]}' if name == "stats" else None
            whole = pa.array([text], pa.large_string()).take(
                pa.array(np.zeros(self.num_files, int))
            )
            self._texts[key] = StringColumn.from_arrow(whole)
        return self._texts[key]

    def file(self, i: int) -> Any:
        return self.paths[i].as_py()


# -- cross-references over all splits ------------------------------------------------------------

PER_XREF = 1024
KEYS = 500
SHARED = 8  # sets of filters that are truly built; the memory of all would be tens of gigabytes


def with_xrefs(snapshot: SyntheticSnapshot) -> XRefQueryRouter:
    """Cross-references of 1,024 splits each over the whole snapshot, in the cache of a router."""
    mapping = DocMapping.for_schema(SCHEMA)
    keys = np.random.default_rng(11).integers(0, 1 << 62, PER_XREF + KEYS).astype(np.uint64)
    built = [BinaryFuse8.build(keys[i : i + KEYS], round_segments=True) for i in range(PER_XREF)]
    paths = snapshot.paths.to_pylist()
    cache = new_cache(8 << 30)
    store: Any = SimpleNamespace(identity="bench")
    sets = [FilterSet(built) for _ in range(SHARED)]
    actions = []
    for number, start in enumerate(range(0, len(paths), PER_XREF)):
        mine = tuple(paths[start : start + PER_XREF])
        filters = sets[number % SHARED] if len(mine) == PER_XREF else FilterSet(built[: len(mine)])
        name = f"_xrefsplits/aaaa/xref-{number}.split"
        zeros = np.zeros(len(mine), np.int32)
        kinds, footers = (Kind(mapping, SCHEMA),), np.zeros((len(mine), 2), np.int64)
        loaded = LoadedXRef(name, mine, filters, zeros, kinds, "xxh64", 0, footers)
        cache.load(("bench", name, 1), lambda x=loaded: x)
        actions.append(AddXRef(name, f"xref-{number}", mine, len(mine), 1))
    places = {path: i for i, path in enumerate(paths)}
    known: Any = snapshot
    known.xrefs = actions
    known.indices_of = lambda paths: np.array([places.get(p, -1) for p in paths], np.int64)
    return XRefQueryRouter(store, Config(), cache)
