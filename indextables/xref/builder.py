"""Building cross-references: plan, gather filters, write, commit; again if another writer was
faster.

Each planned cross-reference is gathered, written and committed by itself, so memory holds the
filters of one at a time. Where those would take more than the build may have
(``xref.build.heapSize``), what is there so far becomes a cross-reference and the rest another. The
file is made in a work folder (``xref.build.tempDirectoryPath``) and uploaded from there. The commit
re-checks on the newest snapshot: when another builder covered the same splits meanwhile, ours is
dropped and planning starts again, at most a few times.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from indextables.config import Config
from indextables.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    IndexTablesError,
)
from indextables.expr.keys import HASH_KIND
from indextables.log.actions import Action, AddFile, AddXRef, RemoveXRef
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.log.retention.rules import discard
from indextables.progress import progress
from indextables.storage import pool, workfolders
from indextables.storage.deleting import Kind
from indextables.storage.scratch import in_scratch, scratch_folder
from indextables.xref.file import SourceFilter, write_xref
from indextables.xref.layout import new_xref_id, xref_path
from indextables.xref.rebuild import PlannedXRef, XRefRebuildPlan, evaluate_xref_rebuild
from indextables.xref.sources import gathered

LOG = logging.getLogger("indextables.xref")
MOST_ROUNDS = 5
DEFAULT_HEAP = 50 << 20
ZSTD_LEVEL = 3
WORK_FOLDER = "spark.indextables.xref.build.tempDirectoryPath"

Gather = Callable[[Sequence[AddFile], str], Iterator[SourceFilter | IndexTablesError]]


@dataclass(frozen=True, slots=True)
class XRefBuildResult:
    """One row of ``INDEX CROSSREFERENCES``."""

    table_path: str
    partition: str
    action: str
    xref_path: str
    source_splits_count: int
    total_terms: int
    xref_size_bytes: int
    build_duration_ms: int


class XRefBuildManager:
    """Builds the cross-references of one table."""

    def __init__(
        self, log: TransactionLog, config: Config | None = None, gather: Gather | None = None
    ) -> None:
        self.log = log
        self.config = config or log.config
        self._gather = gather or self._gather_in_threads

    def plan(
        self, snapshot: Snapshot, *, force: bool = False, scope: frozenset[str] | None = None
    ) -> XRefRebuildPlan:
        """What a build of this snapshot would do."""
        return evaluate_xref_rebuild(
            snapshot.xrefs,
            snapshot,
            max_source_splits=self._most_splits(),
            max_bytes=self._most_bytes(),
            rebuild_on_source_change=self.config["xref.autoIndex.rebuildOnSourceChange"],
            force=force,
            scope=scope,
        )

    @mutates("INDEX CROSSREFERENCES")
    def build_cross_references(
        self,
        *,
        scope: frozenset[str] | None = None,
        partition: str = "",
        force: bool = False,
        dry_run: bool = False,
        filter_type: str | None = None,
    ) -> list[XRefBuildResult]:
        """Build what is needed; one row per cross-reference, also for those left unchanged."""
        kind = filter_type or self.config["xref.build.filterType"]
        done: list[XRefBuildResult] = []
        for _ in range(MOST_ROUNDS):
            plan = self.plan(self.log.snapshot(), force=force, scope=scope)
            if dry_run:
                return [*self._foreseen(plan, partition), *self._unchanged(plan, partition)]
            try:
                done += self._run(plan, partition, kind)
                return [*done, *self._unchanged(plan, partition)]
            except CommitConflictError as error:
                LOG.info("another builder was faster, planning again: %s", error)
        raise CommitConflictError(
            "other writers kept changing the cross-references",
            path=self.log.path,
            hint="Run the build again when they are done",
        )

    def retire_orphans(self, *, dry_run: bool = False) -> list[AddXRef]:
        """Retire the cross-references that have no live source at all; nothing asks them again."""
        snapshot = self.log.snapshot()
        dead = [x for x in snapshot.xrefs if (snapshot.indices_of(x.source_split_paths) < 0).all()]
        if not dead or dry_run:
            return dead
        try:
            self._commit([], dead, frozenset())
        except CommitConflictError as error:
            LOG.info("cross-references were replaced meanwhile: %s", error)
            return []
        return dead

    # -- rows -----------------------------------------------------------------------------------

    def _row(
        self, partition: str, action: str, xref: AddXRef | None, count: int
    ) -> XRefBuildResult:
        return XRefBuildResult(
            table_path=self.log.path,
            partition=partition,
            action=action,
            xref_path=xref.path if xref else "",
            source_splits_count=count,
            total_terms=xref.total_terms if xref else 0,
            xref_size_bytes=xref.size if xref else 0,
            build_duration_ms=xref.build_duration_ms if xref and action in _BUILT else 0,
        )

    def _foreseen(self, plan: XRefRebuildPlan, partition: str) -> Iterator[XRefBuildResult]:
        for planned in plan.to_build:
            verb = "would_rebuild" if planned.replaces else "would_create"
            yield self._row(partition, verb, None, len(planned.sources))

    def _unchanged(self, plan: XRefRebuildPlan, partition: str) -> Iterator[XRefBuildResult]:
        for xref in plan.unchanged:
            yield self._row(partition, "unchanged", xref, xref.source_split_count)

    # -- building -------------------------------------------------------------------------------

    def _run(self, plan: XRefRebuildPlan, partition: str, kind: str) -> list[XRefBuildResult]:
        most = self.config["xref.build.maxXRefsPerRun"]
        rows = []
        chosen = plan.to_build[: most or None]
        with progress("cross-references", sum(len(p.sources) for p in chosen)) as bar:
            made = (
                (planned.action, built)
                for planned in chosen
                for built in self._build(planned, kind, bar.advance)
            )
            for action, built in islice(made, most):
                rows.append(self._row(partition, action, built, built.source_split_count))
        if plan.to_remove:
            self._commit([], plan.to_remove, frozenset())
        return rows

    def _build(
        self, planned: PlannedXRef, kind: str, advance: Callable[..., None]
    ) -> Iterator[AddXRef]:
        """One cross-reference, or as many as the memory of a build asks for."""
        replaces = planned.replaces
        start = time.monotonic()
        for sources in self._portions(self._gathered(planned.sources, kind, advance)):
            action = self._write(sources, kind, start)
            try:
                paths = frozenset(action.source_split_paths)
                self._commit([action], replaces, paths)
            except CommitStateUnknownError:
                raise
            except Exception:
                discard(self.log, Kind.XREF, [action.path])
                raise
            yield action
            replaces, start = (), time.monotonic()

    def _gathered(
        self, adds: Sequence[AddFile], kind: str, advance: Callable[..., None]
    ) -> Iterator[SourceFilter]:
        for found in self._gather(adds, kind):
            advance(1)
            if isinstance(found, SourceFilter):
                yield found
            else:
                LOG.warning("not covered by the cross-reference: %s", found)

    def _portions(self, filters: Iterator[SourceFilter]) -> Iterator[list[SourceFilter]]:
        """The filters in lists that take the memory of a build at most, or are of one filter."""
        most, taken = self._most_bytes(), 0
        portion: list[SourceFilter] = []
        for one in filters:
            if portion and taken + one.filter.nbytes > most:
                yield portion
                portion, taken = [], 0
            portion.append(one)
            taken += one.filter.nbytes
        if portion:
            yield portion

    def _most_splits(self) -> int:
        """Splits of one cross-reference in any build; the command may have its own number."""
        own = self.config.is_set("xref.build.maxSourceSplits")
        key = "xref.build.maxSourceSplits" if own else "xref.autoIndex.maxSourceSplits"
        most: int = self.config[key]
        return most

    def _most_bytes(self) -> int:
        """Memory for the filters of one cross-reference."""
        asked: int | None = self.config["xref.build.heapSize"]
        if asked is None and self.config.is_set("indexWriter.heapSize"):
            asked = self.config["indexWriter.heapSize"]
        return DEFAULT_HEAP if asked is None else asked

    def _write(self, sources: Sequence[SourceFilter], kind: str, start: float) -> AddXRef:
        xref_id = new_xref_id()
        path = xref_path(xref_id, self.config["xref.storage.directory"])
        written = write_xref(
            xref_id,
            self.log.table_id,
            sources,
            filter_type=kind,
            hash_kind=HASH_KIND,
            compression=ZSTD_LEVEL if self.config["xref.storage.compressionEnabled"] else 0,
        )
        self._upload(path, written.data)
        return AddXRef(
            path=path,
            xref_id=f"xref-{xref_id}",
            source_split_paths=tuple(s.path for s in sources),
            source_split_count=len(sources),
            size=len(written.data),
            total_terms=written.total_terms,
            footer_start_offset=written.footer_start,
            footer_end_offset=written.footer_end,
            created_time=int(time.time() * 1000),
            build_duration_ms=int((time.monotonic() - start) * 1000),
            max_source_splits=self._most_splits(),
        )

    def _upload(self, path: str, data: bytes) -> None:
        own = self.config["xref.build.tempDirectoryPath"]
        parent = own or self.config["indexWriter.tempDirectoryPath"]
        folder = scratch_folder("xref", parent, WORK_FOLDER)
        try:
            local = os.path.join(folder, os.path.basename(path))
            with in_scratch(os.path.dirname(os.path.dirname(folder)), WORK_FOLDER):
                with open(local, "wb") as file:
                    file.write(data)
                self.log.store.put_file(path, local)
        finally:
            workfolders.release(folder)

    def _commit(
        self,
        adds: Sequence[AddXRef],
        removes: Sequence[AddXRef],
        paths: frozenset[str],
    ) -> None:
        """Cross-references that come and go, in one version; the reason is one of the seed's."""
        gone = {x.path for x in removes}

        def actions(snapshot: Snapshot) -> list[Action]:
            for other in snapshot.xrefs:
                if other.path not in gone and paths.intersection(other.source_split_paths):
                    raise CommitConflictError(
                        "another cross-reference covers these splits", path=other.path
                    )
            now = int(time.time() * 1000)
            live = {x.path for x in snapshot.xrefs}
            missing = gone - live
            if missing:
                raise CommitConflictError("a cross-reference was replaced", path=missing.pop())
            return [*(retired(x, snapshot, now) for x in removes), *adds]

        self.log.commit(
            Transaction(
                self.log.snapshot(),
                "INDEX CROSSREFERENCES",
                parameters={"built": len(adds), "replaced": len(removes)},
                actions=actions,
            )
        )

    def _gather_in_threads(
        self, adds: Sequence[AddFile], kind: str
    ) -> Iterator[SourceFilter | IndexTablesError]:
        asked = self.config["xref.build.parallelism"]
        workers = asked or pool.workers(self.log.store, self.config["read.remoteParallelism"])

        def one(add: AddFile) -> SourceFilter | IndexTablesError:
            return gathered(self.log.store, add, self.config, kind)

        yield from pool.in_order(one, adds, workers)


def retired(xref: AddXRef, snapshot: Snapshot, now_ms: int) -> RemoveXRef:
    """The action that retires a cross-reference: its sources changed, or it is replaced."""
    stale = bool((snapshot.indices_of(xref.source_split_paths) < 0).any())
    return RemoveXRef(xref.path, xref.xref_id, now_ms, "source_changed" if stale else "replaced")


_BUILT = ("created", "rebuilt")
