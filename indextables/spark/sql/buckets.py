"""Bucket functions as plain SQL, right in any plan and spelled so that a scan can compute them.

``indextables_histogram(number, width)`` is the lower end of a bucket, as a double; NaN and the
infinities are buckets of their own. ``indextables_date_histogram(moment, '15m')`` is the start of a
span of time. ``indextables_range(number, 'name', from, to, ...)`` is the name of the first range
that holds the number, ``to`` excluded and NULL an open end.

A call in the text of a query is replaced by its meaning, because Spark keeps the arguments of a SQL
function apart from its body and then offers neither to a scan. Calls that are never seen as text
meet functions of the same meaning, which take up to ``MOST_RANGES`` ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from indextables.functions import UNITS

MOST_RANGES = 16
NAMES = ("indextables_histogram", "indextables_date_histogram", "indextables_range")
_WIDTH = "^[1-9][0-9]*(ms|s|m|h|d)$"


def called(name: str, arguments: Sequence[str]) -> str | None:
    """What a call means; ``None`` where the number of its arguments is wrong."""
    given = [f"({argument})" for argument in arguments]
    if name == NAMES[2]:
        if len(given) < 4 or len(given) % 3 != 1:
            return None
        ranges = [(n, _double(f), _double(t)) for n, f, t in _triples(given[1:])]
        return f"({_range(_double(given[0]), ranges)})"
    if len(given) != 2:
        return None
    if name == NAMES[0]:
        return f"({_histogram(_double(given[0]), _double(given[1]))})"
    return f"({_date_histogram(f'cast({given[0]} AS TIMESTAMP)', given[1])})"


def definitions() -> Iterator[str]:
    """The statements that make the functions known to a session."""
    head = "CREATE OR REPLACE TEMPORARY FUNCTION"
    yield (
        f"{head} {NAMES[0]}(value DOUBLE, width DOUBLE) RETURNS DOUBLE "
        f"RETURN {_histogram('value', 'width')}"
    )
    yield (
        f"{head} {NAMES[1]}(value TIMESTAMP, width STRING) RETURNS TIMESTAMP "
        f"RETURN {_date_histogram('value', 'width')}"
    )
    ranges = [(f"n{i}", f"f{i}", f"t{i}") for i in range(MOST_RANGES)]
    names = ", ".join(
        f"{n} STRING{end}, {f} DOUBLE{end}, {t} DOUBLE{end}"
        for i, (n, f, t) in enumerate(ranges)
        for end in [" DEFAULT NULL" if i else ""]
    )
    body = _range("value", ranges)
    yield f"{head} {NAMES[2]}(value DOUBLE, {names}) RETURNS STRING RETURN {body}"


def _double(text: str) -> str:
    return f"cast({text} AS DOUBLE)"


def _triples(given: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(given[i], given[i + 1], given[i + 2]) for i in range(0, len(given), 3)]


def _histogram(value: str, width: str) -> str:
    wrong = "raise_error('the width of indextables_histogram must be positive')"
    return (
        f"CASE WHEN {width} > 0 AND {value} - {value} <> 0D THEN {value} "
        f"WHEN {width} > 0 THEN floor({value} / {width}) * {width} "
        f"ELSE cast({wrong} AS DOUBLE) END"
    )


def _date_histogram(value: str, width: str) -> str:
    number = f"cast(regexp_extract({width}, '^([0-9]+)(ms|s|m|h|d)$', 1) AS BIGINT)"
    cases = " ".join(f"WHEN '{unit}' THEN {micros}L" for unit, micros in UNITS.items())
    unit = f"CASE regexp_extract({width}, '^([0-9]+)(ms|s|m|h|d)$', 2) {cases} END"
    step = f"({number} * {unit})"
    seconds = f"cast({step} div 1000000 AS BIGINT)"
    wrong = (
        "raise_error('the width of indextables_date_histogram is a number and ms, s, m, h or d')"
    )
    return (
        f"CASE WHEN {width} RLIKE '{_WIDTH}' AND {step} % 1000000 = 0 "
        f"THEN cast(floor(cast({value} AS BIGINT) / {seconds}) * {seconds} AS TIMESTAMP) "
        f"WHEN {width} RLIKE '{_WIDTH}' THEN timestamp_micros("
        f"cast(unix_micros({value}) - pmod(unix_micros({value}), {step}) AS BIGINT)) "
        f"ELSE cast({wrong} AS TIMESTAMP) END"
    )


def _range(value: str, ranges: Sequence[tuple[str, str, str]]) -> str:
    cases = " ".join(
        f"WHEN {name} IS NOT NULL AND {value} IS NOT NULL AND ({low} IS NULL OR {value} >= {low}) "
        f"AND ({high} IS NULL OR {value} < {high}) THEN {name}"
        for name, low, high in ranges
    )
    return f"CASE {cases} END"
