"""Comparisons of address columns: order and networks are those of addresses, not of texts.

``ip BETWEEN '66.249.0.0' AND '66.249.255.255'``, ``ip < '10.0.0.9'`` and ``ip = '66.249.0.0/16'``
become ranges of addresses, which the index answers. A value that is no address lies in no range; an
end that is none is an error. Equality with one address compares texts, as it does everywhere else.

Another engine (Spark, DuckDB over a dataset) would compare the texts once more and lose rows
without a word, so such comparisons are refused where the filter comes from one: ``refuse_for``.
"""

from __future__ import annotations

from collections.abc import Iterator

from indextables.errors import PlanningError, TypeMismatchError
from indextables.expr import ast
from indextables.expr import filters as f
from indextables.expr.ipaddr import address_range, format_address, is_range, parse_address
from indextables.expr.predicate import (
    Column,
    NullTest,
    Op,
    Predicate,
    TextMatch,
    conjunction,
)
from indextables.mapping import DocMapping

_HINT = "Write an address such as 10.0.0.1, or use = with a network such as 10.0.0.0/8"
_ORDER = (f.LessThan, f.LessThanOrEqual, f.GreaterThan, f.GreaterThanOrEqual)


def is_address(mapping: DocMapping | None, path: tuple[str, ...]) -> bool:
    """Is a column indexed as addresses?"""
    found = None if mapping is None or len(path) != 1 else mapping.get(path[0])
    return found is not None and found.type == "ip"


def is_network(text: object) -> bool:
    """Does a text name more than one address: a block, or wildcards?"""
    return isinstance(text, str) and parse_address(text) is None and is_range(text)


def address_test(column: Column, op: Op, text: str) -> Predicate | None:
    """The comparison as a range of addresses; ``None`` where texts may be compared."""
    if op in (Op.EQ, Op.NE):
        if not is_network(text):
            return None
        low, high = map(format_address, address_range(text))
        return _test(column, ast.Range(column.name, low, high), op, text)
    if parse_address(text) is None:
        raise TypeMismatchError(
            f"'{text}' is not an address, and '{column.label}' holds addresses", hint=_HINT
        )
    strict = op in (Op.LT, Op.GT)
    if op in (Op.LT, Op.LE):
        return _test(column, ast.Range(column.name, None, text, True, not strict), op, text)
    return _test(column, ast.Range(column.name, text, None, not strict, True), op, text)


def _test(column: Column, query: ast.Range, op: Op, text: str) -> Predicate:
    test = TextMatch(query, (column.name,), f"{op.value} {text}", negated=op is Op.NE)
    return conjunction([NullTest(column, is_null=False), test]) if op is Op.NE else test


def refuse_for(engine: str, source: f.Expression, mapping: DocMapping | None) -> None:
    """Refuse what an engine that compares texts would answer differently."""
    for column, value in asked_addresses(source, mapping):
        raise PlanningError(
            f"{engine} would compare the addresses in {column!r} as texts",
            hint=f"Write {column!r} INDEXQUERY '{value}', which compares addresses",
        )


def asked_addresses(
    source: f.Expression, mapping: DocMapping | None
) -> Iterator[tuple[f.Attribute, str]]:
    """The comparisons of a filter that mean addresses: columns, and what to search for instead."""
    fields = () if mapping is None else mapping.fields
    names = {field.name.lower() for field in fields if field.type == "ip"}
    for node in source.walk() if names else ():
        for column, value in _compared(node):
            if len(column.path) == 1 and column.path[0].lower() in names:
                yield column, value


def _compared(node: f.Expression) -> Iterator[tuple[f.Attribute, str]]:
    """Columns and the texts they are compared with by order, or that may be networks."""
    if isinstance(node, f.In):
        listed = [v.value for v in node.values if isinstance(v, f.Lit)]
        if isinstance(node.left, f.Attribute):
            yield from ((node.left, str(text)) for text in listed if is_network(text))
    elif isinstance(node, f.Comparison):
        ordered = isinstance(node, _ORDER)
        for column, value in ((node.left, node.right), (node.right, node.left)):
            if not isinstance(column, f.Attribute) or not isinstance(value, f.Lit):
                continue
            if isinstance(value.value, str) and (ordered or is_network(value.value)):
                yield column, f"[{value.value} TO *]" if ordered else value.value
