"""Filters as a user or Catalyst writes them: unbound, untyped, one class for each operator.

A filter names columns and holds Python values; it knows no table. ``bind`` gives it a schema and
turns it into the predicate the planner works with. Every filter is also an expression, so one can
stand inside another (``CASE WHEN a > 1 ...``). Operands are written the short way:
``EqualTo("status", 500)``, ``EqualTo("user.name", "ada")``, ``EqualTo(("a.b",), 1)`` for a name
that itself holds a dot; on the right a plain value is a literal, another column is
``Attribute("other")``. ``repr`` is SQL-like text.

``parse_filters`` takes whatever a caller has: a Spark SQL predicate, filters, a list of them (AND),
``col(...)`` expressions, PySpark data-source filters, or Catalyst JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from indextables.errors import PlanningError
from indextables.expr.expressions import (
    Attribute,
    Cast,
    Expression,
    Function,
    Lit,
    Operand,
    as_column,
    as_value,
    split_path,
    unwrap,
)
from indextables.expr.infix import EVERY

__all__ = [
    "AlwaysFalse",
    "AlwaysTrue",
    "And",
    "Attribute",
    "Cast",
    "EqualNullSafe",
    "EqualTo",
    "Expression",
    "FieldMatch",
    "Filter",
    "Function",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IndexQuery",
    "IsNotNull",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "Like",
    "Lit",
    "Not",
    "Or",
    "RLike",
    "StringContains",
    "StringEndsWith",
    "StringStartsWith",
    "TextFilter",
    "TextSearch",
    "Unsupported",
    "as_value",
    "parse_filters",
    "split_path",
]

EVERY_FIELD = "*"


class Filter(Expression):
    """An expression that is TRUE, FALSE or NULL."""

    __slots__ = ()

    def __and__(self, other: Filter) -> Filter:
        return And(self, other)

    def __or__(self, other: Filter) -> Filter:
        return Or(self, other)

    def __invert__(self) -> Filter:
        return Not(self)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Comparison(Filter):
    """Two operands compared; see the subclasses."""

    symbol: ClassVar[str] = "?"
    left: Expression
    right: Expression

    def __init__(self, left: Operand, right: Operand) -> None:
        object.__setattr__(self, "left", as_column(left))
        object.__setattr__(self, "right", as_value(right))

    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def __repr__(self) -> str:
        return f"{self.left!r} {self.symbol} {self.right!r}"


class EqualTo(Comparison):
    """``left = right``."""

    __slots__ = ()
    symbol = "="


class EqualNullSafe(Comparison):
    """``left <=> right``: NULL equals NULL, the answer is never NULL."""

    __slots__ = ()
    symbol = "<=>"


class GreaterThan(Comparison):
    """``left > right``."""

    __slots__ = ()
    symbol = ">"


class GreaterThanOrEqual(Comparison):
    """``left >= right``."""

    __slots__ = ()
    symbol = ">="


class LessThan(Comparison):
    """``left < right``."""

    __slots__ = ()
    symbol = "<"


class LessThanOrEqual(Comparison):
    """``left <= right``."""

    __slots__ = ()
    symbol = "<="


class StringStartsWith(Comparison):
    """``startswith(left, right)``."""

    __slots__ = ()
    symbol = "STARTSWITH"


class StringEndsWith(Comparison):
    """``endswith(left, right)``."""

    __slots__ = ()
    symbol = "ENDSWITH"


class StringContains(Comparison):
    """``contains(left, right)``."""

    __slots__ = ()
    symbol = "CONTAINS"


class RLike(Comparison):
    """``left RLIKE right``: a Java regular expression found anywhere in the value."""

    __slots__ = ()
    symbol = "RLIKE"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Like(Filter):
    """``left LIKE pattern ESCAPE escape``; ``ignore_case`` is ILIKE."""

    left: Expression
    pattern: Expression
    escape: str
    ignore_case: bool

    def __init__(
        self, left: Operand, pattern: Operand, escape: str = "\\", ignore_case: bool = False
    ) -> None:
        object.__setattr__(self, "left", as_column(left))
        object.__setattr__(self, "pattern", as_value(pattern))
        object.__setattr__(self, "escape", escape)
        object.__setattr__(self, "ignore_case", ignore_case)

    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.pattern)

    def __repr__(self) -> str:
        word = "ILIKE" if self.ignore_case else "LIKE"
        tail = "" if self.escape == "\\" else f" ESCAPE '{self.escape}'"
        return f"{self.left!r} {word} {self.pattern!r}{tail}"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class In(Filter):
    """``left IN (values)``; the values may hold NULL."""

    left: Expression
    values: tuple[Expression, ...]

    def __init__(self, left: Operand, values: Any) -> None:
        object.__setattr__(self, "left", as_column(left))
        object.__setattr__(self, "values", tuple(as_value(v) for v in values))

    def children(self) -> tuple[Expression, ...]:
        return (self.left, *self.values)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.values[:8])) + (", ..." if len(self.values) > 8 else "")
        return f"{self.left!r} IN ({shown})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class NullTest(Filter):
    """A test of one operand for NULL; see the subclasses."""

    words: ClassVar[str] = "?"
    child: Expression

    def __init__(self, child: Operand) -> None:
        object.__setattr__(self, "child", as_column(child))

    def children(self) -> tuple[Expression, ...]:
        return (self.child,)

    def __repr__(self) -> str:
        return f"{self.child!r} {self.words}"


class IsNull(NullTest):
    """``child IS NULL``."""

    __slots__ = ()
    words = "IS NULL"


class IsNotNull(NullTest):
    """``child IS NOT NULL``."""

    __slots__ = ()
    words = "IS NOT NULL"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Junction(Filter):
    """Two or more parts joined by one word; see the subclasses."""

    word: ClassVar[str] = "?"
    parts: tuple[Expression, ...]

    def __init__(self, *parts: Operand) -> None:
        object.__setattr__(self, "parts", _flat(type(self), parts))

    def children(self) -> tuple[Expression, ...]:
        return self.parts

    def __repr__(self) -> str:
        return "(" + f" {self.word} ".join(map(repr, self.parts)) + ")"


class And(Junction):
    """All parts hold; takes two or more."""

    __slots__ = ()
    word = "AND"


class Or(Junction):
    """Some part holds; takes two or more."""

    __slots__ = ()
    word = "OR"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Not(Filter):
    """The opposite; NULL stays NULL."""

    child: Expression

    def __init__(self, child: Operand) -> None:
        object.__setattr__(self, "child", as_condition(child))

    def children(self) -> tuple[Expression, ...]:
        return (self.child,)

    def __repr__(self) -> str:
        return f"NOT ({self.child!r})"


@dataclass(frozen=True, slots=True)
class AlwaysTrue(Filter):
    """Every row."""

    def __repr__(self) -> str:
        return "TRUE"


@dataclass(frozen=True, slots=True)
class AlwaysFalse(Filter):
    """No row."""

    def __repr__(self) -> str:
        return "FALSE"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TextFilter(Filter):
    """A search string matched against one column, or against every field (``*``)."""

    verb: ClassVar[str] = "indexquery"
    column: Attribute | None
    query: str

    def __init__(self, column: Operand, query: str) -> None:
        asked = unwrap(column)
        target = None if asked is None or asked == EVERY_FIELD else as_column(asked)
        if target == Attribute(EVERY):
            target = None
        if not (target is None or isinstance(target, Attribute)):
            raise PlanningError(f"{self.verb} needs a column, not {target!r}")
        object.__setattr__(self, "column", target)
        object.__setattr__(self, "query", query)

    def children(self) -> tuple[Expression, ...]:
        return () if self.column is None else (self.column,)

    def __repr__(self) -> str:
        target = EVERY_FIELD if self.column is None else repr(self.column)
        return f"{target} {self.verb.upper()} {Lit(self.query)!r}"


class IndexQuery(TextFilter):
    """The search language with ``column`` as default field, whatever its kind."""

    __slots__ = ()


class TextSearch(TextFilter):
    """As ``IndexQuery``, for tokenised columns only."""

    __slots__ = ()
    verb = "textsearch"


class FieldMatch(TextFilter):
    """As ``IndexQuery``, for columns that are not tokenised."""

    __slots__ = ()
    verb = "fieldmatch"


@dataclass(frozen=True, slots=True, repr=False)
class Unsupported(Filter):
    """A condition that is kept as text only; nothing below Spark decides it."""

    text: str
    columns: tuple[Attribute, ...] = ()
    expression: Any = None

    def children(self) -> tuple[Expression, ...]:
        return self.columns

    def __repr__(self) -> str:
        return self.text


TEXT_FILTERS: dict[str, type[TextFilter]] = {
    cls.verb: cls for cls in (IndexQuery, TextSearch, FieldMatch)
}


def text_call(name: str, args: list[Expression]) -> TextFilter | None:
    """``textsearch(col, 'q')``, ``textsearchall('q')`` and the names upstream gives them."""
    name = name.lower().removeprefix("tantivy4spark_").removeprefix("indextables_")
    every = name.endswith("all")
    kind = TEXT_FILTERS.get(name.removesuffix("all"))
    if kind is None:
        return None
    query = args[-1] if args else None
    if len(args) != (1 if every else 2) or not isinstance(query, Lit):
        raise PlanningError(f"{name} takes {'' if every else 'a column and '}a search string")
    if not isinstance(query.value, str):
        raise PlanningError(f"the search string of {name} must be a text, not {query!r}")
    column = args[0]
    if isinstance(column, Lit) and isinstance(column.value, str):
        column = Attribute(column.value) if column.value != EVERY_FIELD else column
    return kind(EVERY_FIELD if every or isinstance(column, Lit) else column, query.value)


def _flat(kind: type[Junction], parts: tuple[Operand, ...]) -> tuple[Expression, ...]:
    """The parts as conditions, those of the same kind taken apart."""
    found: list[Expression] = []
    for part in map(as_condition, parts):
        found.extend(part.parts if isinstance(part, kind) else (part,))
    return tuple(found)


def as_condition(value: Operand) -> Expression:
    """An operand of AND, OR, NOT: any expression that can be TRUE."""
    value = unwrap(value)
    if isinstance(value, bool):
        return AlwaysTrue() if value else AlwaysFalse()
    if isinstance(value, Expression):
        return value
    raise PlanningError(f"{value!r} is not a condition")


def parse_filters(source: Any) -> Expression:
    """The filter in whatever form it came; a list is a conjunction, nothing is ``AlwaysTrue``."""
    source = unwrap(source)
    if isinstance(source, Expression):
        return source
    if source is None or isinstance(source, bool):
        return AlwaysTrue() if source is None or source else AlwaysFalse()
    if isinstance(source, str):
        return _parse_text(source)
    from indextables.expr import catalyst, datasource

    if catalyst.is_catalyst_json(source):
        return catalyst.from_json(source)
    if isinstance(source, list | tuple):
        parts = [parse_filters(item) for item in source]
        return parts[0] if len(parts) == 1 else And(*parts) if parts else AlwaysTrue()
    if datasource.is_datasource_filter(source):
        return datasource.from_datasource(source)
    raise PlanningError(
        f"a filter cannot be a {type(source).__name__}",
        hint="Pass a SQL predicate, a filter object, col(...) or a list of them",
    )


def says_nothing(source: Any) -> bool:
    """Is there no condition at all: nothing, or a list of nothing?"""
    source = unwrap(source)
    if isinstance(source, list | tuple):
        return all(says_nothing(item) for item in source)
    return source is None


def _parse_text(text: str) -> Expression:
    from indextables.expr import catalyst, sqltext, wire

    if wire.is_wire_text(text):
        return wire.from_text(text)
    if catalyst.is_catalyst_text(text):
        return catalyst.from_json(text)
    return sqltext.parse_predicate(text)
