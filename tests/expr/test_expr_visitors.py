"""Every visitor knows every node: kinds of nodes x places that tell them apart.

A visitor is a ``match`` over the nodes of a predicate or a query. It names each kind of one of the
unions in ``expr.predicate`` or ``expr.ast`` and ends with ``assert_never``, so that a new kind
fails mypy where it was forgotten. This test says the same without mypy, by reading the sources:
the kinds that a ``match`` names have to be exactly a union. A test with ``isinstance`` for one kind
has no such guard, so the functions that have one are listed, with the reason.
"""

from __future__ import annotations

import ast as python
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import get_args

import pytest

from indextables.expr import ast, filters, predicate, wire

PACKAGE = Path(predicate.__file__).parents[1]
SOURCES = {
    str(path.relative_to(PACKAGE)): text
    for path in sorted(PACKAGE.rglob("*.py"))
    if "indextables.expr" in (text := path.read_text())
    or path.parent.name == "expr"  # which may import itself by relative names
}


def unions(module: object) -> dict[str, frozenset[str]]:
    """The unions of node classes that a module defines, by name."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, UnionType)}
    return {
        name: frozenset(cls.__name__ for cls in get_args(value))
        for name, value in found.items()
        if all(cls.__module__ == module.__name__ for cls in get_args(value))  # type: ignore[attr-defined]
    }


UNIONS = {
    "predicate": unions(predicate),
    "ast": unions(ast),
}
PREDICATES, QUERIES = UNIONS["predicate"]["Predicate"], UNIONS["ast"]["Query"]

# Functions that ask for single kinds and are right about every other, whatever it is.
SINGLE = {
    # The rest is typed, so that mypy (or a match further on) sees a kind that is missing.
    "expr/textmatch.py::_field",
    "expr/textmatch.py::_words",
    "expr/textmatch.py::match",
    "planner/stages/program.py::allow",
    "planner/stages/ranges.py::is_avoided",
    "splits/lookup/predicates.py::_pattern",
    "splits/lookup/predicates.py::_column",
    "splits/lookup/queries.py::_paths",
    "splits/lookup/queries.py::_plain",
    "splits/lookup/queries.py::_text",
    "splits/lookup/queries.py::compile",
    "expr/evaluate.py::_pattern",
    "planner/explain/describe.py::_column_stages",
    "planner/stages/partitions.py::partition_table",
    "planner/stages/program.py::_column_node",
    # Undecided parts, searches and constants are meant by name.
    "expr/evaluate.py::_is_late",
    "expr/evaluate.py::can_evaluate",
    "expr/searchbind.py::bind_text",
    "planner/explain/why.py::_reason",
    "planner/plan.py::undecided",
    "planner/stages/program.py::_text_node",
    "spark/driver/scan.py::_is_accepted",
    "spark/driver/scan.py::without_others",
    "table/execute.py::_asks_words",
    "table/statistics.py::ranking",
    "splits/lookup/coded.py::_mask",
    "splits/lookup/coded.py::is_coded",
    "splits/lookup/predicates.py::text_conjuncts",
    "splits/lookup/terms.py::likely_parts",
    "splits/read/choose.py::_needs_text",
    # What is scored: a boost, a combination, everything or nothing, else a question about a field.
    "expr/elastic.py::query_string",
    "expr/elastic.py::terms",
    "expr/querystring.py::_at_least",
    "expr/similarity.py::scored_leaf",
    "log/read/unread.py::_may_match",
    "splits/read/ranking.py::_leaf",
    "splits/read/ranking.py::_query",
    "splits/read/ranking.py::_tree",
    "table/statistics.py::highest",
    # Only a list of values can be long; of patterns, those of expressions are looked into.
    "expr/grams.py::needed",
    "splits/read/narrowing.py::_is_long",
    "splits/read/narrowing.py::_narrowed",
    # Parts that are joined with their like; any other part stands alone.
    "expr/normalize.py::_merge",
    "expr/normalize.py::all_of",
    "expr/searchfields.py::any_of",
    "expr/searchfields.py::one_of",
    "splits/lookup/predicates.py::_conjuncts",
    "splits/lookup/predicates.py::_group",
    # Ranges inside JSON have an order of their own; the wording of a reason.
    "splits/lookup/colindex/predicates.py::answers_exactly",
    "expr/textmatch.py::_json",
    "planner/explain/why.py::_open_end",
    "planner/explain/why.py::_rule",
}


def functions(text: str) -> Iterator[python.FunctionDef]:
    for node in python.walk(python.parse(text)):
        if isinstance(node, python.FunctionDef):
            yield node


def named(pattern: python.AST) -> set[str]:
    """The classes that a case names, the modules' own names left out."""
    found = (node.cls for node in python.walk(pattern) if isinstance(node, python.MatchClass))
    return {cls.attr if isinstance(cls, python.Attribute) else cls.id for cls in found}  # type: ignore[attr-defined]


