"""A plan as a web page: the funnel as bars, the filter tree, what is left to check, the splits.

``page`` is a document of its own, with a search box over the splits (the only script): first those
that are read, then those that were dropped, each with the stage that dropped it. ``fragment`` is
for notebooks: the same without the list and without any script. Both load nothing from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from indextables.expr.predicate import And, Or, Predicate
from indextables.mapping import DocMapping
from indextables.planner.explain.describe import (
    leaf_text,
    predicate_text,
    size_text,
    time_text,
    usable_stages,
)
from indextables.planner.explain.pagestyle import PAGE_STYLE, SCRIPT, STYLE
from indextables.planner.explain.text import funnel, task_count
from indextables.planner.stages.method import expected_access
from indextables.planner.stages.verdict import MUST_MATCH

if TYPE_CHECKING:
    from indextables.planner.plan import Plan

MOST_SPLITS = 5000
MOST_DROPPED = 2000
LATE = ("search", "residual", "constant")


def page(plan: Plan) -> str:
    """A whole document."""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'>"
        f"<title>Plan: {escape(_title(plan))}</title><style>{PAGE_STYLE}{STYLE}</style></head>"
        f"<body><main class='itplan'>{_body(plan)}{_splits(plan)}</main>"
        f"<script>{SCRIPT}</script></body></html>"
    )


def fragment(plan: Plan) -> str:
    """What a notebook shows."""
    return f"<div class='itplan cell'><style>{STYLE}</style>{_body(plan)}</div>"


def _title(plan: Plan) -> str:
    selected, total = plan.report.splits_selected, plan.report.splits_total
    return f"{selected:,} of {total:,} {'split' if total == 1 else 'splits'}"


def _body(plan: Plan) -> str:
    tree = _tree(plan.predicate, plan.snapshot.table_mapping)
    return (
        f"<h1>Reads {escape(_title(plan))}</h1><p class='soft'>{escape(funnel(plan))}</p>"
        f"{_cards(plan)}<h2>Funnel</h2>{_funnel(plan)}"
        f"<h2>Filter</h2><div class='tree'>{tree}</div>{_residual(plan)}"
    )


def _cards(plan: Plan) -> str:
    report = plan.report
    if report.rows is not None:
        rows = (f"{report.rows:,}", "rows, known from the log")
    elif report.most_rows is not None:
        rows = (f"{report.most_rows:,}", "rows at most")
    else:
        rows = ("?", "rows, counts unknown")
    facts = [
        (size_text(report.bytes_selected), f"to read of {size_text(report.bytes_total)}"),
        rows,
        (f"{report.must_match:,}", "splits match with every row"),
        (f"{task_count(plan):,}", "tasks"),
        (time_text(report.seconds), f"planning, version {report.version}"),
    ]
    cards = (
        f"<div class='card'><b>{escape(value)}</b><span class='soft'>{escape(label)}</span></div>"
        for value, label in facts
    )
    return f"<div class='cards'>{''.join(cards)}</div>"


def _funnel(plan: Plan) -> str:
    report = plan.report
    rows = []
    for stage in report.stages:
        share = 100 * stage.splits_out / max(1, report.splits_total)
        notes = ", ".join([*stage.columns, *([stage.detail] if stage.detail else [])])
        empty = "" if stage.splits_out else " class='none'"
        name = "all splits" if stage.name == "list" else stage.name
        rows.append(
            f"<div class='name'>{escape(name)}<small>{escape(notes)}</small></div>"
            f"<div class='bar'><i{empty} style='width:{share:.3f}%'></i></div>"
            f"<div class='n'>{stage.splits_out:,}<small>{size_text(stage.bytes_out)}"
            f"{f', {time_text(stage.seconds)}' if stage.seconds else ''}</small></div>"
        )
    return f"<div class='funnel'>{''.join(rows)}</div>"


def _tree(predicate: Predicate, mapping: DocMapping | None) -> str:
    if isinstance(predicate, And | Or):
        word = "AND" if isinstance(predicate, And) else "OR"
        inner = "".join(f"<li>{_tree(child, mapping)}</li>" for child in predicate.children)
        return f"<b>{word}</b><ul>{inner}</ul>"
    chips = "".join(
        f"<span class='chip{' late' if stage in LATE else ''}'>{escape(stage)}</span>"
        for stage in usable_stages(predicate, mapping)
    )
    return f"<code>{escape(leaf_text(predicate))}</code>{chips}"


def _residual(plan: Plan) -> str:
    rows = []
    for group in plan.residual_groups:
        access = expected_access(plan.snapshot, group.predicate)
        rows.append(
            f"<tr><td class='n'>{len(group.positions):,}</td>"
            f"<td><code>{escape(predicate_text(group.predicate))}</code></td>"
            f"<td>{escape(access.kind.replace('_', ' '))}: {escape(access.detail)}</td></tr>"
        )
    if not rows:
        return ""
    return (
        "<h2>Left to check</h2><table><thead><tr><th class='n'>splits</th><th>predicate</th>"
        f"<th>likely access</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _splits(plan: Plan) -> str:
    kept = [
        _row(plan, int(i), "must", "every row matches")
        if verdict == MUST_MATCH
        else _row(plan, int(i), "may", "may match")
        for i, verdict in zip(plan.selection[:MOST_SPLITS], plan.verdicts, strict=False)
    ]
    gone = [_row(plan, i, "gone", f"dropped by {stage}") for i, stage in _dropped(plan)]
    more = plan.report.splits_total - len(kept) - len(gone)
    note = f"<p class='soft'>{more:,} more splits are not listed.</p>" if more else ""
    return (
        "<h2>Splits</h2><input type='search' aria-label='Search splits' "
        "placeholder='Search by path, partition or outcome, for example: dropped xref'>"
        "<p class='soft shown' aria-live='polite'></p>"
        "<table><thead><tr><th>path</th><th class='n'>rows</th>"
        "<th class='n'>size</th><th>outcome</th></tr></thead>"
        f"<tbody class='splits'>{''.join(kept)}{''.join(gone)}</tbody></table>{note}"
    )


def _dropped(plan: Plan) -> Iterator[tuple[int, str]]:
    """The first dropped splits of each stage."""
    before = np.arange(plan.program.count)
    left = MOST_DROPPED
    for stage in plan.stages[1:]:
        if stage.selection is None:
            continue
        lost = np.setdiff1d(before, stage.selection, assume_unique=True)
        label = " ".join([stage.name, ", ".join(stage.columns)]).strip()
        yield from ((int(i), label) for i in lost[:left])
        left -= min(left, len(lost))
        before = np.asarray(stage.selection)


def _row(plan: Plan, index: int, kind: str, outcome: str) -> str:
    rows = int(plan.snapshot.live_records[index])
    return (
        f"<tr><td><code>{escape(plan.snapshot.paths[index].as_py())}</code></td>"
        f"<td class='n'>{'?' if rows < 0 else f'{rows:,}'}</td>"
        f"<td class='n'>{size_text(int(plan.snapshot.sizes[index]))}</td>"
        f"<td><span class='chip {kind}'>{escape(outcome)}</span></td></tr>"
    )
