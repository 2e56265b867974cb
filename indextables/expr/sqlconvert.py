"""sqlglot's tree of a Spark predicate as our filters, node by node.

Each node class has one rule; a class without a rule is a function call by name if it looks like
one, otherwise ``Unsupported`` with its SQL text. Functions are not judged here: whether one can be
computed is decided at binding.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import sqlglot.expressions as exp

from indextables.errors import IndexTablesError, PlanningError
from indextables.expr import filters as f
from indextables.expr import intervals
from indextables.types import type_from_json

_COMPARISONS: dict[Any, type[f.Comparison]] = {
    exp.EQ: f.EqualTo,
    exp.NullSafeEQ: f.EqualNullSafe,
    exp.GT: f.GreaterThan,
    exp.GTE: f.GreaterThanOrEqual,
    exp.LT: f.LessThan,
    exp.LTE: f.LessThanOrEqual,
    exp.StartsWith: f.StringStartsWith,
    exp.EndsWith: f.StringEndsWith,
    exp.Contains: f.StringContains,
    exp.RegexpLike: f.RLike,
}
_BINARY = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.DPipe: "concat",
    exp.Nullif: "nullif",
    exp.ArrayContains: "array_contains",
    exp.AddMonths: "add_months",
}
_CALLS = {
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Length: "length",
    exp.Abs: "abs",
    exp.IsNan: "isnan",
    exp.Year: "year",
    exp.Month: "month",
    exp.Quarter: "quarter",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.Neg: "negative",
    exp.ArraySize: "size",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
}


class Converter:
    """Turns nodes into expressions; knows the string literals behind their stand-ins."""

    def __init__(self, strings: list[str]) -> None:
        self._strings = strings
        self._rules: dict[Any, Callable[[Any], f.Expression]] = {
            exp.Paren: lambda n: self.expression(n.this),
            exp.And: lambda n: f.And(*self._flat(n, exp.And)),
            exp.Or: lambda n: f.Or(*self._flat(n, exp.Or)),
            exp.Not: lambda n: f.Not(self.condition(n.this)),
            exp.NEQ: lambda n: f.Not(f.EqualTo(*self._two(n))),
            exp.NullSafeNEQ: lambda n: f.Not(f.EqualNullSafe(*self._two(n))),
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: partial(self._like, ignore_case=False),
            exp.ILike: partial(self._like, ignore_case=True),
            exp.Escape: self._escape,
            exp.Column: self._column,
            exp.Dot: self._dot,
            exp.Literal: self._literal,
            exp.RawString: lambda n: f.Lit(self._string(n.name)),
            exp.HexString: self._hex,
            exp.Boolean: lambda n: f.Lit(bool(n.this)),
            exp.Null: lambda n: f.Lit(None),
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Case: self._case,
            exp.If: self._if,
            exp.Coalesce: lambda n: self._call("coalesce", n.this, *n.expressions),
            exp.Concat: lambda n: self._call("concat", *n.expressions),
            exp.Substring: self._substring,
            exp.Trim: self._trim,
            exp.TimestampTrunc: self._date_trunc,
            exp.TsOrDsToDate: self._to_date,
            exp.Interval: self._interval,
            exp.TsOrDsAdd: self._date_add,
            exp.DateDiff: self._date_diff,
            exp.JSONExtractScalar: self._json_object,
            exp.Anonymous: self._anonymous,
        }

    def condition(self, node: Any) -> f.Expression:
        if isinstance(node, exp.Query) or not isinstance(node, exp.Condition):
            raise PlanningError("a filter is a condition, not a statement")
        return self.expression(node)

    def value(self, node: Any) -> f.Expression:
        if isinstance(node, exp.Query | exp.Alias) or not isinstance(node, exp.Expression):
            raise PlanningError("a value is an expression, not a statement")
        return self.expression(node)

    def expression(self, node: Any) -> f.Expression:
        """The node as an expression; what has no rule keeps its text."""
        kind = type(node)
        try:
            if kind in _COMPARISONS:
                return self._negatable(node, _COMPARISONS[kind](*self._two(node)))
            if kind in _BINARY:
                return f.Function(_BINARY[kind], self._two(node))
            if kind in _CALLS:
                return self._known_call(node, _CALLS[kind])
            if kind in self._rules:
                return self._rules[kind](node)
        except _NoRuleError:
            pass
        return self._unsupported(node)

    def _unsupported(self, node: Any) -> f.Expression:
        columns = [self._column(c) for c in node.find_all(exp.Column)]
        shown = node.copy().transform(self._spell)
        kept = tuple(dict.fromkeys(c for c in columns if isinstance(c, f.Attribute)))
        return f.Unsupported(shown.sql("spark"), kept)

    def _spell(self, node: Any) -> Any:
        if isinstance(node, exp.Literal) and node.is_string:
            return exp.Literal.string(self._string(node.this))
        return node

    def _two(self, node: Any) -> tuple[f.Expression, f.Expression]:
        return self.expression(node.this), self.expression(node.expression)

    def _flat(self, node: Any, kind: Any) -> list[f.Expression]:
        found: list[f.Expression] = []
        stack = [node]
        while stack:
            top = stack.pop()
            if isinstance(top, kind):
                stack += [top.expression, top.this]
            else:
                found.append(self.condition(top))
        return found

    @staticmethod
    def _negatable(node: Any, made: f.Filter) -> f.Filter:
        return f.Not(made) if node.args.get("negate") else made

    def _call(self, name: str, *args: Any) -> f.Expression:
        return f.Function(name, tuple(self.expression(a) for a in args if a is not None))

    # -- names and literals -----------------------------------------------------------------------

    def _column(self, node: Any) -> f.Expression:
        if isinstance(node.this, exp.Star):
            raise _NoRuleError
        return f.Attribute(tuple(part.name for part in node.parts))

    def _dot(self, node: Any) -> f.Expression:
        left = self.expression(node.this)
        if not isinstance(left, f.Attribute) or not isinstance(node.expression, exp.Identifier):
            raise _NoRuleError
        return f.Attribute((*left.path, node.expression.name))

    def _string(self, text: str) -> str:
        return self._strings[int(text[1:])] if text.startswith("#") else text

    def _literal(self, node: Any) -> f.Expression:
        if node.is_string:
            return f.Lit(self._string(node.this))
        text = node.this
        try:
            if text.isdigit():
                return f.Lit(int(text))
            return f.Lit(float(text) if "e" in text.lower() else Decimal(text))
        except (ValueError, ArithmeticError) as error:
            raise PlanningError(f"'{text[:40]}' is not a number") from error

    @staticmethod
    def _hex(node: Any) -> f.Expression:
        try:
            digits = str(node.this)
            return f.Lit(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits))
        except ValueError as error:
            raise PlanningError(f"X'{node.this}' is not hexadecimal") from error

    def _cast(self, node: Any) -> f.Expression:
        try:
            target = type_from_json(node.to.sql("spark").lower().replace(" ", ""))
        except IndexTablesError:
            raise _NoRuleError from None
        child = self.expression(node.this)
        return f.Cast(child, target, lenient=bool(node.args.get("safe")))

    # -- conditions -------------------------------------------------------------------------------

    def _is(self, node: Any) -> f.Expression:
        child = self.expression(node.this)
        if isinstance(node.expression, exp.Null):
            return f.IsNull(child)
        if isinstance(node.expression, exp.Boolean):
            return f.EqualNullSafe(child, bool(node.expression.this))
        raise _NoRuleError

    def _in(self, node: Any) -> f.Expression:
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            raise _NoRuleError
        return f.In(self.expression(node.this), [self.expression(v) for v in node.expressions])

    def _between(self, node: Any) -> f.Expression:
        child = self.expression(node.this)
        low, high = self.expression(node.args["low"]), self.expression(node.args["high"])
        made = f.And(f.GreaterThanOrEqual(child, low), f.LessThanOrEqual(child, high))
        return self._negatable(node, made)

    def _like(self, node: Any, *, ignore_case: bool, escape: str = "\\") -> f.Expression:
        child = self.expression(node.this)
        pattern = node.expression
        if isinstance(pattern, exp.Any | exp.All):
            inner = pattern.this
            items = inner.expressions if isinstance(inner, exp.Tuple) else [inner.this]
            each = [f.Like(child, self.expression(i), escape, ignore_case) for i in items]
            tests = [self._negatable(node, one) for one in each]
            return f.Or(*tests) if isinstance(pattern, exp.Any) else f.And(*tests)
        made = f.Like(child, self.expression(pattern), escape, ignore_case)
        return self._negatable(node, made)

    def _escape(self, node: Any) -> f.Expression:
        escape = self.expression(node.expression)
        if not isinstance(escape, f.Lit) or not isinstance(escape.value, str):
            raise _NoRuleError
        if len(escape.value) != 1:
            raise PlanningError("ESCAPE takes one character")
        if not isinstance(node.this, exp.Like | exp.ILike):
            raise _NoRuleError
        ignore_case = isinstance(node.this, exp.ILike)
        return self._like(node.this, ignore_case=ignore_case, escape=escape.value)

    # -- functions --------------------------------------------------------------------------------

    def _known_call(self, node: Any, name: str) -> f.Expression:
        inner = node.this
        if name != "length" and isinstance(inner, exp.TsOrDsToDate):
            inner = inner.this
        extra = [k for k, v in node.args.items() if v and k not in ("this", "safe")]
        if extra:
            raise _NoRuleError
        return f.Function(name, () if inner is None else (self.expression(inner),))

    def _to_date(self, node: Any) -> f.Expression:
        if node.args.get("format") is not None:
            raise _NoRuleError
        return f.Cast(self.expression(node.this), pa.date32())

    def _case(self, node: Any) -> f.Expression:
        subject = None if node.this is None else self.expression(node.this)
        args: list[f.Expression] = []
        for branch in node.args["ifs"]:
            test = self.expression(branch.this)
            args.append(test if subject is None else f.EqualTo(subject, test))
            args.append(self.expression(branch.args["true"]))
        default = node.args.get("default")
        args.append(f.Lit(None) if default is None else self.expression(default))
        return f.Function("case", tuple(args))

    def _if(self, node: Any) -> f.Expression:
        otherwise = node.args.get("false")
        last = f.Lit(None) if otherwise is None else self.expression(otherwise)
        args = (self.expression(node.this), self.expression(node.args["true"]), last)
        return f.Function("case", args)

    def _substring(self, node: Any) -> f.Expression:
        return self._call("substring", node.this, node.args.get("start"), node.args.get("length"))

    def _trim(self, node: Any) -> f.Expression:
        if node.expression is not None:
            raise _NoRuleError
        sides = {"LEADING": "ltrim", "TRAILING": "rtrim"}
        return self._call(sides.get(str(node.args.get("position")).upper(), "trim"), node.this)

    def _date_trunc(self, node: Any) -> f.Expression:
        unit = f.Lit(self._string(node.args["unit"].name).lower())
        return f.Function("date_trunc", (unit, self.expression(node.this)))

    def _interval(self, node: Any) -> f.Expression:
        text, unit = self._string(str(node.this.name)), node.args.get("unit")
        if isinstance(unit, exp.IntervalSpan):
            made = intervals.of_span(text, unit.this.name, unit.expression.name)
        else:
            made = intervals.of_text(text) if unit is None else intervals.of_unit(text, unit.name)
        if made is None:
            raise _NoRuleError
        return f.Function("interval", tuple(map(f.Lit, made)))

    def _date_add(self, node: Any) -> f.Expression:
        if node.args["unit"].name.upper() != "DAY":
            raise _NoRuleError
        return self._call("date_add", node.this, node.expression)

    def _date_diff(self, node: Any) -> f.Expression:
        if node.args.get("unit") is not None:
            raise _NoRuleError
        return self._call("datediff", node.this, node.expression)

    def _json_object(self, node: Any) -> f.Expression:
        path = node.expression
        if isinstance(path, exp.JSONPath):
            keys = [str(k.this) for k in path.find_all(exp.JSONPathKey)]
            path = exp.Literal.string(keys[0]) if len(keys) == 1 else None
        if path is None:
            raise _NoRuleError
        return self._call("get_json_object", node.this, path)

    def _anonymous(self, node: Any) -> f.Expression:
        name = node.this.lower()
        args = [self.expression(a) for a in node.expressions]
        text = f.text_call(name, args)
        if text is not None:
            return text
        if name in ("isnull", "isnotnull") and len(args) == 1:
            return f.IsNull(args[0]) if name == "isnull" else f.IsNotNull(args[0])
        return f.Function(name, tuple(args))


class _NoRuleError(Exception):
    """The node stays as text."""
