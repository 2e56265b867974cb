"""For each pruning rule one split and one predicate that make it fire.

Random tables need luck to reach the rarer rules; these do not.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pyarrow as pa
from planner.tables import Split, column, write_split

from indextables.expr import predicate as p

Case = tuple[pa.Schema, Split, p.Predicate]

SCHEMA = pa.schema([("i", pa.int64()), ("s", pa.string())])
PARTED = SCHEMA.append(pa.field("day", pa.date32()))
NUMBER, TEXT = column(SCHEMA, "i"), column(SCHEMA, "s")
DAY = column(PARTED, "day", ["day"])
OPS, KINDS = p.Op, p.Match
KINDS_OF_LEAF = ("Compare", "InSet", "StringMatch")


def _split(*rows: tuple[int | None, str | None], partition: Any = None) -> Split:
    schema = PARTED if partition else SCHEMA
    return write_split([{"i": i, "s": s} for i, s in rows], schema, partition)


def _plain(predicate: p.Predicate, *rows: tuple[int | None, str | None]) -> Case:
    return SCHEMA, _split(*(rows or ((5, "abc"), (7, "abd")))), predicate


def _in_day(predicate: p.Predicate, text: str | None = None) -> Case:
    split = _split((5, "abc"), partition={"day": 3})
    if text is not None:
        split.partition["day"] = text
    return PARTED, split, predicate


def _uncounted(predicate: p.Predicate) -> Case:
    split = _split((5, "abc"))
    split.stats = None
    return SCHEMA, split, predicate


CASES: dict[str, Case] = {
    "constant": _plain(p.FALSE),
    "constant true": _plain(p.TRUE),
    "undecided": _plain(p.Undecided("f(i)", ("i",), False, lambda row: row["i"] > 6)),
    "empty split": (SCHEMA, _split(), p.Compare(NUMBER, OPS.EQ, 5)),
    "all null": _plain(p.Compare(NUMBER, OPS.EQ, 5), (None, "a")),
    "partition true": _in_day(p.Compare(DAY, OPS.EQ, 3)),
    "partition false": _in_day(p.Compare(DAY, OPS.EQ, 4)),
    "partition unreadable": _in_day(p.Compare(DAY, OPS.EQ, 3), "the third"),
    "Compare outside": _plain(p.Compare(NUMBER, OPS.EQ, 9)),
    "Compare inside": _plain(p.Compare(NUMBER, OPS.LT, 9)),
    "Compare all excluded": _plain(p.Compare(NUMBER, OPS.NE, 5), (5, "a")),
    "Compare avoided outside": _plain(p.Compare(NUMBER, OPS.NE, 9)),
    "InSet outside": _plain(p.InSet(NUMBER, (1, 9), False)),
    "InSet inside": _plain(p.InSet(NUMBER, (5, 9), False), (5, "a")),
    "InSet all excluded": _plain(p.InSet(NUMBER, (5, 9), True), (5, "a")),
    "InSet avoided outside": _plain(p.InSet(NUMBER, (1, 9), True)),
    "StringMatch outside": _plain(p.StringMatch(TEXT, KINDS.PREFIX, "z")),
    "StringMatch inside": _plain(p.StringMatch(TEXT, KINDS.PREFIX, "ab")),
    "StringMatch all excluded": _plain(p.StringMatch(TEXT, KINDS.PREFIX, "ab", True)),
    "StringMatch avoided outside": _plain(p.StringMatch(TEXT, KINDS.PREFIX, "z", True)),
    "is null, none is": _plain(p.NullTest(NUMBER, True)),
    "is null, all are": _plain(p.NullTest(NUMBER, True), (None, "a")),
    "is not null, none is null": _plain(p.NullTest(NUMBER, False)),
    "is not null, all are null": _plain(p.NullTest(NUMBER, False), (None, "a")),
    "null count unknown": _uncounted(p.NullTest(NUMBER, True)),
    "nulls possible": _plain(p.Compare(NUMBER, OPS.LT, 9), (5, "a"), (None, "b")),
    "overlap": _plain(p.Compare(NUMBER, OPS.EQ, 6)),
    "no ranges": _plain(p.StringMatch(TEXT, KINDS.SUFFIX, "c")),
}
NAMES = frozenset(CASES)


def in_source(module: ModuleType) -> set[str]:
    """The rules a module can answer: the texts it puts beside a verdict."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            verdict, rule = node.elts
            if isinstance(verdict, ast.Name) and verdict.id in ("CANNOT", "MAY", "MUST"):
                found.update(_texts(rule))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "proved":
            found.update(_texts(node.args[0]))
    return found


def _texts(rule: ast.expr) -> Iterator[str]:
    if isinstance(rule, ast.Constant):
        yield str(rule.value)
    elif isinstance(rule, ast.JoinedStr):
        tail = rule.values[-1]
        assert isinstance(tail, ast.Constant)
        yield from (f"{leaf}{tail.value}" for leaf in KINDS_OF_LEAF)
