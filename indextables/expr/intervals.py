"""Intervals, and dates and timestamps that are moved by them, as Spark moves them.

An interval is either months (``INTERVAL '2' YEAR``) or days and a clock (``INTERVAL 7 DAYS``,
``INTERVAL '1 02:30' DAY TO MINUTE``); Spark has no sum of both. Whole days of a clock count as
days, so 24 hours are a day of the calendar, whatever the zone does meanwhile. A date moved by days
or months is a date, one moved by a clock a timestamp. Days and months move the calendar of the
session's zone and keep its offset where they can; a clock moves the instant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import tzinfo
from fractions import Fraction
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import EvaluationError
from indextables.expr import timetext
from indextables.expr.kernels import by_distinct

_DAY = timetext.DAY_MICROS
_MONTHS = {"month": 1, "year": 12}
_DAYS = {"day": 1, "week": 7}
_CLOCK = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
_PART = re.compile(r"\s*([+-]?\s*\d+(?:\.\d{1,6})?)\s*([a-z]+)\s*", re.I)
_SPAN = re.compile(
    r"(?P<sign>[+-])?(?:(?P<day>\d+)(?:\s+|$))?"
    r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}(?:\.\d{1,6})?))?)?)?$"
)
_YEARS = re.compile(r"(?P<sign>[+-])?(?P<year>\d+)-(?P<month>\d{1,2})$")


class Interval(NamedTuple):
    """Months, or days and microseconds; ``micros`` is ``None`` where no clock was named."""

    months: int = 0
    days: int = 0
    micros: int | None = None

    def plus(self, other: Interval) -> Interval:
        clocks = [i.micros for i in (self, other) if i.micros is not None]
        micros = sum(clocks) if clocks else None
        return Interval(self.months + other.months, self.days + other.days, micros)

    def times(self, factor: int) -> Interval:
        micros = None if self.micros is None else self.micros * factor
        return Interval(self.months * factor, self.days * factor, micros)

    @property
    def is_mixed(self) -> bool:
        """Months and days together, which Spark does not add up."""
        return bool(self.months) and (bool(self.days) or self.micros is not None)


def of_unit(count: str, unit: str) -> Interval | None:
    """``INTERVAL '7' DAY``; ``None`` if it is not one."""
    unit = unit.lower().removesuffix("s")
    try:
        number = Fraction(count.replace(" ", ""))
    except (ValueError, ZeroDivisionError):
        return None
    if unit in _CLOCK and (number.denominator == 1 or unit == "second"):
        micros = number * _CLOCK[unit]
        return Interval(micros=int(micros)) if micros.denominator == 1 else None
    if number.denominator != 1:
        return None
    if unit in _DAYS:
        return Interval(days=int(number) * _DAYS[unit])
    return Interval(months=int(number) * _MONTHS[unit]) if unit in _MONTHS else None


def of_text(text: str) -> Interval | None:
    """``INTERVAL '1 day 2 hours'``."""
    found, at = Interval(), 0
    text = re.sub(r"^\s*interval\s", "", text, flags=re.I)
    while at < len(text):
        match = _PART.match(text, at)
        part = match and of_unit(match[1], match[2])
        if match is None or part is None:
            return None
        found, at = found.plus(part), match.end()
    return found if text.strip() else None


def of_span(text: str, first: str, last: str) -> Interval | None:
    """``INTERVAL '1 02:30:00' DAY TO SECOND``, ``INTERVAL '1-6' YEAR TO MONTH``."""
    first, last = first.lower(), last.lower()
    if (first, last) == ("year", "month"):
        return _whole(_YEARS.match(text.strip()), ("year", "month"))
    units = ("day", "hour", "minute", "second")
    if first != "day" or last not in units[1:]:
        return None
    asked = units[: units.index(last) + 1]
    match = _SPAN.match(text.strip())
    if match is None or any((match[u] is not None) != (u in asked) for u in units):
        return None
    return _whole(match, asked)


def _whole(match: re.Match[str] | None, units: tuple[str, ...]) -> Interval | None:
    if match is None:
        return None
    found = Interval()
    for unit in units:
        part = of_unit(match[unit], unit)
        if part is None:
            return None
        found = found.plus(part)
    return found.times(-1 if match["sign"] == "-" else 1)


# -- moving ---------------------------------------------------------------------------------------


def moved(values: pa.Array, months: int, micros: int, zone: str) -> pa.Array:
    """Dates and timestamps moved by months, or by days and a clock."""
    if pa.types.is_date(values.type):
        return _within(values, lambda day: timetext.add_months(day, months) + micros // _DAY)
    tz = timetext.zone(zone if values.type.tz else "UTC")
    days = micros // _DAY if micros >= 0 else -(-micros // _DAY)
    rest = micros - days * _DAY
    if not months and not days:
        return _within(values, lambda instant: instant + rest)
    return _within(values, lambda instant: _on_calendar(instant, months, days, tz) + rest)


def moved_days(dates: pa.Array, days: pa.Array) -> pa.Array:
    """Dates moved by a number of days each."""
    rows = zip(dates.cast(pa.int32()).to_pylist(), days.to_pylist(), strict=True)
    found = [None if d is None or n is None else d + n for d, n in rows]
    return _made(found, pa.date32())


def moved_months(dates: pa.Array, months: pa.Array) -> pa.Array:
    """Dates moved by a number of months each."""
    rows = zip(dates.cast(pa.int32()).to_pylist(), months.to_pylist(), strict=True)
    found = [None if d is None or n is None else timetext.add_months(d, n) for d, n in rows]
    return _made(found, pa.date32())


def days_between(end: pa.Array, start: pa.Array) -> pa.Array:
    """How many days lie between two dates."""
    return pc.subtract(end.cast(pa.int32()), start.cast(pa.int32()))


def _made(days: list[int | None], dtype: pa.DataType) -> pa.Array:
    try:
        return pa.array(days, pa.int32()).cast(dtype)
    except (OverflowError, pa.ArrowInvalid) as error:
        raise _out_of_range() from error


def _on_calendar(instant: int, months: int, days: int, tz: tzinfo) -> int:
    wall = timetext.instant_to_local(instant, tz)
    day, clock = divmod(wall, _DAY)
    target = (timetext.add_months(day, months) + days) * _DAY + clock
    same_offset = instant + target - wall
    if timetext.instant_to_local(same_offset, tz) == target:
        return same_offset
    return timetext.local_to_instant(target, tz)


def _within(values: pa.Array, change: Callable[[int], int]) -> pa.Array:
    try:
        return by_distinct(values, values.type, change)
    except (OverflowError, pa.ArrowInvalid) as error:
        raise _out_of_range() from error


def _out_of_range() -> EvaluationError:
    return EvaluationError(
        "a date or timestamp moved by an interval is out of range",
        hint="Leave out the rows that it is too much for, or use a shorter interval",
    )
