"""Moments that are computed: ``now-1d``, ``now/d``, ``2024-01-15||+1M/d``.

A text is an anchor (``now``, or a date or time before ``||``) and steps from left to right: ``+2h``
and ``-1M`` move, ``/d`` rounds. Units are ``y M w d h H m s``; a week begins on Monday. A rounded
moment names the whole unit, as a day without a time does: ``ts:<now/d`` ends before today,
``ts:<=now/d`` with the end of today. Days and longer are counted by the calendar of the zone.

``now`` is read once for a search, so its two ends are apart by exactly what is written.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import tzinfo

from indextables.expr import timetext
from indextables.expr.literals import Span
from indextables.expr.timetext import DAY_MICROS

_MATH = re.compile(r"(?:(now)|(.+?)\|\|)((?:[+-]\d*[yMwdhHms]|/[yMwdhHms])*)$", re.S)
_STEP = re.compile(r"([+-])(\d*)([yMwdhHms])|/([yMwdhHms])")
_USES_NOW = re.compile(r"\bnow\b")
_CLOCK = {"h": 3_600_000_000, "H": 3_600_000_000, "m": 60_000_000, "s": 1_000_000}
_MONDAY = 4
"""The first Monday after the epoch's Thursday, in days."""
_now: ContextVar[int | None] = ContextVar("now", default=None)


def uses_now(text: str) -> bool:
    """May a search string mean something else a moment later?"""
    return _USES_NOW.search(text) is not None


@contextmanager
def fixed_now(micros: int | None = None) -> Iterator[None]:
    """One ``now`` for all that is read inside; one from outside stays."""
    if micros is None:
        micros = _now.get()
    token = _now.set(time.time_ns() // 1000 if micros is None else micros)
    try:
        yield
    finally:
        _now.reset(token)


def is_math(text: str) -> bool:
    return text.startswith("now") or "||" in text


def math_span(text: str, tz: tzinfo, anchor_span: Callable[[str], Span]) -> Span | None:
    """The instants (microseconds) that a text names; ``None`` if it is no computed moment.

    ``anchor_span`` reads a date or time.
    """
    match = _MATH.match(text.strip())
    if match is None:
        return None
    if match[1]:
        now = _now.get()
        low = high = time.time_ns() // 1000 if now is None else now
    else:
        span = anchor_span(match[2])
        low, high = span.low, span.high
    for sign, count, unit, rounding in _STEP.findall(match[3]):
        if rounding:
            low = _floor(low, rounding, tz)
            high = _moved(_floor(high, rounding, tz), 1, rounding, tz) - 1
        else:
            steps = int(count or 1) * (-1 if sign == "-" else 1)
            low = _moved(low, steps, unit, tz)
            high = _moved(high + 1, steps, unit, tz) - 1 if high > low else low
    return Span(low, max(low, high))


def _moved(instant: int, steps: int, unit: str, tz: tzinfo) -> int:
    if unit in _CLOCK:
        return instant + steps * _CLOCK[unit]
    days, rest = divmod(timetext.instant_to_local(instant, tz), DAY_MICROS)
    if unit in "dw":
        days += steps * (7 if unit == "w" else 1)
    else:
        days = timetext.add_months(days, steps * (12 if unit == "y" else 1))
    return timetext.local_to_instant(days * DAY_MICROS + rest, tz)


def _floor(instant: int, unit: str, tz: tzinfo) -> int:
    wall = timetext.instant_to_local(instant, tz)
    if unit in _CLOCK:
        return instant - wall % _CLOCK[unit]
    days = wall // DAY_MICROS
    if unit == "w":
        days -= (days - _MONDAY) % 7
    elif unit in "My":
        year, month, _ = timetext.civil_from_days(days)
        days = timetext.days_from_civil(year, 1 if unit == "y" else month, 1)
    return timetext.day_start(days, tz)
