"""Routing a question past the splits that cannot hold its terms.

Every cross-reference that covers a candidate is asked; splits none covers are kept. A file that is
missing, broken, of another format, or not loaded before the timeout counts as covering nothing,
and the report says so. Splits are matched by their full path, since two partitions may hold files
of one name. A split two cross-references cover is dropped when either proves it absent.

Asking has a price: files that are not loaded are read first. On an object store that is a request
and the file's bytes, against two requests and at least a footer for every split that need not be
opened; bytes and requests are added up in the store's own exchange rate (``coalesce_gap``: so many
bytes are worth a request), and half of the splits are taken to be dropped. On a local disk
requests cost nothing and the rule is by count. With the disk cache the files of an
object store are kept on local disk, from which the next process loads them without a request.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from indextables.config import Config
from indextables.errors import CorruptFileError, IndexTablesError
from indextables.expr.predicate import Predicate
from indextables.log.actions import AddXRef
from indextables.log.read.facts import Fact
from indextables.log.read.view import SnapshotView
from indextables.splits.read.source import TAIL_BYTES
from indextables.storage.base import Store
from indextables.storage.diskcache import xref_files
from indextables.storage.pool import submit
from indextables.xref.cache import XRefCache, shared_cache
from indextables.xref.evaluate import NOT_PRESENT, Question, Wording, judge
from indextables.xref.file import Kind, LoadedXRef, read_xref
from indextables.xref.telling import is_worth_asking

SPLIT_TRIPS = 2
LIKELY_DROPPED = 0.5
TRIP_S = 0.05


def patience_s(config: Config, candidates: int) -> float:
    """How long a query waits for its answers: no shorter than opening the candidates would take.

    So many are opened at once as the settings allow, each with two trips. A timeout that was given
    is kept.
    """
    wait: float = config["xref.query.timeoutMs"] / 1000
    if config.is_set("xref.query.timeoutMs"):
        return wait
    opening = candidates * SPLIT_TRIPS * TRIP_S / max(1, config["read.remoteParallelism"])
    return max(wait, float(opening))


@dataclass
class RouteReport:
    """What happened, in numbers and in one line."""

    before: int = 0
    after: int = 0
    covered: int = 0
    xrefs: int = 0
    keymaps: int = 0
    failed: list[str] = field(default_factory=list)
    unevaluated: bool = False
    columns: tuple[str, ...] = ()
    seconds: float = 0.0
    row_blocks: dict[int, int] = field(default_factory=dict)
    """Splits, by their place in the snapshot, whose only row that can match is in a known block."""

    @property
    def detail(self) -> str:
        plural = "" if self.xrefs == 1 else "s"
        parts = [f"{self.xrefs} XRef{plural}", f"{self.covered:,} covered"]
        if self.keymaps:
            parts.insert(0, f"{self.keymaps} key map{'' if self.keymaps == 1 else 's'}")
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


class Wordings:
    """One predicate in the words of every mapping that comes along, each made once."""

    def __init__(self, predicate: Predicate) -> None:
        self._predicate = predicate
        self._known: dict[tuple[int, str], tuple[Kind, Question, Wording]] = {}

    def of(self, kind: Kind, hash_kind: str) -> Wording:
        key = (id(kind), hash_kind)
        if key not in self._known:
            question = Question(kind.mapping, kind.schema, hash_kind, kind.neighbours)
            self._known[key] = (kind, question, question.predicate(self._predicate))
        return self._known[key][2]

    @property
    def unevaluated(self) -> bool:
        return any(question.unevaluated for _, question, _ in self._known.values())

    @property
    def columns(self) -> tuple[str, ...]:
        names = [name for _, question, _ in self._known.values() for name in question.columns]
        return tuple(dict.fromkeys(names))


OWNERS: Fact[None, tuple[NDArray[np.int32], list[int]]] = Fact()
POSITIONS: Fact[str, NDArray[np.int64]] = Fact()
LIVE: Fact[str, NDArray[np.int64]] = Fact()


def _same_splits(named: Sequence[str], logged: Sequence[str]) -> bool:
    """Does a file cover what the log says? Another program may name splits by whole addresses."""
    if tuple(named) == tuple(logged):
        return True
    return len(named) == len(logged) and all(
        "://" in uri and uri.endswith("/" + path) for uri, path in zip(named, logged, strict=True)
    )


class XRefQueryRouter:
    """Routes queries over the tables of one store."""

    def __init__(self, store: Store, config: Config, cache: XRefCache | None = None) -> None:
        self.store = store
        self.config = config
        self.cache = shared_cache(config["xref.cache.maxSize"]) if cache is None else cache
        self._on_disk = xref_files(store, config)

    def route(
        self, snapshot: SnapshotView, candidates: NDArray[np.int64], predicate: Predicate
    ) -> RouteResult:
        """Judge the candidates; ``keep`` is 1 for all that may match."""
        start = time.perf_counter()
        report = RouteReport(before=len(candidates))
        wanted = np.zeros(snapshot.num_files, np.bool_)
        wanted[candidates] = True
        relevant = self._relevant(snapshot, candidates, wanted)
        possible = np.ones(snapshot.num_files, np.bool_)
        covered = np.zeros(snapshot.num_files, np.bool_)
        wordings = Wordings(predicate)
        for action, loaded in self._load_all(relevant, report):
            places = self._positions(snapshot, action)
            possible[self._absent(loaded, wordings, wanted, places)] = False
            covered[self._live(snapshot, action)] = True
        keep = possible[candidates].astype(np.uint8)
        report.covered = int(covered[candidates].sum())
        report.after = int(keep.sum())
        report.unevaluated = wordings.unevaluated
        report.columns = wordings.columns
        report.seconds = time.perf_counter() - start
        return RouteResult(keep, report)

    def too_dear(
        self, snapshot: SnapshotView, candidates: NDArray[np.int64], predicate: Predicate
    ) -> str | None:
        """Why asking costs more than it is likely to save; ``None`` when it pays."""
        least = self.config["xref.query.minSplitsForXRef"]
        if not self.store.capabilities.remote:
            few = len(candidates) < least
            return f"{len(candidates)} candidates, fewer than {least}" if few else None
        if not is_worth_asking(self.store, self.config, snapshot, candidates, predicate):
            return "no term to ask for"
        wanted = np.zeros(snapshot.num_files, np.bool_)
        wanted[candidates] = True
        trip = self.store.coalesce_gap
        relevant = self._relevant(snapshot, candidates, wanted)
        if not relevant:
            return "no cross-reference covers the candidates"
        price = sum(trip + action.size for action in relevant if not self._is_near(action))
        saved = self.likely_saved(snapshot, candidates)
        if price <= saved:
            return None
        return f"{price >> 10:,} KB to ask, {saved >> 10:,} KB to save"

    def likely_saved(self, snapshot: SnapshotView, candidates: NDArray[np.int64]) -> int:
        """What need not be read of the candidates, in bytes, if half of them are dropped."""
        trip = self.store.coalesce_gap
        opening = np.minimum(snapshot.sizes[candidates], TAIL_BYTES) + SPLIT_TRIPS * trip
        return int(opening.sum() * LIKELY_DROPPED)

    # -- judging --------------------------------------------------------------------------------

    def _absent(
        self,
        loaded: LoadedXRef,
        wordings: Wordings,
        wanted: NDArray[np.bool_],
        places: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """The places of the wanted source splits that cannot match."""
        asked = wanted[places] & (places >= 0)
        found = np.zeros(len(places), np.bool_)
        for number, kind in enumerate(loaded.mappings):
            mask = asked if loaded.is_uniform else asked & (loaded.mapping_of == number)
            count = np.count_nonzero(mask)
            if count:
                some = None if count == len(mask) else mask
                wording = wordings.of(kind, loaded.hash_kind)
                found |= mask & (judge(wording, loaded.filters, some) == NOT_PRESENT)
        return places[found]

    # -- which splits ---------------------------------------------------------------------------

    def _relevant(
        self, snapshot: SnapshotView, candidates: NDArray[np.int64], wanted: NDArray[np.bool_]
    ) -> list[AddXRef]:
        """The cross-references that cover a candidate."""
        owner, doubled = self._owners(snapshot)
        asked = np.zeros(len(snapshot.xrefs) + 1, np.bool_)
        asked[owner[candidates]] = True
        for number in doubled:
            asked[number] |= wanted[self._live(snapshot, snapshot.xrefs[number])].any()
        return [snapshot.xrefs[number] for number in np.flatnonzero(asked[:-1]).tolist()]

    def _owners(self, snapshot: SnapshotView) -> tuple[NDArray[np.int32], list[int]]:
        """Which cross-reference covers each split (-1: none), and those that share a split."""

        def compute() -> tuple[NDArray[np.int32], list[int]]:
            owner = np.full(snapshot.num_files, -1, np.int32)
            doubled = []
            for number, action in enumerate(snapshot.xrefs):
                live = self._live(snapshot, action)
                free = owner[live] < 0
                if not free.all():
                    doubled.append(number)
                owner[live[free]] = number
            return owner, doubled

        return OWNERS.of(snapshot, None, compute)

    def owners(self, snapshot: SnapshotView) -> NDArray[np.int32]:
        """Which cross-reference covers each split; -1: none."""
        return self._owners(snapshot)[0]

    def _positions(self, snapshot: SnapshotView, action: AddXRef) -> NDArray[np.int64]:
        """Where each source split stands in the snapshot; -1 for those that are gone."""
        return POSITIONS.of(
            snapshot, action.path, lambda: snapshot.indices_of(action.source_split_paths)
        )

    def _live(self, snapshot: SnapshotView, action: AddXRef) -> NDArray[np.int64]:
        places = self._positions(snapshot, action)
        return LIVE.of(snapshot, action.path, lambda: places[places >= 0])

    # -- loading --------------------------------------------------------------------------------

    def loaded(self, actions: Sequence[AddXRef]) -> list[tuple[AddXRef, LoadedXRef]]:
        """Those of the cross-references that could be loaded in time."""
        return self._load_all(actions, RouteReport())

    def _load_all(
        self, actions: Sequence[AddXRef], report: RouteReport
    ) -> list[tuple[AddXRef, LoadedXRef]]:
        """What could be loaded in time; files not in the cache are read side by side."""
        deadline = time.monotonic() + patience_s(self.config, report.before)
        absent = [a for a in actions if not self._is_cached(a)]
        found: list[tuple[AddXRef, LoadedXRef]] = []
        coming = {a.path: submit(self._load, a) for a in absent}
        try:
            for action in actions:
                loaded = self._load_in_time(action, coming.get(action.path), deadline, report)
                if loaded is not None:
                    found.append((action, loaded))
        finally:
            for future in coming.values():
                future.cancel()
        report.xrefs = len(found)
        return found

    def _key(self, action: AddXRef) -> tuple[str, str, int]:
        return (self.store.identity, action.path, action.size)

    def _is_cached(self, action: AddXRef) -> bool:
        return self._key(action) in self.cache

    def _is_near(self, action: AddXRef) -> bool:
        """Does loading it take no request?"""
        disk = self._on_disk
        on_disk = disk is not None and disk.has(action.path, action.size)
        return self._is_cached(action) or on_disk

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
        except (IndexTablesError, OSError, MemoryError) as error:
            if not self.config["xref.query.fallbackOnError"]:
                raise
            report.failed.append(f"{action.path} ({error})")
        return None

    def _load(self, action: AddXRef) -> LoadedXRef:
        return self.cache.load(self._key(action), lambda: self._read(action))

    def _read(self, action: AddXRef) -> LoadedXRef:
        try:
            loaded = read_xref(self._bytes(action), action.path)
        except CorruptFileError:
            if self._on_disk is not None:
                self._on_disk.drop(action.path)
            raise
        if not _same_splits(loaded.paths, action.source_split_paths):
            raise IndexTablesError(
                "the cross-reference covers other splits than the log says", path=action.path
            )
        return loaded

    def _bytes(self, action: AddXRef) -> bytes:
        """The file: from local disk where it is kept there, else from the store."""
        if self._on_disk is None:
            return self.store.read(action.path)
        return self._on_disk.read(action.path, action.size)
