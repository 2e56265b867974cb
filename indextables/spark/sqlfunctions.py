"""The SQL functions of a session: text searches and buckets.

A text search is decided by the index alone. As a function it is a marker that the planner takes out
of the query; should one ever reach a row, it raises. Buckets are plain SQL and right anywhere,
spelled so that a scan can compute them (``computing``).
"""

from __future__ import annotations

import weakref
from typing import Any

from indextables.functions import UNITS

SEARCHES = ("textsearch", "fieldmatch", "indexquery")
BUCKETS = "indextables_"
MOST_RANGES = 16
_with_buckets: weakref.WeakSet[Any] = weakref.WeakSet()


def register(spark: Any) -> None:
    """Make the text searches known to a session."""
    from pyspark.sql.types import BooleanType

    for name in SEARCHES:
        marker = _marker(name)
        every = _marker(f"{name}all")
        spark.udf.register(name, marker, BooleanType())
        spark.udf.register(f"{name}all", every, BooleanType())
        spark.udf.register(f"tantivy4spark_{name}", marker, BooleanType())
        spark.udf.register(f"tantivy4spark_{name}all", every, BooleanType())


def register_buckets(spark: Any) -> None:
    """Make the bucket functions known to a session; done when a query first names one."""
    if spark in _with_buckets:
        return
    _with_buckets.add(spark)
    for statement in (_HISTOGRAM, _date_histogram(), _range()):
        spark.sql(statement)


def _marker(name: str) -> Any:
    text = (
        f"{name}() must reach the scan of an indextables table: use it in WHERE on a column of the "
        "table, in a session where indextables.register(spark) installed the full planner, or pass "
        "it as where= to indextables.read"
    )

    def search(*args: Any) -> bool:
        raise RuntimeError(text)

    search.__name__ = name
    return search


_HISTOGRAM = """
CREATE OR REPLACE TEMPORARY FUNCTION indextables_histogram(value DOUBLE, width DOUBLE)
RETURNS DOUBLE
RETURN CASE WHEN width > 0 AND value - value <> 0D THEN value
            WHEN width > 0 THEN floor(value / width) * width
            ELSE cast(raise_error('the width of indextables_histogram must be positive') AS DOUBLE)
       END
"""


def _date_histogram() -> str:
    number = "cast(regexp_extract(width, '^([0-9]+)(ms|s|m|h|d)$', 1) AS BIGINT)"
    cases = " ".join(f"WHEN '{unit}' THEN {micros}L" for unit, micros in UNITS.items())
    unit = f"CASE regexp_extract(width, '^([0-9]+)(ms|s|m|h|d)$', 2) {cases} END"
    step = f"({number} * {unit})"
    seconds = f"cast({step} div 1000000 AS BIGINT)"
    wrong = (
        "raise_error('the width of indextables_date_histogram is a number and ms, s, m, h or d')"
    )
    return f"""
CREATE OR REPLACE TEMPORARY FUNCTION indextables_date_histogram(value TIMESTAMP, width STRING)
RETURNS TIMESTAMP
RETURN CASE WHEN width RLIKE '^[1-9][0-9]*(ms|s|m|h|d)$' AND {step} % 1000000 = 0
            THEN cast(floor(cast(value AS BIGINT) / {seconds}) * {seconds} AS TIMESTAMP)
            WHEN width RLIKE '^[1-9][0-9]*(ms|s|m|h|d)$'
            THEN timestamp_micros(
                cast(unix_micros(value) - pmod(unix_micros(value), {step}) AS BIGINT))
            ELSE cast({wrong} AS TIMESTAMP) END
"""


def _range() -> str:
    names = [f"n{i} STRING, f{i} DOUBLE, t{i} DOUBLE" for i in range(1)]
    names += [
        f"n{i} STRING DEFAULT NULL, f{i} DOUBLE DEFAULT NULL, t{i} DOUBLE DEFAULT NULL"
        for i in range(1, MOST_RANGES)
    ]
    cases = " ".join(
        f"WHEN n{i} IS NOT NULL AND value IS NOT NULL AND (f{i} IS NULL OR value >= f{i}) "
        f"AND (t{i} IS NULL OR value < t{i}) THEN n{i}"
        for i in range(MOST_RANGES)
    )
    return f"""
CREATE OR REPLACE TEMPORARY FUNCTION indextables_range(value DOUBLE, {", ".join(names)})
RETURNS STRING
RETURN CASE {cases} END
"""
