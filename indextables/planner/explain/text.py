"""A plan explained: text for a terminal, JSON for programs, a page for a browser.

All three say the same: the filter as a tree with the stages that can use each leaf, the funnel of
splits with times and bytes, what is left to check and how a split will answer it, in the words of
the code that does (``splits.access``), and the tasks. The JSON has a ``formatVersion``; fields may
be added within one version and are neither renamed nor removed.

``explain(filters)`` without a table types columns by their literals and shows only the tree.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import PlanningError
from indextables.expr.predicate import And, Or, Predicate, ValueTest
from indextables.mapping import DocMapping
from indextables.planner.binding import lines_cached
from indextables.planner.explain.describe import (
    leaf_text,
    predicate_text,
    size_text,
    time_text,
    usable_stages,
)
from indextables.planner.stages.method import expected_access, index_lines
from indextables.planner.tasks import splits_per_task

if TYPE_CHECKING:
    from indextables.planner.plan import Plan

FORMAT = "indextables.plan"
FORMAT_VERSION = 2
MOST_LISTED = 1000
FORMATS = ("text", "json", "html")


def render(plan: Plan, format: str = "text") -> str:
    """The plan in one of the ``FORMATS``."""
    if format == "text":
        return text(plan)
    if format == "json":
        return json.dumps(to_json(plan), indent=2, ensure_ascii=False)
    if format == "html":
        from indextables.planner.explain.html import page

        return page(plan)
    raise PlanningError(f"unknown format '{format}'", hint=f"Use one of {', '.join(FORMATS)}")


def funnel(plan: Plan) -> str:
    """``1,000,000 splits -> 812 (partition date) -> 40 (min/max id)``."""
    total = plan.program.count
    parts = [f"{total:,} split{'' if total == 1 else 's'}"]
    for stage in plan.stages[1:]:
        left = total if stage.selection is None else len(stage.selection)
        label = stage.name + (f" {','.join(stage.columns)}" if stage.columns else "")
        parts.append(f"{left:,} ({label})")
    return " -> ".join(parts)


# -- text ---------------------------------------------------------------------------------------


def text(plan: Plan) -> str:
    """The explanation for a terminal."""
    report, snapshot, predicate = plan.report, plan.snapshot, plan.predicate
    tree = lines_cached(predicate, snapshot, lambda: tree_lines(predicate, snapshot.table_mapping))
    lines = [*tree, "", funnel(plan)]
    lines.append(f"bind {time_text(report.bind_seconds)}, plan {time_text(report.seconds)} in all")
    for stage in report.stages[1:]:
        detail = f"  {stage.detail}" if stage.detail else ""
        lines.append(
            f"  {stage.name:<10} {stage.splits_in:>11,} -> {stage.splits_out:>11,}"
            f"  {size_text(stage.bytes_out):>9}  {time_text(stage.seconds):>10}{detail}"
        )
    lines.append(_selected_text(plan))
    lines.extend(_residual_lines(plan))
    return "\n".join(lines)


def _selected_text(plan: Plan) -> str:
    report = plan.report
    share = f"{size_text(report.bytes_selected)} of {size_text(report.bytes_total)}"
    answer = "" if report.rows is None else f", {report.rows:,} rows known from the log"
    return (
        f"reads {report.splits_selected:,} splits, {share}, in {task_count(plan):,} tasks; "
        f"{report.must_match:,} match with every row{answer}"
    )


def _residual_lines(plan: Plan) -> list[str]:
    lines = []
    for group in plan.residual_groups:
        access = expected_access(plan.snapshot, group.predicate)
        lines.append(
            f"left to check in {len(group.positions):,} splits: "
            f"{predicate_text(group.predicate)}  [{access.kind}: {access.detail}]"
        )
        if access.kind == "column_index":
            lines.extend(f"  {line}" for line in index_lines(plan, group))
    return lines


def tree_lines(predicate: Predicate, mapping: DocMapping | None, prefix: str = "") -> list[str]:
    """The filter as a tree, each leaf with the stages that can use it."""
    if not isinstance(predicate, And | Or):
        stages = ", ".join(usable_stages(predicate, mapping))
        return [f"{leaf_text(predicate)}  [{stages}]"]
    lines = ["AND" if isinstance(predicate, And) else "OR"]
    last = len(predicate.children) - 1
    for k, child in enumerate(predicate.children):
        inner = tree_lines(child, mapping)
        lines.append(("└─ " if k == last else "├─ ") + inner[0])
        lines.extend(("   " if k == last else "│  ") + line for line in inner[1:])
    return lines


def task_count(plan: Plan) -> int:
    """How many tasks the plan will have, without making them."""
    if "tasks" in plan.__dict__:
        return len(plan.tasks)
    per_task = splits_per_task(plan.planner.config, len(plan), plan.planner.parallelism)
    return sum(-(-len(group.positions) // per_task) for group in plan.residual_groups)


# -- JSON ---------------------------------------------------------------------------------------


def to_json(plan: Plan) -> dict[str, Any]:
    """The explanation as plain JSON values."""
    report = plan.report
    listed = plan.selection[:MOST_LISTED]
    return {
        "format": FORMAT,
        "formatVersion": FORMAT_VERSION,
        "version": report.version,
        "filter": predicate_json(plan.predicate, plan.snapshot.table_mapping),
        "funnel": funnel(plan),
        "report": report.to_json(),
        "columns": None if plan.columns is None else list(plan.columns),
        "limit": plan.limit,
        "residual": [
            {
                "predicate": predicate_text(g.predicate),
                "splits": len(g.positions),
                "access": asdict(expected_access(plan.snapshot, g.predicate)),
            }
            for g in plan.residual_groups
        ],
        "tasks": task_count(plan),
        "splits": [
            {
                "path": plan.snapshot.paths[int(i)].as_py(),
                "size": int(plan.snapshot.sizes[i]),
                "numRecords": int(plan.snapshot.live_records[i]),
                "verdict": int(verdict),
            }
            for i, verdict in zip(listed, plan.verdicts, strict=False)
        ],
        "splitsOmitted": len(plan) - len(listed),
    }


def predicate_json(predicate: Predicate, mapping: DocMapping | None) -> dict[str, Any]:
    """The filter tree with the stages of each leaf."""
    if isinstance(predicate, And | Or):
        return {
            "op": "and" if isinstance(predicate, And) else "or",
            "children": [predicate_json(child, mapping) for child in predicate.children],
        }
    body: dict[str, Any] = {"op": type(predicate).__name__, "text": leaf_text(predicate)}
    if isinstance(predicate, ValueTest):
        body["column"] = predicate.column.label
    return {**body, "stages": list(usable_stages(predicate, mapping))}


# -- without a table ----------------------------------------------------------------------------


def explain(filters: Any, table: Any = None, format: str = "text") -> str:
    """Explain filters: over a table the staged counts, without one what each stage could use."""
    if table is not None:
        from indextables.planner.plan import Planner

        return Planner(table).plan(filters).explain(format)
    from indextables.expr.bind import bind
    from indextables.expr.filters import parse_filters

    parsed = parse_filters(filters)
    schema = guessed_schema(parsed)
    predicate = bind(parsed, schema, mapping=DocMapping.for_schema(schema))
    if format == "json":
        body = {
            "format": FORMAT,
            "formatVersion": FORMAT_VERSION,
            "filter": predicate_json(predicate, None),
        }
        return json.dumps(body, indent=2, ensure_ascii=False)
    if format != "text":
        raise PlanningError(f"format '{format}' needs a table", hint="Use text or json")
    return "\n".join(tree_lines(predicate, None))


def guessed_schema(filters: Any) -> pa.Schema:
    """Columns of an unbound filter, typed by the literals they are compared with."""
    from indextables.expr import filters as f

    types: dict[tuple[str, ...], pa.DataType] = {}
    for node in filters.walk():
        operands = node.children()
        guesses = [g for g in map(_guessed_type, operands) if g is not None]
        for operand in operands:
            if isinstance(operand, f.Attribute):
                known = types.get(operand.path)
                types[operand.path] = guesses[0] if guesses else known or pa.string()
        if isinstance(node, f.Attribute):
            types.setdefault(node.path, pa.string())
    return pa.schema([pa.field(name, dtype) for name, dtype in _nested(types).items()])


def _nested(types: dict[tuple[str, ...], pa.DataType]) -> dict[str, pa.DataType]:
    """Paths of several parts as structs."""
    found: dict[str, pa.DataType] = {}
    for name in dict.fromkeys(path[0] for path in types):
        inner = {path[1:]: t for path, t in types.items() if path[0] == name and len(path) > 1}
        found[name] = pa.struct(list(_nested(inner).items())) if inner else types[(name,)]
    return found


def _guessed_type(operand: Any) -> pa.DataType | None:
    from indextables.expr import filters as f
    from indextables.types import normalize_type

    if isinstance(operand, f.Cast):
        return operand.dtype
    if not isinstance(operand, f.Lit) or operand.value is None:
        return None
    if operand.dtype is not None:
        return operand.dtype
    try:
        return normalize_type(pa.scalar(operand.value).type)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
