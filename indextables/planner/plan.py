"""From filters to the fewest splits.

``Planner.plan`` runs the stages in order: bind, partition values, min/max, cross-references,
limit. Each narrows the list of splits that the next one looks at; what none of them can exclude
is kept. A ``Plan`` holds the outcome and answers questions about it lazily: the splits, the
residual predicate and its tasks, the report, the explanation, the reason for one split.

A plan is exact about what it drops, never about what it keeps. ``count()`` answers from the log
alone when every kept split must match; ``limit`` is met from such splits first.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from indextables.config import Config, checked_count
from indextables.errors import PlanningError, UnknownColumnError
from indextables.expr.predicate import Predicate, Undecided, leaves
from indextables.log.actions.protocol import is_companion
from indextables.log.read.facts import Fact
from indextables.log.read.view import FileList
from indextables.planner.binding import bind_cached
from indextables.planner.explain.report import PlanReport, StageReport
from indextables.planner.resolve import Target, resolve
from indextables.planner.stages import xref
from indextables.planner.stages.program import BOUNDS, CONSTANT, PARTITION, Options, Program
from indextables.planner.stages.residual import ResidualGroup, residual_groups, shared_residual
from indextables.planner.stages.verdict import (
    MUST_MATCH,
    Int64s,
    Selection,
    Verdicts,
)
from indextables.planner.tasks import (
    WHOLE_BYTES,
    SplitTask,
    deal_out,
    default_parallelism,
    index_refs,
    split_refs,
    splits_per_task,
)

MOST_GROUPED = 20_000
BYTES: Fact[None, int] = Fact()


class Stage(NamedTuple):
    """A stage as it ran; ``selection`` of ``None`` is every split."""

    name: str
    columns: tuple[str, ...]
    selection: Selection | None
    seconds: float
    detail: str = ""
    row_blocks: Mapping[int, int] = MappingProxyType({})
    """Splits whose only row that can match is in a known block of rows, by number."""
    unevaluated: bool = False


class Planner:
    """Plans queries over one snapshot."""

    def __init__(
        self,
        table: Any,
        *,
        config: Config | None = None,
        options: Mapping[str, Any] | None = None,
        xref_router: xref.XRefRouter | None = None,
        time_zone: str = "UTC",
        case_sensitive: bool = False,
        parallelism: int | None = None,
    ) -> None:
        self.target: Target = resolve(table, config)
        self.snapshot = self.target.snapshot
        _refuse_without_source(self.snapshot)
        self.config = Config.of(options, self.target.config) if options else self.target.config
        self.xref_router = xref_router or self._own_router()
        self.time_zone = time_zone
        self.case_sensitive = case_sensitive
        self.parallelism = parallelism or default_parallelism()

    def _own_router(self) -> xref.XRefRouter | None:
        """A router over the table's store, where the table has something to route by."""
        if self.target.store is None:
            return None
        from indextables.xref.routing import router_of

        return router_of(self.target.store, self.snapshot, self.config)

    def bind(self, filters: Any) -> Predicate:
        """The predicate of filters in any form; bound once per snapshot and filter."""
        return bind_cached(
            filters,
            self.snapshot,
            self.time_zone,
            self.case_sensitive,
            self.config["indexquery.indexall.maxUnqualifiedFields"],
        )

    def plan(
        self, filters: Any = None, columns: Sequence[str] | None = None, limit: int | None = None
    ) -> Plan:
        """The splits that can hold matching rows, and what is left to check in them."""
        start = time.perf_counter()
        names = self._columns(columns)
        if limit is not None:
            limit = checked_count(limit)
        predicate = self.bind(filters)
        bound = time.perf_counter()
        return self._within(predicate)._planned(predicate, names, limit, start, bound)

    def _within(self, predicate: Predicate) -> Planner:
        """A planner over the files that the filter can need, as the log's manifests say."""
        within = getattr(self.snapshot, "within", None)
        narrowed = self.snapshot if within is None else within(predicate)
        if narrowed is self.snapshot:
            return self
        other = copy.copy(self)
        other.snapshot = narrowed
        return other

    def _planned(
        self,
        predicate: Predicate,
        names: tuple[str, ...] | None,
        limit: int | None,
        start: float,
        bound: float,
    ) -> Plan:
        program = Program(predicate, self.snapshot, self._options())
        stages = list(self._narrow(program))
        if limit is not None:
            stages.extend(_meet_limit(program, stages[-1].selection, limit))
        end = time.perf_counter()
        return Plan(self, program, names, limit, stages, bound - start, end - start)

    def _options(self) -> Options:
        return Options(
            prefixes=self.config["filter.stringStartsWith.pushdown"],
            suffixes=self.config["filter.stringEndsWith.pushdown"],
            infixes=self.config["filter.stringContains.pushdown"],
            patterns=self.config["filter.stringPattern.pushdown"],
        )

    def _columns(self, columns: Sequence[str] | None) -> tuple[str, ...] | None:
        if columns is None:
            return None
        if isinstance(columns, str):
            raise PlanningError("columns are a list of names", hint=f"Write columns=['{columns}']")
        known = {name if self.case_sensitive else name.lower(): name for name in self._names()}
        found = []
        for column in columns:
            name = known.get(column if self.case_sensitive else column.lower())
            if name is None:
                raise UnknownColumnError.of(column, self._names())
            found.append(name)
        return tuple(found)

    def _names(self) -> list[str]:
        return list(self.snapshot.schema.names)

    def _narrow(self, program: Program) -> Iterator[Stage]:
        selection: Selection | None = None
        yield Stage("list", (), None, 0.0)
        known = CONSTANT
        for name, stage in (("partition", PARTITION), ("min/max", BOUNDS)):
            known |= stage
            last = stage == BOUNDS
            if not last and not program.knows(stage):
                continue
            start = time.perf_counter()
            narrowed = program.narrow(selection, known)
            if last:
                narrowed = program.without_empty(narrowed)
            seconds = time.perf_counter() - start
            if not last or narrowed is not selection or program.knows(stage):
                selection = narrowed
                yield Stage(name, tuple(program.columns(stage)), selection, seconds)
        yield from self._route(program, selection)

    def _route(self, program: Program, selection: Selection | None) -> Iterator[Stage]:
        if self.xref_router is None:
            return
        left = shared_residual(program, selection)
        reason = xref.skip_reason(self.xref_router, self.config, self.snapshot, selection, left)
        if reason is not None:
            yield Stage("xref", (), selection, 0.0, f"skipped: {reason}")
            return
        questions = _questions(program, selection, left)
        routed = xref.route(self.xref_router, self.snapshot, questions, self.config)
        yield Stage("xref", *routed.told)


