"""Buckets to group by: numbers of equal width, spans of time.

>>> table.aggregate({"n": "count"}, [indextables.date_histogram("ts", "1h")])
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from indextables.errors import PlanningError
from indextables.expr.expressions import Attribute
from indextables.splits.read.partials import DateHistogram, Histogram

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_CALENDAR = ("minute", "hour", "day", "week", "month", "quarter", "year")
_SPAN = re.compile(r"(\d+)\s*(ms|[smhdw])$")


@dataclass(frozen=True, slots=True)
class Expressed:
    """Group by the value of a SQL expression."""

    text: str
    name: str | None = None


def histogram(
    column: str, interval: float, offset: float = 0.0, name: str | None = None
) -> Histogram:
    """Group numbers into buckets of equal width; the key is the lower end of a bucket."""
    if isinstance(interval, bool) or not isinstance(interval, int | float) or not interval > 0:
        raise PlanningError(
            f"a histogram needs an interval above 0, not {interval!r}",
            hint='Write histogram("latency", 100)',
        )
    return Histogram(column, interval, offset, name)


def date_histogram(
    column: str, interval: str | timedelta, name: str | None = None
) -> DateHistogram | Expressed:
    """Group dates or timestamps into spans of time; the key is the start of a span.

    ``interval`` is a length (``"15m"``, ``"1h"``, ``"7d"``, a ``timedelta``), counted from
    1970-01-01 UTC, or a unit of the calendar: minute, hour, day, week (from Monday), month,
    quarter, year.
    """
    if isinstance(interval, str) and interval.lower() in _CALENDAR:
        text = f"date_trunc('{interval.lower()}', {Attribute((column,))!r})"
        return Expressed(text, name or column)
    micros = _micros(interval)
    if micros <= 0:
        raise PlanningError(
            f"{interval!r} is not a span of time",
            hint=f"Write 15m, 1h, 7d, a timedelta, or one of {', '.join(_CALENDAR)}",
        )
    start = 4 * 86_400_000_000 if micros % (7 * 86_400_000_000) == 0 else 0
    return DateHistogram(column, micros, start, name)


def _micros(interval: str | timedelta) -> int:
    if isinstance(interval, timedelta):
        return interval // timedelta(microseconds=1)
    match = _SPAN.match(interval) if isinstance(interval, str) else None
    return 0 if match is None else int(int(match[1]) * _SECONDS[match[2]] * 1_000_000)
