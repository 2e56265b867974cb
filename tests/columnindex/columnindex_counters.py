"""Counters as they stand after some look-ups."""

from __future__ import annotations

from indextables.splits.lookup.colindex.metrics import IndexMetrics


def counters(lookups: list[tuple[str, str, int]], hits: int, misses: int) -> IndexMetrics:
    """So many look-ups of each column and outcome, uses of the cache, and bytes of two columns."""
    metrics = IndexMetrics()
    for column, outcome, count in lookups:
        for _ in range(count):
            metrics.lookup(column, outcome, 0.1)
    for hit in [True] * hits + [False] * misses:
        metrics.cache_used(hit=hit)
    metrics.cache_size = (23, 100)
    metrics.read("email", 1_200_000)
    metrics.read("status", 500_000)
    return metrics
