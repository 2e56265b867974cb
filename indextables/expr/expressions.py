"""Values of a row before a table is known: columns, literals, casts, calls.

These are the operands of ``indextables.expr.filters``. A name is written ``a.b`` for field ``b`` of
struct ``a``, with backticks round unusual parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from indextables.errors import PlanningError

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
    """``CAST(child AS dtype)``; ``lenient`` is ``try_cast``: NULL instead of an error.

    ``legacy`` marks a cast that wraps and guesses instead of failing (ANSI mode off).
    """

    child: Expression
    dtype: pa.DataType
    lenient: bool = False
    legacy: bool = False

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
