"""Sigma rules as filters: detections written once, run over a table.

pySigma reads the rules (extra ``sigma``); their conditions become filters of this package, node by
node, never as text. What Sigma means and SQL does not:

* texts are compared without regard to case, unless the modifier ``cased`` stands there; ``*`` and
  ``?`` are wildcards. A regular expression minds case unless the modifier ``i`` stands there;
* a condition on a field that a row does not have is false, and its negation true: there is no NULL.
  So negations are pushed down to the single tests, where a missing value satisfies them;
* a keyword without a field may stand in any text column.

Fields are columns of the same name, or what ``mapping`` calls them. A field without a column, and a
modifier that has no filter, is an error that names it. Rules that correlate several events, and
aggregations, are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.errors import ConfigError, PlanningError, UnknownColumnError
from indextables.expr import filters as f
from indextables.expr.expressions import Attribute

_COMPARISONS = {
    "LT": f.LessThan,
    "LTE": f.LessThanOrEqual,
    "GT": f.GreaterThan,
    "GTE": f.GreaterThanOrEqual,
}


@dataclass(frozen=True)
class Detection:
    """One Sigma rule, ready to be asked of tables."""

    title: str
    id: str
    level: str
    rule: Any
    fields: Mapping[str, str]

    def where(self, table: Any) -> f.Filter:
        """The rule as a filter over the columns of a table."""
        return _Reader(self, table.schema).read()

    def matches(
        self, table: Any, columns: Sequence[str] | None = None, limit: int | None = None
    ) -> pa.Table:
        """The rows of a table that the rule detects."""
        found: pa.Table = table.to_arrow(self.where(table), columns, limit)
        return found

    def count(self, table: Any) -> int:
        """How many rows of a table the rule detects."""
        return int(table.count(self.where(table)))

    def __repr__(self) -> str:
        return f"Detection({self.title!r}, level={self.level!r})"


def sigma(rules: Any, mapping: Mapping[str, str] | None = None) -> list[Detection]:
    """The detections of Sigma rules: paths of files, YAML texts, or a list of either.

    ``mapping`` says which column a field of the rules is: ``{"CommandLine": "process.cmd"}``.
    """
    collection = _library("sigma.collection").SigmaCollection
    error = _library("sigma.exceptions").SigmaError
    found: list[Detection] = []
    for text, source in _texts(rules):
        try:
            read = collection.from_yaml(text)
        except error as problem:
            raise PlanningError(f"{source} is no Sigma rule: {problem}") from problem
        found += [_detection(rule, dict(mapping or {})) for rule in read.rules]
    return found


def _detection(rule: Any, fields: Mapping[str, str]) -> Detection:
    if not hasattr(rule, "detection"):
        raise PlanningError(
            f"the Sigma rule '{rule.title}' correlates events; only single events are detected"
        )
    level = getattr(rule.level, "name", None)
    return Detection(str(rule.title), str(rule.id or ""), (level or "").lower(), rule, fields)


def _library(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            "Sigma rules need pySigma", hint="pip install 'indextables[sigma]'"
        ) from error


def _texts(rules: Any) -> Iterator[tuple[str, str]]:
    """(YAML, where it came from)."""
    if isinstance(rules, str | os.PathLike):
        given = os.fspath(rules)
        if "\n" in given or not os.path.exists(given):
            if "\n" not in given:
                raise ConfigError(f"there is no Sigma rule at '{given}'")
            yield given, "the text"
        elif os.path.isdir(given):
            names = sorted(n for n in os.listdir(given) if n.endswith((".yml", ".yaml")))
            for name in names:
                yield from _texts(os.path.join(given, name))
        else:
            with open(given, encoding="utf-8") as file:
                yield file.read(), given
    else:
        for rule in rules:
            yield from _texts(rule)


class _Reader:
    """Turns the condition of one rule into a filter."""

    def __init__(self, detection: Detection, schema: pa.Schema) -> None:
        self._detection = detection
        self._schema = schema
        self._names = {name.lower(): name for name in schema.names}
        self._fields = {k.lower(): v for k, v in detection.fields.items()}
        self._types = _library("sigma.types")
        self._nodes = _library("sigma.conditions")

    def read(self) -> f.Filter:
        try:
            parsed = [item.parsed for item in self._detection.rule.detection.parsed_condition]
        except _library("sigma.exceptions").SigmaError as error:
            raise self._wrong(str(error)) from error
        return _any([self._node(part, negated=False) for part in parsed])

    def _wrong(self, what: str) -> PlanningError:
        return PlanningError(f"the Sigma rule '{self._detection.title}' cannot be run: {what}")

    def _node(self, node: Any, *, negated: bool) -> f.Filter:
        kinds = self._nodes
        if isinstance(node, kinds.ConditionNOT):
            return self._node(node.args[0], negated=not negated)
        if isinstance(node, kinds.ConditionAND | kinds.ConditionOR):
            parts = [self._node(part, negated=negated) for part in node.args]
            both = isinstance(node, kinds.ConditionAND) != negated
            return _all(parts) if both else _any(parts)
        if isinstance(node, kinds.ConditionFieldEqualsValueExpression):
            return self._tested(node.field, node.value, negated)
        if isinstance(node, kinds.ConditionValueExpression):
            return self._keyword(node.value, negated)
        raise self._wrong(f"{type(node).__name__} is not known")

    # -- fields -----------------------------------------------------------------------------------

    def _column(self, field: str) -> tuple[str, pa.DataType]:
        """The column of a field, with the type of its values."""
        name = self._fields.get(field.lower(), field)
        parts = name.split(".")
        whole = self._names.get(name.lower())
        if whole is not None:
            return f"`{whole.replace('`', '``')}`", self._schema.field(whole).type
        column = self._names.get(parts[0].lower())
        if column is None:
            raise UnknownColumnError.of(name, self._schema.names)
        dtype = self._schema.field(column).type
        path = [column]
        for part in parts[1:]:
            if not pa.types.is_struct(dtype):
                raise UnknownColumnError.of(name, self._schema.names)
            inner = next((x for x in dtype.fields if x.name.lower() == part.lower()), None)
            if inner is None:
                known = [".".join([*path, x.name]) for x in dtype.fields]
                raise UnknownColumnError.of(name, known)
            path, dtype = [*path, inner.name], inner.type
        return ".".join(f"`{p.replace('`', '``')}`" for p in path), dtype

    def _tested(self, field: str, value: Any, negated: bool) -> f.Filter:
        types = self._types
        if isinstance(value, types.SigmaExpansion):
            parts = [self._tested(field, part, negated) for part in value.values]
            return _all(parts) if negated else _any(parts)
        column, dtype = self._column(field)
        if isinstance(value, types.SigmaExists):
            return f.IsNotNull(column) if bool(value) != negated else f.IsNull(column)
        if isinstance(value, types.SigmaNull):
            return f.IsNotNull(column) if negated else f.IsNull(column)
        test = self._test(column, dtype, value)
        return f.Or(f.IsNull(column), f.Not(test)) if negated else test

    def _test(self, column: str, dtype: pa.DataType, value: Any) -> f.Filter:
        types = self._types
        if isinstance(value, types.SigmaString):
            return self._text(column, dtype, value)
        if isinstance(value, types.SigmaNumber):
            return self._number(column, dtype, value.number)
        if isinstance(value, types.SigmaBool):
            return self._bool(column, dtype, bool(value))
        if isinstance(value, types.SigmaRegularExpression):
            return f.RLike(column, self._regex(value))
        if isinstance(value, types.SigmaCompareExpression):
            made = _COMPARISONS[value.op.name]
            return made(column, value.number.number)
        if isinstance(value, types.SigmaCIDRExpression):
            return self._network(column, value)
        if isinstance(value, types.SigmaFieldReference):
            return self._same(column, value)
        raise self._wrong(f"the modifier of {type(value).__name__} has no filter")

    # -- values -----------------------------------------------------------------------------------

    def _text(self, column: str, dtype: pa.DataType, value: Any) -> f.Filter:
        if value.contains_placeholder():
            raise self._wrong("placeholders (modifier 'expand') are not filled in")
        cased = isinstance(value, self._types.SigmaCasedString)
        if not pa.types.is_string(dtype):
            return self._typed(column, dtype, str(value))
        return f.Like(column, self._pattern(value), ignore_case=not cased)

    def _pattern(self, value: Any) -> str:
        wild = self._types.SpecialChars
        spelled = {wild.WILDCARD_MULTI: "%", wild.WILDCARD_SINGLE: "_"}
        return "".join(
            _escaped(part) if isinstance(part, str) else spelled[part] for part in value.s
        )

    def _typed(self, column: str, dtype: pa.DataType, text: str) -> f.Filter:
        """A text compared with a column of numbers or times."""
        if pa.types.is_boolean(dtype):
            return f.EqualTo(column, text.lower() == "true")
        if pa.types.is_integer(dtype) or pa.types.is_floating(dtype):
            try:
                number = float(text) if "." in text else int(text, 0)
            except ValueError:
                raise self._wrong(f"'{text}' is no number, and {column} is one") from None
            return f.EqualTo(column, number)
        return f.EqualTo(column, text)

    def _number(self, column: str, dtype: pa.DataType, number: Any) -> f.Filter:
        if pa.types.is_string(dtype):
            return f.EqualTo(column, str(number))
        return f.EqualTo(column, number)

    def _bool(self, column: str, dtype: pa.DataType, value: bool) -> f.Filter:
        if pa.types.is_string(dtype):
            return f.Like(column, str(value).lower(), ignore_case=True)
        return f.EqualTo(column, value)

    def _regex(self, value: Any) -> str:
        flags = {flag.name for flag in value.flags}
        letters = {"IGNORECASE": "i", "DOTALL": "s"}
        if more := sorted(flags - set(letters)):
            raise self._wrong(f"the flag {', '.join(more)} of modifier 're' has no filter")
        head = "".join(letters[name] for name in sorted(flags))
        pattern = str(value.regexp)
        return f"(?{head}){pattern}" if head else pattern

    def _network(self, column: str, value: Any) -> f.Filter:
        """Addresses of a block, as texts: those that begin with the bytes it fixes."""
        from ipaddress import ip_network

        network = ip_network(str(value.cidr), strict=False)
        if network.version == 6:
            raise self._wrong("modifier 'cidr' with IPv6 has no filter")
        whole = -(-network.prefixlen // 8)
        starts = [
            str(part.network_address).split(".")[:whole]
            for part in network.subnets(new_prefix=whole * 8)
        ]
        tail = [] if whole == 4 else ["%"]
        return _any([f.Like(column, ".".join([*start, *tail])) for start in starts])

    def _same(self, column: str, value: Any) -> f.Filter:
        if getattr(value, "starts_with", False) or getattr(value, "ends_with", False):
            raise self._wrong("modifier 'fieldref' with startswith or endswith has no filter")
        other, _ = self._column(value.field)
        return f.EqualTo(column, Attribute(other))

    def _keyword(self, value: Any, negated: bool) -> f.Filter:
        """A keyword in any text column."""
        texts = [
            name for name in self._schema.names if pa.types.is_string(self._schema.field(name).type)
        ]
        if not texts:
            raise self._wrong("a keyword needs a text column, and the table has none")
        if isinstance(value, self._types.SigmaString):
            pattern = f"%{self._pattern(value)}%"
        elif isinstance(value, self._types.SigmaNumber):
            pattern = f"%{value.number}%"
        else:
            raise self._wrong(f"a keyword cannot be {type(value).__name__}")
        cased = isinstance(value, self._types.SigmaCasedString)
        parts: list[f.Filter] = []
        for name in texts:
            column = f"`{name.replace('`', '``')}`"
            test = f.Like(column, pattern, ignore_case=not cased)
            parts.append(f.Or(f.IsNull(column), f.Not(test)) if negated else test)
        return _all(parts) if negated else _any(parts)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _all(parts: list[f.Filter]) -> f.Filter:
    return parts[0] if len(parts) == 1 else f.And(*parts)


def _any(parts: list[f.Filter]) -> f.Filter:
    return parts[0] if len(parts) == 1 else f.Or(*parts)
