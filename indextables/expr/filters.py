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

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from indextables.errors import PlanningError

EVERY_FIELD = "*"
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*$")
_PATH_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


class Expression:
    """Anything that has a value for a row."""

    __slots__ = ()

    def children(self) -> tuple[Expression, ...]:
        return ()

    def walk(self) -> Iterator[Expression]:
        """This expression and all below it, parents first."""
        yield self
        for child in self.children():
            yield from child.walk()

    def references(self) -> tuple[tuple[str, ...], ...]:
        """The column paths read, in order of first use."""
        found = [e.path for e in self.walk() if isinstance(e, Attribute)]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Attribute(Expression):
    """A column, or a field inside a struct column."""

    path: tuple[str, ...]

    def __init__(self, path: str | tuple[str, ...] | list[str]) -> None:
        parts = split_path(path) if isinstance(path, str) else tuple(path)
        if not parts:
            raise PlanningError("a column name is empty")
        object.__setattr__(self, "path", parts)

    def __repr__(self) -> str:
        return ".".join(
            p if _PLAIN_NAME.match(p) else f"`{p.replace('`', '``')}`" for p in self.path
        )


@dataclass(frozen=True, slots=True, repr=False)
class Lit(Expression):
    """A literal; ``dtype`` says how to read ``value`` where the Python type alone does not.

    With a ``dtype`` of timestamp, date or decimal an ``int`` is physical: microseconds, days,
    the unscaled number.
    """

    value: Any
    dtype: pa.DataType | None = None

    def __repr__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, str):
            return "'" + self.value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        if isinstance(self.value, bytes):
            return f"X'{self.value.hex().upper()}'"
        return str(self.value)


@dataclass(frozen=True, slots=True, repr=False)
class Cast(Expression):
    """``CAST(child AS dtype)``; ``lenient`` is ``try_cast``: NULL instead of an error."""

    child: Expression
    dtype: pa.DataType
    lenient: bool = False

    def children(self) -> tuple[Expression, ...]:
        return (self.child,)

    def __repr__(self) -> str:
        from indextables.types import type_name

        return f"{'try_' if self.lenient else ''}cast({self.child!r} as {type_name(self.dtype)})"


@dataclass(frozen=True, slots=True, repr=False)
class Function(Expression):
    """A call by lower-case SQL name: ``lower``, ``+``, ``if``, ``case``."""

    name: str
    args: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return self.args

    def __repr__(self) -> str:
        if len(self.args) == 2 and not self.name[0].isalpha():
            return f"({self.args[0]!r} {self.name} {self.args[1]!r})"
        return f"{self.name}({', '.join(map(repr, self.args))})"


class Filter(Expression):
    """An expression that is TRUE, FALSE or NULL."""

    __slots__ = ()

    def __and__(self, other: Filter) -> Filter:
        return And(self, other)

    def __or__(self, other: Filter) -> Filter:
        return Or(self, other)

    def __invert__(self) -> Filter:
        return Not(self)


Operand: TypeAlias = Any


def split_path(name: str) -> tuple[str, ...]:
    """``a.b`` and ```` `a.b`.c ```` as path parts."""
    parts: list[str] = []
    at = 0
    while True:
        match = _PATH_PART.match(name, at)
        if match is None:
            raise PlanningError(
                f"'{name}' is not a column name", hint="Put backticks around unusual names"
            )
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        at = match.end()
        if at == len(name):
            return tuple(parts)
        if name[at] != ".":
            raise PlanningError(
                f"'{name}' is not a column name", hint="Put backticks around unusual names"
            )
        at += 1


def as_column(value: Operand) -> Expression:
    """A left operand: a name, a path, an expression or a ``col(...)``."""
    value = unwrap(value)
    if isinstance(value, Expression):
        return value
    if isinstance(value, str | tuple | list):
        return Attribute(value)
    raise PlanningError(f"{value!r} does not name a column")


def as_value(value: Operand) -> Expression:
    """A right operand: a plain value is a literal."""
    value = unwrap(value)
    return value if isinstance(value, Expression) else Lit(_hashable(value))


def unwrap(value: Any) -> Any:
    """The expression inside a ``col(...)``; anything else as it is."""
    inner = getattr(type(value), "indextables_expression", None)
    return inner(value) if inner is not None else value


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _hashable(v)) for k, v in value.items())
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return value


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
class IsNull(Filter):
    """``child IS NULL``."""

    child: Expression

    def __init__(self, child: Operand) -> None:
        object.__setattr__(self, "child", as_column(child))

    def children(self) -> tuple[Expression, ...]:
        return (self.child,)

    def __repr__(self) -> str:
        return f"{self.child!r} IS NULL"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class IsNotNull(Filter):
    """``child IS NOT NULL``."""

    child: Expression

    def __init__(self, child: Operand) -> None:
        object.__setattr__(self, "child", as_column(child))

    def children(self) -> tuple[Expression, ...]:
        return (self.child,)

    def __repr__(self) -> str:
        return f"{self.child!r} IS NOT NULL"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class And(Filter):
    """All parts hold; takes two or more."""

    parts: tuple[Expression, ...]

    def __init__(self, *parts: Operand) -> None:
        object.__setattr__(self, "parts", tuple(as_condition(p) for p in parts))

    def children(self) -> tuple[Expression, ...]:
        return self.parts

    def __repr__(self) -> str:
        return "(" + " AND ".join(map(repr, self.parts)) + ")"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Or(Filter):
    """Some part holds; takes two or more."""

    parts: tuple[Expression, ...]

    def __init__(self, *parts: Operand) -> None:
        object.__setattr__(self, "parts", tuple(as_condition(p) for p in parts))

    def children(self) -> tuple[Expression, ...]:
        return self.parts

    def __repr__(self) -> str:
        return "(" + " OR ".join(map(repr, self.parts)) + ")"


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
    """A search string laid against one column, or against every field (``*``)."""

    verb: ClassVar[str] = "indexquery"
    column: Attribute | None
    query: str

    def __init__(self, column: Operand, query: str) -> None:
        asked = unwrap(column)
        target = None if asked is None or asked == EVERY_FIELD else as_column(asked)
        if target == Attribute("_indexall"):
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


def _parse_text(text: str) -> Expression:
    from indextables.expr import catalyst, sqltext

    if catalyst.is_catalyst_text(text):
        return catalyst.from_json(text)
    return sqltext.parse_predicate(text)
