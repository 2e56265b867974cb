"""Typed expressions: an unbound expression with every name, type and cast made explicit.

``Compiler.compile`` inserts the casts Spark's analyser would, so the same condition compiles to
the same tree however it was written; ``repr`` shows them. What has no exact computation raises
``NotComputableError``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa

from indextables.errors import PlanningError, TypeMismatchError
from indextables.expr import filters as f
from indextables.expr import nested, timetext
from indextables.expr.coercion import (
    TIMESTAMP,
    NotComputableError,
    common_of,
    family,
    is_castable,
)
from indextables.expr.intervals import Interval
from indextables.expr.ipbind import is_address
from indextables.expr.javaregex import to_regex
from indextables.expr.like import LikePattern
from indextables.expr.literals import (
    Kind,
    UndecidableLiteralError,
    cast_scalar,
    scalar_of,
)
from indextables.expr.scope import NotAColumnError, Scope
from indextables.expr.typednode import Typed, literal, scalar
from indextables.expr.widening import is_widening

_TEXTUAL = ("string", "int", "bool", "date", "null")
_TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_UNIT_WORDS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


class Compiler:
    """Compiles expressions against one scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._calls: dict[str, Callable[[list[Typed]], Typed]] = {
            **{op: partial(self._arithmetic, op) for op in ("+", "-", "*", "%")},
            "lower": self._text_call("lower"),
            "upper": self._text_call("upper"),
            "trim": self._text_call("trim"),
            "ltrim": self._text_call("ltrim"),
            "rtrim": self._text_call("rtrim"),
            "lcase": self._text_call("lower"),
            "ucase": self._text_call("upper"),
            "length": self._length,
            "len": self._length,
            "char_length": self._length,
            "substring": self._substring,
            "substr": self._substring,
            "concat": self._concat,
            "coalesce": self._coalesce,
            "nvl": self._coalesce,
            "ifnull": self._coalesce,
            "nullif": self._nullif,
            "case": self._case,
            "if": self._case,
            "abs": self._abs,
            "negative": self._negative,
            "isnan": self._isnan,
            "div": self._integral_divide,
            "/": self._divide,
            "to_date": lambda args: self.cast(_one(args), pa.date32()),
            "date": lambda args: self.cast(_one(args), pa.date32()),
            "date_trunc": self._date_trunc,
            "current_timestamp": lambda args: self._now(TIMESTAMP),
            "now": lambda args: self._now(TIMESTAMP),
            "current_date": lambda args: self._now(pa.date32()),
            "array_contains": self._array_contains,
            "size": self._size,
            "cardinality": self._size,
            "get_json_object": self._json_object,
            "date_add": partial(self._calendar, "add_days"),
            "add_months": partial(self._calendar, "add_months"),
            "datediff": self._date_diff,
            "date_diff": self._date_diff,
        }
        for name in ("year", "month", "day", "dayofmonth", "quarter"):
            self._calls[name] = self._date_part("day" if name == "dayofmonth" else name)
        for name in ("hour", "minute", "second"):
            self._calls[name] = self._time_part(name)

    def compile(self, node: f.Expression) -> Typed:
        """The typed form, or ``NotComputableError``."""
        if isinstance(node, f.Attribute):
            return self._attribute(node)
        if isinstance(node, f.Lit):
            return self._literal(node)
        if isinstance(node, f.Cast):
            child = self.compile(node.child)
            if node.legacy and not is_widening(child.dtype, node.dtype):
                raise NotComputableError
            return self.cast(child, node.dtype, node.lenient)
        if isinstance(node, f.Function):
            return self._function(node)
        return self._condition(node)

    # -- operands ---------------------------------------------------------------------------------

    def _attribute(self, node: f.Attribute) -> Typed:
        try:
            column = self._scope.column(node.path)
        except NotAColumnError:
            raise NotComputableError from None
        if self._scope.is_collated(column):
            raise NotComputableError
        return Typed("column", column.dtype, column=column)

    def _literal(self, node: f.Lit) -> Typed:
        try:
            made = literal(scalar_of(node, self._scope.tz))
        except UndecidableLiteralError:
            raise NotComputableError from None
        if node.dtype is not None and pa.types.is_integer(node.dtype):
            return Typed("literal", node.dtype, value=made.value)
        return made

    def cast(self, child: Typed, dtype: pa.DataType, lenient: bool = False) -> Typed:
        """A cast, left out where it does nothing."""
        if child.dtype == dtype:
            return child
        if not is_castable(child.dtype, dtype):
            raise NotComputableError
        if lenient and not is_widening(child.dtype, dtype):
            return Typed("try_cast", dtype, (child,), value=self._scope.zone_name)
        zoned = {family(child.dtype), family(dtype)} & {"ts"}
        folded = self._cast_literal(child, dtype)
        value = self._scope.zone_name if zoned else None
        return folded or Typed("cast", dtype, (child,), value=value)

    def _cast_literal(self, child: Typed, dtype: pa.DataType) -> Typed | None:
        if child.op != "literal":
            return None
        if child.value is None:
            return Typed("literal", dtype)
        try:
            made = cast_scalar(scalar(child), dtype, self._scope.tz)
        except (UndecidableLiteralError, TypeMismatchError):
            return None
        if made.kind is Kind.DECIMAL:
            return Typed("literal", dtype, value=int(made.value * 10**dtype.scale))
        return Typed("literal", dtype, value=made.value)

    def _alike(self, nodes: list[Typed]) -> list[Typed]:
        dtype = common_of([n.dtype for n in nodes])
        return [self.cast(n, dtype) for n in nodes]

    # -- conditions -------------------------------------------------------------------------------

    def _condition(self, node: f.Expression) -> Typed:
        if isinstance(node, f.And | f.Or):
            name = "and" if isinstance(node, f.And) else "or"
            return Typed(name, pa.bool_(), tuple(self.condition(p) for p in node.parts))
        if isinstance(node, f.Not):
            return Typed("not", pa.bool_(), (self.condition(node.child),))
        if isinstance(node, f.AlwaysTrue | f.AlwaysFalse):
            return Typed("literal", pa.bool_(), value=isinstance(node, f.AlwaysTrue))
        if isinstance(node, f.IsNull | f.IsNotNull):
            test = Typed("is_null", pa.bool_(), (self.compile(node.child),))
            return test if isinstance(node, f.IsNull) else Typed("not", pa.bool_(), (test,))
        if isinstance(node, f.In):
            return self._in(node)
        if isinstance(node, f.Like):
            return self._like(node)
        if isinstance(node, f.RLike):
            return self._rlike(node)
        if isinstance(node, f.StringStartsWith | f.StringEndsWith | f.StringContains):
            return self._affix(node)
        if isinstance(node, f.Comparison):
            return self._comparison(node)
        raise NotComputableError

    def condition(self, node: f.Expression) -> Typed:
        """A typed expression that must be boolean."""
        made = self.compile(node)
        if pa.types.is_null(made.dtype):
            return Typed("literal", pa.bool_())
        if not pa.types.is_boolean(made.dtype):
            raise NotComputableError
        return made

    def _comparison(self, node: f.Comparison) -> Typed:
        left, right = self._alike([self.compile(node.left), self.compile(node.right)])
        if family(left.dtype) == "nested":
            raise NotComputableError
        if node.symbol not in ("=", "<=>"):
            self._refuse_addresses(node, left, right)
        return Typed(node.symbol, pa.bool_(), (left, right))

    def _refuse_addresses(self, node: f.Comparison, *sides: Typed) -> None:
        """Texts of addresses have another order than addresses."""
        paths = [side.column.path for side in sides if side.column is not None]
        if any(is_address(self._scope.mapping, path) for path in paths):
            raise PlanningError(
                f"addresses cannot be compared inside an expression: {node!r}",
                hint="Compare the column with an address, joined to the rest by AND, OR and NOT",
            )

    def _in(self, node: f.In) -> Typed:
        if not node.values:
            return Typed("literal", pa.bool_(), value=False)
        alike = self._alike([self.compile(node.left), *(self.compile(v) for v in node.values)])
        if family(alike[0].dtype) == "nested":
            raise NotComputableError
        return Typed(
            "or", pa.bool_(), tuple(Typed("=", pa.bool_(), (alike[0], v)) for v in alike[1:])
        )

    def _pattern(self, child: f.Expression, pattern: f.Expression) -> tuple[Typed, str]:
        made, literal_text = self.compile(child), self.compile(pattern)
        if literal_text.op != "literal" or not isinstance(literal_text.value, str):
            raise NotComputableError
        if family(made.dtype) not in ("string", "int", "bool", "date"):
            raise NotComputableError
        return self.cast(made, pa.string()), literal_text.value

    def _like(self, node: f.Like) -> Typed:
        child, pattern = self._pattern(node.left, node.pattern)
        if node.ignore_case:
            child, pattern = Typed("lower", pa.string(), (child,)), pattern.lower()
        parsed = LikePattern.parse(pattern, node.escape)
        return Typed("like", pa.bool_(), (child,), value=parsed)

    def _rlike(self, node: f.RLike) -> Typed:
        child, pattern = self._pattern(node.left, node.right)
        to_regex(pattern)
        return Typed("rlike", pa.bool_(), (child,), value=pattern)

    def _affix(self, node: f.Comparison) -> Typed:
        child, text = self._pattern(node.left, node.right)
        return Typed(node.symbol.lower(), pa.bool_(), (child,), value=text)

    # -- functions --------------------------------------------------------------------------------

    def _function(self, node: f.Function) -> Typed:
        if node.name in ("+", "-") and len(node.args) == 2:
            *others, last = node.args[:: 1 if _interval(node.args[1]) or node.name == "-" else -1]
            if (by := _interval(last)) is not None:
                return self._moved(self.compile(others[0]), by.times(1 if node.name == "+" else -1))
        rule = self._calls.get(node.name)
        if rule is None:
            raise NotComputableError
        return rule([self.compile(a) for a in node.args])

    def _text_call(self, op: str) -> Callable[[list[Typed]], Typed]:
        def rule(args: list[Typed]) -> Typed:
            return Typed(op, pa.string(), (self.cast(_one(args), pa.string()),))

        return rule

    def _length(self, args: list[Typed]) -> Typed:
        child = _one(args)
        if not pa.types.is_binary(child.dtype):
            child = self.cast(child, pa.string())
        return Typed("length", pa.int32(), (child,))

    def _substring(self, args: list[Typed]) -> Typed:
        if len(args) not in (2, 3) or any(family(a.dtype) != "int" for a in args[1:]):
            raise NotComputableError
        numbers = [self.cast(a, pa.int64()) for a in args[1:]]
        return Typed("substring", pa.string(), (self.cast(args[0], pa.string()), *numbers))

    def _concat(self, args: list[Typed]) -> Typed:
        if not args or any(family(a.dtype) not in _TEXTUAL for a in args):
            raise NotComputableError
        return Typed("concat", pa.string(), tuple(self.cast(a, pa.string()) for a in args))

    def _branches(self, values: list[Typed]) -> list[Typed]:
        kinds = {family(v.dtype) for v in values} - {"null"}
        if len(kinds) > 1 and "string" in kinds:
            raise NotComputableError
        return self._alike(values)

    def _coalesce(self, args: list[Typed]) -> Typed:
        if not args:
            raise NotComputableError
        alike = self._branches(args)
        return Typed("coalesce", alike[0].dtype, tuple(alike))

    def _nullif(self, args: list[Typed]) -> Typed:
        if len(args) != 2:
            raise NotComputableError
        left, right = self._alike(args)
        test = Typed("=", pa.bool_(), (left, right))
        return Typed("case", args[0].dtype, (test, Typed("literal", args[0].dtype), args[0]))

    def _case(self, args: list[Typed]) -> Typed:
        if len(args) < 3 or len(args) % 2 == 0:
            raise NotComputableError
        values = self._branches([*args[1::2], args[-1]])
        tests = [self._boolean(t) for t in args[:-1:2]]
        flat = [part for pair in zip(tests, values[:-1], strict=True) for part in pair]
        return Typed("case", values[0].dtype, (*flat, values[-1]))

    @staticmethod
    def _boolean(test: Typed) -> Typed:
        if pa.types.is_null(test.dtype):
            return Typed("literal", pa.bool_())
        if not pa.types.is_boolean(test.dtype):
            raise NotComputableError
        return test

    def _number(self, child: Typed) -> Typed:
        if family(child.dtype) not in ("int", "double"):
            raise NotComputableError
        return child

    def _abs(self, args: list[Typed]) -> Typed:
        child = self._number(_one(args))
        return Typed("abs", child.dtype, (child,))

    def _negative(self, args: list[Typed]) -> Typed:
        child = _one(args)
        if child.op == "literal" and family(child.dtype) in ("int", "decimal", "double"):
            return Typed("literal", child.dtype, value=-child.value)
        self._number(child)
        return Typed("negative", child.dtype, (child,))

    def _isnan(self, args: list[Typed]) -> Typed:
        child = self.cast(_one(args), pa.float64())
        return Typed("isnan", pa.bool_(), (child,))

    def _arithmetic(self, op: str, args: list[Typed]) -> Typed:
        kinds = [family(a.dtype) for a in args]
        if kinds == ["date", "int"] and op in ("+", "-"):
            days = self._negative([args[1]]) if op == "-" else args[1]
            return self._calendar("add_days", [args[0], days])
        if len(args) != 2 or any(kind not in ("int", "double") for kind in kinds):
            raise NotComputableError
        left, right = self._alike(args)
        return Typed(op, left.dtype, (left, right))

    def _divide(self, args: list[Typed]) -> Typed:
        if len(args) != 2 or any(family(a.dtype) not in ("int", "double") for a in args):
            raise NotComputableError
        return Typed("/", pa.float64(), tuple(self.cast(a, pa.float64()) for a in args))

    def _integral_divide(self, args: list[Typed]) -> Typed:
        if len(args) != 2 or any(family(a.dtype) != "int" for a in args):
            raise NotComputableError
        return Typed("div", pa.int64(), tuple(self.cast(a, pa.int64()) for a in args))

    def _now(self, dtype: pa.DataType) -> Typed:
        instant = timetext.instant_micros(datetime.now(UTC))
        if pa.types.is_date(dtype):
            return Typed("literal", dtype, value=timetext.day_of(instant, self._scope.tz))
        return Typed("literal", dtype, value=instant)

    def _date_part(self, name: str) -> Callable[[list[Typed]], Typed]:
        def rule(args: list[Typed]) -> Typed:
            child = self.cast(_one(args), pa.date32())
            return Typed(name, pa.int32(), (child,))

        return rule

    def _time_part(self, name: str) -> Callable[[list[Typed]], Typed]:
        def rule(args: list[Typed]) -> Typed:
            child = _one(args)
            if family(child.dtype) not in ("ts", "ntz"):
                child = self.cast(child, TIMESTAMP)
            zone = self._scope.zone_name if child.dtype.tz else "UTC"
            return Typed(name, pa.int32(), (child,), value=zone)

        return rule

    def _date_trunc(self, args: list[Typed]) -> Typed:
        if len(args) != 2 or not isinstance(args[0].value, str):
            raise NotComputableError
        unit = _UNIT_WORDS.get(args[0].value.lower(), args[0].value.lower())
        if unit not in _TRUNC_UNITS:
            raise NotComputableError
        child = self.cast(args[1], TIMESTAMP)
        return Typed("date_trunc", TIMESTAMP, (child,), value=(unit, self._scope.zone_name))

    # -- calendars and nested values --------------------------------------------------------------

    def _moved(self, child: Typed, by: Interval) -> Typed:
        kind = family(child.dtype)
        if kind not in ("date", "ts", "ntz") or by.is_mixed:
            raise NotComputableError
        if kind == "date" and by.micros is not None:
            child = self.cast(child, TIMESTAMP)
        micros = by.days * timetext.DAY_MICROS + (by.micros or 0)
        how = (by.months, micros, self._scope.zone_name)
        return Typed("moved", child.dtype, (child,), value=how)

    def _calendar(self, op: str, args: list[Typed]) -> Typed:
        if len(args) != 2 or family(args[1].dtype) != "int" or args[1].dtype.bit_width > 32:
            raise NotComputableError
        dates = (self.cast(args[0], pa.date32()), self.cast(args[1], pa.int32()))
        return Typed(op, pa.date32(), dates)

    def _date_diff(self, args: list[Typed]) -> Typed:
        if len(args) != 2:
            raise NotComputableError
        return Typed("datediff", pa.int32(), tuple(self.cast(a, pa.date32()) for a in args))

    def _array_contains(self, args: list[Typed]) -> Typed:
        if len(args) != 2 or not pa.types.is_list(args[0].dtype):
            raise NotComputableError
        item, value = args[0].dtype.value_type, args[1]
        numbers = {family(item), family(value.dtype)} <= {"int", "double"}
        if family(item) in ("nested", "decimal") or not (
            numbers or family(item) == family(value.dtype)
        ):
            raise NotComputableError
        sought = self.cast(value, common_of([item, value.dtype]))
        return Typed("array_contains", pa.bool_(), (args[0], sought))

    def _size(self, args: list[Typed]) -> Typed:
        child = _one(args)
        if not (pa.types.is_list(child.dtype) or pa.types.is_map(child.dtype)):
            raise NotComputableError
        return Typed("size", pa.int32(), (child,))

    def _json_object(self, args: list[Typed]) -> Typed:
        if len(args) != 2 or not isinstance(args[1].value, str):
            raise NotComputableError
        path = nested.json_path(args[1].value)
        if path is None or family(args[0].dtype) != "string":
            raise NotComputableError
        return Typed("get_json_object", pa.string(), (args[0],), value=path)


def _interval(node: f.Expression) -> Interval | None:
    """The interval that an expression is, also a sum or the negative of some."""
    if not isinstance(node, f.Function):
        return None
    if node.name == "interval":
        return Interval(*(a.value for a in node.args if isinstance(a, f.Lit)))
    parts = [_interval(a) for a in node.args]
    found = [p for p in parts if p is not None]
    if len(found) != len(parts) or not found or node.name not in ("+", "-", "negative"):
        return None
    signed = [*found[:-1], found[-1].times(1 if node.name == "+" else -1)]
    return signed[0].plus(signed[1]) if len(signed) == 2 else signed[0]


def _one(args: list[Typed]) -> Typed:
    if len(args) != 1:
        raise NotComputableError
    return args[0]
