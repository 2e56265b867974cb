"""Moments of commits: how they are made, asked for, and shown.

A commit is dated ``max(now, previous + 1)``, so the times of a log grow strictly whatever the
clocks of its writers say, and a moment always names one version. The price is that one writer with
a clock years ahead dates every later version ahead too. That cannot be undone in the log, so it is
said: a writer logs a warning when the version it follows lies in its future by more than
``TOLERANCE_MS``, and so does a reader who asks for a moment that leaves such versions out.

Times are epoch milliseconds in 64 bits, as other writers wrote them; not every one is a date that a
calendar of four-digit years can show. Those are shown as numbers.
"""

from __future__ import annotations

import datetime
import logging
import math
import operator
from typing import Any

from indextables.errors import ConfigError

logger = logging.getLogger(__name__)

TOLERANCE_MS = 60_000
LATEST_MS = (1 << 63) - 1
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_SPELLINGS = "Use ISO form (2026-01-31 12:00:00), a datetime, or milliseconds since 1970"


def commit_moment(now_ms: int, previous_ms: int, path: str) -> int:
    """The time of a commit after one of ``previous_ms``; later than that wherever 64 bits allow."""
    if previous_ms - now_ms > TOLERANCE_MS:
        logger.warning(
            "%s: the newest version is dated %s, which is after this machine's clock (%s); this "
            "commit is dated just after it. Compare the clocks of the writers; until then "
            "read by version, not by timestamp",
            path,
            moment_text(previous_ms),
            moment_text(now_ms),
        )
    return min(max(now_ms, previous_ms + 1), LATEST_MS)


def warn_of_future(
    path: str, asked_ms: int, version: int, newest: tuple[int, int], now: int
) -> None:
    """Say so when a moment left out versions that are dated after this machine's clock."""
    newest_version, newest_ms = newest
    if version < newest_version and newest_ms - now > TOLERANCE_MS:
        logger.warning(
            "%s: version %d is the newest one at %s, but the table has versions up to %d, dated "
            "up to %s, which is after this machine's clock (%s). Read those by version number",
            path,
            version,
            moment_text(asked_ms),
            newest_version,
            moment_text(newest_ms),
            moment_text(now),
        )


def moment_of(moment_ms: int) -> datetime.datetime | None:
    """The date of epoch milliseconds, ``None`` where no four-digit year has it."""
    try:
        return _EPOCH + moment_ms * _MILLISECOND
    except OverflowError:
        return None


def moment_text(moment_ms: int) -> str:
    """A moment for people: ISO form, or the number where there is no such date."""
    moment = moment_of(moment_ms)
    return f"{moment_ms} ms" if moment is None else moment.isoformat()


def to_millis(moment: Any) -> int:
    """Epoch milliseconds of a moment as callers give it; a time without a zone is UTC."""
    if isinstance(moment, str):
        moment = _parsed(moment)
    if isinstance(moment, datetime.date) and not isinstance(moment, datetime.datetime):
        moment = datetime.datetime(moment.year, moment.month, moment.day)
    if isinstance(moment, datetime.datetime):
        return _of_datetime(moment)
    return _of_number(moment)


def _parsed(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(f"{text!r} is not a timestamp", hint=_SPELLINGS) from None


def _of_datetime(moment: datetime.datetime) -> int:
    try:
        zoned = moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment
        return int((zoned - _EPOCH) // _MILLISECOND)
    except (ValueError, TypeError, OverflowError):  # pandas' NaT is a datetime without a date
        raise ConfigError(f"{moment!r} is not a timestamp", hint=_SPELLINGS) from None


def _of_number(moment: Any) -> int:
    """Whole milliseconds, also of a float such as ``time.time() * 1000``."""
    try:
        if isinstance(moment, float) and math.isfinite(moment):
            millis = math.floor(moment)
        else:
            millis = operator.index(moment)
    except TypeError:
        millis = None
    if millis is None or isinstance(moment, bool) or abs(millis) > LATEST_MS:
        raise ConfigError(f"{moment!r} is not a timestamp", hint=_SPELLINGS)
    return millis