def never(case: python.match_case) -> bool:
    """Is this ``case _: assert_never(...)``?"""
    body = case.body[0]
    call = body.value if isinstance(body, python.Expr) else None
    name = call.func if isinstance(call, python.Call) else None
    return isinstance(name, python.Name) and name.id == "assert_never"


def matches_over_nodes(text: str) -> Iterator[tuple[python.Match, set[str]]]:
    for node in python.walk(python.parse(text)):
        if isinstance(node, python.Match):
            kinds = set().union(*(named(case.pattern) for case in node.cases))
            if kinds & (PREDICATES | QUERIES) and kinds <= PREDICATES | QUERIES:
                yield node, kinds


def forgotten(text: str) -> list[str]:
    """What is wrong with the visitors of a source, in words."""
    found = []
    for node, kinds in matches_over_nodes(text):
        where = f"line {node.lineno}: match over {python.unparse(node.subject)}"
        if not never(node.cases[-1]):
            found.append(f"{where} does not end with assert_never")
        whole = [u for module in UNIONS.values() for u in module.values() if u == kinds]
        if not whole:
            nearest = min(
                (u - kinds for module in UNIONS.values() for u in module.values() if u >= kinds),
                key=len,
            )
            found.append(f"{where} forgets {', '.join(sorted(nearest))}")
    return found


VISITED = [name for name, text in SOURCES.items() if list(matches_over_nodes(text))]


@pytest.mark.parametrize("name", VISITED)
def test_every_visitor_names_every_kind(name: str) -> None:
    assert forgotten(SOURCES[name]) == []


def test_the_places_that_need_visitors_have_them() -> None:
    """Coverage by construction: these decide by the kind of a node."""
    assert set(VISITED) >= {
        "splits/lookup/colindex/predicates.py",
        "expr/evaluate.py",
        "expr/normalize.py",
        "expr/predicate.py",
        "expr/textmatch.py",
        "planner/explain/describe.py",
        "planner/stages/program.py",
        "planner/stages/ranges.py",
        "splits/lookup/predicates.py",
        "splits/lookup/queries.py",
        "table/snippets.py",
        "xref/evaluate.py",
    }


def asks_for_a_kind(function: python.FunctionDef) -> Iterator[str]:
    """The nodes of ours, AND and OR aside, that calls of ``isinstance`` name."""
    for node in python.walk(function):
        if not isinstance(node, python.Call) or python.unparse(node.func) != "isinstance":
            continue
        for part in python.unparse(node.args[1]).split(" | "):
            if part in PREDICATES - {"And", "Or"} or part in {f"ast.{q}" for q in QUERIES}:
                yield part


def test_single_kinds_are_asked_for_only_where_it_is_listed() -> None:
    found = {
        f"{name}::{function.name}"
        for name, text in SOURCES.items()
        for function in functions(text)
        if list(asks_for_a_kind(function))
    }
    assert sorted(found) == sorted(SINGLE)


@pytest.mark.parametrize("kind", sorted(PREDICATES))
def test_a_visitor_that_forgets_a_predicate_is_found(kind: str) -> None:
    assert any(kind in problem for problem in forgotten(without(PREDICATES - {kind}, "")))


@pytest.mark.parametrize("kind", sorted(QUERIES))
def test_a_visitor_that_forgets_a_query_is_found(kind: str) -> None:
    assert any(kind in problem for problem in forgotten(without(QUERIES - {kind}, "ast.")))


def without(kinds: frozenset[str], module: str) -> str:
    """A visitor that names these kinds alone."""
    listed = " | ".join(f"{module}{kind}()" for kind in sorted(kinds))
    return f"match p:\n    case {listed}:\n        pass\n    case _:\n        assert_never(p)\n"


def test_a_catch_all_is_found() -> None:
    assert (
        forgotten("match p:\n    case Compare():\n        pass\n    case _:\n        pass\n") != []
    )


def test_wire_forms_know_every_kind() -> None:
    assert set(ast._KINDS.values()) == set(get_args(ast.Query))
    bases = {"Filter", "Comparison", "Junction", "NullTest", "TextFilter"}
    left_to_spark = {"Unsupported"}
    assert below(filters.Expression) - set(wire._CLASSES) == bases | left_to_spark


def below(cls: type) -> set[str]:
    """The names of the classes under a class."""
    return {name for sub in cls.__subclasses__() for name in (sub.__name__, *below(sub))}
