"""One line about a scan, for EXPLAIN and the SQL tab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indextables.planner import Plan
from indextables.spark.scan import Scan


def summary(scan: Scan, plan: Plan, body: Mapping[str, Any], layer: int) -> str:
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
    if body.get("limit") is not None:
        parts.append(f"limit {body['limit']}")
    if "aggregates" in body:
        parts.append(f"aggregates [{_aggregates(body)}]")
    return ", ".join(parts)


def _aggregates(body: Mapping[str, Any]) -> str:
    found = [
        f"{a['function']}({'.'.join(a.get('column') or ('*',))})".lower()
        for a in body["aggregates"]
    ]
    groups = [".".join(key) for key in body.get("groupBy", ())]
    return ", ".join(found) + (f" by {', '.join(groups)}" if groups else "")
