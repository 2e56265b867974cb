"""Dates, times and zones as Spark reads them.

Days count from 1970-01-01, microseconds from its midnight; the calendar is the proleptic Gregorian
one for any year, also beyond Python's. A wall clock that a zone skips moves forward by the gap, one
that happens twice means the earlier instant, as Java decides. Offsets keep their seconds (Berlin
stood at +00:53:28 before 1893).

Text is read by the rules of Spark's cast: ``[+-]yyyy[-m[m][-d[d]]]``, then for timestamps
`` `` or ``T``, ``h[h]:m[m]:s[s][.ffffff]`` and a zone. More than six fraction digits are cut.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from indextables.errors import ConfigError

DAY_MICROS = 86_400_000_000
_MINUTE = 60_000_000
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE_DAYS = 146_097
_FIRST_SAFE, _LAST_SAFE = date(2, 1, 1).toordinal(), date(9998, 12, 31).toordinal()
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_CYCLE_START = date(2000, 1, 1).toordinal() - _EPOCH_ORDINAL

_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?$", re.S)
_STAMP = re.compile(
    r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
    r"(?:[ T](?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?\s*(.+)?)?)?$",
    re.S,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2})(?::?(\d{2}))?)?$")
_SHORT_ZONES = {
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00", "PST": "America/Los_Angeles",
    "CST": "America/Chicago", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "ECT": "Europe/Paris",
}  # fmt: skip


@lru_cache(maxsize=64)
def zone(name: str) -> tzinfo:
    """The zone of a Spark zone id: ``UTC``, ``Europe/Berlin``, ``+02:00``, ``GMT+8``."""
    name = _SHORT_ZONES.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT", "Etc/UTC"):
        return UTC
    if match := _OFFSET.match(name):
        hours, minutes, seconds = (int(match[i] or 0) for i in (2, 3, 4))
        if hours > 18 or minutes > 59 or seconds > 59:
            raise ConfigError(f"zone offset '{name}' is out of range")
        delta = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-delta if match[1] == "-" else delta)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(
            f"unknown time zone '{name}'", hint="Use a name such as Europe/Berlin or +02:00"
        ) from error


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since the epoch of a calendar date in any year; ValueError if there is no such date."""
    cycles, inside = divmod(year - 2000, 400)
    return date(2000 + inside, month, day).toordinal() - _EPOCH_ORDINAL + cycles * _CYCLE_DAYS


def wall_micros(moment: datetime) -> int:
    """Microseconds of a datetime's wall clock, whatever its zone."""
    return (moment.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)


def instant_micros(moment: datetime) -> int:
    """Microseconds since the epoch of an aware datetime."""
    return (moment - _EPOCH_UTC) // timedelta(microseconds=1)


