"""Functions for Spark DataFrames: text searches, relevance and buckets.

>>> df.filter(textsearch("message", "timeout AND db") | (col("status") == 500))  # doctest: +SKIP

The session must know them: ``indextables.register(spark)``, or any ``indextables.read``, does that.
"""

from __future__ import annotations

import re
from typing import Any

from indextables.errors import ConfigError
from indextables.expr.infix import EVERY

UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


def textsearch(column: Any, query: str) -> Any:
    """Rows whose tokenised text fits the search string; ``"*"`` asks every text column."""
    return _search("textsearch", column, query)


def fieldmatch(column: Any, query: str) -> Any:
    """Rows whose untokenised value fits the search string."""
    return _search("fieldmatch", column, query)


def indexquery(column: Any, query: str) -> Any:
    """Rows that fit the search string, the column being its default field."""
    return _search("indexquery", column, query)


def textsearchall(query: str) -> Any:
    """Rows of which any tokenised column fits the search string."""
    return textsearch("*", query)


def fieldmatchall(query: str) -> Any:
    """Rows of which any untokenised column fits the search string."""
    return fieldmatch("*", query)


def indexqueryall(query: str) -> Any:
    """Rows that fit the search string, every column being a default field."""
    return indexquery("*", query)


def score() -> Any:
    """The relevance of a row to the searches in WHERE; higher is better, 0 without a search."""
    from pyspark.sql import functions as f

    return f.col("_score")


def histogram(column: Any, width: float) -> Any:
    """The lower bound of the bucket of ``width`` that a number falls into."""
    from pyspark.sql import functions as f

    if width <= 0:
        raise ConfigError(f"the width of a histogram must be positive, not {width}")
    value = _column(column).cast("double")
    bucket = f.floor(value / width).cast("double") * float(width)
    return f.when(value - value != 0.0, value).otherwise(bucket)


def date_histogram(column: Any, width: str) -> Any:
    """The start of the time bucket of ``width`` (``15m``, ``1h``, ``7d``) a moment falls into."""
    from pyspark.sql import functions as f

    match = re.fullmatch(r"([1-9][0-9]*)(ms|s|m|h|d)", width)
    if match is None:
        raise ConfigError(
            f"'{width}' is not a length of time", hint="Use a number and ms, s, m, h or d"
        )
    step, moment = int(match[1]) * UNITS[match[2]], _column(column).cast("timestamp")
    if step % UNITS["s"] == 0:
        seconds = f.lit(step // UNITS["s"])
        return (f.floor(moment.cast("bigint") / seconds) * seconds).cast("timestamp")
    micros = f.unix_micros(moment)
    return f.timestamp_micros(micros - f.pmod(micros, f.lit(step)))


def ranges(column: Any, *buckets: tuple[str, float | None, float | None]) -> Any:
    """The name of the first range ``(name, from, to)`` that holds a number; ``to`` is excluded."""
    from pyspark.sql import functions as f

    value = _column(column)
    found = f.lit(None).cast("string")
    for name, start, stop in reversed(buckets):
        inside = value.isNotNull()
        inside = inside if start is None else inside & (value >= start)
        inside = inside if stop is None else inside & (value < stop)
        found = f.when(inside, f.lit(name)).otherwise(found)
    return found


def _search(name: str, column: Any, query: str) -> Any:
    from pyspark.sql import functions as f

    every = isinstance(column, str) and column == "*"
    return f.call_function(name, _column(EVERY if every else column), f.lit(query))


def _column(column: Any) -> Any:
    from pyspark.sql import functions as f

    return f.col(column) if isinstance(column, str) else column


__all__ = [
    "date_histogram",
    "fieldmatch",
    "fieldmatchall",
    "histogram",
    "indexquery",
    "indexqueryall",
    "ranges",
    "score",
    "textsearch",
    "textsearchall",
]
