"""The cross-reference stage: ask a router which candidate splits can hold the asked terms.

The planner knows a router only by this protocol. A router may drop a split only when its filter
proves that the predicate has no row there; splits it does not cover it keeps. The stage is left
out when it is switched off, when there is no router, or when so few candidates are left that
opening them is cheaper than asking. What is cheaper the router knows, as it knows how large its
files are and whether they are loaded; ``xref.query.minSplitsForXRef`` overrules it when it is set,
and decides for routers without an opinion.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from indextables.config import Config
from indextables.errors import IndexTablesError, PlanningError
from indextables.expr.predicate import TRUE, Predicate
from indextables.log.read.view import SnapshotView
from indextables.planner.stages.verdict import Int64s, Selection

LOG = logging.getLogger("indextables.xref")
LEAST = "xref.query.minSplitsForXRef"


class RouteResult(Protocol):
    """``keep[j]`` is 0 when candidate ``j`` cannot match; ``report`` says how that was found."""

    @property
    def keep(self) -> npt.NDArray[Any]: ...
    @property
    def report(self) -> Any: ...


class XRefRouter(Protocol):
    """What holds the cross-references of a table."""

    def route(
        self, snapshot: SnapshotView, candidates: Int64s, predicate: Predicate
    ) -> RouteResult: ...


@dataclass(frozen=True, slots=True)
class Routed:
    """The stage's outcome."""

    selection: Selection | None
    columns: tuple[str, ...]
    detail: str
    seconds: float
    row_blocks: dict[int, int] = field(default_factory=dict)
    """Splits whose only row that can match is in a known block, by number."""
    unevaluated: bool = False
    """Could the filters not decide some part of what was asked?"""

    @property
    def told(self) -> tuple[Any, ...]:
        """What a plan says of the stage."""
        known = self.columns, self.selection, self.seconds, self.detail
        return *known, self.row_blocks, self.unevaluated


def skip_reason(
    router: XRefRouter | None,
    config: Config,
    snapshot: SnapshotView,
    selection: Selection | None,
    predicate: Predicate,
) -> str | None:
    """Why the stage does not run; ``None`` when it does."""
    candidates = snapshot.num_files if selection is None else len(selection)
    if router is None:
        return "no cross-references"
    if not config["xref.query.enabled"]:
        return "switched off"
    if candidates == 0:
        return "no candidates"
    if predicate == TRUE:
        return "nothing left to ask"
    weigh = getattr(router, "too_dear", None)
    if weigh is not None and not config.is_set(LEAST):
        chosen = np.arange(candidates) if selection is None else selection.astype(np.int64)
        reason: str | None = weigh(snapshot, chosen, predicate)
        return reason
    least = config[LEAST]
    return f"{candidates} candidates, fewer than {least}" if candidates < least else None


def route(
    router: XRefRouter,
    snapshot: SnapshotView,
    questions: list[tuple[Predicate, Int64s]],
    config: Config,
) -> Routed:
    """Ask about each group of candidates what is left to check in it.

    Groups with nothing left are kept unasked; a failure keeps every split unless the settings
    want it raised.
    """
    start = time.perf_counter()
    kept: list[Int64s] = []
    columns: dict[str, None] = {}
    details: dict[str, None] = {}
    blocks: dict[int, int] = {}
    unevaluated = False
    for predicate, candidates in questions:
        if predicate == TRUE:
            kept.append(candidates)
            continue
        try:
            result = router.route(snapshot, candidates, predicate)
        except (IndexTablesError, MemoryError) as error:
            if not config["xref.query.fallbackOnError"]:
                raise
            details[f"failed, kept all: {error}"] = None
            unevaluated = True
            kept.append(candidates)
            continue
        kept.append(candidates[_mask(result, len(candidates))])
        unevaluated |= bool(getattr(result.report, "unevaluated", False))
        columns.update(dict.fromkeys(getattr(result.report, "columns", ())))
        details[str(getattr(result.report, "detail", ""))] = None
        blocks.update(getattr(result.report, "row_blocks", {}))
    selection = np.sort(np.concatenate(kept)).astype(np.int32)
    LOG.info("XRef pre-scan: %d splits after XRef filtering", len(selection))
    seconds = time.perf_counter() - start
    told = "; ".join(details)
    return Routed(selection, tuple(columns), told, seconds, blocks, unevaluated)


def _mask(result: RouteResult, count: int) -> npt.NDArray[np.bool_]:
    keep = np.asarray(result.keep, bool)
    if keep.shape != (count,):
        raise PlanningError(f"a router judged {len(keep)} of {count} candidates")
    return keep