def _questions(
    program: Program, selection: Selection | None, shared: Predicate
) -> list[tuple[Predicate, Int64s]]:
    """What to ask about which candidates: by residual where they are few, else all at once."""
    if selection is None:
        return [(shared, np.arange(program.count))]
    if len(selection) <= MOST_GROUPED:
        groups = residual_groups(program, selection)
        return [(g.predicate, selection[g.positions].astype(np.int64)) for g in groups]
    return [(shared, selection.astype(np.int64))]


def _refuse_without_source(snapshot: Any) -> None:
    """A companion's log alone does not say which rows there are now; its source does."""
    metadata = getattr(snapshot, "metadata", None)
    if metadata is not None and is_companion(metadata) and snapshot.lag is None:
        raise PlanningError(
            "a companion is read together with the table that it indexes",
            hint="Plan over indextables.open(path)",
        )


def _meet_limit(program: Program, selection: Selection | None, limit: int) -> Iterator[Stage]:
    """Enough splits in which every row matches make all others unnecessary."""
    start = time.perf_counter()
    chosen = np.arange(program.count, dtype=np.int32) if selection is None else selection
    rows = program.snapshot.live_records[chosen]
    sure = (program.verdicts(selection) == MUST_MATCH) & (rows > 0)
    certain = np.cumsum(rows[sure])
    if limit == 0 or (len(certain) and certain[-1] >= limit):
        needed = 0 if limit == 0 else int(np.searchsorted(certain, limit)) + 1
        detail = f"{needed} splits hold {limit} matching rows"
        seconds = time.perf_counter() - start
        yield Stage("limit", (), chosen[sure][:needed], seconds, detail)