def _near(micros: int) -> tuple[datetime, int]:
    """A datetime inside Python's years, and how far (whole 400-year cycles) it was moved."""
    ordinal = micros // DAY_MICROS + _EPOCH_ORDINAL
    cycles = 0
    if ordinal > _LAST_SAFE:
        cycles = -(-(ordinal - _LAST_SAFE) // _CYCLE_DAYS)
    elif ordinal < _FIRST_SAFE:
        cycles = (ordinal - _FIRST_SAFE) // _CYCLE_DAYS
    shift = cycles * _CYCLE_DAYS * DAY_MICROS
    return _EPOCH + timedelta(microseconds=micros - shift), shift


def local_to_instant(wall: int, tz: tzinfo) -> int:
    """The instant at which a zone's clock shows ``wall`` microseconds."""
    moment, shift = _near(wall)
    offset = moment.replace(tzinfo=tz).utcoffset() or timedelta()
    return wall_micros(moment) - offset // timedelta(microseconds=1) + shift


def instant_to_local(instant: int, tz: tzinfo) -> int:
    """What a zone's clock shows at an instant, in microseconds."""
    moment, shift = _near(instant)
    return wall_micros(moment.replace(tzinfo=UTC).astimezone(tz)) + shift


def is_repeated(wall: int, tz: tzinfo) -> bool:
    """Whether the zone's clock shows this wall time at two instants."""
    moment, _ = _near(wall)
    early = moment.replace(tzinfo=tz).utcoffset()
    return early != moment.replace(tzinfo=tz, fold=1).utcoffset() and not _is_skipped(wall, tz)


def _is_skipped(wall: int, tz: tzinfo) -> bool:
    return instant_to_local(local_to_instant(wall, tz), tz) != wall


def day_start(days: int, tz: tzinfo) -> int:
    """The first instant of a day in a zone."""
    wall = days * DAY_MICROS
    instant = local_to_instant(wall, tz)
    if not _is_skipped(wall, tz):
        return instant
    low, high = instant - 2 * DAY_MICROS, instant
    while low + 1 < high:
        middle = (low + high) // 2
        if instant_to_local(middle, tz) < wall:
            low = middle
        else:
            high = middle
    return high


def stays_after(instant: int, tz: tzinfo) -> bool:
    """Whether the zone's clock never again shows a time before the one at this instant."""
    shown = instant_to_local(instant, tz)
    minutes = 180
    last = instant + minutes * _MINUTE
    if instant_to_local(last, tz) - shown >= minutes * _MINUTE:
        return True
    moments = range(instant + _MINUTE, last, _MINUTE)
    return all(instant_to_local(moment, tz) >= shown for moment in moments)


def day_of(instant: int, tz: tzinfo) -> int:
    """The day a zone's calendar shows at an instant."""
    return instant_to_local(instant, tz) // DAY_MICROS


def parse_date(text: str) -> int | None:
    """Days since the epoch, or ``None`` if Spark could not cast the text to DATE."""
    match = _DATE.match(text.strip())
    if match is None:
        return None
    return _civil(match)


def parse_timestamp(text: str, default_zone: tzinfo | None) -> int | None:
    """Microseconds of a timestamp text; without a default zone the wall clock is returned."""
    match = _STAMP.match(text.strip())
    days = None if match is None else _civil(match)
    if match is None or days is None:
        return None
    hour, minute, second = (int(match[i] or 0) for i in (4, 5, 6))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int(((match[7] or "") + "000000")[:6])
    wall = days * DAY_MICROS + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    return _placed(wall, match[8], default_zone)


def _placed(wall: int, zone_text: str | None, default_zone: tzinfo | None) -> int | None:
    try:
        named = zone(zone_text.strip()) if zone_text else None
    except ConfigError:
        return None
    if default_zone is None:
        return wall
    result = local_to_instant(wall, named or default_zone)
    return result if INT64_MIN <= result <= INT64_MAX else None


def _civil(match: Any) -> int | None:
    try:
        days = days_from_civil(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except (ValueError, OverflowError):
        return None
    return days if INT32_MIN <= days <= INT32_MAX else None


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number, in any year."""
    cycles, inside = divmod(days - _CYCLE_START, _CYCLE_DAYS)
    moment = date.fromordinal(inside + _CYCLE_START + _EPOCH_ORDINAL)
    return moment.year + 400 * cycles, moment.month, moment.day


def format_date(days: int) -> str:
    """The day as Spark prints it; years beyond four digits carry a sign."""
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def format_wall(micros: int) -> str:
    """A wall clock as Spark prints it: the fraction without trailing zeros."""
    days, rest = divmod(micros, DAY_MICROS)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{format_date(days)} {clock}{tail}"


def add_months(days: int, months: int) -> int:
    """A day moved by months; the last day of a shorter month stands in for a missing one."""
    year, month, day = civil_from_days(days)
    year, zero_based = divmod(year * 12 + month - 1 + months, 12)
    following = divmod(year * 12 + zero_based + 1, 12)
    last = days_from_civil(following[0], following[1] + 1, 1) - 1
    return min(days_from_civil(year, zero_based + 1, 1) + day - 1, last)
