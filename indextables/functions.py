"""Functions for Spark DataFrames: text searches, relevance and buckets.

>>> df.filter(textsearch("message", "timeout AND db") | (col("status") == 500))  # doctest: +SKIP

The session must know them: ``indextables.register(spark)``, or any ``indextables.read``, does that.
"""

from __future__ import annotations

from typing import Any


def textsearch(column: Any, query: str) -> Any:
    """Rows whose tokenised text fits the search string; ``"*"`` asks every text column."""
    return _search("textsearch", column, query)


def fieldmatch(column: Any, query: str) -> Any:
    """Rows whose untokenised value fits the search string."""
    return _search("fieldmatch", column, query)


def indexquery(column: Any, query: str) -> Any:
    """Rows that fit the search string, the column being its default field."""
    return _search("indexquery", column, query)


def score() -> Any:
    """The relevance of a row to the searches in WHERE; higher is better, 0 without a search."""
    from pyspark.sql import functions as f

    return f.col("_score")


def histogram(column: Any, width: float) -> Any:
    """The lower bound of the bucket of ``width`` that a number falls into."""
    from pyspark.sql import functions as f

    return f.call_function("indextables_histogram", _column(column), f.lit(float(width)))


def date_histogram(column: Any, width: str) -> Any:
    """The start of the time bucket of ``width`` (``15m``, ``1h``, ``7d``) a moment falls into."""
    from pyspark.sql import functions as f

    return f.call_function("indextables_date_histogram", _column(column), f.lit(width))


def ranges(column: Any, *buckets: tuple[str, float | None, float | None]) -> Any:
    """The name of the first range ``(name, from, to)`` that holds a number; ``to`` is excluded."""
    from pyspark.sql import functions as f

    parts = [f.lit(part) for bucket in buckets for part in bucket]
    return f.call_function("indextables_range", _column(column), *parts)


def _search(name: str, column: Any, query: str) -> Any:
    from pyspark.sql import functions as f

    target = f.col("_indexall") if isinstance(column, str) and column == "*" else _column(column)
    return f.call_function(name, target, f.lit(query))


def _column(column: Any) -> Any:
    from pyspark.sql import functions as f

    return f.col(column) if isinstance(column, str) else column


__all__ = [
    "date_histogram",
    "fieldmatch",
    "histogram",
    "indexquery",
    "ranges",
    "score",
    "textsearch",
]
