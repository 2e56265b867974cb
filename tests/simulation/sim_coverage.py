"""Which rules of the package fired: of conflicts, of retention, of the planner.

A simulation that never meets a rule proves nothing about it. Each rule is counted where it is
decided, from outside, and a run that did not fire every one of them fails. The names of conflicts
are read out of the source, so that a new one is asked for at once; those of retention and of the
planner stand here beside the functions that decide them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import indextables
from indextables.log.commit import conflict as conflicts
from indextables.log.commit import rowlevel
from indextables.log.retention import cleanup, gc, rules
from indextables.maintenance import purging, rowchange
from indextables.planner.explain import why

PACKAGE = Path(indextables.__file__).parent

RETENTION = {
    "listed: stays": "log/retention/rules.py::Needed.deletable_since",
    "unknown age: stays": "log/retention/rules.py::Needed.deletable_since",
    "removed: counts from the removal": "log/retention/rules.py::Needed.deletable_since",
    "removed before it was written: counts from its time": (
        "log/retention/rules.py::Needed.deletable_since"
    ),
    "never listed: counts from its time": "log/retention/rules.py::Needed.deletable_since",
    "never listed: counts from the oldest version": (
        "log/retention/rules.py::Needed.deletable_since"
    ),
    "old enough": "log/retention/rules.py::is_older",
    "too young": "log/retention/rules.py::is_older",
    "in the future: stays": "log/retention/rules.py::is_older",
    "temporary: goes": "maintenance/purging.py::stale_temporaries",
    "temporary: too young": "maintenance/purging.py::stale_temporaries",
    "lost commit: files go": "log/retention/rules.py::discard",
    "versions: below an anchor": "log/retention/cleanup.py::plan_cleanup",
    "versions: no anchor": "log/retention/cleanup.py::plan_cleanup",
    "checkpoints: expired": "log/retention/cleanup.py::plan_cleanup",
    "states: expired": "log/retention/gc.py::expired_states",
    "states: kept": "log/retention/gc.py::expired_states",
    "manifests: orphaned": "log/retention/gc.py::orphaned_manifests",
    "manifests: too young or needed": "log/retention/gc.py::orphaned_manifests",
}

PLANNER = (
    "partition value: CANNOT_MATCH",
    "partition value: MUST_MATCH",
    "the same for every row",
    "every value is NULL",
    "no value is NULL",
    "the null count is unknown",
    "no statistics for this column",
    "none of them asked for",
    "all of them excluded",
    "none of them excluded",
    "all of them asked for",
    "the maximum is a prefix",
    "some may be NULL",
    "which the filter cuts through",
    "with asked values among them",
    "a text search is decided",
    "dropped by xref",
)


def conflict_rules() -> set[str]:
    """Every kind of conflict that the source can name."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found.update(re.findall(r'\bconflict\(\s*"([a-z -]+)"', text))
    return found


def expected() -> set[str]:
    named = {f"conflict: {name}" for name in conflict_rules()}
    named |= {f"retention: {name}" for name in RETENTION}
    return named | {f"planner: {name}" for name in PLANNER}


@contextmanager
def counting(found: Counter[str]) -> Iterator[None]:
    """Count every rule that fires while this lasts."""
    with ExitStack() as stack:
        for owner, name, wrapper in (
            (conflicts, "conflict", _conflict),
            (rowlevel, "conflict", _conflict),
            (rules.Needed, "deletable_since", _since),
            (rules, "is_older", _older),
            (purging, "is_older", _older),
            (purging, "stale_temporaries", _temporaries),
            (rowchange, "discard", _discard),
            (cleanup, "find_anchor", _anchor),
            (gc, "expired_states", _states),
            (gc, "orphaned_manifests", _manifests),
        ):
            real = getattr(owner, name)
            stack.enter_context(mock.patch.object(owner, name, wrapper(real, found)))
        plan = cleanup.plan_cleanup
        for module in ("indextables.log.log.plan_cleanup",):
            stack.enter_context(mock.patch(module, _plan(plan, found)))
        yield


