"""One line about a scan, for EXPLAIN and the SQL tab."""

from __future__ import annotations

from indextables.planner import Plan
from indextables.spark.driver.scan import Scan
from indextables.spark.tasks.grouped import Aggregation


def summary(
    scan: Scan, plan: Plan, limit: int | None, aggregation: Aggregation | None, layer: int
) -> str:
    """``indextables layer 2, v3, splits 2 of 100, ...``."""
    report = plan.report
    parts = [
        f"indextables {scan.request.access.path} v{report.version}, layer {layer}",
        f"splits {report.splits_selected} of {report.splits_total}"
        f" ({report.splits_total - report.splits_selected} pruned)",
        f"{report.bytes_selected:,} of {report.bytes_total:,} bytes",
    ]
    if plan.columns is not None:
        parts.append(f"columns [{', '.join(plan.columns)}]")
    pushed = [repr(p) for p, a in zip(scan.predicates, scan.accepted, strict=True) if a]
    if pushed:
        parts.append(f"pushed [{', '.join(pushed)}]")
    if limit is not None:
        parts.append(f"limit {limit}")
    if aggregation is not None:
        parts.append(f"aggregates [{_aggregates(aggregation)}]")
    return ", ".join(parts)


def _aggregates(aggregation: Aggregation) -> str:
    found = ", ".join(a.text for a in aggregation.aggregates)
    groups = ", ".join(key.value.text for key in aggregation.keys)
    return f"{found} by {groups}" if groups else found
