"""Why one split was kept or dropped: each leaf, the statistic it met, the rule that followed.

The verdicts are the plan's own; only their wording is made here. Where a rule is one of the
well-known traps of data skipping, its number in the guide to pruning is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from indextables.errors import PlanningError
from indextables.expr.predicate import Compare, InSet, TextMatch
from indextables.planner.explain.describe import leaf_text
from indextables.planner.stages.program import (
    BranchNode,
    ConstantNode,
    LeafNode,
    Node,
    NullNode,
    PartitionNode,
    RangeNode,
    ValueNode,
)
from indextables.planner.stages.ranges import is_avoided
from indextables.planner.stages.stats import BoundsColumn, TextBounds, bounds_of
from indextables.planner.stages.strings import KEY_MAX
from indextables.planner.stages.verdict import (
    ALL_NULL,
    CANNOT_MATCH,
    EMPTY,
    HIGH_OPEN,
    MAY_MATCH,
    MUST_MATCH,
    NO_NULL,
    name_of,
)

if TYPE_CHECKING:
    from indextables.planner.plan import Plan


def why(plan: Plan, split_path: str) -> str:
    """The outcome for one split, stage by stage and leaf by leaf."""
    index = plan.snapshot.index_of(split_path)
    if index is None:
        raise PlanningError(
            f"no live split '{split_path}' in version {plan.snapshot.version}",
            hint="Pass a path as plan.splits or the table's files spell it",
        )
    lines = [f"{split_path}: {_outcome(plan, index)}"]
    for part in plan.program.parts:
        lines.extend("  " + line for line in _explained(plan, part, index))
    if not plan.program.parts:
        lines.append("  no filter: every row is asked for")
    return "\n".join(lines)


def _outcome(plan: Plan, index: int) -> str:
    for stage in plan.stages[1:]:
        if stage.selection is not None and not _contains(stage.selection, index):
            label = stage.name + (f" {','.join(stage.columns)}" if stage.columns else "")
            if stage.name == "min/max" and plan.snapshot.live_records[index] == 0:
                return f"dropped by {label}: the split holds no rows"
            return f"dropped by {label}" + (f" ({stage.detail})" if stage.detail else "")
    verdict = int(plan.program.verdicts(np.array([index], np.int32))[0])
    return f"kept, {name_of(verdict)}" + (
        ": every row matches" if verdict == MUST_MATCH else ": some rows may match"
    )


def _contains(selection: Any, index: int) -> bool:
    at = int(np.searchsorted(selection, index))
    return at < len(selection) and int(selection[at]) == index


def _explained(plan: Plan, node: Node, index: int) -> list[str]:
    if isinstance(node, BranchNode):
        lines = ["AND" if node.is_and else "OR"]
        for child in node.children:
            lines.extend("  " + line for line in _explained(plan, child, index))
        return lines
    assert isinstance(node, LeafNode)
    found = node.test(np.array([index], np.int32))
    verdict = MAY_MATCH if found is None else int(found[0])
    return [f"{leaf_text(node.leaf)}: {name_of(verdict)}, {_reason(plan, node, index, verdict)}"]


def _reason(plan: Plan, node: LeafNode, index: int, verdict: int) -> str:
    if isinstance(node, PartitionNode):
        return _partition_reason(node, index)
    if isinstance(node, ConstantNode):
        return "the same for every row"
    if isinstance(node, RangeNode | NullNode):
        return _bounds_reason(plan, node, index, verdict)
    if isinstance(node.leaf, TextMatch):
        return "a text search is decided by cross-references and in the split (trap 30)"
    return "nothing in the log decides it"


def _partition_reason(node: PartitionNode, index: int) -> str:
    text = node.column.texts[int(node.column.codes[index])]
    return f"partition value {'NULL' if text is None else repr(text)}"


def _bounds_reason(plan: Plan, node: RangeNode | NullNode, index: int, verdict: int) -> str:
    column = bounds_of(plan.snapshot, node.column.name, node.column.dtype)
    facts = int(column.facts[index])
    if facts & EMPTY:
        return "the split holds no rows"
    if facts & ALL_NULL:
        return "every value is NULL (trap 4)"
    if isinstance(node, ValueNode):
        return "statistics do not help with this test"
    if isinstance(node, NullNode):
        return "no value is NULL" if facts & NO_NULL else "the null count is unknown (trap 5)"
    stored = _stored(plan, node, index)
    if stored is None:
        return "no statistics for this column (trap 5)"
    return stored + _rule(node, verdict, column, index)


def _stored(plan: Plan, node: RangeNode, index: int) -> str | None:
    ends = []
    for which in ("min", "max"):
        texts = plan.snapshot.stat_column(which, node.column.name)
        ends.append(None if texts is None else texts[index])
    if ends == [None, None]:
        return None
    low, high = ("?" if end is None else end for end in ends)
    return f"values from {low} to {high}"


def _rule(node: RangeNode, verdict: int, column: BoundsColumn, index: int) -> str:
    avoided = is_avoided(node.leaf)
    if verdict == CANNOT_MATCH:
        trap = " (trap 8)" if isinstance(node.leaf, Compare | InSet) else " (trap 19)"
        return f", all of them excluded{trap}" if avoided else ", none of them asked for"
    if verdict == MUST_MATCH:
        return ", none of them excluded" if avoided else ", all of them asked for"
    notes = [_open_end(node, column, index)]
    if not column.facts[index] & NO_NULL:
        notes.append("some may be NULL")
    return ", " + ", ".join(note for note in notes if note)


def _open_end(node: RangeNode, column: BoundsColumn, index: int) -> str:
    if isinstance(column, TextBounds):
        if column.facts[index] & HIGH_OPEN:
            return "the maximum is a prefix (trap 14)"
    elif pa.types.is_floating(node.column.dtype) and column.highs[index] == KEY_MAX:
        return "some may be NaN (trap 1)"
    points = len(node.leaf.values) if isinstance(node.leaf, InSet) else 1
    return "which the filter cuts through" if points == 1 else "with asked values among them"