def _conflict(real: Callable[..., Any], found: Counter[str]) -> Callable[..., Any]:
    def conflict(name: str, what: str, version: int | None = None) -> Any:
        found[f"conflict: {name}"] += 1
        return real(name, what, version)

    return conflict


def _since(real: Callable[..., Any], found: Counter[str]) -> Callable[..., Any]:
    def deletable_since(self: Any, info: Any) -> int | None:
        since: int | None = real(self, info)
        found[f"retention: {_why_since(self, info, since)}"] += 1
        return since

    return deletable_since


def _why_since(needed: Any, info: Any, since: int | None) -> str:
    if since is None:
        return "unknown age: stays" if info.modified_ms <= 0 else "listed: stays"
    if info.path in needed.removed_at:
        by_file = since > needed.removed_at[info.path]
        if by_file:
            return "removed before it was written: counts from its time"
        return "removed: counts from the removal"
    if since > info.modified_ms:
        return "never listed: counts from the oldest version"
    return "never listed: counts from its time"


def _older(real: Callable[..., bool], found: Counter[str]) -> Callable[..., bool]:
    def is_older(moment_ms: int, age_ms: int, now_ms: int) -> bool:
        old = real(moment_ms, age_ms, now_ms)
        name = "old enough" if old else "too young"
        found[f"retention: {'in the future: stays' if moment_ms > now_ms else name}"] += 1
        return old

    return is_older


def _temporaries(real: Callable[..., Any], found: Counter[str]) -> Callable[..., Any]:
    def stale_temporaries(log: Any, hours: int, now_ms: int) -> Any:
        gone = real(log, hours, now_ms)
        there = len(list(log.store.world.list_temporaries()))
        found["retention: temporary: goes"] += len(gone)
        found["retention: temporary: too young"] += there - len(gone)
        return gone

    return stale_temporaries


def _discard(real: Callable[..., None], found: Counter[str]) -> Callable[..., None]:
    def discard(log: Any, kind: Any, paths: Any) -> None:
        found["retention: lost commit: files go"] += bool(paths)
        real(log, kind, paths)

    return discard


def _anchor(real: Callable[..., Any], found: Counter[str]) -> Callable[..., Any]:
    def find_anchor(*given: Any) -> int | None:
        anchor: int | None = real(*given)
        name = "no anchor" if anchor is None else "below an anchor"
        found[f"retention: versions: {name}"] += 1
        return anchor

    return find_anchor


def _plan(real: Callable[..., Any], found: Counter[str]) -> Callable[..., Any]:
    def plan_cleanup(*given: Any) -> Any:
        report = real(*given)
        found["retention: checkpoints: expired"] += len(report.checkpoints)
        return report

    return plan_cleanup


def _states(real: Callable[..., Any], found: Counter[str]) -> Callable[..., Any]:
    def expired_states(store: Any, retention: Any, states: Any, protect: Any) -> Any:
        gone = real(store, retention, states, protect)
        found["retention: states: expired"] += len(gone)
        found["retention: states: kept"] += len(states) - len(gone)
        return gone

    return expired_states


def _manifests(real: Callable[..., Any], found: Counter[str]) -> Callable[..., Any]:
    def orphaned_manifests(store: Any, retention: Any, states: Any) -> Any:
        gone = real(store, retention, states)
        found["retention: manifests: orphaned"] += len(gone)
        found["retention: manifests: too young or needed"] += 1
        return gone

    return orphaned_manifests


def planner_rules(plan: Any, found: Counter[str]) -> None:
    """Count what a plan says of each split."""
    for path in plan.snapshot.paths.to_pylist():
        text = why.why(plan, path)
        for line in text.splitlines():
            if "partition value" in line:
                for verdict in ("CANNOT_MATCH", "MUST_MATCH"):
                    found[f"planner: partition value: {verdict}"] += verdict in line
        for rule in PLANNER:
            found[f"planner: {rule}"] += rule in text
