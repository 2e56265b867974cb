"""PySpark's data-source filters as ours; recognised by module and name, so PySpark is not needed.

Their values are already of the column's type: timestamps are aware datetimes, TIMESTAMP_NTZ naive
ones, decimals ``Decimal``; ``In`` holds a list that may contain ``None``.
"""

from __future__ import annotations

from typing import Any

from indextables.errors import PlanningError
from indextables.expr import filters as f

_SAME_NAME: dict[str, type[f.Comparison]] = {
    cls.__name__: cls
    for cls in (
        f.EqualTo,
        f.EqualNullSafe,
        f.GreaterThan,
        f.GreaterThanOrEqual,
        f.LessThan,
        f.LessThanOrEqual,
        f.StringStartsWith,
        f.StringEndsWith,
        f.StringContains,
    )
}


def is_datasource_filter(source: Any) -> bool:
    """Whether this is a filter of ``pyspark.sql.datasource``."""
    return any(
        base.__name__ == "Filter" and base.__module__ == "pyspark.sql.datasource"
        for base in type(source).__mro__
    )


def from_datasource(source: Any) -> f.Expression:
    """The same filter in our classes."""
    name = type(source).__name__
    if name == "Not":
        return f.Not(from_datasource(source.child))
    column = f.Attribute(tuple(source.attribute))
    if name in _SAME_NAME:
        return _SAME_NAME[name](column, source.value)
    if name == "In":
        return f.In(column, source.value)
    if name in ("IsNull", "IsNotNull"):
        return f.IsNull(column) if name == "IsNull" else f.IsNotNull(column)
    raise PlanningError(f"PySpark filter {name} is not known", hint="Leave it to Spark")
