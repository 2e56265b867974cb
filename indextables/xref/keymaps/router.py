"""Routing a question with key maps: one trip for all buckets of all maps, then no more.

The wording of a predicate names its keys (``xref/evaluate.py``). Each key lies in one bucket of
each map; all of them are fetched side by side, so however many maps there are, the answer takes
one trip once the maps are open. What a bucket says is exact for the splits it covers but for keys
whose hashes fall together, and a key that is everywhere may be in any of them. The answers are
combined as those of filters are, by the same code: only ``NOT_PRESENT`` drops a split.

Splits that no usable map covers are asked of the cross-references. What fails (a map, a bucket, a
timeout) covers nothing, and the report says so.

Asking costs a trip and a bucket for each map and key, and a tail for each map that is not open
yet; that is weighed against opening the splits as for cross-references. Of a map in shards the
first is opened for the names of the splits, then those that hold the keys.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.config import Config
from indextables.errors import CorruptFileError, IndexTablesError, SchemaMismatchError
from indextables.expr.keys import HASH_KIND
from indextables.expr.predicate import Predicate
from indextables.log.actions import AddKeyMap
from indextables.log.read.view import SnapshotView
from indextables.lru import LRU
from indextables.splits.format.keymap import BUCKET_BYTES, TAIL_BYTES, KeyMap
from indextables.storage.base import Store
from indextables.storage.diskcache import cached
from indextables.storage.pool import in_order, submit, workers
from indextables.xref.evaluate import (
    NOT_PRESENT,
    Conjunction,
    Disjunction,
    Probe,
    Wording,
    judge,
)
from indextables.xref.file import described_kind
from indextables.xref.keymaps.catalog import Catalog, Files, grouped, places_of
from indextables.xref.router import (
    RouteReport,
    RouteResult,
    Wordings,
    XRefQueryRouter,
    patience_s,
)
from indextables.xref.telling import is_worth_asking

Bools = NDArray[np.bool_]
Said = dict[int, tuple[int, NDArray[np.uint32] | None, int] | None]
LIKELY_KEYS = 2
SAID_BYTES = 4 << 20
"""What a router remembers of the answers it got."""
_NOWHERE = np.empty(0, np.uint32)


def _nbytes(answer: Any) -> int:
    ids = None if answer[0] is None else answer[0][1]
    return 256 + (0 if ids is None else int(ids.nbytes))


class Answers:
    """What a map says of some keys, with the methods ``judge`` asks filters with."""

    def __init__(self, splits: int, said: Said) -> None:
        self._splits = splits
        self._known = {key: _NOWHERE if a is None else a[1] for key, a in said.items()}
        self._blocks = {key: -1 if a is None else a[2] for key, a in said.items()}

    def __len__(self) -> int:
        return self._splits

    def probe(self, key: int, mask: Any = None) -> Bools:
        ids = self._known[key]
        if ids is None:
            return np.ones(self._splits, np.bool_)
        found = np.zeros(self._splits, np.bool_)
        found[ids] = True
        return found

    def only_row(self, key: int) -> tuple[int, int] | None:
        """The split and row block of the one document that holds a key, where that is known."""
        ids, block = self._known[key], self._blocks[key]
        return (int(ids[0]), block) if ids is not None and block >= 0 else None

    def probe_any(self, keys: Any, mask: Any = None) -> Bools:
        return reduce(np.logical_or, [self.probe(int(key)) for key in keys])

    def probe_all(self, keys: Any, mask: Any = None) -> Bools:
        return reduce(np.logical_and, [self.probe(int(key)) for key in keys])


def keys_of(wording: Wording) -> Iterator[int]:
    """Every key hash a wording asks for."""
    if isinstance(wording, Probe):
        yield from (int(key) for key in wording.hashes)
    elif isinstance(wording, Conjunction | Disjunction):
        for part in wording.parts:
            yield from keys_of(part)


def _needed(wording: Wording) -> Iterator[int]:
    """Keys without which no row can match."""
    if isinstance(wording, Probe) and (wording.every or len(wording.hashes) == 1):
        yield from (int(key) for key in wording.hashes)
    elif isinstance(wording, Conjunction):
        for part in wording.parts:
            yield from _needed(part)


def fetch(store: Store, found: KeyMap, keys: Sequence[int]) -> Said:
    """What a map says of each key, in one read of the buckets."""
    buckets = sorted({found.bucket_of(key) for key in keys})
    ranges = [found.range_of(bucket) for bucket in buckets]
    if found.whole:
        raws = [found.whole[start:end] for start, end in ranges]
    else:
        raws = store.read_ranges(found.path, ranges)
    by_bucket = dict(zip(buckets, raws, strict=True))
    return {key: found.probe(by_bucket[found.bucket_of(key)], key) for key in dict.fromkeys(keys)}


def ask(catalog: Catalog, files: Files, keys: Sequence[int]) -> Said:
    """What a map says of each key; its shards are opened and read side by side."""
    wanted: dict[AddKeyMap, list[int]] = {}
    for key in keys:
        wanted.setdefault(files.of(key), []).append(key)
    said: Said = {}
    ask_one = partial(_ask_one, catalog)
    for answers in in_order(ask_one, wanted.items(), workers(catalog.store)):
        said.update(answers)
    return said


def _ask_one(catalog: Catalog, asked: tuple[AddKeyMap, list[int]]) -> Said:
    return fetch(catalog.store, catalog.open(asked[0]), asked[1])


@dataclass
class _Asked:
    """One map that covers candidates: where its splits stand, and what is asked of each kind."""

    files: Files
    map: KeyMap
    places: NDArray[np.int64]
    wordings: list[tuple[Bools, Wording]]

    @property
    def keys(self) -> list[int]:
        return list(dict.fromkeys(key for _, wording in self.wordings for key in keys_of(wording)))

    def row_blocks(self, answers: Answers) -> dict[int, int]:
        """Where the only row that can match must be, if a key of one document has to be in it.

        Keys that fall together in one split are two documents there, so their block is unknown;
        a block of a key that is not in the split after all leads to no row, which is right too.
        """
        found: dict[int, int] = {}
        for mask, wording in self.wordings:
            for key in _needed(wording):
                only = answers.only_row(key)
                if only is not None and mask[only[0]] and self.places[only[0]] >= 0:
                    found.setdefault(int(self.places[only[0]]), only[1])
        return found

    def absent(self, answers: Answers) -> NDArray[np.int64]:
        """The places of the splits that cannot match."""
        found = np.zeros(len(self.places), np.bool_)
        for mask, wording in self.wordings:
            verdicts = judge(wording, answers, None)  # type: ignore[arg-type]
            found |= mask & (verdicts == NOT_PRESENT)
        return self.places[found]


class KeyMapRouter:
    """Routes queries by key maps, and by cross-references where no map covers a candidate."""

    def __init__(self, store: Store, config: Config, catalog: Catalog | None = None) -> None:
        self.store = store
        self.config = config
        most = config["xref.cache.maxSize"]
        self.catalog = catalog or Catalog(store, most, cached(store, config))
        self._xrefs = XRefQueryRouter(store, config)
        self._said: LRU[tuple[str, int], Any] = LRU(most_bytes=SAID_BYTES, size_of=_nbytes)

    def route(
        self, snapshot: SnapshotView, candidates: NDArray[np.int64], predicate: Predicate
    ) -> RouteResult:
        """Judge the candidates; ``keep`` is 1 for all that may match."""
        start = time.perf_counter()
        report = RouteReport(before=len(candidates))
        possible = np.ones(snapshot.num_files, np.bool_)
        covered = np.zeros(snapshot.num_files, np.bool_)
        wanted = np.zeros(snapshot.num_files, np.bool_)
        wanted[candidates] = True
        wordings = Wordings(predicate)
        maps = self._opened(snapshot, report)
        asked = self._relevant(snapshot, maps, wanted, wordings, report)
        for one, answers in self._answers(asked, report):
            possible[one.absent(answers)] = False
            report.row_blocks.update(one.row_blocks(answers))
            covered[one.places[one.places >= 0]] = True
        report.keymaps = len(asked)
        self._ask_xrefs(snapshot, wanted & ~covered, predicate, possible, covered, report)
        keep = possible[candidates].astype(np.uint8)
        report.covered = int(covered[candidates].sum())
        report.after = int(keep.sum())
        report.unevaluated |= wordings.unevaluated
        report.columns = tuple(dict.fromkeys([*wordings.columns, *report.columns]))
        report.seconds = time.perf_counter() - start
        return RouteResult(keep, report)

    def too_dear(
        self, snapshot: SnapshotView, candidates: NDArray[np.int64], predicate: Predicate
    ) -> str | None:
        """Why asking costs more than it is likely to save; ``None`` when it pays."""
        if self.store.capabilities.remote and is_worth_asking(
            self.store, self.config, snapshot, candidates, predicate
        ):
            saved = self._xrefs.likely_saved(snapshot, candidates)
            if self._price(snapshot.keymaps) <= saved:
                return None
        return self._xrefs.too_dear(snapshot, candidates, predicate)

    def _price(self, actions: Sequence[AddKeyMap]) -> int:
        trip = self.store.coalesce_gap
        price = 0
        for files in grouped(actions)[0]:
            first = files.first
            if files.size > TAIL_BYTES:
                price += LIKELY_KEYS * (trip + BUCKET_BYTES)
            if not first.opening and not self.catalog.is_open(first):
                price += trip + min(first.size, first.tail or TAIL_BYTES)
            if len(files.actions) > 1:
                price += LIKELY_KEYS * (trip + files.actions[1].tail)
        return price

    # -- asking -----------------------------------------------------------------------------------

    def _opened(self, snapshot: SnapshotView, report: RouteReport) -> list[tuple[Files, KeyMap]]:
        timeout = patience_s(self.config, report.before)
        groups, stray = grouped(snapshot.keymaps)
        opened = self.catalog.open_all([group.first for group in groups], timeout)
        maps = []
        for group, found in zip(groups, opened, strict=True):
            if isinstance(found, KeyMap):
                maps.append((group, found))
            else:
                self._failed(group.first.path, found, report)
        for action in stray:
            error = CorruptFileError("a part of the key map is missing", path=action.path)
            self._failed(action.path, error, report)
        return maps

    def _failed(self, path: str, error: Exception, report: RouteReport) -> None:
        timed_out = isinstance(error, FutureTimeoutError | TimeoutError)
        if not timed_out and not self.config["xref.query.fallbackOnError"]:
            raise error
        report.failed.append(f"{path} ({'timed out' if timed_out else error})")

    def _relevant(
        self,
        snapshot: SnapshotView,
        maps: Sequence[tuple[Files, KeyMap]],
        wanted: Bools,
        wordings: Wordings,
        report: RouteReport,
    ) -> list[_Asked]:
        """The maps that cover a candidate, with what is asked of them."""
        asked = []
        for files, found in maps:
            try:
                one = self._asked(snapshot, files, found, wanted, wordings)
            except (CorruptFileError, SchemaMismatchError, ValueError, LookupError) as error:
                self._failed(found.path, error, report)
                continue
            if one is not None:
                asked.append(one)
        return asked

    def _asked(
        self, snapshot: SnapshotView, files: Files, found: KeyMap, wanted: Bools, wordings: Wordings
    ) -> _Asked | None:
        places = places_of(snapshot, found)
        asked = (places >= 0) & wanted[places]
        if not asked.any():
            return None
        numbers = found.kinds.numbers()
        parts = []
        for number, texts in enumerate(found.kinds.texts):
            mask = asked & (numbers == number)
            if mask.any():
                parts.append((mask, wordings.of(described_kind(*texts), HASH_KIND)))
        return _Asked(files, found, places, parts)

    def _answers(
        self, asked: Sequence[_Asked], report: RouteReport
    ) -> Iterator[tuple[_Asked, Answers]]:
        """What each map says; all are read at once."""
        deadline = time.monotonic() + patience_s(self.config, report.before)
        coming = [submit(self._fetch, one) for one in asked]
        try:
            for one, future in zip(asked, coming, strict=True):
                try:
                    yield one, future.result(max(0.0, deadline - time.monotonic()))
                except (FutureTimeoutError, IndexTablesError, OSError, MemoryError) as error:
                    self._failed(one.map.path, error, report)
        finally:
            for future in coming:
                future.cancel()

    def _fetch(self, one: _Asked) -> Answers:
        """What a map says; splits with other residuals ask for the same keys once more."""
        path = one.map.path
        known: dict[int, Any] = {key: self._said.get((path, key)) for key in one.keys}
        new = [key for key, answer in known.items() if answer is None]
        for key, answer in (ask(self.catalog, one.files, new) if new else {}).items():
            known[key] = (answer,)
            self._said.put((path, key), known[key])
        return Answers(one.map.splits, {key: answer[0] for key, answer in known.items()})

    def _ask_xrefs(
        self,
        snapshot: SnapshotView,
        left: Bools,
        predicate: Predicate,
        possible: Bools,
        covered: Bools,
        report: RouteReport,
    ) -> None:
        """Ask the cross-references about what no map covered."""
        rest = np.flatnonzero(left)
        if not snapshot.xrefs or not len(rest):
            return
        result = self._xrefs.route(snapshot, rest, predicate)
        possible[rest[result.keep == 0]] = False
        report.xrefs = result.report.xrefs
        report.failed += result.report.failed
        report.unevaluated |= result.report.unevaluated
        report.columns = result.report.columns
        covered |= left & (self._xrefs.owners(snapshot) >= 0)
