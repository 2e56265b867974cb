"""Filters in Python: ``(col("status") == 500) & col("host").startswith("web")``.

The operators build the classes of ``indextables.expr.filters``. Python's ``and``, ``or`` and
``not`` cannot be overloaded: use ``&``, ``|`` and ``~``, with parentheses round comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from indextables.errors import PlanningError
from indextables.expr import filters as f


class ColumnExpression:
    """A column, or a condition or value built from columns."""

    __slots__ = ("_expression",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expression: f.Expression) -> None:
        self._expression = expression

    def indextables_expression(self) -> f.Expression:
        """The filter or expression built so far."""
        return self._expression

    def __repr__(self) -> str:
        return repr(self._expression)

    def __bool__(self) -> bool:
        raise PlanningError(
            "a column condition has no truth value of its own",
            hint="Use &, | and ~ instead of and, or and not, with parentheses",
        )

    def __getitem__(self, name: str) -> ColumnExpression:
        """A field of a struct column."""
        if not isinstance(self._expression, f.Attribute) or not isinstance(name, str):
            raise PlanningError(f"{self!r} has no field {name!r}")
        return ColumnExpression(f.Attribute((*self._expression.path, name)))

    def _with(self, kind: Any, *args: Any) -> ColumnExpression:
        return ColumnExpression(kind(self._expression, *args))

    def __eq__(self, other: object) -> ColumnExpression:  # type: ignore[override]
        return self._with(f.EqualTo, other)

    def __ne__(self, other: object) -> ColumnExpression:  # type: ignore[override]
        return ColumnExpression(f.Not(f.EqualTo(self._expression, other)))

    def __lt__(self, other: object) -> ColumnExpression:
        return self._with(f.LessThan, other)

    def __le__(self, other: object) -> ColumnExpression:
        return self._with(f.LessThanOrEqual, other)

    def __gt__(self, other: object) -> ColumnExpression:
        return self._with(f.GreaterThan, other)

    def __ge__(self, other: object) -> ColumnExpression:
        return self._with(f.GreaterThanOrEqual, other)

    def __and__(self, other: Any) -> ColumnExpression:
        return self._with(f.And, other)

    def __rand__(self, other: Any) -> ColumnExpression:
        return ColumnExpression(f.And(other, self._expression))

    def __or__(self, other: Any) -> ColumnExpression:
        return self._with(f.Or, other)

    def __ror__(self, other: Any) -> ColumnExpression:
        return ColumnExpression(f.Or(other, self._expression))

    def __invert__(self) -> ColumnExpression:
        return ColumnExpression(f.Not(self._expression))

    def _call(self, name: str, *args: Any) -> ColumnExpression:
        operands = (self._expression, *(f.as_value(a) for a in args))
        return ColumnExpression(f.Function(name, operands))

    def __add__(self, other: Any) -> ColumnExpression:
        return self._call("+", other)

    def __sub__(self, other: Any) -> ColumnExpression:
        return self._call("-", other)

    def __mul__(self, other: Any) -> ColumnExpression:
        return self._call("*", other)

    def __truediv__(self, other: Any) -> ColumnExpression:
        return self._call("/", other)

    def __mod__(self, other: Any) -> ColumnExpression:
        return self._call("%", other)

    def __neg__(self) -> ColumnExpression:
        return self._call("negative")

    def isin(self, *values: Any) -> ColumnExpression:
        """``IN``; takes the values or one collection of them."""
        one = values[0] if len(values) == 1 else None
        listed = one if isinstance(one, list | tuple | set | frozenset) else values
        return self._with(f.In, list(listed))

    def between(self, low: Any, high: Any) -> ColumnExpression:
        """``low <= column AND column <= high``."""
        above: ColumnExpression = self >= low
        below: ColumnExpression = self <= high
        return above & below

    def eq_null_safe(self, other: Any) -> ColumnExpression:
        """``<=>``: NULL equals NULL."""
        return self._with(f.EqualNullSafe, other)

    def is_null(self) -> ColumnExpression:
        return self._with(f.IsNull)

    def is_not_null(self) -> ColumnExpression:
        return self._with(f.IsNotNull)

    def startswith(self, text: Any) -> ColumnExpression:
        return self._with(f.StringStartsWith, text)

    def endswith(self, text: Any) -> ColumnExpression:
        return self._with(f.StringEndsWith, text)

    def contains(self, text: Any) -> ColumnExpression:
        return self._with(f.StringContains, text)

    def like(self, pattern: str, escape: str = "\\") -> ColumnExpression:
        return self._with(f.Like, pattern, escape)

    def ilike(self, pattern: str, escape: str = "\\") -> ColumnExpression:
        return self._with(f.Like, pattern, escape, True)

    def rlike(self, pattern: str) -> ColumnExpression:
        return self._with(f.RLike, pattern)

    def cast(self, dtype: pa.DataType | str) -> ColumnExpression:
        """``CAST(column AS dtype)``; a Spark type name or an Arrow type."""
        from indextables.types import type_from_json

        target = type_from_json(dtype) if isinstance(dtype, str) else dtype
        return self._with(f.Cast, target)

    def call(self, name: str, *args: Any) -> ColumnExpression:
        """A SQL function with this column as its first argument: ``col("a").call("lower")``."""
        return self._call(name.lower(), *args)

    def textsearch(self, query: str) -> ColumnExpression:
        """Rows whose tokenised text fits the search string."""
        return self._with(f.TextSearch, query)

    def fieldmatch(self, query: str) -> ColumnExpression:
        """Rows whose untokenised value fits the search string."""
        return self._with(f.FieldMatch, query)

    def indexquery(self, query: str) -> ColumnExpression:
        """Rows that fit the search string, this column being its default field."""
        return self._with(f.IndexQuery, query)


def col(name: str | tuple[str, ...]) -> ColumnExpression:
    """A column by name; ``a.b`` is field ``b`` of struct ``a``."""
    return ColumnExpression(f.Attribute(name))


def lit(value: Iterable[Any] | Any) -> ColumnExpression:
    """A literal, where the left side of an operator needs one."""
    return ColumnExpression(f.as_value(value))


def indexquery(query: str) -> ColumnExpression:
    """Rows that fit the search string in any field."""
    return ColumnExpression(f.IndexQuery(f.EVERY_FIELD, query))


def textsearch(query: str) -> ColumnExpression:
    """Rows whose text fits the search string, in any tokenised field."""
    return ColumnExpression(f.TextSearch(f.EVERY_FIELD, query))


def fieldmatch(query: str) -> ColumnExpression:
    """Rows that fit the search string in any untokenised text field."""
    return ColumnExpression(f.FieldMatch(f.EVERY_FIELD, query))