class Plan:
    """What a query has to read, and why."""

    def __init__(
        self,
        planner: Planner,
        program: Program,
        columns: tuple[str, ...] | None,
        limit: int | None,
        stages: list[Stage],
        bind_seconds: float,
        seconds: float,
    ) -> None:
        self.planner = planner
        self.program = program
        self.snapshot = planner.snapshot
        self.predicate: Predicate = program.predicate
        self.columns = columns
        self.limit = limit
        self.stages = stages
        self.bind_seconds = bind_seconds
        self.seconds = seconds

    def __len__(self) -> int:
        selection = self.stages[-1].selection
        return self.program.count if selection is None else len(selection)

    # -- splits ---------------------------------------------------------------------------------

    @cached_property
    def selection(self) -> Selection:
        """Numbers of the kept splits, ascending."""
        selection = self.stages[-1].selection
        if selection is None:
            return np.arange(self.program.count, dtype=np.int32)
        return selection

    @property
    def indices(self) -> Int64s:
        """The same as 64-bit numbers."""
        return self.selection.astype(np.int64)

    @property
    def splits(self) -> FileList:
        """The kept splits as the log's entries."""
        return FileList(self.snapshot, self.indices)

    @cached_property
    def verdicts(self) -> Verdicts:
        """One verdict for each kept split."""
        return self.program.verdicts(self.stages[-1].selection)

    @property
    def must_match(self) -> int:
        """How many of the kept splits match with every row."""
        return int(np.count_nonzero(self.verdicts == MUST_MATCH))

    @cached_property
    def residual(self) -> Predicate:
        """What is left to check in any of the kept splits."""
        if len(self) == 1:
            return self.residual_groups[0].predicate
        return shared_residual(self.program, self.stages[-1].selection)

    @cached_property
    def residual_groups(self) -> list[ResidualGroup]:
        """The kept splits by what is left to check in them."""
        return residual_groups(self.program, self.selection)

    @property
    def unevaluated(self) -> bool:
        """Were cross-references asked something that their filters cannot decide?

        Then splits may be kept that do not match: a range, a pattern or a negation was in it.
        """
        return any(stage.unevaluated for stage in self.stages)

    def count(self) -> int | None:
        """How many rows match, when the log alone can tell."""
        rows = self.snapshot.live_records[self.selection]
        if self.must_match < len(self) or (len(rows) and int(rows.min()) < 0):
            return None
        total = int(rows.sum())
        return total if self.limit is None else min(total, self.limit)

    @property
    def undecided(self) -> tuple[Undecided, ...]:
        """Parts of the residual that only a full engine can decide."""
        return tuple(leaf for leaf in leaves(self.residual) if isinstance(leaf, Undecided))

    def check_decidable(self) -> None:
        """Raise unless every part left to check can be checked without another engine."""
        from indextables.expr.evaluate import can_evaluate

        if not can_evaluate(self.residual):
            parts = ", ".join(sorted({leaf.text for leaf in self.undecided}))
            raise PlanningError(
                f"cannot evaluate {parts or self.residual!r} here",
                hint="Run the query through Spark, or rewrite this condition",
            )

    @cached_property
    def tasks(self) -> list[SplitTask]:
        """The kept splits in groups, each with its residual predicate."""
        planner = self.planner
        per_task = splits_per_task(planner.config, len(self), planner.parallelism)
        whole = int(self.snapshot.sizes[self.selection].sum()) <= WHOLE_BYTES
        found: list[tuple[int, int, SplitTask]] = []
        blocks = {i: block for stage in self.stages for i, block in stage.row_blocks.items()}
        for group in self.residual_groups:
            members = self.selection[group.positions]
            sure = bool((self.verdicts[group.positions] == MUST_MATCH).all())
            for part in deal_out(self.snapshot.sizes[members], per_task):
                chosen = members[part]
                refs = tuple(split_refs(self.snapshot, chosen.tolist()))
                task = SplitTask(
                    splits=refs,
                    predicate=group.predicate,
                    columns=self.columns,
                    limit=self.limit,
                    table_path=planner.target.path,
                    storage_options=planner.target.storage_options,
                    indexes=index_refs(self.snapshot, refs),
                    row_blocks={
                        ref.path: blocks[i]
                        for i, ref in zip(chosen.tolist(), refs, strict=True)
                        if i in blocks
                    },
                    whole=whole,
                )
                found.append((0 if sure and self.limit is not None else 1, int(chosen[0]), task))
        return [task for _, _, task in sorted(found, key=lambda entry: entry[:2])]

    # -- explanation ----------------------------------------------------------------------------

    @cached_property
    def report(self) -> PlanReport:
        """Counters, bytes and durations of each stage."""
        stages = tuple(self._stage_reports())
        rows = self.snapshot.live_records[self.selection]
        known = not len(rows) or int(rows.min()) >= 0
        return PlanReport(
            version=self.snapshot.version,
            splits_total=self.program.count,
            splits_selected=len(self),
            bytes_total=self._bytes_of(None),
            bytes_selected=stages[-1].bytes_out,
            must_match=self.must_match,
            rows=self.count(),
            most_rows=int(rows.sum()) if known else None,
            bind_seconds=self.bind_seconds,
            seconds=self.seconds,
            stages=stages,
            unevaluated=self.unevaluated,
        )

    def _stage_reports(self) -> Iterator[StageReport]:
        before = self.program.count
        for stage in self.stages:
            after = self.program.count if stage.selection is None else len(stage.selection)
            size = self._bytes_of(stage.selection)
            detail = stage.detail or self._manifests(stage)
            if stage.unevaluated:
                detail = ", ".join(filter(None, [detail, "some of the filter not evaluated"]))
            yield StageReport(stage.name, stage.columns, before, after, size, stage.seconds, detail)
            before = after

    def _manifests(self, stage: Stage) -> str:
        """How many manifests the splits left by partition values come from."""
        manifest_of = self.snapshot.manifest_of
        if stage.name != "partition" or stage.selection is None or manifest_of is None:
            return ""
        touched = np.unique(manifest_of[stage.selection])
        total = len(self.snapshot.manifest_partition_bounds)
        read = getattr(self.snapshot, "manifests_read", -1)
        told = f"from {int((touched >= 0).sum())} of {total} manifests"
        return f"{told}, {total if read < 0 else read} read"

    def _bytes_of(self, selection: Selection | None) -> int:
        if selection is not None:
            return int(self.snapshot.sizes[selection].sum())
        return BYTES.of(self.snapshot, None, lambda: int(self.snapshot.sizes.sum()))

    def explain(self, format: str = "text") -> str:
        """The plan as text, JSON or a web page."""
        from indextables.planner.explain.text import render

        return render(self, format)

    def why(self, split_path: str) -> str:
        """Which rule, on which statistic, kept or dropped one split."""
        from indextables.planner.explain.why import why

        return why(self, split_path)

    def _repr_html_(self) -> str:
        from indextables.planner.explain.html import fragment

        return fragment(self)

    def __repr__(self) -> str:
        from indextables.planner.explain.text import funnel

        return f"Plan({funnel(self)})"


def plan(
    filters: Any,
    table: Any,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Plan:
    """Plan once: ``plan("status = 500", table)``; the options override the table's settings."""
    return Planner(table, options=options).plan(filters, columns, limit)
