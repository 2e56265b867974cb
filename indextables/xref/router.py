"""Routing a question past the splits that cannot hold its terms.

Every cross-reference that covers a candidate is asked; splits none covers are kept. A file that is
missing, broken, of another format, or not loaded before the timeout counts as covering nothing,
and the report says so. Splits are matched by their full path, since two partitions may hold files
of one name. A split two cross-references cover is dropped when either proves it absent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.config import Config
from indextables.errors import IndexTablesError
from indextables.expr.predicate import Predicate
from indextables.log.actions import AddXRef
from indextables.storage.base import Store
from indextables.xref.cache import XRefCache, shared_cache
from indextables.xref.evaluate import NOT_PRESENT, Evaluation
from indextables.xref.file import LoadedXRef, read_xref


@dataclass
class RouteReport:
    """What happened, in numbers and in one line."""

    before: int = 0
    after: int = 0
    covered: int = 0
    xrefs: int = 0
    failed: list[str] = field(default_factory=list)
    unevaluated: bool = False
    columns: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def detail(self) -> str:
        plural = "" if self.xrefs == 1 else "s"
        parts = [f"{self.xrefs} XRef{plural}", f"{self.covered:,} covered"]
        parts += [f"not used: {text}" for text in self.failed]
        return ", ".join(parts)

    def __str__(self) -> str:
        funnel = f"{self.before:,} -> {self.after:,}"
        return f"xref: {funnel}, {self.detail}, {self.seconds * 1e3:.2f} ms"


@dataclass(frozen=True)
class RouteResult:
    """``keep[j]`` is 0 when candidate ``j`` cannot match."""

    keep: NDArray[np.uint8]
    report: RouteReport


class XRefQueryRouter:
    """Routes queries over the tables of one store."""

    def __init__(self, store: Store, config: Config, cache: XRefCache | None = None) -> None:
        self.store = store
        self.config = config
        self.cache = shared_cache(config["xref.cache.maxSize"]) if cache is None else cache

    def route(
        self, snapshot: Any, candidates: NDArray[np.int64], predicate: Predicate
    ) -> RouteResult:
        """Judge the candidates; ``keep`` is 1 for all that may match."""
        start = time.perf_counter()
        report = RouteReport(before=len(candidates))
        wanted = np.zeros(snapshot.num_files, np.bool_)
        wanted[candidates] = True
        relevant = [x for x in snapshot.xrefs if wanted[self._live(snapshot, x)].any()]
        possible = np.ones(snapshot.num_files, np.bool_)
        covered = np.zeros(snapshot.num_files, np.bool_)
        columns: dict[str, None] = {}
        for action, loaded in self._load_all(relevant, report):
            places = self._positions(snapshot, action)
            found = self._judge(loaded, predicate, wanted, places, report, columns)
            covered[self._live(snapshot, action)] = True
            absent = places[~found]
            possible[absent[absent >= 0]] = False
        keep = possible[candidates].astype(np.uint8)
        report.covered = int(covered[candidates].sum())
        report.after = int(keep.sum())
        report.columns = tuple(columns)
        report.seconds = time.perf_counter() - start
        return RouteResult(keep, report)

    # -- judging --------------------------------------------------------------------------------

    def _judge(
        self,
        loaded: LoadedXRef,
        predicate: Predicate,
        wanted: NDArray[np.bool_],
        places: NDArray[np.int64],
        report: RouteReport,
        columns: dict[str, None],
    ) -> NDArray[np.bool_]:
        """Which source splits may match; splits nobody asks about may."""
        asked = (places >= 0) & wanted[places]
        found = np.ones(len(loaded.paths), np.bool_)
        for number, (mapping, schema) in enumerate(loaded.mappings):
            mask = asked & (loaded.mapping_of == number)
            if not mask.any():
                continue
            some = None if mask.all() else mask
            evaluation = Evaluation(loaded.filters, mapping, schema, loaded.hash_kind, some)
            verdicts = evaluation.predicate(predicate)
            found[mask & (verdicts == NOT_PRESENT)] = False
            report.unevaluated |= evaluation.unevaluated
            columns.update(evaluation.columns)
        return found

    # -- which splits ---------------------------------------------------------------------------

    def _positions(self, snapshot: Any, action: AddXRef) -> NDArray[np.int64]:
        """Where each source split stands in the snapshot; -1 for those that are gone."""
        key = ("xref.positions", action.path)
        found: NDArray[np.int64] | None = snapshot.derived.get(key)
        if found is None:
            places = [snapshot.index_of(p) for p in action.source_split_paths]
            found = np.array([-1 if p is None else p for p in places], np.int64)
            snapshot.derived[key] = found
        return found

    def _live(self, snapshot: Any, action: AddXRef) -> NDArray[np.int64]:
        key = ("xref.live", action.path)
        found: NDArray[np.int64] | None = snapshot.derived.get(key)
        if found is None:
            places = self._positions(snapshot, action)
            found = snapshot.derived[key] = places[places >= 0]
        return found

    # -- loading --------------------------------------------------------------------------------

    def _load_all(
        self, actions: Sequence[AddXRef], report: RouteReport
    ) -> list[tuple[AddXRef, LoadedXRef]]:
        """What could be loaded in time; files not in the cache are read side by side."""
        deadline = time.monotonic() + self.config["xref.query.timeoutMs"] / 1000
        absent = [a for a in actions if not self._is_cached(a)]
        found: list[tuple[AddXRef, LoadedXRef]] = []
        pool = ThreadPoolExecutor(4, thread_name_prefix="indextables-xref") if absent else None
        try:
            coming = {a.path: pool.submit(self._load, a) for a in absent} if pool else {}
            for action in actions:
                loaded = self._load_in_time(action, coming.get(action.path), deadline, report)
                if loaded is not None:
                    found.append((action, loaded))
        finally:
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
        report.xrefs = len(found)
        return found

    def _key(self, action: AddXRef) -> tuple[str, str, int]:
        return (self.store.identity, action.path, action.size)

    def _is_cached(self, action: AddXRef) -> bool:
        return self.cache.holds(self._key(action))

    def _load_in_time(
        self,
        action: AddXRef,
        coming: Future[LoadedXRef] | None,
        deadline: float,
        report: RouteReport,
    ) -> LoadedXRef | None:
        try:
            if coming is None:
                return self._load(action)
            return coming.result(timeout=max(0.0, deadline - time.monotonic()))
        except FutureTimeoutError:
            report.failed.append(f"{action.path} (timed out)")
        except (IndexTablesError, OSError) as error:
            if not self.config["xref.query.fallbackOnError"]:
                raise
            report.failed.append(f"{action.path} ({error})")
        return None

    def _load(self, action: AddXRef) -> LoadedXRef:
        return self.cache.get(self._key(action), lambda: self._read(action))

    def _read(self, action: AddXRef) -> LoadedXRef:
        loaded = read_xref(self.store.read(action.path), action.path)
        if loaded.paths != tuple(action.source_split_paths):
            raise IndexTablesError(
                "the cross-reference covers other splits than the log says", path=action.path
            )
        return loaded
