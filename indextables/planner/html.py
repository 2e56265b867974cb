"""A plan as a web page: the funnel as bars, the filter tree, the splits.

``page`` is a document of its own, with a search box over the splits (the only script).
``fragment`` is for notebooks: the same without the list and without any script. Both follow the
reader's light or dark setting and load nothing from anywhere.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from indextables.expr.predicate import And, Or, Predicate
from indextables.mapping import DocMapping
from indextables.planner.describe import (
    leaf_text,
    predicate_text,
    size_text,
    time_text,
    usable_stages,
)
from indextables.planner.explain import funnel, task_count
from indextables.planner.verdict import name_of

if TYPE_CHECKING:
    from indextables.planner.plan import Plan

MOST_SPLITS = 5000

STYLE = """
.itplan{--ink:#1c1f24;--soft:#5b6470;--line:#d6dae0;--bar:#3566c0;--back:#eef1f6;
  color:var(--ink);font:14px/1.45 system-ui,sans-serif;max-width:70rem}
@media (prefers-color-scheme:dark){.itplan{--ink:#e4e7eb;--soft:#9aa4b2;--line:#3a424d;
  --bar:#7aa2f0;--back:#232a33}}
.itplan h2{font-size:15px;margin:1.2em 0 .4em}
.itplan .soft{color:var(--soft)}
.itplan table{border-collapse:collapse;width:100%}
.itplan td,.itplan th{padding:.2em .6em;text-align:left;border-bottom:1px solid var(--line)}
.itplan td.n,.itplan th.n{text-align:right;font-variant-numeric:tabular-nums}
.itplan .bar{background:var(--back);height:.7em;min-width:10rem}
.itplan .bar i{display:block;height:100%;background:var(--bar);min-width:2px}
.itplan ul{list-style:none;margin:0;padding-left:1.2em;border-left:1px solid var(--line)}
.itplan code{font:13px ui-monospace,monospace}
.itplan input{width:100%;padding:.4em;margin:.4em 0;color:inherit;background:var(--back);
  border:1px solid var(--line)}
"""

SCRIPT = """
document.querySelector('.itplan input').addEventListener('input',function(e){
  var q=e.target.value.toLowerCase();
  document.querySelectorAll('.itplan tbody.splits tr').forEach(function(r){
    r.hidden=r.textContent.toLowerCase().indexOf(q)<0;});});
"""


def page(plan: Plan) -> str:
    """A whole document."""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        "<meta name='color-scheme' content='light dark'><title>Plan</title>"
        f"<style>body{{margin:1.5rem}}{STYLE}</style></head><body><div class='itplan'>"
        f"<h1>Plan</h1>{_body(plan)}{_splits(plan)}</div><script>{SCRIPT}</script></body></html>"
    )


def fragment(plan: Plan) -> str:
    """What a notebook shows."""
    return f"<div class='itplan'><style>{STYLE}</style>{_body(plan)}</div>"


def _body(plan: Plan) -> str:
    report = plan.report
    head = (
        f"<p><b>{escape(funnel(plan))}</b><br><span class='soft'>version {report.version}, "
        f"{time_text(report.seconds)}, {task_count(plan):,} tasks, "
        f"{size_text(report.bytes_selected)} of {size_text(report.bytes_total)}, "
        f"{report.must_match:,} splits match with every row"
    )
    if report.rows is not None:
        head += f", {report.rows:,} rows known from the log"
    tree = _tree(plan.predicate, plan.snapshot.table_mapping)
    return f"{head}</span></p>{_funnel(plan)}<h2>Filter</h2>{tree}{_residual(plan)}"


def _funnel(plan: Plan) -> str:
    report = plan.report
    rows = []
    for stage in report.stages:
        share = 100 * stage.splits_out / max(1, report.splits_total)
        label = " ".join([stage.name, ", ".join(stage.columns)]).strip()
        rows.append(
            f"<tr><td>{escape(label)}</td><td class='n'>{stage.splits_out:,}</td>"
            f"<td><div class='bar'><i style='width:{share:.2f}%'></i></div></td>"
            f"<td class='n'>{size_text(stage.bytes_out)}</td>"
            f"<td class='n'>{time_text(stage.seconds)}</td><td>{escape(stage.detail)}</td></tr>"
        )
    return (
        "<table><thead><tr><th>stage</th><th class='n'>splits left</th><th></th>"
        "<th class='n'>bytes</th><th class='n'>time</th><th></th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _tree(predicate: Predicate, mapping: DocMapping | None) -> str:
    if isinstance(predicate, And | Or):
        word = "AND" if isinstance(predicate, And) else "OR"
        inner = "".join(f"<li>{_tree(child, mapping)}</li>" for child in predicate.children)
        return f"{word}<ul>{inner}</ul>"
    stages = ", ".join(usable_stages(predicate, mapping))
    return f"<code>{escape(leaf_text(predicate))}</code> <span class='soft'>{stages}</span>"


def _residual(plan: Plan) -> str:
    rows = "".join(
        f"<tr><td class='n'>{len(group.positions):,}</td>"
        f"<td><code>{escape(predicate_text(group.predicate))}</code></td></tr>"
        for group in plan.residual_groups
    )
    if not rows:
        return ""
    return (
        "<h2>Left to check</h2><table><thead><tr><th class='n'>splits</th><th>predicate</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>"
    )


def _splits(plan: Plan) -> str:
    shown = plan.selection[:MOST_SPLITS]
    rows = "".join(
        f"<tr><td><code>{escape(plan.snapshot.paths[int(i)].as_py())}</code></td>"
        f"<td class='n'>{_count(int(plan.snapshot.num_records[i]))}</td>"
        f"<td class='n'>{size_text(int(plan.snapshot.sizes[i]))}</td>"
        f"<td>{name_of(int(verdict))}</td></tr>"
        for i, verdict in zip(shown, plan.verdicts, strict=False)
    )
    more = len(plan) - len(shown)
    note = f"<p class='soft'>{more:,} more splits are not listed.</p>" if more else ""
    return (
        f"<h2>Splits</h2><input type='search' placeholder='Search {len(shown):,} splits' "
        "aria-label='Search splits'><table><thead><tr><th>path</th><th class='n'>rows</th>"
        "<th class='n'>size</th><th>verdict</th></tr></thead>"
        f"<tbody class='splits'>{rows}</tbody></table>{note}"
    )


def _count(rows: int) -> str:
    return "?" if rows < 0 else f"{rows:,}"
