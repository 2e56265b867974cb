"""The nodes of typed expressions: one operation with its result type, and literals.

``indextables.expr.typed`` makes them, ``indextables.expr.functions`` computes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from indextables.expr import timetext
from indextables.expr.coercion import TIMESTAMP, NotComputableError, family
from indextables.expr.literals import Kind, Scalar
from indextables.expr.predicate import Column
from indextables.types import type_name

KINDS = {
    "null": Kind.NULL,
    "bool": Kind.BOOLEAN,
    "int": Kind.INTEGER,
    "decimal": Kind.DECIMAL,
    "float": Kind.DOUBLE,
    "double": Kind.DOUBLE,
    "string": Kind.STRING,
    "binary": Kind.BINARY,
    "date": Kind.DATE,
    "ts": Kind.TIMESTAMP,
    "ntz": Kind.NTZ,
}


@dataclass(frozen=True, slots=True)
class Typed:
    """One operation with its result type; ``value`` is a physical literal or a parameter."""

    op: str
    dtype: pa.DataType
    args: tuple[Typed, ...] = ()
    column: Column | None = None
    value: Any = None

    def columns(self) -> Iterator[Column]:
        """The columns that it reads."""
        if self.column is not None:
            yield self.column
        for arg in self.args:
            yield from arg.columns()

    def __repr__(self) -> str:
        if self.op == "column":
            return repr(self.column)
        if self.op == "literal":
            return _shown(self)
        if self.op in ("cast", "try_cast"):
            return f"{self.op}({self.args[0]!r} as {type_name(self.dtype)})"
        if len(self.args) == 2 and not self.op[0].isalpha():
            return f"({self.args[0]!r} {self.op} {self.args[1]!r})"
        extra = [] if self.value is None else [repr(self.value)]
        return f"{self.op}({', '.join([*map(repr, self.args), *extra])})"


def _shown(node: Typed) -> str:
    if node.value is None:
        return "NULL"
    if pa.types.is_decimal(node.dtype):
        return str(Decimal(node.value).scaleb(-node.dtype.scale))
    return repr(node.value)


def literal(scalar: Scalar) -> Typed:
    """A literal with the type Spark gives it."""
    if scalar.kind is Kind.DECIMAL:
        return _decimal_literal(scalar.value)
    if scalar.kind is Kind.INTEGER:
        value = scalar.value
        if not timetext.INT64_MIN <= value <= timetext.INT64_MAX:
            return _decimal_literal(Fraction(value))
        small = timetext.INT32_MIN <= value <= timetext.INT32_MAX
        return Typed("literal", pa.int32() if small else pa.int64(), value=value)
    dtypes = {
        Kind.NULL: pa.null(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.DOUBLE: pa.float64(),
        Kind.STRING: pa.string(),
        Kind.BINARY: pa.binary(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: TIMESTAMP,
        Kind.NTZ: pa.timestamp("us"),
    }
    if scalar.kind not in dtypes:
        raise NotComputableError
    return Typed("literal", dtypes[scalar.kind], value=scalar.value)


def scalar(node: Typed) -> Scalar:
    kind = family(node.dtype)
    if kind == "decimal":
        return Scalar(Kind.DECIMAL, Fraction(node.value, 10**node.dtype.scale))
    return Scalar(KINDS[kind], node.value)


def _decimal_literal(value: Fraction) -> Typed:
    scale = 0
    while (value * 10**scale).denominator != 1:
        scale += 1
        if scale > 38:
            raise NotComputableError
    unscaled = int(value * 10**scale)
    precision = max(len(str(abs(unscaled))), scale, 1)
    if precision > 38:
        raise NotComputableError
    return Typed("literal", pa.decimal128(precision, scale), value=unscaled)
