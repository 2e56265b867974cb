"""What the column indexes did: counters in this process, and OpenTelemetry where it is installed.

Outcomes of a look-up: ``hit`` (the index gave the rows), ``miss`` (the column has no index here),
``error`` (the index could not be read; the split was read without it) and ``fallback`` (too many
rows match). ``init_logging_metrics`` logs three lines each minute and needs only ``logging``.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import Counter
from typing import Any

LOG = logging.getLogger("indextables.columnindex")
HIT, MISS, ERROR, FALLBACK = "hit", "miss", "error", "fallback"
DEFAULT_INTERVAL = 60.0


class IndexMetrics:
    """Counters; recording never raises."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._instruments: dict[str, Any] | None = None
        self.cache_size = (0, 0)
        self.reset()

    def reset(self) -> None:
        """Back to zero."""
        with self._lock:
            self.lookups: Counter[tuple[str, str]] = Counter()
            self.bytes_read: Counter[str] = Counter()
            self.cache: Counter[str] = Counter()
            self.milliseconds = 0.0

    def lookup(self, column: str, outcome: str, milliseconds: float = 0.0) -> None:
        """One look-up in the index of one split ended."""
        with self._lock:
            self.lookups[(column, outcome)] += 1
            self.milliseconds += milliseconds
        tools = self._tools()
        if tools:
            tools["lookups"].add(1, {"column": column, "outcome": outcome})
            tools["duration"].record(milliseconds, {"column": column})

    def cache_used(self, *, hit: bool) -> None:
        """The row cache was asked."""
        name = HIT if hit else MISS
        with self._lock:
            self.cache[name] += 1
        tools = self._tools()
        if tools:
            tools["cache"].add(1, {"operation": name})
            tools["size"].set(self.cache_size[0])

    def read(self, column: str, count: int) -> None:
        """Bytes of an index were read."""
        with self._lock:
            self.bytes_read[column] += count
        tools = self._tools()
        if tools:
            tools["bytes"].add(count, {"column": column})

    def _tools(self) -> dict[str, Any]:
        """OpenTelemetry's counters, in a program that uses it; others are spared its import."""
        if self._instruments is None:
            if "opentelemetry.metrics" not in sys.modules:
                return {}
            self._instruments = _instruments()
        return self._instruments

    def lines(self) -> list[str]:
        """The counters as three lines of text."""
        with self._lock:
            found = [f"{c}={n} ({o})" for (c, o), n in self.lookups.items()]
            read = [f"{c}={size_text(n)}" for c, n in self.bytes_read.items()]
            hits, misses = self.cache[HIT], self.cache[MISS]
            used, capacity = self.cache_size
        return [
            f"Index lookups: {', '.join(found) or 'none'}",
            f"Cache stats: hits={hits}, misses={misses}, size={used}/{capacity}",
            f"Bytes read: {', '.join(read) or 'none'}",
        ]


def size_text(count: int) -> str:
    """``1.2MB``, ``500KB``, ``12B``: powers of 1,000."""
    if count >= 1_000_000:
        return f"{count / 1e6:.1f}MB"
    return f"{count / 1e3:.0f}KB" if count >= 1_000 else f"{count}B"


def _instruments() -> dict[str, Any]:
    try:
        from opentelemetry import metrics
    except ImportError:
        return {}
    meter = metrics.get_meter("indextables")
    return {
        "lookups": meter.create_counter("index.lookups"),
        "duration": meter.create_histogram("index.lookup_duration", unit="ms"),
        "cache": meter.create_counter("index.cache.operations"),
        "size": meter.create_gauge("index.cache.size"),
        "bytes": meter.create_counter("index.bytes_read", unit="By"),
    }


METRICS = IndexMetrics()


class _Logger:
    """One thread that logs the counters; asked again it changes its interval."""

    def __init__(self) -> None:
        self._stop: threading.Event | None = None

    def start(self, seconds: float) -> None:
        self.stop()
        stop = self._stop = threading.Event()
        thread = threading.Thread(
            target=self._run, args=(stop, seconds), name="indextables-metrics", daemon=True
        )
        thread.start()

    def stop(self) -> None:
        if self._stop is not None:
            self._stop.set()
            self._stop = None

    @staticmethod
    def _run(stop: threading.Event, seconds: float) -> None:
        while not stop.wait(seconds):
            for line in METRICS.lines():
                LOG.info(line)


_logger = _Logger()


def init_logging_metrics() -> bool:
    """Log the counters every 60 seconds, at INFO."""
    return init_logging_metrics_with_interval(DEFAULT_INTERVAL)


def init_logging_metrics_with_interval(seconds: float) -> bool:
    """Log the counters every so many seconds, at INFO."""
    if seconds <= 0:
        raise ValueError("the interval must be positive")
    _logger.start(float(seconds))
    return True


def stop_logging_metrics() -> None:
    """End the logging."""
    _logger.stop()
