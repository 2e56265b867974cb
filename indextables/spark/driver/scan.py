"""One scan as Spark asks for it, planned in the driver.

Which filters are *accepted* (Spark then never checks them again) is decided leaf by leaf. A filter
of comparisons, lists, null tests and patterns is accepted, the reader being exact for those. An
expression that Spark can compute is left to Spark, and still prunes. A filter with a text search is
accepted whole or left whole: Spark then computes the search on the values (``tasks.searching``). A
search of several fields cannot be computed so; where its filter cannot be accepted, that is an
error now, at planning, never a wrong row later.

Tasks check what the log has not proved: the residual, with everything left to Spark taken as true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from indextables.config import parse_int
from indextables.errors import PlanningError
from indextables.expr.evaluate import can_evaluate
from indextables.expr.filters import parse_filters
from indextables.expr.infix import EVERY
from indextables.expr.ipbind import refuse_for
from indextables.expr.predicate import (
    TRUE,
    Predicate,
    TextMatch,
    Undecided,
    conjunction,
    leaves,
    with_leaves,
)
from indextables.naming import user_mapping
from indextables.planner import Plan, Planner
from indextables.planner.tasks import SplitTask
from indextables.spark.driver.packing import packed
from indextables.spark.driver.request import Access, access
from indextables.spark.driver.tables import SHARED, OpenTable
from indextables.table.execute import SCORE

VIRTUAL = (EVERY, SCORE)


@dataclass(frozen=True)
class Request:
    """What the Java side sends with every question."""

    body: Mapping[str, Any]

    @cached_property
    def access(self) -> Access:
        return access(self.body["options"], self.body.get("session"))

    @property
    def version(self) -> int | None:
        found = self.body.get("version")
        return None if found is None else as_version(found)

    @property
    def timestamp_ms(self) -> int | None:
        found = self.body.get("timestampMicros")
        return None if found is None else int(found) // 1000

    @property
    def filters(self) -> list[dict[str, Any]]:
        return [with_every_field(node) for node in self.body.get("filters", ())]

    def table(self) -> OpenTable:
        return SHARED.table(self.access, self.version, self.timestamp_ms)


def as_version(value: Any) -> int:
    """A version as SQL or an option spells it."""
    try:
        return parse_int(value)
    except (ValueError, TypeError):
        raise PlanningError(f"'{value}' is not a version of a table") from None


def with_every_field(node: Any) -> Any:
    """The expression with the column ``_indexall`` written as "every field"."""
    if not isinstance(node, dict):
        return node
    if node.get("op") == "attr" and node["name"] == [EVERY]:
        return {"op": "lit", "type": "string", "value": "*"}
    if "children" in node:
        return {**node, "children": [with_every_field(child) for child in node["children"]]}
    return node


class Scan:
    """The filters, columns and limit of one scan over one version of a table."""

    def __init__(self, request: Request, parallelism: int | None = None) -> None:
        self.request = request
        self.table = request.table()
        self.planner = Planner(
            self.table,
            time_zone=request.body.get("timeZone", "UTC"),
            case_sensitive=bool(request.body.get("caseSensitive")),
            parallelism=parallelism,
        )

    @cached_property
    def fixed(self) -> Predicate:
        """The predicate fixed at load, which the reader must decide alone."""
        where = self.table.config["read.where"]
        predicate = TRUE if where is None else self.planner.bind(where)
        if not can_evaluate(predicate):
            raise PlanningError(f"cannot evaluate {predicate!r}", hint="Rewrite read.where")
        return predicate

    @cached_property
    def predicates(self) -> list[Predicate]:
        """Each of Spark's filters, bound."""
        snapshot = self.planner.snapshot
        if (mapping := snapshot.table_mapping) is not None:
            known = user_mapping(mapping, snapshot.schema)
            for node in self.request.filters:
                refuse_for("Spark", parse_filters(node), known)
        return [self.planner.bind(node) for node in self.request.filters]

    @cached_property
    def accepted(self) -> list[bool]:
        """For each filter: will the reader decide it alone?"""
        return [_is_accepted(predicate) for predicate in self.predicates]

    @property
    def decides_all(self) -> bool:
        return all(self.accepted)

    def plan(self, columns: Sequence[str] | None = None, limit: int | None = None) -> Plan:
        """The splits this scan needs."""
        whole = conjunction([self.fixed, *self.predicates])
        return self.planner.plan(whole, columns, limit)

    def tasks(self, plan: Plan) -> list[SplitTask]:
        """The plan's tasks, checking only what is ours to check."""
        ours = {
            leaf
            for predicate, accepted in zip(self.predicates, self.accepted, strict=True)
            if accepted
            for leaf in leaves(predicate)
        } | set(leaves(self.fixed))
        found = [replace(t, predicate=without_others(t.predicate, ours)) for t in plan.tasks]
        asked = str(self.table.config["read.splitsPerTask"]).strip().lower()
        if asked != "auto":
            return found
        return packed(found, self.planner.parallelism, self.share(plan.columns))

    def ranked(self, tasks: list[SplitTask], best: int | None, with_ties: bool) -> list[SplitTask]:
        """The tasks with what relevance is computed from, gathered once for all of them."""
        from indextables.table.statistics import ranking

        made = ranking(self.table, conjunction([self.fixed, *self.predicates]), best, with_ties)
        return [replace(task, ranking=made) for task in tasks]

    def share(self, columns: Sequence[str] | None) -> float:
        """About which part of a split's bytes a scan of these columns reads."""
        if columns is None:
            return 1.0
        return min(1.0, (len(columns) + 1) / (len(self.table.snapshot.schema) + 1))


def _is_accepted(predicate: Predicate) -> bool:
    found = list(leaves(predicate))
    undecided = [leaf for leaf in found if isinstance(leaf, Undecided)]
    if not undecided:
        return True
    if not any(isinstance(leaf, TextMatch) for leaf in found):
        return False
    if can_evaluate(predicate):
        return True
    if not any(isinstance(leaf, TextMatch) and len(leaf.fields) > 1 for leaf in found):
        return False
    parts = ", ".join(sorted({leaf.text for leaf in undecided}))
    raise PlanningError(
        f"a text search cannot be combined with {parts}",
        hint="Join the two with AND, or search in a subquery and filter its result",
    )


def without_others(predicate: Predicate, ours: set[Any]) -> Predicate:
    """The predicate with each undecided leaf that is not ours taken as true."""
    return with_leaves(
        predicate,
        lambda leaf: TRUE if isinstance(leaf, Undecided) and leaf not in ours else leaf,
    )
